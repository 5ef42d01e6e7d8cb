//! The next steps of a run, computed from its history alone.
//!
//! A [`StepKey`] identifies a step, so that the runner knows which steps are in progress already.

use kernel::run::{Run, RunPhase};
use shared_types::payload::llm::{ReplyEnd, RequestedCall};
use shared_types::payload::run::{AskKind, Reply};
use shared_types::payload::task::TaskOutcome;
use shared_types::payload::tool::ToolStatus;
use shared_types::{ContentRef, OpId, TaskId, Timestamp};

use crate::ask_ids::{approval_ask_id, outbox_ask_id, repeat_ask_id};
use crate::history::{History, TaskHistory};
use crate::loop_detection::repeated_rounds;
use crate::roles::{self, Role};
use crate::tool_kind::{ControlTool, depends_on};

/// A step that can be taken now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlannedStep {
    /// Start the first agent.
    Begin,
    /// Let the model of an agent take a turn.
    TakeTurn { task: TaskId },
    /// Check a call of an agent against the rules, then make it or ask the person for approval.
    MakeCall {
        task: TaskId,
        call: OpId,
        /// The index of the call in its reply.
        index: usize,
        reply: ContentRef,
        permission: Permission,
        /// Whether it has been in the outbox and may go out.
        is_released: bool,
    },
    /// Wait until the time of a call in the outbox is up, then release it.
    Release { task: TaskId, call: OpId, until: Timestamp },
    /// Ask the person whether an interrupted call, which may have had external effects, is to be repeated.
    AskRepeat { task: TaskId, call: OpId },
    /// End the work of an agent and report to its requester.
    EndTask { task: TaskId, outcome: TaskOutcome, text: FinalText },
    /// Complete the run.
    Complete { text: FinalText },
    /// Fail the run.
    Fail { reason: Box<str> },
    /// Stop a call that is still open in a cancelled run or in a failed agent.
    StopCall { call: OpId },
}

/// The person's decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Permission {
    /// The person was not asked: the rules decide.
    NotAsked,
    Answered(Reply),
}

/// Where to find the final text of an agent or a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FinalText {
    /// The text of a model's reply.
    Reply(ContentRef),
    /// The summary in the `finish` call at this index of a reply.
    FinishSummary(ContentRef, usize),
    Fixed(Box<str>),
}

/// Identifies a step. Two steps with the same key are never in progress at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum StepKey {
    Run,
    Task(TaskId),
    Call(OpId),
    Release(OpId),
    Stop(OpId),
}

impl PlannedStep {
    pub(crate) fn key(&self) -> StepKey {
        match self {
            Self::Begin | Self::Complete { .. } | Self::Fail { .. } => StepKey::Run,
            Self::TakeTurn { task } | Self::EndTask { task, .. } => StepKey::Task(*task),
            Self::MakeCall { call, .. } | Self::AskRepeat { call, .. } => StepKey::Call(*call),
            Self::Release { call, .. } => StepKey::Release(*call),
            Self::StopCall { call } => StepKey::Stop(*call),
        }
    }
}

/// All steps that can be taken now.
pub(crate) fn plan(history: &History) -> Vec<PlannedStep> {
    let Some(run) = history.run() else { return Vec::new() };
    match &run.phase {
        RunPhase::Working => working(history, run),
        RunPhase::Paused(_) => Vec::new(),
        RunPhase::Cancelled => stop_cancelled(history),
        RunPhase::Failed(_) | RunPhase::Completed => Vec::new(),
    }
}

fn working(history: &History, run: &Run) -> Vec<PlannedStep> {
    if run.tasks.is_empty() {
        return vec![PlannedStep::Begin];
    }
    let Some(first) = history.tasks.get(&history.root_task()) else { return Vec::new() };
    if let Some(outcome) = &first.outcome {
        return vec![end_run(first, outcome)];
    }
    history
        .tasks
        .values()
        .filter(|task| history.is_working(task.id))
        .flat_map(|task| next_steps(history, run, task))
        .collect()
}

/// The run ends as its first agent did.
fn end_run(first: &TaskHistory, outcome: &TaskOutcome) -> PlannedStep {
    match outcome {
        TaskOutcome::Done => PlannedStep::Complete { text: final_text(first) },
        TaskOutcome::Failed(reason) => PlannedStep::Fail { reason: reason.clone() },
        TaskOutcome::Cancelled => PlannedStep::Fail { reason: "its first agent was stopped".into() },
    }
}

fn next_steps(history: &History, run: &Run, task: &TaskHistory) -> Vec<PlannedStep> {
    if let Some(reason) = failure_reason(history, task) {
        return fail_task(history, task, reason);
    }
    let Some(turn) = task.last_turn() else { return vec![PlannedStep::TakeTurn { task: task.id }] };
    let must_wait = |index: usize| {
        let earlier = turn.calls[..index].iter().filter(|requested| task.result(requested.call).is_none());
        depends_on(&turn.calls[index].tool, earlier.map(|requested| &*requested.tool))
    };
    let unanswered = turn.calls.iter().enumerate().filter(|(index, requested)| {
        // A call may read or overwrite what an earlier call of the same turn writes.
        task.result(requested.call).is_none() && !must_wait(*index)
    });
    let steps: Vec<PlannedStep> = unanswered
        .filter_map(|(index, requested)| {
            let (task, call, reply) = (task.id, requested.call, turn.reply);
            let (permission, is_released) = match approval_state(history, run, call) {
                Approval::NotAsked => (Permission::NotAsked, false),
                Approval::Pending => return None,
                Approval::InOutbox(until) => return Some(PlannedStep::Release { task, call, until }),
                Approval::Answered(reply) => (Permission::Answered(reply.clone()), false),
                Approval::Released(permission) => (permission, true),
            };
            Some(PlannedStep::MakeCall { task, call, index, reply, permission, is_released })
        })
        .collect();
    let is_answered = |at: usize| task.result(turn.calls[at].call).is_some();
    if !(0..turn.calls.len()).all(is_answered) {
        return steps;
    }
    let repeats = turn
        .calls
        .iter()
        .map(|requested| (requested.call, repeat_decision(history, run, task, requested.call)));
    let undecided: Vec<_> = repeats.filter(|(_, decision)| *decision != RepeatDecision::NotNeeded).collect();
    if !undecided.is_empty() {
        let unasked = undecided.into_iter().filter(|(_, decision)| *decision == RepeatDecision::NotAsked);
        return unasked.map(|(call, _)| PlannedStep::AskRepeat { task: task.id, call }).collect();
    }
    let finished = turn.calls.iter().find(|requested| {
        ControlTool::Finish.is(&requested.tool)
            && task.result(requested.call).is_some_and(|(status, _)| is_success(status))
    });
    let has_helpers = history.helpers(task.id).next().is_some();
    let has_open_question = task
        .parent
        .and_then(|parent| history.tasks.get(&parent))
        .is_some_and(|parent| task.has_open_question(parent));
    // Its model has to read all messages before the agent ends.
    if task.has_unseen_messages(turn.seen) || task.incomplete_replies() > 0 {
        return vec![PlannedStep::TakeTurn { task: task.id }];
    }
    match (finished, turn.calls.is_empty()) {
        (Some(_), _) | (None, true) if has_helpers => Vec::new(),
        (Some(_), _) | (None, true) => {
            vec![PlannedStep::EndTask { task: task.id, outcome: TaskOutcome::Done, text: final_text(task) }]
        }
        // An agent that only delegated has nothing to do before a helper reports, and an agent that asked its requester
        // waits until the question was read.
        (None, false) if has_open_question || has_helpers && only_waits(task, turn.calls) => Vec::new(),
        (None, false) => vec![PlannedStep::TakeTurn { task: task.id }],
    }
}

/// How far the approval of a call without a result is.
enum Approval<'a> {
    NotAsked,
    /// The person was asked and has not answered yet.
    Pending,
    Answered(&'a Reply),
    /// It waits in the outbox until this time.
    InOutbox(Timestamp),
    /// It left the outbox with this permission.
    Released(Permission),
}

fn approval_state<'a>(history: &'a History, run: &Run, call: OpId) -> Approval<'a> {
    let (approval, outbox) = (approval_ask_id(call), outbox_ask_id(call));
    if let Some(AskKind::Outgoing { until, .. }) = run.ask(outbox).map(|ask| &ask.about) {
        return Approval::InOutbox(*until);
    }
    if run.ask(approval).is_some() {
        return Approval::Pending;
    }
    match (history.answers.get(&outbox), history.answers.get(&approval)) {
        (Some(no @ Reply::Deny(_)), _) => Approval::Answered(no),
        (Some(_), Some(yes)) => Approval::Released(Permission::Answered(yes.clone())),
        // A call that the rules allowed is checked again: a grant may have been revoked since.
        (Some(_), None) => Approval::Released(Permission::NotAsked),
        (None, Some(reply)) => Approval::Answered(reply),
        (None, None) => Approval::NotAsked,
    }
}

/// Whether the person still has to decide about repeating a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RepeatDecision {
    /// The call was not interrupted, or the person has decided.
    NotNeeded,
    Pending,
    NotAsked,
}

fn repeat_decision(history: &History, run: &Run, task: &TaskHistory, call: OpId) -> RepeatDecision {
    if !matches!(task.result(call), Some((ToolStatus::Interrupted { .. }, _))) {
        return RepeatDecision::NotNeeded;
    }
    let ask = repeat_ask_id(call);
    match (history.answers.contains_key(&ask), run.ask(ask).is_some()) {
        (true, _) => RepeatDecision::NotNeeded,
        (false, true) => RepeatDecision::Pending,
        (false, false) => RepeatDecision::NotAsked,
    }
}

fn is_success(status: &ToolStatus) -> bool {
    matches!(status, ToolStatus::Exited { code: 0 })
}

/// Whether an agent only delegated, answered helpers or tried to finish while helpers still work.
fn only_waits(task: &TaskHistory, calls: &[RequestedCall]) -> bool {
    calls.iter().all(|requested| {
        let is_delegation =
            [ControlTool::Delegate, ControlTool::Tell].iter().any(|tool| tool.is(&requested.tool));
        let is_success = task.result(requested.call).is_some_and(|(status, _)| is_success(status));
        is_delegation && is_success || ControlTool::Finish.is(&requested.tool)
    })
}

/// The final text of an agent: the summary of its `finish` call, or its last reply.
fn final_text(task: &TaskHistory) -> FinalText {
    let Some(turn) = task.last_turn() else {
        return FinalText::Fixed("It ended before it said anything.".into());
    };
    match turn.calls.iter().position(|requested| ControlTool::Finish.is(&requested.tool)) {
        Some(index) => FinalText::FinishSummary(turn.reply, index),
        None => FinalText::Reply(turn.reply),
    }
}

/// Why an agent cannot continue, if it cannot.
fn failure_reason(history: &History, task: &TaskHistory) -> Option<Box<str>> {
    let role = roles::named(&task.role);
    let limit = role.map_or(0, Role::max_turns);
    let has_finished = task.last_turn().is_some_and(|turn| {
        let succeeded = |call| task.result(call).is_some_and(|(status, _)| is_success(status));
        turn.calls
            .iter()
            .any(|requested| ControlTool::Finish.is(&requested.tool) && succeeded(requested.call))
    });
    if !has_finished && task.turns() >= limit && task.last_turn().is_some_and(|turn| !turn.calls.is_empty()) {
        let has_open_calls = task
            .last_turn()
            .is_some_and(|turn| turn.calls.iter().any(|requested| task.result(requested.call).is_none()));
        if !has_open_calls && history.helpers(task.id).next().is_none() {
            return Some(format!("it took {limit} turns and was not done").into());
        }
    }
    let ended = task.last_turn().map(|turn| turn.ended);
    if ended == Some(ReplyEnd::Refused) {
        return Some("its model refused to go on".into());
    }
    if task.incomplete_replies() >= MAX_INCOMPLETE_REPLIES {
        return Some("its model said nothing whole, again and again".into());
    }
    // An agent with helpers may repeat calls while it waits for them.
    let has_helpers = history.helpers(task.id).next().is_some();
    if !has_helpers && repeated_rounds(&task.entries) >= MAX_ROUNDS {
        return Some("it made the same calls with the same results again and again".into());
    }
    task.permanent_failure.clone()
}

/// After how many equal rounds of turns an agent fails. It is warned one round before.
const MAX_ROUNDS: usize = 4;
pub(crate) const ROUNDS_BEFORE_WARNING: usize = MAX_ROUNDS - 1;
/// After how many cut off or empty replies in a row an agent fails.
const MAX_INCOMPLETE_REPLIES: usize = 3;

/// Fails an agent. Its helpers and calls are stopped first.
fn fail_task(history: &History, task: &TaskHistory, reason: Box<str>) -> Vec<PlannedStep> {
    let helpers: Vec<PlannedStep> =
        history.helpers(task.id).flat_map(|helper| cancel_task(history, helper)).collect();
    if !helpers.is_empty() {
        return helpers;
    }
    if history.has_open_calls(task.id) {
        return stop_calls(history, task);
    }
    let text = FinalText::Fixed(reason.clone());
    vec![PlannedStep::EndTask { task: task.id, outcome: TaskOutcome::Failed(reason), text }]
}

/// Cancels an agent and its helpers, helpers first.
fn cancel_task(history: &History, task: &TaskHistory) -> Vec<PlannedStep> {
    let helpers: Vec<PlannedStep> =
        history.helpers(task.id).flat_map(|helper| cancel_task(history, helper)).collect();
    if !helpers.is_empty() {
        return helpers;
    }
    if history.has_open_calls(task.id) {
        return stop_calls(history, task);
    }
    vec![PlannedStep::EndTask {
        task: task.id,
        outcome: TaskOutcome::Cancelled,
        text: FinalText::Fixed("It was stopped.".into()),
    }]
}

fn stop_calls(history: &History, task: &TaskHistory) -> Vec<PlannedStep> {
    let turn = task.last_turn();
    let calls = turn.iter().flat_map(|turn| turn.calls.iter().map(|requested| requested.call));
    calls.filter(|call| history.is_open(*call)).map(|call| PlannedStep::StopCall { call }).collect()
}

/// Stops what is left of a run that the person cancelled: open calls first, then agents.
fn stop_cancelled(history: &History) -> Vec<PlannedStep> {
    let Some(first) = history.tasks.get(&history.root_task()) else { return Vec::new() };
    if history.is_working(first.id) { cancel_task(history, first) } else { Vec::new() }
}
