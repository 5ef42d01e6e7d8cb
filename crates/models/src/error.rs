//! Why a model did not answer, in classes that say what can be done about it.

use std::time::Duration;

use thiserror::Error;

use crate::chat::Usage;

/// Why a model did not answer.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("{model}: {message}")]
pub struct ModelError {
    /// Whom we asked.
    pub model: String,
    pub class: ErrorClass,
    /// A sentence for the person, with what to do.
    pub message: String,
    /// What answers took that made no sense.
    pub usage: Usage,
    /// What they cost in micro-dollars, if it is known.
    pub cost: Option<u64>,
}

impl ModelError {
    /// Nothing was taken.
    pub fn new(model: impl Into<String>, class: ErrorClass, message: impl Into<String>) -> Self {
        let (model, message) = (model.into(), message.into());
        Self { model, class, message, usage: Usage::default(), cost: Some(0) }
    }
}

/// What can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Once more may help: the network, a stream that broke off, an error of the server's.
    Retryable,
    /// Too many requests; after this long it may help.
    RateLimit { after: Option<Duration> },
    /// The provider has more work than it can do.
    Overloaded,
    /// The key is missing, wrong or not allowed this.
    Auth,
    /// It will be refused however often it is said.
    BadRequest,
    /// The conversation is longer than the model reads.
    ContextTooLong,
    /// The answer makes no sense, though it was asked for again.
    Unusable,
    /// No such model or provider is configured, or it cannot run here.
    Unavailable,
}

impl ErrorClass {
    /// Whether asking the same again can help.
    pub fn is_passing(self) -> bool {
        match self {
            Self::Retryable | Self::RateLimit { .. } | Self::Overloaded => true,
            Self::Auth | Self::BadRequest | Self::ContextTooLong | Self::Unusable | Self::Unavailable => {
                false
            }
        }
    }
}
