//! The proxy: the only way out of a cell that has network access.
//!
//! A cell has no network interface but its own loopback. A listener on that loopback is served here, on the host.
//! Every request is checked against [`HostRules`]; its host is resolved here, all its addresses must be public, and
//! the connection goes to one of the checked addresses, so DNS rebinding gains nothing. Every request is reported
//! once, when it has ended or was refused. Contents are forwarded without inspection.
//!
//! One thread accepts, and one thread serves each connection. All of them also poll a shared descriptor that becomes
//! ready when the [`Proxy`] is dropped; the drop returns once every connection is closed and reported.

mod address;
mod body;
mod connection;
mod error;
mod head;
mod http;
mod plain;
mod relay;
mod rules;
mod socket;
mod socks;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use serde::{Deserialize, Serialize};

pub use address::{Resolver, SystemResolver, is_public};
pub use rules::{HostRuleError, HostRules};

use connection::{Connection, ProxyShared};
use socket::{ShutdownSignal, Waiter};

/// A request that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxiedRequest {
    /// `CONNECT`, `SOCKS5`, or the method of plain HTTP; empty if it could not be parsed.
    pub method: String,
    /// In normalised form; empty if it could not be parsed.
    pub host: String,
    pub port: u16,
    pub verdict: Verdict,
    /// Why it was refused, or how it failed.
    pub reason: Option<String>,
    /// Bytes sent to the host.
    pub sent: u64,
    /// Bytes received from the host.
    pub received: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allowed,
    Refused,
}

/// Limits on connections and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Concurrent connections; others wait.
    pub connections: usize,
    /// The time to receive a request's head.
    pub head: Duration,
    /// The time for each address that is tried, and for resolving a name.
    pub connect: Duration,
    /// A connection without traffic is closed after this time.
    pub idle: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            head: Duration::from_secs(30),
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(300),
        }
    }
}

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    slots: Arc<ConnectionSlots>,
    shutdown: Arc<ShutdownSignal>,
    /// All threads wait for this to be closed.
    open: Option<UnixStream>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Serves the listener. `report` is called on the connection's thread and must not drop the proxy. The cell's
    /// network exists as long as its listener, so drop the proxy when the cell has ended.
    pub fn serve(
        listener: TcpListener,
        rules: HostRules,
        report: impl Fn(ProxiedRequest) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::serve_through(listener, rules, SystemResolver, ProxyLimits::default(), report)
    }

    /// Like [`Proxy::serve`], with another resolver and other limits, for tests.
    pub fn serve_through(
        listener: TcpListener,
        rules: HostRules,
        resolver: impl Resolver,
        limits: ProxyLimits,
        report: impl Fn(ProxiedRequest) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (open, watched) = UnixStream::pair()?;
        let shutdown = Arc::new(ShutdownSignal::new(watched));
        let slots = Arc::new(ConnectionSlots::default());
        let shared = Arc::new(ProxyShared {
            rules,
            resolver: Arc::new(resolver),
            limits,
            shutdown: Arc::clone(&shutdown),
            lookups: Arc::default(),
            report: Box::new(report),
        });
        let acceptor_slots = Arc::clone(&slots);
        let acceptor = std::thread::Builder::new().name("proxy".into()).spawn(move || {
            accept(&listener, &shared, &acceptor_slots);
            acceptor_slots.wait_until_empty();
        })?;
        Ok(Self { slots, shutdown, open: Some(open), acceptor: Some(acceptor) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shutdown.set();
        self.slots.close();
        drop(self.open.take());
        let _ = self.acceptor.take().map(JoinHandle::join);
    }
}

/// The pause after a failed accept, for instance when descriptors are exhausted.
const PAUSE: Duration = Duration::from_millis(100);

fn accept(listener: &TcpListener, shared: &Arc<ProxyShared>, slots: &Arc<ConnectionSlots>) {
    while let Some(slot) = slots.enter(shared.limits.connections) {
        let watch = Waiter::new(&shared.shutdown, Duration::MAX);
        let socket = loop {
            match listener.accept() {
                Ok((socket, _)) => break socket,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if watch.wait(&[(listener.as_fd(), PollFlags::IN)], None).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the proxy could not accept a connection");
                    match watch.wait(&[], Some(Instant::now() + PAUSE)) {
                        Err(e) if e.kind() == io::ErrorKind::TimedOut => {}
                        Ok(()) | Err(_) => return,
                    }
                }
            }
        };
        let serve = {
            let shared = Arc::clone(shared);
            move || serve(&shared, socket, slot)
        };
        if let Err(error) = std::thread::Builder::new().name("proxy connection".into()).spawn(serve) {
            tracing::warn!(%error, "the proxy could not serve a connection");
        }
    }
}

fn serve(shared: &ProxyShared, socket: TcpStream, slot: ConnectionSlot) {
    if let Ok(connection) = Connection::new(shared, socket) {
        connection.run();
    }
    drop(slot);
}

/// Limits the number of concurrent connections.
#[derive(Debug, Default)]
struct ConnectionSlots {
    state: Mutex<SlotCount>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SlotCount {
    count: usize,
    is_closed: bool,
}

impl ConnectionSlots {
    fn state(&self) -> MutexGuard<'_, SlotCount> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a free slot; `None` once closed.
    fn enter(self: &Arc<Self>, most: usize) -> Option<ConnectionSlot> {
        let full = |inside: &mut SlotCount| inside.count >= most && !inside.is_closed;
        let mut inside = self.changed.wait_while(self.state(), full).unwrap_or_else(PoisonError::into_inner);
        if inside.is_closed {
            return None;
        }
        inside.count += 1;
        Some(ConnectionSlot(Arc::clone(self)))
    }

    fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn wait_until_empty(&self) {
        drop(self.changed.wait_while(self.state(), |inside| inside.count > 0));
    }
}

/// One connection's slot, released on drop.
#[derive(Debug)]
struct ConnectionSlot(Arc<ConnectionSlots>);

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.state().count -= 1;
        self.0.changed.notify_all();
    }
}

/// The environment variables by which commands find the proxy.
pub fn environment() -> Vec<(String, String)> {
    let address = crate::jail::PROXY;
    let variables = [
        ("HTTP_PROXY", format!("http://{address}")),
        ("HTTPS_PROXY", format!("http://{address}")),
        ("ALL_PROXY", format!("socks5h://{address}")),
        ("NO_PROXY", "localhost,127.0.0.1".to_owned()),
    ];
    // Programs disagree on the case of these names.
    variables
        .into_iter()
        .flat_map(|(name, value)| [(name.to_lowercase(), value.clone()), (name.into(), value)])
        .collect()
}
