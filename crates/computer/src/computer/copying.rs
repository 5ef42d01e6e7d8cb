//! Copies of files, and files that are in the way of a new one.

use kernel::{Action, OutsideEdit, Rejection};
use shared_types::FilePath;
use shared_types::wire::MoveBody;

use super::Computer;
use crate::error::ComputerError;

impl Computer {
    /// Copies files and folders to free paths, all or nothing.
    pub(super) fn copy(&self, copies: &[MoveBody]) -> Result<Action, ComputerError> {
        let copies = copies.to_vec();
        let action = self.writer.inspect(move |view| -> Result<Action, Rejection> {
            let mut edits: Vec<OutsideEdit> = Vec::new();
            for MoveBody { from, to } in copies {
                let is_taken = edits.iter().any(|edit| edit.path.is_within(&to));
                if is_taken || view.files.get(&to).is_some() || view.files.count_below(&to) > 0 {
                    return Err(Rejection::Occupied { path: to });
                }
                let found = view.files.within(&from);
                if found.is_empty() {
                    return Err(Rejection::NotFound { path: from });
                }
                for (path, node) in found {
                    let below = path.as_str().strip_prefix(from.as_str()).unwrap_or_default();
                    let path = FilePath::parse(&format!("{to}{below}")).map_err(|e| Rejection::Invalid {
                        what: "a path of the copy",
                        reason: e.to_string(),
                    })?;
                    edits.push(OutsideEdit { path, base: None, now: Some(node.clone()) });
                }
            }
            Ok(Action::CaptureEdits { edits })
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
