//! The web server: where it listens, and what it refuses to do there.
//!
//! On the loopback it listens under both numbers, so that `localhost` is always us and never another program. Beyond
//! the loopback it listens only where people come over TLS.

pub mod address;
mod connections;
mod cors;
pub(crate) mod door;
pub(crate) mod headers;
pub mod metrics;
mod pace;
pub mod rates;
pub mod site;
mod tls;

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
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
use crate::vault::{KeySource, Vault};
use address::Network;
use connections::Connections;
pub use pace::Patience;
use rates::RateLimits;
use site::{Site, SiteError, Transport};
use tls::Certificate;
pub use tls::{Tls, TlsError};

/// The file that says on which port it is served.
const PORT: &str = "port";
/// How long requests that are under way may take to end after a stop.
const ENDING: Duration = Duration::from_secs(5);

/// `[server]` of `choir.toml`, and where identity lives.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub listen: SocketAddr,
    /// What people type, where it is not `localhost`.
    pub public_url: Option<Url>,
    /// A certificate of our own, where no proxy with TLS stands in front.
    pub tls: Option<Tls>,
    /// Those whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Network>,
    /// The folder of `hypervisor.sqlite`.
    pub data: PathBuf,
    /// Origins whose pages may call with a token.
    pub cors: Vec<String>,
    pub rates: RateLimits,
    pub patience: Patience,
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
            patience: Patience::default(),
        }
    }

    /// What is wrong with it, if anything.
    pub fn check(&self) -> Result<(), ServerError> {
        if !self.listen.ip().is_loopback() && self.public_url.is_none() {
            return Err(match self.tls {
                None => ServerError::Exposed(self.listen),
                Some(_) => ServerError::Nameless(self.listen),
            });
        }
        self.site(self.listen.port())?;
        Ok(())
    }

    /// What the place is called if it has this port.
    pub fn site(&self, port: u16) -> Result<Site, SiteError> {
        let transport = if self.tls.is_some() { Transport::Tls } else { Transport::Plain };
        Site::new(port, transport, self.public_url.clone(), &self.cors)
    }
}

/// Why the server does not start.
#[derive(Debug, Error)]
pub enum ServerError {
    #[error(
        "[server] listen = \"{0}\" can be reached from other machines without TLS: listen on 127.0.0.1, set tls to a \
         certificate and its key, or set public_url to the https address of a proxy in front"
    )]
    Exposed(SocketAddr),
    #[error(
        "[server] listen = \"{0}\" can be reached from other machines, and by which name is not known: set public_url \
         to the https address that people type, with the name in the certificate"
    )]
    Nameless(SocketAddr),
    #[error(transparent)]
    Tls(#[from] TlsError),
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
    Serve(#[source] tokio::task::JoinError),
}

/// A server that has its port and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    connections: Arc<Connections>,
    front: Arc<Front>,
}

/// The port on which this data was served last, for whoever makes a link beside the server.
pub fn last_port(data: &Path) -> Option<u16> {
    std::fs::read_to_string(data.join(PORT)).ok()?.trim().parse().ok()
}

impl Server {
    /// Reads the certificate, takes the port and opens the identity store.
    pub async fn bind(config: &ServerConfig, clock: Clock) -> Result<Self, ServerError> {
        config.check()?;
        let certificate = config.tls.clone().map(Certificate::load).transpose()?;
        let (listeners, port) = listen(config.listen).await?;
        let site = config.site(port)?;
        let identity = Identity::open(&config.data, clock)?;
        if config.public_url.is_some() && config.tls.is_none() && config.trusted_proxies.is_empty() {
            tracing::warn!(
                "public_url without trusted_proxies: all callers count as the proxy and share its rate"
            );
        }
        let vault = Vault::open(identity.clone(), KeySource::from_environment(&config.data));
        let front = Front::new(identity, vault, site, config.rates, config.trusted_proxies.clone())?;
        let connections = Connections::new(certificate, config.patience, config.trusted_proxies.clone());
        // Only links that are made beside the server need it, and they can be told.
        if let Err(error) = std::fs::write(config.data.join(PORT), port.to_string()) {
            tracing::warn!(%error, "the port could not be noted for `choir link`");
        }
        Ok(Self { listeners, connections: Arc::new(connections), front })
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
        let mut tasks = JoinSet::new();
        for listener in self.listeners {
            let connections = Arc::clone(&self.connections);
            tasks.spawn(connections.serve(listener, router.clone(), stopped.clone()));
        }
        tokio::select! {
            () = stop => {}
            Some(ended) = tasks.join_next() => return ended.map_err(ServerError::Serve),
        }
        stopping.send_replace(true);
        let ending = async {
            while let Some(ended) = tasks.join_next().await {
                ended.map_err(ServerError::Serve)?;
            }
            Ok(())
        };
        tokio::time::timeout(ENDING, ending).await.unwrap_or(Ok(()))
    }
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
