//! Questions to the read models: operations, history of paths, search.

use shared_types::{FilePath, OpId, Seq};

use crate::views::{Views, ViewsError};

/// One operation, as a person sees it in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRow {
    pub op: OpId,
    pub first: Seq,
    pub last: Seq,
    pub ts: i64,
    pub source: String,
    pub actor: String,
    pub family: String,
    pub label: String,
    pub events: u64,
    pub files: u64,
    pub reversible: bool,
    pub undone: bool,
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub path: String,
    pub size: u64,
}

/// A checkpoint that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    pub commit: String,
    pub seq: Seq,
    pub ts: i64,
    pub message: String,
}

const OPERATION: &str = "SELECT op, first, last, ts, source, actor, family, label, events, files, reversible, undone_by FROM operations";

/// Families that a bare undo takes: the person's work, not the arrangement of windows.
const WORK: &str = "('file', 'setting', 'note', 'restore', 'system')";

fn operation_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<OperationRow> {
    let count = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
    Ok(OperationRow {
        op: OpId::from_bytes(row.get(0)?),
        first: Seq(count(1)?),
        last: Seq(count(2)?),
        ts: row.get(3)?,
        source: row.get(4)?,
        actor: row.get(5)?,
        family: row.get(6)?,
        label: row.get(7)?,
        events: count(8)?,
        files: count(9)?,
        reversible: row.get(10)?,
        undone: row.get::<_, Option<Vec<u8>>>(11)?.is_some(),
    })
}

impl Views {
    fn operations(&self, tail: &str, with: impl rusqlite::Params) -> Result<Vec<OperationRow>, ViewsError> {
        let mut statement = self.prepare(&format!("{OPERATION} {tail}"))?;
        let rows = statement.query_map(with, operation_row).and_then(Iterator::collect);
        self.map(rows)
    }

    pub fn operation(&self, op: OpId) -> Result<Option<OperationRow>, ViewsError> {
        Ok(self.operations("WHERE op = ?1", [op.as_bytes()])?.pop())
    }

    /// The newest operations, newest first.
    pub fn recent(&self, count: u32) -> Result<Vec<OperationRow>, ViewsError> {
        self.operations("ORDER BY last DESC LIMIT ?1", [count])
    }

    /// What a bare undo takes: the person's newest operation on their work that is not undone and is no undo itself.
    pub fn undoable(&self) -> Result<Option<OperationRow>, ViewsError> {
        let tail = format!(
            "WHERE source = 'user' AND reversible = 1 AND undone_by IS NULL AND reverts IS NULL AND family IN {WORK}
             ORDER BY last DESC LIMIT 1"
        );
        Ok(self.operations(&tail, [])?.pop())
    }

    /// What a bare redo takes: the person's newest undo of their work that is still in effect.
    pub fn redoable(&self) -> Result<Option<OperationRow>, ViewsError> {
        let tail = format!(
            "WHERE source = 'user' AND op IN (
                SELECT undone_by FROM operations WHERE undone_by IS NOT NULL AND family IN {WORK})
             ORDER BY last DESC LIMIT 1"
        );
        Ok(self.operations(&tail, [])?.pop())
    }

    /// Operations whose id begins so, for people who type only the start of it, or its end.
    pub fn matching(&self, part: &str) -> Result<Vec<OpId>, ViewsError> {
        let mut statement = self.prepare(
            "SELECT op FROM operations WHERE lower(hex(op)) LIKE ?1 || '%' OR lower(hex(op)) LIKE '%' || ?1
             ORDER BY last DESC LIMIT 3",
        )?;
        let part: String = part.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_lowercase();
        let rows =
            statement.query_map([part], |row| row.get(0).map(OpId::from_bytes)).and_then(Iterator::collect);
        self.map(rows)
    }

    /// The seqs of events that touched a path or anything below it, in order.
    pub fn touches(&self, path: &FilePath) -> Result<Vec<Seq>, ViewsError> {
        let mut statement = self.prepare(
            "SELECT DISTINCT seq FROM touches WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0') ORDER BY seq",
        )?;
        let rows = statement.query_map([path.as_str()], |row| row.get::<_, i64>(0));
        let seqs = self.map(rows.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>))?;
        Ok(seqs.into_iter().map(|seq| Seq(seq.unsigned_abs())).collect())
    }

    /// Files whose path or text holds all the words, best first.
    pub fn search(&self, words: &str, count: u32) -> Result<Vec<Hit>, ViewsError> {
        let words = words.replace('\0', " ");
        let quoted = words.split_whitespace().map(|word| format!("\"{}\"", word.replace('"', "\"\"")));
        let query = quoted.collect::<Vec<_>>().join(" ");
        if query.is_empty() {
            return Ok(Vec::new());
        }
        let mut statement = self.prepare(
            "SELECT files.path, files.size FROM files_text JOIN files ON files.id = files_text.rowid
             WHERE files_text MATCH ?1 ORDER BY rank, files.path LIMIT ?2",
        )?;
        let rows = statement.query_map((query, count), |row| {
            Ok(Hit { path: row.get(0)?, size: row.get::<_, i64>(1)?.unsigned_abs() })
        });
        self.map(rows.and_then(Iterator::collect))
    }

    /// Checkpoints, newest first.
    pub fn checkpoints(&self) -> Result<Vec<CheckpointRow>, ViewsError> {
        let mut statement =
            self.prepare("SELECT \"commit\", seq, ts, message FROM checkpoints ORDER BY at DESC")?;
        let rows = statement.query_map([], |row| {
            let seq = Seq(row.get::<_, i64>(1)?.unsigned_abs());
            Ok(CheckpointRow { commit: row.get(0)?, seq, ts: row.get(2)?, message: row.get(3)? })
        });
        self.map(rows.and_then(Iterator::collect))
    }
}
