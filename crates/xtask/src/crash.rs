//! `cargo xtask crash`: kills the real `choir` at random points and compares what is left with what was promised.
//!
//! The test itself is an example of the `choir` crate, because it needs to read logs; this only builds the
//! binary, picks a seed and hands over. Its exit code is passed through.

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
  cargo xtask crash --points 200 --seed 42      the same points again")]
pub(crate) struct Args {
    /// How many times to kill it
    #[arg(long, value_name = "N", default_value_t = Args::default().points)]
    points: u32,
    /// What chooses the points; printed at the start, new at each run unless given
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

impl Default for Args {
    fn default() -> Self {
        Self { points: 50, seed: None }
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    process::run(&mut workspace.cargo(["build", "--package", "choir", "--locked"]))?;
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
