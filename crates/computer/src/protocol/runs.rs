//! Requests about runs of agents, and their answers. Runs, questions and grants are named by their id or a part of it,
//! as a person types it.

use serde::{Deserialize, Serialize};
use shared_types::payload::run::Reply;
use shared_types::wire::{
    GrantList, Questions, RunControl, RunDetails, RunLine, RunList, StartRun, Step, StepDetail,
};
use shared_types::{Seq, TaskId};

use super::{CaptureNeed, Choices};

/// A request about runs. What a person does to a run is only recorded; the process that executes the run follows the
/// log and acts on it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RunRequest {
    /// A resend is recognised by the envelope's command id.
    Start(StartRun),
    /// The newest runs, or those that started before an event.
    List {
        before: Option<Seq>,
    },
    Show {
        run: String,
    },
    /// The newest steps, or those before an event.
    Steps {
        run: String,
        before: Option<Seq>,
    },
    /// Input and output of one step.
    #[serde(rename = "parts")]
    StepDetail {
        run: String,
        seq: Seq,
    },
    #[serde(rename = "gesture")]
    Control {
        run: String,
        #[serde(rename = "gesture")]
        control: RunControl,
    },
    /// Undoes all changes of its calls to files.
    Undo {
        run: String,
        choices: Choices,
        preview: bool,
    },
    Redo {
        run: String,
        choices: Choices,
        preview: bool,
    },
    /// Rewinds it to before a step, and undoes the changes of its calls to files since then.
    Retry {
        run: String,
        step: Seq,
        choices: Choices,
        preview: bool,
    },
    /// The open questions of all runs.
    Questions,
    /// Answers a question; without an id, the only open one.
    Answer {
        ask: Option<String>,
        reply: Reply,
    },
    /// The model that the settings name for the lead agent.
    Model,
    Grants,
    Revoke {
        grant: String,
    },
    /// Reports what happens after an event until the run is over, waits for the person or is paused.
    Follow {
        run: String,
        after: Seq,
    },
}

impl RunRequest {
    /// See [`Request::capture_need`](super::Request::capture_need).
    pub(super) fn capture_need(&self) -> CaptureNeed {
        match self {
            // A person who gives the work back may just have saved a file.
            Self::Control { control: RunControl::Resume { .. }, .. }
            | Self::Undo { .. }
            | Self::Redo { .. }
            | Self::Retry { .. } => CaptureNeed::FullScan,
            // A file that is attached may have been made a moment ago.
            Self::Start(start) if !start.attached.is_empty() => CaptureNeed::FullScan,
            Self::Start(_)
            | Self::List { .. }
            | Self::Show { .. }
            | Self::Steps { .. }
            | Self::StepDetail { .. }
            | Self::Control { .. }
            | Self::Questions
            | Self::Answer { .. }
            | Self::Model
            | Self::Grants
            | Self::Revoke { .. }
            | Self::Follow { .. } => CaptureNeed::None,
        }
    }
}

/// The answer to a request about runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunResponse {
    Line(RunLine),
    List(RunList),
    Details(Box<RunDetails>),
    Steps(Vec<Step>),
    #[serde(rename = "parts")]
    StepDetail(Box<StepDetail>),
    Questions(Questions),
    Grants(GrantList),
    /// `None` if the catalog decides.
    Model(Option<String>),
}

/// What happens in a run that a caller follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunUpdate {
    /// A step. A call is sent again when it has a result.
    Step(Box<Step>),
    /// Text of an agent, as its model streams it.
    #[serde(rename = "said")]
    StreamedText { task: TaskId, text: String },
}
