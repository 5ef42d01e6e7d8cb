//! `cargo xtask crash`: kills the real `choir` at random points and compares what is left with what was promised.
//!
//! The test itself is an example of the `choir` crate, because it needs to read logs; this only builds the
//! binary, picks a seed and hands over. Its exit code is passed through. With `--scenarios` it is the runs of agents
//! that are killed, after every event of every scenario: those of the computer with its person, its pages and its servers,
//! and then `choir` itself in those that need nobody but the process.

use std::time::{SystemTime, UNIX_EPOCH};

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

/// The tests that play scenarios with processes that they kill. `cargo test`, since nextest tells nothing before the end,
/// and of the whole workspace, since that is what `cargo xtask test` has built.
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
    "killing::scenarios_whose_process_is_killed_after_any_event_go_on_to_the_same_end",
    "killing::runs_whose_process_is_killed_after_any_event_go_on_and_repeat_nothing",
];

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.scenarios {
        return process::run(&mut workspace.cargo(SCENARIOS));
    }
    process::run(&mut workspace.cargo(["build", "--locked", "--workspace", "--bins"]))?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    println!("crash: {0} points; again with: cargo xtask crash --points {0} --seed {seed}", args.points);
    let mut crash =
        workspace.cargo(["run", "-q", "--package", "choir", "--locked", "--example", "crash", "--"]);
    crash.args(["--points", &args.points.to_string(), "--seed", &seed.to_string()]);
    process::run(crash.arg("--binary").arg(workspace.binary(Profile::Debug, "choir")))
}

/// Other points at each run, so that many runs see more than one does. Short, because people retype it.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ (now.as_secs() & 0xffff)
}
