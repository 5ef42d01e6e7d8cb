//! The cell init: the first process in a cell. It starts commands, forwards their streams and reaps orphaned
//! processes.
//!
//! It runs under the same isolation as the commands, so compromising it gains nothing. It is a single loop over one
//! `poll` and never blocks on a command. When the host closes the channel, the init exits, and the kernel kills every
//! other process in the cell.

mod child;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use crate::cell::Status;
use crate::frames::{Body, Frame};
use child::{Child, Pipe};

/// Reads from a pipe after its command has ended. Background processes may keep writing; they are not waited for.
const MAX_TRAILING_READS: usize = 32;

/// Serves the control channel until it closes. `environment` applies to every command.
pub(crate) fn serve(control: OwnedFd, environment: Vec<(String, String)>) -> io::Result<()> {
    let children = crate::sys::child_signals()?;
    let mut init = CellInit { control, environment, running: BTreeMap::new() };
    init.send(0, Body::Ready)?;
    loop {
        match init.step(children.as_fd()) {
            Ok(LoopControl::Continue) => {}
            Ok(LoopControl::End) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

enum LoopControl {
    Continue,
    End,
}

struct CellInit {
    control: OwnedFd,
    environment: Vec<(String, String)>,
    running: BTreeMap<u32, Child>,
}

impl CellInit {
    fn send(&mut self, command: u32, body: Body) -> io::Result<()> {
        Frame::new(command, body).send(&mut FdStream(self.control.as_fd()))
    }

    /// Waits for the next events and handles them.
    fn step(&mut self, children: BorrowedFd<'_>) -> io::Result<LoopControl> {
        // While a command's input queue is full, read no more frames. This applies back pressure to the host.
        let accepts_input = !self.running.values().any(Child::is_input_full);
        let control = if accepts_input { PollFlags::IN } else { PollFlags::empty() };
        let mut fds =
            vec![PollFd::new(&self.control, control), PollFd::from_borrowed_fd(children, PollFlags::IN)];
        let mut pipes = Vec::new();
        for (id, child) in &self.running {
            for (pipe, fd, flags) in child.pipes() {
                pipes.push((*id, pipe));
                fds.push(PollFd::from_borrowed_fd(fd, flags));
            }
        }
        poll(&mut fds, None)?;
        let ready: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        for ((id, pipe), ready) in pipes.into_iter().zip(&ready[2..]) {
            if !ready.is_empty() {
                self.forward(id, pipe)?;
            }
        }
        if !ready[1].is_empty() {
            crate::sys::drain(children);
            self.reap()?;
        }
        if ready[0].contains(PollFlags::IN) {
            let Some(frame) = Frame::receive(&mut FdStream(self.control.as_fd()))? else {
                return Ok(LoopControl::End);
            };
            self.handle(frame)?;
        } else if !ready[0].is_empty() {
            return Ok(LoopControl::End);
        }
        Ok(LoopControl::Continue)
    }

    fn forward(&mut self, id: u32, pipe: Pipe) -> io::Result<()> {
        let Some(child) = self.running.get_mut(&id) else { return Ok(()) };
        let body = match pipe {
            Pipe::In => {
                child.write_input();
                return Ok(());
            }
            Pipe::Out => child.read(Pipe::Out).map(Body::Out),
            Pipe::Err => child.read(Pipe::Err).map(Body::Err),
        };
        body.map_or(Ok(()), |body| self.send(id, body))
    }

    /// Reaps processes that have exited: commands and orphans.
    fn reap(&mut self) -> io::Result<()> {
        loop {
            let (pid, status) = match wait(WaitOptions::NOHANG) {
                Ok(Some(ended)) => ended,
                Ok(None) | Err(Errno::CHILD) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            };
            let Some((&id, _)) = self.running.iter().find(|(_, child)| child.pid() == pid) else { continue };
            let status = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Status::Exited(code),
                (None, Some(signal)) => Status::Signaled(signal),
                (None, None) => continue,
            };
            // Output written before the exit may still be in the pipes.
            for pipe in [Pipe::Out, Pipe::Err] {
                for _ in 0..MAX_TRAILING_READS {
                    let left = self.running.get_mut(&id).and_then(|child| child.read(pipe));
                    let Some(bytes) = left else { break };
                    self.send(id, if pipe == Pipe::Out { Body::Out(bytes) } else { Body::Err(bytes) })?;
                }
            }
            self.running.remove(&id);
            self.send(id, Body::Ended(status))?;
        }
    }

    fn handle(&mut self, frame: Frame) -> io::Result<()> {
        let id = frame.command;
        match frame.body {
            Body::Start(start) => match Child::start(start, &self.environment) {
                Ok(child) => {
                    self.running.insert(id, child);
                    return self.send(id, Body::Started);
                }
                Err(e) => return self.send(id, Body::Refused(e.to_string())),
            },
            Body::Input(bytes) => {
                if let Some(child) = self.running.get_mut(&id) {
                    child.queue_input(&bytes);
                }
            }
            Body::InputEnd => {
                if let Some(child) = self.running.get_mut(&id) {
                    child.close_input();
                }
            }
            Body::Signal(signal) => {
                if let Some(child) = self.running.get(&id) {
                    child.signal(signal);
                }
            }
            Body::Resize(size) => {
                if let Some(child) = self.running.get(&id) {
                    child.resize(size);
                }
            }
            Body::Launch(_)
            | Body::Ready
            | Body::Started
            | Body::Out(_)
            | Body::Err(_)
            | Body::Ended(_)
            | Body::Refused(_) => {}
        }
        Ok(())
    }
}

/// A file descriptor as a blocking stream.
struct FdStream<'a>(BorrowedFd<'a>);

impl io::Read for FdStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0, buffer)?)
    }
}

impl io::Write for FdStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
