//! State shared by all requests: identity store, vault, site names, rate limits, metrics.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use tokio::sync::Semaphore;

use crate::ceremonies::{PasskeyCeremonies, PasskeySetupError};
use crate::identity::{ClientInfo, IdentityStore};
use crate::problem::ApiError;
use crate::server::address::{ClientAddress, Network};
use crate::server::metrics::Metrics;
use crate::server::rates::{RateLimiter, RateLimits};
use crate::server::site::Site;
use crate::vault::Vault;

/// State shared by all requests.
#[derive(Debug)]
pub struct ServerState {
    pub identity: IdentityStore,
    pub vault: Vault,
    pub passkeys: PasskeyCeremonies,
    pub site: Site,
    pub rate_limiter: RateLimiter,
    pub metrics: Metrics,
    pub(crate) proxies: Vec<Network>,
    /// Bounds the requests that hash recovery codes, so that they cannot use up the pool of blocking threads.
    pub(crate) hashing: Semaphore,
}

impl ServerState {
    pub fn new(
        identity: IdentityStore,
        vault: Vault,
        site: Site,
        limits: RateLimits,
        proxies: Vec<Network>,
    ) -> Result<Arc<Self>, PasskeySetupError> {
        let passkeys = PasskeyCeremonies::new(site.origin())?;
        let rate_limiter = RateLimiter::new(limits);
        let (metrics, hashing) = (Metrics::default(), Semaphore::new(MAX_HASHING));
        Ok(Arc::new(Self { identity, vault, passkeys, site, rate_limiter, metrics, proxies, hashing }))
    }
}

const MAX_HASHING: usize = 8;
const MAX_USER_AGENT_CHARS: usize = 200;

impl crate::access::DescribedExtractor for ClientInfo {}

impl<S: Send + Sync> FromRequestParts<S> for ClientInfo {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let address = parts.extensions.get::<ClientAddress>().copied().unwrap_or_default();
        let browser = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Ok(Self {
            address: address.to_string(),
            browser: browser.chars().take(MAX_USER_AGENT_CHARS).collect(),
        })
    }
}
