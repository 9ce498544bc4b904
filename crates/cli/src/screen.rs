//! Decides what is drawn on a terminal: rounds in place, and the line below events.
//!
//! In a pipe, on a terminal that is dumb or too small, and in a replay (which ends), rounds follow each other instead,
//! and no line is shown.

use crate::flags::request::{Format, Request};
use lookups::session::Session;
use record::{Sink, text};
use runtime::ascii;
use runtime::drawn_rounds::{DrawnRounds, MakeWriter, can_draw, can_erase};
use runtime::stdout::Stdout;
use runtime::waiting::WaitingSink;
use std::io::Write;
use tables::Repeat;

/// The writer made by `make`, drawn in place if the request has rounds and standard output can display them.
pub(crate) fn draw_rounds<'m>(request: &Request, session: &Session, make: Box<MakeWriter<'m>>) -> Box<dyn Sink + 'm> {
    let is_table = matches!(request.format, Format::Table | Format::Home);
    if !(is_table && request.repeat != Repeat::Once && request.replay.is_none() && can_draw()) {
        let is_exact = matches!(request.format, Format::Json | Format::Csv | Format::Tsv);
        let to: Box<dyn Write> = Box::new(Stdout::new());
        return make(if is_exact { to } else { ascii::table(to) });
    }
    let counted = if request.format == Format::Table { "rows" } else { "lines" };
    let drawn = DrawnRounds::new(title(request), counted, make);
    session.waits().at_each_turn(drawn.redraw());
    Box::new(drawn)
}

/// Wraps `sink` with a line about the last event if standard output is a terminal with a human-readable format.
pub(crate) fn show_waiting(request: &Request, session: &Session, sink: Box<dyn Sink>) -> Box<dyn Sink> {
    let is_table = request.format == Format::Table && request.bundle.is_none() && request.replay.is_none();
    if !is_table || !can_erase() {
        return sink;
    }
    let waiting = WaitingSink::new(sink, request.header);
    session.waits().at_each_turn(waiting.update());
    Box::new(waiting)
}

/// The command and its filter, escaped.
fn title(request: &Request) -> Vec<u8> {
    let mut title = b"netwren".to_vec();
    let words = [request.command, &request.shown.filter].into_iter().map(str::trim);
    for words in words.filter(|words| !words.is_empty() && *words != "home") {
        title.push(b' ');
        text::put_text(&mut title, words.as_bytes());
    }
    title
}
