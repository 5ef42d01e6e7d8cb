//! `cargo xtask bench`: the product's own benchmarks, from a release build, as JSON lines on stdout.
//!
//! The figures come from `choir bench`, so that users can measure the same on their machines. Those of agents come from an
//! example of the sandbox, because they need a scripted model; it fails if a bar is missed. Only JSON goes to stdout and
//! cargo's messages to stderr, so the output can be piped or appended to a file.

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
  cargo xtask bench append replay > figures.jsonl
  cargo xtask bench agents")]
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
    /// Threads and memory for each open computer
    Computers,
    /// Saving a small file over HTTP
    Put,
    /// Steps of agents beyond their models, and how soon a hundred runs go on after kill -9
    Agents,
}

/// The program that measures, with its arguments.
struct Meter {
    package: &'static str,
    /// What cargo builds, and where below a profile's folder it puts it.
    build: &'static [&'static str],
    program: &'static str,
    args: Vec<&'static str>,
}

impl Bench {
    fn meter(self) -> Meter {
        let choir = |name| Meter {
            package: "choir",
            build: &["--bins"],
            program: "choir",
            args: vec!["bench", name, "--json"],
        };
        match self {
            Self::Append => choir("append"),
            Self::Replay => choir("replay"),
            Self::Undo => choir("undo"),
            Self::Fanout => choir("fanout"),
            Self::Computers => choir("computers"),
            Self::Put => choir("put"),
            Self::Agents => Meter {
                package: "sandbox",
                build: &["--example", "harness"],
                program: "examples/harness",
                args: Vec::new(),
            },
        }
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let benches = if args.benches.is_empty() { Bench::value_variants() } else { &args.benches };
    for bench in benches {
        let meter = bench.meter();
        let mut build = workspace.cargo(["build", "--release", "--locked", "--package", meter.package]);
        process::run(build.args(meter.build))?;
        let program = workspace.binary(Profile::Release, meter.program);
        process::run(Command::new(program).args(&meter.args))?;
    }
    Ok(())
}
