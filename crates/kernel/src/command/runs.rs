//! What a command can ask of a run.

use shared_types::payload::llm::{LlmFail, LlmReply};
use shared_types::payload::run::{PauseReason, Reply, RunAsk, RunComplete, RunResume, RunStart, RunSteer};
use shared_types::payload::task::{TaskEnd, TaskMessage, TaskStart};
use shared_types::{AskId, ContentRef, Seq, TaskId};

/// A change in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunAction {
    Start(RunStart),
    /// A message of the person to an agent, in any phase of the run.
    Steer(RunSteer),
    Pause(PauseReason),
    Resume(RunResume),
    /// Resumes a run that the person had taken over, and tells all working agents what the person did meanwhile.
    HandBack {
        resume: RunResume,
        words: ContentRef,
    },
    /// Continues a run that was working when the server stopped.
    Wake,
    Cancel,
    /// Ends a run that has nothing pending.
    Fail {
        reason: Box<str>,
    },
    Complete(RunComplete),
    Ask(RunAsk),
    /// Replaces an open question. Refused if it is answered already.
    AskAgain(RunAsk),
    Answer {
        ask: AskId,
        reply: Reply,
    },
    StartTask(TaskStart),
    Tell(TaskMessage),
    /// Ends the task of an agent that has no working helpers, and reports to its requester.
    EndTask {
        end: TaskEnd,
        report: Option<TaskMessage>,
        /// The newest event that the agent had read when it finished; none if it is ended from outside.
        seen: Option<Seq>,
        /// The newest event of the run that the caller knew.
        known: Seq,
    },
    Trust(TaskId),
    RecordReply(LlmReply),
    RecordFailure {
        fail: LlmFail,
        /// The newest event of the run that the caller knew when the turn began.
        known: Seq,
    },
    /// The cost of a turn whose result is not used any more, in any phase of the run.
    RecordLoss(LlmFail),
}
