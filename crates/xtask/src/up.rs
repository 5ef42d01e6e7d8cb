//! `cargo xtask up`: from a checkout to a running computer, in one command.
//!
//! Builds what the browser loads and beside it the libraries of the binary, then the binary that embeds it, and runs
//! that. Arguments after `--` go to `choir up` unchanged; without building, `choir up` alone does the same.

use anyhow::Result;

use crate::{
    process::{self, Background},
    web,
    workspace::{Profile, Workspace},
};

/// All of the binary but what the browser loads, with the same features of every dependency.
const LIBRARIES: &str = "command-line";

/// Builds everything and starts the computer
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask up                          then open the link that it prints
  cargo xtask up -- --help                what `choir up` takes")]
pub(crate) struct Args {
    /// Passed on to `choir up`
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    println!("[1/3] what the browser loads, cargo xtask web, and the libraries of the binary");
    let mut libraries = workspace.cargo(["build", "--release", "--locked", "--package", LIBRARIES]);
    // Two progress bars would write over each other.
    let libraries = Background::start(libraries.env("CARGO_TERM_PROGRESS_WHEN", "never"))?;
    web::run(workspace, &web::Args::default())?;
    libraries.finish()?;
    println!("[2/3] the binary: cargo build --release -p choir");
    process::run(&mut workspace.cargo(["build", "--release", "--locked", "--package", "choir"]))?;
    let choir = workspace.binary(Profile::Release, "choir");
    println!("[3/3] {} up", choir.display());
    process::run(std::process::Command::new(choir).arg("up").args(&args.rest))
}
