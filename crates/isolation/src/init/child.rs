//! One command that the cell init started, with its pipes or its terminal.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command as Program, Stdio};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::cell::Size;
use crate::frames::StartFrame;

/// Bytes per read.
const CHUNK: usize = 64 << 10;
/// Input queued for a command before the host is made to wait.
const MAX_QUEUED_INPUT: usize = 256 << 10;

/// One of a command's standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pipe {
    In,
    Out,
    Err,
}

pub(super) struct Child {
    pid: Pid,
    input: Option<OwnedFd>,
    output: Option<OwnedFd>,
    errors: Option<OwnedFd>,
    /// The master side of the terminal; input and output are duplicates of it.
    terminal: Option<OwnedFd>,
    queued: VecDeque<u8>,
    closes_input: bool,
}

impl Child {
    pub(super) fn start(start: StartFrame, environment: &[(String, String)]) -> io::Result<Self> {
        let StartFrame { command, terminal } = start;
        let (program, arguments) = command
            .argv
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no program is named"))?;
        let mut spawn = Program::new(program);
        spawn.args(arguments).current_dir(&command.folder).env_clear();
        spawn.envs(environment.iter().cloned()).envs(command.environment);
        let child = match terminal {
            Some(size) => Self::on_terminal(spawn, size),
            None => Self::on_pipes(spawn),
        };
        child.map_err(|e| with_reason(e, program, &command.folder))
    }

    fn on_pipes(mut spawn: Program) -> io::Result<Self> {
        spawn.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A process group of its own, so that signals reach all its processes.
        spawn.process_group(0);
        let mut started = spawn.spawn()?;
        let input = started.stdin.take().map(OwnedFd::from);
        let output = started.stdout.take().map(OwnedFd::from);
        let errors = started.stderr.take().map(OwnedFd::from);
        for fd in [&input, &output, &errors].into_iter().flatten() {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        let pid = pid_of(&started)?;
        Ok(Self { pid, input, output, errors, terminal: None, queued: VecDeque::new(), closes_input: false })
    }

    fn on_terminal(mut spawn: Program, size: Size) -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        unlockpt(&master)?;
        let slave =
            ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        tcsetwinsize(&master, winsize(size))?;
        spawn
            .stdin(File::from(slave.try_clone()?))
            .stdout(File::from(slave.try_clone()?))
            .stderr(File::from(slave));
        crate::sys::lead_session(&mut spawn);
        let started = spawn.spawn()?;
        // Close our copies of the slave side, so that the master reports the end when the command exits.
        drop(spawn);
        rustix::io::ioctl_fionbio(&master, true)?;
        let pid = pid_of(&started)?;
        let (input, output) = (Some(master.try_clone()?), Some(master.try_clone()?));
        let queued = VecDeque::new();
        Ok(Self { pid, input, output, errors: None, terminal: Some(master), queued, closes_input: false })
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// The descriptors to poll, with the events to wait for.
    pub(super) fn pipes(&self) -> Vec<(Pipe, BorrowedFd<'_>, PollFlags)> {
        let mut pipes = Vec::new();
        if let Some(fd) = self.input.as_ref().filter(|_| !self.queued.is_empty()) {
            pipes.push((Pipe::In, fd.as_fd(), PollFlags::OUT));
        }
        for (pipe, fd) in [(Pipe::Out, &self.output), (Pipe::Err, &self.errors)] {
            if let Some(fd) = fd {
                pipes.push((pipe, fd.as_fd(), PollFlags::IN));
            }
        }
        pipes
    }

    /// Reads available bytes; closes the stream at its end.
    pub(super) fn read(&mut self, pipe: Pipe) -> Option<Vec<u8>> {
        let slot = if pipe == Pipe::Err { &mut self.errors } else { &mut self.output };
        let fd = slot.as_ref()?;
        let mut bytes = vec![0; CHUNK];
        match rustix::io::read(fd, &mut bytes) {
            Ok(0) => *slot = None,
            Ok(count) => {
                bytes.truncate(count);
                return Some(bytes);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // A terminal reports an error once its last user is gone.
            Err(_) => *slot = None,
        }
        None
    }

    pub(super) fn queue_input(&mut self, bytes: &[u8]) {
        if self.input.is_some() {
            self.queued.extend(bytes);
            self.write_input();
        }
    }

    pub(super) fn is_input_full(&self) -> bool {
        self.queued.len() > MAX_QUEUED_INPUT
    }

    /// Writes as much queued input as the command accepts without blocking.
    pub(super) fn write_input(&mut self) {
        while let Some(fd) = self.input.as_ref().filter(|_| !self.queued.is_empty()) {
            match rustix::io::write(fd, self.queued.as_slices().0) {
                Ok(count) => drop(self.queued.drain(..count)),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.input = None;
                    self.queued.clear();
                }
            }
        }
        if self.closes_input && self.queued.is_empty() {
            self.input = None;
        }
    }

    pub(super) fn close_input(&mut self) {
        self.closes_input = true;
        self.write_input();
    }

    pub(super) fn signal(&self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        // The command leads a process group of its own, unless it has not got that far yet.
        if kill_process_group(self.pid, signal).is_err() {
            let _ = kill_process(self.pid, signal);
        }
    }

    pub(super) fn resize(&self, size: Size) {
        if let Some(terminal) = &self.terminal {
            let _ = tcsetwinsize(terminal, winsize(size));
        }
    }
}

fn winsize(size: Size) -> Winsize {
    Winsize { ws_col: size.columns, ws_row: size.rows, ws_xpixel: 0, ws_ypixel: 0 }
}

fn pid_of(child: &std::process::Child) -> io::Result<Pid> {
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("a process has no pid"))
}

/// Replaces common errors by messages that a person can act on.
fn with_reason(error: io::Error, program: &str, folder: &std::path::Path) -> io::Error {
    let kind = error.kind();
    let text = if kind == io::ErrorKind::NotFound && !folder.is_dir() {
        format!("there is no folder {}", folder.display())
    } else if kind == io::ErrorKind::NotFound {
        format!("there is no program '{program}' in the cell")
    } else if kind == io::ErrorKind::PermissionDenied {
        format!("'{program}' is not executable")
    } else {
        return error;
    };
    io::Error::new(kind, text)
}
