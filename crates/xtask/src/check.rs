//! `cargo xtask check`: what the compiler and its tools can check without running anything.
//!
//! Format, lints, and that the pure crates still compile for the browser: `shared-types` and `kernel` run there
//! too, so a clock, a thread or a file in them is caught here and not by the next build of the desktop.

use anyhow::Result;
use clap::ValueEnum;

use crate::{process, steps, steps::Step, wasm, workspace::Workspace};

/// Format, lints, and the pure crates for wasm
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask check                 all three
  cargo xtask check fmt clippy      some of them
  WASM_STD=debian cargo xtask check wasm
                                    with a wasm std built from Debian's packages, as on a machine
                                    that cannot reach rustup's server")]
pub(crate) struct Args {
    /// Only these parts, in the order given
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// cargo fmt --check
    Fmt,
    /// cargo clippy on everything, warnings are errors
    Clippy,
    /// cargo check of shared-types and kernel for wasm32-unknown-unknown
    Wasm,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let parts = if args.parts.is_empty() { Part::value_variants() } else { &args.parts };
    println!("{}", steps::run_in_order("check", parts, workspace)?);
    Ok(())
}

impl Step for Part {
    fn name(&self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Wasm => "wasm",
        }
    }

    fn alone(&self) -> &'static str {
        match self {
            Self::Fmt => "cargo xtask check fmt",
            Self::Clippy => "cargo xtask check clippy",
            Self::Wasm => "cargo xtask check wasm",
        }
    }

    fn run(&self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Fmt => fmt(workspace),
            Self::Clippy => clippy(workspace),
            Self::Wasm => for_wasm(workspace),
        }
    }
}

fn fmt(workspace: &Workspace) -> Result<()> {
    process::run(&mut workspace.cargo(["fmt", "--all", "--check"]))
        .map_err(|error| error.context("see above; `cargo fmt --all` formats the code"))
}

fn clippy(workspace: &Workspace) -> Result<()> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    process::run(&mut workspace.cargo(args))
}

fn for_wasm(workspace: &Workspace) -> Result<()> {
    let mut cargo = wasm::provide(workspace)?.cargo(workspace);
    cargo.args(["check", "--locked", "--package", "shared-types", "--package", "kernel"]);
    process::run(cargo.args(["--target", wasm::TARGET]))
}
