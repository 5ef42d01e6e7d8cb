//! The clock as a trait, so that tests of retries do not have to wait.

use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;

pub trait Clock: Send + Sync {
    fn now(&self) -> SystemTime;
    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()>;
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(pause))
    }
}
