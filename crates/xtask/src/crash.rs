//! `cargo xtask crash`: kills the real `choir` at random points and compares what is left with what was acknowledged.
//!
//! The test is an example of the `choir` crate, because it reads logs; this module builds it, picks a seed and passes its
//! exit code on. With `--scenarios` it kills the runs of agents instead, after every event of every scenario: first a
//! process that holds the computer with its person, pages and servers, then `choir` itself in the scenarios that need
//! no other process.

use std::{
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Result;

use crate::{
    process,
    workspace::{Profile, Workspace},
};

/// Kill -9 the real process at random points; nothing acknowledged may be lost
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask crash --points 200
  cargo xtask crash --points 200 --seed 42      the same points again
  cargo xtask crash --scenarios                 runs of agents, after every event: about eight minutes
  CHOIR_SCENARIOS=write cargo xtask crash --scenarios      only those with this in their name")]
pub(crate) struct Args {
    /// How many times to kill it
    #[arg(long, value_name = "N", default_value_t = Args::default().points)]
    points: u32,
    /// What chooses the points; printed at the start, new at each run unless given
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Kill runs of agents instead, after each event of each scenario, with its person, pages and servers
    #[arg(long, conflicts_with_all = ["points", "seed"])]
    scenarios: bool,
}

impl Default for Args {
    fn default() -> Self {
        Self { points: 50, seed: None, scenarios: false }
    }
}

impl Args {
    /// Kills at this many random points.
    pub(crate) fn points(points: u32) -> Self {
        Self { points, ..Self::default() }
    }

    /// Kills after every event of every scenario.
    pub(crate) fn scenarios() -> Self {
        Self { scenarios: true, ..Self::default() }
    }
}

/// The tests that play scenarios with processes that they kill. `cargo test` rather than nextest, which prints nothing
/// before the end, and for the whole workspace, since `cargo xtask test` has built that.
const SCENARIOS: [&str; 12] = [
    "test",
    "--workspace",
    "--locked",
    "--test",
    "agents",
    "--test",
    "cli",
    "--",
    "--ignored",
    "--nocapture",
    "kills::scenarios_whose_process_is_killed_after_any_event_go_on_to_the_same_end",
    "killing::runs_whose_process_is_killed_after_any_event_go_on_and_repeat_nothing",
];

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.scenarios {
        return process::run(&mut workspace.cargo(SCENARIOS));
    }
    workspace.build(&["--bin", "choir", "--example", "crash"])?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    println!("crash: {0} points; again with: cargo xtask crash --points {0} --seed {seed}", args.points);
    let mut crash = Command::new(workspace.example("crash"));
    crash.args(["--points", &args.points.to_string(), "--seed", &seed.to_string()]);
    process::run(crash.arg("--binary").arg(workspace.binary(Profile::Debug, "choir")))
}

/// Other points at each run, so that many runs cover more than one does. Short, because people retype it.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ (now.as_secs() & 0xffff)
}
