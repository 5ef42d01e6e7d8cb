//! The gateway's interface to the local model. The implementation, which runs the process, is in another crate.

use futures_util::future::BoxFuture;
use url::Url;

use crate::{ApiKey, ModelError, ModelProblem};

/// Runs the local model.
pub trait LocalModel: Send + Sync {
    /// Starts the model if needed and returns its endpoint (OpenAI's chat completions).
    fn endpoint(&self) -> BoxFuture<'_, Result<LocalModelEndpoint, ModelError>>;

    /// The current status; has no side effects.
    fn status(&self) -> LocalModelStatus;
}

/// The address and token of the local model.
#[derive(Debug, Clone)]
pub struct LocalModelEndpoint {
    /// The URL before `/chat/completions`, such as `http://127.0.0.1:4711/v1`.
    pub base_url: Url,
    pub bearer: Option<ApiKey>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LocalModelStatus {
    /// The weights are not downloaded, and the user has not been asked yet.
    Absent {
        bytes: u64,
    },
    /// The user declined the download.
    Declined,
    Fetching {
        done: u64,
        bytes: u64,
    },
    /// The weights are here and the process can be started.
    Idle,
    Running {
        tokens_per_second: Option<f32>,
    },
    Failed {
        reason: String,
    },
}

impl LocalModelStatus {
    /// Why the model cannot be used now; `None` if it can.
    pub fn problem(&self) -> Option<ModelProblem> {
        let megabytes = |bytes: &u64| bytes / 1_000_000;
        match self {
            Self::Absent { bytes } => Some(ModelProblem {
                reason: format!("The local model has to be downloaded first ({} MB).", megabytes(bytes)),
                advice: "Confirm the download in Settings, Models, or with choir models fetch.".into(),
            }),
            Self::Declined => Some(ModelProblem {
                reason: "The download of the local model was declined.".into(),
                advice: "You can still start it in Settings, Models, or with choir models fetch.".into(),
            }),
            Self::Fetching { done, bytes } => Some(ModelProblem::without_advice(format!(
                "The local model is being downloaded: {} of {} MB.",
                megabytes(done),
                megabytes(bytes)
            ))),
            Self::Failed { reason } => {
                Some(ModelProblem::without_advice(format!("The local model cannot run: {reason}")))
            }
            Self::Idle | Self::Running { .. } => None,
        }
    }

    /// Why the model failed to run.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed { reason } => Some(reason),
            Self::Absent { .. }
            | Self::Declined
            | Self::Fetching { .. }
            | Self::Idle
            | Self::Running { .. } => None,
        }
    }

    /// [`Self::problem`] as one text.
    pub fn obstacle(&self) -> Option<String> {
        self.problem().map(|problem| problem.to_string())
    }
}
