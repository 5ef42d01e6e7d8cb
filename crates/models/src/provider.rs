//! The providers' own protocols. Each turns a [`Request`] into an HTTP request and the bytes that come back into a
//! [`RawReply`]; none of them waits, retries or knows a price.

mod anthropic;
mod bedrock;
mod claude_body;
mod frames;
mod http;
mod openai;
mod openai_body;
mod refusal;
mod retry_after;
mod sigv4;
mod sse;

use std::time::SystemTime;

use reqwest::header::HeaderMap;
use url::Url;

#[cfg(test)]
pub(crate) use self::frames::encode as encode_frame;
pub use self::http::prepare_tls;
pub(crate) use self::{http::Http, refusal::Failure};
use crate::{
    Kind, Model, Provider, Secret,
    chat::{Delta, Request, Stop, Usage},
};

/// Whom to ask.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) model: &'a Model,
    pub(crate) provider: &'a Provider,
    pub(crate) base_url: &'a Url,
    pub(crate) key: Option<&'a Secret>,
    /// Signatures are made for a moment.
    pub(crate) now: SystemTime,
}

/// An HTTP request that is ready to go; always a POST of JSON.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// An answer as it came: calls are not yet read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawReply {
    pub(crate) text: String,
    pub(crate) calls: Vec<RawCall>,
    pub(crate) stop: Stop,
    pub(crate) usage: Option<Usage>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RawCall {
    /// Empty where the provider gave none.
    pub(crate) id: String,
    pub(crate) tool: String,
    /// JSON, one hopes.
    pub(crate) input: String,
}

impl RawReply {
    /// Tokens of it, rather too many than too few.
    pub(crate) fn estimate(&self) -> u64 {
        let calls: usize = self.calls.iter().map(|call| call.tool.len() + call.input.len() + 60).sum();
        (self.text.len() + calls).div_ceil(3) as u64
    }
}

/// One way to speak to a provider.
trait Protocol {
    fn post(&self, target: &Target<'_>, request: &Request) -> Result<Post, Failure>;

    fn reader(&self) -> Box<dyn Reader>;
}

/// Reads an answer while it arrives.
trait Reader: Send {
    /// Takes the next bytes, cut anywhere. True if something of the answer became whole, and not only a sign of life.
    fn read(&mut self, bytes: &[u8], heard: &mut Vec<Delta>) -> Result<bool, Failure>;

    /// Whether the mark that ends an answer was seen.
    fn is_done(&self) -> bool;

    /// The answer. Without the mark that ends it there is none.
    fn finish(self: Box<Self>) -> Result<RawReply, Failure>;
}

fn protocol(kind: Kind) -> &'static (dyn Protocol + Sync) {
    match kind {
        Kind::Anthropic => &anthropic::Anthropic,
        Kind::Openai | Kind::Local => &openai::OpenAi,
        Kind::Bedrock => &bedrock::Bedrock,
    }
}

/// Asks once and reads the whole answer. Dropping the future ends the request.
pub(crate) async fn ask(
    http: &Http,
    target: &Target<'_>,
    request: &Request,
    hear: impl FnMut(Delta) + Send,
) -> Result<RawReply, Failure> {
    let protocol = protocol(target.provider.kind);
    let post = protocol.post(target, request)?;
    http.exchange(target.provider, post, protocol.reader(), hear).await
}
