//! Anthropic's Messages API: platform.claude.com/docs, "Streaming messages" and "Errors".

pub(super) mod check;
mod messages;

use hyper::{StatusCode, body::Bytes};
use serde_json::{Value, json};

use super::{ErrorResponse, Request};
use crate::{
    conversation::Conversation,
    failure::RequestFailure,
    reply::{Reply, Stop, fragments},
};

pub(super) const REQUEST_ID: &str = "req_01scripted";

pub(super) fn read(request: &Request, key: &str) -> Result<Conversation, RequestFailure> {
    // Both headers are accepted: Anthropic's clients sent the first until their version for 2026-10-21, and now send
    // the other.
    match request.header("x-api-key").or_else(|| request.bearer()) {
        None => return Err(RequestFailure::NoKey),
        Some(given) if given != key => return Err(RequestFailure::WrongKey),
        Some(_) => {}
    }
    let bad_request = |message: String| RequestFailure::BadRequest(message.into());
    let version = request.header("anthropic-version");
    let version = version.ok_or_else(|| bad_request("anthropic-version: header is required".into()))?;
    let known = check::Version::of_header(version);
    let known = known
        .ok_or_else(|| bad_request(format!("anthropic-version: \"{version}\" is not a valid version")))?;
    check::read(&request.body, check::Host::Anthropic(known)).map_err(bad_request)
}

pub(super) fn events(reply: &Reply) -> Vec<Bytes> {
    let ids = Ids { message: "msg_", call: "toolu_" };
    let mut values = values(reply, &ids);
    // Anthropic sends a ping after the start of the first block, and clients must ignore it.
    values.insert(2.min(values.len()), json!({"type": "ping"}));
    values.iter().map(event).collect()
}

/// The prefixes of ids.
pub(super) struct Ids {
    pub(super) message: &'static str,
    pub(super) call: &'static str,
}

/// The events as JSON, without pings.
pub(super) fn values(reply: &Reply, ids: &Ids) -> Vec<Value> {
    let mut values = vec![start(reply, ids)];
    let mut index = 0;
    if !reply.text.is_empty() {
        let block = json!({"type": "text", "text": ""});
        let deltas = fragments(&reply.text).map(|text| json!({"type": "text_delta", "text": text}));
        push_block(&mut values, index, block, deltas);
        index += 1;
    }
    for (at, call) in reply.calls.iter().enumerate() {
        let id = reply.call_id(ids.call, at);
        let block = json!({"type": "tool_use", "id": id, "name": call.tool, "input": {}});
        let parts = std::iter::once("").chain(fragments(&call.arguments));
        let deltas = parts.map(|part| json!({"type": "input_json_delta", "partial_json": part}));
        push_block(&mut values, index, block, deltas);
        index += 1;
    }
    let stop = match reply.stop {
        Stop::End => "end_turn",
        Stop::Calls => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
    };
    let details = (reply.stop == Stop::Refusal)
        .then(|| json!({"type": "refusal", "category": null, "explanation": null}));
    values.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": null, "stop_details": details},
        "usage": usage(reply, reply.usage.output),
    }));
    values.push(json!({"type": "message_stop"}));
    values
}

fn start(reply: &Reply, ids: &Ids) -> Value {
    json!({"type": "message_start", "message": {
        "id": format!("{}{}", ids.message, reply.tag),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "stop_details": null,
        "usage": usage(reply, 1),
    }})
}

fn usage(reply: &Reply, output: u64) -> Value {
    json!({
        "input_tokens": reply.usage.input,
        "cache_creation_input_tokens": reply.usage.cache_write,
        "cache_read_input_tokens": reply.usage.cache_read,
        "output_tokens": output,
    })
}

fn push_block(values: &mut Vec<Value>, index: usize, block: Value, deltas: impl Iterator<Item = Value>) {
    values.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
    values.extend(deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})));
    values.push(json!({"type": "content_block_stop", "index": index}));
}

fn event(value: &Value) -> Bytes {
    let name = value.get("type").and_then(Value::as_str).unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {value}\n\n"))
}

pub(super) fn stream_error() -> Bytes {
    event(&json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}))
}

pub(super) fn problem(failure: &RequestFailure) -> ErrorResponse {
    let mut headers = vec![("request-id", REQUEST_ID.to_owned())];
    let (status, kind, message) = match failure {
        RequestFailure::NoKey => (401, "authentication_error", "x-api-key header is required"),
        RequestFailure::WrongKey => (401, "authentication_error", "invalid x-api-key"),
        RequestFailure::NoSuchPath => (404, "not_found_error", "Not found"),
        RequestFailure::RateLimit { retry_after } => {
            headers.extend(retry_after.map(|seconds| ("retry-after", seconds.to_string())));
            headers.push(("anthropic-ratelimit-requests-remaining", "0".into()));
            let message =
                "This request would exceed your organization's rate limit of 50 requests per minute.";
            (429, "rate_limit_error", message)
        }
        RequestFailure::Overloaded => (529, "overloaded_error", "Overloaded"),
        RequestFailure::ContextTooLong => {
            (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum")
        }
        RequestFailure::Server => (500, "api_error", "Internal server error"),
        RequestFailure::BadRequest(invalid) => (400, "invalid_request_error", invalid.message.as_str()),
    };
    let body = json!({
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": REQUEST_ID,
    });
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    ErrorResponse { status, headers, body }
}
