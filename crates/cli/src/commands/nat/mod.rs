//! `netwren nat`: the table of connection tracking; and the words behind `nat`.

mod delete;
mod events;
mod list;
mod owners;
mod stats;
mod top;

pub(crate) use events::via_of;

use super::Outcome;
use crate::exit::Exit;
use std::ffi::OsString;
use std::iter::Peekable;

/// Runs the command of the words behind `nat`. Only the first can name a command; further on it is a word of the filter.
pub(super) fn run(mut args: Peekable<impl Iterator<Item = OsString>>) -> Outcome {
    let word = args.peek().and_then(|word| word.to_str()).unwrap_or("").to_owned();
    let mut rest = || {
        args.next();
    };
    match word.as_str() {
        "top" => {
            rest();
            top::run(args)
        }
        "stats" => {
            rest();
            stats::run(args)
        }
        "events" => {
            rest();
            events::run(args)
        }
        "delete" => {
            rest();
            delete::run(args)
        }
        _ => list::run(args),
    }
}

/// The end of a command whose words clap did not like, or which only asked for help.
fn refused(error: &clap::Error) -> Outcome {
    let _ = error.print();
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Ok.into() }
}
