//! The command that the second word of a line is a slip of.

use super::parser::first_operand;
use super::unknown::is_slip;
use crate::command::{Command, Commands};
use std::ffi::OsString;

/// The command below `command` that the first of its words is a slip of: `evnts` of `nat`.
pub(crate) fn near_command(words: &[OsString], command: &Command, commands: Commands) -> Option<&'static str> {
    let word = words.get(first_operand(words)?)?.to_str()?;
    let mut below = commands.iter().filter(|other| other.is_below(command.name));
    below.find(|other| is_slip(word.as_bytes(), other.word().as_bytes())).map(|other| other.name)
}
