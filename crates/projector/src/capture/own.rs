//! The disk may be further than the ledger knows: after a crash between the two, or under an older ledger. What the
//! log itself gave a path after the disk's position is no edit of anybody's.

use std::collections::HashMap;

use shared_types::FilePath;

use super::{Capture, Found};
use crate::error::ProjectError;
use crate::history::each_change;
use crate::views::Position;

impl Capture<'_> {
    /// Takes what the log itself says out of the edits; the ledger learns it all the same.
    pub(super) fn recognise_own(&self, found: &mut [Found]) -> Result<(), ProjectError> {
        let position = self.views.position(Position::Disk)?.unwrap_or_default().seq;
        let mut edits: HashMap<FilePath, &mut Found> =
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
