//! Copies of files, and files that are in the way of a new one.

use kernel::{Action, OutsideEdit, Rejection};
use shared_types::FilePath;

use super::Computer;
use crate::error::ComputerError;

impl Computer {
    /// Copies a file or folder to a free path.
    pub(super) fn copy(&self, from: &FilePath, to: &FilePath) -> Result<Action, ComputerError> {
        let (from, to) = (from.clone(), to.clone());
        let action = self.writer.inspect(move |view| -> Result<Action, Rejection> {
            if view.files.get(&to).is_some() || view.files.count_below(&to) > 0 {
                return Err(Rejection::Occupied { path: to });
            }
            let mut edits = Vec::new();
            for (path, node) in view.files.within(&from) {
                let below = path.as_str().strip_prefix(from.as_str()).unwrap_or_default();
                let path = FilePath::parse(&format!("{to}{below}"))
                    .map_err(|e| Rejection::Invalid { what: "a path of the copy", reason: e.to_string() })?;
                edits.push(OutsideEdit { path, base: None, now: Some(node.clone()) });
            }
            if edits.is_empty() {
                Err(Rejection::NotFound { path: from })
            } else {
                Ok(Action::CaptureEdits { edits })
            }
        })?;
        Ok(action?)
    }

    /// Refuses a path where an ignored file is, which the log does not have.
    pub(super) fn check_disk(&self, path: &FilePath) -> Result<(), ComputerError> {
        if self.paths.workspace.join(path.as_str()).symlink_metadata().is_err() {
            return Ok(());
        }
        let wanted = path.clone();
        let is_known = self.writer.inspect(move |view| view.files.get(&wanted).is_some())?;
        if is_known {
            // The kernel compares it with the log.
            return Ok(());
        }
        Err(Rejection::Stale { path: path.clone(), expected: None, actual: None }.into())
    }
}
