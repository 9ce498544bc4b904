//! The binary: passes its arguments to the library and exits with its exit code.
#![forbid(unsafe_code)]
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cli::main(std::env::args_os()))
}
