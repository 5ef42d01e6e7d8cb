//! How a command reaches its computer: through the process that holds it, or by holding it itself.

use std::io::{self, Read};
use std::time::Duration;

use crate::computer::Computer;
use crate::failure::{Code, Failure};
use crate::place::Place;
use crate::protocol::{Answer, Envelope, Request};
use crate::socket;

/// A holder that is just starting or stopping is given this many chances.
const ATTEMPTS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Asks for one thing and returns the last word on it; a failure is an error.
pub fn ask(
    place: &Place,
    request: Request,
    body: &mut dyn Read,
    progress: &dyn Fn(&str, u64, u64),
) -> Result<Answer, Failure> {
    let envelope = Envelope::new(request);
    let mut locked = None;
    for _ in 0..ATTEMPTS {
        if let Some(stream) = socket::connect(place)? {
            return last_word(socket::call(stream, &envelope, body, progress).map_err(lost)?);
        }
        match Computer::open(place) {
            Ok(computer) => {
                computer.run_owed(progress)?;
                return last_word(computer.handle(&envelope, body, progress));
            }
            Err(failure) if failure.code == Code::Busy => {
                locked = Some(failure);
                std::thread::sleep(PAUSE);
            }
            Err(failure) => return Err(failure),
        }
    }
    Err(locked.unwrap_or_else(|| Failure::new(Code::Busy, "the computer is held by another process")))
}

fn last_word(answer: Answer) -> Result<Answer, Failure> {
    match answer {
        Answer::Failure(failure) => Err(failure),
        Answer::Done(_) | Answer::Status(_) | Answer::Progress { .. } => Ok(answer),
    }
}

fn lost(error: io::Error) -> Failure {
    let message = format!("the process that holds this computer went away before it answered ({error}); \
        whether the change was made is in choir log");
    Failure::new(Code::Failed, message)
}
