//! `cargo xtask test`: the whole test run, which is what CI does and nothing else.
//!
//! The cheap steps come first, so that a forgotten `cargo fmt` costs seconds and not the length of the run.

use std::process::Command;

use anyhow::Result;

use crate::{
    check::Part,
    crash, fuzz, process,
    steps::{self, Step},
    tidy,
    workspace::Workspace,
};

/// Everything that CI runs, in order, up to the first failure
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask test
  cargo nextest run -p kernel undo      only the tests of kernel with `undo` in their name")]
pub(crate) struct Args {}

#[derive(Debug)]
enum Stage {
    Check(Part),
    Tidy,
    Tests(Runner),
    Crash,
    Fuzz,
}

/// nextest where it is installed: quicker, and each test in a process of its own.
#[derive(Debug, Clone, Copy)]
enum Runner {
    Nextest,
    Cargo,
}

pub(crate) fn run(workspace: &Workspace, _: &Args) -> Result<()> {
    let stages = [
        Stage::Check(Part::Fmt),
        Stage::Check(Part::Clippy),
        Stage::Check(Part::Wasm),
        Stage::Tidy,
        Stage::Tests(Runner::found()),
        Stage::Crash,
        Stage::Fuzz,
    ];
    let summary = steps::run_in_order("test", &stages, workspace)?;
    println!("\n{summary}");
    Ok(())
}

impl Step for Stage {
    fn name(&self) -> &'static str {
        match self {
            Self::Check(part) => part.name(),
            Self::Tidy => "tidy",
            Self::Tests(_) => "tests",
            Self::Crash => "crash",
            Self::Fuzz => "fuzz",
        }
    }

    fn alone(&self) -> &'static str {
        match self {
            Self::Check(part) => part.alone(),
            Self::Tidy => "cargo xtask tidy",
            Self::Tests(Runner::Nextest) => "cargo nextest run --workspace --locked",
            Self::Tests(Runner::Cargo) => "cargo test --workspace --locked",
            Self::Crash => "cargo xtask crash --points 50",
            Self::Fuzz => "cargo xtask fuzz --seconds 20",
        }
    }

    fn run(&self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Check(part) => part.run(workspace),
            Self::Tidy => tidy::run(workspace, &tidy::Args::default()),
            Self::Tests(runner) => runner.run(workspace),
            Self::Crash => crash::run(workspace, &crash::Args::default()),
            Self::Fuzz => fuzz::run(workspace, &fuzz::Args::short()),
        }
    }
}

impl Runner {
    fn found() -> Self {
        let present = process::succeeds(Command::new("cargo-nextest").args(["nextest", "--version"]));
        if present { Self::Nextest } else { Self::Cargo }
    }

    fn run(self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Nextest => {
                process::run(&mut workspace.cargo(["nextest", "run", "--workspace", "--locked"]))?;
                // nextest leaves out the examples in doc comments, which `cargo test` runs.
                process::run(&mut workspace.cargo(["test", "--doc", "--workspace", "--locked", "--quiet"]))
            }
            Self::Cargo => process::run(&mut workspace.cargo(["test", "--workspace", "--locked"])),
        }
    }
}
