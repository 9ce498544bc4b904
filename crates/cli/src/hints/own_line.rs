//! Builds lines of our own commands. A line is proposed only if the command accepts it.

use super::pieces::{WordPiece, pieces};
use crate::command::{Command, Positional};
use crate::flags::parser;
use crate::flags::shell_line::shell_line;
use std::ffi::OsString;

/// Builds `netwren COMMAND FILTER FLAGS` from the words and adds the tests to their filter; `None` if the command would
/// refuse the line.
pub(super) fn line(command: &'static Command, words: &[OsString], tests: &[String]) -> Option<String> {
    of_pieces(command, &pieces(words, command)?, tests)
}

/// Builds the same line from words that are already in pieces.
pub(super) fn of_pieces(command: &'static Command, pieces: &[WordPiece], tests: &[String]) -> Option<String> {
    let (mut operands, mut flags) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            WordPiece::Own { words, .. } => flags.extend(words.iter().map(OsString::from)),
            WordPiece::Operand(word) => operands.push(word.as_str()),
            WordPiece::Letters(_) | WordPiece::Long(_) => return None,
        }
    }
    let with_flags = |operands: &[&str]| operands.iter().map(OsString::from).chain(flags.clone()).collect();
    let accepted = |line: Vec<OsString>| is_understood(command, &line).then_some(line);
    let written = operands.join(" ");
    let is_filter = command.positional == Positional::Filter && !(written.is_empty() && tests.is_empty());
    let as_filter = |text: &str| accepted(with_flags(&[&with_tests(text, tests)])).filter(|_| is_filter);
    let as_written = || accepted(with_flags(&operands)).filter(|_| tests.is_empty());
    let suggested = || as_filter(&engine::filter::suggest_filter(*command.tables.first()?, &written)?);
    let line = as_filter(&written).or_else(as_written).or_else(suggested)?;
    let words = shell_line(&line)?;
    Some(format!("netwren {} {words}", command.name).trim_end().to_owned())
}

/// Adds the tests to a filter.
fn with_tests(written: &str, tests: &[String]) -> String {
    let has_or = written.split_whitespace().any(|word| word == "or" || word == "||");
    let written = if has_or && !tests.is_empty() { format!("({written})") } else { written.to_owned() };
    let parts = [written].into_iter().filter(|part| !part.is_empty()).chain(tests.iter().cloned());
    parts.collect::<Vec<_>>().join(" and ")
}

/// Builds the line of a command without words: its help if it does not run without any.
pub(super) fn bare(command: &'static Command) -> String {
    let help = if is_understood(command, &[]) { "" } else { " --help" };
    format!("netwren {}{help}", command.name)
}

/// True if a run with these words could begin.
pub(super) fn is_understood(command: &'static Command, words: &[OsString]) -> bool {
    parser::parse(command, words.to_vec(), &[], |words| Ok(words.prepare().is_ok())).unwrap_or(false)
}
