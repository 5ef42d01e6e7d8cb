//! One terminal: a shell on a pseudo terminal, with the newest part of what it wrote.
//!
//! Output is kept by its place since the start, so that a tab that was reloaded or lost its connection goes on where
//! it was. While somebody looks, the shell is read only a little ahead of what they have been shown: `yes` waits for
//! the screen, not the screen for `yes`.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portable_pty::{ChildKiller, CommandBuilder, MasterPty, PtySize, native_pty_system};
use shared_types::{TerminalId, Timestamp, wire};
use tokio::sync::watch;

use crate::ids;

/// Output that is kept.
const KEPT: usize = 1 << 20;
/// How far output may be ahead of what the person has been shown.
const AHEAD: u64 = 256 << 10;
/// Output that a tab is handed at once.
const CHUNK: usize = 32 << 10;
/// A tab that shows nothing for so long does not hold the shell up any more.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running terminal.
pub(super) struct Terminal {
    pub(super) id: TerminalId,
    started: Timestamp,
    master: Mutex<Box<dyn MasterPty + Send>>,
    input: Mutex<Box<dyn Write + Send>>,
    killer: Mutex<Box<dyn ChildKiller + Send + Sync>>,
    screen: Mutex<Screen>,
    shown: Condvar,
    written: watch::Sender<u64>,
    ended: watch::Sender<Option<Option<i32>>>,
}

#[derive(Default)]
struct Screen {
    kept: VecDeque<u8>,
    /// Bytes since the start.
    total: u64,
    /// What the tab that is furthest has been shown, and how many tabs look.
    shown: u64,
    attached: usize,
    size: (u16, u16),
}

/// What a terminal wrote, from a place on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// A tab that looks at a terminal; dropping it lets the shell run on.
pub struct Attachment {
    terminal: Arc<Terminal>,
    written: watch::Receiver<u64>,
    ended: watch::Receiver<Option<Option<i32>>>,
    sent: u64,
    shown: u64,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("id", &self.id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Attachment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attachment").field("terminal", &self.terminal.id).finish_non_exhaustive()
    }
}

fn other(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

impl Terminal {
    /// Starts the person's shell in a folder.
    pub(super) fn start(folder: &Path, columns: u16, rows: u16) -> io::Result<Arc<Self>> {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).map_err(other)?;
        let mut command = CommandBuilder::new_default_prog();
        command.cwd(folder);
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        // What configures this server is no business of the shell's.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CHOIR_") {
                command.env_remove(name);
            }
        }
        let mut child = pair.slave.spawn_command(command).map_err(other)?;
        drop(pair.slave);
        let reader = pair.master.try_clone_reader().map_err(other)?;
        let input = pair.master.take_writer().map_err(other)?;
        let terminal = Arc::new(Self {
            id: ids::terminal(),
            started: ids::now(),
            killer: Mutex::new(child.clone_killer()),
            master: Mutex::new(pair.master),
            input: Mutex::new(input),
            screen: Mutex::new(Screen { size: (columns, rows), ..Screen::default() }),
            shown: Condvar::new(),
            written: watch::Sender::new(0),
            ended: watch::Sender::new(None),
        });
        let same = Arc::clone(&terminal);
        std::thread::Builder::new().name("terminal".into()).spawn(move || {
            same.read(reader);
            let code = child.wait().ok().and_then(|status| i32::try_from(status.exit_code()).ok());
            same.ended.send_replace(Some(code));
        })?;
        Ok(terminal)
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, mut reader: Box<dyn Read + Send>) {
        let mut buffer = [0; 8192];
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                // The shell's side is closed.
                Err(_) => return,
            };
            let mut screen = self.screen();
            screen.kept.extend(&buffer[..count]);
            let excess = screen.kept.len().saturating_sub(KEPT);
            screen.kept.drain(..excess);
            screen.total += count as u64;
            self.written.send_replace(screen.total);
            let full = |screen: &mut Screen| screen.attached > 0 && screen.total > screen.shown + AHEAD;
            let waited = self.shown.wait_timeout_while(screen, PATIENCE, full);
            let (mut screen, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() {
                screen.shown = screen.total;
            }
        }
    }

    pub(super) fn describe(&self) -> wire::Terminal {
        let (columns, rows) = self.screen().size;
        wire::Terminal { id: self.id, started: self.started, columns, rows }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    pub(super) fn type_in(&self, bytes: &[u8]) -> io::Result<()> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.write_all(bytes)?;
        input.flush()
    }

    pub(super) fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.screen().size = (columns, rows);
        self.master.lock().unwrap_or_else(PoisonError::into_inner).resize(size).map_err(other)
    }

    pub(super) fn end(&self) {
        let _ = self.killer.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }

    pub(super) fn attach(self: &Arc<Self>, offset: u64) -> Attachment {
        let mut screen = self.screen();
        let oldest = screen.total - screen.kept.len() as u64;
        let sent = offset.clamp(oldest, screen.total);
        screen.attached += 1;
        screen.shown = screen.shown.max(sent);
        let (written, ended) = (self.written.subscribe(), self.ended.subscribe());
        drop(screen);
        Attachment { terminal: Arc::clone(self), written, ended, sent, shown: sent }
    }
}

impl Attachment {
    pub fn id(&self) -> TerminalId {
        self.terminal.id
    }

    /// Where the next output starts.
    pub fn offset(&self) -> u64 {
        self.sent
    }

    /// The person has been shown so many bytes more.
    pub fn show(&mut self, bytes: u64) {
        self.shown = self.shown.saturating_add(bytes).min(self.sent);
        let mut screen = self.terminal.screen();
        screen.shown = screen.shown.max(self.shown);
        drop(screen);
        self.terminal.shown.notify_one();
    }

    /// What may be sent now: nothing while the tab has not shown what it was sent.
    pub fn take(&mut self) -> Option<Output> {
        if self.sent >= self.shown + AHEAD {
            return None;
        }
        let screen = self.terminal.screen();
        let oldest = screen.total - screen.kept.len() as u64;
        // A tab that fell behind what is kept goes on with the oldest.
        let offset = self.sent.max(oldest);
        let start = usize::try_from(offset - oldest).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = screen.kept.iter().skip(start).take(CHUNK).copied().collect();
        drop(screen);
        if bytes.is_empty() {
            return None;
        }
        self.shown += offset - self.sent;
        self.sent = offset + bytes.len() as u64;
        Some(Output { offset, bytes })
    }

    /// Waits until the terminal wrote more or ended; true if it ended and everything was sent.
    pub async fn changed(&mut self) -> Option<Option<i32>> {
        loop {
            let ended = *self.ended.borrow_and_update();
            let written = *self.written.borrow_and_update();
            match ended {
                Some(code) if self.sent >= written => return Some(code),
                _ if written > self.sent && self.sent < self.shown + AHEAD => return None,
                _ => {}
            }
            tokio::select! {
                changed = self.written.changed() => if changed.is_err() { return Some(None) },
                changed = self.ended.changed() => if changed.is_err() { return Some(None) },
            }
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut screen = self.terminal.screen();
        screen.attached = screen.attached.saturating_sub(1);
        drop(screen);
        self.terminal.shown.notify_one();
    }
}
