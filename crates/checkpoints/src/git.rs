//! Runs git with our configuration only.
//!
//! The environment contains only what is set here, system and user configuration and hooks are off, and the
//! repository is given explicitly and never searched for. Every child has its own process group, which is killed when
//! its handle is dropped; threads read its outputs, so that no pipe fills up.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{CheckpointError, CommitId};

/// Only the last part of git's standard error is kept; the reason is at the end.
const MAX_STDERR_BYTES: usize = 16 * 1024;
/// How long an output may stay open once its process has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

const SETTINGS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsync=all",
    "core.fsmonitor=false",
    // Larger blobs are streamed, so memory use does not depend on their size.
    "core.bigFileThreshold=1m",
    "core.logAllRefUpdates=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fastimport.unpackLimit=0",
    "credential.helper=",
    "repack.writeBitmaps=false",
];

/// A git program and the repository on which it works.
#[derive(Debug)]
pub(super) struct Git {
    program: PathBuf,
    path: OsString,
    dir: PathBuf,
}

impl Git {
    /// Finds git on `PATH`, ignoring relative entries and those that a cell can write.
    pub(super) fn find(dir: PathBuf, workspace: &Path) -> Result<Self, CheckpointError> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let outside = |entry: &Path| entry.canonicalize().is_ok_and(|real| !real.starts_with(&workspace));
        let entries = std::env::split_paths(&path)
            .filter(|entry| entry.is_absolute() && outside(entry))
            .collect::<Vec<_>>();
        let program = entries.iter().map(|entry| entry.join("git"));
        let program = program.into_iter().find(|file| is_program(file) && outside(file));
        let path = std::env::join_paths(&entries).unwrap_or_else(|_| USUAL_PATH.into());
        Ok(Self { program: program.ok_or(CheckpointError::GitMissing)?, path, dir })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        self.command_in(&self.dir, args)
    }

    /// A command on another folder than the repository: the new one that will be renamed to it.
    pub(super) fn command_in(&self, dir: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("PATH", &self.path).env("GIT_DIR", dir).current_dir(dir);
        let off = OsStr::new("/dev/null");
        for name in ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
            command.env(name, off);
        }
        for name in
            ["GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM", "GIT_NO_REPLACE_OBJECTS", "GIT_NO_LAZY_FETCH"]
        {
            command.env(name, "1");
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_DEFAULT_REF_FORMAT", "files").env("LC_ALL", "C");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(args);
        command
    }

    /// Runs git to its end. An unsuccessful exit code is an error.
    pub(super) fn run(&self, action: &'static str, args: &[&str]) -> Result<Vec<u8>, CheckpointError> {
        let output = self.run_unchecked(action, args)?;
        if output.success() { Ok(output.stdout) } else { Err(output.failure(action)) }
    }

    /// Runs git to its end. The caller interprets the exit code.
    pub(super) fn run_unchecked(
        &self,
        action: &'static str,
        args: &[&str],
    ) -> Result<GitOutput, CheckpointError> {
        GitProcess::start(action, self.command(args), StdoutMode::Collected)?.finish(action)
    }

    /// Visits every file and link of a commit: mode, blob, path.
    pub(super) fn each_entry(
        &self,
        commit: &CommitId,
        visit: &mut dyn FnMut(u32, &str, &[u8]),
    ) -> Result<(), CheckpointError> {
        let action = "list the files of a checkpoint";
        let command = self.command(&["ls-tree", "-r", "-z", "--full-tree", commit.as_str()]);
        let mut process = GitProcess::start(action, command, StdoutMode::Streamed)?;
        let mut entry = Vec::new();
        if let Some(listing) = process.take_stdout() {
            let mut listing = BufReader::new(listing);
            while listing.read_until(0, &mut entry).map_err(CheckpointError::io(action))? > 0 {
                if let Some((mode, blob, path)) = parse_entry(&entry) {
                    visit(mode, blob, path);
                }
                entry.clear();
            }
        }
        let output = process.finish(action)?;
        if output.success() { Ok(()) } else { Err(output.failure(action)) }
    }
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// `mode SP type SP blob TAB path NUL`.
fn parse_entry(entry: &[u8]) -> Option<(u32, &str, &[u8])> {
    let entry = entry.strip_suffix(b"\0")?;
    let tab = entry.iter().position(|b| *b == b'\t')?;
    let mut fields = std::str::from_utf8(&entry[..tab]).ok()?.split(' ');
    let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
    Some((mode, fields.nth(1)?, &entry[tab + 1..]))
}

/// How a child's standard output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StdoutMode {
    /// A thread collects it.
    Collected,
    /// The caller reads it while the child runs.
    Streamed,
}

/// The output of a git process that ended by itself.
#[derive(Debug)]
pub(super) struct GitOutput {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl GitOutput {
    pub(super) fn success(&self) -> bool {
        self.status.success()
    }

    pub(super) fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }

    pub(super) fn failure(&self, action: &'static str) -> CheckpointError {
        CheckpointError::Git { action, status: self.status.to_string(), stderr: self.stderr_text() }
    }
}

/// A running git process. Dropping it kills it and all processes that it started.
#[derive(Debug)]
pub(super) struct GitProcess {
    child: Child,
    stdout: Option<Receiver<Vec<u8>>>,
    stderr: Receiver<Vec<u8>>,
    ended: bool,
}

impl GitProcess {
    pub(super) fn start(
        action: &'static str,
        mut command: Command,
        stdout_mode: StdoutMode,
    ) -> Result<Self, CheckpointError> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C at the terminal must not reach git in the middle of a write; we handle it.
        command.process_group(0);
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(CheckpointError::io(action))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (sender, empty) = sync_channel(1);
        drop(sender);
        let mut process = Self { child, stdout: None, stderr: empty, ended: false };
        if let Some(stderr) = stderr {
            process.stderr = drain(stderr, Some(MAX_STDERR_BYTES)).map_err(CheckpointError::io(action))?;
        }
        match (stdout_mode, stdout) {
            (StdoutMode::Collected, Some(stdout)) => {
                process.stdout = Some(drain(stdout, None).map_err(CheckpointError::io(action))?);
            }
            (StdoutMode::Streamed, stdout) => process.child.stdout = stdout,
            (StdoutMode::Collected, None) => {}
        }
        Ok(process)
    }

    pub(super) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    pub(super) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Closes git's input and waits for its end.
    pub(super) fn finish(mut self, action: &'static str) -> Result<GitOutput, CheckpointError> {
        drop(self.child.stdin.take());
        let status = self.child.wait().map_err(CheckpointError::io(action))?;
        Ok(self.collect(status))
    }

    /// Like [`finish`](Self::finish), but after the limit git is killed and the result is `None`.
    pub(super) fn finish_within(
        mut self,
        action: &'static str,
        limit: Duration,
    ) -> Result<Option<GitOutput>, CheckpointError> {
        drop(self.child.stdin.take());
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(status) = self.child.try_wait().map_err(CheckpointError::io(action))? {
                return Ok(Some(self.collect(status)));
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn collect(&mut self, status: ExitStatus) -> GitOutput {
        self.ended = true;
        // A grandchild that outlives git may keep a pipe open; do not wait for its output.
        let all = |pipe: &Receiver<Vec<u8>>| pipe.recv_timeout(DRAIN_TIMEOUT).unwrap_or_default();
        GitOutput {
            status,
            stdout: self.stdout.as_ref().map(all).unwrap_or_default(),
            stderr: all(&self.stderr),
        }
    }
}

impl Drop for GitProcess {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The child was not waited for, so its process id has not been reused.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a pipe to its end on a thread. With a limit, only the last bytes are kept.
fn drain(mut pipe: impl Read + Send + 'static, limit: Option<usize>) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = sync_channel(1);
    thread::Builder::new().name("git-output".into()).spawn(move || {
        let mut kept = Vec::new();
        let mut chunk = [0; 8 * 1024];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => kept.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            if let Some(limit) = limit
                && kept.len() > limit
            {
                kept.drain(..kept.len() - limit);
            }
        }
        // The receiver may have timed out.
        let _ = sender.send(kept);
    })?;
    Ok(receiver)
}
