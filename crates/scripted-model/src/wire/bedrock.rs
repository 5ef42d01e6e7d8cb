//! Amazon Bedrock's `InvokeModelWithResponseStream` with Anthropic's models: the API reference of Bedrock Runtime, and
//! "Anthropic Claude Messages API" in the user guide.

use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::{StatusCode, body::Bytes};
use serde_json::{Value, json};

use super::{
    Problem, Request,
    anthropic::{self, check},
    event_stream::frame,
    sigv4,
};
use crate::{conversation::Conversation, failure::Failure, reply::Reply};

pub(super) const REQUEST_ID: &str = "00000000-0000-4000-8000-000000000000";

/// The model that a path names, still percent-encoded.
pub(super) fn model_of(path: &str) -> Option<&str> {
    let model = path.strip_prefix("/model/")?.strip_suffix("/invoke-with-response-stream")?;
    (!model.is_empty() && !model.contains('/')).then_some(model)
}

pub(super) fn read(request: &Request, key: &str) -> Result<Conversation, Failure> {
    authorize(request, key)?;
    let complain = |message: String| Failure::BadRequest(message.into());
    if let Some(kind) = request.header("content-type")
        && !kind.starts_with("application/json")
    {
        return Err(complain("The requested content type is not supported.".into()));
    }
    let mut conversation = check::read(&request.body, check::Host::Bedrock).map_err(complain)?;
    // The real service names the model without region and version; nobody may rely on that.
    conversation.model = model_of(&request.path).unwrap_or_default().replace("%3A", ":").replace("%3a", ":");
    Ok(conversation)
}

/// An API key of Bedrock's, or a signature with [`sigv4::ACCESS_KEY`] and the key as its secret.
fn authorize(request: &Request, key: &str) -> Result<(), Failure> {
    let allowed = match (request.bearer(), request.header("authorization")) {
        (_, None) => return Err(Failure::NoKey),
        (Some(given), _) => given == key,
        (None, Some(authorization)) => sigv4::is_valid(request, authorization, key),
    };
    if allowed { Ok(()) } else { Err(Failure::WrongKey) }
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
    // The real service pads its payloads with `p`, so that their length says nothing of what they hold.
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

pub(super) fn problem(failure: &Failure) -> Problem {
    let mut headers = vec![("x-amzn-requestid", REQUEST_ID.to_owned())];
    let (status, kind, message) = match failure {
        Failure::NoKey => (403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
        Failure::WrongKey => {
            (403, "UnrecognizedClientException", "The security token included in the request is invalid.")
        }
        Failure::NoSuchPath => (404, "UnknownOperationException", "Unknown operation"),
        Failure::RateLimit { retry_after } => {
            headers.extend(retry_after.map(|seconds| ("retry-after", seconds.to_string())));
            (429, "ThrottlingException", "Too many requests, please wait before trying again.")
        }
        Failure::Overloaded => {
            (503, "ServiceUnavailableException", "Bedrock is unable to process your request.")
        }
        Failure::ContextTooLong => (400, "ValidationException", "Input is too long for requested model."),
        Failure::Server => (
            500,
            "InternalServerException",
            "The system encountered an unexpected error during processing. Try your request again.",
        ),
        Failure::BadRequest(complaint) => (400, "ValidationException", complaint.message.as_str()),
    };
    headers.push(("x-amzn-errortype", kind.to_owned()));
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Problem { status, headers, body: json!({"message": message}) }
}
