//! Which files an agent may read without asking the person.
//!
//! The rules are defined elsewhere; a computer only applies them.

use std::sync::Arc;

use shared_types::FilePath;

type MayRead = Arc<dyn Fn(&FilePath) -> bool + Send + Sync>;

/// What one agent may read, and what every agent may.
#[derive(Clone)]
pub struct ReadPolicy {
    own: MayRead,
    every_agent: MayRead,
}

impl ReadPolicy {
    /// The policy of one agent. It may read at least what every agent may.
    pub fn new(
        own: impl Fn(&FilePath) -> bool + Send + Sync + 'static,
        every_agent: impl Fn(&FilePath) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { own: Arc::new(own), every_agent: Arc::new(every_agent) }
    }

    /// What every agent may read, and no more.
    pub fn for_every_agent(every_agent: impl Fn(&FilePath) -> bool + Send + Sync + 'static) -> Self {
        let every_agent: MayRead = Arc::new(every_agent);
        Self { own: Arc::clone(&every_agent), every_agent }
    }

    /// Nothing at all.
    pub fn nothing() -> Self {
        Self::for_every_agent(|_| false)
    }

    /// Whether this agent may read a file.
    pub fn may_read(&self, path: &FilePath) -> bool {
        (self.own)(path)
    }

    /// Whether every agent may read a file.
    pub fn may_every_agent_read(&self, path: &FilePath) -> bool {
        (self.every_agent)(path)
    }
}

impl std::fmt::Debug for ReadPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadPolicy")
    }
}
