//! What the server says, read from JSON by the names of its fields.
//!
//! The page is carried by the server that it talks to, so what is said is what is expected: a field that is not there
//! has its plain value, and nothing is checked twice. Readers that serde derives are stricter, and were an eighth of a
//! bundle that people wait for. The tests hold these against what serde writes.

use serde_json::Value;
use shared_types::payload::file::FileNode;
use shared_types::payload::tool::{RequestVerdict, StopReason, ToolReport, ToolRequest, ToolStatus};
use shared_types::payload::window::{Rect, Window, WindowMode};
use shared_types::wire::{
    ApiToken, CallDetails, CallRow, CallStatus, Change, Checkpoint, Clash, Comparison, DesktopState, Done,
    Entry, Found, Listing, Matched, Me, Operation, OperationDetail, Operations, Passkey, Problem, Scope,
    Session, Storage, Terminal, TerminalKind, Version,
};
use shared_types::{
    ContentHash, ContentRef, FilePath, NoteId, OpId, RootHash, Seq, Source, Subject, TerminalId, Timestamp,
    UserId, WindowId,
};

/// Read from JSON; whatever is not as expected has its plain value.
pub(crate) trait FromJson {
    fn from_json(value: &Value) -> Self;
}

/// A field of an object.
pub(crate) fn field<T: FromJson>(value: &Value, name: &str) -> T {
    T::from_json(value.get(name).unwrap_or(&Value::Null))
}

impl FromJson for Value {
    fn from_json(value: &Value) -> Self {
        value.clone()
    }
}

impl FromJson for () {
    fn from_json(_: &Value) -> Self {}
}

impl FromJson for bool {
    fn from_json(value: &Value) -> Self {
        value.as_bool().unwrap_or_default()
    }
}

impl FromJson for String {
    fn from_json(value: &Value) -> Self {
        value.as_str().unwrap_or_default().to_owned()
    }
}

impl FromJson for Box<str> {
    fn from_json(value: &Value) -> Self {
        value.as_str().unwrap_or_default().into()
    }
}

impl FromJson for u64 {
    fn from_json(value: &Value) -> Self {
        value.as_u64().unwrap_or_default()
    }
}

impl FromJson for i64 {
    fn from_json(value: &Value) -> Self {
        value.as_i64().unwrap_or_default()
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn from_json(value: &Value) -> Self {
        (!value.is_null()).then(|| T::from_json(value))
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(value: &Value) -> Self {
        value.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(T::from_json).collect()
    }
}

impl<A: FromJson, B: FromJson> FromJson for (A, B) {
    fn from_json(value: &Value) -> Self {
        let at = |index: usize| value.get(index).unwrap_or(&Value::Null);
        (A::from_json(at(0)), B::from_json(at(1)))
    }
}

/// Numbers of another width.
macro_rules! narrow {
    ($($kind:ty),*) => {
        $(impl FromJson for $kind {
            fn from_json(value: &Value) -> Self {
                i64::from_json(value) as $kind
            }
        })*
    };
}
narrow!(u16, u32, i32);

/// What is written as a text and has a plain value for one that cannot be read.
macro_rules! parsed {
    ($($kind:ty: $else:expr),* $(,)?) => {
        $(impl FromJson for $kind {
            fn from_json(value: &Value) -> Self {
                value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| $else)
            }
        })*
    };
}
parsed! {
    OpId: OpId::from_bytes([0; 16]),
    WindowId: WindowId::from_bytes([0; 16]),
    NoteId: NoteId::from_bytes([0; 16]),
    TerminalId: TerminalId::from_bytes([0; 16]),
    ContentHash: ContentHash::default(),
}

/// Words for the variants of an enum; the first one is meant where the word is another.
macro_rules! words {
    ($($kind:ident { $first:ident = $known:literal $(, $variant:ident = $word:literal)* $(,)? })*) => {
        $(impl FromJson for $kind {
            fn from_json(value: &Value) -> Self {
                match value.as_str().unwrap_or($known) {
                    $($word => Self::$variant,)*
                    _ => Self::$first,
                }
            }
        })*
    };
}
words! {
    Source { System = "system", User = "user", Agent = "agent" }
    Matched { Name = "name", Text = "text" }
    WindowMode { Normal = "normal", Minimized = "minimized", Maximized = "maximized" }
    RequestVerdict { Refused = "refused", Allowed = "allowed" }
    Scope { Read = "read", Write = "write", Terminal = "terminal", Account = "account" }
    TerminalKind { Cell = "cell", Shell = "shell" }
    StopReason {
        Cancelled = "cancelled", Time = "time", Memory = "memory", Processes = "processes", Disk = "disk",
        Output = "output", Files = "files",
    }
}

impl FromJson for CallStatus {
    fn from_json(value: &Value) -> Self {
        value.as_str().and_then(Self::parse).unwrap_or(Self::Running)
    }
}

impl FromJson for Seq {
    fn from_json(value: &Value) -> Self {
        Self(u64::from_json(value))
    }
}

impl FromJson for Timestamp {
    fn from_json(value: &Value) -> Self {
        Self::from_millis(i64::from_json(value))
    }
}

impl FromJson for RootHash {
    /// Nothing here looks at it.
    fn from_json(_: &Value) -> Self {
        Self::default()
    }
}

#[expect(clippy::expect_used, reason = "the literals are a path and an id, as the tests show")]
impl FromJson for FilePath {
    fn from_json(value: &Value) -> Self {
        let path = value.as_str().and_then(|text| Self::parse(text).ok());
        path.unwrap_or_else(|| Self::parse("unreadable").expect("is a path"))
    }
}

#[expect(clippy::expect_used, reason = "the literals are a path and an id, as the tests show")]
impl FromJson for UserId {
    fn from_json(value: &Value) -> Self {
        let user = value.as_str().and_then(|text| text.parse().ok());
        user.unwrap_or_else(|| "nobody".parse().expect("is an id"))
    }
}

impl FromJson for FileNode {
    fn from_json(value: &Value) -> Self {
        if let Some(file) = value.get("file") {
            Self::File { hash: field(file, "hash"), size: field(file, "size"), mode: field(file, "mode") }
        } else if let Some(link) = value.get("symlink") {
            Self::Symlink { target: field(link, "target") }
        } else {
            Self::Folder
        }
    }
}

impl FromJson for ToolStatus {
    fn from_json(value: &Value) -> Self {
        match value.get("is").and_then(Value::as_str).unwrap_or_default() {
            "exited" => Self::Exited { code: field(value, "code") },
            "killed" => Self::Killed { signal: field(value, "signal") },
            "stopped" => Self::Stopped { why: field(value, "why") },
            "interrupted" => Self::Interrupted { reason: field(value, "reason") },
            "discarded" => Self::Discarded,
            _ => Self::Failed { reason: field(value, "reason") },
        }
    }
}

impl FromJson for Subject {
    fn from_json(value: &Value) -> Self {
        let (kind, named) = value.as_object().and_then(|only| only.iter().next()).unzip();
        let named = named.unwrap_or(&Value::Null);
        match kind.map_or("", String::as_str) {
            "file" => Self::File(FromJson::from_json(named)),
            "repository" => Self::Repository(FromJson::from_json(named)),
            "window" => Self::Window(FromJson::from_json(named)),
            "note" => Self::Note(FromJson::from_json(named)),
            _ => Self::Setting(FromJson::from_json(named)),
        }
    }
}

impl FromJson for Problem {
    fn from_json(value: &Value) -> Self {
        Self {
            kind: field(value, "type"),
            title: field(value, "title"),
            status: field(value, "status"),
            code: field(value, "code"),
            detail: field(value, "detail"),
            conflicts: field(value, "conflicts"),
            current: field(value, "current"),
        }
    }
}

/// Structures whose fields are read one by one.
#[macro_export]
macro_rules! fields {
    ($($kind:ident { $($name:ident),* $(,)? })*) => {
        $(impl $crate::wire::FromJson for $kind {
            fn from_json(value: &serde_json::Value) -> Self {
                Self { $($name: $crate::wire::field(value, stringify!($name)),)* }
            }
        })*
    };
}
fields! {
    Me { user, name, owner, shell, version }
    Session { id, current, created, seen, browser, address }
    Passkey { id, name, created, used }
    ApiToken { id, name, scopes, created, used, expires, secret }
    Storage { events, operations, files, workspace, log, views, blobs, checkpoints }
    Terminal { id, kind, started, columns, rows }
    Checkpoint { commit, seq, ts, message }
    Comparison { changes, total }
    Entry { path, node, ts, seq }
    Listing { path, entries, seq }
    Found { path, size, matched }
    Version { seq, op, ts, source, actor, label, node }
    Change { path, from, before, after, diff }
    Clash { subject, reason, today, undone }
    Done { op, first, last, target, resent, preview, changes, total, notes }
    Operation { op, first, last, ts, source, actor, family, label, events, files, reversible, undone, call }
    Operations { rows, total }
    OperationDetail { operation, changes, total, notes, call }
    CallRow { status, code, network }
    CallDetails { tool, title, network, input, status, report, held, code, requests, asked }
    ToolReport { output, written, millis, limits, notes }
    ToolRequest { method, host, port, verdict, reason, sent, received }
    ContentRef { hash, size }
    Rect { x, y, width, height }
    Window { app, title, rect, mode, z, shows }
    DesktopState { seq, root, windows, settings, checkpoint, unsaved }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::json;

    use super::*;

    fn same<T: FromJson + Serialize + PartialEq + std::fmt::Debug>(value: T) {
        let json = serde_json::to_value(&value).unwrap();
        assert_eq!(T::from_json(&json), value, "{json}");
    }

    fn operation() -> Operation {
        Operation {
            op: OpId::from_bytes([7; 16]),
            first: Seq(3),
            last: Seq(4),
            ts: Timestamp::from_millis(5),
            source: Source::Agent,
            actor: "cli".into(),
            family: "tool".into(),
            label: "ran: ls".into(),
            events: 2,
            files: 1,
            reversible: true,
            undone: true,
            call: Some(CallRow { status: CallStatus::Stopped, code: Some(-1), network: true }),
        }
    }

    fn change() -> Change {
        Change {
            path: FilePath::parse("a/b.md").unwrap(),
            from: Some(FilePath::parse("c").unwrap()),
            before: Some(FileNode::Folder),
            after: Some(FileNode::File { hash: ContentHash::of(b"x"), size: 1, mode: 0o644 }),
            diff: Some("+x".into()),
        }
    }

    #[test]
    fn what_serde_writes_is_read_as_it_was() {
        same(operation());
        same(Operations { rows: vec![operation()], total: 9 });
        same(Done {
            op: Some(OpId::from_bytes([1; 16])),
            first: Some(Seq(1)),
            last: None,
            target: None,
            resent: true,
            preview: true,
            changes: vec![change()],
            total: 1,
            notes: vec!["n".into()],
        });
        let report = ToolReport {
            output: Some(ContentRef::of(b"out")),
            written: 3,
            millis: 4,
            limits: vec![StopReason::Memory, StopReason::Files],
            notes: vec!["n".into()],
        };
        let request = ToolRequest {
            method: "GET".into(),
            host: "h".into(),
            port: 443,
            verdict: RequestVerdict::Allowed,
            reason: Some("r".into()),
            sent: 1,
            received: 2,
        };
        for status in [
            ToolStatus::Exited { code: -3 },
            ToolStatus::Killed { signal: 9 },
            ToolStatus::Stopped { why: StopReason::Disk },
            ToolStatus::Failed { reason: "f".into() },
            ToolStatus::Interrupted { reason: "i".into() },
            ToolStatus::Discarded,
        ] {
            let call = CallDetails {
                tool: "exec".into(),
                title: "ls".into(),
                network: true,
                input: Some("{}".into()),
                status: Some(status),
                report: Some(report.clone()),
                held: Some(2),
                code: Some(-1),
                requests: vec![request.clone()],
                asked: 1,
            };
            let (changes, notes) = (vec![change()], Vec::new());
            same(OperationDetail { operation: operation(), changes, total: 1, notes, call: Some(call) });
        }
        let node = FileNode::Symlink { target: "t".into() };
        let path = FilePath::parse("p").unwrap();
        let entry = Entry { path: path.clone(), node, ts: Timestamp::from_millis(-1), seq: Seq(2) };
        same(Listing { path: Some(path.clone()), entries: vec![entry], seq: Seq(3) });
        same(Found { path, size: 1, matched: Matched::Text });
    }

    #[test]
    fn a_state_and_a_problem_are_read() {
        let rect = Rect { x: -5, y: 2, width: 3, height: 4 };
        let mode = WindowMode::Maximized;
        let window = Window { app: "a".into(), title: "t".into(), rect, mode, z: 6, shows: Some("s".into()) };
        same(DesktopState {
            seq: Seq(9),
            root: RootHash::default(),
            windows: vec![(WindowId::from_bytes([3; 16]), window)],
            settings: vec![("theme".into(), json!("dark"))],
            checkpoint: Some(("c".into(), Seq(1))),
            unsaved: 2,
        });
        same(Problem {
            kind: "k".into(),
            title: "t".into(),
            status: 409,
            code: "c".into(),
            detail: "d".into(),
            conflicts: [
                Subject::File(FilePath::parse("a").unwrap()),
                Subject::Repository(FilePath::parse("b").unwrap()),
                Subject::Setting("s".into()),
                Subject::Window(WindowId::from_bytes([3; 16])),
                Subject::Note(NoteId::from_bytes([4; 16])),
            ]
            .map(|subject| Clash { subject, reason: "r".into(), today: Some("a".into()), undone: None })
            .to_vec(),
            current: Some(ContentHash::of(b"x")),
        });
    }

    #[test]
    fn what_is_not_there_is_plain() {
        assert_eq!(FilePath::from_json(&Value::Null).as_str(), "unreadable");
        assert_eq!(UserId::from_json(&Value::Null).to_string(), "nobody");
        assert_eq!(Vec::<String>::from_json(&Value::Null), Vec::<String>::new());
        assert_eq!(Me::from_json(&json!({ "name": "Ada" })).name, "Ada");
    }
}
