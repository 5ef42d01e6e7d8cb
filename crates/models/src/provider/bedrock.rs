//! Claude on Amazon Bedrock: Anthropic's events inside AWS frames, authorized by an AWS signature or an API key.

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::header::{HeaderMap, HeaderValue};
use serde::Deserialize;

use super::{
    HttpPost, ProviderError, RawReply, ReplyReader, RequestTarget, WireProtocol,
    anthropic::ClaudeMessage,
    claude_body, error_response,
    event_stream::{Frame, FrameDecoder},
    http,
    sigv4::{self, AccessKey, Signing},
};
use crate::{
    AuthScheme, ErrorClass,
    chat::{ChatRequest, Delta},
};

const VERSION: &str = "bedrock-2023-05-31";

pub(super) struct Bedrock;

impl WireProtocol for Bedrock {
    fn post(&self, target: &RequestTarget<'_>, request: &ChatRequest) -> Result<HttpPost, ProviderError> {
        let mut body = claude_body::body(target, request);
        body.insert("anthropic_version".into(), VERSION.into());
        claude_body::set_extra_fields(&mut body, target);
        let id = sigv4::encode(&target.model.id).replace('/', "%2F");
        let path = format!("model/{id}/invoke-with-response-stream");
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("application/vnd.amazon.eventstream"));
        let mut post = http::post(target, &path, headers, &body.into())?;
        // Splitting a JSON key at its colons would send the secret as the session token.
        if target.key.is_some_and(|key| key.expose().contains('"')) {
            let message =
                "A Bedrock key is an API key, or an access key as ID:SECRET or ID:SECRET:SESSION_TOKEN.";
            return Err(ProviderError::new(ErrorClass::Auth, format!("{message} Enter it again.")));
        }
        let access_key = target.key.and_then(|key| AccessKey::parse(key.expose()));
        match (target.provider.auth, access_key) {
            (AuthScheme::Aws, Some(key)) => sign(&mut post, target, key)?,
            (AuthScheme::Aws, None) | (AuthScheme::ApiKey | AuthScheme::Bearer | AuthScheme::None, _) => {
                http::authorize(&mut post.headers, target)?;
            }
        }
        Ok(post)
    }

    fn reader(&self) -> Box<dyn ReplyReader> {
        Box::new(BedrockReader::default())
    }
}

fn sign(post: &mut HttpPost, target: &RequestTarget<'_>, key: AccessKey<'_>) -> Result<(), ProviderError> {
    let region = target.provider.region.as_deref();
    let region =
        region.ok_or_else(|| ProviderError::new(ErrorClass::Unavailable, "The provider has no region."))?;
    let signing = Signing { key, region, service: "bedrock", now: target.now };
    let signed = signing.sign(&post.url, http::JSON, &post.body);
    let signed = signed
        .ok_or_else(|| ProviderError::new(ErrorClass::Unavailable, "The clock of this machine is wrong."))?;
    post.headers.insert("x-amz-date", http::sensitive(&signed.date)?);
    post.headers.insert("authorization", http::sensitive(&signed.authorization)?);
    if let Some(token) = key.session {
        post.headers.insert("x-amz-security-token", http::sensitive(token)?);
    }
    Ok(())
}

#[derive(Default)]
struct BedrockReader {
    frames: FrameDecoder,
    message: ClaudeMessage,
}

impl ReplyReader for BedrockReader {
    fn read(&mut self, bytes: &[u8], deltas: &mut Vec<Delta>) -> Result<bool, ProviderError> {
        let mut has_event = false;
        self.frames.push(bytes);
        while let Some(frame) = self.frames.next()? {
            has_event |= self.take(&frame, deltas)?;
        }
        Ok(has_event)
    }

    fn is_done(&self) -> bool {
        self.message.is_done
    }

    fn finish(self: Box<Self>) -> Result<RawReply, ProviderError> {
        self.message.finish()
    }
}

/// The payload of a `chunk` frame.
#[derive(Deserialize)]
struct Chunk {
    bytes: String,
}

impl BedrockReader {
    fn take(&mut self, frame: &Frame, deltas: &mut Vec<Delta>) -> Result<bool, ProviderError> {
        let header = |name: &str| frame.headers.get(name).map(String::as_str);
        match (header(":message-type"), header(":event-type")) {
            (Some("exception"), _) => {
                Err(error_response::from_event(header(":exception-type"), &frame.payload))
            }
            (Some("error"), _) => {
                let message = header(":error-message").unwrap_or_default();
                Err(error_response::from_event(header(":error-code"), message.as_bytes()))
            }
            (_, Some("chunk")) => {
                let chunk: Chunk =
                    serde_json::from_slice(&frame.payload).map_err(ProviderError::malformed)?;
                let event = STANDARD.decode(chunk.bytes).map_err(ProviderError::malformed)?;
                self.message.take(&event, deltas)
            }
            (_, Some(_) | None) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests;
