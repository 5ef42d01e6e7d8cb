//! The command line of ChoirOS, and the wiring of one computer: log, writer, projector, effects, socket.

pub mod archive;
pub mod bench;
pub mod checkpoints;
pub mod cli;
mod commands;
pub mod computer;
pub mod config;
pub mod failure;
pub mod hold;
pub mod ids;
pub mod place;
pub mod protocol;
mod render;
pub mod session;
pub mod socket;

use std::process::ExitCode;

use clap::Parser;

/// Runs the command line and says how it went.
pub fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let style = render::Style::choose(cli.json);
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failure = failure::of_anyhow(&error);
            render::failure(style, &failure);
            ExitCode::from(failure.code.exit())
        }
    }
}
