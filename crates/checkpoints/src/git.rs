//! Running git under nobody's configuration but ours.
//!
//! The environment is empty but for what stands here, system and user configuration are off, hooks are off, and the
//! repository is named and never searched for. Every child has its own process group and is killed with it when its
//! handle goes away; its outputs are read by threads, so that no pipe fills up.

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

/// What git says beyond this is not for people any more; the end of it tells the reason.
const SAID_LIMIT: usize = 16 * 1024;
/// How long an output may stay open once its process has ended.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

const SETTINGS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsync=all",
    "core.fsmonitor=false",
    // Larger blobs are streamed, so memory stays the same for any size.
    "core.bigFileThreshold=1m",
    "core.logAllRefUpdates=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fastimport.unpackLimit=0",
    "credential.helper=",
    "repack.writeBitmaps=false",
];

/// A git program and the one repository that it works on.
#[derive(Debug)]
pub(super) struct Git {
    program: PathBuf,
    path: OsString,
    dir: PathBuf,
}

impl Git {
    /// Finds git on `PATH`, where relative entries and those that a cell can write do not count.
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

    /// A command on another folder than the repository's own: the one that is about to become it.
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

    /// Runs git to its end; only success is an answer.
    pub(super) fn run(&self, action: &'static str, args: &[&str]) -> Result<Vec<u8>, CheckpointError> {
        let finished = self.ask(action, args)?;
        if finished.success() { Ok(finished.stdout) } else { Err(finished.failure(action)) }
    }

    /// Runs git to its end; the exit code is an answer too.
    pub(super) fn ask(&self, action: &'static str, args: &[&str]) -> Result<Finished, CheckpointError> {
        Running::start(action, self.command(args), Output::Collected)?.finish(action)
    }

    /// Visits every file and link of a commit: mode, blob, path.
    pub(super) fn each_entry(
        &self,
        commit: &CommitId,
        visit: &mut dyn FnMut(u32, &str, &[u8]),
    ) -> Result<(), CheckpointError> {
        let action = "list the files of a checkpoint";
        let command = self.command(&["ls-tree", "-r", "-z", "--full-tree", commit.as_str()]);
        let mut running = Running::start(action, command, Output::Taken)?;
        let mut entry = Vec::new();
        if let Some(listing) = running.take_stdout() {
            let mut listing = BufReader::new(listing);
            while listing.read_until(0, &mut entry).map_err(CheckpointError::io(action))? > 0 {
                if let Some((mode, blob, path)) = parse_entry(&entry) {
                    visit(mode, blob, path);
                }
                entry.clear();
            }
        }
        let finished = running.finish(action)?;
        if finished.success() { Ok(()) } else { Err(finished.failure(action)) }
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

/// What becomes of a child's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// A thread collects it.
    Collected,
    /// The caller reads it while the child runs.
    Taken,
}

/// A git that ended by itself.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Finished {
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

/// A git that runs. Dropped, it and all it started are killed.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    stdout: Option<Receiver<Vec<u8>>>,
    stderr: Receiver<Vec<u8>>,
    ended: bool,
}

impl Running {
    pub(super) fn start(
        action: &'static str,
        mut command: Command,
        output: Output,
    ) -> Result<Self, CheckpointError> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // A Ctrl-C at the terminal is for us to answer, not for git in the middle of a write.
        command.process_group(0);
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(CheckpointError::io(action))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (sender, empty) = sync_channel(1);
        drop(sender);
        let mut running = Self { child, stdout: None, stderr: empty, ended: false };
        if let Some(stderr) = stderr {
            running.stderr = drain(stderr, Some(SAID_LIMIT)).map_err(CheckpointError::io(action))?;
        }
        match (output, stdout) {
            (Output::Collected, Some(stdout)) => {
                running.stdout = Some(drain(stdout, None).map_err(CheckpointError::io(action))?);
            }
            (Output::Taken, stdout) => running.child.stdout = stdout,
            (Output::Collected, None) => {}
        }
        Ok(running)
    }

    pub(super) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    pub(super) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Closes git's input and waits for its end.
    pub(super) fn finish(mut self, action: &'static str) -> Result<Finished, CheckpointError> {
        drop(self.child.stdin.take());
        let status = self.child.wait().map_err(CheckpointError::io(action))?;
        Ok(self.collect(status))
    }

    /// The same, but only until the limit: past it, git is killed and the answer is `None`.
    pub(super) fn finish_within(
        mut self,
        action: &'static str,
        limit: Duration,
    ) -> Result<Option<Finished>, CheckpointError> {
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

    fn collect(&mut self, status: ExitStatus) -> Finished {
        self.ended = true;
        // A grandchild that outlives git may hold a pipe open; what it might still say is not waited for.
        let all = |pipe: &Receiver<Vec<u8>>| pipe.recv_timeout(DRAIN_PATIENCE).unwrap_or_default();
        Finished {
            status,
            stdout: self.stdout.as_ref().map(all).unwrap_or_default(),
            stderr: all(&self.stderr),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The child was not waited for, so its id is still its own.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a pipe to its end on a thread; of a limited one only the end is kept.
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
        // Whoever waited may have given up.
        let _ = sender.send(kept);
    })?;
    Ok(receiver)
}
