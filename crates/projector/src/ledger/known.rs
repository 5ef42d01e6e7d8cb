//! A part of the ledger in memory, sorted by path. Nodes are decoded only when they are needed: in a large workspace,
//! few are.

use rusqlite::{Params, Row};
use shared_types::FilePath;

use super::{Ledger, node, unpack};
use crate::scan::{CacheEntry, Scope, is_unchanged};
use crate::views::ViewsError;
use crate::workspace::Stat;

/// The entry of one path.
#[derive(Debug)]
struct Line {
    path: FilePath,
    node: Box<str>,
    stat: Stat,
    checked_at_ns: i64,
}

/// Paths with the nodes that were last written or read there.
#[derive(Debug, Default)]
pub(crate) struct Known {
    lines: Vec<Line>,
}

impl Known {
    pub(crate) fn paths(&self) -> impl Iterator<Item = &FilePath> {
        self.lines.iter().map(|line| &line.path)
    }

    /// Whether a path with this stat still holds its recorded node.
    pub(crate) fn is_trusted(&self, path: &FilePath, now: &Stat) -> bool {
        self.line(path).is_some_and(|line| is_unchanged(&line.stat, line.checked_at_ns, now))
    }

    pub(crate) fn get(&self, path: &FilePath) -> Option<CacheEntry> {
        let line = self.line(path)?;
        Some(CacheEntry { node: node(&line.node)?, stat: line.stat, checked_at_ns: line.checked_at_ns })
    }

    fn line(&self, path: &FilePath) -> Option<&Line> {
        let at = self.lines.binary_search_by(|line| line.path.cmp(path)).ok()?;
        self.lines.get(at)
    }
}

impl Ledger<'_> {
    /// The entries of all paths that a scan covers.
    pub(crate) fn known(&self, scope: &Scope) -> Result<Known, ViewsError> {
        let mut known = Known::default();
        match &scope.below {
            None => self.gather(&mut known, "ORDER BY path", [])?,
            Some(below) => {
                for path in below {
                    let within = "WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')";
                    self.gather(&mut known, within, [path.as_str()])?;
                }
                for folder in &scope.folders {
                    self.gather(&mut known, "WHERE path = ?1", [folder.as_str()])?;
                }
                known.lines.sort_unstable_by(|a, b| a.path.cmp(&b.path));
                known.lines.dedup_by(|a, b| a.path == b.path);
            }
        }
        Ok(known)
    }

    fn gather(&self, known: &mut Known, which: &str, with: impl Params) -> Result<(), ViewsError> {
        let mut statement =
            self.views.prepare(&format!("SELECT path, node, stat, checked FROM disk {which}"))?;
        let mut rows = self.views.map(statement.query(with))?;
        while let Some(row) = self.views.map(rows.next())? {
            known.lines.extend(self.views.map(line(row))?);
        }
        Ok(())
    }
}

/// An entry that cannot be decoded counts as unknown.
fn line(row: &Row<'_>) -> rusqlite::Result<Option<Line>> {
    let (path, stat) = (row.get_ref(0)?.as_str()?, row.get_ref(2)?.as_blob()?);
    let (Ok(path), Some(stat)) = (FilePath::parse(path), unpack(stat)) else { return Ok(None) };
    Ok(Some(Line { path, node: row.get_ref(1)?.as_str()?.into(), stat, checked_at_ns: row.get(3)? }))
}
