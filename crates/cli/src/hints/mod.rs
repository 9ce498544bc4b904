//! Proposals in error messages about the command line.
//!
//! A line `did you mean: netwren …` is a command that this program accepts. The line is parsed as a run would parse it
//! before it is shown, and left out if that fails ([`own_line`], [`other_tool`]).

mod command_word;
mod option;
mod other_tool;
mod own_line;
mod pieces;

pub(crate) use command_word::{near_subcommand, unknown_command};

use crate::command::{Command, Commands};
use crate::flags::defs::{FLAGS, Takes};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Returns the message about an option that the command does not take, or about a letter with two meanings; `None` for
/// any other error.
pub(crate) fn refusal(
    error: &clap::Error,
    words: &[OsString],
    command: &'static Command,
    commands: Commands,
) -> Option<String> {
    let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else { return None };
    match error.kind() {
        // An unknown word that does not start with `-` is a surplus word, not an option.
        ErrorKind::UnknownArgument if arg.starts_with('-') => Some(option::refusal(arg, words, command, commands)),
        ErrorKind::InvalidValue if arg.starts_with("--output") => format_of_output(words, command, commands),
        _ => None,
    }
}

/// Handles `-o` without a format, because `-o` has another meaning in ss, lstf and conntrack.
fn format_of_output(words: &[OsString], command: &'static Command, commands: Commands) -> Option<String> {
    let tool = other_tool::of(command).filter(|_| words.iter().any(|word| word == "-o"))?;
    let line = other_tool::line(words, command, commands)?;
    let is_output = |flag: &&crate::flags::defs::Flag| flag.long == "output" && flag.scope.meets(command.scope);
    let Takes::Word(formats) = FLAGS.iter().find(is_output)?.takes else { return None };
    let formats = formats.join(", ");
    Some(format!("-o takes a format: {formats}; use `netwren {tool}` for the switches of {tool}\ndid you mean: {line}"))
}

#[cfg(test)]
mod tests;
