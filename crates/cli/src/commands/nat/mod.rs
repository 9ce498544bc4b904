//! `netwren nat`: the table of connection tracking; and the words behind `nat`.

mod advise;
mod delete;
mod events;
mod held_cells;
mod holders;
mod list;
mod owner_checksum;
mod owners;
mod port_use;
mod snat_rules;
mod stateless;
mod stats;
mod top;

pub(super) use advise::survey;
pub(crate) use events::via_of;
pub(super) use list::every_entry;
pub(super) use stats::every_counter;

use super::Outcome;
use std::ffi::OsString;
use std::iter::Peekable;

/// A command behind `nat`, with its words.
type Below = fn(&mut dyn Iterator<Item = OsString>) -> Outcome;

const BELOW: &[(&str, Below)] = &[
    ("top", |args| top::run(args)),
    ("stats", |args| stats::run(args)),
    ("events", |args| events::run(args)),
    ("advise", |args| advise::run(args)),
    ("delete", |args| delete::run(args)),
    ("stateless", |args| stateless::run(args)),
];

/// Runs the command of the words behind `nat`. Only the first can name a command; further on it is a word of the filter.
pub(super) fn run(mut args: Peekable<impl Iterator<Item = OsString>>) -> Outcome {
    let named = args.peek().and_then(|word| BELOW.iter().find(|(name, _)| word == name));
    match named {
        Some((_, command)) => command(&mut args.skip(1)),
        None => list::run(args),
    }
}
