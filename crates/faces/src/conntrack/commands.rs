//! Dispatches commands to their functions.

use super::counters;
use super::edit;
use super::events;
use super::options::Command;
use super::parse::Line;
use super::run::Run;
use super::stop::Stop;
use super::table;
use super::usage;

/// Executes a command line; returns the number of entries shown or changed.
pub(super) fn execute(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    match line.command {
        None => usage::print(run.session, line).map(|()| 0),
        Some(command) => match command {
            Command::Help => usage::print(run.session, line).map(|()| 0),
            Command::Version => usage::version().map(|()| 0),
            Command::List => table::list(run, line),
            Command::ExpList => table::expectations(run, line),
            Command::Create | Command::Add => edit::create(run, line),
            Command::Update => edit::update(run, line),
            Command::Delete => edit::delete(run, line),
            Command::Get => edit::get(run, line),
            Command::Flush | Command::ExpFlush => edit::flush(run, line).map(|()| 0),
            Command::ExpCreate | Command::ExpDelete => edit::change_expectation(run, line),
            Command::ExpGet => edit::get_expectation(run, line),
            Command::Event | Command::ExpEvent => events::follow(run, line).map(|()| 0),
            Command::Count => counters::entries(run, line).map(|()| 0),
            Command::ExpCount => counters::expectations(run, line).map(|()| 0),
            Command::Stats | Command::ExpStats => counters::per_cpu(run, line).map(|()| 0),
        },
    }
}
