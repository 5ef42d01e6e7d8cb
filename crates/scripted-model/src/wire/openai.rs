//! OpenAI's chat completions: platform.openai.com/docs, "Chat Completions: streaming" and "Error codes".

mod check;
mod messages;

use hyper::{StatusCode, body::Bytes};
use serde_json::{Map, Value, json};

use super::{ErrorResponse, Request};
use crate::{
    conversation::Conversation,
    failure::RequestFailure,
    reply::{Reply, Stop, fragments},
};

pub(super) const REQUEST_ID: &str = "req_scripted";
/// Constant, so that the same request gets the same bytes.
const CREATED: u64 = 1_700_000_000;

pub(super) fn read(request: &Request, key: &str) -> Result<Conversation, RequestFailure> {
    match request.bearer() {
        None => return Err(RequestFailure::NoKey),
        Some(given) if given != key => return Err(RequestFailure::WrongKey),
        Some(_) => {}
    }
    check::read(&request.body).map_err(RequestFailure::BadRequest)
}

pub(super) fn events(reply: &Reply, wants_usage: bool) -> Vec<Bytes> {
    let chunks = Chunks { reply, wants_usage };
    let content = if reply.text.is_empty() { Value::Null } else { "".into() };
    let mut events = vec![chunks.delta(json!({"role": "assistant", "content": content, "refusal": null}))];
    events.extend(fragments(&reply.text).map(|text| chunks.delta(json!({"content": text}))));
    for (index, call) in reply.calls.iter().enumerate() {
        let head = json!({
            "index": index,
            "id": reply.call_id("call_", index),
            "type": "function",
            "function": {"name": call.tool, "arguments": ""},
        });
        events.push(chunks.delta(json!({"tool_calls": [head]})));
        events.extend(fragments(&call.arguments).map(|part| {
            chunks.delta(json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}))
        }));
    }
    let finish = match reply.stop {
        Stop::End => "stop",
        Stop::Calls => "tool_calls",
        Stop::Length => "length",
        Stop::Refusal => "content_filter",
    };
    events.push(chunks.choice(json!({}), Some(finish)));
    if wants_usage {
        events.push(chunks.chunk(json!([]), usage(reply)));
    }
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    events
}

struct Chunks<'a> {
    reply: &'a Reply,
    wants_usage: bool,
}

impl Chunks<'_> {
    fn delta(&self, delta: Value) -> Bytes {
        self.choice(delta, None)
    }

    fn choice(&self, delta: Value, finish: Option<&str>) -> Bytes {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        self.chunk(json!([choice]), Value::Null)
    }

    fn chunk(&self, choices: Value, usage: Value) -> Bytes {
        let mut chunk = Map::new();
        chunk.insert("id".into(), format!("chatcmpl-{}", self.reply.tag).into());
        chunk.insert("object".into(), "chat.completion.chunk".into());
        chunk.insert("created".into(), CREATED.into());
        chunk.insert("model".into(), self.reply.model.as_str().into());
        chunk.insert("service_tier".into(), "default".into());
        chunk.insert("system_fingerprint".into(), "fp_scripted".into());
        chunk.insert("choices".into(), choices);
        // If usage was requested, every chunk has the field; it is null in all but the last.
        if self.wants_usage {
            chunk.insert("usage".into(), usage);
        }
        event(&Value::Object(chunk))
    }
}

fn usage(reply: &Reply) -> Value {
    let usage = reply.usage;
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

fn event(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\n\n"))
}

const SERVER_ERROR: &str = "The server had an error while processing your request. Sorry about that!";

pub(super) fn stream_error() -> Bytes {
    event(&error(SERVER_ERROR, "server_error", None, None))
}

fn error(message: &str, kind: &str, param: Option<&str>, code: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

pub(super) fn problem(failure: &RequestFailure) -> ErrorResponse {
    let mut headers = vec![("x-request-id", REQUEST_ID.to_owned())];
    let invalid = "invalid_request_error";
    let (status, body) = match failure {
        RequestFailure::NoKey => {
            let message = "You didn't provide an API key. You need to provide your API key in an Authorization \
                           header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).";
            (401, error(message, invalid, None, None))
        }
        RequestFailure::WrongKey => {
            let message = "Incorrect API key provided: sk-****. You can find your API key at \
                           https://platform.openai.com/account/api-keys.";
            (401, error(message, invalid, None, Some("invalid_api_key")))
        }
        RequestFailure::NoSuchPath => (404, error("Invalid URL", invalid, None, None)),
        RequestFailure::RateLimit { retry_after } => {
            headers.extend(retry_after.map(|seconds| ("retry-after", seconds.to_string())));
            headers.push(("x-ratelimit-remaining-requests", "0".into()));
            let message = "Rate limit reached for requests. Please try again later.";
            (429, error(message, "requests", None, Some("rate_limit_exceeded")))
        }
        RequestFailure::Overloaded => {
            let message = "The engine is currently overloaded, please try again later.";
            (503, error(message, "server_error", None, None))
        }
        RequestFailure::ContextTooLong => {
            let message = "This model's maximum context length is 128000 tokens. However, your messages resulted \
                           in 130371 tokens. Please reduce the length of the messages.";
            (400, error(message, invalid, Some("messages"), Some("context_length_exceeded")))
        }
        RequestFailure::Server => (500, error(SERVER_ERROR, "server_error", None, None)),
        RequestFailure::BadRequest(request) => {
            (400, error(&request.message, invalid, request.param.as_deref(), request.code))
        }
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    ErrorResponse { status, headers, body }
}
