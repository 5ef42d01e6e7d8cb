//! The thread that owns the engine. Requests wait here for their turn: one answer is written at a time.
//!
//! Whoever asked holds the other end of a channel; when it is dropped, the answer is given up. If the engine fails in a
//! way that only a new one can mend, the thread ends, and everybody who asks hears so.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::answer::Delta;
use crate::engine::{Engine, EngineError, Listener, Network, Outcome, Refusal, Task, Words};
use crate::wire::Request;

/// How many may wait for their turn.
const QUEUE: usize = 8;

/// Something about an answer.
#[derive(Debug)]
pub(crate) enum Event {
    Accepted,
    Delta(Delta),
    Done(Outcome),
    Failed(AnswerError),
}

/// Why there was no answer.
#[derive(Debug, Error)]
pub(crate) enum AnswerError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why nobody takes a request.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unavailable {
    #[error("too many requests wait for this model; it answers one at a time")]
    Busy,
    #[error("the model has stopped")]
    Stopped,
}

/// Tokens a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Reading.
    pub prefill: f64,
    /// Writing.
    pub decode: f64,
}

enum Job {
    Answer(Box<Request>, mpsc::Sender<Event>),
    Measure(oneshot::Sender<Speed>),
}

/// Hands requests to the thread.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    jobs: mpsc::Sender<Job>,
    /// Events of one answer, so that a client who reads slowly never holds up the thread.
    room: usize,
}

impl Worker {
    /// Starts the thread; it ends with the last handle. `tell` hears when work begins, and when none is left for now.
    pub(crate) fn start<N, W>(
        mut engine: Engine<N, W>,
        tell: impl Fn(bool) + Send + 'static,
    ) -> std::io::Result<Self>
    where
        N: Network + Send + 'static,
        W: Words + Send + 'static,
    {
        let (jobs, mut waiting) = mpsc::channel(QUEUE);
        // Every token is at most two events.
        let room = engine.context() * 2 + 16;
        std::thread::Builder::new().name("model".into()).spawn(move || {
            while let Some(job) = waiting.blocking_recv() {
                tell(true);
                work(&mut engine, job);
                tell(false);
            }
        })?;
        Ok(Self { jobs, room })
    }

    /// One whose queue nobody empties.
    #[cfg(test)]
    pub(crate) fn stuck() -> Self {
        let (jobs, waiting) = mpsc::channel(QUEUE);
        std::mem::forget(waiting);
        Self { jobs, room: 16 }
    }

    /// Asks for an answer, which comes in events; dropping them gives it up.
    pub(crate) fn answer(&self, request: Request) -> Result<mpsc::Receiver<Event>, Unavailable> {
        let (events, answer) = mpsc::channel(self.room);
        self.give(Job::Answer(Box::new(request), events))?;
        Ok(answer)
    }

    pub(crate) async fn measure(&self) -> Result<Speed, Unavailable> {
        let (speed, measured) = oneshot::channel();
        self.give(Job::Measure(speed))?;
        measured.await.map_err(|_| Unavailable::Stopped)
    }

    fn give(&self, job: Job) -> Result<(), Unavailable> {
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unavailable::Busy,
            mpsc::error::TrySendError::Closed(_) => Unavailable::Stopped,
        })
    }
}

fn work<N: Network, W: Words>(engine: &mut Engine<N, W>, job: Job) {
    match job {
        Job::Answer(request, events) => {
            if events.is_closed() {
                return;
            }
            let mut listener = Events(events);
            let outcome = answer(engine, &request, &mut listener);
            listener.send(outcome.map_or_else(Event::Failed, Event::Done));
        }
        Job::Measure(speed) => match engine.measure() {
            Ok((prefill, decode)) => drop(speed.send(Speed { prefill, decode })),
            Err(error) => tracing::warn!(%error, "the speed of the local model could not be measured"),
        },
    }
}

fn answer<N: Network, W: Words>(
    engine: &mut Engine<N, W>,
    request: &Request,
    listener: &mut Events,
) -> Result<Outcome, AnswerError> {
    let task = Task::of(request)?;
    Ok(engine.answer(task, listener)?)
}

struct Events(mpsc::Sender<Event>);

impl Events {
    fn send(&self, event: Event) {
        // There is room for all of them; what cannot be sent has no reader.
        let _ = self.0.try_send(event);
    }
}

impl Listener for Events {
    fn is_there(&self) -> bool {
        !self.0.is_closed()
    }

    fn accepted(&mut self) {
        self.send(Event::Accepted);
    }

    fn hear(&mut self, delta: Delta) {
        self.send(Event::Delta(delta));
    }
}
