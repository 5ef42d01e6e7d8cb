//! What the log has at a path and the disk could not be given: tried again until it is there or wanted no more.

use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use super::{Ledger, node, text};
use crate::views::ViewsError;

/// Why a path does not hold what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its bytes were purged or are damaged.
    Unavailable,
    /// Something stands in the way, in words.
    Blocked(String),
}

/// One path that does not hold what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owed {
    pub(crate) path: FilePath,
    pub(crate) node: Option<FileNode>,
    pub(crate) reason: Reason,
}

impl Ledger<'_> {
    /// What is owed after a path, in order, so many at most.
    pub(crate) fn owed(&self, after: Option<&FilePath>, count: usize) -> Result<Vec<Owed>, ViewsError> {
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
                let reason = reason.map_or(Reason::Unavailable, Reason::Blocked);
                owed.push(Owed { path, node: text.as_deref().and_then(node), reason });
            }
        }
        Ok(owed)
    }

    pub(crate) fn owes(&self) -> Result<bool, ViewsError> {
        let mut statement = self.views.prepare("SELECT 1 FROM owed LIMIT 1")?;
        self.views.map(statement.exists([]))
    }

    pub(crate) fn owe(
        &self,
        path: &FilePath,
        wanted: Option<&FileNode>,
        reason: &Reason,
    ) -> Result<(), ViewsError> {
        let mut statement =
            self.views.prepare("INSERT OR REPLACE INTO owed (path, node, reason) VALUES (?1, ?2, ?3)")?;
        let reason = match reason {
            Reason::Unavailable => None,
            Reason::Blocked(words) => Some(words),
        };
        self.views.map(statement.execute((path.as_str(), wanted.map(text), reason))).map(drop)
    }

    pub(crate) fn pay(&self, path: &FilePath) -> Result<(), ViewsError> {
        let mut statement = self.views.prepare("DELETE FROM owed WHERE path = ?1")?;
        self.views.map(statement.execute([path.as_str()])).map(drop)
    }
}
