//! Every event type has a frozen fixture, and every fixture decodes for ever.
//!
//! `FREEZE=1 cargo test -p shared-types` writes the fixtures of new types and never changes existing ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its sample has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use shared_types::payload::capability::*;
use shared_types::payload::checkpoint::*;
use shared_types::payload::file::*;
use shared_types::payload::llm::*;
use shared_types::payload::message::*;
use shared_types::payload::note::*;
use shared_types::payload::revert::*;
use shared_types::payload::run::*;
use shared_types::payload::setting::*;
use shared_types::payload::system::*;
use shared_types::payload::task::*;
use shared_types::payload::tool::*;
use shared_types::payload::user::*;
use shared_types::payload::window::*;
use shared_types::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/events/v1")
}

const AT: Timestamp = Timestamp::from_millis(1_763_194_320_000);

fn samples() -> Vec<Payload> {
    base_samples().into_iter().chain(agent_samples()).collect()
}

fn base_samples() -> Vec<Payload> {
    let bits = [7; 10];
    let path = |text: &str| FilePath::parse(text).unwrap();
    let old = FileNode::file(ContentRef::of(b"old\n"), 0o644);
    let new = FileNode::file(ContentRef::of(b"new\n"), 0o600);
    let window = Window {
        app: "files".into(),
        title: "Files".into(),
        rect: Rect { x: -4, y: 20, width: 800, height: 600 },
        mode: WindowMode::Normal,
        z: 3,
        shows: None,
    };
    let note = Note { title: "Tone".into(), body: ContentRef::of(b"Plain words.") };
    let effect = EffectId::mint(AT, bits);
    let (op, conversation) = (OpId::mint(AT, bits), ConversationId::mint(AT, bits));
    let change = FileChange::Delete(FileDelete { path: path("a"), prev: FileNode::Folder });
    vec![
        FileWrite { path: path("notes/today.md"), node: new.clone(), prev: Some(old.clone()) }.into(),
        FileDelete { path: path("link"), prev: FileNode::Symlink { target: "notes/today.md".into() } }.into(),
        FileMove { from: path("a.txt"), to: path("b/ü.txt"), node: old }.into(),
        FileBatch::of(vec![change]).0.into(),
        WindowSet { window: WindowId::mint(AT, bits), state: window.clone(), prev: None }.into(),
        WindowClose { window: WindowId::mint(AT, bits), prev: window }.into(),
        SettingSet { key: "theme".into(), value: "dark".into(), prev: Some("light".into()) }.into(),
        SettingClear { key: "theme".into(), prev: "dark".into() }.into(),
        ConversationStart { conversation, title: "Plan".into() }.into(),
        MessagePost {
            conversation,
            message: MessageId::mint(AT, bits),
            role: Role::Person,
            body: ContentRef::of(b"Hello"),
            reply_to: None,
        }
        .into(),
        NoteWrite { note: NoteId::mint(AT, bits), state: note.clone(), prev: None }.into(),
        NoteDelete { note: NoteId::mint(AT, bits), prev: note }.into(),
        CheckpointRequest { effect, reason: CheckpointReason::Manual, message: "Before the talk".into() }
            .into(),
        CheckpointCreate {
            effect,
            commit: "0".repeat(40).into(),
            seq: Seq(41),
            message: "Before the talk".into(),
        }
        .into(),
        CheckpointFail { effect, reason: "git is not installed".into() }.into(),
        ToolCall {
            tool: "exec".into(),
            title: "cargo test".into(),
            input: ContentRef::of(b"{\"command\":\"cargo test\"}"),
            network: true,
            task: None,
        }
        .into(),
        ToolRequest {
            method: "CONNECT".into(),
            host: "crates.io".into(),
            port: 443,
            verdict: RequestVerdict::Refused,
            reason: Some("it is not on the list".into()),
            sent: 0,
            received: 0,
        }
        .into(),
        ToolHold {
            report: ToolReport { written: 7, millis: 40, ..ToolReport::default() },
            changes: 3,
            code: None,
        }
        .into(),
        ToolResult {
            status: ToolStatus::Stopped { why: StopReason::Time },
            report: ToolReport {
                output: Some(ContentRef::of(b"running 3 tests\n")),
                written: 16,
                millis: 60_000,
                limits: vec![StopReason::Time],
                notes: vec![
                    "notes.md changed meanwhile; the command's version is notes.conflict-1a2b3c4d.md".into(),
                ],
            },
        }
        .into(),
        Undo { target: op, root: op, steps: Vec::new(), moves: Vec::new() }.into(),
        Redo { target: op, root: op, steps: Vec::new(), moves: Vec::new() }.into(),
        Restore { seq: Seq(17) }.into(),
        UserCreate { name: "Ada".into() }.into(),
        UserRename { name: "Ada L.".into(), prev: "Ada".into() }.into(),
        SystemPurge { effect, hashes: vec![ContentHash::of(b"secret")], reason: "a pasted key".into() }
            .into(),
        SystemPurged { effect, dropped: 1 }.into(),
        SystemImport {
            user: UserId::parse("ada").unwrap(),
            seq: Seq(9),
            hash: ChainHash::default(),
            files: 2,
        }
        .into(),
    ]
}

fn agent_samples() -> Vec<Payload> {
    let bits = [7; 10];
    let (run, call) = (RunId::mint(AT, bits), OpId::mint(AT, bits));
    let (task, other) = (TaskId::mint(AT, bits), TaskId::mint(AT, [8; 10]));
    let (ask, id) = (AskId::mint(AT, bits), GrantId::mint(AT, bits));
    let result = FilePath::parse("notes/bees.md").unwrap();
    let budget = Budget { steps: Some(40), seconds: Some(600), tokens: None, micros: Some(250_000) };
    let about = AskKind::Approval {
        call,
        tool: "exec".into(),
        title: "curl https://example.org".into(),
        input: ContentRef::of(b"{\"command\":\"curl https://example.org\"}"),
        why: "a command with the network cannot be taken back".into(),
        pattern: "curl *".into(),
        is_final: true,
    };
    let tokens = Tokens { input: 1200, cache_read: 800, cache_write: 0, output: 90 };
    vec![
        RunStart {
            title: "Bees".into(),
            objective: ContentRef::of(b"Write a page about bees."),
            attached: vec![result.clone()],
            model: Some("small".into()),
            budget,
        }
        .into(),
        RunSteer { task: Some(task), words: ContentRef::of(b"Shorter.") }.into(),
        RunPause { why: PauseReason::Budget("40 of 40 steps are used".into()) }.into(),
        RunResume { budget: Some(Budget { steps: Some(80), ..budget }) }.into(),
        RunRewind {
            to: Seq(41),
            again: vec![ResumedTask { task, taint: vec![Taint::parse("import").unwrap()] }],
            gone: vec![other],
            void: vec![call],
        }
        .into(),
        RunWake {}.into(),
        RunAsk { ask, task, about }.into(),
        RunAnswer { ask, task, reply: Reply::Allow(ApprovalScope::Run) }.into(),
        RunCancel {}.into(),
        RunFail { reason: "no model answers".into() }.into(),
        RunComplete { summary: ContentRef::of(b"The page is there."), results: vec![result] }.into(),
        TaskStart {
            task,
            parent: Some(other),
            role: "writer".into(),
            title: "Write the page".into(),
            instruction: ContentRef::of(b"Write it."),
        }
        .into(),
        TaskMessage {
            from: task,
            to: other,
            kind: MessageKind::Finding,
            body: ContentRef::of(b"They dance."),
        }
        .into(),
        TaskEnd { task, outcome: TaskOutcome::Failed("it gave up".into()) }.into(),
        TaskTrust { task }.into(),
        LlmReply {
            task,
            model: "small".into(),
            seen: Seq(41),
            reply: ContentRef::of(b"{}"),
            ended: shared_types::payload::llm::ReplyEnd::Whole,
            calls: vec![RequestedCall { call, tool: "write".into() }],
            tokens,
            micros: Some(1234),
            millis: 900,
            attempts: 2,
        }
        .into(),
        LlmFail {
            task,
            model: "small".into(),
            reason: "it is overloaded".into(),
            permanent: false,
            tokens: Tokens::default(),
            micros: None,
        }
        .into(),
        CapabilityGrant {
            id,
            grant: Grant { tool: "exec".into(), pattern: "curl *".into(), run: Some(run) },
        }
        .into(),
        CapabilityRevoke { id }.into(),
    ]
}

fn envelope(payload: Payload) -> StoredEvent<'static> {
    let event = Event {
        seq: Seq(42),
        id: EventId::mint(AT, [1; 10]),
        ts: AT,
        source: Source::User,
        op: OpId::mint(AT, [2; 10]),
        actor: Actor::CLI,
        run_id: Some(RunId::mint(AT, [3; 10])),
        cause: Some(EventId::mint(AT, [4; 10])),
        taint: vec![Taint::IMPORT],
        payload,
    };
    event.store(&ChainHash::default())
}

#[test]
fn every_type_has_a_frozen_fixture() {
    if std::env::var_os("FREEZE").is_some() {
        for payload in samples() {
            let file = folder().join(format!("{}.json", payload.name()));
            if !file.exists() {
                fs::write(file, serde_json::to_string_pretty(&envelope(payload)).unwrap() + "\n").unwrap();
            }
        }
    }
    let frozen: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let known: BTreeSet<String> =
        Payload::families().iter().flat_map(|(_, types)| *types).map(|t| t.name.to_owned()).collect();
    assert_eq!(frozen, known, "run with FREEZE=1 after adding a type; never remove one");
}

#[test]
fn every_fixture_decodes_to_what_it_was_and_still_hashes_the_same() {
    let samples = samples();
    for entry in fs::read_dir(folder()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let stored: StoredEvent<'static> = serde_json::from_str(&text).unwrap();
        let compact = StoredEvent {
            payload: serde_json::from_str::<serde_json::Value>(&stored.payload).unwrap().to_string().into(),
            ..stored.clone()
        };
        let event = stored.decode().unwrap();
        let mut expected = samples.iter().find(|p| p.name() == event.payload.name()).unwrap().clone();
        if let Payload::File(FileEvent::Batch(batch)) = &mut expected {
            batch.changes.clear();
        }
        assert_eq!(event.payload, expected);
        let again = event.store(&ChainHash::default());
        assert_eq!(again.hash, stored.hash, "{} is encoded differently now", stored.name);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&again.payload).unwrap(),
            serde_json::from_str::<serde_json::Value>(&compact.payload).unwrap(),
        );
    }
}

/// The stored form of every tool status.
#[test]
fn every_end_of_a_call_reads_as_it_is_written() {
    let stopped = |why| ToolStatus::Stopped { why };
    let cases = [
        (ToolStatus::Exited { code: -1 }, r#"{"is":"exited","code":-1}"#),
        (ToolStatus::Killed { signal: 9 }, r#"{"is":"killed","signal":9}"#),
        (stopped(StopReason::Cancelled), r#"{"is":"stopped","why":"cancelled"}"#),
        (stopped(StopReason::Memory), r#"{"is":"stopped","why":"memory"}"#),
        (stopped(StopReason::Processes), r#"{"is":"stopped","why":"processes"}"#),
        (stopped(StopReason::Disk), r#"{"is":"stopped","why":"disk"}"#),
        (stopped(StopReason::Output), r#"{"is":"stopped","why":"output"}"#),
        (stopped(StopReason::Files), r#"{"is":"stopped","why":"files"}"#),
        (ToolStatus::Failed { reason: "no shell".into() }, r#"{"is":"failed","reason":"no shell"}"#),
        (ToolStatus::Interrupted { reason: "x".into() }, r#"{"is":"interrupted","reason":"x"}"#),
        (ToolStatus::Discarded, r#"{"is":"discarded"}"#),
    ];
    for (status, text) in cases {
        assert_eq!(serde_json::to_string(&status).unwrap(), text);
        assert_eq!(serde_json::from_str::<ToolStatus>(text).unwrap(), status);
    }
    let quiet = serde_json::to_string(&ToolReport::default()).unwrap();
    assert_eq!(quiet, r#"{"written":0,"millis":0}"#);
    assert_eq!(serde_json::from_str::<ToolReport>("{}").unwrap(), ToolReport::default());
}

/// The frozen fixture is older than the field `code`.
#[test]
fn what_a_dry_run_exited_with_is_kept_and_may_be_absent() {
    let hold = |code| ToolHold { report: ToolReport::default(), changes: 1, code };
    let before = r#"{"report":{"written":0,"millis":0},"changes":1}"#;
    let now = r#"{"report":{"written":0,"millis":0},"changes":1,"code":3}"#;
    for (value, text) in [(hold(None), before), (hold(Some(3)), now)] {
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
        assert_eq!(serde_json::from_str::<ToolHold>(text).unwrap(), value);
    }
}

/// Stored forms of runs that the fixtures do not cover.
#[test]
fn every_word_of_a_run_reads_as_it_is_written() {
    fn same<T>(cases: impl IntoIterator<Item = (T, &'static str)>)
    where
        T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        for (value, text) in cases {
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
            assert_eq!(serde_json::from_str::<T>(text).unwrap(), value);
        }
    }
    let op = OpId::from_bytes([1; 16]);
    same([
        (PauseReason::Person, r#""person""#),
        (PauseReason::TakenOver, r#""taken_over""#),
        (PauseReason::Budget("b".into()), r#"{"budget":"b"}"#),
        (PauseReason::Model("m".into()), r#"{"model":"m"}"#),
    ]);
    same([
        (Reply::Allow(ApprovalScope::Once), r#"{"allow":"once"}"#),
        (Reply::Allow(ApprovalScope::Run), r#"{"allow":"run"}"#),
        (Reply::Allow(ApprovalScope::Always), r#"{"allow":"always"}"#),
        (Reply::Deny("no".into()), r#"{"deny":"no"}"#),
        (Reply::Words("blue".into()), r#"{"words":"blue"}"#),
        (Reply::Silence, r#""silence""#),
    ]);
    same([
        (
            AskKind::Question { call: op, text: "Which?".into(), choices: vec!["a".into()] },
            r#"{"question":{"call":"01010101-0101-0101-0101-010101010101","text":"Which?","choices":["a"]}}"#,
        ),
        (
            AskKind::Interrupted { call: op, tool: "exec".into(), title: "make".into() },
            r#"{"interrupted":{"call":"01010101-0101-0101-0101-010101010101","tool":"exec","title":"make"}}"#,
        ),
        (
            AskKind::Outgoing {
                call: op,
                tool: "exec".into(),
                title: "git push".into(),
                input: ContentRef { hash: ContentHash::of(b""), size: 0 },
                until: Timestamp::from_millis(5),
            },
            r#"{"outgoing":{"call":"01010101-0101-0101-0101-010101010101","tool":"exec","title":"git push","input":{"hash":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":0},"until":5}}"#,
        ),
    ]);
    same([
        (TaskOutcome::Done, r#""done""#),
        (TaskOutcome::Failed("x".into()), r#"{"failed":"x"}"#),
        (TaskOutcome::Cancelled, r#""cancelled""#),
    ]);
    same([
        (MessageKind::Finding, r#""finding""#),
        (MessageKind::Question, r#""question""#),
        (MessageKind::Answer, r#""answer""#),
        (MessageKind::Progress, r#""progress""#),
        (MessageKind::Completion, r#""completion""#),
        (MessageKind::Failure, r#""failure""#),
    ]);
    assert_eq!(serde_json::from_str::<Budget>("{}").unwrap(), Budget::default());
    assert_eq!(serde_json::from_str::<Tokens>("{}").unwrap().total(), 0);
    let most = Tokens { input: u64::MAX, cache_read: u64::MAX, cache_write: 1, output: 1 };
    assert_eq!(most.total(), u64::MAX, "absurd counts do not overflow");
}

/// The undo of a run names its operations and the files that it moved and changed; any other undo is stored as it
/// always was.
#[test]
fn an_undo_names_the_steps_of_a_run_and_what_goes_together() {
    let op = OpId::from_bytes([1; 16]);
    let plain =
        r#"{"target":"01010101-0101-0101-0101-010101010101","root":"01010101-0101-0101-0101-010101010101"}"#;
    let undo = Undo { target: op, root: op, steps: Vec::new(), moves: Vec::new() };
    assert_eq!(serde_json::to_string(&undo).unwrap(), plain);
    assert_eq!(
        serde_json::from_str::<Redo>(plain).unwrap(),
        Redo { target: op, root: op, steps: Vec::new(), moves: Vec::new() }
    );
    let moves = vec![(FilePath::parse("a").unwrap(), FilePath::parse("d/a").unwrap())];
    let of_run = Undo { steps: vec![op], moves, ..undo };
    let more = format!(r#"{},"steps":["{op}"],"moves":[["a","d/a"]]}}"#, plain.trim_end_matches('}'));
    assert_eq!(serde_json::to_string(&of_run).unwrap(), more);
    assert_eq!(serde_json::from_str::<Undo>(&more).unwrap(), of_run);
    let again = Redo { target: op, root: op, steps: of_run.steps, moves: of_run.moves };
    assert_eq!(serde_json::to_string(&again).unwrap(), more);
}

#[test]
fn unknown_fields_survive_a_round_trip() {
    let mut value = serde_json::to_value(envelope(samples().remove(0))).unwrap();
    value["payload"]["colour"] = "violet".into();
    let stored: StoredEvent<'static> = serde_json::from_value(value.clone()).unwrap();
    assert!(matches!(stored.decode().unwrap().payload, Payload::File(FileEvent::Write(_))));
    assert_eq!(serde_json::to_value(&stored).unwrap(), value);
}

#[test]
fn unknown_types_and_versions_survive_a_round_trip() {
    for (name, version) in [("dream.begin", 1), ("file.write", 99), ("file.levitate", 1)] {
        let mut value = serde_json::to_value(envelope(samples().remove(0))).unwrap();
        value["type"] = name.into();
        value["v"] = version.into();
        value["payload"] = serde_json::json!({ "deep": [1, { "x": null }] });
        let stored: StoredEvent<'static> = serde_json::from_value(value).unwrap();
        let event = stored.decode().unwrap();
        assert!(matches!(event.payload, Payload::Unknown(_)), "{name}");
        let again = event.store(&ChainHash::default());
        assert_eq!((again.name.as_ref(), again.version, &again.payload), (name, version, &stored.payload));
    }
}

#[test]
fn malformed_events_are_refused_with_a_reason() {
    let good = serde_json::to_value(envelope(samples().remove(0))).unwrap();
    let cases: Vec<(&str, serde_json::Value)> = vec![
        ("seq", serde_json::json!(-1)),
        ("source", serde_json::json!("robot")),
        ("type", serde_json::json!("file write")),
        ("op", serde_json::json!("nope")),
        ("actor", serde_json::json!("")),
        ("taint", serde_json::json!(["a,b"])),
        ("hash", serde_json::json!("xyz")),
    ];
    for (field, bad) in cases {
        let mut value = good.clone();
        value[field] = bad;
        let error = serde_json::from_value::<StoredEvent<'static>>(value).unwrap_err();
        assert!(!error.to_string().is_empty(), "{field}");
    }
    for bad in [r#"{"path":"../x","node":"folder"}"#, r#"{"path":1}"#, "{}", "[]", "\"", "{\"path\":\"a\"}"] {
        let error = Payload::decode("file.write", 1, bad).unwrap_err();
        assert_eq!(error.part, "payload", "{bad}");
    }
}
