//! `-E`: sockets as they end, each line when it happens.

use super::request::{Question, Request};
use crate::session::Session;
use crate::stdout::Stdout;
use engine::{BadPattern, Predicate};
use record::rows::{Socket, Sockets};
use record::{Accounting, Lookups, Next, Proto, SinkError};
use sinks::face::ss::Writer;
use sockets::{Destroyed, Groups};

/// Shows ended sockets until the user or the reader has enough.
pub(super) fn follow(
    session: &Session,
    request: &Request,
    groups: Groups,
    lookups: &Lookups<'_>,
    writer: &mut Writer<'_, Stdout>,
    books: &mut Accounting,
) -> Result<(), SinkError> {
    let opened = tests(&request.questions).map_err(|error| error.to_string()).and_then(|tests| {
        let destroyed = Destroyed::open(session.netns_id(), groups).map_err(|error| error.to_string())?;
        Ok((tests, destroyed))
    });
    let (tests, mut destroyed) = match opened {
        Ok(opened) => opened,
        Err(says) => {
            books.incomplete = true;
            books.because(1, says);
            return Ok(());
        }
    };
    books.used("events");
    let mut outcome = Ok(());
    while outcome.is_ok() && session.wait_readable(std::os::fd::AsFd::as_fd(&destroyed)) {
        let heard = destroyed.read(&mut |row| {
            let passes = tests.iter().any(|(proto, test)| *proto == row.proto && test.matches(row, lookups));
            // What has ended cannot be closed: with `-K` ss shows nothing of it.
            outcome = one(writer, row, lookups, passes && !request.kill);
            if outcome.is_ok() { Next::More } else { Next::Stop }
        });
        match heard {
            Ok(heard) => {
                books.failed += heard.failed;
                if heard.overrun {
                    books.incomplete = true;
                    books.because(1, "the kernel dropped events that were not read in time");
                }
            }
            Err(error) => {
                books.incomplete = true;
                books.because(1, error.to_string());
                break;
            }
        }
    }
    outcome
}

/// A row of its own, out at once. The heading comes with the first event, shown or not: its widths are those of what
/// is there by then.
fn one(writer: &mut Writer<'_, Stdout>, row: &Socket<'_>, lookups: &Lookups<'_>, shown: bool) -> Result<(), SinkError> {
    if shown {
        writer.row(row, lookups)?;
    }
    writer.finish()
}

fn tests(questions: &[Question]) -> Result<Vec<(Proto, Predicate<Sockets>)>, BadPattern> {
    questions.iter().map(|question| Ok((question.proto, Predicate::new(&question.filter)?))).collect()
}
