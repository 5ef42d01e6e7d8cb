//! The one writer of a user: a thread that owns the current [`View`] and turns submissions into durable events.
//!
//! Every request to change a computer takes the same way:
//!
//! 1. The caller makes a [`Submission`]: who asks, under which ids, and a [`ChangeRequest`]. It is the only thing that
//!    the writer accepts.
//! 2. The writer turns the [`ChangeRequest`] into a [`kernel::Action`]. Most requests are an action already; for undo,
//!    retry and restore it adds the events or the old view from the log, because the kernel reads nothing.
//! 3. It stamps the time and builds a [`kernel::Command`]: action, ids, time, and the contents that deciding needs.
//! 4. [`kernel::decide`] answers with events, and [`EventLog::append`] stores them.
//!
//! The thread takes all waiting submissions, decides each on a speculative view, appends them as one group with one
//! flush, and replies after the flush. If the flush fails, the whole group is refused and the view returns to what the
//! log holds. The thread never waits for a model, a network or a command. Dropping the last handle ends it.

mod deciding;
mod groups;
mod replies;

use std::sync::Arc;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread::JoinHandle;

pub use kernel::Origin;
use kernel::{Action, Base, Decision, Effect, Rejection, Resolutions, View};
use shared_types::{ContentHash, ContentRef, FilePath, OpId, RunId, Seq, Timestamp};
use thiserror::Error;

use crate::replay::view_at;
use crate::{AppendError, Appended, ContentError, EventLog, ReadError};
use groups::WriterThread;
use replies::Replies;

/// Requests that may wait in the mailbox before the next caller blocks.
const MAILBOX: usize = 256;

/// A request to change the computer. Every change takes this form, whether a person, an agent, the command line or the
/// system asks for it.
#[derive(Debug, Clone)]
pub struct Submission {
    pub origin: Origin,
    pub change: ChangeRequest,
    /// Contents up to `INLINE_LIMIT` that the change names; larger ones are staged as blobs first.
    pub contents: Vec<(ContentHash, Vec<u8>)>,
}

impl Submission {
    pub fn new(origin: Origin, change: ChangeRequest, contents: Vec<(ContentHash, Vec<u8>)>) -> Self {
        Self { origin, change, contents }
    }
}

/// What a submission asks for: an action that is complete, or one that the writer completes from the log.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all changes are actions, and a submission is sent in a box"
)]
pub enum ChangeRequest {
    Do(Action),
    /// Writes a file. Without a mode it keeps the one that it has.
    WriteFile {
        path: FilePath,
        content: ContentRef,
        mode: Option<u16>,
        base: Base,
    },
    /// Undoes an operation, or redoes what it undid if the operation is an undo.
    Undo {
        target: OpId,
        resolutions: Resolutions,
    },
    /// Undoes everything in a run that is not undone yet, as one operation.
    UndoRun {
        run: RunId,
        resolutions: Resolutions,
    },
    /// Continues a run from before a turn of a model.
    RetryRun {
        run: RunId,
        to: Seq,
        resolutions: Resolutions,
    },
    /// Returns files, windows, settings and notes to their state at `seq`.
    Restore {
        seq: Seq,
    },
}

/// Whether a submission takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Commit,
    /// Returns the decision without appending it.
    Preview,
}

/// The result of a submission. No events means that it was a no-op.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The seqs of the events; none for a no-op and for a preview.
    pub appended: Option<Appended>,
    /// True if the command was recorded before and this repeats its first answer.
    pub resent: bool,
    pub decision: Decision,
}

/// Why a submission failed. Nothing was changed.
#[derive(Debug, Error)]
pub enum SubmitError {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error("content {0} is missing: it was purged or never stored")]
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

type Inspection = Box<dyn FnOnce(&mut View) + Send>;

enum Request {
    Submit { submission: Box<Submission>, mode: Mode, reply: Reply },
    Inspect(Inspection),
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

/// What a writer needs from its owner.
pub struct Options {
    pub clock: Box<dyn Fn() -> Timestamp + Send>,
    /// Receives every effect when it becomes pending, and all pending effects at the start.
    pub effects: Option<Sender<Effect>>,
    /// Called if the thread ends by a panic. Submissions are refused from then on, and nothing that was acknowledged is
    /// lost; the log has to be opened again.
    pub on_panic: Option<Box<dyn FnOnce() + Send>>,
}

/// Calls the function when it is dropped by a panic.
struct CallOnPanic(Option<Box<dyn FnOnce() + Send>>);

impl Drop for CallOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(call) = self.0.take()
        {
            call();
        }
    }
}

impl Options {
    pub fn new(clock: impl Fn() -> Timestamp + Send + 'static) -> Self {
        Self { clock: Box::new(clock), effects: None, on_panic: None }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Options")
    }
}

impl Writer {
    /// Loads the current view and starts the thread.
    pub fn start(log: Arc<dyn EventLog>, mut options: Options) -> Result<(Self, JoinHandle<()>), ReadError> {
        let view = view_at(&*log, log.head().seq)?;
        let (mailbox, requests) = mpsc::sync_channel(MAILBOX);
        if let Some(effects) = &options.effects {
            for (id, kind) in view.pending.iter() {
                let _ = effects.send(Effect { id: *id, kind: kind.clone() });
            }
        }
        let on_panic = CallOnPanic(options.on_panic.take());
        let mut thread = WriterThread::new(log, view, options, Replies::default());
        let spawned = std::thread::Builder::new().name("writer".into()).spawn(move || {
            let _on_panic = on_panic;
            thread.run(&requests);
        });
        let thread = spawned.map_err(|e| ReadError::Broken { seq: Seq::ZERO, reason: e.to_string() })?;
        Ok((Self { mailbox }, thread))
    }

    /// Sends a submission; `reply` is called on one of the writer's threads and must not block.
    pub fn submit_with(
        &self,
        submission: Submission,
        mode: Mode,
        reply: impl FnOnce(Result<Outcome, SubmitError>) + Send + 'static,
    ) {
        let request = Request::Submit { submission: Box::new(submission), mode, reply: Box::new(reply) };
        if let Err(mpsc::SendError(Request::Submit { reply, .. })) = self.mailbox.send(request) {
            reply(Err(SubmitError::Stopped("its thread has ended".into())));
        }
    }

    /// Sends a submission and waits for its result.
    pub fn submit(&self, submission: Submission, mode: Mode) -> Result<Outcome, SubmitError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.submit_with(submission, mode, move |answer| {
            let _ = sender.send(answer);
        });
        receiver.recv().map_err(|_| SubmitError::Stopped("it ended before it replied".into()))?
    }

    /// Calls `look` with the current view between two groups. It runs on the writer's thread and must not block; if
    /// that thread has ended, `look` is dropped uncalled.
    pub fn inspect_with(&self, look: impl FnOnce(&mut View) + Send + 'static) {
        let _ = self.mailbox.send(Request::Inspect(Box::new(look)));
    }

    /// Calls `look` with the current view and waits for what it returns.
    pub fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut View) -> T + Send + 'static,
    ) -> Result<T, SubmitError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.inspect_with(move |view| {
            let _ = sender.send(look(view));
        });
        receiver.recv().map_err(|_| SubmitError::Stopped("its thread has ended".into()))
    }
}
