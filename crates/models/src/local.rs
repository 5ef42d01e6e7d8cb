//! The model that runs on this machine, as the gateway sees it: somebody else keeps its process, here is only its door.

use futures_util::future::BoxFuture;
use url::Url;

use crate::{ModelError, Secret};

/// Whoever runs the local model.
pub trait LocalModel: Send + Sync {
    /// Starts it if it does not run, and says where it listens (OpenAI's chat completions).
    fn endpoint(&self) -> BoxFuture<'_, Result<LocalEndpoint, ModelError>>;

    /// What could be done with it now, without doing anything.
    fn status(&self) -> LocalStatus;
}

/// Where the local model listens.
#[derive(Debug, Clone)]
pub struct LocalEndpoint {
    /// What `/chat/completions` is appended to, such as `http://127.0.0.1:4711/v1`.
    pub base_url: Url,
    pub bearer: Option<Secret>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LocalStatus {
    /// Its weights would first have to be downloaded, and nobody was asked yet.
    Absent {
        bytes: u64,
    },
    /// The person does not want the download.
    Declined,
    Fetching {
        done: u64,
        bytes: u64,
    },
    /// It can be started.
    Idle,
    Running {
        tokens_per_second: Option<f32>,
    },
    Failed {
        reason: String,
    },
}

impl LocalStatus {
    /// Why no turn can be taken now, as a sentence; `None` if one can.
    pub fn obstacle(&self) -> Option<String> {
        let megabytes = |bytes: &u64| bytes / 1_000_000;
        match self {
            Self::Absent { bytes } => Some(format!(
                "The local model has to be downloaded first ({} MB). Agree to it in Settings, Models, or with \
                 choir models fetch.",
                megabytes(bytes)
            )),
            Self::Declined => Some(
                "The download of the local model was declined. It can be had after all in Settings, Models, or \
                 with choir models fetch."
                    .into(),
            ),
            Self::Fetching { done, bytes } => Some(format!(
                "The local model is being downloaded: {} of {} MB.",
                megabytes(done),
                megabytes(bytes)
            )),
            Self::Failed { reason } => Some(format!("The local model cannot run: {reason}")),
            Self::Idle | Self::Running { .. } => None,
        }
    }
}
