//! `netwren nat` and what stands below it.

mod events;

pub(crate) use events::via_of;

use super::Outcome;
use std::ffi::OsString;

/// Runs the command below `nat` called `word` with the words behind it; `None` if there is none of that name.
pub(super) fn below(word: &str, args: impl Iterator<Item = OsString>) -> Option<Outcome> {
    match word {
        "events" => Some(events::run(args)),
        _ => None,
    }
}
