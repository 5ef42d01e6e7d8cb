//! `cargo xtask fuzz`: mutated events, archives and names through everything that decodes them.
//!
//! The fuzzer is an example of the `choir` crate and runs on stable; it is built like the tests, so that overflow and
//! debug checks are on and CI needs no second profile.

use std::process::Command;

use anyhow::Result;

use crate::{process, workspace::Workspace};

/// Mutated events, archives and names: none may cause a panic, a hang or a wrong reading
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  cargo xtask fuzz --seconds 300")]
pub(crate) struct Args {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
}

impl Args {
    pub(crate) fn seconds(seconds: u64) -> Self {
        Self { seconds }
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    workspace.build(&["--example", "fuzz"])?;
    let mut fuzz = Command::new(workspace.example("fuzz"));
    process::run(fuzz.args(["--seconds", &args.seconds.to_string()]))
}
