//! A server for benchmarks, with tokens for its users.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use hypervisor::assets::{Asset, Assets};
use hypervisor::identity::{ClientInfo, IdentityStore};
use hypervisor::rate_limits::RateLimits;
use hypervisor::server::{ServerConfig, clock};
use sandbox::machine::{Machine, MachineConfig};
use shared_types::UserId;
use shared_types::wire::{NewToken, TokenScope};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::history::user;

struct NoAssets;

impl Assets for NoAssets {
    fn get(&self, _: &str) -> Option<Asset> {
        None
    }
}

/// A server that runs in this process until it is stopped.
pub(super) struct BenchServer {
    pub(super) port: u16,
    pub(super) machine: Option<Machine>,
    identity: IdentityStore,
}

/// What ends a server.
pub(super) struct Running {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), sandbox::machine::MachineError>>,
}

impl BenchServer {
    pub(super) async fn start(data: &Path, idle_close: Option<Duration>) -> anyhow::Result<Self> {
        let mut config = MachineConfig::new(ServerConfig::local(0, data.to_owned()));
        config.idle_close = idle_close;
        config.server.rates = RateLimits::unlimited();
        let machine =
            Machine::start(&config, clock(), &user()?, "Bench", Arc::new(NoAssets), "bench").await?;
        let identity = IdentityStore::open(&config.server.data, clock())?;
        Ok(Self { port: machine.port(), machine: Some(machine), identity })
    }

    /// Serves from now on.
    pub(super) fn serve(&mut self) -> anyhow::Result<Running> {
        let machine = self.machine.take().context("the server runs already")?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(machine.serve(async {
            let _ = stopped.await;
        }));
        Ok(Running { stop, serving })
    }

    pub(super) fn token(&self, user: &UserId) -> anyhow::Result<String> {
        let wish = NewToken {
            name: "bench".into(),
            scopes: vec![TokenScope::Read, TokenScope::Write],
            days: Some(1),
        };
        self.identity.make_token(user, &wish, &ClientInfo::default())?.secret.context("a new token")
    }

    /// A new user.
    pub(super) fn invite(&self, name: &str) -> anyhow::Result<UserId> {
        let invitation = self.identity.invite(&user()?, name, &ClientInfo::default())?;
        Ok(self.identity.accept(&invitation.secret.reveal(), &ClientInfo::default())?.user.id)
    }
}

impl Running {
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        drop(self.stop);
        Ok(self.serving.await??)
    }
}
