//! One streamed HTTP exchange: sends the request, applies timeouts and feeds the response to a reader.

use std::{sync::OnceLock, time::Duration};

use reqwest::{
    Client, Response,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
    redirect,
};
use tokio::time::{Instant, timeout};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
use url::{Host, Url};

use super::{HttpPost, ProviderError, RawReply, ReplyReader, RequestTarget, error_response};
use crate::{AuthScheme, ErrorClass, Provider, catalog::Timeouts, chat::Delta};

const USER_AGENT: &str = concat!("choir/", env!("CARGO_PKG_VERSION"));
/// Longer than any valid answer; a server that sends more is broken.
const LONGEST_ANSWER: usize = 64 << 20;
/// Maximum bytes that are read of an error response.
const LONGEST_ERROR_BODY: usize = 64 << 10;
/// How long to wait for the end of the stream after the end of the answer.
const END_OF_STREAM_TIMEOUT: Duration = Duration::from_millis(50);

/// Installs the TLS crypto provider of this process. Call it before creating the first HTTP client.
pub fn prepare_tls() {
    // Installing twice is an error, but every caller installs the same provider.
    let _ = ring::default_provider().install_default();
}

pub(crate) struct Http {
    /// Made for the first request: reading the root certificates takes time and memory.
    clients: OnceLock<Clients>,
    timeouts: Timeouts,
}

struct Clients {
    /// For remote servers, through the proxy that the environment names, if any.
    remote: Option<Client>,
    /// For servers on this machine, without a proxy.
    loopback: Option<Client>,
}

impl Clients {
    fn new(timeouts: Timeouts) -> Self {
        prepare_tls();
        // A redirect would carry our key to another host.
        let builder = || {
            let builder = Client::builder().redirect(redirect::Policy::none()).user_agent(USER_AGENT);
            builder.connect_timeout(timeouts.connect())
        };
        let remote =
            builder().build().ok().or_else(|| builder().tls_backend_preconfigured(no_roots()).build().ok());
        let loopback = builder().no_proxy().tls_backend_preconfigured(no_roots()).build().ok();
        Self { remote, loopback }
    }
}

impl Http {
    pub(crate) fn new(timeouts: Timeouts) -> Self {
        Self { clients: OnceLock::new(), timeouts }
    }

    /// Sends the request and reads the answer to its end. `on_delta` receives the deltas as they arrive.
    pub(super) async fn exchange(
        &self,
        provider: &Provider,
        post: HttpPost,
        mut reader: Box<dyn ReplyReader>,
        mut on_delta: impl FnMut(Delta) + Send,
    ) -> Result<RawReply, ProviderError> {
        let (silence, nothing_said) = (self.timeouts.silence(provider), self.timeouts.nothing_said(provider));
        let mut response = self.send(post, silence).await?;
        if !response.status().is_success() {
            return Err(read_error(response, silence).await);
        }
        let mut length = 0;
        let mut deltas = Vec::new();
        let mut last_event = Instant::now();
        while !reader.is_done() {
            let limit = silence.min(nothing_said.saturating_sub(last_event.elapsed()));
            let Some(bytes) = next(&mut response, limit).await? else { break };
            length += bytes.as_ref().len();
            if length > LONGEST_ANSWER {
                return Err(ProviderError::new(ErrorClass::Retryable, "The answer is too long."));
            }
            let outcome = reader.read(bytes.as_ref(), &mut deltas);
            deltas.drain(..).for_each(&mut on_delta);
            if outcome? {
                last_event = Instant::now();
            }
        }
        // A connection can be reused only if its response was read to the end.
        _ = timeout(END_OF_STREAM_TIMEOUT, async { while let Ok(Some(_)) = response.chunk().await {} }).await;
        reader.finish()
    }

    async fn send(&self, post: HttpPost, silence: Duration) -> Result<Response, ProviderError> {
        let clients = self.clients.get_or_init(|| Clients::new(self.timeouts));
        let client = if is_loopback(&post) { &clients.loopback } else { &clients.remote };
        let Some(client) = client else {
            return Err(ProviderError::new(
                ErrorClass::Unavailable,
                "This machine cannot make HTTP requests.",
            ));
        };
        let sent = client.post(post.url).headers(post.headers).body(post.body).send();
        match timeout(silence, sent).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(network_error("Couldn't reach the provider", error)),
            Err(_) => Err(ProviderError::new(ErrorClass::Retryable, "The provider did not answer in time.")),
        }
    }
}

async fn next(
    response: &mut Response,
    silence: Duration,
) -> Result<Option<impl AsRef<[u8]> + use<>>, ProviderError> {
    match timeout(silence, response.chunk()).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(network_error("The answer broke off", error)),
        Err(_) => Err(ProviderError::new(ErrorClass::Retryable, "The answer stopped arriving.")),
    }
}

async fn read_error(mut response: Response, silence: Duration) -> ProviderError {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = next(&mut response, silence).await {
        body.extend_from_slice(bytes.as_ref());
        if body.len() > LONGEST_ERROR_BODY {
            break;
        }
    }
    error_response::from_response(response.status(), response.headers(), &body)
}

fn is_loopback(post: &HttpPost) -> bool {
    match post.url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// For a machine without root certificates: local models still work, and HTTPS fails with a clear error.
fn no_roots() -> ClientConfig {
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

fn network_error(what: &str, error: reqwest::Error) -> ProviderError {
    let error = error.without_url();
    let mut message = format!("{what}: {error}");
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    let class = if error.is_builder() { ErrorClass::BadRequest } else { ErrorClass::Retryable };
    ProviderError::new(class, message)
}

pub(super) const JSON: &str = "application/json";

/// A POST of `body` to a path below the provider's base URL.
pub(super) fn post(
    target: &RequestTarget<'_>,
    path: &str,
    mut headers: HeaderMap,
    body: &serde_json::Value,
) -> Result<HttpPost, ProviderError> {
    let url = format!("{}/{path}", target.base_url.as_str().trim_end_matches('/'));
    let url = Url::parse(&url)
        .map_err(|error| ProviderError::new(ErrorClass::Unavailable, format!("{url}: {error}")))?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    Ok(HttpPost { url, headers, body: body.to_string().into_bytes() })
}

/// Adds the key to the headers in the provider's scheme.
pub(super) fn authorize(headers: &mut HeaderMap, target: &RequestTarget<'_>) -> Result<(), ProviderError> {
    let Some(key) = target.key else { return Ok(()) };
    let key = key.expose().trim();
    match target.provider.auth {
        AuthScheme::ApiKey => headers.insert("x-api-key", sensitive(key)?),
        AuthScheme::Bearer | AuthScheme::Aws => {
            headers.insert(AUTHORIZATION, sensitive(&format!("Bearer {key}"))?)
        }
        AuthScheme::None => None,
    };
    Ok(())
}

/// A header value that is never logged.
pub(super) fn sensitive(value: &str) -> Result<HeaderValue, ProviderError> {
    let invalid =
        |_| ProviderError::new(ErrorClass::Auth, "The key contains invalid characters. Enter it again.");
    let mut value = HeaderValue::from_str(value).map_err(invalid)?;
    value.set_sensitive(true);
    Ok(value)
}
