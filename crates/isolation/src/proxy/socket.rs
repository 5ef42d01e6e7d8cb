//! Sockets with bounded waits: every wait ends with traffic, a timeout, or the proxy's shutdown.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

/// Signals the proxy's shutdown to all threads.
#[derive(Debug)]
pub(super) struct ShutdownSignal {
    /// Becomes ready when the proxy drops the other half.
    watched: UnixStream,
    /// For threads that never block.
    is_set: AtomicBool,
}

impl ShutdownSignal {
    pub(super) fn new(watched: UnixStream) -> Self {
        Self { watched, is_set: AtomicBool::new(false) }
    }

    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::Release);
    }

    fn check(&self) -> io::Result<()> {
        if self.is_set.load(Ordering::Acquire) { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

/// The wait conditions that all sockets of one connection share. Traffic on one resets the idle timeout for all.
#[derive(Debug, Clone)]
pub(super) struct Waiter {
    shutdown: Arc<ShutdownSignal>,
    idle: Duration,
    touch: Arc<Mutex<Instant>>,
}

impl Waiter {
    pub(super) fn new(shutdown: &Arc<ShutdownSignal>, idle: Duration) -> Self {
        Self { shutdown: Arc::clone(shutdown), idle, touch: Arc::new(Mutex::new(Instant::now())) }
    }

    pub(super) fn touch(&self) {
        *self.touch.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// When the connection times out, if there is no more traffic.
    fn idle_deadline(&self) -> Option<Instant> {
        self.touch.lock().unwrap_or_else(PoisonError::into_inner).checked_add(self.idle)
    }

    /// Waits until one of these is ready.
    pub(super) fn wait(
        &self,
        sockets: &[(BorrowedFd<'_>, PollFlags)],
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        loop {
            self.shutdown.check()?;
            let until = [self.idle_deadline(), deadline].into_iter().flatten().min();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ErrorKind::TimedOut.into());
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds: Vec<PollFd<'_>> =
                sockets.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
            fds.push(PollFd::new(&self.shutdown.watched, PollFlags::IN));
            match poll(&mut fds, left.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.shutdown.check(),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// One end of a connection. Clones share the socket.
#[derive(Debug, Clone)]
pub(super) struct ProxySocket {
    socket: Arc<TcpStream>,
    watch: Waiter,
    /// Reads fail after this moment, even with traffic.
    pub(super) deadline: Option<Instant>,
    read: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

impl ProxySocket {
    pub(super) fn new(socket: TcpStream, watch: &Waiter) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // Messages are written whole, so buffering would only delay them.
        let _ = socket.set_nodelay(true);
        Ok(Self {
            socket: Arc::new(socket),
            watch: watch.clone(),
            deadline: None,
            read: Arc::default(),
            written: Arc::default(),
        })
    }

    /// Connects to one address.
    pub(super) fn connect(address: SocketAddr, watch: &Waiter, deadline: Instant) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket =
            socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
        match connect(&socket, &address) {
            Ok(()) => {}
            Err(Errno::INPROGRESS) => {
                watch.wait(&[(socket.as_fd(), PollFlags::OUT)], Some(deadline))?;
                sockopt::socket_error(&socket)??;
            }
            Err(errno) => return Err(errno.into()),
        }
        Self::new(TcpStream::from(socket), watch)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub(super) fn bytes_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(super) fn watch(&self) -> &Waiter {
        &self.watch
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        // Fails only if the other side has already closed.
        let _ = self.socket.shutdown(how);
    }

    /// Reads without blocking; `WouldBlock` if nothing is available.
    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.watch.shutdown.check()?;
        let count = (&*self.socket).read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        self.watch.touch();
        Ok(count)
    }

    /// Writes without blocking; `WouldBlock` if the buffer is full.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.watch.shutdown.check()?;
        let count = (&*self.socket).write(bytes)?;
        self.written.fetch_add(count as u64, Ordering::Relaxed);
        self.watch.touch();
        Ok(count)
    }

    /// Ends the output and drains the input: closing a socket with unread data would discard the last bytes written.
    pub(super) fn finish(mut self, timeout: Duration) {
        const MAX_DRAINED: u64 = 1 << 20;
        self.shutdown(Shutdown::Write);
        self.deadline = Some(Instant::now() + timeout);
        let _ = io::copy(&mut self.take(MAX_DRAINED), &mut io::sink());
    }
}

impl Read for ProxySocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.try_read(buffer) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.watch.wait(&[(self.fd(), PollFlags::IN)], self.deadline)?;
                }
                other => return other,
            }
        }
    }
}

impl Write for ProxySocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.try_write(bytes) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.watch.wait(&[(self.fd(), PollFlags::OUT)], None)?;
                }
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
