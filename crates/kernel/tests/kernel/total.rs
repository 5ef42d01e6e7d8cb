//! `evolve` is total: any event that can be decoded can be applied, whether or not the kernel made it. A log may come
//! from another version or another hand, and opening it must never fail in the middle.

use std::sync::Arc;

use kernel::{Action, Choice, View, evolve, react};
use proptest::prelude::*;
use proptest::sample::select;
use shared_types::payload::capability::{CapabilityGrant, CapabilityRevoke, Grant};
use shared_types::payload::checkpoint::*;
use shared_types::payload::file::*;
use shared_types::payload::llm::{LlmFail, LlmReply, Tokens};
use shared_types::payload::message::*;
use shared_types::payload::note::{NoteDelete, NoteWrite};
use shared_types::payload::revert::{Redo, Restore, Undo};
use shared_types::payload::run::*;
use shared_types::payload::setting::{SettingClear, SettingSet};
use shared_types::payload::system::{SystemImport, SystemPurge, SystemPurged};
use shared_types::payload::task::*;
use shared_types::payload::tool::*;
use shared_types::payload::user::{UserCreate, UserRename};
use shared_types::payload::window::{WindowClose, WindowSet};
use shared_types::*;

use crate::agents::*;
use crate::commands::{paths, steps, values};
use crate::laws::{check_counts, config, reopened};
use crate::shell::{Shell, all};
use crate::steps::*;

fn nodes() -> impl Strategy<Value = FileNode> {
    let files = (any::<[u8; 32]>(), any::<u64>(), any::<u16>());
    prop_oneof![
        files.prop_map(|(hash, size, mode)| FileNode::File { hash: ContentHash(hash), size, mode }),
        "\\PC{0,6}".prop_map(|target| FileNode::Symlink { target: target.into() }),
        Just(FileNode::Folder),
    ]
}

fn changes() -> impl Strategy<Value = FileChange> {
    prop_oneof![
        (paths(), nodes(), prop::option::of(nodes()))
            .prop_map(|(path, node, prev)| FileChange::Write(FileWrite { path, node, prev })),
        (paths(), nodes()).prop_map(|(path, prev)| FileChange::Delete(FileDelete { path, prev })),
        (paths(), paths(), nodes()).prop_map(|(from, to, node)| FileChange::Move(FileMove {
            from,
            to,
            node
        })),
    ]
}

fn file_payloads() -> impl Strategy<Value = Payload> {
    prop_oneof![
        6 => changes().prop_map(|change| FileEvent::from(change).into()),
        1 => prop::collection::vec(changes(), 0..5).prop_map(|changes| FileBatch::of(changes).0.into()),
    ]
}

fn desktop_payloads() -> impl Strategy<Value = Payload> {
    let keys = || select(vec!["theme", "zoom", ""]).prop_map(Box::<str>::from);
    let some = || values().prop_filter("null is no value", |value| !value.is_null());
    let windows = || "[A-C]{0,1}".prop_map(|title| window_at(&title, i32::MIN));
    let notes = || "[A-C]{0,1}".prop_map(|title| note_of(&title));
    prop_oneof![
        (0..2u8, windows(), prop::option::of(windows())).prop_map(|(n, state, prev)| WindowSet {
            window: window_id(n),
            state,
            prev
        }
        .into()),
        (0..2u8, windows()).prop_map(|(n, prev)| WindowClose { window: window_id(n), prev }.into()),
        (keys(), some(), prop::option::of(some())).prop_map(|(key, value, prev)| SettingSet {
            key,
            value,
            prev
        }
        .into()),
        (keys(), some()).prop_map(|(key, prev)| SettingClear { key, prev }.into()),
        (0..2u8, notes(), prop::option::of(notes())).prop_map(|(n, state, prev)| NoteWrite {
            note: note_id(n),
            state,
            prev
        }
        .into()),
        (0..2u8, notes()).prop_map(|(n, prev)| NoteDelete { note: note_id(n), prev }.into()),
    ]
}

fn ops() -> impl Strategy<Value = OpId> {
    (0..4u8).prop_map(|n| OpId::from_bytes([n; 16]))
}

fn other_payloads() -> impl Strategy<Value = Payload> {
    let effects = || (0..3u8).prop_map(effect_id);
    let message = |n| MessagePost {
        conversation: conversation_id(n),
        message: MessageId::from_bytes([n; 16]),
        role: Role::System,
        body: ContentRef::of(b""),
        reply_to: Some(MessageId::from_bytes([9; 16])),
    };
    let request =
        |effect| CheckpointRequest { effect, reason: CheckpointReason::Restore, message: "".into() };
    let create =
        |(effect, seq)| CheckpointCreate { effect, commit: "?".into(), seq: Seq(seq), message: "".into() };
    let import = |seq| SystemImport {
        user: UserId::parse("x").unwrap(),
        seq: Seq(seq),
        hash: ChainHash::default(),
        files: seq,
    };
    prop_oneof![
        (0..2u8)
            .prop_map(|n| ConversationStart { conversation: conversation_id(n), title: "".into() }.into()),
        (0..3u8).prop_map(move |n| message(n).into()),
        effects().prop_map(move |effect| request(effect).into()),
        (effects(), any::<u64>()).prop_map(move |made| create(made).into()),
        effects().prop_map(|effect| CheckpointFail { effect, reason: "".into() }.into()),
        (ops(), ops()).prop_map(|(target, root)| Undo {
            target,
            root,
            steps: vec![target],
            moves: Vec::new()
        }
        .into()),
        (ops(), ops()).prop_map(|(target, root)| Redo {
            target,
            root,
            steps: vec![target],
            moves: Vec::new()
        }
        .into()),
        any::<u64>().prop_map(|seq| Restore { seq: Seq(seq) }.into()),
        Just(UserCreate { name: "".into() }.into()),
        Just(UserRename { name: "".into(), prev: "".into() }.into()),
        effects().prop_map(|effect| SystemPurge { effect, hashes: Vec::new(), reason: "".into() }.into()),
        effects().prop_map(|effect| SystemPurged { effect, dropped: u64::MAX }.into()),
        any::<u64>().prop_map(move |seq| import(seq).into()),
        Just(Payload::decode("mail.send", 1, "{\"to\":1}").unwrap()),
        Just(Payload::decode("file.write", 99, "[]").unwrap()),
    ]
}

fn tool_payloads() -> impl Strategy<Value = Payload> {
    let call = |(network, task)| ToolCall {
        tool: "".into(),
        title: "".into(),
        input: ContentRef::of(b""),
        network,
        task,
    };
    let request = |port| ToolRequest {
        method: "".into(),
        host: "".into(),
        port,
        verdict: RequestVerdict::Refused,
        reason: None,
        sent: u64::MAX,
        received: 0,
    };
    let end = |status| ToolResult { status, report: ToolReport::default() };
    prop_oneof![
        (any::<bool>(), prop::option::of(tasks())).prop_map(move |given| call(given).into()),
        any::<u16>().prop_map(move |port| request(port).into()),
        any::<u64>()
            .prop_map(|changes| ToolHold { report: ToolReport::default(), changes, code: None }.into()),
        any::<i32>().prop_map(move |code| end(ToolStatus::Exited { code }).into()),
        Just(end(ToolStatus::Discarded).into()),
    ]
}

fn tasks() -> impl Strategy<Value = TaskId> {
    (0..4u8).prop_map(task_id)
}

fn run_payloads() -> impl Strategy<Value = Payload> {
    let asks = || (0..3u8).prop_map(ask_id);
    let bound = || prop::option::of(any::<u64>());
    let budgets = || {
        let all = (bound(), bound(), bound(), bound());
        all.prop_map(|(steps, seconds, tokens, micros)| Budget { steps, seconds, tokens, micros })
    };
    let model = || prop::option::of(Just("m".into()));
    let start = |(budget, model)| RunStart {
        title: "".into(),
        objective: ContentRef::of(b""),
        attached: Vec::new(),
        model,
        budget,
    };
    let about = || {
        let kinds: [fn(OpId) -> AskKind; 4] = [approval, question, interrupted, outgoing];
        (select(kinds.to_vec()), ops()).prop_map(|(kind, op)| kind(op))
    };
    let why = || {
        let words = [PauseReason::Budget("b".into()), PauseReason::Model("m".into())];
        select([&[PauseReason::Person, PauseReason::TakenOver], words.as_slice()].concat())
    };
    let replies = || {
        select(vec![
            Reply::Allow(ApprovalScope::Run),
            Reply::Deny("".into()),
            Reply::Words("".into()),
            Reply::Silence,
        ])
    };
    prop_oneof![
        4 => (budgets(), model()).prop_map(move |given| start(given).into()),
        1 => prop::option::of(tasks()).prop_map(|task| RunSteer { task, words: ContentRef::of(b"") }.into()),
        1 => why().prop_map(|why| RunPause { why }.into()),
        1 => prop::option::of(budgets()).prop_map(|budget| RunResume { budget }.into()),
        1 => Just(RunWake {}.into()),
        2 => (asks(), tasks(), about()).prop_map(|(ask, task, about)| RunAsk { ask, task, about }.into()),
        1 => (asks(), tasks(), replies()).prop_map(|(ask, task, reply)| RunAnswer { ask, task, reply }.into()),
        1 => Just(RunCancel {}.into()),
        1 => Just(RunFail { reason: "".into() }.into()),
        1 => Just(RunComplete { summary: ContentRef::of(b""), results: Vec::new() }.into()),
    ]
}

fn agent_payloads() -> impl Strategy<Value = Payload> {
    let count = || prop_oneof![0..9u64, any::<u64>()];
    let tokens = || {
        let all = (count(), count(), count(), count());
        all.prop_map(|(input, cache_read, cache_write, output)| Tokens {
            input,
            cache_read,
            cache_write,
            output,
        })
    };
    let reply = |(task, tokens, micros)| LlmReply {
        task,
        model: "".into(),
        seen: Seq(u64::MAX),
        reply: ContentRef::of(b""),
        ended: shared_types::payload::llm::ReplyEnd::Whole,
        calls: Vec::new(),
        tokens,
        micros,
        millis: u64::MAX,
        attempts: u32::MAX,
    };
    let begin = |(task, parent)| TaskStart {
        task,
        parent,
        role: "".into(),
        title: "".into(),
        instruction: ContentRef::of(b""),
    };
    let outcomes = || select(vec![TaskOutcome::Done, TaskOutcome::Failed("".into()), TaskOutcome::Cancelled]);
    let tell = |(from, to)| TaskMessage { from, to, kind: MessageKind::Finding, body: ContentRef::of(b"") };
    let grant = |(n, run): (_, Option<u8>)| CapabilityGrant {
        id: grant_id(n),
        grant: Grant { tool: "".into(), pattern: "".into(), run: run.map(run_id) },
    };
    prop_oneof![
        4 => (tasks(), prop::option::of(tasks())).prop_map(move |given| begin(given).into()),
        1 => (tasks(), tasks()).prop_map(move |given| tell(given).into()),
        1 => (tasks(), outcomes()).prop_map(|(task, outcome)| TaskEnd { task, outcome }.into()),
        1 => tasks().prop_map(|task| TaskTrust { task }.into()),
        2 => (tasks(), tokens(), prop::option::of(count())).prop_map(move |given| reply(given).into()),
        1 => tasks().prop_map(|task| LlmFail { task, model: "".into(), reason: "".into(), permanent: false, tokens: Tokens { output: 3, ..Tokens::default() }, micros: Some(1) }.into()),
        1 => (0..3u8, prop::option::of(0..3u8)).prop_map(move |given| grant(given).into()),
        1 => (0..3u8).prop_map(|n| CapabilityRevoke { id: grant_id(n) }.into()),
    ]
}

fn payloads() -> impl Strategy<Value = Payload> {
    prop_oneof![
        4 => file_payloads(),
        2 => desktop_payloads(),
        2 => other_payloads(),
        1 => tool_payloads(),
        2 => run_payloads(),
        2 => agent_payloads(),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let seqs = prop_oneof![0..50u64, any::<u64>()];
    let runs = prop::option::weighted(0.8, (0..3u8).prop_map(run_id));
    let labels = select(vec![vec![], vec![], vec![Taint::IMPORT]]);
    let event = (ops(), payloads(), seqs, any::<i64>(), runs, labels).prop_map(
        |(op, payload, seq, ts, run_id, taint)| Event {
            seq: Seq(seq),
            id: EventId::from_bytes([1; 16]),
            ts: Timestamp::from_millis(ts),
            source: Source::System,
            op,
            actor: Actor::CLI,
            run_id,
            cause: None,
            taint,
            payload,
        },
    );
    prop::collection::vec(event, 0..40)
}

/// What the log gives back for an event; a batch has its list again.
fn recorded(event: &Event) -> Event {
    let mut decoded = event.store(&ChainHash::default()).decode().expect("what was recorded can be read");
    if let (Payload::File(FileEvent::Batch(read)), Payload::File(FileEvent::Batch(made))) =
        (&mut decoded.payload, &event.payload)
    {
        read.changes.clone_from(&made.changes);
    }
    decoded
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn any_events_can_be_applied_and_give_one_root(events in events()) {
        let (mut live, mut replayed) = (View::default(), View::default());
        for event in &events {
            evolve(&mut live, event);
            react(&live, event);
            evolve(&mut replayed, &recorded(event));
            prop_assert_eq!(live.seq(), event.seq);
        }
        prop_assert_eq!(live.root(), replayed.root());
        prop_assert_eq!(reopened(&mut live).root(), live.root());
        check_counts(&live)?;
    }

    /// A view that no decision led to is still decided upon without a panic.
    #[test]
    fn any_view_can_be_decided_upon(
        events in events(),
        steps in prop::collection::vec(steps(), 0..6),
        target in ops(),
        choice in prop::option::of(select(vec![Choice::Keep, Choice::Take])),
    ) {
        let mut shell = Shell::new();
        let mut seq = Seq::ZERO;
        for event in &events {
            seq = seq.next();
            evolve(&mut shell.view, &Event { seq, ..event.clone() });
        }
        for step in steps {
            let _ = shell.run(step);
        }
        let resolutions = choice.map(all).unwrap_or_default();
        let of_run = events.iter().filter(|event| event.run_id == Some(run_id(1))).cloned().collect();
        let _ = shell.run(Action::UndoRun { run: run_id(1), events: of_run, resolutions: resolutions.clone() });
        let events = events.into_iter().filter(|event| event.op == target).collect();
        let _ = shell.run(Action::Undo { target, events, resolutions });
        shell.run(Action::Restore { seq: Seq::ZERO, target: Arc::default() }).expect("there is a way back to nothing");
        prop_assert_eq!(shell.state(), Shell::new().state());
    }
}

/// Logs from before there were calls have recorded these hashes and snapshots.
#[test]
fn a_view_without_open_calls_is_what_it_was_before_there_were_any() {
    let (mut shell, _) = Shell::after([write("a", "1"), set("theme", "dark")]);
    let known = ["files", "windows", "settings", "notes", "conversations", "undone", "pending", "computer"];
    let names =
        |shell: &mut Shell| -> Vec<&str> { shell.view.roots().iter().map(|(name, _)| *name).collect() };
    let sliced =
        |shell: &mut Shell| -> Vec<&str> { shell.view.to_slices().iter().map(|slice| slice.name).collect() };
    assert_eq!((names(&mut shell), sliced(&mut shell)), (known.to_vec(), known.to_vec()));
    let before = shell.root();

    let op = shell.done(call("make"));
    let with_calls: Vec<&str> = known.into_iter().chain(["calls"]).collect();
    assert_eq!((names(&mut shell), sliced(&mut shell)), (with_calls.clone(), with_calls));
    assert_ne!(shell.root(), before);
    let mut opened = reopened(&mut shell.view);
    assert_eq!(opened.root(), shell.root());
    assert_eq!(opened.calls.get(&op), shell.view.calls.get(&op));

    // A snapshot that lost them is told by its root.
    let slices = shell.view.to_slices();
    let without =
        |name| slices[..8].iter().find(|slice| slice.name == name).map(|slice| slice.bytes.as_slice());
    let mut lost = View::from_slices(shell.view.seq(), without).unwrap();
    assert_eq!(lost.root(), before);
    assert_ne!(lost.root(), shell.root());

    shell.run_in(op, exit(&[])).unwrap();
    assert_eq!(shell.root(), before);
    assert_eq!(sliced(&mut shell), known);
}

#[test]
fn a_view_without_its_slices_is_refused() {
    let mut view = View::default();
    let slices = view.to_slices();
    for lost in &slices {
        let without = |name| {
            let others = slices.iter().filter(|slice| slice.name != lost.name);
            others.into_iter().find(|slice| slice.name == name).map(|slice| slice.bytes.as_slice())
        };
        let error = View::from_slices(Seq::ZERO, without).expect_err(lost.name);
        assert_eq!(error, kernel::SnapshotError::Missing(lost.name));
        let broken = |name| {
            let found = slices.iter().find(|slice| slice.name == name)?;
            Some(if name == lost.name { &[0xff_u8, 0xff][..] } else { found.bytes.as_slice() })
        };
        let error = View::from_slices(Seq::ZERO, broken).expect_err(lost.name);
        assert_eq!(error, kernel::SnapshotError::Unreadable(lost.name));
    }
}
