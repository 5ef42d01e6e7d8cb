//! Errors of model requests, in classes that say how the caller can react.

use std::time::Duration;

use thiserror::Error;

use crate::chat::Usage;

/// A request to a model that failed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("{model}: {message}")]
pub struct ModelError {
    /// The catalog alias of the model.
    pub model: String,
    pub class: ErrorClass,
    /// A sentence for the user that says what to do.
    pub message: String,
    /// Tokens of answers that arrived but were invalid.
    pub usage: Usage,
    /// Cost of those answers in micro-dollars; `None` if the price is unknown.
    pub cost: Option<u64>,
}

impl ModelError {
    /// An error without any usage or cost.
    pub fn new(model: impl Into<String>, class: ErrorClass, message: impl Into<String>) -> Self {
        let (model, message) = (model.into(), message.into());
        Self { model, class, message, usage: Usage::default(), cost: Some(0) }
    }
}

/// How the caller can react to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// A network error, a truncated stream or a server error: a retry may succeed.
    Retryable,
    /// Too many requests; a retry may succeed after this delay.
    RateLimit { after: Option<Duration> },
    /// The provider is overloaded.
    Overloaded,
    /// The key is missing, wrong, or lacks the permission.
    Auth,
    /// The request is invalid: a retry fails the same way.
    BadRequest,
    /// The conversation exceeds the model's context.
    ContextTooLong,
    /// The answer was invalid twice.
    Unusable,
    /// The model or provider is not configured, or cannot run on this machine.
    Unavailable,
}
