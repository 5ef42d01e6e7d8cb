//! Why a request to the web failed, in a sentence for the agent or the person.

use thiserror::Error;

/// Why a page or a search failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FetchError {
    /// No request was sent, so the text is entirely ours.
    #[error("{0}")]
    NotSent(String),
    /// A request was sent, so the text may quote the server.
    #[error("{0}")]
    Failed(String),
}

/// Why web access cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SetupError(pub(crate) String);
