//! `netwren nat` and the words below it.

mod stateless;

use super::Outcome;
use std::ffi::OsString;

/// Runs what the word behind `nat` says.
pub(super) fn run(word: &str, args: impl Iterator<Item = OsString>) -> Option<Outcome> {
    match word {
        "stateless" => Some(stateless::run(args)),
        _ => None,
    }
}
