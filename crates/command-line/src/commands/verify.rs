//! `choir verify`: replays the log and compares everything that was computed from it. Names the first difference.

use std::ops::ControlFlow;

use anyhow::Result;
use event_log::{EventLog, ReadError, SqliteLog, decode_event};
use kernel::{VIEW_VERSION, View, evolve};
use projector::Views;
use projector::verify::{computed_rows, first_file_difference, first_row_difference};
use projector::workspace::Workspace;
use serde::Serialize;
use shared_types::{RootHash, Seq};

use super::Context;
use crate::render::{ProgressReport, count, json, line, safe};
use computer::error::{ComputerError, ErrorCode, from_anyhow};
use computer::paths::ComputerPaths;
use computer::protocol::Request;

/// The result of one comparison.
#[derive(Debug, Serialize)]
struct Check {
    what: &'static str,
    ok: bool,
    detail: String,
    #[serde(skip)]
    code: ErrorCode,
}

impl Check {
    fn ok(what: &'static str, detail: impl Into<String>) -> Self {
        Self { what, ok: true, detail: detail.into(), code: ErrorCode::Damaged }
    }

    fn bad(what: &'static str, detail: impl Into<String>) -> Self {
        Self { what, ok: false, detail: detail.into(), code: ErrorCode::Damaged }
    }
}

pub(crate) fn run(context: &Context) -> Result<()> {
    let paths = context.paths()?;
    // Record outside edits and finish projections first. A log that is too damaged for that is read as it is.
    let settled = context.ask(Request::Status, &mut std::io::empty()).map_err(|e| from_anyhow(&e));
    let log = context.reading()?;
    let bar = ProgressReport::new(context.style);
    let (view, mut checks) = replay(&log, &bar);
    if let Some(view) = &view {
        // Read models cannot be opened on a read-only disk. They can be rebuilt, so that is no damage.
        let frozen = matches!(&settled, Err(failure) if failure.code == ErrorCode::ReadOnly);
        checks.push(if frozen {
            Check::ok("read models", "not compared: the disk is read-only")
        } else {
            rows(&paths, &log)
        });
        checks.push(files(&paths, &log, view, &bar));
        checks.push(contents(&log, view, &bar));
        if let Err(ComputerError { code, message, .. }) = settled
            && !frozen
        {
            checks.insert(0, Check { code, ..Check::bad("open", message) });
        }
    }
    drop(bar);
    report(context, &checks)
}

fn report(context: &Context, checks: &[Check]) -> Result<()> {
    let failed = checks.iter().find(|check| !check.ok);
    if context.style.is_json() {
        json(&serde_json::json!({ "ok": failed.is_none(), "checks": checks }));
    } else {
        for check in checks {
            let mark =
                if check.ok { context.style.paint("32", "ok  ") } else { context.style.paint("31", "FAIL") };
            line(&format!("{mark} {:<12} {}", check.what, safe(&check.detail)));
        }
    }
    match failed {
        None => Ok(()),
        Some(check) => {
            Err(ComputerError::new(check.code, format!("{}: {}", check.what, check.detail)).into())
        }
    }
}

/// Replays from the first event and checks the chain, and the root at every snapshot.
fn replay(log: &SqliteLog, bar: &ProgressReport) -> (Option<View>, Vec<Check>) {
    let (snapshots, others): (Vec<_>, Vec<_>) = match log.snapshots() {
        Ok(all) => all.into_iter().partition(|snapshot| snapshot.version == VIEW_VERSION),
        Err(e) => return (None, vec![Check::bad("snapshots", ComputerError::from(e).message)]),
    };
    let head = log.head().seq;
    let mut view = View::default();
    let mut due = snapshots.iter().peekable();
    let mut agreed = Seq::ZERO;
    let mut wrong: Option<(Seq, Seq, RootHash, RootHash)> = None;
    let mut failure: Option<ReadError> = None;
    let scanned = log.scan(Seq(1), &mut |stored| {
        match decode_event(log, stored) {
            Ok(event) => evolve(&mut view, &event),
            Err(e) => {
                failure = Some(e);
                return ControlFlow::Break(());
            }
        }
        if stored.seq.0 % 4096 == 0 {
            bar.update("replaying", stored.seq.0, head.0);
        }
        if let Some(due) = due.next_if(|snapshot| snapshot.seq == stored.seq) {
            let root = view.root();
            if root != due.root && wrong.is_none() {
                wrong = Some((agreed, stored.seq, due.root, root));
            }
            agreed = stored.seq;
        }
        ControlFlow::Continue(())
    });
    let chain = match scanned.err().or(failure) {
        None => Check::ok("chain", format!("{}, each linked to the one before", count(head.0, "event"))),
        Some(e) => Check::bad("chain", ComputerError::from(e).message),
    };
    let intact = chain.ok;
    let roots = match wrong {
        None => {
            let mut said = format!("{} reproduced", count(snapshots.len() as u64, "snapshot"));
            if !others.is_empty() {
                said.push_str(&format!("; {} of another version of ChoirOS not compared", others.len()));
            }
            Check::ok("roots", said)
        }
        Some((after, at, expected, found)) => Check::bad(
            "roots",
            format!("between event {after} and {at} the replay gives {found}, but {expected} was recorded"),
        ),
    };
    (intact.then_some(view), vec![chain, roots])
}

fn rows(paths: &ComputerPaths, log: &SqliteLog) -> Check {
    let compare = || -> Result<Option<_>, ComputerError> {
        let expected = computed_rows(log)?;
        let found = Views::open_read_only(&paths.state)?;
        first_row_difference(&found, &expected).map_err(ComputerError::from)
    };
    match compare() {
        Ok(None) => {
            Check::ok("read models", format!("{} tables recomputed, equal", projector::READ_MODELS.len()))
        }
        Ok(Some(d)) => Check::bad(
            "read models",
            format!(
                "table {}: found {}, should be {}; rebuild them with: choir doctor --rebuild",
                d.table,
                d.found.as_deref().unwrap_or("nothing"),
                d.expected.as_deref().unwrap_or("nothing")
            ),
        ),
        Err(e) => {
            Check::bad("read models", format!("{}; rebuild them with: choir doctor --rebuild", e.message))
        }
    }
}

fn files(paths: &ComputerPaths, log: &SqliteLog, view: &View, bar: &ProgressReport) -> Check {
    let compare = || -> Result<Option<_>, ComputerError> {
        let workspace = Workspace::open(&paths.workspace, &paths.state.join("tmp"))
            .map_err(|e| ComputerError::new(ErrorCode::Failed, e.to_string()))?;
        let purged = |path: &shared_types::FilePath| {
            let content = view.files.get(path).and_then(shared_types::payload::file::FileNode::content);
            content.is_some_and(|c| !log.has_content(&c.hash).unwrap_or(true))
        };
        Ok(first_file_difference(&workspace, view, &purged, &|done, total| bar.update("files", done, total))?)
    };
    match compare() {
        Ok(None) => {
            Check::ok("files", format!("{} on disk as in the log", count(view.files.len() as u64, "path")))
        }
        Ok(Some(d)) => {
            Check::bad("files", format!("{} is {}, should be {}", d.path, words(d.found), words(d.expected)))
        }
        Err(e) => Check::bad("files", e.message),
    }
}

fn words(node: Option<shared_types::payload::file::FileNode>) -> String {
    use shared_types::payload::file::FileNode;
    match node {
        None => "missing".into(),
        Some(FileNode::File { hash, size, mode }) => format!("{size} bytes {} mode {mode:o}", hash.short()),
        Some(FileNode::Symlink { target }) => format!("a link to {target}"),
        Some(FileNode::Folder) => "a folder".into(),
    }
}

/// Checks the content of all current files against its hash.
fn contents(log: &SqliteLog, view: &View, bar: &ProgressReport) -> Check {
    let total = view.files.len() as u64;
    let mut gone = 0;
    for (index, (path, node)) in view.files.sorted().into_iter().enumerate() {
        bar.update("contents", index as u64, total);
        let Some(content) = node.content() else { continue };
        let read =
            log.content(&content.hash).map(|mut bytes| std::io::copy(&mut bytes, &mut std::io::sink()));
        match read {
            Ok(Ok(size)) if size == content.size => {}
            Ok(Ok(size)) => {
                return Check::bad("contents", format!("{path}: {size} bytes instead of {}", content.size));
            }
            Ok(Err(e)) => return Check::bad("contents", format!("{path}: {e}")),
            Err(event_log::ContentError::Purged(_)) => gone += 1,
            Err(e) => return Check::bad("contents", format!("{path}: {e}")),
        }
    }
    let purged = if gone > 0 { format!(", {gone} purged") } else { String::new() };
    Check::ok("contents", format!("the bytes of {} have their hashes{purged}", count(total, "path")))
}
