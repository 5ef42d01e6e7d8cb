//! The host's end of the control channel: many commands over one byte stream, and the limits that the host keeps an
//! eye on itself. A limit that is met ends the whole cell, since whatever hides in it would go on otherwise.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cell::{Command, ControlChannel, ExecError, Exit, Pty, PtyControl, Sink, Size, Status, Stream};
use crate::frames::{Body, Frame, Run};
use crate::layer;
use crate::policy::{Limit, Limits, Policy};

/// Frames that wait for whoever runs the command; then the cell waits.
const MAILBOX: usize = 16;
/// How often limits are looked at, at most; more rarely where looking takes long.
const TICK: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(2);
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

    fn run(self: &Arc<Self>, command: &Command, terminal: Option<Size>) -> Result<Route, ExecError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, frames) = sync_channel(MAILBOX);
        let mut routes = self.routes();
        if routes.over {
            return Err(ExecError::Gone);
        }
        routes.open.insert(id, sender);
        drop(routes);
        let route = Route { conversation: Arc::clone(self), id, frames };
        let run = Run { command: command.clone(), terminal };
        self.send(id, Body::Run(run)).map_err(|e| {
            let too_long = e.kind() == io::ErrorKind::InvalidInput;
            if too_long { route.refused(command, e.to_string()) } else { ExecError::Gone }
        })?;
        Ok(route)
    }

    /// Runs a command to its end, within the limits.
    pub(crate) fn exec(self: &Arc<Self>, command: &Command, output: Sink<'_>) -> Result<Exit, ExecError> {
        let route = self.run(command, None)?;
        self.feed(route.id, command.input.clone());
        let mut watch = Watch::new(&self.policy);
        let mut written = 0;
        let status = loop {
            let body = match route.frames.recv_timeout(watch.pause()) {
                Ok(body) => Some(body),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break Status::Stopped,
            };
            match body {
                Some(Body::Out(bytes)) => {
                    written += bytes.len() as u64;
                    output(Stream::Out, &bytes);
                }
                Some(Body::Err(bytes)) => {
                    written += bytes.len() as u64;
                    output(Stream::Err, &bytes);
                }
                Some(Body::Ended(status)) => break watch.met_in_the_end().map_or(status, Status::Limited),
                Some(Body::Refused(reason)) => return Err(route.refused(command, reason)),
                Some(_) | None => {}
            }
            if let Some(limit) = watch.met(written) {
                self.close();
                break Status::Limited(limit);
            }
        };
        Ok(Exit { status, written, elapsed: watch.started.elapsed() })
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
        let route = self.run(command, Some(size))?;
        match route.frames.recv() {
            Ok(Body::Refused(reason)) => return Err(route.refused(command, reason)),
            Ok(_) => {}
            Err(_) => return Err(ExecError::Gone),
        }
        let ended = Arc::new(Ended::default());
        self.watch_terminal(&ended);
        let (conversation, id) = (Arc::clone(self), route.id);
        let control = Terminal { conversation: Arc::clone(&conversation), id, ended: Arc::clone(&ended) };
        Ok(Pty {
            output: Box::new(Output { route, ended, bytes: Vec::new(), at: 0 }),
            input: Box::new(Input { conversation, id }),
            control: Box::new(control),
        })
    }
}

/// What a terminal's command may fill is bounded as that of any other; its time is whoever sits there's own.
impl Conversation {
    fn watch_terminal(self: &Arc<Self>, ended: &Arc<Ended>) {
        if layer::uppers(&self.policy).is_empty() {
            return;
        }
        let (conversation, ended) = (Arc::downgrade(self), Arc::downgrade(ended));
        let watch = move || {
            let mut pause = TICK;
            loop {
                std::thread::sleep(pause);
                let (Some(conversation), Some(ended)) = (conversation.upgrade(), ended.upgrade()) else {
                    return;
                };
                if ended.is_over() {
                    return;
                }
                let before = Instant::now();
                if let Some(limit) = Watch::new(&conversation.policy).met_in_the_end() {
                    ended.set(Status::Limited(limit));
                    conversation.close();
                    return;
                }
                pause = rest(before.elapsed());
            }
        };
        let _ = std::thread::Builder::new().name("cell terminal".into()).spawn(watch);
    }
}

/// One command's frames; dropping it lets go of them.
struct Route {
    conversation: Arc<Conversation>,
    id: u32,
    frames: Receiver<Body>,
}

impl Route {
    fn refused(&self, command: &Command, reason: String) -> ExecError {
        ExecError::NotStarted { program: command.argv.first().cloned().unwrap_or_default(), reason }
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.conversation.routes().open.remove(&self.id);
    }
}

/// How long after a look the next one comes. Looking takes as long as much was written; it must not become the work
/// itself, but whoever makes it slow must not gain much time by it.
fn rest(looked: Duration) -> Duration {
    (looked * 20).clamp(TICK, LONGEST_REST)
}

/// The limits that no kernel keeps for us.
struct Watch<'a> {
    limits: &'a Limits,
    uppers: Vec<std::path::PathBuf>,
    started: Instant,
    next_look: Instant,
}

impl<'a> Watch<'a> {
    fn new(policy: &'a Policy) -> Self {
        let now = Instant::now();
        Self { limits: &policy.limits, uppers: layer::uppers(policy), started: now, next_look: now + TICK }
    }

    /// How long nothing has to be looked at.
    fn pause(&self) -> Duration {
        let left = self.limits.time.saturating_sub(self.started.elapsed());
        let look = self.next_look.saturating_duration_since(Instant::now());
        if self.uppers.is_empty() { left } else { left.min(look) }
    }

    fn met(&mut self, written: u64) -> Option<Limit> {
        if written > self.limits.output {
            return Some(Limit::Output);
        }
        if self.started.elapsed() >= self.limits.time {
            return Some(Limit::Time);
        }
        if Instant::now() < self.next_look {
            return None;
        }
        let before = Instant::now();
        let met = self.met_in_the_end();
        self.next_look = Instant::now() + rest(before.elapsed());
        met
    }

    fn met_in_the_end(&self) -> Option<Limit> {
        let used = layer::measure(&self.uppers, self.limits.disk, self.limits.files);
        match used {
            Ok(used) if used.bytes > self.limits.disk || used.is_disk_full => Some(Limit::Disk),
            Ok(used) if used.files > self.limits.files || used.is_too_deep => Some(Limit::Files),
            Ok(_) => None,
            // What cannot be measured cannot be bounded.
            Err(_) => Some(Limit::Disk),
        }
    }
}

#[derive(Default)]
struct Ended {
    status: Mutex<Option<Status>>,
    changed: Condvar,
}

impl Ended {
    fn set(&self, status: Status) {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(status);
        self.changed.notify_all();
    }

    fn is_over(&self) -> bool {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

struct Output {
    route: Route,
    ended: Arc<Ended>,
    bytes: Vec<u8>,
    at: usize,
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.bytes.len() {
            match self.route.frames.recv() {
                Ok(Body::Out(bytes)) => (self.bytes, self.at) = (bytes, 0),
                Ok(Body::Ended(status)) => {
                    self.ended.set(status);
                    return Ok(0);
                }
                Ok(_) => {}
                Err(_) => {
                    self.ended.set(Status::Stopped);
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

impl Drop for Output {
    fn drop(&mut self) {
        self.ended.set(Status::Stopped);
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
    ended: Arc<Ended>,
}

impl PtyControl for Terminal {
    fn resize(&self, size: Size) -> io::Result<()> {
        self.conversation.send(self.id, Body::Resize(size))
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        self.conversation.send(self.id, Body::Signal(signal))
    }

    fn wait(&self) -> Status {
        let status = self.ended.status.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.changed.wait_while(status, |status| status.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).unwrap_or(Status::Stopped)
    }
}
