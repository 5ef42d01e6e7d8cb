//! Runs: their agents, model turns, questions to the person, and grants.

use shared_types::payload::capability::{CapabilityGrant, CapabilityRevoke, Grant};
use shared_types::payload::llm::LlmFail;
use shared_types::payload::run::{
    ApprovalScope, AskKind, Reply, RunAnswer, RunAsk, RunCancel, RunFail, RunPause, RunStart, RunSteer,
    RunWake,
};
use shared_types::payload::task::{TaskEnd, TaskOutcome, TaskStart, TaskTrust};
use shared_types::{AskId, GrantId, OpId, RunId, Seq, TaskId};

use super::{Draft, check_text};
use crate::run::{Ask, MAX_TASKS, Run, RunPhase, Task, TaskState};
use crate::{Rejection, RunAction, View};

const TITLE_LIMIT: u64 = 500;
const REASON_LIMIT: u64 = 4000;

pub(super) fn decide(
    view: &View,
    draft: &mut Draft,
    id: Option<RunId>,
    action: &RunAction,
) -> Result<(), Rejection> {
    let Some(id) = id else {
        return Err(Rejection::Invalid { what: "a run", reason: "the command names none".into() });
    };
    if let RunAction::Start(start) = action {
        return self::start(view, draft, id, start);
    }
    let run = view.runs.get(&id).ok_or(Rejection::NoRun { run: id })?;
    if let RunAction::RecordLoss(loss) = action {
        return record_loss(draft, loss);
    }
    if run.phase.is_over() {
        // Tasks that were working when the run ended can still be cancelled.
        let RunAction::EndTask {
            end: end @ TaskEnd { outcome: TaskOutcome::Cancelled, .. },
            report: None,
            ..
        } = action
        else {
            return Err(Rejection::RunIsOver { run: id });
        };
        return end_task(view, draft, run, end);
    }
    match action {
        RunAction::Start(_) | RunAction::RecordLoss(_) => {}
        RunAction::Steer(steer) => {
            if let Some(task) = steer.task.or_else(|| run.tasks.first().map(|first| first.id)) {
                working(run, task)?;
            }
            draft.event(steer.clone());
        }
        RunAction::Pause(why) => match run.phase {
            RunPhase::Paused(_) => {}
            RunPhase::Working | RunPhase::Cancelled | RunPhase::Failed(_) | RunPhase::Completed => {
                draft.event(RunPause { why: why.clone() });
            }
        },
        RunAction::Resume(resume) => match run.phase {
            RunPhase::Paused(_) => draft.event(resume.clone()),
            RunPhase::Working | RunPhase::Cancelled | RunPhase::Failed(_) | RunPhase::Completed => {
                if resume.budget.is_some_and(|budget| budget != run.budget) {
                    draft.event(resume.clone());
                }
            }
        },
        RunAction::HandBack { resume, words } => {
            if let RunPhase::Paused(_) = run.phase {
                let working = run.tasks.iter().filter(|task| task.state == TaskState::Working);
                for task in working {
                    draft.event(RunSteer { task: Some(task.id), words: *words });
                }
                draft.event(resume.clone());
            }
        }
        RunAction::Wake => {
            if run.clock_since.is_some() {
                draft.event(RunWake {});
            }
        }
        RunAction::Cancel => draft.event(RunCancel {}),
        RunAction::Fail { reason } => {
            check_text("a reason", reason, REASON_LIMIT)?;
            nothing_pending(view, id)?;
            draft.event(RunFail { reason: reason.clone() });
        }
        RunAction::Complete(complete) => {
            nothing_pending(view, id)?;
            draft.event(complete.clone());
        }
        RunAction::Ask(ask) => self::ask(run, draft, ask)?,
        RunAction::AskAgain(again) => {
            run.ask(again.ask).ok_or(Rejection::NoAsk { ask: again.ask })?;
            self::ask(run, draft, again)?;
        }
        RunAction::Answer { ask, reply } => answer(run, draft, id, *ask, reply)?,
        RunAction::StartTask(_) if matches!(run.phase, RunPhase::Paused(_)) => {
            return Err(Rejection::RunIsPaused { run: id });
        }
        RunAction::StartTask(task) => start_task(run, draft, id, task)?,
        RunAction::Tell(message) => {
            known(run, message.from)?;
            known(run, message.to)?;
            draft.event(message.clone());
        }
        RunAction::EndTask { end, report, seen, known: newest } => {
            not_rewound(run, id, *newest)?;
            // The agent must read the person's last message before it ends.
            if seen.is_some_and(|seen| run.task(end.task).is_some_and(|task| task.last_steer > seen)) {
                return Err(Rejection::NotHeard { task: end.task });
            }
            if let Some(report) = report {
                known(run, report.from)?;
                known(run, report.to)?;
                draft.event(report.clone());
            }
            end_task(view, draft, run, end)?;
        }
        RunAction::Trust(task) => {
            if !known(run, *task)?.taint.is_empty() {
                draft.event(TaskTrust { task: *task });
            }
        }
        RunAction::RecordReply(reply) => {
            working(run, reply.task)?;
            not_rewound(run, id, reply.seen)?;
            draft.event(reply.clone());
        }
        RunAction::RecordFailure { fail, known } => {
            working(run, fail.task)?;
            not_rewound(run, id, *known)?;
            check_text("a reason", &fail.reason, REASON_LIMIT)?;
            draft.event(fail.clone());
        }
    }
    Ok(())
}

fn start(view: &View, draft: &mut Draft, id: RunId, start: &RunStart) -> Result<(), Rejection> {
    check_line("a run's title", &start.title)?;
    if view.runs.contains(&id) {
        return Err(Rejection::RunTaken { run: id });
    }
    draft.event(start.clone());
    Ok(())
}

/// The turn was paid for, so it is recorded in any state of the run and the agent.
fn record_loss(draft: &mut Draft, loss: &LlmFail) -> Result<(), Rejection> {
    check_text("a reason", &loss.reason, REASON_LIMIT)?;
    draft.event(loss.clone());
    Ok(())
}

fn check_line(what: &'static str, text: &str) -> Result<(), Rejection> {
    check_text(what, text, TITLE_LIMIT)?;
    if text.contains('\n') {
        return Err(Rejection::Invalid { what, reason: "it has more than one line".into() });
    }
    Ok(())
}

fn known(run: &Run, task: TaskId) -> Result<&Task, Rejection> {
    run.task(task).ok_or(Rejection::NoTask { task })
}

fn working(run: &Run, task: TaskId) -> Result<&Task, Rejection> {
    let known = known(run, task)?;
    match known.state {
        TaskState::Working => Ok(known),
        TaskState::Done | TaskState::Failed | TaskState::Cancelled => Err(Rejection::TaskIsOver { task }),
    }
}

/// Refuses a result that was computed before the run was rewound.
fn not_rewound(run: &Run, id: RunId, seen: Seq) -> Result<(), Rejection> {
    if seen < run.rewound {
        Err(Rejection::RunIsBusy { run: id, what: "it was rewound to an earlier step" })
    } else {
        Ok(())
    }
}

fn start_task(run: &Run, draft: &mut Draft, id: RunId, task: &TaskStart) -> Result<(), Rejection> {
    check_line("a task's title", &task.title)?;
    check_text("a role", &task.role, 64)?;
    if run.task(task.task).is_some() {
        return Err(Rejection::TaskTaken { task: task.task });
    }
    if run.tasks.len() >= MAX_TASKS {
        let (size, limit) = (run.tasks.len() as u64 + 1, MAX_TASKS as u64);
        return Err(Rejection::TooLarge { what: "the number of agents in a run", size, limit });
    }
    match task.parent {
        Some(parent) => drop(working(run, parent)?),
        None if run.tasks.is_empty() && task.task.as_bytes() == id.as_bytes() => {}
        None => {
            let reason = "only the first agent of a run has no requester, and it has the run's id".into();
            return Err(Rejection::Invalid { what: "a task", reason });
        }
    }
    draft.event(task.clone());
    Ok(())
}

fn end_task(view: &View, draft: &mut Draft, run: &Run, end: &TaskEnd) -> Result<(), Rejection> {
    let task = end.task;
    working(run, task)?;
    let mut pending = run.tasks.iter().filter(|other| other.parent == Some(task));
    if pending.any(|child| child.state == TaskState::Working)
        || view.calls.iter().any(|(_, call)| call.task == Some(task))
    {
        return Err(Rejection::TaskIsBusy { task });
    }
    // The task's open questions end with it.
    draft.event(end.clone());
    Ok(())
}

fn ask(run: &Run, draft: &mut Draft, ask: &RunAsk) -> Result<(), Rejection> {
    working(run, ask.task)?;
    match &ask.about {
        AskKind::Approval { call, title, .. }
        | AskKind::Interrupted { call, title, .. }
        | AskKind::Outgoing { call, title, .. } => {
            not_void(run, *call)?;
            check_text("a title", title, 4000)?;
        }
        AskKind::Question { call, text, .. } => {
            not_void(run, *call)?;
            check_text("a question", text, 8000)?;
        }
    }
    // The hold of an outgoing call may be extended; any other question is asked once.
    let is_asked = |known: &Ask| known.about.needs_answer() || known.about == ask.about;
    if !run.ask(ask.ask).is_some_and(is_asked) {
        draft.event(ask.clone());
    }
    Ok(())
}

fn answer(run: &Run, draft: &mut Draft, id: RunId, ask: AskId, reply: &Reply) -> Result<(), Rejection> {
    let asked = run.ask(ask).ok_or(Rejection::NoAsk { ask })?;
    if *reply == Reply::Silence && matches!(run.phase, RunPhase::Paused(_)) {
        return Err(Rejection::RunIsPaused { run: id });
    }
    let grant = match (&asked.about, reply) {
        (AskKind::Approval { tool, pattern, .. }, Reply::Allow(scope)) => {
            let run = match scope {
                ApprovalScope::Once => None,
                ApprovalScope::Run => Some(Some(id)),
                ApprovalScope::Always => Some(None),
            };
            run.map(|run| Grant { tool: tool.clone(), pattern: pattern.clone(), run })
        }
        (
            AskKind::Approval { .. } | AskKind::Interrupted { .. } | AskKind::Outgoing { .. },
            Reply::Deny(_),
        )
        | (AskKind::Interrupted { .. } | AskKind::Outgoing { .. }, Reply::Allow(ApprovalScope::Once))
        | (AskKind::Outgoing { .. }, Reply::Silence)
        | (AskKind::Question { .. }, Reply::Words(_) | Reply::Deny(_)) => None,
        (
            AskKind::Approval { .. } | AskKind::Interrupted { .. } | AskKind::Outgoing { .. },
            Reply::Words(_),
        )
        | (
            AskKind::Interrupted { .. } | AskKind::Outgoing { .. },
            Reply::Allow(ApprovalScope::Run | ApprovalScope::Always),
        )
        | (AskKind::Approval { .. } | AskKind::Interrupted { .. }, Reply::Silence)
        | (AskKind::Question { .. }, Reply::Allow(_) | Reply::Silence) => {
            let reason = "it does not fit what was asked".into();
            return Err(Rejection::Invalid { what: "an answer", reason });
        }
    };
    draft.event(RunAnswer { ask, task: asked.task, reply: reply.clone() });
    if let Some(grant) = grant {
        draft.event(CapabilityGrant { id: GrantId::from_bytes(*ask.as_bytes()), grant });
    }
    Ok(())
}

fn nothing_pending(view: &View, run: RunId) -> Result<(), Rejection> {
    match view.unfinished_in(run) {
        Some(what) => Err(Rejection::RunIsBusy { run, what }),
        None => Ok(()),
    }
}

pub(super) fn revoke(view: &View, draft: &mut Draft, id: GrantId) -> Result<(), Rejection> {
    if !view.grants.contains(&id) {
        return Err(Rejection::NoGrant { grant: id });
    }
    draft.event(CapabilityRevoke { id });
    Ok(())
}

fn not_void(run: &Run, call: OpId) -> Result<(), Rejection> {
    if run.void_calls.contains(&call) { Err(Rejection::CallTaken { call }) } else { Ok(()) }
}

/// A call can start only in a working run, by a working agent.
pub(super) fn check_working(view: &View, run: RunId, task: TaskId, call: OpId) -> Result<(), Rejection> {
    let found = view.runs.get(&run).ok_or(Rejection::NoRun { run })?;
    not_void(found, call)?;
    match &found.phase {
        RunPhase::Working => working(found, task).map(drop),
        RunPhase::Paused(_) => Err(Rejection::RunIsPaused { run }),
        RunPhase::Cancelled | RunPhase::Failed(_) | RunPhase::Completed => Err(Rejection::RunIsOver { run }),
    }
}
