//! The ledger: what the projector last wrote at each path, what it is about to write, and the writes that are pending.
//!
//! The projector recognises its own writes by the content of this ledger, never by timing. An intent is recorded
//! before the disk is touched, so that after an unclean stop it is known which paths may be half written. A write that
//! failed is pending: the position advances, and the write is retried.

mod intents;
mod known;
mod pending;

use rusqlite::OptionalExtension;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;

pub(crate) use intents::Intent;
pub(crate) use known::Known;
pub(crate) use pending::{PendingReason, PendingWrite};

use crate::scan::CacheEntry;
use crate::views::{Views, ViewsError};
use crate::workspace::Stat;

/// The tables `disk`, `intents` and `owed`.
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
            .query_row([path.as_str()], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?, row.get(2)?))
            })
            .optional();
        Ok(self.views.map(row)?.and_then(|(text, stat, checked_at_ns)| {
            Some(CacheEntry { node: node(&text)?, stat: unpack(&stat)?, checked_at_ns })
        }))
    }

    pub(crate) fn has(&self, path: &FilePath) -> Result<bool, ViewsError> {
        let mut statement = self.views.prepare("SELECT 1 FROM disk WHERE path = ?1")?;
        self.views.map(statement.exists([path.as_str()]))
    }

    pub(crate) fn put(&self, path: &FilePath, entry: &CacheEntry) -> Result<(), ViewsError> {
        let mut statement = self
            .views
            .prepare("INSERT OR REPLACE INTO disk (path, node, stat, checked) VALUES (?1, ?2, ?3, ?4)")?;
        let row = (path.as_str(), text(&entry.node), pack(&entry.stat), entry.checked_at_ns);
        self.views.map(statement.execute(row)).map(drop)
    }

    /// Sets or removes the entry of a path.
    pub(crate) fn record(&self, path: &FilePath, entry: Option<&CacheEntry>) -> Result<(), ViewsError> {
        match entry {
            Some(entry) => self.put(path, entry),
            None => {
                let mut statement = self.views.prepare("DELETE FROM disk WHERE path = ?1")?;
                self.views.map(statement.execute([path.as_str()])).map(drop)
            }
        }
    }
}

fn text(node: &FileNode) -> String {
    // Plain data always encodes.
    serde_json::to_string(node).unwrap_or_default()
}

fn node(text: &str) -> Option<FileNode> {
    serde_json::from_str(text).ok()
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
