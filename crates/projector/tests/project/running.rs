//! Runs in the lists: how far each is, what it took, what belongs to it, and what its undo leaves.

use event_log::writer::{ChangeRequest, SubmitError};
use kernel::{Action, OutsideEdit, Resolutions, RunAction};
use projector::query::RunRow;
use shared_types::payload::file::FileNode;
use shared_types::payload::llm::{LlmReply, Tokens};
use shared_types::payload::run::{
    ApprovalScope, AskKind, Budget, PauseReason, Reply, RunAsk, RunComplete, RunResume, RunStart,
};
use shared_types::payload::task::{TaskEnd, TaskOutcome, TaskStart};
use shared_types::payload::tool::{ToolCall, ToolReport, ToolStatus};
use shared_types::wire::{RevertDirection, Reverted, RunState};
use shared_types::{AskId, ContentRef, OpId, RunId, Seq, Source, TaskId};

use crate::computer::{Computer, at, new_op};

pub(crate) fn run_id(n: u8) -> RunId {
    RunId::from_bytes([n; 16])
}

fn task_id(n: u8) -> TaskId {
    TaskId::from_bytes([n; 16])
}

/// A change in a run, in the run's own operation.
pub(crate) fn act(computer: &Computer, run: u8, action: RunAction) -> Result<(), SubmitError> {
    let (op, change) = (OpId::from_bytes([run; 16]), ChangeRequest::Do(Action::Run(action)));
    computer.submit_within(Some(run_id(run)), op, Source::Agent, change, &[b"{}"]).map(drop)
}

pub(crate) fn begin(title: &str) -> RunAction {
    let (objective, budget) = (ContentRef::of(b"{}"), Budget::default());
    RunAction::Start(RunStart { title: title.into(), objective, attached: Vec::new(), model: None, budget })
}

pub(crate) fn task(n: u8, parent: Option<u8>) -> RunAction {
    let (role, title, instruction) = ("writer".into(), "work".into(), ContentRef::of(b"{}"));
    let parent = parent.map(task_id);
    RunAction::StartTask(TaskStart { task: task_id(n), parent, role, title, instruction })
}

pub(crate) fn reply(n: u8, tokens: u64, micros: Option<u64>) -> RunAction {
    RunAction::RecordReply(LlmReply {
        task: task_id(n),
        model: "small".into(),
        seen: Seq(1),
        reply: ContentRef::of(b"{}"),
        ended: shared_types::payload::llm::ReplyEnd::Whole,
        calls: Vec::new(),
        tokens: Tokens { input: tokens, ..Tokens::default() },
        micros,
        millis: 1,
        attempts: 1,
    })
}

pub(crate) fn ask(n: u8, task: u8) -> RunAction {
    let about = AskKind::Approval {
        call: new_op(),
        tool: "exec".into(),
        title: "curl x".into(),
        input: ContentRef::of(b"{}"),
        why: "the network".into(),
        pattern: "curl *".into(),
        is_final: true,
    };
    RunAction::Ask(RunAsk { ask: AskId::from_bytes([n; 16]), task: task_id(task), about })
}

pub(crate) fn answer(n: u8) -> RunAction {
    RunAction::Answer { ask: AskId::from_bytes([n; 16]), reply: Reply::Allow(ApprovalScope::Run) }
}

pub(crate) fn end_task(n: u8) -> RunAction {
    RunAction::EndTask {
        end: TaskEnd { task: task_id(n), outcome: TaskOutcome::Done },
        report: None,
        seen: None,
        known: Seq(u64::MAX),
    }
}

pub(crate) fn complete() -> RunAction {
    RunAction::Complete(RunComplete { summary: ContentRef::of(b"{}"), results: Vec::new() })
}

/// An agent writes a text to a path.
pub(crate) fn write(computer: &Computer, run: u8, path: &str, text: &[u8]) -> Result<OpId, SubmitError> {
    let op = new_op();
    let (tool, title, input) = ("write".into(), path.into(), ContentRef::of(b"{}"));
    let base = computer.nodes().get(&at(path)).cloned();
    let now = Some(FileNode::file(ContentRef::of(text), 0o644));
    let action = Action::MakeCall {
        call: ToolCall { tool, title, input, network: false, task: Some(task_id(run)) },
        status: ToolStatus::Exited { code: 0 },
        report: ToolReport::default(),
        edits: vec![OutsideEdit { path: at(path), base, now }],
        also: None,
    };
    computer.submit_within(
        Some(run_id(run)),
        op,
        Source::Agent,
        ChangeRequest::Do(action),
        &[b"{}", text],
    )?;
    Ok(op)
}

fn row(computer: &Computer, run: u8) -> RunRow {
    computer.settle();
    computer.assert_faithful();
    computer.views().run(run_id(run)).unwrap().unwrap()
}

#[test]
fn a_row_says_how_far_a_run_has_come_and_what_it_took() {
    let computer = Computer::new();
    act(&computer, 1, begin("Bees")).unwrap();
    let begun = row(&computer, 1);
    assert_eq!((&*begun.title, begun.first, begun.state), ("Bees", Seq(1), RunState::Running));
    assert_eq!((begun.ended, begun.tasks, begun.steps, begun.undone), (None, 0, 0, false));

    let both = |steps: &[RunAction], state, reason: Option<&str>, asks| {
        for step in steps {
            act(&computer, 1, step.clone()).unwrap();
        }
        let row = row(&computer, 1);
        assert_eq!((row.state, row.reason.as_deref(), row.asks), (state, reason, asks));
    };
    both(&[task(1, None), task(2, Some(1))], RunState::Running, None, 0);
    both(&[ask(1, 1), ask(2, 2)], RunState::Waiting, None, 2);
    both(&[RunAction::Pause(PauseReason::Budget("9 steps".into()))], RunState::Paused, Some("9 steps"), 2);
    both(&[RunAction::Resume(RunResume::default()), answer(1)], RunState::Waiting, None, 1);
    both(&[end_task(2)], RunState::Running, None, 0);
    both(&[RunAction::Pause(PauseReason::Person)], RunState::Paused, None, 0);
    both(&[RunAction::Resume(RunResume::default())], RunState::Running, None, 0);
    both(
        &[reply(1, 7, Some(3)), reply(1, 5, None), reply(1, u64::MAX, Some(u64::MAX))],
        RunState::Running,
        None,
        0,
    );
    both(&[end_task(1), complete()], RunState::Completed, None, 0);
    let over = row(&computer, 1);
    assert_eq!((over.steps, over.unpriced, over.tasks), (3, 1, 2));
    assert_eq!((over.tokens, over.micros), (i64::MAX as u64, i64::MAX as u64), "a sum stays a number");
    assert!(over.ended.is_some_and(|ended| ended >= over.started));

    act(&computer, 2, begin("Ants")).unwrap();
    act(&computer, 2, RunAction::Fail { reason: "no model".into() }).unwrap();
    assert_eq!(
        (row(&computer, 2).state, row(&computer, 2).reason.as_deref()),
        (RunState::Failed, Some("no model"))
    );
    act(&computer, 3, begin("Wasps")).unwrap();
    act(&computer, 3, task(3, None)).unwrap();
    act(&computer, 3, ask(3, 3)).unwrap();
    act(&computer, 3, RunAction::Cancel).unwrap();
    assert_eq!((row(&computer, 3).state, row(&computer, 3).asks), (RunState::Cancelled, 0));
    assert_eq!(computer.views().run(run_id(9)).unwrap(), None);
}

#[test]
fn runs_are_listed_newest_first_page_by_page() {
    let computer = Computer::new();
    for n in 1..=5 {
        act(&computer, n, begin(&format!("Run {n}"))).unwrap();
        computer.write("between", [n]);
    }
    computer.settle();
    let page = |before, count| computer.views().runs(before, count).unwrap();
    let titles = |rows: &[RunRow]| rows.iter().map(|row| row.title.clone()).collect::<Vec<_>>();
    let first = page(None, 2);
    assert_eq!(titles(&first), ["Run 5", "Run 4"]);
    let second = page(Some(first[1].first), 2);
    assert_eq!(titles(&second), ["Run 3", "Run 2"]);
    assert_eq!(titles(&page(Some(second[1].first), 2)), ["Run 1"]);
    assert!(page(Some(Seq(1)), 2).is_empty());
}

#[test]
fn the_operations_of_a_run_are_told_in_order_and_go_back_with_it() {
    let computer = Computer::new();
    computer.write("a", "1\n2\n3\n4\n5\n");
    act(&computer, 1, begin("Bees")).unwrap();
    act(&computer, 1, task(1, None)).unwrap();
    let first = write(&computer, 1, "a", b"one\n2\n3\n4\n5\n").unwrap();
    let mine = computer.write("a", "one\n2\nmine\n4\n5\n");
    let second = write(&computer, 1, "a", b"one\n2\nmine\n4\nfive\n").unwrap();
    act(&computer, 1, end_task(1)).unwrap();
    act(&computer, 1, complete()).unwrap();
    computer.settle();
    computer.assert_faithful();

    let rows = computer.views().operations_of(run_id(1)).unwrap();
    let whole = OpId::from_bytes([1; 16]);
    assert_eq!(rows.iter().map(|row| row.op).collect::<Vec<_>>(), [whole, first, second]);
    assert_eq!((&*rows[0].family, &*rows[0].label, rows[0].task), ("run", "Bees", None));
    assert!(rows.iter().all(|row| row.run == Some(run_id(1))));
    assert_eq!(rows[1].task, Some(task_id(1)));
    let of_person = computer.views().operation(mine).unwrap().unwrap();
    assert_eq!((of_person.run, of_person.task), (None, None));

    let change = ChangeRequest::UndoRun { run: run_id(1), resolutions: Resolutions::default() };
    let (undo, _) = computer.submit(change, &[]).unwrap();
    let undone = |computer: &Computer| -> Vec<bool> {
        computer.settle();
        computer.assert_faithful();
        computer.views().operations_of(run_id(1)).unwrap().iter().map(|row| row.undone).collect()
    };
    assert_eq!(undone(&computer), [true, true, true]);
    assert!(row(&computer, 1).undone);
    assert_eq!(std::fs::read(computer.on_disk("a")).unwrap(), b"1\n2\nmine\n4\n5\n");
    let shown = computer.views().operation(undo).unwrap().unwrap();
    assert!(shown.label.starts_with("undo run "), "{}", shown.label);
    let about = |direction| Some(Reverted { direction, op: whole, title: "Bees".into() });
    assert_eq!(shown.reverts, about(RevertDirection::Undo));
    assert_eq!(computer.views().redoable().unwrap().map(|row| row.op), Some(undo));

    let redo = computer.undo(undo);
    assert_eq!(undone(&computer), [false, false, false]);
    assert_eq!(computer.views().operation(redo).unwrap().unwrap().reverts, about(RevertDirection::Redo));
    assert!(!row(&computer, 1).undone);
    assert_eq!(std::fs::read(computer.on_disk("a")).unwrap(), b"one\n2\nmine\n4\nfive\n");
}
