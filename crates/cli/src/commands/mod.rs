//! The native commands.

mod acting;
mod flows;
mod follow;
mod kill;
mod nat;
mod overview;
mod ownerless;
mod plan;
mod record;
mod sockets;
mod support;
mod table;

pub(crate) use nat::via_of;
pub(crate) use overview::overview;

use crate::exit::Exit;
use crate::flags::Request;
use crate::messages::{refused, say};
use std::ffi::OsString;

/// How a command ended, and what it has to say about it on stderr.
pub(crate) struct Outcome {
    exit: Exit,
    messages: Vec<String>,
}

impl Outcome {
    /// An end with one line.
    fn because(exit: Exit, line: impl ToString) -> Outcome {
        Outcome { exit, messages: vec![line.to_string()] }
    }
}

impl From<Exit> for Outcome {
    fn from(exit: Exit) -> Outcome {
        Outcome { exit, messages: Vec::new() }
    }
}

/// Runs the native command called `name` and messages what it has to say; `None` if there is none of that name.
pub(crate) fn run(name: &str, args: impl Iterator<Item = OsString>) -> Option<Exit> {
    let Outcome { exit, messages } = outcome(name, args)?;
    messages.iter().for_each(|line| say(line));
    Some(exit)
}

/// Runs the native command called `name`; its last words are left to the caller.
fn outcome(name: &str, args: impl Iterator<Item = OsString>) -> Option<Outcome> {
    let mut args = args.peekable();
    if name == "sockets" && args.next_if(|word| word == "kill").is_some() {
        return Some(kill::run(args));
    }
    if name == "nat" {
        return Some(nat::run(args));
    }
    if name == "record" {
        return Some(record::run(args));
    }
    let command: fn(&Request) -> Outcome = match name {
        "sockets" => sockets::run,
        "flows" => flows::run,
        "support" => return Some(support::run(args).into()),
        _ => return None,
    };
    Some(match Request::parse(name, args) {
        Ok(request) => command(&request),
        Err(error) => refused(&error).into(),
    })
}
