//! The protocols. Each turns a request into a [`Conversation`] as strictly as its provider does, and a [`Reply`] or a
//! [`Failure`] into the bytes that its provider would send.

mod anthropic;
mod bedrock;
mod event_stream;
mod openai;
mod sigv4;

pub use sigv4::ACCESS_KEY;

use hyper::{HeaderMap, Method, StatusCode, body::Bytes, header::HeaderValue};
use serde::Serialize;
use serde_json::Value;

use crate::{conversation::Conversation, failure::Failure, reply::Reply};

/// Whose protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// `POST /v1/messages`, server-sent events.
    Anthropic,
    /// `POST /v1/chat/completions`, server-sent events; also what compatible servers speak.
    OpenAi,
    /// `POST /model/{id}/invoke-with-response-stream`, AWS event stream with Anthropic's events.
    Bedrock,
}

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A whole answer that is no stream.
#[derive(Debug)]
pub(crate) struct Problem {
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

    /// What comes before the path of a request, as clients of that provider want to be told.
    pub(crate) fn base(self) -> &'static str {
        match self {
            Self::Anthropic | Self::Bedrock => "",
            Self::OpenAi => "/v1",
        }
    }

    /// Compatible servers have the same path below other bases.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        if path == "/v1/messages" {
            Some(Self::Anthropic)
        } else if path.ends_with("/chat/completions") {
            Some(Self::OpenAi)
        } else {
            bedrock::model_of(path).map(|_| Self::Bedrock)
        }
    }

    /// Checks all that the provider checks.
    pub(crate) fn read(self, request: &Request, key: &str) -> Result<Conversation, Failure> {
        if request.method != Method::POST {
            return Err(Failure::NoSuchPath);
        }
        match self {
            Self::Anthropic => anthropic::read(request, key),
            Self::OpenAi => openai::read(request, key),
            Self::Bedrock => bedrock::read(request, key),
        }
    }

    /// The head of an answer that streams.
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

    /// The whole stream, one event each.
    pub(crate) fn events(self, reply: &Reply, asked: &Conversation) -> Vec<Bytes> {
        match self {
            Self::Anthropic => anthropic::events(reply),
            Self::OpenAi => openai::events(reply, asked.wants_usage),
            Self::Bedrock => bedrock::events(reply),
        }
    }

    /// What a provider says in a stream that it cannot finish.
    pub(crate) fn stream_error(self) -> Bytes {
        match self {
            Self::Anthropic => anthropic::stream_error(),
            Self::OpenAi => openai::stream_error(),
            Self::Bedrock => bedrock::stream_error(),
        }
    }

    pub(crate) fn problem(self, failure: &Failure) -> Problem {
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

/// What errors call a JSON value of the wrong kind.
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

/// What all providers want of the name of a tool.
fn is_tool_name(name: &str, most: usize) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= most && name.chars().all(allowed)
}
