//! State shared by all requests: identity store, vault, site names, rate limits, metrics.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::ceremonies::{PasskeyCeremonies, PasskeySetupError};
use crate::client_address::Network;
use crate::identity::IdentityStore;
use crate::metrics::Metrics;
use crate::rate_limits::{RateLimiter, RateLimits};
use crate::recent_answers::RecentAnswers;
use crate::site::Site;
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
    pub(crate) recent_answers: Arc<RecentAnswers>,
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
        let recent_answers = Arc::default();
        Ok(Arc::new(Self {
            identity,
            vault,
            passkeys,
            site,
            rate_limiter,
            metrics,
            recent_answers,
            proxies,
            hashing,
        }))
    }
}

const MAX_HASHING: usize = 8;
