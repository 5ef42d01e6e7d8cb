//! The one writer of a user: a thread that owns the present and turns commands into durable events.
//!
//! It takes the commands that wait, decides each on a speculative view, appends them as one group with one flush, and
//! only then answers. If the flush fails, everybody in the group is refused and the view goes back to what the log
//! holds. It never waits for a model, a network or a command. Dropping the last handle ends the thread.

mod deciding;
mod groups;
mod replies;

use std::sync::Arc;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread::JoinHandle;

use kernel::{Action, Decision, Effect, Rejection, Resolutions, View};
use shared_types::{Actor, CommandId, ContentHash, EventId, OpId, RunId, Seq, Source, Taint, Timestamp};
use thiserror::Error;

use crate::replay::view_at;
use crate::{AppendError, Appended, ContentError, EventLog, ReadError};
use groups::State;
use replies::Replies;

/// Commands that may wait before a caller has to.
const MAILBOX: usize = 1024;

/// What somebody wants, before it is stamped.
#[derive(Debug, Clone)]
pub struct Submission {
    pub command: CommandId,
    pub op: OpId,
    pub source: Source,
    pub actor: Actor,
    pub run_id: Option<RunId>,
    pub cause: Option<EventId>,
    pub taint: Vec<Taint>,
    pub intent: Intent,
    /// Small contents that the intent names.
    pub contents: Vec<(ContentHash, Vec<u8>)>,
}

/// An action, or one for which the writer first reads the log.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "nearly all are actions, and a submission travels in a box")]
pub enum Intent {
    Do(Action),
    Undo {
        target: OpId,
        resolutions: Resolutions,
    },
    /// Takes back all of a run that is not undone yet, as one operation.
    UndoRun {
        run: RunId,
        resolutions: Resolutions,
    },
    /// Lets a run go on from before a turn of a model.
    RetryRun {
        run: RunId,
        to: Seq,
        resolutions: Resolutions,
    },
    Restore {
        seq: Seq,
    },
}

/// Whether a decision takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Commit,
    /// Only say what would happen.
    Preview,
}

/// What became of a submission. No events means that all was as wanted already.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Where the events stand; absent if there are none, and for a preview.
    pub appended: Option<Appended>,
    /// True if this command was answered before, and this is that answer again.
    pub resent: bool,
    pub decision: Decision,
}

/// Why a submission did not take effect. Nothing was changed.
#[derive(Debug, Error)]
pub enum SubmitError {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error("content {0} is named but is not here: it was purged, or never stored")]
    NoContent(ContentHash),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error("the writer has stopped: {0}")]
    Stopped(String),
}

type Reply = Box<dyn FnOnce(Result<Outcome, SubmitError>) + Send>;

type Look = Box<dyn FnOnce(&mut View) + Send>;

enum Request {
    Submit { submission: Box<Submission>, mode: Mode, reply: Reply },
    Inspect(Look),
}

/// A handle on the writer; cheap to clone.
#[derive(Clone)]
pub struct Writer {
    mailbox: SyncSender<Request>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}

/// What a writer is given.
pub struct Options {
    pub clock: Box<dyn Fn() -> Timestamp + Send>,
    /// Woken with every effect that becomes owed, and at the start with all that are.
    pub effects: Option<Sender<Effect>>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Options")
    }
}

impl Writer {
    /// Loads the present and starts the thread.
    pub fn start(log: Arc<dyn EventLog>, options: Options) -> Result<(Self, JoinHandle<()>), ReadError> {
        let view = view_at(&*log, log.head().seq)?;
        let (mailbox, requests) = mpsc::sync_channel(MAILBOX);
        if let Some(effects) = &options.effects {
            for (id, kind) in view.pending.iter() {
                let _ = effects.send(Effect { id: *id, kind: kind.clone() });
            }
        }
        let spawned = Replies::start().and_then(|replies| {
            let mut state = State::new(log, view, options, replies);
            std::thread::Builder::new().name("writer".into()).spawn(move || state.run(&requests))
        });
        let thread = spawned.map_err(|e| ReadError::Broken { seq: Seq::ZERO, reason: e.to_string() })?;
        Ok((Self { mailbox }, thread))
    }

    /// Hands a submission over; `reply` is called on a thread of the writer's and must not block.
    pub fn submit_with(
        &self,
        submission: Submission,
        mode: Mode,
        reply: impl FnOnce(Result<Outcome, SubmitError>) + Send + 'static,
    ) {
        let request = Request::Submit { submission: Box::new(submission), mode, reply: Box::new(reply) };
        if let Err(mpsc::SendError(Request::Submit { reply, .. })) = self.mailbox.send(request) {
            reply(Err(SubmitError::Stopped("its thread is gone".into())));
        }
    }

    /// Submits and waits for the answer.
    pub fn submit(&self, submission: Submission, mode: Mode) -> Result<Outcome, SubmitError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.submit_with(submission, mode, move |answer| {
            let _ = sender.send(answer);
        });
        receiver.recv().map_err(|_| SubmitError::Stopped("it ended before answering".into()))?
    }

    /// Shows the present to `look` between two groups, on the writer's thread, where it must not block. It is dropped
    /// unseen if that thread is gone.
    pub fn inspect_with(&self, look: impl FnOnce(&mut View) + Send + 'static) {
        let _ = self.mailbox.send(Request::Inspect(Box::new(look)));
    }

    /// Looks at the present, and waits until it was seen.
    pub fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut View) -> T + Send + 'static,
    ) -> Result<T, SubmitError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.inspect_with(move |view| {
            let _ = sender.send(look(view));
        });
        receiver.recv().map_err(|_| SubmitError::Stopped("its thread is gone".into()))
    }
}
