//! The socket of the process that holds a computer: `.choir/choir.sock`, for the same user only.

use std::io::{self, BufReader, BufWriter};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use isolation::Stream;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::net::sockopt::socket_peercred;
use shared_types::OpId;
use shared_types::wire::PartsReport;

use crate::cells::OutputListener;
use crate::computer::{self, Computer, read_input};
use crate::error::{ComputerError, ErrorCode};
use crate::paths::ComputerPaths;
use crate::protocol::{
    Answer, Body, Envelope, Request, RunRequest, RunResponse, RunUpdate, bytes_from_latin1, receive, send,
    send_body,
};
use crate::running_commands::Commands;

/// A caller that is silent for this long is disconnected.
const CALLER_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause between attempts to stop a command whose cell is still being made.
const STOP_RETRY_PAUSE: Duration = Duration::from_millis(5);
/// How often to check whether the caller of a running command is still connected.
const CALLER_CHECK_INTERVAL: rustix::event::Timespec =
    rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The path of a Unix socket must be short. A path through the folder's descriptor works for any folder.
fn with_short_path<T>(paths: &ComputerPaths, act: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    use std::os::fd::AsRawFd;
    let folder = open(&paths.state, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    act(PathBuf::from(format!("/proc/self/fd/{}/choir.sock", folder.as_raw_fd())))
}

/// The listening side. The caller holds the log, so a socket that is already there is a leftover.
pub fn bind(paths: &ComputerPaths) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt;
    remove(paths)?;
    let listener = with_short_path(paths, UnixListener::bind)?;
    std::fs::set_permissions(paths.socket(), std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Removes the socket, so that commands open the computer themselves.
pub fn remove(paths: &ComputerPaths) -> io::Result<()> {
    match std::fs::remove_file(paths.socket()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What the holder of a computer needs to answer requests.
pub struct Holder {
    pub computer: Arc<Computer>,
    /// The running commands, whose output also goes to tabs.
    pub commands: Arc<Commands>,
    /// How the supervised parts are doing.
    pub parts: Box<dyn Fn() -> PartsReport + Send + Sync>,
}

impl std::fmt::Debug for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Holder").field(&self.computer.paths).finish()
    }
}

/// Answers the one request of a caller.
pub fn serve(holder: &Holder, stream: &UnixStream) -> io::Result<()> {
    let Holder { computer, commands, parts } = holder;
    stream.set_read_timeout(Some(CALLER_TIMEOUT))?;
    stream.set_write_timeout(Some(CALLER_TIMEOUT))?;
    let out = Mutex::new(BufWriter::new(stream));
    let reply = |answer: &Answer| send(&mut *out.lock().unwrap_or_else(PoisonError::into_inner), answer);
    let peer = socket_peercred(stream)?.uid;
    if peer != rustix::process::geteuid() {
        return reply(&Answer::Failure(ComputerError::new(
            ErrorCode::Refused,
            "this computer belongs to another user",
        )));
    }
    let mut input = BufReader::new(stream);
    let envelope = match Envelope::receive(&mut input) {
        Ok(envelope) => envelope,
        Err(e) if e.kind() == io::ErrorKind::InvalidData => {
            return reply(&Answer::Failure(ComputerError::new(
                ErrorCode::BadRequest,
                format!("not a request: {e}"),
            )));
        }
        Err(e) => return Err(e),
    };
    let progress = |phase: &str, done, total| {
        // A caller that does not read progress still gets the answer.
        let _ = reply(&Answer::Progress { phase: phase.to_owned(), done, total });
    };
    if let Request::AgentRuns(RunRequest::Follow { run, after }) = &envelope.request {
        let followed = computer
            .follow_run(run, *after, &|| !is_gone(stream), &mut |update| reply(&Answer::RunUpdate(update)));
        return reply(
            &followed.map_or_else(Answer::Failure, |line| Answer::AgentRuns(RunResponse::Line(line))),
        );
    }
    let is_over = AtomicBool::new(false);
    let answer = std::thread::scope(|scope| {
        if let Request::RunCommand(_) = &envelope.request {
            scope.spawn(|| stop_with_caller(computer, envelope.op, stream, &is_over));
        }
        let mut on_output = |from, bytes: &[u8]| {
            let _ = reply(&Answer::output(from, bytes));
        };
        let mut body = Body::new(&mut input);
        let answer = if let Request::RunCommand(command) = &envelope.request {
            let caller = computer::Caller::of(&envelope);
            let ran = read_input(&mut body)
                .map_err(ComputerError::from)
                .and_then(|input| commands.run_for_caller(computer, &caller, command, input, &mut on_output));
            ran.map_or_else(Answer::Failure, |ran| Answer::CommandResult(Box::new(ran)))
        } else if let Request::Parts = &envelope.request {
            Answer::Parts(parts())
        } else {
            computer.handle_with_output(&envelope, &mut body, &progress, &mut on_output)
        };
        is_over.store(true, Ordering::Relaxed);
        answer
    });
    reply(&answer)
}

/// Whether the other end has closed the connection.
fn is_gone(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && !fds[0].revents().is_empty()
}

/// Stops a command whose caller has disconnected, as with Ctrl-C.
fn stop_with_caller(computer: &Computer, op: OpId, stream: &UnixStream, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
        let _ = poll(&mut fds, Some(&CALLER_CHECK_INTERVAL));
        if !fds[0].revents().is_empty() && computer.cells().stop(op) {
            return;
        }
        if !fds[0].revents().is_empty() {
            std::thread::sleep(STOP_RETRY_PAUSE);
        }
    }
}

/// The calling side. `None` if no process listens.
pub fn connect(paths: &ComputerPaths) -> io::Result<Option<UnixStream>> {
    match with_short_path(paths, UnixStream::connect) {
        Ok(stream) => Ok(Some(stream)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Follows a run until it is over, waits or is paused, and returns the final answer.
pub fn follow(
    stream: UnixStream,
    envelope: &Envelope,
    on_update: &mut dyn FnMut(RunUpdate),
) -> io::Result<Answer> {
    call_with(stream, envelope, &mut io::empty(), &|_, _, _| (), &mut |_, _| (), on_update)
}

/// Sends one request and waits for its answer.
pub fn call(
    stream: UnixStream,
    envelope: &Envelope,
    body: &mut dyn io::Read,
    progress: &dyn Fn(&str, u64, u64),
    listener: OutputListener<'_>,
) -> io::Result<Answer> {
    call_with(stream, envelope, body, progress, listener, &mut |_| ())
}

fn call_with(
    stream: UnixStream,
    envelope: &Envelope,
    body: &mut dyn io::Read,
    progress: &dyn Fn(&str, u64, u64),
    listener: OutputListener<'_>,
    on_update: &mut dyn FnMut(RunUpdate),
) -> io::Result<Answer> {
    let mut input = BufReader::new(stream.try_clone()?);
    let mut out = BufWriter::new(stream);
    send(&mut out, envelope)?;
    // A holder that refuses at once closes its side while this still sends; its answer counts.
    let sent = send_body(&mut out, body);
    loop {
        match receive(&mut input) {
            Ok(Answer::Progress { phase, done, total }) => progress(&phase, done, total),
            Ok(Answer::Output { errors, text }) => {
                let from = if errors { Stream::Err } else { Stream::Out };
                listener(from, &bytes_from_latin1(&text));
            }
            Ok(Answer::RunUpdate(update)) => on_update(update),
            Ok(answer) => return Ok(answer),
            Err(e) => return Err(sent.err().unwrap_or(e)),
        }
    }
}
