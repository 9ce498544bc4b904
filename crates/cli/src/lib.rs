//! netwren: one look at a host's network.
//!
//! The wiring: it maps words to commands, assembles each command, and sets exit codes. Only the binary and the chores
//! that print its help depend on this crate. Start reading at [`main`]; the list of all commands is `registry.rs`.
#![forbid(unsafe_code)]

mod bundle;
mod commands;
mod complete;
mod config;
mod dispatch;
mod flags;
mod help;
mod hints;
mod output;
mod registry;
mod schema;
mod screen;
mod version;

pub use flags::defs::{VARIABLES, Variable};
pub use record::FieldInfo;
pub use runtime::Exit;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use flags::{command, parser};
use lookups::owners;
use lookups::packet_entries::remote;
use registry::COMMANDS;
use runtime::messages;
use shipping::ShipRequest;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The error if the program has more privileges than its caller. Its options open, write and load files that the
/// caller names (`--record`, `--netns PATH`, `ss -D FILE`), so it must not lend its privileges to every user who can
/// start it.
const LENT_RIGHTS: &str = "started with more privileges than its caller has (set-user-id, set-group-id, file \
                           capabilities or a security module): refused, because any caller could use them; start it \
                           with sudo, or with ambient capabilities (setpriv --ambient-caps, systemd's \
                           AmbientCapabilities=)";

/// Runs the program with its arguments, starting with its own name; returns the exit code.
pub fn main(mut args: impl Iterator<Item = OsString>) -> u8 {
    if sys::caps::has_more_than_its_caller() {
        messages::print_message(LENT_RIGHTS);
        return Exit::Failed as u8;
    }
    let called = args.next().unwrap_or_default();
    let name = Path::new(&called).file_name().and_then(OsStr::to_str).unwrap_or("netwren");
    if name == export::PACKER {
        return shipping::packer::pack(&args.next().unwrap_or_default()) as u8;
    }
    if name == owners::helper_process::NAME {
        return owners::helper_process::run(args) as u8;
    }
    if name == remote::NAME {
        return remote::run(args) as u8;
    }
    if name == packet_files::PACKER {
        return packet_files::run_packing() as u8;
    }
    if name == packet_files::RUNNER {
        return packet_files::run_commands(args) as u8;
    }
    if let Some(face) = faces::find(name) {
        return face.run(args, run_log);
    }
    let words: Vec<OsString> = args.collect();
    if let Some(face) = words.first().and_then(|first| first.to_str()).and_then(faces::find) {
        return face.run(words.into_iter().skip(1), run_log);
    }
    if let Some(exit) =
        words.split_first().filter(|(first, _)| *first == "help").and_then(|(_, topic)| help::run(topic, COMMANDS))
    {
        return exit as u8;
    }
    if let Some((_, words)) = words.split_first().filter(|(first, _)| *first == complete::WORD) {
        return complete::run(words) as u8;
    }
    if let Some(exit) = version::run(&words) {
        return exit as u8;
    }
    match dispatch::run(words.clone(), COMMANDS) {
        Some(exit) => exit as u8,
        None => without_command(words) as u8,
    }
}

/// Runs `netwren log` for the ulogd face.
fn run_log(words: Vec<OsString>, ship: &ShipRequest) -> bool {
    use commands::log;
    match parser::parse(&log::COMMAND, words, COMMANDS, |line| log::run_shipping(line, ship)) {
        Ok(outcome) => {
            outcome.messages.iter().for_each(|message| messages::print_message(message));
            outcome.exit == Exit::Ok
        }
        Err(_) => false,
    }
}

/// Handles the home screen, `--help`, `--version`, `help COMMAND`, and unknown commands.
fn without_command(words: Vec<OsString>) -> Exit {
    let line = std::iter::once(OsString::from("netwren")).chain(words.clone());
    match parser::tree(COMMANDS).try_get_matches_from(line) {
        Ok(_) => dispatch::run_command(&commands::home::COMMAND, words, COMMANDS),
        Err(error) => match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
            (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) => {
                let text = hints::unknown_command(word, COMMANDS);
                output::refused(&parser::tree(COMMANDS).error(ErrorKind::ValueValidation, text))
            }
            _ => output::refused(&error),
        },
    }
}

/// The native commands as a clap tree, for man pages.
pub fn commands() -> clap::Command {
    parser::tree(COMMANDS)
}

/// Completions for bash, zsh and fish, by file name.
pub fn completion_scripts() -> [(&'static str, &'static str); 3] {
    complete::SCRIPTS
}

/// The content of docs/schema.md: every table with every field.
pub fn schema_markdown() -> String {
    schema::markdown(COMMANDS)
}

/// The text of `netwren help filters`, for its man page.
pub fn filters_help() -> &'static str {
    help::FILTERS
}

/// The fields that the command of this name shows, for its man page; None without its own table.
pub fn fields_of(command: &str) -> Option<Vec<FieldInfo>> {
    let command = COMMANDS.iter().find(|entry| entry.name == command && !entry.name.contains(' '))?;
    command.tables.first().map(|table| table.fields().collect())
}
