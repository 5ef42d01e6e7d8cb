//! How often is too often: a bucket of tokens for each caller, in memory.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use shared_types::{Timestamp, UserId};

use super::address::Address;
use crate::problem::Refusal;

/// A bucket holds `burst` and gains `per_minute`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub burst: f64,
    pub per_minute: f64,
}

/// The rates of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimits {
    /// Attempts to sign in, for each address.
    pub sign_in: Rate,
    /// Everything, for each user, or for each address where nobody is signed in.
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
    /// None, for tests that call more often than a person does.
    pub fn unlimited() -> Self {
        let none = Rate { burst: f64::MAX, per_minute: f64::MAX };
        Self { sign_in: none, calls: none }
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    SignIn,
    Call,
}

/// Whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Address(Address),
    User(UserId),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Owner {
    Address(IpAddr),
    User(UserId),
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

/// So many callers are remembered; those whose buckets are full again need not be.
const CALLERS: usize = 10_000;

/// The buckets of a server.
#[derive(Debug)]
pub struct Rates {
    limits: RateLimits,
    buckets: Mutex<HashMap<(Kind, Owner), Bucket>>,
}

impl Rates {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self { limits, buckets: Mutex::default() }
    }

    fn rate(&self, kind: Kind) -> Rate {
        match kind {
            Kind::SignIn => self.limits.sign_in,
            Kind::Call => self.limits.calls,
        }
    }

    /// Takes one token, or says when there will be one.
    pub(crate) fn take(&self, now: Timestamp, kind: Kind, key: Key) -> Result<(), Refusal> {
        let owner = match key {
            Key::Address(address) => Owner::Address(address.neighbourhood()),
            Key::User(user) => Owner::User(user),
        };
        let rate = self.rate(kind);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= CALLERS {
            buckets
                .retain(|(kind, _), bucket| filled(*bucket, self.rate(*kind), now) < self.rate(*kind).burst);
            if buckets.len() >= CALLERS {
                buckets.clear();
            }
        }
        let fresh = Bucket { tokens: rate.burst, at: now };
        let bucket = buckets.entry((kind, owner)).or_insert(fresh);
        *bucket = Bucket { tokens: filled(*bucket, rate, now), at: now };
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        let seconds = ((1.0 - bucket.tokens) / rate.per_minute * 60.0).ceil();
        Err(Refusal::too_many((seconds as u64).max(1)))
    }
}

/// What a bucket holds by now. A clock that went back adds nothing.
fn filled(bucket: Bucket, rate: Rate, now: Timestamp) -> f64 {
    let passed = (now.millis() - bucket.at.millis()).max(0) as f64;
    (bucket.tokens + passed * rate.per_minute / 60_000.0).min(rate.burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_again_for_each_caller() {
        let rates = Rates::new(RateLimits::default());
        let (here, there) = (Address("192.0.2.1".parse().unwrap()), Address("192.0.2.2".parse().unwrap()));
        let take =
            |at: i64, who| rates.take(Timestamp::from_millis(at), Kind::SignIn, Key::Address(who)).is_ok();
        assert!((0..10).all(|_| take(0, here)));
        assert!(!take(0, here));
        assert!(take(0, there));
        assert!(!take(5_999, here));
        assert!(take(6_000, here));
        assert!(!take(6_000, here));
    }
}
