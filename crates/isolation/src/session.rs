//! The host's end of the control channel: multiplexes many commands over one byte stream. When a command exceeds a
//! limit, the whole cell is ended, because a process that the command left in the background would otherwise keep
//! running.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::cell::{
    Command, ControlChannel, ExecError, Exit, PipedCommand, Pty, PtyControl, Sink, Size, Status, Stream,
};
use crate::frames::{Body, Frame, StartFrame};
use crate::limit_watch::{LimitWatch, TimeLimit};
use crate::policy::{Limit, Policy};
use crate::stderr_tail::StderrTail;

/// Frames buffered per command before the reader thread blocks, and with it the cell.
const FRAME_BUFFER: usize = 16;
/// Input is sent in frames of this size.
const INPUT_CHUNK: usize = 64 << 10;

/// An open control channel with a thread that dispatches incoming frames.
pub(crate) struct ControlSession {
    channel: Box<dyn ControlChannel>,
    writer: Mutex<Box<dyn Write + Send>>,
    routes: Mutex<Routes>,
    next: AtomicU32,
    policy: Policy,
}

#[derive(Default)]
struct Routes {
    open: BTreeMap<u32, SyncSender<Body>>,
    is_closed: bool,
}

impl std::fmt::Debug for ControlSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ControlSession")
    }
}

impl ControlSession {
    pub(crate) fn start(channel: Box<dyn ControlChannel>, policy: Policy) -> io::Result<Arc<Self>> {
        let (mut reader, writer) = channel.split()?;
        let session = Arc::new(Self {
            channel,
            writer: Mutex::new(writer),
            routes: Mutex::default(),
            next: AtomicU32::new(1),
            policy,
        });
        let weak = Arc::downgrade(&session);
        std::thread::Builder::new().name("cell".into()).spawn(move || {
            while let Ok(Some(frame)) = Frame::receive(&mut *reader) {
                let Some(session) = weak.upgrade() else { return };
                let route = session.routes().open.get(&frame.command).cloned();
                drop(session);
                // The receiver may have been dropped already.
                let _ = route.map(|route| route.send(frame.body));
            }
            if let Some(session) = weak.upgrade() {
                let mut routes = session.routes();
                routes.is_closed = true;
                routes.open.clear();
            }
        })?;
        Ok(session)
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, id: u32, body: Body) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Frame::new(id, body).send(&mut **writer)
    }

    /// Closes the channel, which ends the cell.
    pub(crate) fn close(&self) {
        self.channel.close();
    }

    fn run(
        self: &Arc<Self>,
        command: &Command,
        terminal: Option<Size>,
        time_limit: TimeLimit,
    ) -> Result<Route, ExecError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, frames) = sync_channel(FRAME_BUFFER);
        let mut routes = self.routes();
        if routes.is_closed {
            return Err(ExecError::Gone);
        }
        routes.open.insert(id, sender);
        drop(routes);
        let watch = LimitWatch::new(&self.policy, time_limit);
        let route = Route { session: Arc::clone(self), id, frames, watch };
        let start = StartFrame { command: command.clone(), terminal };
        self.send(id, Body::Start(start)).map_err(|e| {
            let too_long = e.kind() == io::ErrorKind::InvalidInput;
            if too_long { not_started(command, e.to_string()) } else { ExecError::Gone }
        })?;
        let session = Arc::clone(self);
        route.watch.start(move || session.close()).map_err(|e| {
            // Without a limit watch the command must not run.
            self.close();
            not_started(command, e.to_string())
        })?;
        Ok(route)
    }

    /// Runs a command to completion, within the limits.
    pub(crate) fn exec(self: &Arc<Self>, command: &Command, output: Sink<'_>) -> Result<Exit, ExecError> {
        let started = Instant::now();
        let route = self.run(command, None, TimeLimit::Policy)?;
        self.send_input(route.id, command.input.clone());
        let mut written = 0;
        loop {
            let (stream, bytes) = match route.frames.recv() {
                Ok(Body::Out(bytes)) => (Stream::Out, bytes),
                Ok(Body::Err(bytes)) => (Stream::Err, bytes),
                Ok(Body::Ended(status)) => {
                    route.watch.finish(status);
                    break;
                }
                Ok(Body::Refused(reason)) => return Err(not_started(command, reason)),
                Ok(_) => continue,
                Err(_) => break,
            };
            written += bytes.len() as u64;
            output(stream, &bytes);
            if written > self.policy.limits.output {
                route.watch.end(Status::Limited(Limit::Output));
                self.close();
                break;
            }
        }
        // If no status was recorded, the channel closed: the cell was stopped while the command ran.
        route.watch.end(Status::Stopped);
        Ok(Exit { status: route.watch.wait(), written, elapsed: started.elapsed() })
    }

    /// Sends input without blocking on a command that does not read it.
    fn send_input(self: &Arc<Self>, id: u32, input: Vec<u8>) {
        if input.is_empty() {
            let _ = self.send(id, Body::InputEnd);
            return;
        }
        let session = Arc::clone(self);
        // Sending blocks until the command reads, while the command may block until its output is read. So this needs
        // a thread.
        let send = move |session: &Self| {
            for piece in input.chunks(INPUT_CHUNK) {
                session.send(id, Body::Input(piece.to_vec()))?;
            }
            session.send(id, Body::InputEnd)
        };
        let _ = std::thread::Builder::new().name("cell input".into()).spawn(move || send(&session));
    }

    pub(crate) fn pty(self: &Arc<Self>, command: &Command, size: Size) -> Result<Pty, ExecError> {
        // The time limit does not apply to interactive terminals.
        let route = self.run(command, Some(size), TimeLimit::Unlimited)?;
        route.wait_for_start(command)?;
        let (session, id, watch) = (Arc::clone(self), route.id, Arc::clone(&route.watch));
        let control = SessionPty { session: Arc::clone(&session), id, watch };
        Ok(Pty {
            output: Box::new(CommandOutput::of(route)),
            input: Box::new(CommandInput { session, id }),
            control: Box::new(control),
        })
    }
}

impl ControlSession {
    pub(crate) fn spawn_piped(self: &Arc<Self>, command: &Command) -> Result<PipedCommand, ExecError> {
        // The time limit does not apply to a command that serves requests.
        let route = self.run(command, None, TimeLimit::Unlimited)?;
        route.wait_for_start(command)?;
        let (session, id) = (Arc::clone(self), route.id);
        let output = CommandOutput::of(route);
        let stderr = Arc::clone(&output.stderr);
        let stderr_tail = move || stderr.lock().unwrap_or_else(PoisonError::into_inner).text();
        Ok(PipedCommand {
            output: Box::new(output),
            input: Box::new(CommandInput { session, id }),
            stderr_tail: Arc::new(stderr_tail),
        })
    }
}

/// The frames and the limit watch of one command; dropping it releases both.
struct Route {
    session: Arc<ControlSession>,
    id: u32,
    frames: Receiver<Body>,
    watch: Arc<LimitWatch>,
}

impl Route {
    fn wait_for_start(&self, command: &Command) -> Result<(), ExecError> {
        match self.frames.recv() {
            Ok(Body::Refused(reason)) => Err(not_started(command, reason)),
            Ok(_) => Ok(()),
            Err(_) => Err(ExecError::Gone),
        }
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.session.routes().open.remove(&self.id);
        self.watch.release();
    }
}

fn not_started(command: &Command, reason: String) -> ExecError {
    ExecError::NotStarted { program: command.argv.first().cloned().unwrap_or_default(), reason }
}

struct CommandOutput {
    route: Route,
    bytes: Vec<u8>,
    at: usize,
    /// The end of standard error.
    stderr: Arc<Mutex<StderrTail>>,
}

impl CommandOutput {
    fn of(route: Route) -> Self {
        Self { route, bytes: Vec::new(), at: 0, stderr: Arc::default() }
    }

    fn push_stderr(&self, bytes: &[u8]) {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}

impl Read for CommandOutput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.bytes.len() {
            match self.route.frames.recv() {
                Ok(Body::Out(bytes)) => (self.bytes, self.at) = (bytes, 0),
                Ok(Body::Err(bytes)) => self.push_stderr(&bytes),
                Ok(Body::Ended(status)) => {
                    self.route.watch.end(status);
                    return Ok(0);
                }
                Ok(_) => {}
                Err(_) => {
                    self.route.watch.end(Status::Stopped);
                    return Ok(0);
                }
            }
        }
        let count = buffer.len().min(self.bytes.len() - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

struct CommandInput {
    session: Arc<ControlSession>,
    id: u32,
}

impl Write for CommandInput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(INPUT_CHUNK);
        self.session.send(self.id, Body::Input(bytes[..count].to_vec()))?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct SessionPty {
    session: Arc<ControlSession>,
    id: u32,
    watch: Arc<LimitWatch>,
}

impl PtyControl for SessionPty {
    fn resize(&self, size: Size) -> io::Result<()> {
        self.session.send(self.id, Body::Resize(size))
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        self.session.send(self.id, Body::Signal(signal))
    }

    fn wait(&self) -> Status {
        self.watch.wait()
    }
}
