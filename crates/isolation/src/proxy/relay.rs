//! Copies bytes in both directions until both sides have ended. Each side's end is forwarded separately, as some
//! protocols need.

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::ops::Range;

use rustix::event::PollFlags;

use super::socket::ProxySocket;

const BUFFER: usize = 64 << 10;

/// Connects the two sockets; `early` holds bytes that the client has already sent.
pub(super) fn relay(client: &ProxySocket, host: &ProxySocket, early: &[u8]) -> io::Result<()> {
    let mut upstream = Direction::new(client, host, early);
    let mut downstream = Direction::new(host, client, &[]);
    loop {
        let touch = upstream.step()? | downstream.step()?;
        if upstream.state == DirectionState::Over && downstream.state == DirectionState::Over {
            return Ok(());
        }
        if touch {
            continue;
        }
        // Poll only sockets that are waited for: one that hung up would wake the loop forever.
        let waits: Vec<_> = [&upstream, &downstream].into_iter().filter_map(Direction::waits_for).collect();
        client.watch().wait(&waits, None)?;
    }
}

#[derive(PartialEq, Eq)]
enum DirectionState {
    Open,
    /// The source has ended, but its last bytes are not written yet.
    Ended,
    Over,
}

/// One direction.
struct Direction<'a> {
    from: &'a ProxySocket,
    to: &'a ProxySocket,
    buffer: Vec<u8>,
    filled: Range<usize>,
    state: DirectionState,
}

impl<'a> Direction<'a> {
    fn new(from: &'a ProxySocket, to: &'a ProxySocket, early: &[u8]) -> Self {
        let mut buffer = vec![0; BUFFER.max(early.len())];
        buffer[..early.len()].copy_from_slice(early);
        Self { from, to, buffer, filled: 0..early.len(), state: DirectionState::Open }
    }

    /// Copies what can be copied without blocking; returns true if anything moved.
    fn step(&mut self) -> io::Result<bool> {
        let mut touch = false;
        if self.filled.is_empty()
            && self.state == DirectionState::Open
            && let Some(count) = unless_would_block(self.from.try_read(&mut self.buffer))?
        {
            touch = true;
            self.filled = 0..count;
            if count == 0 {
                self.state = DirectionState::Ended;
            }
        }
        if !self.filled.is_empty()
            && let Some(count) = unless_would_block(self.to.try_write(&self.buffer[self.filled.clone()]))?
        {
            touch = true;
            self.filled.start += count;
        }
        if self.filled.is_empty() && self.state == DirectionState::Ended {
            self.to.shutdown(Shutdown::Write);
            self.state = DirectionState::Over;
        }
        Ok(touch)
    }

    fn waits_for(&self) -> Option<(std::os::fd::BorrowedFd<'a>, PollFlags)> {
        if !self.filled.is_empty() {
            Some((self.to.fd(), PollFlags::OUT))
        } else if self.state == DirectionState::Open {
            Some((self.from.fd(), PollFlags::IN))
        } else {
            None
        }
    }
}

fn unless_would_block(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(e) => Err(e),
    }
}
