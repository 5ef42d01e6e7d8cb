//! Plays the scripts: takes a request, returns its answer and records both. Nothing here waits or uses sockets.
//! Answers depend on earlier requests only through the fault counters.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hyper::body::Bytes;

use crate::{
    conversation::Conversation,
    failure::RequestFailure,
    recording::{RecordedRequest, RequestOutcome},
    reply::Reply,
    script::{Fault, Script},
    step_choice::{self, ChosenStep, StepId},
    wire::{ErrorResponse, Request, Wire},
};

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) delay: Duration,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Problem(ErrorResponse),
    Stream {
        wire: Wire,
        pieces: Vec<Piece>,
    },
    /// No answer until the client disconnects.
    Silence,
    /// No provider has this path.
    NoSuchPath,
}

/// A piece of a stream.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    Wait(Duration),
    /// Cuts the connection.
    Cut,
}

#[derive(Debug)]
pub(crate) struct ScriptPlayer {
    key: String,
    play: Mutex<PlayState>,
    requests: Mutex<Vec<RecordedRequest>>,
}

#[derive(Debug)]
struct PlayState {
    scripts: Arc<[Script]>,
    faults: HashMap<StepId, u32>,
}

impl ScriptPlayer {
    pub(crate) fn new(scripts: Vec<Script>, key: String) -> Self {
        let play = PlayState { scripts: scripts.into(), faults: HashMap::new() };
        Self { key, play: Mutex::new(play), requests: Mutex::default() }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Replaces the scripts and resets the fault counters.
    pub(crate) fn set_scripts(&self, scripts: Vec<Script>) {
        *lock(&self.play) = PlayState { scripts: scripts.into(), faults: HashMap::new() };
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
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
                (Answer::at_once(Content::NoSuchPath), RequestOutcome::Refused { status: 404, reason })
            }
            Some(wire) => self.play(wire, request).unwrap_or_else(|failure| refuse(wire, &failure)),
        };
        lock(&self.requests).push(RecordedRequest::new(wire, request, &self.key, outcome));
        answer
    }

    fn play(&self, wire: Wire, request: &Request) -> Result<(Answer, RequestOutcome), RequestFailure> {
        let conversation = wire.read(request, &self.key)?;
        let scripts = lock(&self.play).scripts.clone();
        let chosen = step_choice::choose(&scripts, &conversation)
            .map_err(|problem| RequestFailure::BadRequest(format!("scripted model: {problem}").into()))?;
        if scripts[chosen.id.script].context.is_some_and(|most| conversation.tokens() > most) {
            return Err(RequestFailure::ContextTooLong);
        }
        let fault = self.next_fault(&chosen);
        let (agent, step) = (chosen.agent.name().to_owned(), chosen.id.step);
        Ok((perform(wire, &chosen, &conversation, fault), RequestOutcome::Played { agent, step, fault }))
    }

    /// The fault of this step, unless it has already happened often enough.
    fn next_fault(&self, chosen: &ChosenStep<'_>) -> Option<Fault> {
        let fault = chosen.step.fault?;
        let mut play = lock(&self.play);
        let happened = play.faults.entry(chosen.id).or_default();
        (*happened < chosen.step.times.unwrap_or(1)).then(|| {
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

fn refuse(wire: Wire, failure: &RequestFailure) -> (Answer, RequestOutcome) {
    let problem = wire.problem(failure);
    let outcome =
        RequestOutcome::Refused { status: problem.status.as_u16(), reason: problem.body.to_string() };
    (Answer::at_once(Content::Problem(problem)), outcome)
}

fn perform(wire: Wire, chosen: &ChosenStep<'_>, conversation: &Conversation, fault: Option<Fault>) -> Answer {
    let pause = Duration::from_millis(chosen.step.delay_ms);
    // A slow step pauses between its chunks instead of before the first byte.
    let delay = if chosen.step.fault == Some(Fault::Slow) { Duration::ZERO } else { pause };
    let failed =
        |failure: RequestFailure| Answer { delay, content: Content::Problem(wire.problem(&failure)) };
    let events = || wire.events(&Reply::new(chosen, conversation, fault), conversation);
    let pieces = match fault {
        Some(Fault::RateLimit) => {
            return failed(RequestFailure::RateLimit { retry_after: chosen.step.retry_after });
        }
        Some(Fault::Overloaded) => return failed(RequestFailure::Overloaded),
        Some(Fault::Auth) => return failed(RequestFailure::WrongKey),
        Some(Fault::BadRequest) => {
            return failed(RequestFailure::BadRequest("the script refuses this request".into()));
        }
        Some(Fault::ContextTooLong) => return failed(RequestFailure::ContextTooLong),
        Some(Fault::ServerError) => return failed(RequestFailure::Server),
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

/// Half of the events, and half of the next one.
fn cut(mut events: Vec<Bytes>) -> Vec<Piece> {
    events.truncate(events.len() / 2 + 1);
    if let Some(last) = events.last_mut() {
        last.truncate(last.len() / 2);
    }
    events.into_iter().map(Piece::Bytes).chain([Piece::Cut]).collect()
}

/// Half of the events, then the error, then a regular end.
fn broken_off(mut events: Vec<Bytes>, error: Bytes) -> Vec<Piece> {
    events.truncate(events.len() / 2);
    events.into_iter().chain([error]).map(Piece::Bytes).collect()
}

/// Every event in two halves, so that a client cannot mistake a read for an event.
fn slow(events: Vec<Bytes>, pause: Duration) -> Vec<Piece> {
    let halves = |mut event: Bytes| {
        let rest = event.split_off(event.len() / 2);
        [Piece::Bytes(event), Piece::Wait(pause), Piece::Bytes(rest), Piece::Wait(pause)]
    };
    events.into_iter().flat_map(halves).collect()
}
