//! Classifies the error responses of providers.
//!
//! The providers' documented error codes do not contradict each other, so one table serves all. The class comes from a
//! phrase in the message that reports a long prompt, then from the code in the body or the exception's name, then from
//! the HTTP status.

use std::time::SystemTime;

use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use super::retry_after;
use crate::ErrorClass;

/// A failed request, before the name of the model is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderError {
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
}

impl ProviderError {
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }

    /// The stream ended before the end marker of the answer.
    pub(crate) fn truncated() -> Self {
        Self::new(ErrorClass::Retryable, "The answer broke off before its end.")
    }

    /// The stream violates its protocol.
    pub(crate) fn malformed(problem: impl std::fmt::Display) -> Self {
        Self::new(ErrorClass::Retryable, format!("The provider's response is malformed: {problem}"))
    }
}

const RATE_LIMITED: ErrorClass = ErrorClass::RateLimit { after: None };

/// Error codes, types and exceptions in lower case, from the documentation of Anthropic, OpenAI, Z.ai (numbers),
/// Moonshot, llama.cpp and Bedrock.
const CODES: &[(&str, ErrorClass)] = &[
    ("authentication_error", ErrorClass::Auth),
    ("invalid_api_key", ErrorClass::Auth),
    ("invalid_authentication_error", ErrorClass::Auth),
    ("incorrect_api_key_error", ErrorClass::Auth),
    ("permission_error", ErrorClass::Auth),
    ("permission_denied_error", ErrorClass::Auth),
    ("billing_error", ErrorClass::Auth),
    // Waiting does not fill an empty account.
    ("insufficient_quota", ErrorClass::Auth),
    ("exceeded_current_quota_error", ErrorClass::Auth),
    ("1000", ErrorClass::Auth),
    ("1001", ErrorClass::Auth),
    ("1002", ErrorClass::Auth),
    ("1003", ErrorClass::Auth),
    ("1113", ErrorClass::Auth),
    ("accessdeniedexception", ErrorClass::Auth),
    ("unrecognizedclientexception", ErrorClass::Auth),
    ("expiredtokenexception", ErrorClass::Auth),
    ("invalidsignatureexception", ErrorClass::Auth),
    ("missingauthenticationtokenexception", ErrorClass::Auth),
    ("context_length_exceeded", ErrorClass::ContextTooLong),
    ("request_too_large", ErrorClass::ContextTooLong),
    ("exceed_context_size_error", ErrorClass::ContextTooLong),
    ("1261", ErrorClass::ContextTooLong),
    ("rate_limit_error", RATE_LIMITED),
    ("rate_limit_exceeded", RATE_LIMITED),
    ("rate_limit_reached_error", RATE_LIMITED),
    ("1302", RATE_LIMITED),
    ("1303", RATE_LIMITED),
    ("throttlingexception", RATE_LIMITED),
    ("servicequotaexceededexception", RATE_LIMITED),
    ("overloaded_error", ErrorClass::Overloaded),
    ("engine_overloaded_error", ErrorClass::Overloaded),
    ("server_overloaded", ErrorClass::Overloaded),
    ("1305", ErrorClass::Overloaded),
    ("unavailable_error", ErrorClass::Overloaded),
    ("serviceunavailableexception", ErrorClass::Overloaded),
    ("modelnotreadyexception", ErrorClass::Overloaded),
    ("api_error", ErrorClass::Retryable),
    ("server_error", ErrorClass::Retryable),
    ("timeout_error", ErrorClass::Retryable),
    ("internalserverexception", ErrorClass::Retryable),
    ("modelstreamerrorexception", ErrorClass::Retryable),
    ("modeltimeoutexception", ErrorClass::Retryable),
    ("modelerrorexception", ErrorClass::Retryable),
    ("not_found_error", ErrorClass::Unavailable),
    ("model_not_found", ErrorClass::Unavailable),
    ("resource_not_found_error", ErrorClass::Unavailable),
    ("1211", ErrorClass::Unavailable),
    ("resourcenotfoundexception", ErrorClass::Unavailable),
];

/// Phrases for a prompt that is too long, for providers without a code for it.
const TOO_LONG_PHRASES: &[&str] = &[
    "prompt is too long",
    "input is too long",
    "exceed context limit",
    "maximum context length",
    "context length exceeded",
    "exceeds the available context size",
    "exceeded model token limit",
    "exceeds the model's context",
    "too many input tokens",
    "prompt exceeds max length",
];

/// The error in an HTTP response.
pub(super) fn from_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ProviderError {
    let error = ErrorBody::parse(body);
    let exception = headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok());
    let exception = exception.and_then(|name| name.split(':').next()).map(str::to_lowercase);
    let codes: Vec<String> = exception.into_iter().chain(error.codes.clone()).collect();
    let class = classify(&codes, &error.message).unwrap_or_else(|| class_of_status(status));
    let class = match class {
        ErrorClass::RateLimit { .. } => {
            ErrorClass::RateLimit { after: retry_after::from_headers(headers, SystemTime::now()) }
        }
        ErrorClass::Retryable
        | ErrorClass::Overloaded
        | ErrorClass::Auth
        | ErrorClass::BadRequest
        | ErrorClass::ContextTooLong
        | ErrorClass::Unusable
        | ErrorClass::Unavailable => class,
    };
    ProviderError::new(class, user_message(class, &format!("{} (HTTP {})", error.message, status.as_u16())))
}

/// An error inside a stream. `exception` is the name of a Bedrock exception frame.
pub(super) fn from_event(exception: Option<&str>, body: &[u8]) -> ProviderError {
    let error = ErrorBody::parse(body);
    let codes: Vec<String> = exception.map(str::to_lowercase).into_iter().chain(error.codes).collect();
    let class = classify(&codes, &error.message).unwrap_or_else(|| {
        match codes.iter().any(|code| is_invalid_request(code)) {
            true => ErrorClass::BadRequest,
            false => ErrorClass::Retryable,
        }
    });
    ProviderError::new(class, user_message(class, &error.message))
}

fn is_invalid_request(code: &str) -> bool {
    code.contains("invalid_request") || code.contains("validation") || code.contains("badrequest")
}

fn classify(codes: &[String], message: &str) -> Option<ErrorClass> {
    let message = message.to_lowercase();
    if TOO_LONG_PHRASES.iter().any(|phrase| message.contains(phrase)) {
        return Some(ErrorClass::ContextTooLong);
    }
    if message.contains("credit balance is too low") {
        return Some(ErrorClass::Auth);
    }
    codes.iter().find_map(|code| CODES.iter().find(|(known, _)| known == code).map(|(_, class)| *class))
}

fn class_of_status(status: StatusCode) -> ErrorClass {
    match status.as_u16() {
        401..=403 => ErrorClass::Auth,
        300..=399 | 404 | 405 | 410 => ErrorClass::Unavailable,
        408 | 409 | 424 | 425 => ErrorClass::Retryable,
        413 => ErrorClass::ContextTooLong,
        429 => RATE_LIMITED,
        503 | 529 => ErrorClass::Overloaded,
        500..=599 => ErrorClass::Retryable,
        _ => ErrorClass::BadRequest,
    }
}

/// The provider's message, followed by advice for the user.
fn user_message(class: ErrorClass, message: &str) -> String {
    let message: String = message.chars().take(400).collect();
    match class {
        ErrorClass::Auth => format!("{message}. Check the key and the account in Settings, Models."),
        ErrorClass::ContextTooLong => format!("{message}. The conversation has to become shorter."),
        ErrorClass::RateLimit { .. } => format!("{message}. The provider's rate limit is reached."),
        ErrorClass::Unavailable => format!("{message}. Check the model's id and the provider's base_url."),
        ErrorClass::Retryable | ErrorClass::Overloaded | ErrorClass::BadRequest | ErrorClass::Unusable => {
            message
        }
    }
}

/// The codes and the message of an error body.
struct ErrorBody {
    codes: Vec<String>,
    message: String,
}

impl ErrorBody {
    /// Understands `{error: {type, code, message}}`, `{error: "…"}`, `{type, message}` and `{message}`; any other body
    /// is the message itself.
    fn parse(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let message = if text.is_empty() { "The provider returned an empty error".into() } else { text };
            return Self { codes: Vec::new(), message };
        };
        let inner = value.get("error").filter(|error| error.is_object()).unwrap_or(&value);
        let code = |key: &str| match inner.get(key) {
            Some(Value::String(code)) => Some(code.to_lowercase()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
        };
        let codes = ["code", "type", "status", "__type"].into_iter().filter_map(code).collect();
        let message =
            [inner.get("message"), inner.get("Message"), value.get("error"), inner.get("originalMessage")]
                .into_iter()
                .find_map(|message| message.and_then(Value::as_str))
                .map_or_else(|| text.chars().take(400).collect(), str::to_owned);
        Self { codes, message: message.trim_end_matches('.').to_owned() }
    }
}

#[cfg(test)]
mod tests;
