//! The lstf 0.7.2 face: host flows of TCP.
//!
//! These defects are not reproduced: random order, columns that run into each other, the wrong direction for
//! connections to a service with one address, JSON without a final newline, a failing exit code for `--help`,
//! rejection of `-w=3s`, an end at the first unreadable process, and an unlimited wait for names. `--bug-compatible`
//! restores the layout, the direction and the missing newline, but not the rest.

mod groups;
pub mod output;
mod show;
mod switches;
mod waiting_flow;

use super::Call;
use super::text::{print, warn};
use runtime::messages::print_message;
use switches::Ask;

/// lstf's exit code for all errors.
const FAILED: u8 = 11;
const OK: u8 = 0;

const HELP: &str = "\
Usage: lstf [options]

  Print TCP flows between localhost and other hosts

Options:
  --numeric, -n                 show numerical addresses instead of trying to determine symbolic host names
  --processes, -p               show process using socket
  --json                        print results as json format
  --filter FILTER, -f FILTER    filter results by \"all\", \"public\" or \"private\" (default: \"all\")
  --watch=SECONDS, -w=SECONDS   print periodically (default: every 3 seconds)

  --version, -v                 print version
  --help, -h                    print help
  --credits                     print credits

This is netwren, in place of lstf. `netwren flows` shows more; `netwren lstf --bug-compatible …` reproduces its errors.
";

const CREDITS: &str = "\
netwren replaces lstf 0.7.2 (https://github.com/yuuki/lstf) and contains none of its code.
The crates that netwren is built from are listed in its Cargo.lock.
";

/// The switches of lstf, for completion.
pub(crate) fn switches() -> Vec<String> {
    switches::written()
}

/// True if the arguments are switches of lstf.
pub(crate) fn accepts(call: &Call) -> bool {
    switches::parse(&call.args).is_ok()
}

/// Runs the face; returns the exit code.
pub(crate) fn run(call: &Call) -> u8 {
    match switches::parse(&call.args) {
        Ok(Ask::Show(switches)) => show::run(&switches, call.bug_compatible),
        Ok(Ask::Help) => print(HELP, FAILED),
        Ok(Ask::Credits) => print(CREDITS, FAILED),
        Ok(Ask::Version) => {
            // lstf prints it on stderr.
            warn(concat!("lstf version 0.7.2, build netwren-", env!("CARGO_PKG_VERSION"), ", date  \n"));
            OK
        }
        Err(wrong) => {
            print_message(&format!("lstf: {wrong}"));
            FAILED
        }
    }
}
