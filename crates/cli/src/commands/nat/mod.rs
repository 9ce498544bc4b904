//! `netwren nat …`: the words behind `nat`.

mod stats;

use super::Outcome;
use std::ffi::OsString;

/// Runs the command of a word that stands directly behind `nat`; `None` if it is no such word.
pub(super) fn run(word: &str, args: impl Iterator<Item = OsString>) -> Option<Outcome> {
    match word {
        "stats" => Some(stats::run(args)),
        _ => None,
    }
}
