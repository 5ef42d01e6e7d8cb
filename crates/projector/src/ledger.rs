//! What the projector last put on disk, path by path, and what it is about to put there.
//!
//! Own writes are recognised by this ledger's content, never by timing. An intent is recorded before the disk is
//! touched, so that after an unclean stop it is known which paths may hold half of a batch.

use std::collections::HashMap;

use rusqlite::OptionalExtension;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use crate::scan::CacheEntry;
use crate::views::{Views, ViewsError};
use crate::workspace::Stat;

/// A change that may have been interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) path: FilePath,
    pub(crate) old: Option<FileNode>,
    pub(crate) new: Option<FileNode>,
}

/// The `disk` and `intents` tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ledger<'v> {
    views: &'v Views,
}

impl<'v> Ledger<'v> {
    pub(crate) fn new(views: &'v Views) -> Self {
        Self { views }
    }

    pub(crate) fn get(&self, path: &FilePath) -> Result<Option<CacheEntry>, ViewsError> {
        let mut statement = self.views.prepare("SELECT node, stat, checked FROM disk WHERE path = ?1")?;
        let row = statement
            .query_row([path.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional();
        Ok(self.views.map(row)?.and_then(entry))
    }

    pub(crate) fn all(&self) -> Result<HashMap<FilePath, CacheEntry>, ViewsError> {
        let mut statement = self.views.prepare("SELECT path, node, stat, checked FROM disk")?;
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, String>(0)?, (row.get(1)?, row.get(2)?, row.get(3)?))));
        let mut all = HashMap::new();
        for row in self.views.map(rows)? {
            let (path, columns) = self.views.map(row)?;
            if let (Ok(path), Some(entry)) = (FilePath::parse(&path), entry(columns)) {
                all.insert(path, entry);
            }
        }
        Ok(all)
    }

    pub(crate) fn put(&self, path: &FilePath, entry: &CacheEntry) -> Result<(), ViewsError> {
        let mut statement = self
            .views
            .prepare("INSERT OR REPLACE INTO disk (path, node, stat, checked) VALUES (?1, ?2, ?3, ?4)")?;
        let row = (path.as_str(), text(&entry.node), pack(&entry.stat), entry.checked_at_ns);
        self.views.map(statement.execute(row)).map(drop)
    }

    pub(crate) fn remove(&self, path: &FilePath) -> Result<(), ViewsError> {
        let mut statement = self.views.prepare("DELETE FROM disk WHERE path = ?1")?;
        self.views.map(statement.execute([path.as_str()])).map(drop)
    }

    /// Sets or removes, as the disk has it.
    pub(crate) fn record(&self, path: &FilePath, entry: Option<&CacheEntry>) -> Result<(), ViewsError> {
        match entry {
            Some(entry) => self.put(path, entry),
            None => self.remove(path),
        }
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
                intents.push(Intent {
                    path,
                    old: old.as_deref().and_then(node),
                    new: new.as_deref().and_then(node),
                });
            }
        }
        Ok(intents)
    }

    pub(crate) fn intend(&self, intent: &Intent) -> Result<(), ViewsError> {
        let mut statement =
            self.views.prepare("INSERT OR REPLACE INTO intents (path, old, new) VALUES (?1, ?2, ?3)")?;
        let row = (intent.path.as_str(), intent.old.as_ref().map(text), intent.new.as_ref().map(text));
        self.views.map(statement.execute(row)).map(drop)
    }

    pub(crate) fn clear_intents(&self) -> Result<(), ViewsError> {
        let mut statement = self.views.prepare("DELETE FROM intents")?;
        self.views.map(statement.execute([])).map(drop)
    }
}

fn text(node: &FileNode) -> String {
    // Plain data has no failure here.
    serde_json::to_string(node).unwrap_or_default()
}

fn node(text: &str) -> Option<FileNode> {
    serde_json::from_str(text).ok()
}

fn entry((text, stat, checked_at_ns): (String, Vec<u8>, i64)) -> Option<CacheEntry> {
    Some(CacheEntry { node: node(&text)?, stat: unpack(&stat)?, checked_at_ns })
}

fn pack(stat: &Stat) -> [u8; 36] {
    let mut bytes = [0; 36];
    bytes[..8].copy_from_slice(&stat.size.to_le_bytes());
    bytes[8..16].copy_from_slice(&stat.mtime_ns.to_le_bytes());
    bytes[16..24].copy_from_slice(&stat.ctime_ns.to_le_bytes());
    bytes[24..32].copy_from_slice(&stat.ino.to_le_bytes());
    bytes[32..].copy_from_slice(&stat.mode.to_le_bytes());
    bytes
}

fn unpack(bytes: &[u8]) -> Option<Stat> {
    let bytes: &[u8; 36] = bytes.try_into().ok()?;
    let word = |at: usize| bytes[at..at + 8].try_into().ok();
    Some(Stat {
        size: u64::from_le_bytes(word(0)?),
        mtime_ns: i64::from_le_bytes(word(8)?),
        ctime_ns: i64::from_le_bytes(word(16)?),
        ino: u64::from_le_bytes(word(24)?),
        mode: u32::from_le_bytes(bytes[32..].try_into().ok()?),
    })
}
