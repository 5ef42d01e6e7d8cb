//! Short names for the steps of runs.

use kernel::{Action, RunAction};
use shared_types::payload::llm::{LlmFail, LlmReply, Tokens};
use shared_types::payload::run::{
    AskKind, Budget, PauseReason, Reply, RunAsk, RunComplete, RunResume, RunStart, RunSteer,
};
use shared_types::payload::task::{MessageKind, TaskEnd, TaskMessage, TaskOutcome, TaskStart};
use shared_types::payload::tool::{ToolCall, ToolReport, ToolStatus};
use shared_types::{AskId, ContentRef, GrantId, OpId, RunId, Seq, TaskId, Timestamp};

use crate::shell::Shell;
use crate::steps::{Edit, Step, outside};

pub(crate) fn run_id(n: u8) -> RunId {
    RunId::from_bytes([n; 16])
}

/// The operation with the id of the run.
pub(crate) fn run_op(n: u8) -> OpId {
    OpId::from_bytes([n; 16])
}

/// The first agent of run `n` is task `n`.
pub(crate) fn task_id(n: u8) -> TaskId {
    TaskId::from_bytes([n; 16])
}

pub(crate) fn ask_id(n: u8) -> AskId {
    AskId::from_bytes([n; 16])
}

pub(crate) fn grant_id(n: u8) -> GrantId {
    GrantId::from_bytes([n; 16])
}

/// A step in run 1.
pub(crate) fn act(action: RunAction) -> Step {
    Step::from(Action::Run(action)).within(run_id(1))
}

pub(crate) fn begin_with(title: &str, budget: Budget) -> Step {
    let objective = ContentRef::of(title.as_bytes());
    act(RunAction::Start(RunStart {
        title: title.into(),
        objective,
        attached: Vec::new(),
        model: None,
        budget,
    }))
}

pub(crate) fn begin(title: &str) -> Step {
    begin_with(title, Budget::default())
}

pub(crate) fn task(n: u8, parent: Option<u8>, role: &str) -> Step {
    let (title, instruction) = ("work".into(), ContentRef::of(b"work"));
    let parent = parent.map(task_id);
    act(RunAction::StartTask(TaskStart { task: task_id(n), parent, role: role.into(), title, instruction }))
}

/// A run with its first agent.
pub(crate) fn working() -> Vec<Step> {
    vec![begin("Bees"), task(1, None, "conductor")]
}

/// A run with its first agent and a worker, number 2.
pub(crate) fn delegating() -> Vec<Step> {
    vec![begin("Bees"), task(1, None, "conductor"), task(2, Some(1), "writer")]
}

pub(crate) fn done(n: u8, outcome: TaskOutcome) -> Step {
    act(ends(n, outcome))
}

/// An agent ends without a report.
pub(crate) fn ends(n: u8, outcome: TaskOutcome) -> RunAction {
    RunAction::EndTask {
        end: TaskEnd { task: task_id(n), outcome },
        report: None,
        seen: None,
        known: Seq(u64::MAX),
    }
}

/// An agent ends with a report to another.
pub(crate) fn reports(n: u8, to: u8) -> RunAction {
    let (kind, body) = (MessageKind::Completion, ContentRef::of(b"words"));
    let report = TaskMessage { from: task_id(n), to: task_id(to), kind, body };
    RunAction::EndTask {
        end: TaskEnd { task: task_id(n), outcome: TaskOutcome::Done },
        report: Some(report),
        seen: None,
        known: Seq(u64::MAX),
    }
}

pub(crate) fn tell(from: u8, to: u8, kind: MessageKind) -> Step {
    let (from, to) = (task_id(from), task_id(to));
    act(RunAction::Tell(TaskMessage { from, to, kind, body: ContentRef::of(b"words") }))
}

pub(crate) fn steer(n: Option<u8>) -> Step {
    act(RunAction::Steer(RunSteer { task: n.map(task_id), words: ContentRef::of(b"shorter") }))
}

pub(crate) fn pause() -> Step {
    act(RunAction::Pause(PauseReason::Person))
}

pub(crate) fn resume(budget: Option<Budget>) -> Step {
    act(RunAction::Resume(RunResume { budget }))
}

pub(crate) fn cancel() -> Step {
    act(RunAction::Cancel)
}

pub(crate) fn fail(reason: &str) -> Step {
    act(RunAction::Fail { reason: reason.into() })
}

pub(crate) fn complete() -> Step {
    act(RunAction::Complete(RunComplete { summary: ContentRef::of(b"done"), results: Vec::new() }))
}

pub(crate) fn approval(call: OpId) -> AskKind {
    AskKind::Approval {
        call,
        tool: "exec".into(),
        title: "curl x".into(),
        input: ContentRef::of(b"{}"),
        why: "the network".into(),
        pattern: "curl *".into(),
        is_final: true,
    }
}

pub(crate) fn question(call: OpId) -> AskKind {
    AskKind::Question { call, text: "Which?".into(), choices: Vec::new() }
}

pub(crate) fn interrupted(call: OpId) -> AskKind {
    AskKind::Interrupted { call, tool: "exec".into(), title: "make".into() }
}

pub(crate) fn outgoing(call: OpId) -> AskKind {
    AskKind::Outgoing {
        call,
        tool: "exec".into(),
        title: "git push".into(),
        input: ContentRef::of(b"words"),
        until: Timestamp::from_millis(5),
    }
}

pub(crate) fn ask(n: u8, of: u8, about: AskKind) -> Step {
    act(RunAction::Ask(RunAsk { ask: ask_id(n), task: task_id(of), about }))
}

pub(crate) fn answer(n: u8, reply: Reply) -> Step {
    act(RunAction::Answer { ask: ask_id(n), reply })
}

pub(crate) fn trust(n: u8) -> Step {
    act(RunAction::Trust(task_id(n)))
}

pub(crate) fn reply_of(n: u8, tokens: Tokens, micros: Option<u64>) -> Step {
    act(RunAction::RecordReply(LlmReply {
        task: task_id(n),
        model: "small".into(),
        seen: Seq(1),
        reply: ContentRef::of(b"{}"),
        ended: shared_types::payload::llm::ReplyEnd::Whole,
        calls: Vec::new(),
        tokens,
        micros,
        millis: 5,
        attempts: 1,
    }))
}

pub(crate) fn reply(n: u8) -> Step {
    reply_of(n, Tokens { input: 3, cache_read: 0, cache_write: 0, output: 4 }, Some(10))
}

pub(crate) fn no_reply(n: u8, reason: &str) -> Step {
    act(RunAction::RecordFailure {
        fail: LlmFail {
            task: task_id(n),
            model: "small".into(),
            reason: reason.into(),
            permanent: false,
            tokens: Tokens::default(),
            micros: None,
        },
        known: Seq(u64::MAX),
    })
}

pub(crate) fn tool_call(n: Option<u8>) -> ToolCall {
    ToolCall {
        tool: "exec".into(),
        title: "make".into(),
        input: ContentRef::of(b"{}"),
        network: false,
        task: n.map(task_id),
    }
}

/// An agent calls a tool; the operation is the call.
pub(crate) fn call_by(n: u8) -> Step {
    Step::from(Action::StartCall(tool_call(Some(n)))).within(run_id(1))
}

/// An agent calls a tool that answers at once.
pub(crate) fn make(n: u8, edits: &[Edit<'_>], also: Option<RunAction>) -> Step {
    let action = Action::MakeCall {
        call: tool_call(Some(n)),
        status: ToolStatus::Exited { code: 0 },
        report: ToolReport::default(),
        edits: outside(edits),
        also: also.map(Box::new),
    };
    Step::from(action).within(run_id(1))
}

/// The step in another run.
pub(crate) fn in_run(n: u8, step: Step) -> Step {
    step.within(run_id(n))
}

/// A shell in which these steps were taken and a call of the first agent is open.
pub(crate) fn calling(steps: impl IntoIterator<Item = Step>) -> (Shell, OpId) {
    let (mut shell, _) = Shell::after(steps);
    let op = shell.done(call_by(1));
    (shell, op)
}
