//! Selects the sink for a request, by format and by the type of standard output.

use crate::flags::request::{Format, KeptColumns, Request};
use crate::screen;
use lookups::session::Session;
use record::Sink;
use runtime::ascii;
use runtime::exit::Exit;
use runtime::fold::fold;
use runtime::local_time::local_time;
use runtime::stdout::Stdout;
use runtime::width;
use sinks::{Csv, FormatOptions, HomeText, HomeTextOptions, Json, LogTail, LogTailOptions, Out, TableWriter, Text};
use sinks::{LocalClock, TableRoom};
use std::io::Write;
use tables::Repeat;

/// The sink on standard output for this request.
pub(crate) fn sink(request: &Request) -> Box<dyn Sink> {
    if let Some(bundle) = &request.bundle {
        return bundle.sink();
    }
    sink_into(request, Box::new(Stdout::new()))
}

/// The sink for repeated rounds; on a terminal they are drawn in place.
pub(crate) fn sink_of_rounds(request: &Request, session: &Session) -> Box<dyn Sink> {
    if request.bundle.is_some() || request.repeat == Repeat::Once {
        return sink(request);
    }
    let request = request.clone();
    screen::draw_rounds(&request.clone(), session, Box::new(move |to| sink_into(&request, to)))
}

/// The sink for this request that writes to `to`, which leads to standard output.
fn sink_into(request: &Request, to: Box<dyn Write>) -> Box<dyn Sink> {
    let terminal = sys::term::is_terminal(1);
    let is_exact = matches!(request.format, Format::Json | Format::Csv | Format::Tsv);
    let out = Out::new(if is_exact { to } else { ascii::table(to) });
    let options = FormatOptions {
        header: request.header,
        color: request.color.unwrap_or_else(|| terminal && colour_is_welcome()),
        null_words: request.null_words,
        stats: request.stats,
        cpu_us: Some(cpu_us),
    };
    match request.format {
        Format::LogTail => Box::new(log_tail(request, out, options.color)),
        Format::Home => Box::new(HomeText::new(
            out,
            HomeTextOptions { color: options.color, width: width::of_terminal(), lines: height(request) },
        )),
        Format::Json => Box::new(Json::new(out, options)),
        Format::Csv => Box::new(Csv::new(out, options)),
        format if format.is_aligned(request.color) => {
            let table = TableWriter::new(out, options).with_unusual(request.kept.unusual.clone());
            match format {
                Format::Table if terminal => Box::new(table.with_room(room(request)).for_people(Some(CLOCK))),
                // A pipe that is coloured is not cut, unless it has a width.
                _ => Box::new(table.with_room(room(request))),
            }
        }
        Format::Plain | Format::Table | Format::Tsv => Box::new(Text::new(out, options)),
    }
}

/// Returns the number of terminal lines left for rows: below the prompt, or between head and last line of a round.
fn height(request: &Request) -> Option<usize> {
    let rows = sys::term::size(sys::term::STDOUT)?.rows;
    Some(rows.saturating_sub(if request.repeat == Repeat::Once { 1 } else { 2 }))
}

/// The sink for log records as sentences, cut at the terminal's width.
fn log_tail(request: &Request, out: Out<Box<dyn Write>>, color: bool) -> LogTail<Box<dyn Write>> {
    let clock = |seconds: u64| {
        let at = local_time(i64::try_from(seconds).ok()?)?;
        Some([at.hour, at.minute, at.second])
    };
    LogTail::new(out, LogTailOptions { color, width: width::of_terminal(), with_netns: request.all_netns, clock })
}

/// The clock for times in human-readable tables.
const CLOCK: LocalClock = LocalClock { now_s: || sys::clock::wall().seconds, local: local_time };

/// The width available to a table; `None` in a pipe, unless COLUMNS is set.
fn room(request: &Request) -> Option<TableRoom> {
    let width = width::requested_width().or_else(width::of_terminal)?;
    let KeptColumns { named, keeps, can_be_named, see_by, .. } = request.kept.clone();
    Some(TableRoom { width, named, keeps, can_be_named, see_by })
}

/// Prints the error in a command line, or the help that it requests.
pub(crate) fn refused(error: &clap::Error) -> Exit {
    let text = error.render().to_string();
    if error.use_stderr() {
        // A closed stderr is ignored.
        let _ = sys::Out::stderr().write_all(width::folded_message(&ascii::message(&text)).as_bytes());
        return Exit::Usage;
    }
    // clap's own printing would not report write errors.
    runtime::print::print(&fold(&text, width::of_texts()))
}

/// False if NO_COLOR (https://no-color.org) is set or the terminal is dumb.
fn colour_is_welcome() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

fn cpu_us() -> u64 {
    let cost = sys::cost::measure();
    cost.user_us + cost.system_us
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn issue_10_no_line_of_help_is_wider_than_a_terminal() {
        let mut command = crate::commands();
        for name in ["sockets", "flows", "routes", "nat", "record", "support"] {
            let help = command.find_subcommand_mut(name).map(|below| below.render_long_help().to_string());
            let help = help.unwrap();
            let folded = fold(&help, 80);
            let is_wide = |line: &&str| line.chars().count() > 80 && !line.trim().starts_with("netwren ");
            assert_eq!(folded.lines().find(is_wide), None, "{name}");
            let words = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(words(&folded), words(&help), "{name}");
        }
    }
}
