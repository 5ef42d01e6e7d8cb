//! The command line of ChoirOS.

pub mod bench;
pub mod cli;
mod commands;
mod render;
pub mod web;

use std::process::ExitCode;

use clap::Parser;

/// Runs the command line and says how it went.
pub fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let style = render::Style::choose(cli.json);
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failure = sandbox::failure::of_anyhow(&error);
            render::failure(style, &failure);
            ExitCode::from(failure.code.exit())
        }
    }
}
