//! The web server: where it listens, and what it refuses to do there.
//!
//! On the loopback it listens under both numbers, so that `localhost` is always us and never another program. Beyond
//! the loopback it listens only where people come over TLS.

pub mod address;
mod cors;
pub(crate) mod door;
pub(crate) mod headers;
pub mod metrics;
pub mod rates;
pub mod site;

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use shared_types::Timestamp;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use url::Url;

use crate::ceremonies::PasskeysError;
use crate::front::Front;
use crate::identity::{Clock, Identity, OpenError};
use address::Network;
use rates::RateLimits;
use site::{Site, SiteError};

/// How long requests that are under way may take to end after a stop.
const PATIENCE: Duration = Duration::from_secs(5);

/// A certificate of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// `[server]` of `choir.toml`, and where identity lives.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub listen: SocketAddr,
    /// What people type, where a proxy with TLS stands in front.
    pub public_url: Option<Url>,
    pub tls: Option<Tls>,
    /// Those whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Network>,
    /// The folder of `hypervisor.sqlite`.
    pub data: PathBuf,
    /// Origins whose pages may call with a token.
    pub cors: Vec<String>,
    pub rates: RateLimits,
}

impl ServerConfig {
    /// A server for this machine only.
    pub fn local(port: u16, data: PathBuf) -> Self {
        Self {
            listen: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
            public_url: None,
            tls: None,
            trusted_proxies: Vec::new(),
            data,
            cors: Vec::new(),
            rates: RateLimits::default(),
        }
    }

    /// What is wrong with it, if anything.
    pub fn check(&self) -> Result<(), ServerError> {
        if self.tls.is_some() {
            return Err(ServerError::Tls);
        }
        if !self.listen.ip().is_loopback() && self.public_url.is_none() {
            return Err(ServerError::Exposed(self.listen));
        }
        Site::new(self.listen.port(), self.public_url.clone(), &self.cors)?;
        Ok(())
    }
}

/// Why the server does not start.
#[derive(Debug, Error)]
pub enum ServerError {
    #[error(
        "[server] tls is not supported yet: let a proxy with TLS stand in front, and set public_url to its \
         https address"
    )]
    Tls,
    #[error(
        "[server] listen = \"{0}\" can be reached from other machines without TLS: listen on 127.0.0.1, or set \
         public_url to the https address of a proxy in front"
    )]
    Exposed(SocketAddr),
    #[error("[server] is not right")]
    Site(#[from] SiteError),
    #[error("[server] is not right")]
    Passkeys(#[from] PasskeysError),
    #[error("{address} cannot be listened on; another program may use the port")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the identity store cannot be opened")]
    Identity(#[from] OpenError),
    #[error("the server has stopped")]
    Serve(#[source] io::Error),
}

/// A server that has its port and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    front: Arc<Front>,
}

impl Server {
    /// Takes the port and opens the identity store.
    pub async fn bind(config: &ServerConfig, clock: Clock) -> Result<Self, ServerError> {
        config.check()?;
        let (listeners, port) = listen(config.listen).await?;
        let site = Site::new(port, config.public_url.clone(), &config.cors)?;
        let identity = Identity::open(&config.data, clock)?;
        if config.public_url.is_some() && config.trusted_proxies.is_empty() {
            tracing::warn!(
                "public_url without trusted_proxies: all callers count as the proxy and share its rate"
            );
        }
        let front = Front::new(identity, site, config.rates, config.trusted_proxies.clone())?;
        Ok(Self { listeners, front })
    }

    /// What routes and their guards share.
    pub fn front(&self) -> &Arc<Front> {
        &self.front
    }

    /// Answers until `stop` is done, and lets requests end that are under way.
    pub async fn serve(
        self,
        router: Router,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), ServerError> {
        let (stopping, stopped) = watch::channel(false);
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let mut tasks = JoinSet::new();
        for listener in self.listeners {
            let mut stopped = stopped.clone();
            let wait = async move {
                // An error means that the sender is gone, which is a stop too.
                let _ = stopped.wait_for(|stopped| *stopped).await;
            };
            let serving = axum::serve(listener, service.clone()).with_graceful_shutdown(wait);
            tasks.spawn(async move { serving.await });
        }
        tokio::select! {
            () = stop => {}
            Some(ended) = tasks.join_next() => return outcome(ended),
        }
        stopping.send_replace(true);
        let ending = async {
            while let Some(ended) = tasks.join_next().await {
                outcome(ended)?;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, ending).await.unwrap_or(Ok(()))
    }
}

fn outcome(ended: Result<io::Result<()>, tokio::task::JoinError>) -> Result<(), ServerError> {
    ended.map_err(io::Error::other).flatten().map_err(ServerError::Serve)
}

/// Listens on an address, and on both numbers of the loopback if it is one of them.
async fn listen(address: SocketAddr) -> Result<(Vec<TcpListener>, u16), ServerError> {
    let failed = |address| move |source| ServerError::Listen { address, source };
    let first = TcpListener::bind(address).await.map_err(failed(address))?;
    let port = first.local_addr().map_err(failed(address))?.port();
    let mut listeners = vec![first];
    let twin: Option<IpAddr> = match address.ip() {
        ip if !ip.is_loopback() => None,
        IpAddr::V4(_) => Some(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V6(_) => Some(Ipv4Addr::LOCALHOST.into()),
    };
    if let Some(ip) = twin {
        let address = SocketAddr::new(ip, port);
        match TcpListener::bind(address).await {
            Ok(listener) => listeners.push(listener),
            // Another program on our port would be taken for us by half of all browsers.
            Err(source) if source.kind() == ErrorKind::AddrInUse => {
                return Err(ServerError::Listen { address, source });
            }
            Err(error) => tracing::info!(%address, %error, "this machine has only one kind of address"),
        }
    }
    Ok((listeners, port))
}

/// The clock of the machine.
pub fn clock() -> Clock {
    Arc::new(|| {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    })
}
