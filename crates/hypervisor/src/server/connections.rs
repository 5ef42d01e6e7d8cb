//! Accepts connections, bounds their number, and serves each in its own task.

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

use super::timeouts::{TimeoutBody, TimeoutStream, Timeouts};
use super::tls::Certificate;
use crate::client_address::{ClientAddress, Network};

/// Open connections at once, including WebSockets: below the usual limit of open files per process.
const MAX_CONNECTIONS: usize = 512;
/// Connections from one address. Trusted proxies and this machine are exempt, since they connect for many clients.
const MAX_PER_ADDRESS: usize = MAX_CONNECTIONS / 4;
/// The pause after `accept` failed, as it does when the process has no file descriptor left.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// State shared by all connections.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) certificate: Option<Certificate>,
    pub(super) timeouts: Timeouts,
    proxies: Vec<Network>,
    free_slots: Arc<Semaphore>,
    /// Open connections by network prefix.
    open: Mutex<HashMap<IpAddr, usize>>,
}

impl Connections {
    pub(super) fn new(certificate: Option<Certificate>, timeouts: Timeouts, proxies: Vec<Network>) -> Self {
        let free_slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Self { certificate, timeouts, proxies, free_slots, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a slot for a peer, unless its address has too many connections.
    fn reserve_slot(
        self: &Arc<Self>,
        peer: SocketAddr,
        permit: OwnedSemaphorePermit,
    ) -> Option<ConnectionSlot> {
        let ip = peer.ip().to_canonical();
        let is_exempt = ip.is_loopback() || self.proxies.iter().any(|network| network.contains(ip));
        let prefix = ClientAddress(ip).network_prefix();
        let mut open = self.open();
        let count = open.entry(prefix).or_default();
        if *count >= MAX_PER_ADDRESS && !is_exempt {
            return None;
        }
        *count += 1;
        Some(ConnectionSlot { connections: Arc::clone(self), prefix, _permit: permit })
    }

    /// Accepts and serves connections until a stop, then lets the open ones finish.
    pub(super) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        router: Router,
        mut stopped: watch::Receiver<bool>,
    ) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = wait_for_stop(&mut stopped) => break,
                Some(_) = tasks.join_next() => {}
                (stream, peer, slot) = self.accept(&listener) => {
                    let (connections, router) = (Arc::clone(&self), router.clone());
                    tasks.spawn(connections.serve_stream(stream, peer, slot, router, stopped.clone()));
                }
            }
        }
        drop(listener);
        while tasks.join_next().await.is_some() {}
    }

    async fn accept(self: &Arc<Self>, listener: &TcpListener) -> (TcpStream, SocketAddr, ConnectionSlot) {
        loop {
            let Ok(permit) = Arc::clone(&self.free_slots).acquire_owned().await else {
                // Unreachable: the semaphore is never closed.
                return std::future::pending().await;
            };
            match listener.accept().await {
                Ok((stream, peer)) => match self.reserve_slot(peer, permit) {
                    Some(slot) => return (stream, peer, slot),
                    None => tracing::debug!(%peer, "too many connections from one address"),
                },
                Err(error) if is_peer_error(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot accept connections");
                    sleep(ACCEPT_RETRY_PAUSE).await;
                }
            }
        }
    }

    async fn serve_stream(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        slot: ConnectionSlot,
        router: Router,
        stopped: watch::Receiver<bool>,
    ) {
        // Keystrokes in a terminal must be sent without delay.
        let _ = stream.set_nodelay(true);
        let Some(certificate) = &self.certificate else {
            return self.serve_http(stream, peer, slot, router, stopped).await;
        };
        let handshake = TlsAcceptor::from(certificate.current()).accept(stream);
        match timeout(self.timeouts.head, handshake).await {
            Ok(Ok(stream)) => self.serve_http(stream, peer, slot, router, stopped).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "TLS handshake timed out"),
        }
    }

    async fn serve_http<S>(
        &self,
        stream: S,
        peer: SocketAddr,
        slot: ConnectionSlot,
        router: Router,
        mut stopped: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let timeouts = self.timeouts;
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(|body| Body::new(TimeoutBody::new(body, &timeouts)));
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(timeouts.head)
            .serve_connection(TokioIo::new(TimeoutStream::new(stream, &timeouts, slot)), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        let result = tokio::select! {
            result = connection.as_mut() => result,
            () = wait_for_stop(&mut stopped) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            tracing::debug!(%peer, %error, "connection closed with an error");
        }
    }
}

/// Waits for a stop. A dropped sender counts as one.
async fn wait_for_stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Whether the error concerns one peer, and not the listener itself.
fn is_peer_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The slot of one open connection. Dropping it frees the slot.
#[derive(Debug)]
struct ConnectionSlot {
    connections: Arc<Connections>,
    prefix: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        if let Some(count) = open.get_mut(&self.prefix) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.prefix);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_every_slot_but_a_proxy_can() {
        let proxy: Network = "10.0.0.1".parse().unwrap();
        let connections = Arc::new(Connections::new(None, Timeouts::default(), vec![proxy]));
        let reserve = |address: &str| {
            let permit = Arc::clone(&connections.free_slots).try_acquire_owned().ok()?;
            connections.reserve_slot(SocketAddr::new(address.parse().unwrap(), 1), permit)
        };
        let mut slots: Vec<_> = std::iter::from_fn(|| reserve("192.0.2.1")).collect();
        assert_eq!(slots.len(), MAX_PER_ADDRESS);
        assert!(reserve("192.0.2.2").is_some(), "another address has room");
        slots.pop();
        assert!(reserve("192.0.2.1").is_some(), "a freed slot can be reserved again");
        slots.clear();
        assert!(connections.open().is_empty());
        assert_eq!(std::iter::from_fn(|| reserve("10.0.0.1")).collect::<Vec<_>>().len(), MAX_CONNECTIONS);
    }
}
