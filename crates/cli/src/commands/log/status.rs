//! `netwren log status`: shows what became of every row that a running netwren ships.

use crate::command::{Command, ParsedWords, Positional, Prepared, ready};
use crate::flags::defs::Scope;
use export::{ReportFormat, request_report};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use std::path::Path;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "log status",
    about: "Row counts of a running netwren for each receiver: shipped, waiting, dropped",
    examples: EXAMPLES,
    scope: Scope::STATUS,
    positional: Positional::None,
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren log status --control /run/netwren.sock                  the run that was started with the same --control
  netwren log status --control /run/netwren.sock -o prometheus
";

fn prepare<'w>(words: &'w ParsedWords<'w>) -> Prepared<'w> {
    let no_run = || "no run to query: add --control FILE, as given to that run".to_owned();
    ask(words, words.file("control").ok_or_else(no_run)?)
}

/// Asks the run that listens at `path`.
pub(crate) fn ask<'w>(words: &'w ParsedWords<'w>, path: &'w Path) -> Prepared<'w> {
    let format = words.output().and_then(ReportFormat::from_word).unwrap_or(ReportFormat::Text);
    ready(move || match request_report(path, format) {
        Ok(report) if format == ReportFormat::Text => print::print_prose(&report).into(),
        Ok(report) => print::print(&report).into(),
        Err(error) => Outcome::with_message(Exit::Failed, error),
    })
}
