//! The host's end of the control channel: many commands over one byte stream. A limit that a command meets ends the whole
//! cell, since whatever hides in it would go on otherwise.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::cell::{
    Command, ControlChannel, ExecError, Exit, Pty, PtyControl, Sink, Size, Status, Stream, Talk,
};
use crate::complaints::Complaints;
use crate::frames::{Body, Frame, Run};
use crate::policy::{Limit, Policy};
use crate::watch::{Patience, Watched};

/// Frames that wait for whoever runs the command; then the cell waits.
const MAILBOX: usize = 16;
/// Input travels in pieces of this size.
const PIECE: usize = 64 << 10;

/// A channel with somebody reading it.
pub(crate) struct Conversation {
    channel: Box<dyn ControlChannel>,
    writer: Mutex<Box<dyn Write + Send>>,
    routes: Mutex<Routes>,
    next: AtomicU32,
    policy: Policy,
}

#[derive(Default)]
struct Routes {
    open: BTreeMap<u32, SyncSender<Body>>,
    over: bool,
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Conversation")
    }
}

impl Conversation {
    pub(crate) fn start(channel: Box<dyn ControlChannel>, policy: Policy) -> io::Result<Arc<Self>> {
        let (mut reader, writer) = channel.split()?;
        let conversation = Arc::new(Self {
            channel,
            writer: Mutex::new(writer),
            routes: Mutex::default(),
            next: AtomicU32::new(1),
            policy,
        });
        let weak = Arc::downgrade(&conversation);
        std::thread::Builder::new().name("cell".into()).spawn(move || {
            while let Ok(Some(frame)) = Frame::receive(&mut *reader) {
                let Some(conversation) = weak.upgrade() else { return };
                let route = conversation.routes().open.get(&frame.command).cloned();
                drop(conversation);
                // Whoever does not want it any more has let go of the other end.
                let _ = route.map(|route| route.send(frame.body));
            }
            if let Some(conversation) = weak.upgrade() {
                let mut routes = conversation.routes();
                routes.over = true;
                routes.open.clear();
            }
        })?;
        Ok(conversation)
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, id: u32, body: Body) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Frame::new(id, body).send(&mut **writer)
    }

    /// Ends the cell.
    pub(crate) fn close(&self) {
        self.channel.close();
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.routes().open.is_empty()
    }

    fn run(
        self: &Arc<Self>,
        command: &Command,
        terminal: Option<Size>,
        patience: Patience,
    ) -> Result<Route, ExecError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, frames) = sync_channel(MAILBOX);
        let mut routes = self.routes();
        if routes.over {
            return Err(ExecError::Gone);
        }
        routes.open.insert(id, sender);
        drop(routes);
        let watched = Watched::new(&self.policy, patience);
        let route = Route { conversation: Arc::clone(self), id, frames, watched };
        let run = Run { command: command.clone(), terminal };
        self.send(id, Body::Run(run)).map_err(|e| {
            let too_long = e.kind() == io::ErrorKind::InvalidInput;
            if too_long { refused(command, e.to_string()) } else { ExecError::Gone }
        })?;
        let conversation = Arc::clone(self);
        route.watched.start(move || conversation.close()).map_err(|e| {
            // What nobody looks after does not run.
            self.close();
            refused(command, e.to_string())
        })?;
        Ok(route)
    }

    /// Runs a command to its end, within the limits.
    pub(crate) fn exec(self: &Arc<Self>, command: &Command, output: Sink<'_>) -> Result<Exit, ExecError> {
        let started = Instant::now();
        let route = self.run(command, None, Patience::Limited)?;
        self.feed(route.id, command.input.clone());
        let mut written = 0;
        loop {
            let (stream, bytes) = match route.frames.recv() {
                Ok(Body::Out(bytes)) => (Stream::Out, bytes),
                Ok(Body::Err(bytes)) => (Stream::Err, bytes),
                Ok(Body::Ended(status)) => {
                    route.watched.conclude(status);
                    break;
                }
                Ok(Body::Refused(reason)) => return Err(refused(command, reason)),
                Ok(_) => continue,
                Err(_) => break,
            };
            written += bytes.len() as u64;
            output(stream, &bytes);
            if written > self.policy.limits.output {
                route.watched.end(Status::Limited(Limit::Output));
                self.close();
                break;
            }
        }
        // Unless it is known how it ended, the cell was stopped under it.
        route.watched.end(Status::Stopped);
        Ok(Exit { status: route.watched.wait(), written, elapsed: started.elapsed() })
    }

    /// Sends input, without waiting for a command that does not read it.
    fn feed(self: &Arc<Self>, id: u32, input: Vec<u8>) {
        if input.is_empty() {
            let _ = self.send(id, Body::InputEnd);
            return;
        }
        let conversation = Arc::clone(self);
        // It could wait for the command to read, while the command waits for its output to be read.
        let send = move |conversation: &Self| {
            for piece in input.chunks(PIECE) {
                conversation.send(id, Body::Input(piece.to_vec()))?;
            }
            conversation.send(id, Body::InputEnd)
        };
        let _ = std::thread::Builder::new().name("cell input".into()).spawn(move || send(&conversation));
    }

    pub(crate) fn pty(self: &Arc<Self>, command: &Command, size: Size) -> Result<Pty, ExecError> {
        // The time at a terminal is that of whoever sits there.
        let route = self.run(command, Some(size), Patience::Endless)?;
        route.wait_for_start(command)?;
        let (conversation, id, watched) = (Arc::clone(self), route.id, Arc::clone(&route.watched));
        let control = Terminal { conversation: Arc::clone(&conversation), id, watched };
        Ok(Pty {
            output: Box::new(Output::of(route)),
            input: Box::new(Input { conversation, id }),
            control: Box::new(control),
        })
    }
}

impl Conversation {
    pub(crate) fn talk(self: &Arc<Self>, command: &Command) -> Result<Talk, ExecError> {
        // It waits for whoever speaks with it, for as long as they like.
        let route = self.run(command, None, Patience::Endless)?;
        route.wait_for_start(command)?;
        let (conversation, id) = (Arc::clone(self), route.id);
        let output = Output::of(route);
        let complaints = Arc::clone(&output.complaints);
        let complaints = move || {
            let said = complaints.lock().unwrap_or_else(PoisonError::into_inner);
            said.text()
        };
        Ok(Talk {
            output: Box::new(output),
            input: Box::new(Input { conversation, id }),
            complaints: Arc::new(complaints),
        })
    }
}

/// One command's frames, and whoever looks after it; dropping it lets go of both.
struct Route {
    conversation: Arc<Conversation>,
    id: u32,
    frames: Receiver<Body>,
    watched: Arc<Watched>,
}

impl Route {
    fn wait_for_start(&self, command: &Command) -> Result<(), ExecError> {
        match self.frames.recv() {
            Ok(Body::Refused(reason)) => Err(refused(command, reason)),
            Ok(_) => Ok(()),
            Err(_) => Err(ExecError::Gone),
        }
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.conversation.routes().open.remove(&self.id);
        self.watched.let_go();
    }
}

fn refused(command: &Command, reason: String) -> ExecError {
    ExecError::NotStarted { program: command.argv.first().cloned().unwrap_or_default(), reason }
}

struct Output {
    route: Route,
    bytes: Vec<u8>,
    at: usize,
    /// What came on the other stream.
    complaints: Arc<Mutex<Complaints>>,
}

impl Output {
    fn of(route: Route) -> Self {
        Self { route, bytes: Vec::new(), at: 0, complaints: Arc::default() }
    }

    fn complain(&self, bytes: &[u8]) {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).add(bytes);
    }
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.bytes.len() {
            match self.route.frames.recv() {
                Ok(Body::Out(bytes)) => (self.bytes, self.at) = (bytes, 0),
                Ok(Body::Err(bytes)) => self.complain(&bytes),
                Ok(Body::Ended(status)) => {
                    self.route.watched.end(status);
                    return Ok(0);
                }
                Ok(_) => {}
                Err(_) => {
                    self.route.watched.end(Status::Stopped);
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

struct Input {
    conversation: Arc<Conversation>,
    id: u32,
}

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE);
        self.conversation.send(self.id, Body::Input(bytes[..count].to_vec()))?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Terminal {
    conversation: Arc<Conversation>,
    id: u32,
    watched: Arc<Watched>,
}

impl PtyControl for Terminal {
    fn resize(&self, size: Size) -> io::Result<()> {
        self.conversation.send(self.id, Body::Resize(size))
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        self.conversation.send(self.id, Body::Signal(signal))
    }

    fn wait(&self) -> Status {
        self.watched.wait()
    }
}
