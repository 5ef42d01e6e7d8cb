//! One connection from a cell: its target, the check whether that is allowed, and the connection to it.

use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::address::Resolver;
use super::error::{RequestError, RequestErrorKind};
use super::rules::{Host, HostRules};
use super::socket::{ProxySocket, ShutdownSignal, Waiter};
use super::{ProxiedRequest, ProxyLimits, Verdict, http, socks};

/// Concurrent lookups. The system's resolver cannot be interrupted, so some outlive their connections.
const MAX_LOOKUPS: usize = 64;
/// The number of addresses of a name to try.
const MAX_ADDRESSES: usize = 4;
/// The time for a client to close after the response.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// State shared by all connections.
pub(super) struct ProxyShared {
    pub(super) rules: HostRules,
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) limits: ProxyLimits,
    pub(super) shutdown: Arc<ShutdownSignal>,
    /// Counts running lookups: each one holds a clone.
    pub(super) lookups: Arc<()>,
    pub(super) report: Box<dyn Fn(ProxiedRequest) + Send + Sync>,
}

/// One connection.
pub(super) struct Connection<'a> {
    shared: &'a ProxyShared,
    watch: Waiter,
    pub(super) client: ProxySocket,
    /// The client's socket, buffered for reading.
    pub(super) reader: BufReader<ProxySocket>,
    pub(super) record: ProxiedRequest,
    host: Option<ProxySocket>,
}

impl<'a> Connection<'a> {
    pub(super) fn new(shared: &'a ProxyShared, socket: TcpStream) -> io::Result<Self> {
        let watch = Waiter::new(&shared.shutdown, shared.limits.idle);
        let client = ProxySocket::new(socket, &watch)?;
        let mut reader = BufReader::with_capacity(16 << 10, client.clone());
        reader.get_mut().deadline = Some(Instant::now() + shared.limits.head);
        let record = ProxiedRequest {
            method: String::new(),
            host: String::new(),
            port: 0,
            verdict: Verdict::Refused,
            reason: None,
            sent: 0,
            received: 0,
        };
        Ok(Self { shared, watch, client, reader, record, host: None })
    }

    /// Serves the single request of this connection. A connection that sends nothing is not reported.
    pub(super) fn run(mut self) {
        let first = self.reader.fill_buf().ok().and_then(|bytes| bytes.first().copied());
        match first {
            None => return,
            Some(socks::VERSION) => socks::serve(&mut self),
            Some(_) => http::serve(&mut self),
        }
        if let Some(host) = self.host.take() {
            (self.record.sent, self.record.received) = (host.bytes_written(), host.bytes_read());
        }
        (self.shared.report)(self.record);
        self.client.finish(CLOSE_TIMEOUT);
    }

    /// The head is complete, so its deadline no longer applies.
    pub(super) fn head_received(&mut self) {
        self.reader.get_mut().deadline = None;
    }

    pub(super) fn failed(&mut self, failure: &RequestError) {
        self.record.reason = Some(failure.reason.clone());
        self.record.verdict = match failure.kind {
            RequestErrorKind::NoSuchHost
            | RequestErrorKind::Unreachable
            | RequestErrorKind::ConnectionRefused => Verdict::Allowed,
            RequestErrorKind::Malformed
            | RequestErrorKind::TooLong
            | RequestErrorKind::Slow
            | RequestErrorKind::Refused
            | RequestErrorKind::Unsupported => Verdict::Refused,
        };
    }

    /// Records the target host and port.
    pub(super) fn set_target(&mut self, host: &str, port: u16) -> Result<Host, RequestError> {
        let parsed = Host::parse(host);
        self.record.port = port;
        self.record.host = match &parsed {
            Some(host) => host.to_string(),
            None => host.chars().take(255).flat_map(char::escape_default).collect(),
        };
        parsed.filter(|_| port != 0).ok_or_else(|| RequestError::malformed("that is not a valid host name"))
    }

    /// Connects to the host, if that is allowed.
    pub(super) fn connect_to(&mut self, host: &Host, port: u16) -> Result<ProxySocket, RequestError> {
        self.shared.rules.check(host, port)?;
        let addresses = match host {
            Host::Address(address) => vec![SocketAddr::new(*address, port)],
            Host::Name(name) => self.resolve(name, port)?,
        };
        // A single non-public address refuses the host: mixing them indicates an attack.
        if !addresses.iter().all(|address| self.shared.resolver.is_public(address.ip())) {
            let reason = format!("{host} leads to an address that is not public");
            return Err(RequestError::refused(reason, Some("Cells reach public addresses only.".into())));
        }
        self.record.verdict = Verdict::Allowed;
        let socket = self.connect(&addresses).map_err(|e| RequestError::from_host(&host.to_string(), &e))?;
        self.host = Some(socket.clone());
        Ok(socket)
    }

    fn resolve(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, RequestError> {
        let failed = |kind, error: io::Error| {
            RequestError::new(kind, format!("{name} could not be looked up: {error}"))
        };
        match self.look_up(name, port) {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
            Ok(Ok(_)) => Err(failed(RequestErrorKind::NoSuchHost, io::Error::other("it has no address"))),
            Ok(Err(error)) => Err(failed(RequestErrorKind::NoSuchHost, error)),
            Err(error) => Err(failed(RequestErrorKind::Unreachable, error)),
        }
    }

    /// Resolves a name on a separate thread, which is abandoned if it takes too long.
    fn look_up(&self, name: &str, port: u16) -> io::Result<io::Result<Vec<SocketAddr>>> {
        let lookup = Arc::clone(&self.shared.lookups);
        if Arc::strong_count(&lookup) > MAX_LOOKUPS + 1 {
            return Err(io::Error::other("too many lookups are pending"));
        }
        let (done, waker) = UnixStream::pair()?;
        let (sender, answer) = sync_channel(1);
        let (resolver, name) = (Arc::clone(&self.shared.resolver), name.to_owned());
        std::thread::Builder::new().name("proxy lookup".into()).spawn(move || {
            let _ = sender.send(resolver.resolve(&name, port));
            drop((waker, lookup));
        })?;
        let deadline = Instant::now() + self.shared.limits.connect;
        self.watch.wait(&[(done.as_fd(), PollFlags::IN)], Some(deadline))?;
        answer.try_recv().map_err(io::Error::other)
    }

    fn connect(&self, addresses: &[SocketAddr]) -> io::Result<ProxySocket> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses.iter().take(MAX_ADDRESSES) {
            self.watch.touch();
            match ProxySocket::connect(*address, &self.watch, Instant::now() + self.shared.limits.connect) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}
