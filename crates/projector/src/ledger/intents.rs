//! Write intents: the changes that are about to be made on disk.

use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use super::{Ledger, node, text};
use crate::views::ViewsError;

/// A change of one path that may have been interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) path: FilePath,
    pub(crate) old: Option<FileNode>,
    pub(crate) new: Option<FileNode>,
}

impl Ledger<'_> {
    pub(crate) fn has_intents(&self) -> Result<bool, ViewsError> {
        let mut statement = self.views.prepare("SELECT 1 FROM intents LIMIT 1")?;
        self.views.map(statement.exists([]))
    }

    pub(crate) fn intents(&self) -> Result<Vec<Intent>, ViewsError> {
        let mut statement = self.views.prepare("SELECT path, old, new FROM intents ORDER BY path")?;
        let rows = statement.query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?, row.get::<_, Option<String>>(2)?))
        });
        let mut intents = Vec::new();
        for row in self.views.map(rows)? {
            let (path, old, new) = self.views.map(row)?;
            if let Ok(path) = FilePath::parse(&path) {
                let (old, new) = (old.as_deref().and_then(node), new.as_deref().and_then(node));
                intents.push(Intent { path, old, new });
            }
        }
        Ok(intents)
    }

    pub(crate) fn intend(
        &self,
        path: &FilePath,
        old: Option<&FileNode>,
        new: Option<&FileNode>,
    ) -> Result<(), ViewsError> {
        let mut statement =
            self.views.prepare("INSERT OR REPLACE INTO intents (path, old, new) VALUES (?1, ?2, ?3)")?;
        self.views.map(statement.execute((path.as_str(), old.map(text), new.map(text)))).map(drop)
    }

    pub(crate) fn clear_intents(&self) -> Result<(), ViewsError> {
        let mut statement = self.views.prepare("DELETE FROM intents")?;
        self.views.map(statement.execute([])).map(drop)
    }
}
