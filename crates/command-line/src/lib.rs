//! The command line of ChoirOS, all of it but what the browser loads, which the `choir` binary embeds.

pub mod cli;
mod commands;
mod local;
mod render;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use hypervisor::assets::Assets;

/// Runs the command line and returns its exit code. `choir up` serves the desktop from `assets`.
pub fn main(assets: impl Assets + 'static) -> ExitCode {
    if let Some(code) = isolation::entry() {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    if let Some(code) = local_model::run_if_child() {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let cli = cli::Cli::parse();
    let style = render::Style::choose(cli.json);
    match commands::run(cli, Arc::new(assets)) {
        Ok(code) => code,
        Err(error) => {
            let failure = computer::error::from_anyhow(&error);
            render::failure(style, &failure);
            ExitCode::from(failure.code.exit())
        }
    }
}
