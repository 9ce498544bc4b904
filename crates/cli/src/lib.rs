//! netwren: one look at a host's network.
//!
//! The wiring: which word starts what, which pieces a command is put together from, what the exit code says. Nobody
//! depends on this crate but the binary and the chores that print its help. Start reading at [`main`].
#![forbid(unsafe_code)]

mod append_map;
mod asked;
mod commands;
mod enrich;
mod exit;
mod faces;
mod flags;
mod messages;
mod names;
mod nft;
mod output;
mod process_cache;
mod refreshing_lookups;
mod schema;
mod session;
mod stdout;

pub use exit::Exit;
pub use flags::{COMMANDS, all as commands, one as command};
pub use schema::schema_markdown;

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What is said where the program has more rights than its caller. Its options open, write and load what the caller
/// names (`--record`, `--netns PATH`, `ss -D FILE`), so it must not lend its rights to whoever may start it.
const LENT_RIGHTS: &str = "started with more rights than its caller has (set-user-id, set-group-id, file capabilities or a \
                           security module): refused, because its options would lend them; start it by sudo, or with \
                           ambient capabilities (setpriv --ambient-caps, systemd's AmbientCapabilities=)";

/// Runs the program with its arguments, its own name first; returns the exit code.
pub fn main(mut args: impl Iterator<Item = OsString>) -> u8 {
    if sys::caps::has_more_than_its_caller() {
        messages::say(LENT_RIGHTS);
        return Exit::Failed as u8;
    }
    let called = args.next().unwrap_or_default();
    let name = Path::new(&called).file_name().and_then(OsStr::to_str).unwrap_or("netwren");
    if let Some(face) = faces::find(name) {
        return face(&faces::Call::new(args));
    }
    let Some(first) = args.next() else { return commands::overview(None) as u8 };
    let word = first.to_str().unwrap_or("");
    if let Some(face) = faces::find(word) {
        return face(&faces::Call::new(args));
    }
    match commands::run(word, args) {
        Some(exit) => exit as u8,
        None => other(first) as u8,
    }
}

/// `--replay FILE`, `--help`, `--version`, `help COMMAND`, and words that are no command.
fn other(first: OsString) -> Exit {
    let words = [OsString::from("netwren"), first].into_iter().chain(std::env::args_os().skip(2));
    match flags::all().try_get_matches_from(words) {
        Ok(matches) => match matches.get_one::<std::path::PathBuf>("replay") {
            Some(file) => commands::overview(Some(file)),
            None => Exit::Usage,
        },
        Err(error) => messages::refused(&error),
    }
}
