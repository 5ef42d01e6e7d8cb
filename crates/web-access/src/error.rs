//! Why nothing came from the web, in a sentence for the agent or the person.

use thiserror::Error;

/// Why a page or a search brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FetchError {
    /// No request was sent, so every word of the reason is ours.
    #[error("{0}")]
    NotSent(String),
    /// A request was sent, so the reason may quote the server.
    #[error("{0}")]
    Failed(String),
}

/// Why web access cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SetUpError(pub(crate) String);
