//! The child process: loads the weights within its limits and answers requests until its parent exits.
//!
//! The parent writes [`ChildSettings`] as the first line to the child's standard input and keeps it open. The end of
//! the input means that the parent has exited, for any reason. The child reports its progress on standard
//! output, one line of JSON per step.
//!
//! A parent-death signal would be simpler, but the kernel sends it when the *thread* that started the child ends.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::engine::{Engine, EngineError};
use crate::server;
use crate::worker::Worker;

/// The command line argument that starts a program as the child.
pub(crate) const ARGUMENT: &str = "local-model-serve";

/// The configuration of the child. It has no `Debug`, because it contains the token.
#[derive(Serialize, Deserialize)]
pub(crate) struct ChildSettings {
    pub(crate) weights: PathBuf,
    /// The model name in responses.
    pub(crate) model: String,
    pub(crate) context: usize,
    /// Memory limit in bytes.
    pub(crate) memory: u64,
    pub(crate) bearer: String,
}

/// A message from the child to its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChildReport {
    Loading {
        done: u64,
        total: u64,
    },
    Ready {
        port: u16,
    },
    /// Whether the child is working on an answer.
    Working(bool),
    Failed {
        message: String,
    },
}

/// Why the child failed.
#[derive(Debug, Error)]
enum ChildError {
    #[error("the settings from the parent are invalid")]
    InvalidSettings(#[source] serde_json::Error),
    #[error("the weights cannot be loaded")]
    Load(#[from] EngineError),
    #[error("the child cannot open its port")]
    Listen(#[from] std::io::Error),
}

/// Runs the child and returns its exit code, if this process was started as one. Every program that creates a
/// [`crate::LocalModelRunner`] must call this first.
pub fn run_if_child() -> Option<i32> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT || arguments.next().is_some() {
        return None;
    }
    let Err(error) = run() else { return Some(0) };
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    let message = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    report(&ChildReport::Failed { message });
    Some(1)
}

fn run() -> Result<(), ChildError> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let settings: ChildSettings = serde_json::from_str(&line).map_err(ChildError::InvalidSettings)?;
    confine(settings.memory);
    // After a panic of one thread the process would only seem to work. The parent restarts it instead.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::exit(101);
    }));
    std::thread::spawn(|| {
        // The parent sends nothing more; the read returns when the input is closed.
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let mut reported = 0;
    let engine = Engine::load(&settings.weights, settings.context, |done, total| {
        let percent = done * 100 / total.max(1);
        if percent > reported {
            reported = percent;
            report(&ChildReport::Loading { done, total });
        }
    })?;
    let worker = Worker::start(engine, |working| report(&ChildReport::Working(working)))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        report(&ChildReport::Ready { port: listener.local_addr()?.port() });
        let router = server::router(worker, settings.bearer, settings.model);
        axum::serve(listener, router).await.map_err(ChildError::Listen)
    })
}

/// Limits the resources of this process. Limits that the system does not support are skipped: the model works without
/// them, and the parent watches it anyway.
fn confine(memory: u64) {
    let lower = |resource, to: u64| {
        let most = getrlimit(resource).maximum.map_or(to, |most| most.min(to));
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    };
    lower(Resource::As, memory);
    lower(Resource::Core, 0);
    // If memory runs out, the kernel kills this process first. The niceness gives the server priority for the
    // processor.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let _ = rustix::process::nice(5);
}

fn report(report: &ChildReport) {
    let Ok(line) = serde_json::to_string(report) else { return };
    let mut out = std::io::stdout().lock();
    // If the parent does not read, it is about to close the input as well.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
