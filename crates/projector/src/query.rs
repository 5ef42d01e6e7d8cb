//! Queries of the read models: operations, runs, history of paths, search.

mod runs;

use std::collections::BTreeMap;

use shared_types::payload::file::FileNode;
use shared_types::wire::{CallLine, CallStatus, RevertDirection, Reverted};
use shared_types::{ContentHash, FilePath, OpId, RunId, Seq, TaskId};

use crate::label::short;
use crate::views::{Views, ViewsError};

pub use runs::RunRow;
pub(crate) use runs::state_word;

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
    /// Present if the operation is the call of a tool.
    pub call: Option<CallLine>,
    /// The command or the title of that call.
    pub title: Option<String>,
    /// Present if the operation is an undo or a redo.
    pub reverts: Option<Reverted>,
    /// The run that it is part of, and the agent that made the call.
    pub run: Option<RunId>,
    pub task: Option<TaskId>,
}

/// Which operations a list shows.
#[derive(Debug, Clone, Default)]
pub struct OperationFilter {
    pub source: Option<String>,
    /// A family of events, or `work`: everything but the arrangement of windows.
    pub family: Option<String>,
    /// Text that the label contains.
    pub text: Option<String>,
    /// Only operations that ended before this seq.
    pub before: Option<Seq>,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    pub path: String,
    pub node: FileNode,
    pub seq: Seq,
    pub ts: i64,
}

/// A search result.
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

const OPERATION: &str =
    "SELECT op, first, last, ts, source, actor, family, label, events, files, reversible, undone_by,
     status, code, network, run, task, calls.title, root, is_redo,
     (SELECT coalesce(c.title, o.label) FROM operations o LEFT JOIN calls c ON c.op = o.op WHERE o.op = operations.root)
     FROM operations LEFT JOIN calls USING (op)";

/// The families that a bare undo covers: the person's work, without window changes.
const WORK: &str = "('file', 'setting', 'note', 'restore', 'system', 'tool')";

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
        call: call_row(row)?,
        title: row.get(17)?,
        reverts: reverted(row)?,
        run: row.get::<_, Option<[u8; 16]>>(15)?.map(RunId::from_bytes),
        task: row.get::<_, Option<[u8; 16]>>(16)?.map(TaskId::from_bytes),
    })
}

fn call_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<CallLine>> {
    let Some(status) = row.get::<_, Option<String>>(12)? else { return Ok(None) };
    // The column holds only names of `CallStatus`.
    let status = CallStatus::parse(&status).unwrap_or(CallStatus::Failed);
    Ok(Some(CallLine { status, code: row.get(13)?, network: row.get(14)? }))
}

fn reverted(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Reverted>> {
    let Some(op) = row.get::<_, Option<[u8; 16]>>(18)?.map(OpId::from_bytes) else { return Ok(None) };
    let direction = if row.get(19)? { RevertDirection::Redo } else { RevertDirection::Undo };
    let title: Option<String> = row.get(20)?;
    Ok(Some(Reverted { direction, op, title: title.unwrap_or_else(|| short(&op)) }))
}

fn child(row: &rusqlite::Row<'_>) -> rusqlite::Result<Child> {
    let kind: String = row.get(1)?;
    let node = match kind.as_str() {
        "folder" => FileNode::Folder,
        "symlink" => {
            FileNode::Symlink { target: row.get::<_, Option<String>>(5)?.unwrap_or_default().into() }
        }
        _ => FileNode::File {
            hash: ContentHash(row.get(2)?),
            size: row.get::<_, i64>(3)?.unsigned_abs(),
            mode: u16::try_from(row.get::<_, i64>(4)?).unwrap_or(FileNode::DEFAULT_MODE),
        },
    };
    let seq = Seq(row.get::<_, i64>(6)?.unsigned_abs());
    Ok(Child { path: row.get(0)?, node, seq, ts: row.get(7)? })
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

    /// A page of the operations that match, newest first, and the number of all that match.
    pub fn page(
        &self,
        filter: &OperationFilter,
        offset: u32,
        count: u32,
    ) -> Result<(Vec<OperationRow>, u64), ViewsError> {
        const PASSES: &str = "(?1 IS NULL OR source = ?1) AND (?2 IS NULL OR family = ?2 OR (?2 = 'work' AND family <> 'window'))
             AND (?3 IS NULL OR label LIKE '%' || ?3 || '%' ESCAPE '\\') AND (?4 IS NULL OR last < ?4)";
        let escaped = |text: &String| {
            let special = |c: char| matches!(c, '%' | '_' | '\\');
            text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect::<String>()
        };
        let text = filter.text.as_ref().map(escaped);
        let before = filter.before.map(|seq| seq.0 as i64);
        let passes = (&filter.source, &filter.family, &text, before);
        let tail = format!("WHERE {PASSES} ORDER BY last DESC LIMIT ?5 OFFSET ?6");
        let rows = self.operations(&tail, (passes.0, passes.1, passes.2, passes.3, count, offset))?;
        let mut counting = self.prepare(&format!("SELECT count(*) FROM operations WHERE {PASSES}"))?;
        let total = self.map(counting.query_row(passes, |row| row.get::<_, i64>(0)))?;
        Ok((rows, total.unsigned_abs()))
    }

    /// The entries of a folder, by name, with folders that exist only through the files in them.
    pub fn children(&self, folder: Option<&FilePath>) -> Result<Vec<Child>, ViewsError> {
        let prefix = folder.map_or(String::new(), |folder| format!("{folder}/"));
        let mut statement = self.prepare(
            "SELECT path, kind, hash, size, mode, target, files.seq, coalesce(operations.ts, 0)
             FROM files LEFT JOIN operations ON operations.op = files.op
             WHERE ?1 = '' OR (path > ?1 AND path < substr(?1, 1, length(?1) - 1) || '0') ORDER BY path",
        )?;
        let mut rows = self.map(statement.query([&prefix]))?;
        let mut found: BTreeMap<String, Child> = BTreeMap::new();
        while let Some(row) = self.map(rows.next())? {
            let child = self.map(child(row))?;
            let Some(below) = child.path.strip_prefix(&prefix) else { continue };
            match below.split_once('/') {
                None => drop(found.insert(below.to_owned(), child)),
                Some((name, _)) => {
                    let path = format!("{prefix}{name}");
                    let folder = found.entry(name.to_owned()).or_insert_with(|| Child {
                        path,
                        node: FileNode::Folder,
                        seq: child.seq,
                        ts: child.ts,
                    });
                    folder.seq = folder.seq.max(child.seq);
                    folder.ts = folder.ts.max(child.ts);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// The operation that a bare undo takes: the person's newest work that is not undone and not an undo itself.
    pub fn undoable(&self) -> Result<Option<OperationRow>, ViewsError> {
        let tail = format!(
            "WHERE source = 'user' AND reversible = 1 AND undone_by IS NULL AND reverts IS NULL AND family IN {WORK}
             ORDER BY last DESC LIMIT 1"
        );
        Ok(self.operations(&tail, [])?.pop())
    }

    /// The operation that a bare redo takes: the person's newest undo of their work that is still in effect.
    pub fn redoable(&self) -> Result<Option<OperationRow>, ViewsError> {
        let tail = format!(
            "WHERE source = 'user' AND op IN (
                SELECT undone_by FROM operations WHERE undone_by IS NOT NULL AND family IN {WORK})
             ORDER BY last DESC LIMIT 1"
        );
        Ok(self.operations(&tail, [])?.pop())
    }

    /// Operations whose id starts or ends with a text, or whose last eight digits, which lists show, start with it.
    pub fn matching(&self, part: &str) -> Result<Vec<OpId>, ViewsError> {
        let mut statement = self.prepare(
            "SELECT op FROM operations WHERE lower(hex(op)) LIKE ?1 || '%' OR lower(hex(op)) LIKE '%' || ?1
                OR substr(lower(hex(op)), -8) LIKE ?1 || '%'
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

    /// Files whose path or text contains all the words, best match first.
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

    /// Files whose path contains a text, shortest path first.
    pub fn named(&self, text: &str, count: u32) -> Result<Vec<Hit>, ViewsError> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let mut statement = self.prepare(
            "SELECT path, size FROM files WHERE instr(lower(path), lower(?1)) > 0
             ORDER BY length(path), path LIMIT ?2",
        )?;
        let rows = statement.query_map((text.trim(), count), |row| {
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
