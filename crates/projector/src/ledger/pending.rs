//! Pending writes: nodes of the log that could not be written to the disk. They are retried until they are written or
//! not wanted any more. Their table is called `owed`.

use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use super::{Ledger, node, text};
use crate::views::ViewsError;

/// Why a write is pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PendingReason {
    /// Its bytes were purged or are damaged.
    Unavailable,
    /// Something else blocks the path; with a description.
    Blocked(String),
}

/// One path whose node is not on disk yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingWrite {
    pub(crate) path: FilePath,
    pub(crate) node: Option<FileNode>,
    pub(crate) reason: PendingReason,
}

impl Ledger<'_> {
    /// The next pending writes after a path, in order.
    pub(crate) fn pending(
        &self,
        after: Option<&FilePath>,
        count: usize,
    ) -> Result<Vec<PendingWrite>, ViewsError> {
        let mut statement = self
            .views
            .prepare("SELECT path, node, reason FROM owed WHERE path > ?1 ORDER BY path LIMIT ?2")?;
        let after = after.map_or("", FilePath::as_str);
        let rows = statement.query_map((after, count as i64), |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?, row.get::<_, Option<String>>(2)?))
        });
        let mut owed = Vec::new();
        for row in self.views.map(rows)? {
            let (path, text, reason) = self.views.map(row)?;
            if let Ok(path) = FilePath::parse(&path) {
                let reason = reason.map_or(PendingReason::Unavailable, PendingReason::Blocked);
                owed.push(PendingWrite { path, node: text.as_deref().and_then(node), reason });
            }
        }
        Ok(owed)
    }

    pub(crate) fn has_pending(&self) -> Result<bool, ViewsError> {
        let mut statement = self.views.prepare("SELECT 1 FROM owed LIMIT 1")?;
        self.views.map(statement.exists([]))
    }

    pub(crate) fn add_pending(
        &self,
        path: &FilePath,
        wanted: Option<&FileNode>,
        reason: &PendingReason,
    ) -> Result<(), ViewsError> {
        let mut statement =
            self.views.prepare("INSERT OR REPLACE INTO owed (path, node, reason) VALUES (?1, ?2, ?3)")?;
        let reason = match reason {
            PendingReason::Unavailable => None,
            PendingReason::Blocked(words) => Some(words),
        };
        self.views.map(statement.execute((path.as_str(), wanted.map(text), reason))).map(drop)
    }

    pub(crate) fn remove_pending(&self, path: &FilePath) -> Result<(), ViewsError> {
        let mut statement = self.views.prepare("DELETE FROM owed WHERE path = ?1")?;
        self.views.map(statement.execute([path.as_str()])).map(drop)
    }
}
