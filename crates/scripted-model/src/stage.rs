//! Where scripts are played: a request comes in, its answer goes out, and both are remembered. Nothing here waits or
//! touches a socket. Of the past only the number of faults that happened has an effect.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hyper::body::Bytes;

use crate::{
    choice::{self, Cue, Place},
    conversation::Conversation,
    failure::Failure,
    recorded::{Outcome, Recorded},
    reply::Reply,
    script::{Fault, Script},
    wire::{Problem, Request, Wire},
};

/// What goes back to the client.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) delay: Duration,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Problem(Problem),
    Stream {
        wire: Wire,
        pieces: Vec<Piece>,
    },
    /// None, until the client goes away.
    Silence,
    /// Nobody's path.
    NoSuchPath,
}

/// A part of a stream.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    Wait(Duration),
    /// The connection breaks.
    Cut,
}

#[derive(Debug)]
pub(crate) struct Stage {
    key: String,
    play: Mutex<Play>,
    requests: Mutex<Vec<Recorded>>,
}

#[derive(Debug)]
struct Play {
    scripts: Arc<[Script]>,
    faults: HashMap<Place, u32>,
}

impl Stage {
    pub(crate) fn new(scripts: Vec<Script>, key: String) -> Self {
        let play = Play { scripts: scripts.into(), faults: HashMap::new() };
        Self { key, play: Mutex::new(play), requests: Mutex::default() }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// From now on others are played, and faults are counted from none.
    pub(crate) fn set_scripts(&self, scripts: Vec<Script>) {
        *lock(&self.play) = Play { scripts: scripts.into(), faults: HashMap::new() };
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        lock(&self.requests).clone()
    }

    pub(crate) fn forget_requests(&self) {
        lock(&self.requests).clear();
    }

    pub(crate) fn answer(&self, request: &Request) -> Answer {
        let wire = Wire::of_path(&request.path);
        let (answer, outcome) = match wire {
            None => {
                let reason = format!("no provider has the path {}", request.path);
                (Answer::at_once(Content::NoSuchPath), Outcome::Refused { status: 404, reason })
            }
            Some(wire) => self.play(wire, request).unwrap_or_else(|failure| refuse(wire, &failure)),
        };
        lock(&self.requests).push(Recorded::new(wire, request, &self.key, outcome));
        answer
    }

    fn play(&self, wire: Wire, request: &Request) -> Result<(Answer, Outcome), Failure> {
        let asked = wire.read(request, &self.key)?;
        let scripts = lock(&self.play).scripts.clone();
        let cue = choice::choose(&scripts, &asked)
            .map_err(|problem| Failure::BadRequest(format!("scripted model: {problem}").into()))?;
        if scripts[cue.place.script].context.is_some_and(|most| asked.tokens() > most) {
            return Err(Failure::ContextTooLong);
        }
        let fault = self.next_fault(&cue);
        let (agent, step) = (cue.agent.name().to_owned(), cue.place.step);
        Ok((perform(wire, &cue, &asked, fault), Outcome::Played { agent, step, fault }))
    }

    /// The fault of this step, as long as it has not happened often enough.
    fn next_fault(&self, cue: &Cue<'_>) -> Option<Fault> {
        let fault = cue.step.fault?;
        let mut play = lock(&self.play);
        let happened = play.faults.entry(cue.place).or_default();
        (*happened < cue.step.times.unwrap_or(1)).then(|| {
            *happened += 1;
            fault
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Answer {
    fn at_once(content: Content) -> Self {
        Self { delay: Duration::ZERO, content }
    }
}

fn refuse(wire: Wire, failure: &Failure) -> (Answer, Outcome) {
    let problem = wire.problem(failure);
    let outcome = Outcome::Refused { status: problem.status.as_u16(), reason: problem.body.to_string() };
    (Answer::at_once(Content::Problem(problem)), outcome)
}

fn perform(wire: Wire, cue: &Cue<'_>, asked: &Conversation, fault: Option<Fault>) -> Answer {
    let pause = Duration::from_millis(cue.step.delay_ms);
    // The pause of a slow step lies between its chunks, and goes when the slowness does.
    let delay = if cue.step.fault == Some(Fault::Slow) { Duration::ZERO } else { pause };
    let failed = |failure: Failure| Answer { delay, content: Content::Problem(wire.problem(&failure)) };
    let events = || wire.events(&Reply::new(cue, asked, fault), asked);
    let pieces = match fault {
        Some(Fault::RateLimit) => return failed(Failure::RateLimit { retry_after: cue.step.retry_after }),
        Some(Fault::Overloaded) => return failed(Failure::Overloaded),
        Some(Fault::Auth) => return failed(Failure::WrongKey),
        Some(Fault::BadRequest) => {
            return failed(Failure::BadRequest("the script refuses this request".into()));
        }
        Some(Fault::ContextTooLong) => return failed(Failure::ContextTooLong),
        Some(Fault::ServerError) => return failed(Failure::Server),
        Some(Fault::Silent) => return Answer { delay, content: Content::Silence },
        Some(Fault::Cut) => cut(events()),
        Some(Fault::CutAtOnce) => vec![Piece::Cut],
        Some(Fault::StreamError) => broken_off(events(), wire.stream_error()),
        Some(Fault::Slow) => slow(events(), pause),
        None | Some(Fault::BadJson | Fault::Refuse | Fault::Length) => {
            events().into_iter().map(Piece::Bytes).collect()
        }
    };
    Answer { delay, content: Content::Stream { wire, pieces } }
}

/// Half of the events, and half of one more.
fn cut(mut events: Vec<Bytes>) -> Vec<Piece> {
    events.truncate(events.len() / 2 + 1);
    if let Some(last) = events.last_mut() {
        last.truncate(last.len() / 2);
    }
    events.into_iter().map(Piece::Bytes).chain([Piece::Cut]).collect()
}

/// Half of the events, then the error, then an orderly end.
fn broken_off(mut events: Vec<Bytes>, error: Bytes) -> Vec<Piece> {
    events.truncate(events.len() / 2);
    events.into_iter().chain([error]).map(Piece::Bytes).collect()
}

/// Every event in two halves, wherever that splits it, so that no client can take a read for an event.
fn slow(events: Vec<Bytes>, pause: Duration) -> Vec<Piece> {
    let halves = |mut event: Bytes| {
        let rest = event.split_off(event.len() / 2);
        [Piece::Bytes(event), Piece::Wait(pause), Piece::Bytes(rest), Piece::Wait(pause)]
    };
    events.into_iter().flat_map(halves).collect()
}
