//! A computer that this process holds for a command, where no server does.
//!
//! It is opened with the same parts as in a server: runs are executed, and other commands reach it over the socket.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use event_log::{EventLog, ReadError, decode_event};
use shared_types::{Actor, OpId, Payload, Seq};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast::error::RecvError;

use crate::open_computer::{OpenComputer, blocking, not_started};
use crate::supervision::Application;
use agent_host::agent_services::AgentServices;
use computer::Computer;
use computer::client::{self, ComputerAccess};
use computer::error::{ComputerError, ErrorCode};
use computer::paths::ComputerPaths;
use computer::socket;

/// How long to wait for the socket to open.
const TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// An open computer with the runtime that it needs.
#[derive(Debug)]
pub struct ComputerHost {
    open: OpenComputer,
    /// The newest event from before it was opened; what is newer is reported.
    opened_after: Seq,
    application: Application,
    runtime: Runtime,
}

/// What happens while a computer is watched, for the person at the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Ready,
    /// Edits that other programs made were recorded.
    Captured {
        edits: usize,
        op: OpId,
    },
    Problem(String),
}

impl ComputerHost {
    /// Opens the computer unless another process holds it. When this returns, commands find the socket.
    pub fn open_unless_held(
        paths: &ComputerPaths,
        services: &AgentServices,
        progress: &dyn Fn(&str, u64, u64),
    ) -> Result<Option<Self>, ComputerError> {
        match client::connect_or_open(paths, progress)? {
            ComputerAccess::Remote(_) => Ok(None),
            ComputerAccess::Local(computer) => Self::open(*computer, services).map(Some),
        }
    }

    /// Opens the parts of a computer that this process has taken.
    pub fn open(computer: Computer, services: &AgentServices) -> Result<Self, ComputerError> {
        let (paths, opened_after) = (computer.paths.clone(), computer.log().head().seq);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let application = runtime.block_on(Application::start()).map_err(not_started)?;
        let open = runtime.block_on(OpenComputer::open_supervised(computer, services, &application))?;
        let started = Instant::now();
        while socket::connect(&paths)?.is_none() {
            if started.elapsed() > TIMEOUT {
                let message = "the socket of this computer could not be opened";
                return Err(ComputerError::new(ErrorCode::Failed, message));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(Self { open, opened_after, application, runtime })
    }

    /// Reports what happens until Ctrl-C, SIGTERM or a failure of the log, then closes the computer.
    pub fn watch(self, notify: &(dyn Fn(Notice) + Sync)) -> Result<(), ComputerError> {
        let watched = self.runtime.block_on(self.follow(notify));
        self.close();
        watched
    }

    /// Closes the computer. Runs of agents continue when a process opens it again.
    pub fn close(self) {
        let Self { open, opened_after: _, application: _, runtime } = self;
        runtime.block_on(open.close());
    }

    async fn follow(&self, notify: &(dyn Fn(Notice) + Sync)) -> Result<(), ComputerError> {
        let Self { open, application, .. } = self;
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let (mut head, mut problems) = (open.bus().head(), open.notices());
        let mut reported = self.opened_after;
        head.mark_changed();
        let (watched, mut ready) = (until_watched(open), false);
        tokio::pin!(watched);
        loop {
            tokio::select! {
                () = &mut watched, if !ready => {
                    ready = true;
                    notify(Notice::Ready);
                }
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                _ = application.next_failed() => {
                    let message = "the log of this computer failed; what was acknowledged is on disk. Start again";
                    return Err(ComputerError::new(ErrorCode::Failed, message));
                }
                problem = problems.recv() => match problem {
                    Ok(problem) => notify(Notice::Problem(problem)),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Ok(()),
                },
                changed = head.changed(), if ready => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let (after, through) = (reported, *head.borrow_and_update());
                    reported = through;
                    let computer = std::sync::Arc::clone(open.computer());
                    let captured = blocking(move || Ok(captures(&computer, after, through)?)).await;
                    match captured {
                        Ok(captured) => captured.into_iter().for_each(notify),
                        Err(failure) => notify(Notice::Problem(failure.message)),
                    }
                }
            }
        }
    }
}

/// Waits until edits are noticed as they happen. Before that, the first look at the workspace may still be under way,
/// and could see an edit half made. Where the workspace cannot be watched, the watcher reports that again and again.
async fn until_watched(open: &OpenComputer) {
    let mut problems = open.notices();
    while !open.computer().is_watched() {
        tokio::select! {
            _ = problems.recv() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// The outside edits that were recorded after a seq, one notice for each operation.
fn captures(computer: &Computer, after: Seq, through: Seq) -> Result<Vec<Notice>, ReadError> {
    let mut found: Vec<(OpId, usize)> = Vec::new();
    let mut failure = None;
    computer.log().scan(after.next(), &mut |stored| {
        if stored.seq > through {
            return ControlFlow::Break(());
        }
        if stored.actor == Actor::CAPTURE.as_str() {
            let edits = match decode_event(&**computer.log(), stored).map(|event| event.payload) {
                Ok(Payload::File(file)) => file.changes().len(),
                Ok(_) => 0,
                Err(e) => {
                    failure = Some(e);
                    return ControlFlow::Break(());
                }
            };
            match found.last_mut() {
                Some((op, count)) if *op == stored.op => *count += edits,
                Some(_) | None => found.push((stored.op, edits)),
            }
        }
        ControlFlow::Continue(())
    })?;
    let notices = found.into_iter().map(|(op, edits)| Notice::Captured { edits, op });
    failure.map_or(Ok(notices.collect()), Err)
}
