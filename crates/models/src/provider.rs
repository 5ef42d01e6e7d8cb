//! The providers' wire protocols. Each one turns a [`ChatRequest`] into an HTTP request and the response bytes into a
//! [`RawReply`]. None of them waits, retries or knows prices.

mod anthropic;
mod bedrock;
mod claude_body;
mod error_response;
mod event_stream;
mod http;
mod openai;
mod openai_body;
mod retry_after;
mod sigv4;
mod sse;

use std::time::SystemTime;

use reqwest::header::HeaderMap;
use url::Url;

#[cfg(test)]
pub(crate) use self::event_stream::encode as encode_frame;
pub use self::http::prepare_tls;
pub(crate) use self::{error_response::ProviderError, http::Http};
use crate::{
    ApiKey, Model, Provider, ProviderKind,
    chat::{ChatRequest, Delta, StopReason, Usage},
};

/// The model and server that a request goes to.
#[derive(Debug)]
pub(crate) struct RequestTarget<'a> {
    pub(crate) model: &'a Model,
    pub(crate) provider: &'a Provider,
    pub(crate) base_url: &'a Url,
    pub(crate) key: Option<&'a ApiKey>,
    /// The time that AWS signatures contain.
    pub(crate) now: SystemTime,
}

/// An HTTP request that is ready to send: always a POST with a JSON body.
#[derive(Debug)]
pub(crate) struct HttpPost {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// A complete answer whose tool calls are not parsed yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawReply {
    pub(crate) text: String,
    pub(crate) calls: Vec<RawCall>,
    pub(crate) stop: StopReason,
    pub(crate) usage: Option<Usage>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RawCall {
    /// Empty if the provider sent none.
    pub(crate) id: String,
    pub(crate) tool: String,
    /// JSON as the model wrote it, which may be invalid.
    pub(crate) input: String,
}

impl RawReply {
    /// Estimated tokens, rounded towards too many.
    pub(crate) fn estimate(&self) -> u64 {
        let calls: usize = self.calls.iter().map(|call| call.tool.len() + call.input.len() + 60).sum();
        (self.text.len() + calls).div_ceil(3) as u64
    }
}

/// A provider's wire protocol.
trait WireProtocol {
    fn post(&self, target: &RequestTarget<'_>, request: &ChatRequest) -> Result<HttpPost, ProviderError>;

    fn reader(&self) -> Box<dyn ReplyReader>;
}

/// Decodes an answer while it streams.
trait ReplyReader: Send {
    /// Takes the next bytes, split anywhere. Returns true if they complete an event other than a keep-alive.
    fn read(&mut self, bytes: &[u8], deltas: &mut Vec<Delta>) -> Result<bool, ProviderError>;

    /// Whether the protocol's end marker has arrived.
    fn is_done(&self) -> bool;

    /// The complete answer; an error if the end marker is missing.
    fn finish(self: Box<Self>) -> Result<RawReply, ProviderError>;
}

fn protocol(kind: ProviderKind) -> &'static (dyn WireProtocol + Sync) {
    match kind {
        ProviderKind::Anthropic => &anthropic::Anthropic,
        ProviderKind::Openai | ProviderKind::Local => &openai::OpenAi,
        ProviderKind::Bedrock => &bedrock::Bedrock,
    }
}

/// Sends one request and reads the complete answer. Dropping the future cancels the request.
pub(crate) async fn send(
    http: &Http,
    target: &RequestTarget<'_>,
    request: &ChatRequest,
    on_delta: impl FnMut(Delta) + Send,
) -> Result<RawReply, ProviderError> {
    let protocol = protocol(target.provider.kind);
    let post = protocol.post(target, request)?;
    http.exchange(target.provider, post, protocol.reader(), on_delta).await
}
