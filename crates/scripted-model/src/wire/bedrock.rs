//! Amazon Bedrock's `InvokeModelWithResponseStream` with Anthropic's models: the API reference of Bedrock Runtime,
//! and "Anthropic Claude Messages API" in the user guide.

use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::{StatusCode, body::Bytes};
use serde_json::{Value, json};

use super::{
    ErrorResponse, Request,
    anthropic::{self, check},
    event_stream::frame,
    sigv4,
};
use crate::{conversation::Conversation, failure::RequestFailure, reply::Reply};

pub(super) const REQUEST_ID: &str = "00000000-0000-4000-8000-000000000000";

/// The model in a path, still percent-encoded.
pub(super) fn model_of(path: &str) -> Option<&str> {
    let model = path.strip_prefix("/model/")?.strip_suffix("/invoke-with-response-stream")?;
    (!model.is_empty() && !model.contains('/')).then_some(model)
}

pub(super) fn read(request: &Request, key: &str) -> Result<Conversation, RequestFailure> {
    authorize(request, key)?;
    let bad_request = |message: String| RequestFailure::BadRequest(message.into());
    if let Some(kind) = request.header("content-type")
        && !kind.starts_with("application/json")
    {
        return Err(bad_request("The requested content type is not supported.".into()));
    }
    let mut conversation = check::read(&request.body, check::Host::Bedrock).map_err(bad_request)?;
    // Bedrock names the model without region and version; clients must not rely on that.
    conversation.model = model_of(&request.path).unwrap_or_default().replace("%3A", ":").replace("%3a", ":");
    Ok(conversation)
}

/// Accepts a Bedrock API key, or a signature with [`sigv4::ACCESS_KEY`] and the key as its secret.
fn authorize(request: &Request, key: &str) -> Result<(), RequestFailure> {
    let allowed = match (request.bearer(), request.header("authorization")) {
        (_, None) => return Err(RequestFailure::NoKey),
        (Some(given), _) => given == key,
        (None, Some(authorization)) => sigv4::is_valid(request, authorization, key),
    };
    if allowed { Ok(()) } else { Err(RequestFailure::WrongKey) }
}

pub(super) fn events(reply: &Reply) -> Vec<Bytes> {
    let ids = anthropic::Ids { message: "msg_bdrk_", call: "toolu_bdrk_" };
    let mut values = anthropic::values(reply, &ids);
    if let Some(Value::Object(last)) = values.last_mut() {
        let metrics = json!({
            "inputTokenCount": reply.usage.input,
            "outputTokenCount": reply.usage.output,
            "invocationLatency": 1,
            "firstByteLatency": 1,
            "cacheReadInputTokenCount": reply.usage.cache_read,
            "cacheWriteInputTokenCount": reply.usage.cache_write,
        });
        last.insert("amazon-bedrock-invocationMetrics".into(), metrics);
    }
    values.iter().enumerate().map(|(at, value)| chunk(value, at)).collect()
}

fn chunk(value: &Value, at: usize) -> Bytes {
    // Bedrock pads its payloads with `p`, so that their length does not reveal their content.
    let padding = "abcdefghijklmnopqrstuvwxyz".get(..at * 7 % 26 + 1).unwrap_or_default();
    let payload = json!({"bytes": STANDARD.encode(value.to_string()), "p": padding}).to_string();
    let headers =
        [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")];
    frame(&headers, payload.as_bytes())
}

pub(super) fn stream_error() -> Bytes {
    let headers = [
        (":exception-type", "throttlingException"),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    let message = "Too many tokens, please wait before trying again.";
    frame(&headers, json!({"message": message}).to_string().as_bytes())
}

pub(super) fn problem(failure: &RequestFailure) -> ErrorResponse {
    let mut headers = vec![("x-amzn-requestid", REQUEST_ID.to_owned())];
    let (status, kind, message) = match failure {
        RequestFailure::NoKey => (403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
        RequestFailure::WrongKey => {
            (403, "UnrecognizedClientException", "The security token included in the request is invalid.")
        }
        RequestFailure::NoSuchPath => (404, "UnknownOperationException", "Unknown operation"),
        RequestFailure::RateLimit { retry_after } => {
            headers.extend(retry_after.map(|seconds| ("retry-after", seconds.to_string())));
            (429, "ThrottlingException", "Too many requests, please wait before trying again.")
        }
        RequestFailure::Overloaded => {
            (503, "ServiceUnavailableException", "Bedrock is unable to process your request.")
        }
        RequestFailure::ContextTooLong => {
            (400, "ValidationException", "Input is too long for requested model.")
        }
        RequestFailure::Server => (
            500,
            "InternalServerException",
            "The system encountered an unexpected error during processing. Try your request again.",
        ),
        RequestFailure::BadRequest(invalid) => (400, "ValidationException", invalid.message.as_str()),
    };
    headers.push(("x-amzn-errortype", kind.to_owned()));
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    ErrorResponse { status, headers, body: json!({"message": message}) }
}
