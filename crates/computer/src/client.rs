//! How a process reaches a computer: through the holder of the computer, or by opening it itself.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shared_types::wire::RunLine;
use shared_types::{OpId, RunId, Seq};

use crate::cells::OutputListener;
use crate::computer::Computer;
use crate::error::{ComputerError, ErrorCode};
use crate::paths::ComputerPaths;
use crate::protocol::{Answer, Envelope, Request, RunRequest, RunResponse, RunUpdate};
use crate::socket;

/// How long to wait for another command that has the computer open, or for a holder that is starting or stopping.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Sends one request and returns the final answer; a failure is an error.
pub fn request(
    paths: &ComputerPaths,
    request: Request,
    body: &mut dyn Read,
    progress: &dyn Fn(&str, u64, u64),
) -> Result<Answer, ComputerError> {
    request_with_output(paths, request, body, progress, &mut |_, _| ())
}

/// Like [`request`], and calls `listener` with the output of a command. Ctrl-C stops the command; its result is still
/// reported.
pub fn request_with_output(
    paths: &ComputerPaths,
    request: Request,
    body: &mut dyn Read,
    progress: &dyn Fn(&str, u64, u64),
    listener: OutputListener<'_>,
) -> Result<Answer, ComputerError> {
    let envelope = Envelope::new(request);
    let mut body = UnreadBody { body, is_unread: true };
    // The holder may exit before it has read the request. A resend is safe because of its id, except for a command,
    // which would run twice.
    let mut may_resend = !matches!(envelope.request, Request::RunCommand(_));
    loop {
        match connect_or_open(paths, progress)? {
            ComputerAccess::Remote(stream) => {
                match socket::call(stream, &envelope, &mut body, progress, &mut *listener) {
                    Err(_) if may_resend && body.is_unread => may_resend = false,
                    other => return final_answer(other.map_err(holder_gone)?),
                }
            }
            ComputerAccess::Local(computer) => {
                computer.run_due_effects(progress)?;
                let computer = Arc::new(*computer);
                if let Request::RunCommand(_) = &envelope.request {
                    stop_on_signals(&computer, envelope.op)?;
                }
                return final_answer(computer.handle_with_output(&envelope, &mut body, progress, listener));
            }
        }
    }
}

/// A body, and whether it is still unread.
struct UnreadBody<'a> {
    body: &'a mut dyn Read,
    is_unread: bool,
}

impl Read for UnreadBody<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.body.read(into)?;
        self.is_unread &= count == 0;
        Ok(count)
    }
}

/// Signals stop the command; a second one ends this process as well.
fn stop_on_signals(computer: &Arc<Computer>, op: OpId) -> Result<(), ComputerError> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let computer = Arc::downgrade(computer);
    std::thread::spawn(move || {
        for (count, signal) in signals.forever().enumerate() {
            let stopped = computer.upgrade().is_some_and(|computer| computer.cells().stop(op));
            if count > 0 || !stopped {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    });
    Ok(())
}

/// Follows a run, through the process that holds the computer, until it is over, waits for the person or is paused.
pub fn follow(
    paths: &ComputerPaths,
    run: RunId,
    after: Seq,
    on_update: &mut dyn FnMut(RunUpdate),
) -> Result<RunLine, ComputerError> {
    let not_held = || {
        ComputerError::new(
            ErrorCode::Failed,
            "no process holds this computer any more, so its runs do not continue",
        )
    };
    let stream = socket::connect(paths)?.ok_or_else(not_held)?;
    let request = RunRequest::Follow { run: run.to_string(), after };
    let answer = socket::follow(stream, &Envelope::new(Request::AgentRuns(request)), on_update)
        .map_err(holder_gone)?;
    match answer.into_runs()? {
        RunResponse::Line(line) => Ok(line),
        RunResponse::List(_)
        | RunResponse::Details(_)
        | RunResponse::Steps(_)
        | RunResponse::StepDetail(_)
        | RunResponse::Questions(_)
        | RunResponse::Grants(_)
        | RunResponse::Model(_) => {
            Err(ComputerError::new(ErrorCode::Failed, "unexpected answer while following a run"))
        }
    }
}

/// Whether another process holds the computer.
pub fn is_held(paths: &ComputerPaths) -> Result<bool, ComputerError> {
    Ok(socket::connect(paths)?.is_some())
}

/// Calls a function at the first Ctrl-C or SIGTERM; the second ends this process.
pub fn on_first_signal(act: impl FnOnce() + Send + 'static) -> Result<(), ComputerError> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        let mut act = Some(act);
        for signal in signals.forever() {
            match act.take() {
                // The function may take a while, and a second signal must not wait for it.
                Some(act) => drop(std::thread::spawn(act)),
                None => drop(signal_hook::low_level::emulate_default_handler(signal)),
            }
        }
    });
    Ok(())
}

/// Opens the computer to hold it. Fails if another process holds it; waits for a command that has it open.
pub fn open_exclusive(paths: &ComputerPaths) -> Result<Computer, ComputerError> {
    match connect_or_open(paths, &|_, _, _| ())? {
        ComputerAccess::Local(computer) => Ok(*computer),
        // The error of another attempt names the holder.
        ComputerAccess::Remote(_) => Computer::open(paths),
    }
}

/// A connection to the holder of a computer, or the computer itself, opened in this process.
#[derive(Debug)]
pub enum ComputerAccess {
    Remote(UnixStream),
    Local(Box<Computer>),
}

/// Connects to the holder of a computer, or opens it in this process. Waits for a process that is about to release it.
pub fn connect_or_open(
    paths: &ComputerPaths,
    progress: &dyn Fn(&str, u64, u64),
) -> Result<ComputerAccess, ComputerError> {
    let started = Instant::now();
    loop {
        if let Some(stream) = socket::connect(paths)? {
            return Ok(ComputerAccess::Remote(stream));
        }
        match Computer::open(paths) {
            Ok(computer) => return Ok(ComputerAccess::Local(Box::new(computer))),
            Err(failure) if failure.code == ErrorCode::Busy && started.elapsed() < LOCK_TIMEOUT => {
                progress("waiting", started.elapsed().as_secs(), LOCK_TIMEOUT.as_secs());
                std::thread::sleep(LOCK_POLL_INTERVAL);
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn final_answer(answer: Answer) -> Result<Answer, ComputerError> {
    match answer {
        Answer::Failure(failure) => Err(failure),
        Answer::Done(_)
        | Answer::CommandResult(_)
        | Answer::AgentRuns(_)
        | Answer::Status(_)
        | Answer::Parts(_)
        | Answer::Progress { .. }
        | Answer::Output { .. }
        | Answer::RunUpdate(_) => Ok(answer),
    }
}

fn holder_gone(error: io::Error) -> ComputerError {
    let message = format!(
        "the process that holds this computer ended before it answered ({error}); \
        check with choir log whether the change was recorded"
    );
    ComputerError::new(ErrorCode::Failed, message)
}
