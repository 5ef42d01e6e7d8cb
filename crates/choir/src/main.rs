//! The `choir` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    choir::main()
}
