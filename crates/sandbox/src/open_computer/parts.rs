//! The parts that run as long as a computer is open. Each is a task that waits for its wake-up, so an idle computer
//! costs no thread for it; work that blocks runs on threads that all computers share.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::time::Duration;

use projector::Extent;
use projector::watch::{Polled, Touched, Watch};
use shared_types::wire::PartKind;
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::{PartsContext, blocking};
use computer::error::{ComputerError, ErrorCode};
use computer::socket::{self, Holder};

/// After each pass the projector pauses for this many times the pass's duration, so that quick events are batched; at
/// most for `MAX_REST`.
const REST_FACTOR: u32 = 3;
const MAX_REST: Duration = Duration::from_millis(20);
/// After this long without an event the caches of the read models are released.
const CACHE_IDLE_TIME: Duration = Duration::from_secs(3);
/// The projector retries this long after an error.
const RETRY: Duration = Duration::from_millis(500);
/// How many callers of the socket are served at once; more wait.
const MAX_CALLERS: usize = 128;
/// When the computer closes, callers have this long to finish sending their request.
const CLOSE_GRACE_PERIOD: Duration = Duration::from_secs(2);
/// The pause after an error of `accept`, such as too many open files.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Starts every part of an open computer.
pub(super) fn start_all(shared: &Arc<PartsContext>) {
    start(shared, PartKind::Log, watch_log);
    start(shared, PartKind::EventBus, fill_bus);
    start(shared, PartKind::Projector, project);
    start(shared, PartKind::Watcher, record_edits);
    start(shared, PartKind::Socket, serve_socket);
    start(shared, PartKind::Agents, follow_runs);
}

fn start<F>(
    shared: &Arc<PartsContext>,
    kind: PartKind,
    part: impl Fn(Arc<PartsContext>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Result<(), ComputerError>> + Send + 'static,
{
    let supervisor = shared.parts.clone();
    // The supervisor keeps this closure, and must not keep the computer open by that.
    let shared = Arc::downgrade(shared);
    supervisor.start(kind, None, move || {
        let work = Weak::upgrade(&shared).map(&part);
        async move {
            match work {
                Some(work) => work.await.map_err(|failure| failure.message),
                None => Ok(()),
            }
        }
    });
}

/// Waits until the writer fails, or the computer is closed.
async fn watch_log(shared: Arc<PartsContext>) -> Result<(), ComputerError> {
    let failed = Arc::new(Notify::new());
    let notify = Arc::clone(&failed);
    shared.computer.on_writer_failure(move || notify.notify_one());
    tokio::select! {
        () = shared.closed() => Ok(()),
        () = failed.notified() => Err(ComputerError::new(ErrorCode::Failed, "its writer panicked")),
    }
}

/// Reads new events once, for all tabs.
async fn fill_bus(shared: Arc<PartsContext>) -> Result<(), ComputerError> {
    let mut head = shared.head.subscribe();
    head.mark_changed();
    loop {
        tokio::select! {
            () = shared.closed() => return Ok(()),
            _ = head.changed() => {}
        }
        let same = Arc::clone(&shared);
        blocking(move || Ok(same.bus.fill(&**same.computer.log())?)).await?;
    }
}

/// Brings lists, search and files up to date, and makes checkpoints that are due.
async fn project(shared: Arc<PartsContext>) -> Result<(), ComputerError> {
    let mut head = shared.head.subscribe();
    head.mark_changed();
    let mut known: Vec<String> = Vec::new();
    loop {
        // Read before the work, so that an event during it wakes this again.
        let seq = *head.borrow_and_update();
        let begun = Instant::now();
        let same = Arc::clone(&shared);
        let (projected, next_checkpoint) = blocking(move || {
            let projected = same.computer.project(&|_, _, _| ());
            Ok((projected, same.computer.checkpoint_if_due(&|_, _, _| ())))
        })
        .await?;
        match projected {
            Ok(notes) => {
                shared.bus.set_projected(seq);
                // A file that cannot be written is reported once, not with every event.
                notes
                    .iter()
                    .filter(|note| !known.contains(note))
                    .for_each(|note| shared.report(note.clone()));
                known = notes;
            }
            Err(failure) => {
                shared.report(failure.message);
                head.mark_changed();
                sleep(RETRY).await;
            }
        }
        let rested = Instant::now() + (begun.elapsed() * REST_FACTOR).min(MAX_REST);
        tokio::select! {
            () = shared.closed() => return Ok(()),
            _ = head.changed() => sleep_until(rested).await,
            () = wait(next_checkpoint) => {}
            () = release_memory_when_quiet(&shared) => {}
        }
    }
}

/// Gives back the memory of the read models' caches after a while, and never returns.
async fn release_memory_when_quiet(shared: &Arc<PartsContext>) {
    sleep(CACHE_IDLE_TIME).await;
    let same = Arc::clone(shared);
    let _ = blocking(move || {
        same.computer.projector().views().release_memory();
        same.views().release_memory();
        Ok(())
    })
    .await;
    std::future::pending().await
}

async fn wait(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Captures outside edits.
async fn record_edits(shared: Arc<PartsContext>) -> Result<(), ComputerError> {
    let same = Arc::clone(&shared);
    let watch = blocking(move || {
        let paths = &same.computer.paths;
        let watch = Watch::start(&paths.workspace, &paths.state)
            .map_err(|e| ComputerError::new(ErrorCode::Failed, e.to_string()))?;
        // The watch runs before the first scan, so no edit falls between the two.
        same.computer.capture_outside_edits(&|_, _, _| ())?;
        Ok(Arc::new(watch))
    })
    .await?;
    // From here on requests need not look for edits themselves, until this part ends or fails.
    let _watched = WatchedGuard::set(&shared);
    let changed = Arc::new(Notify::new());
    let notify = Arc::clone(&changed);
    watch.on_change(move || notify.notify_one());
    // Changes from before the listener was set.
    changed.notify_one();
    loop {
        tokio::select! {
            () = shared.closed() => return Ok(()),
            () = changed.notified() => {}
        }
        loop {
            let (same, watch) = (Arc::clone(&shared), Arc::clone(&watch));
            match blocking(move || Ok(record_once(&same, &watch))).await? {
                Some(more) => tokio::select! {
                    () = shared.closed() => return Ok(()),
                    () = sleep(more) => {}
                },
                None => break,
            }
        }
    }
}

/// Marks the computer as watched, until this is dropped.
struct WatchedGuard(Arc<PartsContext>);

impl WatchedGuard {
    fn set(shared: &Arc<PartsContext>) -> Self {
        shared.computer.set_watched(true);
        Self(Arc::clone(shared))
    }
}

impl Drop for WatchedGuard {
    fn drop(&mut self) {
        self.0.computer.set_watched(false);
    }
}

/// Records the gathered edits if they are complete; otherwise returns how long to wait.
fn record_once(shared: &PartsContext, watch: &Watch) -> Option<Duration> {
    let extent = match watch.poll(&|gathered| shared.activity.capture_delay(gathered)) {
        Polled::Wait(left) => return Some(left),
        Polled::Changed(Touched::Nothing) => return None,
        Polled::Changed(Touched::Paths(paths)) => Extent::Paths(paths),
        Polled::Changed(Touched::Everything) => Extent::Everything,
    };
    if let Some(error) = watch.take_error() {
        shared.report(error.to_string());
    }
    // Update the ledger now, so that the next edit is not compared with an old entry.
    let projector = shared.computer.projector();
    let captured = projector.capture(&extent, &|_, _, _| ());
    if let Err(e) = captured.and_then(|_| projector.catch_up(&|_, _, _| ())) {
        shared.report(ComputerError::from(e).message);
    }
    None
}

/// Serves the command line over `.choir/choir.sock`.
async fn serve_socket(shared: Arc<PartsContext>) -> Result<(), ComputerError> {
    let paths = shared.computer.paths.clone();
    let listener = socket::bind(&paths)?;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let (runtime, parts) = (tokio::runtime::Handle::current(), shared.parts.clone());
    let holder = Arc::new(Holder {
        computer: Arc::clone(&shared.computer),
        commands: Arc::clone(&shared.commands),
        parts: Box::new(move || runtime.block_on(parts.report())),
    });
    let mut callers = JoinSet::new();
    let mut streams: Vec<Weak<UnixStream>> = Vec::new();
    loop {
        while callers.try_join_next().is_some() {}
        streams.retain(|stream| stream.strong_count() > 0);
        if callers.len() >= MAX_CALLERS {
            callers.join_next().await;
        }
        let accepted = tokio::select! {
            () = shared.closed() => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted.and_then(|(stream, _)| stream.into_std()) {
            Ok(stream) => stream,
            Err(_) => {
                sleep(ACCEPT_RETRY_PAUSE).await;
                continue;
            }
        };
        stream.set_nonblocking(false)?;
        let (stream, holder) = (Arc::new(stream), Arc::clone(&holder));
        streams.push(Arc::downgrade(&stream));
        // A caller that disconnected misses only its answer.
        callers.spawn_blocking(move || drop(socket::serve(&holder, &stream)));
    }
    // New callers do not find the socket any more, and present ones are answered.
    socket::remove(&paths)?;
    let all = async { while callers.join_next().await.is_some() {} };
    if tokio::time::timeout(CLOSE_GRACE_PERIOD, all).await.is_err() {
        // One that has not sent all of its request by now is not waited for; an answer still goes out.
        for stream in streams.iter().filter_map(Weak::upgrade) {
            let _ = stream.shutdown(std::net::Shutdown::Read);
        }
        while callers.join_next().await.is_some() {}
    }
    Ok(())
}

/// Starts runs of agents, each as a part of its own, and sends them their events.
async fn follow_runs(shared: Arc<PartsContext>) -> Result<(), ComputerError> {
    let start = |run| {
        let host = Arc::clone(&shared.runs);
        shared.parts.start(PartKind::Run, Some(shared_types::RunId::to_string(&run)), move || {
            let host = Arc::clone(&host);
            async move { host.carry_out(run).await.map_err(|failure| failure.message) }
        });
    };
    shared.runs.follow(shared.bus.runs(), shared.closing.subscribe(), start).await
}
