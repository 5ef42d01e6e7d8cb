//! The `choir` binary: all of it is in the library, so that tests and examples can use the same parts.

use std::process::ExitCode;

fn main() -> ExitCode {
    choir::main()
}
