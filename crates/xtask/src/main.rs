//! `cargo xtask`: everything a developer does in this repository, one command each.
//!
//! Each command is a module of its own name; this file only reads the command line and turns the result into an exit
//! code. Commands take what they need to know about the workspace from [`workspace::Workspace`].

mod bench;
mod browser;
mod check;
mod crash;
mod deep;
mod fuzz;
mod packages;
mod process;
mod steps;
mod test;
mod tidy;
mod up;
mod wasm;
mod web;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use workspace::Workspace;

const EXAMPLES: &str = "\
Examples:
  cargo xtask up                        build everything and start the computer
  cargo xtask web                       only what the browser loads
  cargo xtask check                     before a commit: format, lints, wasm
  cargo xtask check clippy              only the lints
  cargo xtask tidy --fix                the repository's own rules; writes what is generated
  cargo xtask test                      everything that CI runs
  cargo xtask browser                   the desktop in a real browser, against a real server
  cargo xtask crash --points 200        kill the real process 200 times, compare what is left
  cargo xtask crash --scenarios         kill runs of agents after every event of every scenario
  cargo xtask deep                      all that is long: every kill, many cases, ten minutes of fuzzing
  cargo xtask bench append              one benchmark, as JSON lines
  cargo xtask fuzz --seconds 60         mutated events and archives for a minute

Each command explains itself: cargo xtask <command> --help";

/// What a developer can do in this repository.
#[derive(Debug, Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Task>,
}

#[derive(Debug, Subcommand)]
enum Task {
    Up(up::Args),
    Web(web::Args),
    Check(check::Args),
    Tidy(tidy::Args),
    Test(test::Args),
    Browser(browser::Args),
    Crash(crash::Args),
    Deep(deep::Args),
    Bench(bench::Args),
    Fuzz(fuzz::Args),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            process::exit_code(&error)
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let Some(task) = cli.command else {
        return Ok(Cli::command().print_help()?);
    };
    let workspace = Workspace::load()?;
    match task {
        Task::Up(args) => up::run(&workspace, &args),
        Task::Web(args) => web::run(&workspace, &args),
        Task::Check(args) => check::run(&workspace, &args),
        Task::Tidy(args) => tidy::run(&workspace, &args),
        Task::Test(args) => test::run(&workspace, &args),
        Task::Browser(args) => browser::run(&workspace, &args),
        Task::Crash(args) => crash::run(&workspace, &args),
        Task::Deep(args) => deep::run(&workspace, &args),
        Task::Bench(args) => bench::run(&workspace, &args),
        Task::Fuzz(args) => fuzz::run(&workspace, &args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_in_the_overview_and_in_its_own_help() {
        for command in Cli::command().get_subcommands() {
            let call = format!("cargo xtask {}", command.get_name());
            assert!(EXAMPLES.contains(&call), "the overview lacks `{call}`");
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&call), "the help of `{call}` lacks an example");
        }
    }
}
