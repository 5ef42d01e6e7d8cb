//! `cargo xtask bench`: the product's own benchmarks, from a release build, as JSON lines on stdout.
//!
//! The figures come from `choir bench`, so a user measures the same thing on their machine. Only JSON goes to
//! stdout; cargo's messages are on stderr, so the output can be piped or appended to a file.

use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    process,
    workspace::{Profile, Workspace},
};

/// Benchmarks of a release build, as JSON lines
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask bench
  cargo xtask bench append replay > figures.jsonl")]
pub(crate) struct Args {
    /// Only these
    benches: Vec<Bench>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Bench {
    /// Durable appends, alone and with many writers
    Append,
    /// Reading the log back into a view
    Replay,
    /// Undoing an operation in a long log
    Undo,
    /// From a command to a hundred open sockets
    Fanout,
}

impl Bench {
    fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Replay => "replay",
            Self::Undo => "undo",
            Self::Fanout => "fanout",
        }
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    process::run(&mut workspace.cargo(["build", "--release", "--package", "choir", "--locked"]))?;
    let choir = workspace.binary(Profile::Release, "choir");
    let benches = if args.benches.is_empty() { Bench::value_variants() } else { &args.benches };
    for bench in benches {
        process::run(Command::new(&choir).args(["bench", bench.name(), "--json"]))?;
    }
    Ok(())
}
