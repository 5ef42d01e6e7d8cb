//! Rate limits: a token bucket for each client, in memory.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use shared_types::{Timestamp, UserId};

use crate::client_address::ClientAddress;
use crate::problem::ApiError;

/// A bucket holds `burst` tokens and gains `per_minute`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub burst: f64,
    pub per_minute: f64,
}

/// The rate limits of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimits {
    /// Attempts to sign in, per address.
    pub sign_in: Rate,
    /// All requests, per user, or per address if the request is anonymous.
    pub calls: Rate,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            sign_in: Rate { burst: 10.0, per_minute: 10.0 },
            calls: Rate { burst: 600.0, per_minute: 200.0 * 60.0 },
        }
    }
}

impl RateLimits {
    /// No limits, for tests and benchmarks.
    pub fn unlimited() -> Self {
        let unlimited = Rate { burst: f64::MAX, per_minute: f64::MAX };
        Self { sign_in: unlimited, calls: unlimited }
    }
}

/// Which limit a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RequestKind {
    SignIn,
    Any,
}

/// The client that a request counts for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RateSubject {
    Address(ClientAddress),
    User(UserId),
}

/// A [`RateSubject`] with the addresses of one network merged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum BucketKey {
    Network(IpAddr),
    User(UserId),
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    updated: Timestamp,
}

/// The number of buckets in memory. Buckets that are full again are dropped first.
const MAX_BUCKETS: usize = 10_000;

/// The token buckets of a server.
#[derive(Debug)]
pub struct RateLimiter {
    limits: RateLimits,
    buckets: Mutex<HashMap<(RequestKind, BucketKey), Bucket>>,
}

impl RateLimiter {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self { limits, buckets: Mutex::default() }
    }

    fn rate(&self, kind: RequestKind) -> Rate {
        match kind {
            RequestKind::SignIn => self.limits.sign_in,
            RequestKind::Any => self.limits.calls,
        }
    }

    /// Takes one token, or returns an error that says when there will be one.
    pub(crate) fn take(
        &self,
        now: Timestamp,
        kind: RequestKind,
        subject: RateSubject,
    ) -> Result<(), ApiError> {
        let key = match subject {
            RateSubject::Address(address) => BucketKey::Network(address.network_prefix()),
            RateSubject::User(user) => BucketKey::User(user),
        };
        let rate = self.rate(kind);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS {
            buckets.retain(|(kind, _), bucket| {
                tokens_now(*bucket, self.rate(*kind), now) < self.rate(*kind).burst
            });
            if buckets.len() >= MAX_BUCKETS {
                buckets.clear();
            }
        }
        let full = Bucket { tokens: rate.burst, updated: now };
        let bucket = buckets.entry((kind, key)).or_insert(full);
        *bucket = Bucket { tokens: tokens_now(*bucket, rate, now), updated: now };
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        let seconds = ((1.0 - bucket.tokens) / rate.per_minute * 60.0).ceil();
        Err(ApiError::too_many((seconds as u64).max(1)))
    }
}

/// The tokens in a bucket at this time. A clock that was set back adds none.
fn tokens_now(bucket: Bucket, rate: Rate, now: Timestamp) -> f64 {
    let elapsed = (now.millis() - bucket.updated.millis()).max(0) as f64;
    (bucket.tokens + elapsed * rate.per_minute / 60_000.0).min(rate.burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_again_for_each_caller() {
        let rates = RateLimiter::new(RateLimits::default());
        let (here, there) =
            (ClientAddress("192.0.2.1".parse().unwrap()), ClientAddress("192.0.2.2".parse().unwrap()));
        let take = |at: i64, address| {
            let subject = RateSubject::Address(address);
            rates.take(Timestamp::from_millis(at), RequestKind::SignIn, subject).is_ok()
        };
        assert!((0..10).all(|_| take(0, here)));
        assert!(!take(0, here));
        assert!(take(0, there));
        assert!(!take(5_999, here));
        assert!(take(6_000, here));
        assert!(!take(6_000, here));
    }
}
