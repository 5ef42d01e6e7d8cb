//! The disk may be ahead of the ledger, after a crash between the two or with an older ledger. A node that the log
//! itself put at a path after the disk's position is not an outside edit.

use std::collections::HashMap;

use shared_types::FilePath;

use super::{Capture, Difference};
use crate::error::ProjectError;
use crate::history::each_change;
use crate::views::Position;

impl Capture<'_> {
    /// Removes such nodes from the edits; they are still recorded in the ledger.
    pub(super) fn skip_projected(&self, found: &mut [Difference]) -> Result<(), ProjectError> {
        let position = self.views.position(Position::Disk)?.unwrap_or_default().seq;
        let mut edits: HashMap<FilePath, &mut Difference> =
            found.iter_mut().filter(|f| f.is_edit()).map(|f| (f.path.clone(), f)).collect();
        if edits.is_empty() || position >= self.log.head().seq {
            return Ok(());
        }
        each_change(self.log, position.next(), &mut |path, node| {
            if let Some(found) = edits.get_mut(path)
                && found.node() == node
            {
                found.base = node.cloned();
            }
        })?;
        Ok(())
    }
}
