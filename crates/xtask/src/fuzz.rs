//! `cargo xtask fuzz`: mutated events, archives and names through everything that decodes them.
//!
//! The fuzzer is an example of the `choir` crate and runs on stable; it is built like the tests, so that overflow and
//! debug checks are on and CI needs no second profile.

use anyhow::Result;

use crate::{process, workspace::Workspace};

/// Mutated events, archives and names: nothing may panic, hang or be taken for what it is not
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
    /// What CI spends on it.
    pub(crate) fn short() -> Self {
        Self { seconds: 20 }
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let mut fuzz = workspace.cargo(["run", "-q", "--package", "choir", "--locked", "--example", "fuzz"]);
    process::run(fuzz.args(["--", "--seconds", &args.seconds.to_string()]))
}
