//! `choir bench`: what the base costs, measured against a bare reference in the same run on the same disk.
//!
//! A figure alone says more about the machine than about the code, so every case has a reference that does only
//! what cannot be left out, with the same rows in the same tables. Ours and the reference take turns in short
//! rounds, and medians are compared: a noisy neighbour hits both.

mod append;
mod cell;
mod closed_loop;
mod fanout;
mod figures;
mod history;
mod memory;
mod reference;
mod replay;
mod undo;

use std::path::Path;

use serde::Serialize;

pub use memory::{Subject, probe_memory};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
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
}

/// How thoroughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As the figures of `docs/performance.md` were taken; minutes.
    Full,
    /// Small logs and few rounds: shows that the benchmarks work, in seconds.
    Quick,
}

/// One case, measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
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
    /// What the case must reach, where something is asked of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bar: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
}

impl Line {
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

/// Measures in a fresh folder, which the caller removes afterwards, and hands out each case as it is done.
pub fn run(which: Which, scale: Scale, folder: &Path, emit: &mut dyn FnMut(&Line)) -> anyhow::Result<()> {
    match which {
        Which::Append => append::run(scale, folder, emit),
        Which::Replay => replay::run(scale, folder, emit),
        Which::Undo => undo::run(scale, folder, emit),
        Which::Fanout => fanout::run(scale, folder, emit),
        Which::Cell => cell::run(scale, folder, emit),
    }
}
