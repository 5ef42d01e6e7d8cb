//! The parent's side: starts the child when somebody wants an answer, watches it, and lets it go when nobody does.
//!
//! A crash of the child costs the answers it was writing and nothing else. Who asks next gets a new one, unless it has
//! died too often in a short time: then they hear why.

mod process;
mod watched;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{mpsc, watch};

use crate::cores::Threads;
use process::Process;
use watched::{Shared, Starting, Use};

/// How the child is to be run.
#[derive(Debug, Clone)]
pub struct Options {
    pub weights: PathBuf,
    /// What it is called in answers.
    pub model: String,
    /// Tokens of prompt and answer together.
    pub context: usize,
    /// Bytes of memory that the child may take; the model of [`crate::weights::Manifest::qwen_coder`] takes 2.9 GB.
    pub memory: u64,
    pub threads: Threads,
    /// It is ended when nobody has asked for this long.
    pub idle: Duration,
    /// It is given up when it is not ready after this long.
    pub patience: Duration,
}

impl Options {
    /// What suits most machines. How much it is to read is for the caller to say, who promises it to others.
    pub fn new(weights: impl Into<PathBuf>, context: usize) -> Self {
        Self {
            weights: weights.into(),
            model: "local".into(),
            context,
            memory: 7 << 29,
            threads: Threads::Free,
            idle: Duration::from_secs(300),
            patience: Duration::from_secs(120),
        }
    }
}

/// How the child is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Stopped(Ending),
    /// It reads the weights: bytes done of all.
    Starting {
        done: u64,
        total: u64,
    },
    Ready {
        pid: u32,
    },
}

/// Why the child does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    NotStarted,
    /// Nobody needed it for a while.
    Idle,
    Asked,
    /// In a sentence for the person.
    Crashed(String),
}

/// Why there is no child.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("the weights are not at {}", .0.display())]
    NoWeights(PathBuf),
    #[error("the local model cannot be started")]
    Spawn(#[source] std::io::Error),
    #[error("the local model did not start: {0}")]
    Failed(String),
    #[error("the local model was not ready after {} seconds", .0.as_secs())]
    TooSlow(Duration),
    #[error("the local model died {CRASHES} times within {minutes} minutes; the last time: {0}", minutes = SPAN.as_secs() / 60)]
    KeepsDying(String),
}

/// So many crashes within such a time are no accident.
const CRASHES: usize = 3;
const SPAN: Duration = Duration::from_secs(300);

/// Keeps a local model at hand. Cheap to clone; the child ends with the last of the clones.
#[derive(Debug, Clone)]
pub struct Runner(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    program: PathBuf,
    options: Options,
    /// Held while a child is being started, so that there is only one.
    running: tokio::sync::Mutex<Option<Running>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Clone)]
struct Running {
    base_url: String,
    bearer: Secret,
    threads: usize,
    /// Closed by the task that watches the child, once there is none.
    alive: watch::Receiver<()>,
    used: Arc<Use>,
    /// Tells that task to end the child, by a word or by being gone with everybody who could need it.
    stop: mpsc::Sender<()>,
}

#[derive(Clone)]
pub(crate) struct Secret(pub(crate) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The right to ask the child. While one is held, the child does not count as idle.
#[derive(Debug)]
pub struct Lease {
    running: Running,
}

impl Lease {
    /// Where chat completions are, up to and with `/v1`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.running.base_url)
    }

    /// What goes after `Bearer` with every request.
    pub fn bearer(&self) -> &str {
        &self.running.bearer.0
    }

    /// Threads that the child was given.
    pub fn threads(&self) -> usize {
        self.running.threads
    }

    pub(crate) fn root_url(&self) -> &str {
        &self.running.base_url
    }

    /// Whether the child is gone; [`Runner::status`] says why.
    pub fn is_broken(&self) -> bool {
        self.running.alive.has_changed().is_err()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.running.used.give_back();
    }
}

impl Runner {
    /// The child is the program that runs now; see [`crate::entry`].
    pub fn new(options: Options) -> Self {
        // The program that runs now, even if its file is replaced meanwhile.
        let same = PathBuf::from("/proc/self/exe");
        let program = if same.exists() { same } else { std::env::current_exe().unwrap_or_default() };
        Self::by(program, options)
    }

    /// The child is another program that gives [`crate::entry`] the first word.
    pub fn by(program: impl Into<PathBuf>, options: Options) -> Self {
        let (running, shared) = Default::default();
        Self(Arc::new(Inner { program: program.into(), options, running, shared }))
    }

    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// How the child is, now and whenever that changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.0.shared.status.subscribe()
    }

    /// The child, started if there is none; [`Self::status`] tells how far that is. If the caller gives up before it is
    /// ready, the child is ended.
    pub async fn acquire(&self) -> Result<Lease, StartError> {
        let mut running = self.0.running.lock().await;
        if let Some(found) = running.as_mut() {
            if found.used.take() {
                return Ok(Lease { running: found.clone() });
            }
            // It is on its way out; two at once would need twice the memory.
            while found.alive.changed().await.is_ok() {}
        }
        *running = None;
        let started = self.start().await?;
        let lease = Lease { running: running.insert(started).clone() };
        lease.running.used.take();
        Ok(lease)
    }

    /// Ends the child, if there is one, and returns when it is gone.
    pub async fn stop(&self) {
        let mut running = self.0.running.lock().await;
        if let Some(mut running) = running.take() {
            let _ = running.stop.try_send(());
            while running.alive.changed().await.is_ok() {}
        }
    }

    async fn start(&self) -> Result<Running, StartError> {
        let (options, shared) = (&self.0.options, &self.0.shared);
        if let Some(last) = shared.too_many_crashes() {
            return Err(StartError::KeepsDying(last));
        }
        if !options.weights.is_file() {
            return Err(StartError::NoWeights(options.weights.clone()));
        }
        let bearer = Secret(new_token().map_err(StartError::Spawn)?);
        let threads = options.threads.count();
        let begun = async {
            let mut process = Process::spawn(&self.0.program, options, threads, &bearer).await?;
            let port = process.ready(|done, total| shared.say(Status::Starting { done, total })).await?;
            Ok((process, port))
        };
        shared.say(Status::Starting { done: 0, total: 0 });
        let _starting = Starting(shared);
        let begun = tokio::time::timeout(options.patience, begun).await;
        let begun = begun.unwrap_or(Err(StartError::TooSlow(options.patience)));
        let (process, port) = begun.inspect_err(|error| {
            shared.crashed(error.to_string());
            shared.say(Status::Stopped(Ending::Crashed(error.to_string())));
        })?;
        shared.say(Status::Ready { pid: process.pid() });
        let (alive_for, alive) = watch::channel(());
        let (stop, stopped) = mpsc::channel(1);
        let used = Arc::new(Use::new());
        let watched =
            watched::Watched { process, used: used.clone(), shared: shared.clone(), idle: options.idle };
        tokio::spawn(watched.keep(stopped, alive_for));
        let base_url = format!("http://127.0.0.1:{port}");
        Ok(Running { base_url, bearer, threads, alive, used, stop })
    }
}

fn new_token() -> std::io::Result<String> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
