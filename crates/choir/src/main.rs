//! The `choir` binary: the command line, and what the browser loads.

mod web;

use std::process::ExitCode;

fn main() -> ExitCode {
    command_line::main(web::Embedded)
}
