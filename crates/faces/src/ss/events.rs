//! `-E`: prints each socket when it closes.

use super::request::{Ending, Question, Request};
use crate::ss::output::Writer;
use engine::{BadPattern, Predicate};
use lookups::session::Session;
use record::rows::{Socket, Sockets};
use record::{Accounting, Lookups, Next, Proto, SinkError, StreamState};
use runtime::stdout::Stdout;
use sockets::Destroyed;
use sys::socket::{AF_INET, AF_INET6};

/// Shows closed sockets until the user stops the run or the reader closes the pipe.
pub(super) fn follow(
    session: &Session,
    request: &Request,
    ending: &Ending,
    lookups: &Lookups<'_>,
    writer: &mut Writer<'_, Stdout>,
    stats: &mut Accounting,
) -> Result<(), SinkError> {
    let stop = || session.interrupted();
    let opened = tests(&request.questions).map_err(|error| error.to_string()).and_then(|tests| {
        let destroyed = Destroyed::open(session.host(), session.netns_id(), &ending.protos, 0, &stop);
        Ok((tests, destroyed.map_err(|error| error.to_string())?))
    });
    let (tests, mut destroyed) = match opened {
        Ok(opened) => opened,
        Err(says) => {
            broken(stats, says);
            return Ok(());
        }
    };
    let mut outcome = Ok(());
    loop {
        let tide = destroyed.next(&mut |row| {
            if !(ending.inet && i32::from(row.family) == AF_INET || ending.inet6 && i32::from(row.family) == AF_INET6) {
                return Next::More;
            }
            let passes = tests.iter().any(|(proto, test)| *proto == row.proto && test.matches(row, lookups));
            // A closed socket cannot be closed again: with `-K` ss shows nothing for it.
            outcome = one(writer, row, lookups, passes && !request.kill);
            if outcome.is_ok() { Next::More } else { Next::Stop }
        });
        match tide {
            Ok(StreamState::Open) if outcome.is_ok() => {}
            Ok(_) => break,
            Err(error) => {
                broken(stats, error.to_string());
                break;
            }
        }
    }
    stats.add(&destroyed.close());
    outcome
}

fn broken(stats: &mut Accounting, says: String) {
    stats.incomplete(1, says);
}

/// Writes a row and flushes it. The heading is printed with the first event, even if the event itself is not shown;
/// its column widths come from the rows written so far.
fn one(writer: &mut Writer<'_, Stdout>, row: &Socket<'_>, lookups: &Lookups<'_>, shown: bool) -> Result<(), SinkError> {
    if shown {
        writer.row(row, lookups)?;
    }
    writer.finish()
}

fn tests(questions: &[Question]) -> Result<Vec<(Proto, Predicate<Sockets>)>, BadPattern> {
    questions.iter().map(|question| Ok((question.proto, Predicate::new(&question.filter)?))).collect()
}
