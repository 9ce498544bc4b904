//! Builds lines of our own commands. A line is proposed only if the command accepts it.

use super::pieces::{WordPiece, pieces};
use crate::command::{Command, ParsedWords, Positional};
use crate::flags::defs::Scope;
use crate::flags::parser;
use crate::flags::request::Request;
use crate::flags::shell_line::shell_line;
use pcapfilter::{FilterTarget, LinkType, NameFiles, PacketOrigin};
use record::Schema;
use record::rows::Sockets;
use std::ffi::OsString;
use tables::Repeat;

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
    let mut line: Vec<OsString> = match command.positional {
        Positional::Filter => filter(command, &operands.join(" "), tests)?.into_iter().map(OsString::from).collect(),
        _ if tests.is_empty() => operands.into_iter().map(OsString::from).collect(),
        _ => return None,
    };
    line.extend(flags);
    if !is_understood(command, &line) {
        return None;
    }
    let words = shell_line(&line)?;
    Some(format!("netwren {} {words}", command.name).trim_end().to_owned())
}

/// Combines the filter in these words with the tests; `Some(None)` if there is nothing to test.
fn filter(command: &Command, written: &str, tests: &[String]) -> Option<Option<String>> {
    let written = match written {
        "" => String::new(),
        text if command.tables.iter().any(|table| is_filter(command, *table, text)) => text.to_owned(),
        text => engine::filter::suggest_filter(*command.tables.first()?, text)?,
    };
    let has_or = written.split_whitespace().any(|word| word == "or" || word == "||");
    let written = if has_or && !tests.is_empty() { format!("({written})") } else { written };
    let parts: Vec<String> =
        [written].into_iter().filter(|part| !part.is_empty()).chain(tests.iter().cloned()).collect();
    Some((!parts.is_empty()).then(|| parts.join(" and ")))
}

/// Builds the line of a command without words: its help if it does not run without any.
pub(super) fn bare(command: &'static Command) -> String {
    let help = if is_understood(command, &[]) { "" } else { " --help" };
    format!("netwren {}{help}", command.name)
}

/// True if the command accepts the words: its flags, their values, the columns and the filter.
pub(super) fn is_understood(command: &'static Command, words: &[OsString]) -> bool {
    command.run.is_some() && parser::parse(command, words.to_vec(), &[], check).is_ok()
}

/// Fails if a run with these words would refuse them.
fn check(words: &ParsedWords<'_>) -> Result<(), String> {
    let command = words.command;
    command.check.map_or(Ok(()), |check| check(words))?;
    if command.positional != Positional::Filter {
        return Ok(());
    }
    let request = Request::of(words)?;
    let filter = request.shown.filter.trim();
    let has_columns = |table: &Schema| {
        engine::columns::resolve(*table, request.shown.columns.as_deref(), engine::columns::Base::Default, true).is_ok()
    };
    // As in a run, following a table or comparing it with a baseline reads another table.
    let is_other = request.follow.is_some() || words.has("events") || words.has_file("baseline");
    let table = command.tables.get(1).filter(|_| is_other).or(command.tables.first());
    let is_right = table.is_some_and(|table| {
        has_columns(table) && is_filter(command, *table, filter) && has_its_rounds(*table, &request)
    });
    if is_right { Ok(()) } else { Err(String::new()) }
}

/// True if no field compares two rounds, or if there are rounds.
fn has_its_rounds(table: Schema, request: &Request) -> bool {
    let tests = engine::filter::parse(&request.shown.filter).and_then(|ast| engine::filter::bind(table, &ast)).ok();
    request.repeat != Repeat::Once || tables::plan::all_of_one_round(table, &request.table(), tests.as_slice()).is_ok()
}

/// True if the command accepts this text as a filter for the table.
fn is_filter(command: &Command, table: Schema, text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let sockets = (table.name() == "flows").then(Schema::from_table::<Sockets>);
    let is_of_fields = engine::filter::parse(text)
        .is_ok_and(|ast| [table].into_iter().chain(sockets).any(|table| engine::filter::bind(table, &ast).is_ok()));
    is_of_fields || command.scope.meets(Scope::CAPTURE) && is_expression(text)
}

/// True if pcap-filter compiles the text for Ethernet.
fn is_expression(text: &str) -> bool {
    let origin = PacketOrigin::Live { vlan_beside: true };
    let target = FilterTarget { link: LinkType::Ethernet, origin, snaplen: u32::MAX, netmask: None };
    pcapfilter::compile(text, &target, &NameFiles::default()).is_ok()
}
