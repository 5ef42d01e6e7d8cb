//! `cargo xtask fuzz`: random operations against the laws of the kernel, for as long as one has patience.
//!
//! Like the crash test it is an example of the `choir` crate; a release build, because the number of
//! operations tried is what counts.

use anyhow::Result;

use crate::{process, workspace::Workspace};

/// Random operations, undo and replay against each other, for a while
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  cargo xtask fuzz --seconds 300")]
pub(crate) struct Args {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let mut fuzz =
        workspace.cargo(["run", "--release", "--package", "choir", "--locked", "--example", "fuzz"]);
    process::run(fuzz.args(["--", "--seconds", &args.seconds.to_string()]))
}
