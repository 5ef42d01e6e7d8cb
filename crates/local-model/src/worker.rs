//! The thread that owns the engine. Requests wait in a queue; one answer is written at a time.
//!
//! The client holds the receiving end of a channel; dropping it cancels the answer. If the engine fails
//! unrecoverably, the thread ends, and later requests get an error.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::answer::AnswerDelta;
use crate::answer_mode::InvalidRequest;
use crate::engine::{AnswerListener, AnswerOutcome, Engine, EngineError, Network, Task, Tokenizer};
use crate::wire::CompletionRequest;

/// Length of the queue.
const QUEUE: usize = 8;

/// An event of an answer.
#[derive(Debug)]
pub(crate) enum AnswerEvent {
    Accepted,
    Delta(AnswerDelta),
    Done(AnswerOutcome),
    Failed(AnswerError),
}

/// Why an answer failed.
#[derive(Debug, Error)]
pub(crate) enum AnswerError {
    #[error(transparent)]
    Refused(#[from] InvalidRequest),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why a request was not accepted.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerUnavailable {
    #[error("too many requests are waiting; the model answers one at a time")]
    Busy,
    #[error("the model has stopped")]
    Stopped,
}

/// Tokens per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Reading the prompt.
    pub prefill: f64,
    /// Writing the answer.
    pub decode: f64,
}

enum Job {
    Answer(Box<CompletionRequest>, mpsc::Sender<AnswerEvent>),
    Measure(oneshot::Sender<Speed>),
}

/// A handle to the worker thread.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    jobs: mpsc::Sender<Job>,
    /// Channel capacity for the events of one answer, so that a slow client never blocks the thread.
    capacity: usize,
}

impl Worker {
    /// Starts the thread; it ends when the last handle is dropped. `on_working` reports when a job starts and ends.
    pub(crate) fn start<N, V>(
        mut engine: Engine<N, V>,
        on_working: impl Fn(bool) + Send + 'static,
    ) -> std::io::Result<Self>
    where
        N: Network + Send + 'static,
        V: Tokenizer + Send + 'static,
    {
        let (jobs, mut waiting) = mpsc::channel(QUEUE);
        // Every token produces at most two events.
        let capacity = engine.context() * 2 + 16;
        std::thread::Builder::new().name("model".into()).spawn(move || {
            while let Some(job) = waiting.blocking_recv() {
                on_working(true);
                work(&mut engine, job);
                on_working(false);
            }
        })?;
        Ok(Self { jobs, capacity })
    }

    /// A worker whose queue is never emptied.
    #[cfg(test)]
    pub(crate) fn stuck() -> Self {
        let (jobs, waiting) = mpsc::channel(QUEUE);
        std::mem::forget(waiting);
        Self { jobs, capacity: 16 }
    }

    /// Queues a request and returns the events of its answer. Dropping the receiver cancels the answer.
    pub(crate) fn answer(
        &self,
        request: CompletionRequest,
    ) -> Result<mpsc::Receiver<AnswerEvent>, WorkerUnavailable> {
        let (events, answer) = mpsc::channel(self.capacity);
        self.give(Job::Answer(Box::new(request), events))?;
        Ok(answer)
    }

    pub(crate) async fn measure(&self) -> Result<Speed, WorkerUnavailable> {
        let (speed, measured) = oneshot::channel();
        self.give(Job::Measure(speed))?;
        measured.await.map_err(|_| WorkerUnavailable::Stopped)
    }

    fn give(&self, job: Job) -> Result<(), WorkerUnavailable> {
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => WorkerUnavailable::Busy,
            mpsc::error::TrySendError::Closed(_) => WorkerUnavailable::Stopped,
        })
    }
}

fn work<N: Network, V: Tokenizer>(engine: &mut Engine<N, V>, job: Job) {
    match job {
        Job::Answer(request, events) => {
            if events.is_closed() {
                return;
            }
            let mut listener = EventSender(events);
            let outcome = answer(engine, &request, &mut listener);
            listener.send(outcome.map_or_else(AnswerEvent::Failed, AnswerEvent::Done));
        }
        Job::Measure(speed) => match engine.measure() {
            Ok((prefill, decode)) => drop(speed.send(Speed { prefill, decode })),
            Err(error) => tracing::warn!(%error, "the speed of the local model could not be measured"),
        },
    }
}

fn answer<N: Network, V: Tokenizer>(
    engine: &mut Engine<N, V>,
    request: &CompletionRequest,
    listener: &mut EventSender,
) -> Result<AnswerOutcome, AnswerError> {
    let task = Task::new(request)?;
    Ok(engine.answer(task, listener)?)
}

struct EventSender(mpsc::Sender<AnswerEvent>);

impl EventSender {
    fn send(&self, event: AnswerEvent) {
        // The channel has capacity for all events, so sending fails only without a reader.
        let _ = self.0.try_send(event);
    }
}

impl AnswerListener for EventSender {
    fn is_connected(&self) -> bool {
        !self.0.is_closed()
    }

    fn accepted(&mut self) {
        self.send(AnswerEvent::Accepted);
    }

    fn receive(&mut self, delta: AnswerDelta) {
        self.send(AnswerEvent::Delta(delta));
    }
}
