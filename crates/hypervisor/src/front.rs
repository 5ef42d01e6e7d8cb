//! What every request needs: who there is, where keys are kept, what this place is called, how much is too much.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use tokio::sync::Semaphore;

use crate::ceremonies::{Passkeys, PasskeysError};
use crate::identity::{Caller, Identity};
use crate::problem::Refusal;
use crate::server::address::{Address, Network};
use crate::server::metrics::Metrics;
use crate::server::rates::{RateLimits, Rates};
use crate::server::site::Site;
use crate::vault::Vault;

/// The front of the house, shared by all requests.
#[derive(Debug)]
pub struct Front {
    pub identity: Identity,
    pub vault: Vault,
    pub passkeys: Passkeys,
    pub site: Site,
    pub rates: Rates,
    pub metrics: Metrics,
    pub(crate) proxies: Vec<Network>,
    /// Recovery codes that are hashed, or wait for it. More would take the threads that read files.
    pub(crate) hashing: Semaphore,
}

impl Front {
    pub fn new(
        identity: Identity,
        vault: Vault,
        site: Site,
        limits: RateLimits,
        proxies: Vec<Network>,
    ) -> Result<Arc<Self>, PasskeysError> {
        let passkeys = Passkeys::new(site.origin())?;
        let rates = Rates::new(limits);
        let (metrics, hashing) = (Metrics::default(), Semaphore::new(HASHING));
        Ok(Arc::new(Self { identity, vault, passkeys, site, rates, metrics, proxies, hashing }))
    }
}

const HASHING: usize = 8;
const BROWSER: usize = 200;

impl crate::access::Takes for Caller {}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let address = parts.extensions.get::<Address>().copied().unwrap_or_default();
        let browser = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Ok(Self { address: address.to_string(), browser: browser.chars().take(BROWSER).collect() })
    }
}
