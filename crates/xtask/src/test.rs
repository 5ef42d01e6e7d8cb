//! `cargo xtask test`: the whole test run, which is what CI does and nothing else.
//!
//! The cheap steps come first, so that a forgotten `cargo fmt` costs seconds and not the length of the run. Of the long
//! tests that rarely find anything it runs a share that changes daily; `cargo xtask deep` runs all of them.

use std::process::Command;

use anyhow::Result;

use crate::{
    browser,
    check::Part,
    crash, fuzz, packages, process,
    steps::{self, Step},
    tidy, web,
    workspace::Workspace,
};

/// Everything that CI runs, in order, up to the first failure
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask test
  CHOIR_SHARE=2 cargo xtask test        with the share of long tests that ran on another day
  cargo nextest run -p kernel undo      only the tests of kernel with `undo` in their name")]
pub(crate) struct Args {}

/// What CI spends on fuzzing; `cargo xtask deep` spends more.
const FUZZ_SECONDS: u64 = 20;

#[derive(Debug)]
enum Stage {
    Check(Part),
    Tidy,
    Web,
    Tests(Runner),
    Browser,
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
        // The bundle comes before the binary that carries it.
        Stage::Web,
        Stage::Tests(Runner::found()),
        Stage::Browser,
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
            Self::Web => "web",
            Self::Tests(_) => "tests",
            Self::Browser => "browser",
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
            Self::Web => "cargo xtask web",
            Self::Browser => "cargo xtask browser",
            Self::Crash => "cargo xtask crash --points 50",
            Self::Fuzz => "cargo xtask fuzz --seconds 20",
        }
    }

    fn run(&self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Check(part) => part.run(workspace),
            Self::Tidy => tidy::run(workspace, &tidy::Args::default()),
            Self::Tests(runner) => runner.run(workspace),
            Self::Web => web::run(workspace, &web::Args::default()),
            Self::Browser => browser::run(workspace, &browser::Args::default()),
            Self::Crash => crash::run(workspace, &crash::Args::default()),
            Self::Fuzz => fuzz::run(workspace, &fuzz::Args::seconds(FUZZ_SECONDS)),
        }
    }
}

impl Runner {
    fn found() -> Self {
        let present = process::succeeds(Command::new("cargo-nextest").args(["nextest", "--version"]));
        if present { Self::Nextest } else { Self::Cargo }
    }

    fn run(self, workspace: &Workspace) -> Result<()> {
        packages::install_for_cells();
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
