//! The web server: configuration, listening sockets, start and stop.
//!
//! On the loopback interface it listens on both the IPv4 and the IPv6 address, so that no other program can answer for
//! `localhost`. On other interfaces it listens only if clients connect over TLS.

mod connections;
mod cors;
pub(crate) mod headers;
pub(crate) mod middleware;
mod timeouts;
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

use crate::ceremonies::PasskeySetupError;
use crate::client_address::Network;
use crate::identity::{Clock, IdentityStore, OpenError};
use crate::rate_limits::RateLimits;
use crate::server_state::ServerState;
use crate::site::{Site, SiteError, Transport};
use crate::vault::{MasterKeySource, Vault};
use connections::Connections;
pub use timeouts::Timeouts;
use tls::Certificate;
pub use tls::{Tls, TlsError};

/// The file that records the port of the last start, for `choir link`.
const PORT_FILE: &str = "port";
/// How long running requests may take to finish after a stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// `[server]` of `choir.toml`, and the data folder.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub listen: SocketAddr,
    /// The address that users type, if it is not `localhost`.
    pub public_url: Option<Url>,
    /// The certificate to serve TLS with, if no proxy terminates TLS.
    pub tls: Option<Tls>,
    /// Proxies whose `X-Forwarded-For` header is trusted.
    pub trusted_proxies: Vec<Network>,
    /// The folder that holds `hypervisor.sqlite`.
    pub data: PathBuf,
    /// Origins whose pages may call the API with a token.
    pub cors: Vec<String>,
    pub rates: RateLimits,
    pub timeouts: Timeouts,
}

impl ServerConfig {
    /// A server that only this machine can reach.
    pub fn local(port: u16, data: PathBuf) -> Self {
        Self {
            listen: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
            public_url: None,
            tls: None,
            trusted_proxies: Vec::new(),
            data,
            cors: Vec::new(),
            rates: RateLimits::default(),
            timeouts: Timeouts::default(),
        }
    }

    /// Checks the configuration.
    pub fn check(&self) -> Result<(), ServerError> {
        if !self.listen.ip().is_loopback() && self.public_url.is_none() {
            return Err(match self.tls {
                None => ServerError::Exposed(self.listen),
                Some(_) => ServerError::NoPublicName(self.listen),
            });
        }
        self.site(self.listen.port())?;
        Ok(())
    }

    /// The names of a server that listens on this port.
    pub fn site(&self, port: u16) -> Result<Site, SiteError> {
        let transport = if self.tls.is_some() { Transport::Tls } else { Transport::Plain };
        Site::new(port, transport, self.public_url.clone(), &self.cors)
    }
}

/// Why the server did not start, or stopped.
#[derive(Debug, Error)]
pub enum ServerError {
    #[error(
        "[server] listen = \"{0}\" can be reached from other machines without TLS: listen on 127.0.0.1, set tls to a \
         certificate and its key, or set public_url to the https address of a TLS proxy"
    )]
    Exposed(SocketAddr),
    #[error(
        "[server] listen = \"{0}\" can be reached from other machines, but the server does not know its public name: \
         set public_url to the https address that users type, with the name in the certificate"
    )]
    NoPublicName(SocketAddr),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("[server] is not valid")]
    Site(#[from] SiteError),
    #[error("[server] is not valid")]
    Passkeys(#[from] PasskeySetupError),
    #[error("cannot listen on {address}; another program may use the port")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the identity store cannot be opened")]
    Identity(#[from] OpenError),
    #[error("the server stopped unexpectedly")]
    Serve(#[source] tokio::task::JoinError),
}

/// A server that has bound its port but does not accept connections yet.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    connections: Arc<Connections>,
    state: Arc<ServerState>,
}

/// The port on which this data folder was served last. `choir link` puts it into the links it makes.
pub fn last_port(data: &Path) -> Option<u16> {
    std::fs::read_to_string(data.join(PORT_FILE)).ok()?.trim().parse().ok()
}

impl Server {
    /// Reads the certificate, binds the port and opens the identity store.
    pub async fn bind(config: &ServerConfig, clock: Clock) -> Result<Self, ServerError> {
        config.check()?;
        let certificate = config.tls.clone().map(Certificate::load).transpose()?;
        let (listeners, port) = listen(config.listen).await?;
        let site = config.site(port)?;
        let identity = IdentityStore::open(&config.data, clock)?;
        if config.public_url.is_some() && config.tls.is_none() && config.trusted_proxies.is_empty() {
            tracing::warn!(
                "public_url without trusted_proxies: all clients count as the proxy and share its rate limit"
            );
        }
        let vault = Vault::open(identity.clone(), MasterKeySource::from_environment(&config.data));
        let state = ServerState::new(identity, vault, site, config.rates, config.trusted_proxies.clone())?;
        let connections = Connections::new(certificate, config.timeouts, config.trusted_proxies.clone());
        // Only `choir link` needs the file, and it also takes the port as an option.
        if let Err(error) = std::fs::write(config.data.join(PORT_FILE), port.to_string()) {
            tracing::warn!(%error, "could not save the port for `choir link`");
        }
        Ok(Self { listeners, connections: Arc::new(connections), state })
    }

    /// The state that routes and their guards share.
    pub fn state(&self) -> &Arc<ServerState> {
        &self.state
    }

    /// Serves until `stop` resolves, then lets running requests finish.
    pub async fn serve(
        self,
        router: Router,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), ServerError> {
        let (stop_sender, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for listener in self.listeners {
            let connections = Arc::clone(&self.connections);
            tasks.spawn(connections.serve(listener, router.clone(), stopped.clone()));
        }
        tokio::select! {
            () = stop => {}
            Some(ended) = tasks.join_next() => return ended.map_err(ServerError::Serve),
        }
        stop_sender.send_replace(true);
        let finish = async {
            while let Some(ended) = tasks.join_next().await {
                ended.map_err(ServerError::Serve)?;
            }
            Ok(())
        };
        let finished = tokio::time::timeout(SHUTDOWN_TIMEOUT, finish).await.unwrap_or(Ok(()));
        self.state.recent_answers.stop();
        finished
    }
}

/// Listens on an address. For a loopback address it listens on the other address family, too.
async fn listen(address: SocketAddr) -> Result<(Vec<TcpListener>, u16), ServerError> {
    let failed = |address| move |source| ServerError::Listen { address, source };
    let first = TcpListener::bind(address).await.map_err(failed(address))?;
    let port = first.local_addr().map_err(failed(address))?.port();
    let mut listeners = vec![first];
    let other_family: Option<IpAddr> = match address.ip() {
        ip if !ip.is_loopback() => None,
        IpAddr::V4(_) => Some(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V6(_) => Some(Ipv4Addr::LOCALHOST.into()),
    };
    if let Some(ip) = other_family {
        let address = SocketAddr::new(ip, port);
        match TcpListener::bind(address).await {
            Ok(listener) => listeners.push(listener),
            // Browsers may resolve `localhost` to either family, so they could reach another program on our port.
            Err(source) if source.kind() == ErrorKind::AddrInUse => {
                return Err(ServerError::Listen { address, source });
            }
            Err(error) => tracing::info!(%address, %error, "this machine has only one address family"),
        }
    }
    Ok((listeners, port))
}

/// The system clock.
pub fn clock() -> Clock {
    Arc::new(|| {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    })
}
