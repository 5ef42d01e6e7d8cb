//! What is asked about runs of agents, and what is told. A run, a question and a permission are named by their id or a
//! part of it, as a person types them.

use serde::{Deserialize, Serialize};
use shared_types::payload::run::Reply;
use shared_types::wire::{
    GrantList, Questions, RunControl, RunDetails, RunLine, RunList, StartRun, Step, StepDetail,
};
use shared_types::{Seq, TaskId};

use super::{CaptureNeed, Choices};

/// Something about runs. A gesture is only recorded; the process that carries out the run follows the log and acts on it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RunRequest {
    /// The envelope's command is the one that counts for a resend.
    Start(StartRun),
    /// The newest, or those that began before an event.
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
    /// Undoes everything that its calls did to files.
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
    /// Lets it go on from before a step, and takes back what its calls did to files since.
    Retry {
        run: String,
        step: Seq,
        choices: Choices,
        preview: bool,
    },
    /// What waits for the person, in all runs.
    Questions,
    /// Answers a question, or the only one there is.
    Answer {
        ask: Option<String>,
        reply: Reply,
    },
    /// Which model the person wants for the agent that takes objectives.
    Model,
    Grants,
    Revoke {
        grant: String,
    },
    /// Tells what happens after an event until the run is over, waits for the person or is paused.
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

/// What is told about runs.
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
    /// Nothing, where they leave that to the catalog.
    Model(Option<String>),
}

/// What happens in a run that is followed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunUpdate {
    /// A step, and once more when a call is answered.
    Step(Box<Step>),
    /// Text of an agent, as its model streams it.
    #[serde(rename = "said")]
    StreamedText { task: TaskId, text: String },
}
