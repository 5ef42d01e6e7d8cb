//! What a provider means when it refuses, from the shapes that each of them documents.
//!
//! Their words for it do not contradict each other, so one table serves all: first the code in the body or the
//! exception's name, then words of the message that tell a long prompt, then the HTTP status.

use std::time::SystemTime;

use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use super::retry_after;
use crate::ErrorClass;

/// Why there is no answer, before it is known whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }

    /// The stream ended before the mark that ends an answer.
    pub(crate) fn cut() -> Self {
        Self::new(ErrorClass::Retryable, "The answer broke off before its end.")
    }

    /// The stream holds something that its protocol does not know.
    pub(crate) fn garbled(what: impl std::fmt::Display) -> Self {
        Self::new(ErrorClass::Retryable, format!("The answer cannot be read: {what}"))
    }
}

const LIMITED: ErrorClass = ErrorClass::RateLimit { after: None };

/// Codes, types and exceptions in lower case, from the documentation of Anthropic, OpenAI, Z.ai (numbers), Moonshot,
/// llama.cpp and Bedrock.
const CODES: &[(&str, ErrorClass)] = &[
    ("authentication_error", ErrorClass::Auth),
    ("invalid_api_key", ErrorClass::Auth),
    ("invalid_authentication_error", ErrorClass::Auth),
    ("incorrect_api_key_error", ErrorClass::Auth),
    ("permission_error", ErrorClass::Auth),
    ("permission_denied_error", ErrorClass::Auth),
    ("billing_error", ErrorClass::Auth),
    // An empty account does not fill while one waits.
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
    ("rate_limit_error", LIMITED),
    ("rate_limit_exceeded", LIMITED),
    ("rate_limit_reached_error", LIMITED),
    ("1302", LIMITED),
    ("1303", LIMITED),
    ("throttlingexception", LIMITED),
    ("servicequotaexceededexception", LIMITED),
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

/// How providers say that a prompt is too long when they have no code for it.
const TOO_LONG: &[&str] = &[
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

/// A refusal by HTTP status.
pub(super) fn of_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
    let said = Said::from_body(body);
    let exception = headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok());
    let exception = exception.and_then(|name| name.split(':').next()).map(str::to_lowercase);
    let codes: Vec<String> = exception.into_iter().chain(said.codes.clone()).collect();
    let class = classify(&codes, &said.message).unwrap_or_else(|| of_status(status));
    let class = match class {
        ErrorClass::RateLimit { .. } => {
            ErrorClass::RateLimit { after: retry_after::of_headers(headers, SystemTime::now()) }
        }
        ErrorClass::Retryable
        | ErrorClass::Overloaded
        | ErrorClass::Auth
        | ErrorClass::BadRequest
        | ErrorClass::ContextTooLong
        | ErrorClass::Unusable
        | ErrorClass::Unavailable => class,
    };
    Failure::new(class, sentence(class, &format!("{} (HTTP {})", said.message, status.as_u16())))
}

/// An error that arrived inside a stream, or a frame of Bedrock's that is an exception of this name.
pub(super) fn of_event(exception: Option<&str>, body: &[u8]) -> Failure {
    let said = Said::from_body(body);
    let codes: Vec<String> = exception.map(str::to_lowercase).into_iter().chain(said.codes).collect();
    let class = classify(&codes, &said.message).unwrap_or_else(|| {
        match codes.iter().any(|code| is_our_fault(code)) {
            true => ErrorClass::BadRequest,
            false => ErrorClass::Retryable,
        }
    });
    Failure::new(class, sentence(class, &said.message))
}

fn is_our_fault(code: &str) -> bool {
    code.contains("invalid_request") || code.contains("validation") || code.contains("badrequest")
}

fn classify(codes: &[String], message: &str) -> Option<ErrorClass> {
    let message = message.to_lowercase();
    if TOO_LONG.iter().any(|words| message.contains(words)) {
        return Some(ErrorClass::ContextTooLong);
    }
    if message.contains("credit balance is too low") {
        return Some(ErrorClass::Auth);
    }
    codes.iter().find_map(|code| CODES.iter().find(|(known, _)| known == code).map(|(_, class)| *class))
}

fn of_status(status: StatusCode) -> ErrorClass {
    match status.as_u16() {
        401..=403 => ErrorClass::Auth,
        300..=399 | 404 | 405 | 410 => ErrorClass::Unavailable,
        408 | 409 | 424 | 425 => ErrorClass::Retryable,
        413 => ErrorClass::ContextTooLong,
        429 => LIMITED,
        503 | 529 => ErrorClass::Overloaded,
        500..=599 => ErrorClass::Retryable,
        _ => ErrorClass::BadRequest,
    }
}

/// What the provider said, with what to do about it.
fn sentence(class: ErrorClass, said: &str) -> String {
    let said: String = said.chars().take(400).collect();
    match class {
        ErrorClass::Auth => format!("{said}. Check the key and the account in Settings, Models."),
        ErrorClass::ContextTooLong => format!("{said}. The conversation has to become shorter."),
        ErrorClass::RateLimit { .. } => format!("{said}. The provider allows fewer requests than this."),
        ErrorClass::Unavailable => format!("{said}. Check the model's id and the provider's base_url."),
        ErrorClass::Retryable | ErrorClass::Overloaded | ErrorClass::BadRequest | ErrorClass::Unusable => {
            said
        }
    }
}

/// A provider's words.
struct Said {
    codes: Vec<String>,
    message: String,
}

impl Said {
    /// Reads `{error: {type, code, message}}`, `{error: "…"}`, `{type, message}` and `{message}`; else takes the text.
    fn from_body(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let message = if text.is_empty() { "The provider refused and said nothing".into() } else { text };
            return Self { codes: Vec::new(), message };
        };
        let inner = value.get("error").filter(|error| error.is_object()).unwrap_or(&value);
        let words = |key: &str| match inner.get(key) {
            Some(Value::String(word)) => Some(word.to_lowercase()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
        };
        let codes = ["code", "type", "status", "__type"].into_iter().filter_map(words).collect();
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
