//! Sockets that never wait for ever: every wait ends when data moves, when the time is over, or with the proxy.

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

/// The proxy's end, for all to see.
#[derive(Debug)]
pub(super) struct Ending {
    /// Ready when the proxy has let go of the other half.
    watched: UnixStream,
    /// For those who never have to wait.
    is_over: AtomicBool,
}

impl Ending {
    pub(super) fn new(watched: UnixStream) -> Self {
        Self { watched, is_over: AtomicBool::new(false) }
    }

    pub(super) fn set(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn check(&self) -> io::Result<()> {
        if self.is_over.load(Ordering::Acquire) { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

/// What all sockets of one connection wait for together. Whatever moves on one of them counts for all.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    ending: Arc<Ending>,
    idle: Duration,
    moved: Arc<Mutex<Instant>>,
}

impl Watch {
    pub(super) fn new(ending: &Arc<Ending>, idle: Duration) -> Self {
        Self { ending: Arc::clone(ending), idle, moved: Arc::new(Mutex::new(Instant::now())) }
    }

    pub(super) fn moved(&self) {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// When the connection has been idle for too long, unless something moves.
    fn tired(&self) -> Option<Instant> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).checked_add(self.idle)
    }

    /// Waits until one of these is ready.
    pub(super) fn wait(
        &self,
        sockets: &[(BorrowedFd<'_>, PollFlags)],
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        loop {
            self.ending.check()?;
            let until = [self.tired(), deadline].into_iter().flatten().min();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ErrorKind::TimedOut.into());
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds: Vec<PollFd<'_>> =
                sockets.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
            fds.push(PollFd::new(&self.ending.watched, PollFlags::IN));
            match poll(&mut fds, left.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.ending.check(),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// One end of a connection. Clones are the same end.
#[derive(Debug, Clone)]
pub(super) struct Line {
    socket: Arc<TcpStream>,
    watch: Watch,
    /// Waiting for something to read ends then, whatever moves.
    pub(super) deadline: Option<Instant>,
    read: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

impl Line {
    pub(super) fn new(socket: TcpStream, watch: &Watch) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // Whole messages are written at once already.
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
    pub(super) fn connect(address: SocketAddr, watch: &Watch, deadline: Instant) -> io::Result<Self> {
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

    pub(super) fn watch(&self) -> &Watch {
        &self.watch
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        // It fails only where the other side has done so already.
        let _ = self.socket.shutdown(how);
    }

    /// Reads what is there; `WouldBlock` if that is nothing.
    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.watch.ending.check()?;
        let count = (&*self.socket).read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        self.watch.moved();
        Ok(count)
    }

    /// Writes what there is room for; `WouldBlock` if there is none.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.watch.ending.check()?;
        let count = (&*self.socket).write(bytes)?;
        self.written.fetch_add(count as u64, Ordering::Relaxed);
        self.watch.moved();
        Ok(count)
    }

    /// Says that nothing more will come, and reads what the other side still sends: closing a socket with unread data
    /// would take back what was written last.
    pub(super) fn finish(mut self, patience: Duration) {
        const MOST: u64 = 1 << 20;
        self.shutdown(Shutdown::Write);
        self.deadline = Some(Instant::now() + patience);
        let _ = io::copy(&mut self.take(MOST), &mut io::sink());
    }
}

impl Read for Line {
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

impl Write for Line {
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
