//! How a command reaches its computer: through the process that holds it, or by holding it itself.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shared_types::wire::RunLine;
use shared_types::{OpId, RunId, Seq};

use crate::cells::Listener;
use crate::computer::Computer;
use crate::error::{ComputerError, ErrorCode};
use crate::paths::ComputerPaths;
use crate::protocol::{Answer, Envelope, Request, RunAnswer, RunRequest, RunUpdate};
use crate::socket;

/// Another command that has the computer for itself, or a holder that is just starting or stopping, is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks for one thing and returns the last word on it; a failure is an error.
pub fn ask(
    place: &ComputerPaths,
    request: Request,
    body: &mut dyn Read,
    progress: &dyn Fn(&str, u64, u64),
) -> Result<Answer, ComputerError> {
    ask_aloud(place, request, body, progress, &mut |_, _| ())
}

/// The same; what a command prints meanwhile is told. Ctrl-C ends the command, not the telling of what became of it.
pub fn ask_aloud(
    place: &ComputerPaths,
    request: Request,
    body: &mut dyn Read,
    progress: &dyn Fn(&str, u64, u64),
    listener: Listener<'_>,
) -> Result<Answer, ComputerError> {
    let envelope = Envelope::new(request);
    let mut body = Untouched(body, true);
    // The holder may exit before it has read the request. A resend is recognised by its id; a command that runs is
    // not for that.
    let mut may_resend = !matches!(envelope.request, Request::Run(_));
    loop {
        match reach(place, progress)? {
            ComputerAccess::Holder(stream) => {
                match socket::call(stream, &envelope, &mut body, progress, &mut *listener) {
                    Err(_) if may_resend && body.1 => may_resend = false,
                    other => return last_word(other.map_err(lost)?),
                }
            }
            ComputerAccess::Own(computer) => {
                computer.run_owed(progress)?;
                let computer = Arc::new(*computer);
                if let Request::Run(_) = &envelope.request {
                    end_on_signals(&computer, envelope.op)?;
                }
                return last_word(computer.handle_aloud(&envelope, &mut body, progress, listener));
            }
        }
    }
}

/// A body, and whether nothing of it was read yet.
struct Untouched<'a>(&'a mut dyn Read, bool);

impl Read for Untouched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(into)?;
        self.1 &= count == 0;
        Ok(count)
    }
}

/// Signals end the command; a second one ends this process as well.
fn end_on_signals(computer: &Arc<Computer>, op: OpId) -> Result<(), ComputerError> {
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
    place: &ComputerPaths,
    run: RunId,
    after: Seq,
    tell: &mut dyn FnMut(RunUpdate),
) -> Result<RunLine, ComputerError> {
    let not_held = || {
        ComputerError::new(
            ErrorCode::Failed,
            "no process holds this computer any more, so nothing happens in it",
        )
    };
    let stream = socket::connect(place)?.ok_or_else(not_held)?;
    let request = RunRequest::Follow { run: run.to_string(), after };
    let answer = socket::follow(stream, &Envelope::new(Request::Runs(request)), tell).map_err(lost)?;
    match answer.into_runs()? {
        RunAnswer::Line(line) => Ok(line),
        RunAnswer::List(_)
        | RunAnswer::Details(_)
        | RunAnswer::Steps(_)
        | RunAnswer::Parts(_)
        | RunAnswer::Questions(_)
        | RunAnswer::Grants(_)
        | RunAnswer::Model(_) => {
            Err(ComputerError::new(ErrorCode::Failed, "a run was followed to something else"))
        }
    }
}

/// Whether another process holds the computer.
pub fn is_held(place: &ComputerPaths) -> Result<bool, ComputerError> {
    Ok(socket::connect(place)?.is_some())
}

/// Does something at the first Ctrl-C or SIGTERM; the second ends this process.
pub fn at_first_signal(act: impl FnOnce() + Send + 'static) -> Result<(), ComputerError> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        let mut act = Some(act);
        for signal in signals.forever() {
            match act.take() {
                // What it does may take a while, and a second signal must not wait for it.
                Some(act) => drop(std::thread::spawn(act)),
                None => drop(signal_hook::low_level::emulate_default_handler(signal)),
            }
        }
    });
    Ok(())
}

/// Opens the computer to hold it. One that is held already is refused; a passing command is waited for.
pub fn take(place: &ComputerPaths) -> Result<Computer, ComputerError> {
    match reach(place, &|_, _, _| ())? {
        ComputerAccess::Own(computer) => Ok(*computer),
        // Trying once more says who it is.
        ComputerAccess::Holder(_) => Computer::open(place),
    }
}

/// Where a computer was found: in the process that holds it, or here, since no other does.
#[derive(Debug)]
pub enum ComputerAccess {
    Holder(UnixStream),
    Own(Box<Computer>),
}

/// Connects to the process that holds a computer, or opens it here; waits for another that is about to let go.
pub fn reach(
    place: &ComputerPaths,
    progress: &dyn Fn(&str, u64, u64),
) -> Result<ComputerAccess, ComputerError> {
    let started = Instant::now();
    loop {
        if let Some(stream) = socket::connect(place)? {
            return Ok(ComputerAccess::Holder(stream));
        }
        match Computer::open(place) {
            Ok(computer) => return Ok(ComputerAccess::Own(Box::new(computer))),
            Err(failure) if failure.code == ErrorCode::Busy && started.elapsed() < PATIENCE => {
                progress("waiting", started.elapsed().as_secs(), PATIENCE.as_secs());
                std::thread::sleep(PAUSE);
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn last_word(answer: Answer) -> Result<Answer, ComputerError> {
    match answer {
        Answer::Failure(failure) => Err(failure),
        Answer::Done(_)
        | Answer::Ran(_)
        | Answer::Runs(_)
        | Answer::Status(_)
        | Answer::Parts(_)
        | Answer::Progress { .. }
        | Answer::Output { .. }
        | Answer::Heard(_) => Ok(answer),
    }
}

fn lost(error: io::Error) -> ComputerError {
    let message = format!(
        "the process that holds this computer went away before it answered ({error}); \
        whether the change was made is in choir log"
    );
    ComputerError::new(ErrorCode::Failed, message)
}
