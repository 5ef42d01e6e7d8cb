//! The command line of ChoirOS.

pub mod bench;
pub mod cli;
mod commands;
mod local;
mod render;
pub mod web;

use std::process::ExitCode;

use clap::Parser;

/// Runs the command line and returns its exit code.
pub fn main() -> ExitCode {
    if let Some(code) = isolation::entry() {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    if let Some(code) = local_model::run_if_child() {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let cli = cli::Cli::parse();
    let style = render::Style::choose(cli.json);
    match commands::run(cli) {
        Ok(code) => code,
        Err(error) => {
            let failure = computer::error::from_anyhow(&error);
            render::failure(style, &failure);
            ExitCode::from(failure.code.exit())
        }
    }
}
