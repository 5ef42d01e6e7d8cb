//! How a command reaches its computer: through the process that holds it, or by holding it itself.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::computer::Computer;
use crate::failure::{Code, Failure};
use crate::place::Place;
use crate::protocol::{Answer, Envelope, Request};
use crate::socket;

/// Another command that has the computer for itself, or a holder that is just starting or stopping, is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks for one thing and returns the last word on it; a failure is an error.
pub fn ask(
    place: &Place,
    request: Request,
    body: &mut dyn Read,
    progress: &dyn Fn(&str, u64, u64),
) -> Result<Answer, Failure> {
    let envelope = Envelope::new(request);
    match reach(place, progress)? {
        Reached::Holder(stream) => last_word(socket::call(stream, &envelope, body, progress).map_err(lost)?),
        Reached::Own(computer) => {
            computer.run_owed(progress)?;
            last_word(computer.handle(&envelope, body, progress))
        }
    }
}

/// Opens the computer to hold it. One that is held already is refused; a passing command is waited for.
pub fn take(place: &Place) -> Result<Computer, Failure> {
    match reach(place, &|_, _, _| ())? {
        Reached::Own(computer) => Ok(*computer),
        // Trying once more says who it is.
        Reached::Holder(_) => Computer::open(place),
    }
}

enum Reached {
    Holder(UnixStream),
    Own(Box<Computer>),
}

fn reach(place: &Place, progress: &dyn Fn(&str, u64, u64)) -> Result<Reached, Failure> {
    let started = Instant::now();
    loop {
        if let Some(stream) = socket::connect(place)? {
            return Ok(Reached::Holder(stream));
        }
        match Computer::open(place) {
            Ok(computer) => return Ok(Reached::Own(Box::new(computer))),
            Err(failure) if failure.code == Code::Busy && started.elapsed() < PATIENCE => {
                progress("waiting", started.elapsed().as_secs(), PATIENCE.as_secs());
                std::thread::sleep(PAUSE);
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn last_word(answer: Answer) -> Result<Answer, Failure> {
    match answer {
        Answer::Failure(failure) => Err(failure),
        Answer::Done(_) | Answer::Status(_) | Answer::Progress { .. } => Ok(answer),
    }
}

fn lost(error: io::Error) -> Failure {
    let message = format!(
        "the process that holds this computer went away before it answered ({error}); \
        whether the change was made is in choir log"
    );
    Failure::new(Code::Failed, message)
}
