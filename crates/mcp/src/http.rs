//! HTTP client for servers at a URL, with a bound on the response size. The SDK's own client reads a plain response
//! without a bound.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, redirect};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use url::Url;

use crate::settings::is_loopback;

/// The maximum bytes of a response of any type.
const MAX_RESPONSE: usize = 8 << 20;
/// The maximum bytes read of an error response.
const MAX_ERROR_BODY: usize = 16 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const SESSION_HEADER: &str = "mcp-session-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

type HttpError = StreamableHttpError<reqwest::Error>;

/// See the module documentation.
#[derive(Debug, Clone)]
pub(crate) struct BoundedHttpClient(Client);

impl BoundedHttpClient {
    pub(crate) fn new(url: &Url) -> Result<Self, reqwest::Error> {
        // A redirect could send the key to another server.
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("choir/", env!("CARGO_PKG_VERSION")));
        // A proxy cannot reach this machine's loopback.
        let client = if is_loopback(url) { client.no_proxy() } else { client };
        client.build().map(Self)
    }
}

impl StreamableHttpClient for BoundedHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        let has_session = session_id.is_some();
        let mut request =
            self.0.post(&*uri).header(ACCEPT, format!("{EVENTS}, {JSON}")).header(CONTENT_TYPE, JSON);
        if let Some(key) = auth_header {
            request = request.bearer_auth(key);
        }
        if let Some(session) = session_id {
            request = request.header(SESSION_HEADER, &*session);
        }
        for (name, value) in custom_headers {
            request = request.header(name, value);
        }
        let sent = request.body(serde_json::to_vec(&message)?).send().await;
        let response = sent.map_err(without_url)?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if has_session => Err(HttpError::SessionExpired),
            status if !status.is_success() => read_error(response).await,
            _ if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
            _ => read_response(response).await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        self.0.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    /// The SDK's client bounds each event.
    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let (last, key) = (last_event_id, auth_header);
        let own = &self.0;
        own.get_stream_with_max_sse_event_size(uri, session_id, last, key, custom_headers, MAX_RESPONSE).await
    }
}

fn content_type(response: &Response) -> Option<String> {
    let content_type = response.headers().get(CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(content_type.as_bytes()).into_owned())
}

async fn read_response(response: Response) -> Result<StreamableHttpPostResponse, HttpError> {
    let session =
        response.headers().get(SESSION_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    match content_type(&response) {
        Some(content_type) if content_type.starts_with(EVENTS) => {
            Ok(StreamableHttpPostResponse::Sse(events(response), session))
        }
        Some(content_type) if content_type.starts_with(JSON) => {
            let message = serde_json::from_slice(&read_body(response, MAX_RESPONSE).await?)
                .map_err(|_| unexpected("an answer that is no message of the protocol"))?;
            Ok(StreamableHttpPostResponse::Json(message, session))
        }
        content_type => Err(HttpError::UnexpectedContentType(content_type)),
    }
}

/// An error response may contain a protocol message, which says more than the status code.
async fn read_error(response: Response) -> Result<StreamableHttpPostResponse, HttpError> {
    let status = response.status();
    let is_json = content_type(&response).is_some_and(|content_type| content_type.starts_with(JSON));
    let body = read_body(response, MAX_ERROR_BODY).await.unwrap_or_default();
    if is_json && !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let message = serde_json::from_slice::<ServerJsonRpcMessage>(&body);
        if let Ok(message @ ServerJsonRpcMessage::Error(_)) = message {
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
    }
    Err(unexpected(format!("HTTP {status}: {}", String::from_utf8_lossy(&body))))
}

/// The error without its URL, because the query may contain a key.
fn without_url(error: reqwest::Error) -> HttpError {
    HttpError::Client(error.without_url())
}

fn unexpected(why: impl Into<Cow<'static, str>>) -> HttpError {
    HttpError::UnexpectedServerResponse(why.into())
}

async fn read_body(mut response: Response, most: usize) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(without_url)? {
        if body.len() + chunk.len() > most {
            return Err(unexpected(format!("an answer of more than {most} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The events of a response, up to the maximum size.
fn events(response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let bytes = stream::unfold((response, 0_usize), |(mut response, read)| async move {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return None,
            Err(error) => return Some((Err(std::io::Error::other(error.without_url())), (response, read))),
        };
        let read = read + chunk.len();
        if read > MAX_RESPONSE {
            let why = format!("an answer of more than {MAX_RESPONSE} bytes");
            return Some((Err(std::io::Error::other(why)), (response, read)));
        }
        Some((Ok(chunk), (response, read)))
    });
    SseStream::from_bytes_stream(bytes).boxed()
}
