//! Connections: taken one by one, bounded in number, each served in a task of its own.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::address::{Address, Network};
use super::pace::{Paced, PacedBody, Patience};
use super::tls::Certificate;

/// Connections at once, also those that became WebSockets: less than the files that a process may usually open.
const CONNECTIONS: usize = 512;
/// Of these, what one address may have. A proxy and programs on this machine speak for many.
const FROM_ONE: usize = CONNECTIONS / 4;
/// Where no connection can be taken, as when all files are in use, it is tried again after this time.
const PAUSE: Duration = Duration::from_secs(1);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) certificate: Option<Certificate>,
    pub(super) patience: Patience,
    proxies: Vec<Network>,
    places: Arc<Semaphore>,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

impl Connections {
    pub(super) fn new(certificate: Option<Certificate>, patience: Patience, proxies: Vec<Network>) -> Self {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        Self { certificate, patience, proxies, places, taken: Mutex::default() }
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a caller, unless they have too many.
    fn place(self: &Arc<Self>, peer: SocketAddr, permit: OwnedSemaphorePermit) -> Option<Place> {
        let ip = peer.ip().to_canonical();
        let many = ip.is_loopback() || self.proxies.iter().any(|network| network.contains(ip));
        let from = Address(ip).neighbourhood();
        let mut taken = self.taken();
        let count = taken.entry(from).or_default();
        if *count >= FROM_ONE && !many {
            return None;
        }
        *count += 1;
        Some(Place { connections: Arc::clone(self), from, _permit: permit })
    }

    /// Takes connections and serves them until it is stopped; then those end that are under way.
    pub(super) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        router: Router,
        mut stopped: watch::Receiver<bool>,
    ) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = told(&mut stopped) => break,
                Some(_) = tasks.join_next() => {}
                (stream, peer, place) = self.accept(&listener) => {
                    let (connections, router) = (Arc::clone(&self), router.clone());
                    tasks.spawn(connections.attend(stream, peer, place, router, stopped.clone()));
                }
            }
        }
        drop(listener);
        while tasks.join_next().await.is_some() {}
    }

    async fn accept(self: &Arc<Self>, listener: &TcpListener) -> (TcpStream, SocketAddr, Place) {
        loop {
            let Ok(permit) = Arc::clone(&self.places).acquire_owned().await else {
                // Nobody closes it.
                return std::future::pending().await;
            };
            match listener.accept().await {
                Ok((stream, peer)) => match self.place(peer, permit) {
                    Some(place) => return (stream, peer, place),
                    None => tracing::debug!(%peer, "too many connections from one address"),
                },
                Err(error) if is_of_the_caller(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "no connection can be taken");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn attend(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        place: Place,
        router: Router,
        stopped: watch::Receiver<bool>,
    ) {
        // What somebody types in a terminal must not wait for more.
        let _ = stream.set_nodelay(true);
        let Some(certificate) = &self.certificate else {
            return self.speak(stream, peer, place, router, stopped).await;
        };
        let shaken = TlsAcceptor::from(certificate.current()).accept(stream);
        match timeout(self.patience.head, shaken).await {
            Ok(Ok(stream)) => self.speak(stream, peer, place, router, stopped).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "no handshake"),
            Err(_) => tracing::debug!(%peer, "the handshake took too long"),
        }
    }

    async fn speak<S>(
        &self,
        stream: S,
        peer: SocketAddr,
        place: Place,
        router: Router,
        mut stopped: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let patience = self.patience;
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(|body| Body::new(PacedBody::new(body, &patience)));
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience.head)
            .serve_connection(TokioIo::new(Paced::new(stream, &patience, place)), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = told(&mut stopped) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%peer, %error, "the connection was given up");
        }
    }
}

/// Waits for a stop. An error means that the sender is gone, which is one too.
async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Whether the connection failed, and not the taking of it.
fn is_of_the_caller(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The place that a connection takes while it is there.
#[derive(Debug)]
struct Place {
    connections: Arc<Connections>,
    from: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.connections.taken();
        if let Some(count) = taken.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_every_place_but_a_proxy_can() {
        let proxy: Network = "10.0.0.1".parse().unwrap();
        let connections = Arc::new(Connections::new(None, Patience::default(), vec![proxy]));
        let take = |address: &str| {
            let permit = Arc::clone(&connections.places).try_acquire_owned().ok()?;
            connections.place(SocketAddr::new(address.parse().unwrap(), 1), permit)
        };
        let mut places: Vec<_> = std::iter::from_fn(|| take("192.0.2.1")).collect();
        assert_eq!(places.len(), FROM_ONE);
        assert!(take("192.0.2.2").is_some(), "another has room");
        places.pop();
        assert!(take("192.0.2.1").is_some(), "what was left can be taken again");
        places.clear();
        assert!(connections.taken().is_empty());
        assert_eq!(std::iter::from_fn(|| take("10.0.0.1")).collect::<Vec<_>>().len(), CONNECTIONS);
    }
}
