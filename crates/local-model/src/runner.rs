//! The parent's side: starts the child on demand, watches it and stops it when it is idle.
//!
//! A crash of the child loses only the answers in progress. The next request starts a new child, unless it crashed
//! too often in a short time; then the request fails with the reason.

mod process;
mod watcher;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{mpsc, watch};

use crate::cores::ThreadCount;
use process::ChildProcess;
use watcher::{LeaseTracker, SharedState, StartGuard};

/// How to run the child.
#[derive(Debug, Clone)]
pub struct RunnerOptions {
    pub weights: PathBuf,
    /// The model name in responses.
    pub model: String,
    /// Context size in tokens: prompt and answer together.
    pub context: usize,
    /// Memory limit of the child in bytes; [`crate::weights::WeightsManifest::qwen_coder`] needs 2.9 GB.
    pub memory: u64,
    pub threads: ThreadCount,
    /// The child is stopped after this time without requests.
    pub idle_timeout: Duration,
    /// The start fails if the child is not ready after this time.
    pub start_timeout: Duration,
}

impl RunnerOptions {
    /// Defaults that suit most machines. The caller chooses the context size, since the catalog promises it.
    pub fn new(weights: impl Into<PathBuf>, context: usize) -> Self {
        Self {
            weights: weights.into(),
            model: "local".into(),
            context,
            memory: 7 << 29,
            threads: ThreadCount::Free,
            idle_timeout: Duration::from_secs(300),
            start_timeout: Duration::from_secs(120),
        }
    }
}

/// The state of the child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerStatus {
    Stopped(StopCause),
    /// Loading the weights; in bytes.
    Starting {
        done: u64,
        total: u64,
    },
    Ready {
        pid: u32,
    },
}

/// Why the child is not running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopCause {
    NotStarted,
    /// It was idle for too long.
    Idle,
    Requested,
    /// With a sentence for the user.
    Crashed(String),
}

/// Why the child could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("the weights are missing: {}", .0.display())]
    NoWeights(PathBuf),
    #[error("the local model cannot be started")]
    Spawn(#[source] std::io::Error),
    #[error("the local model did not start: {0}")]
    Failed(String),
    #[error("the local model was not ready after {} seconds", .0.as_secs())]
    TooSlow(Duration),
    #[error("the local model crashed {MAX_CRASHES} times within {minutes} minutes; last error: {0}", minutes = CRASH_WINDOW.as_secs() / 60)]
    KeepsCrashing(String),
}

/// This many crashes within this time stop further restarts.
const MAX_CRASHES: usize = 3;
const CRASH_WINDOW: Duration = Duration::from_secs(300);

/// Keeps a local model available. Cloning is cheap; dropping the last clone stops the child.
#[derive(Debug, Clone)]
pub struct LocalModelRunner(Arc<RunnerInner>);

#[derive(Debug)]
struct RunnerInner {
    program: PathBuf,
    options: RunnerOptions,
    /// Locked while a child starts, so that there is only one.
    running: tokio::sync::Mutex<Option<RunningChild>>,
    shared: Arc<SharedState>,
}

#[derive(Debug, Clone)]
struct RunningChild {
    base_url: String,
    bearer: BearerToken,
    threads: usize,
    /// Closed by the watcher when the child has exited.
    alive: watch::Receiver<()>,
    leases: Arc<LeaseTracker>,
    /// Tells the watcher to stop the child, by a message or by being dropped.
    stop: mpsc::Sender<()>,
}

#[derive(Clone)]
pub(crate) struct BearerToken(pub(crate) String);

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BearerToken")
    }
}

/// Permission to use the child. While a lease exists, the child does not count as idle.
#[derive(Debug)]
pub struct ModelLease {
    running: RunningChild,
}

impl ModelLease {
    /// The base URL of chat completions, including `/v1`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.running.base_url)
    }

    /// The bearer token for requests.
    pub fn bearer(&self) -> &str {
        &self.running.bearer.0
    }

    /// The number of threads of the child.
    pub fn threads(&self) -> usize {
        self.running.threads
    }

    pub(crate) fn root_url(&self) -> &str {
        &self.running.base_url
    }

    /// Whether the child has exited; [`LocalModelRunner::status`] says why.
    pub fn is_broken(&self) -> bool {
        self.running.alive.has_changed().is_err()
    }
}

impl Drop for ModelLease {
    fn drop(&mut self) {
        self.running.leases.release();
    }
}

impl LocalModelRunner {
    /// Runs the current program as the child; see [`crate::run_if_child`].
    pub fn new(options: RunnerOptions) -> Self {
        // This path works even if the file of the program has been replaced.
        let same = PathBuf::from("/proc/self/exe");
        let program = if same.exists() { same } else { std::env::current_exe().unwrap_or_default() };
        Self::with_program(program, options)
    }

    /// Runs another program as the child. Its `main` must call [`crate::run_if_child`].
    pub fn with_program(program: impl Into<PathBuf>, options: RunnerOptions) -> Self {
        let (running, shared) = Default::default();
        Self(Arc::new(RunnerInner { program: program.into(), options, running, shared }))
    }

    pub fn options(&self) -> &RunnerOptions {
        &self.0.options
    }

    /// The current state of the child and its changes.
    pub fn status(&self) -> watch::Receiver<RunnerStatus> {
        self.0.shared.status.subscribe()
    }

    /// Returns a lease on the child and starts it if needed; [`Self::status`] reports the progress. If the future is
    /// dropped before the child is ready, the child is stopped.
    pub async fn acquire(&self) -> Result<ModelLease, StartError> {
        let mut running = self.0.running.lock().await;
        if let Some(found) = running.as_mut() {
            if found.leases.acquire() {
                return Ok(ModelLease { running: found.clone() });
            }
            // Wait until the old child has exited: two would need twice the memory.
            while found.alive.changed().await.is_ok() {}
        }
        *running = None;
        let started = self.start().await?;
        let lease = ModelLease { running: running.insert(started).clone() };
        lease.running.leases.acquire();
        Ok(lease)
    }

    /// Stops the child and waits until it has exited.
    pub async fn stop(&self) {
        let mut running = self.0.running.lock().await;
        if let Some(mut running) = running.take() {
            let _ = running.stop.try_send(());
            while running.alive.changed().await.is_ok() {}
        }
    }

    async fn start(&self) -> Result<RunningChild, StartError> {
        let (options, shared) = (&self.0.options, &self.0.shared);
        if let Some(last) = shared.too_many_crashes() {
            return Err(StartError::KeepsCrashing(last));
        }
        if !options.weights.is_file() {
            return Err(StartError::NoWeights(options.weights.clone()));
        }
        let bearer = BearerToken(new_token().map_err(StartError::Spawn)?);
        let threads = options.threads.count();
        let begun = async {
            let mut process = ChildProcess::spawn(&self.0.program, options, threads, &bearer).await?;
            let port = process
                .ready(|done, total| shared.set_status(RunnerStatus::Starting { done, total }))
                .await?;
            Ok((process, port))
        };
        shared.set_status(RunnerStatus::Starting { done: 0, total: 0 });
        let _starting = StartGuard(shared);
        let begun = tokio::time::timeout(options.start_timeout, begun).await;
        let begun = begun.unwrap_or(Err(StartError::TooSlow(options.start_timeout)));
        let (process, port) = begun.inspect_err(|error| {
            shared.record_crash(error.to_string());
            shared.set_status(RunnerStatus::Stopped(StopCause::Crashed(error.to_string())));
        })?;
        shared.set_status(RunnerStatus::Ready { pid: process.pid() });
        let (alive_for, alive) = watch::channel(());
        let (stop, stopped) = mpsc::channel(1);
        let leases = Arc::new(LeaseTracker::new());
        let watcher = watcher::ChildWatcher {
            process,
            leases: leases.clone(),
            shared: shared.clone(),
            idle_timeout: options.idle_timeout,
        };
        tokio::spawn(watcher.watch(stopped, alive_for));
        let base_url = format!("http://127.0.0.1:{port}");
        Ok(RunningChild { base_url, bearer, threads, alive, leases, stop })
    }
}

fn new_token() -> std::io::Result<String> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
