//! The `choir` binary. Its code is in the library, so that tests and examples can use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    choir::main()
}
