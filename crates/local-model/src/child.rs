//! The child process: loads the weights within its limits, and answers until its parent is gone.
//!
//! Its parent writes [`Settings`] as the first line to its input and keeps that open; the end of the input is the end of
//! the parent, however it came about. On its output it says how far it is, a line of JSON for each step.
//!
//! A signal at the parent's death would be simpler, but the kernel sends it when the *thread* that started the child ends.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::engine::{Engine, EngineError};
use crate::server;
use crate::worker::Worker;

/// The argument by which a program is asked to be the child.
pub(crate) const ARGUMENT: &str = "local-model-serve";

/// What the child has to know. It is never shown, because of its token.
#[derive(Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) weights: PathBuf,
    /// What it is called in answers.
    pub(crate) model: String,
    pub(crate) context: usize,
    /// Bytes of memory it may take.
    pub(crate) memory: u64,
    pub(crate) bearer: String,
}

/// What the child says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Loading {
        done: u64,
        total: u64,
    },
    Ready {
        port: u16,
    },
    /// It has begun to work on an answer, or has nothing more to do.
    Working(bool),
    Failed {
        message: String,
    },
}

/// Why the child could not do its work.
#[derive(Debug, Error)]
enum ChildError {
    #[error("the parent said nothing that makes sense")]
    Settings(#[source] serde_json::Error),
    #[error("the weights cannot be loaded")]
    Load(#[from] EngineError),
    #[error("the child cannot listen")]
    Listen(#[from] std::io::Error),
}

/// Every program that starts a [`crate::Runner`] calls this before anything else: when it was itself started as the
/// child, it does that job and returns the exit code to end with.
pub fn entry() -> Option<i32> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT || arguments.next().is_some() {
        return None;
    }
    let Err(error) = run() else { return Some(0) };
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    let message = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    report(&Report::Failed { message });
    Some(1)
}

fn run() -> Result<(), ChildError> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let settings: Settings = serde_json::from_str(&line).map_err(ChildError::Settings)?;
    confine(settings.memory);
    // With one thread gone the rest would only seem to be alive; the parent knows how to deal with a death.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::exit(101);
    }));
    std::thread::spawn(|| {
        // Nothing more is said; what counts is that it ends.
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let mut said = 0;
    let engine = Engine::load(&settings.weights, settings.context, |done, total| {
        let percent = done * 100 / total.max(1);
        if percent > said {
            said = percent;
            report(&Report::Loading { done, total });
        }
    })?;
    let worker = Worker::start(engine, |working| report(&Report::Working(working)))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        report(&Report::Ready { port: listener.local_addr()?.port() });
        let router = server::router(worker, settings.bearer, settings.model);
        axum::serve(listener, router).await.map_err(ChildError::Listen)
    })
}

/// Gives up whatever could harm the rest of the machine. What the system does not know of is left out: the model works
/// without, and its parent watches it all the same.
fn confine(memory: u64) {
    let lower = |resource, to: u64| {
        let most = getrlimit(resource).maximum.map_or(to, |most| most.min(to));
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    };
    lower(Resource::As, memory);
    lower(Resource::Core, 0);
    // When memory runs out all the same, this process is the first to go; and the server goes before it at the processor.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let _ = rustix::process::nice(5);
}

fn report(report: &Report) {
    let Ok(line) = serde_json::to_string(report) else { return };
    let mut out = std::io::stdout().lock();
    // A parent that does not listen is about to close the input as well.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
