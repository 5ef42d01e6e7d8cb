//! Claude on Amazon Bedrock: Anthropic's events inside frames of AWS, signed by an access key or shown an API key.

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::header::{HeaderMap, HeaderValue};
use serde::Deserialize;

use super::{
    Failure, Post, Protocol, RawReply, Reader, Target,
    anthropic::Claude,
    claude_body,
    frames::{Frame, Frames},
    http, refusal,
    sigv4::{self, AccessKey, Signing},
};
use crate::{
    Auth, ErrorClass,
    chat::{Delta, Request},
};

const VERSION: &str = "bedrock-2023-05-31";

pub(super) struct Bedrock;

impl Protocol for Bedrock {
    fn post(&self, target: &Target<'_>, request: &Request) -> Result<Post, Failure> {
        let mut body = claude_body::body(target, request);
        body.insert("anthropic_version".into(), VERSION.into());
        claude_body::lay_over(&mut body, target);
        let id = sigv4::encode(&target.model.id).replace('/', "%2F");
        let path = format!("model/{id}/invoke-with-response-stream");
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("application/vnd.amazon.eventstream"));
        let mut post = http::post(target, &path, headers, &body.into())?;
        // Cut at its colons, JSON would show the secret as a token.
        if target.key.is_some_and(|key| key.expose().contains('"')) {
            let message =
                "A key of Bedrock is an API key, or an access key as ID:SECRET or ID:SECRET:SESSION_TOKEN.";
            return Err(Failure::new(ErrorClass::Auth, format!("{message} Enter it once more.")));
        }
        let access_key = target.key.and_then(|key| AccessKey::parse(key.expose()));
        match (target.provider.auth, access_key) {
            (Auth::Aws, Some(key)) => sign(&mut post, target, key)?,
            (Auth::Aws, None) | (Auth::ApiKey | Auth::Bearer | Auth::None, _) => {
                http::authorize(&mut post.headers, target)?;
            }
        }
        Ok(post)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(BedrockReader::default())
    }
}

fn sign(post: &mut Post, target: &Target<'_>, key: AccessKey<'_>) -> Result<(), Failure> {
    let region = target.provider.region.as_deref();
    let region =
        region.ok_or_else(|| Failure::new(ErrorClass::Unavailable, "The provider has no region."))?;
    let signing = Signing { key, region, service: "bedrock", now: target.now };
    let signed = signing.sign(&post.url, http::JSON, &post.body);
    let signed =
        signed.ok_or_else(|| Failure::new(ErrorClass::Unavailable, "The clock of this machine is wrong."))?;
    post.headers.insert("x-amz-date", http::sensitive(&signed.date)?);
    post.headers.insert("authorization", http::sensitive(&signed.authorization)?);
    if let Some(token) = key.session {
        post.headers.insert("x-amz-security-token", http::sensitive(token)?);
    }
    Ok(())
}

#[derive(Default)]
struct BedrockReader {
    frames: Frames,
    message: Claude,
}

impl Reader for BedrockReader {
    fn read(&mut self, bytes: &[u8], heard: &mut Vec<Delta>) -> Result<bool, Failure> {
        let mut is_more = false;
        self.frames.push(bytes);
        while let Some(frame) = self.frames.next()? {
            is_more |= self.take(&frame, heard)?;
        }
        Ok(is_more)
    }

    fn is_done(&self) -> bool {
        self.message.is_done
    }

    fn finish(self: Box<Self>) -> Result<RawReply, Failure> {
        self.message.finish()
    }
}

/// What a frame of an answer holds.
#[derive(Deserialize)]
struct Chunk {
    bytes: String,
}

impl BedrockReader {
    fn take(&mut self, frame: &Frame, heard: &mut Vec<Delta>) -> Result<bool, Failure> {
        let header = |name: &str| frame.headers.get(name).map(String::as_str);
        match (header(":message-type"), header(":event-type")) {
            (Some("exception"), _) => Err(refusal::of_event(header(":exception-type"), &frame.payload)),
            (Some("error"), _) => {
                let message = header(":error-message").unwrap_or_default();
                Err(refusal::of_event(header(":error-code"), message.as_bytes()))
            }
            (_, Some("chunk")) => {
                let chunk: Chunk = serde_json::from_slice(&frame.payload).map_err(Failure::garbled)?;
                let event = STANDARD.decode(chunk.bytes).map_err(Failure::garbled)?;
                self.message.take(&event, heard)
            }
            (_, Some(_) | None) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests;
