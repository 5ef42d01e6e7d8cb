//! One HTTP exchange, streamed: time-outs, refusals, and the bytes of an answer into its reader.

use std::time::Duration;

use reqwest::{
    Client, Response,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
    redirect,
};
use tokio::time::{Instant, timeout};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
use url::{Host, Url};

use super::{Failure, Post, RawReply, Reader, Target, refusal};
use crate::{Auth, ErrorClass, Provider, catalog::Patience, chat::Delta};

const USER_AGENT: &str = concat!("choir/", env!("CARGO_PKG_VERSION"));
/// More than any answer has; a server that sends more is broken.
const LONGEST_ANSWER: usize = 64 << 20;
/// What is read of a refusal.
const LONGEST_REFUSAL: usize = 64 << 10;
/// How long the end of a stream may take after the end of the answer.
const FAREWELL: Duration = Duration::from_millis(50);

/// Chooses the cryptography of TLS for this process, before the first client is made.
pub fn prepare_tls() {
    // It is an error to choose twice, and whoever was first chose the same.
    let _ = ring::default_provider().install_default();
}

pub(crate) struct Http {
    /// For the outside, through a proxy if the environment names one.
    remote: Option<Client>,
    /// For servers on this machine, which no proxy could reach.
    nearby: Option<Client>,
    patience: Patience,
}

impl Http {
    pub(crate) fn new(patience: Patience) -> Self {
        prepare_tls();
        // A redirect would carry our key to another host.
        let builder = || {
            let builder = Client::builder().redirect(redirect::Policy::none()).user_agent(USER_AGENT);
            builder.connect_timeout(patience.connect())
        };
        let remote =
            builder().build().ok().or_else(|| builder().tls_backend_preconfigured(no_roots()).build().ok());
        let nearby = builder().no_proxy().tls_backend_preconfigured(no_roots()).build().ok();
        Self { remote, nearby, patience }
    }

    /// Sends the request and reads the answer to its end. `hear` is told what arrives.
    pub(super) async fn exchange(
        &self,
        provider: &Provider,
        post: Post,
        mut reader: Box<dyn Reader>,
        mut hear: impl FnMut(Delta) + Send,
    ) -> Result<RawReply, Failure> {
        let (silence, nothing_said) = (self.patience.silence(provider), self.patience.nothing_said(provider));
        let mut response = self.send(post, silence).await?;
        if !response.status().is_success() {
            return Err(refused(response, silence).await);
        }
        let mut length = 0;
        let mut heard = Vec::new();
        let mut newest = Instant::now();
        while !reader.is_done() {
            let patience = silence.min(nothing_said.saturating_sub(newest.elapsed()));
            let Some(bytes) = next(&mut response, patience).await? else { break };
            length += bytes.as_ref().len();
            if length > LONGEST_ANSWER {
                return Err(Failure::new(ErrorClass::Retryable, "The answer did not end."));
            }
            let outcome = reader.read(bytes.as_ref(), &mut heard);
            heard.drain(..).for_each(&mut hear);
            if outcome? {
                newest = Instant::now();
            }
        }
        // Read to its end, the connection can be used again.
        _ = timeout(FAREWELL, async { while let Ok(Some(_)) = response.chunk().await {} }).await;
        reader.finish()
    }

    async fn send(&self, post: Post, silence: Duration) -> Result<Response, Failure> {
        let client = if is_nearby(&post) { &self.nearby } else { &self.remote };
        let Some(client) = client else {
            return Err(Failure::new(ErrorClass::Unavailable, "This machine cannot make HTTP requests."));
        };
        let sent = client.post(post.url).headers(post.headers).body(post.body).send();
        match timeout(silence, sent).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(broken("The provider cannot be reached", error)),
            Err(_) => Err(Failure::new(ErrorClass::Retryable, "The provider does not answer.")),
        }
    }
}

async fn next(
    response: &mut Response,
    silence: Duration,
) -> Result<Option<impl AsRef<[u8]> + use<>>, Failure> {
    match timeout(silence, response.chunk()).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(broken("The answer broke off", error)),
        Err(_) => Err(Failure::new(ErrorClass::Retryable, "The answer stopped arriving.")),
    }
}

async fn refused(mut response: Response, silence: Duration) -> Failure {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = next(&mut response, silence).await {
        body.extend_from_slice(bytes.as_ref());
        if body.len() > LONGEST_REFUSAL {
            break;
        }
    }
    refusal::of_response(response.status(), response.headers(), &body)
}

fn is_nearby(post: &Post) -> bool {
    match post.url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// For a machine without certificates: local models work, and the rest fails with an error that says why.
fn no_roots() -> ClientConfig {
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

fn broken(what: &str, error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let mut message = format!("{what}: {error}");
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    let class = if error.is_builder() { ErrorClass::BadRequest } else { ErrorClass::Retryable };
    Failure::new(class, message)
}

pub(super) const JSON: &str = "application/json";

/// A POST of this body to a path below the provider's base.
pub(super) fn post(
    target: &Target<'_>,
    path: &str,
    mut headers: HeaderMap,
    body: &serde_json::Value,
) -> Result<Post, Failure> {
    let url = format!("{}/{path}", target.base_url.as_str().trim_end_matches('/'));
    let url =
        Url::parse(&url).map_err(|error| Failure::new(ErrorClass::Unavailable, format!("{url}: {error}")))?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    Ok(Post { url, headers, body: body.to_string().into_bytes() })
}

/// Shows the key as the provider wants to see it.
pub(super) fn authorize(headers: &mut HeaderMap, target: &Target<'_>) -> Result<(), Failure> {
    let Some(key) = target.key else { return Ok(()) };
    let key = key.expose().trim();
    match target.provider.auth {
        Auth::ApiKey => headers.insert("x-api-key", sensitive(key)?),
        Auth::Bearer | Auth::Aws => headers.insert(AUTHORIZATION, sensitive(&format!("Bearer {key}"))?),
        Auth::None => None,
    };
    Ok(())
}

/// A header that is not shown in any log.
pub(super) fn sensitive(value: &str) -> Result<HeaderValue, Failure> {
    let wrong =
        |_| Failure::new(ErrorClass::Auth, "The key holds characters that no key has. Enter it once more.");
    let mut value = HeaderValue::from_str(value).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(value)
}
