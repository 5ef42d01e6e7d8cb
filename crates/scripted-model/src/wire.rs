//! The wire protocols. Each one parses a request into a [`Conversation`] as strictly as its provider does, and
//! encodes a [`Reply`] or a [`RequestFailure`] as the provider would send it.

mod anthropic;
mod bedrock;
mod event_stream;
mod openai;
mod sigv4;

pub use sigv4::ACCESS_KEY;

use hyper::{HeaderMap, Method, StatusCode, body::Bytes, header::HeaderValue};
use serde::Serialize;
use serde_json::Value;

use crate::{conversation::Conversation, failure::RequestFailure, reply::Reply};

/// The wire protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// `POST /v1/messages`, server-sent events.
    Anthropic,
    /// `POST /v1/chat/completions`, server-sent events; also for compatible servers.
    OpenAi,
    /// `POST /model/{id}/invoke-with-response-stream`, AWS event stream with Anthropic's events.
    Bedrock,
}

/// A request as received.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A complete response that is not a stream.
#[derive(Debug)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

impl Wire {
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Bedrock];

    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Bedrock => "bedrock",
        }
    }

    /// The base path that clients of this provider are configured with.
    pub(crate) fn base(self) -> &'static str {
        match self {
            Self::Anthropic | Self::Bedrock => "",
            Self::OpenAi => "/v1",
        }
    }

    /// Compatible servers use the same path below other base paths.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        if path == "/v1/messages" {
            Some(Self::Anthropic)
        } else if path.ends_with("/chat/completions") {
            Some(Self::OpenAi)
        } else {
            bedrock::model_of(path).map(|_| Self::Bedrock)
        }
    }

    /// Checks everything that the provider checks.
    pub(crate) fn read(self, request: &Request, key: &str) -> Result<Conversation, RequestFailure> {
        if request.method != Method::POST {
            return Err(RequestFailure::NoSuchPath);
        }
        match self {
            Self::Anthropic => anthropic::read(request, key),
            Self::OpenAi => openai::read(request, key),
            Self::Bedrock => bedrock::read(request, key),
        }
    }

    /// The headers of a streaming response.
    pub(crate) fn stream_headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Anthropic => &[
                ("content-type", "text/event-stream; charset=utf-8"),
                ("cache-control", "no-cache"),
                ("request-id", anthropic::REQUEST_ID),
            ],
            Self::OpenAi => &[
                ("content-type", "text/event-stream; charset=utf-8"),
                ("cache-control", "no-cache"),
                ("x-request-id", openai::REQUEST_ID),
            ],
            Self::Bedrock => &[
                ("content-type", "application/vnd.amazon.eventstream"),
                ("x-amzn-bedrock-content-type", "application/json"),
                ("x-amzn-requestid", bedrock::REQUEST_ID),
            ],
        }
    }

    /// The complete stream, one item per event.
    pub(crate) fn events(self, reply: &Reply, conversation: &Conversation) -> Vec<Bytes> {
        match self {
            Self::Anthropic => anthropic::events(reply),
            Self::OpenAi => openai::events(reply, conversation.wants_usage),
            Self::Bedrock => bedrock::events(reply),
        }
    }

    /// The error that a provider sends inside a stream.
    pub(crate) fn stream_error(self) -> Bytes {
        match self {
            Self::Anthropic => anthropic::stream_error(),
            Self::OpenAi => openai::stream_error(),
            Self::Bedrock => bedrock::stream_error(),
        }
    }

    pub(crate) fn problem(self, failure: &RequestFailure) -> ErrorResponse {
        match self {
            Self::Anthropic => anthropic::problem(failure),
            Self::OpenAi => openai::problem(failure),
            Self::Bedrock => bedrock::problem(failure),
        }
    }
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(HeaderValue::to_str)?.ok()
    }

    fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }
}

/// The name of a JSON type in error messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Whether a tool name is valid for all providers.
fn is_tool_name(name: &str, most: usize) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= most && name.chars().all(allowed)
}
