//! `cargo xtask deep`: what takes long and rarely finds anything, in full. Run it by hand before a release, and after a
//! change of the log, the writer, the projector or the agents' runner.
//!
//! `cargo xtask test` runs a short share of each of these steps, which changes from run to run or from day to day.

use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    crash, fuzz, process,
    steps::{self, Step},
    workspace::Workspace,
};

/// Every kill, every stop, many cases and long fuzzing: about an hour on two cores
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask deep
  cargo xtask deep stops laws       some of the steps")]
pub(crate) struct Args {
    /// Only these steps, in the order given
    steps: Vec<DeepStep>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeepStep {
    /// Stop each scenario after every event, not every fourth
    Stops,
    /// Kill the process of each scenario after every event
    Kills,
    /// Kill the process of runs at 500 random moments
    Moments,
    /// Kill the process at 1000 random points of a load
    Points,
    /// Try 30,000 cases of every property of the kernel
    Laws,
    /// Fuzz for ten minutes
    Fuzz,
}

const POINTS: u32 = 1000;
const FUZZ_SECONDS: u64 = 600;

/// Tests that take an environment variable for how much they do, with the value and the filter of nextest.
const STOPS: (&str, &str, &str) = ("CHOIR_SHARE", "all", "test(stopped_after_any_event)");
const MOMENTS: (&str, &str, &str) = ("CHOIR_KILLS", "500", "test(a_run_whose_process_is_killed)");
/// By default a property takes 3,000 cases at most.
const LAWS: (&str, &str, &str) = ("PROPTEST_CASES", "30000", "package(kernel) and kind(test)");

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let steps = if args.steps.is_empty() { DeepStep::value_variants() } else { &args.steps };
    println!("{}", steps::run_in_order("deep", steps, workspace)?);
    Ok(())
}

impl Step for DeepStep {
    fn name(&self) -> &'static str {
        match self {
            Self::Stops => "stops",
            Self::Kills => "kills",
            Self::Moments => "moments",
            Self::Points => "points",
            Self::Laws => "laws",
            Self::Fuzz => "fuzz",
        }
    }

    fn alone(&self) -> &'static str {
        match self {
            Self::Stops => "cargo xtask deep stops",
            Self::Kills => "cargo xtask deep kills",
            Self::Moments => "cargo xtask deep moments",
            Self::Points => "cargo xtask deep points",
            Self::Laws => "cargo xtask deep laws",
            Self::Fuzz => "cargo xtask deep fuzz",
        }
    }

    fn run(&self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Stops => nextest(workspace, STOPS),
            Self::Kills => crash::run(workspace, &crash::Args::scenarios()),
            Self::Moments => nextest(workspace, MOMENTS),
            Self::Points => crash::run(workspace, &crash::Args::points(POINTS)),
            Self::Laws => nextest(workspace, LAWS),
            Self::Fuzz => fuzz::run(workspace, &fuzz::Args::seconds(FUZZ_SECONDS)),
        }
    }
}

/// Runs the tests of a filter with more work to do.
fn nextest(workspace: &Workspace, (variable, value, filter): (&str, &str, &str)) -> Result<()> {
    let mut tests: Command = workspace.cargo(["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]);
    process::run(tests.args(["--filterset", filter]).env(variable, value))
}
