//! `choir bench`: what the base costs, measured against a bare reference in the same run on the same disk.
//!
//! A figure alone says more about the machine than about the code, so every case has a reference that does only
//! what cannot be left out, with the same rows in the same tables. Ours and the reference take turns in short
//! rounds, and medians are compared: a noisy neighbour hits both.

mod append;
mod cell;
mod closed_loop;
mod computers;
mod fanout;
mod figures;
mod history;
mod memory;
mod put;
mod reference;
mod replay;
mod server;
mod undo;

use std::path::Path;

use serde::Serialize;

pub use computers::probe_computers;
pub use memory::{Subject, probe_memory};

/// The benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Benchmark {
    /// Commands through the writer, against bare group commit.
    Append,
    /// The whole log through `evolve`, against a bare scan of its table.
    Replay,
    /// Undo in long logs, against undo in a short one.
    Undo,
    /// From a command to every open socket, against a bare broadcast.
    Fanout,
    /// Commands in cells, against bare tools and an empty workspace.
    Cell,
    /// Threads and memory of a server for each open computer.
    Computers,
    /// `PUT` of a small file, against an empty route and a bare append.
    Put,
}

/// The amount of data and rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As for the figures in `docs/performance.md`; takes minutes.
    Full,
    /// Small logs and few rounds: shows that the benchmarks work, in seconds.
    Quick,
}

/// One case, measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseResult {
    pub bench: &'static str,
    pub case: String,
    pub ours: f64,
    pub reference: f64,
    pub unit: &'static str,
    /// Ours over the reference.
    pub ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours_p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_p99_ms: Option<f64>,
    /// The target of the case, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bar: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
}

impl CaseResult {
    fn new(
        bench: &'static str,
        case: impl Into<String>,
        ours: f64,
        reference: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            bench,
            case: case.into(),
            ours: figures::rounded(ours),
            reference: figures::rounded(reference),
            unit,
            ratio: figures::rounded(ours / reference),
            p99_ratio: None,
            ours_p99_ms: None,
            reference_p99_ms: None,
            bar: None,
            met: None,
        }
    }

    fn p99(mut self, ours_ms: f64, reference_ms: f64) -> Self {
        self.p99_ratio = Some(figures::rounded(ours_ms / reference_ms));
        self.ours_p99_ms = Some(figures::rounded(ours_ms));
        self.reference_p99_ms = Some(figures::rounded(reference_ms));
        self
    }

    fn bar(mut self, bar: &'static str, met: bool) -> Self {
        self.bar = Some(bar);
        self.met = Some(met);
        self
    }
}

/// Measures in a new folder, which the caller removes afterwards, and reports each case when it is done.
pub fn run(
    benchmark: Benchmark,
    scale: Scale,
    folder: &Path,
    emit: &mut dyn FnMut(&CaseResult),
) -> anyhow::Result<()> {
    match benchmark {
        Benchmark::Append => append::run(scale, folder, emit),
        Benchmark::Replay => replay::run(scale, folder, emit),
        Benchmark::Undo => undo::run(scale, folder, emit),
        Benchmark::Fanout => fanout::run(scale, folder, emit),
        Benchmark::Cell => cell::run(scale, folder, emit),
        Benchmark::Computers => computers::run(scale, folder, emit),
        Benchmark::Put => put::run(scale, folder, emit),
    }
}
