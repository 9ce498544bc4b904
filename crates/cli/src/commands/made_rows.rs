//! Writes rows that a command has made itself, as the request specifies: filter, columns, order, format.

use super::plan;
use crate::flags::request::{Format, Request};
use crate::output;
use engine::{Feed, FeedPart, FeedState, Plan, ReadPart};
use record::{Accounting, Demand, Lookups, Next, Sink, SourceError, Table, full_scan};
use runtime::exit::Exit;
use runtime::outcome::Outcome;

/// The request that the rows are written for.
pub(super) struct MadeRows<T: Table> {
    request: Request,
    plan: Plan<T>,
}

impl<T: Table> MadeRows<T> {
    /// Plans the request. The error describes what is invalid.
    pub(super) fn plan(request: Request) -> Result<MadeRows<T>, String> {
        let plan = plan::of_request(&request).map_err(|wrong| wrong.to_string())?;
        Ok(MadeRows { request, plan })
    }

    /// True if the request has no options beyond the command's own text output.
    pub(super) fn wants_text(&self) -> bool {
        let shown = &self.request.shown;
        let chosen = [&shown.columns, &shown.by, &shown.sort].into_iter().any(Option::is_some);
        self.request.format == Format::Table && !shown.wide && shown.filter.is_empty() && !chosen
    }

    /// Writes the rows to standard output.
    pub(super) fn write<'b>(&self, rows: &[T::Row<'b>]) -> Outcome {
        self.write_to(&mut *output::sink(&self.request), rows)
    }

    /// Writes the rows to a sink.
    pub(super) fn write_to<'b>(&self, sink: &mut dyn Sink, rows: &[T::Row<'b>]) -> Outcome {
        match self.plan.run(&mut MadeFeed::<T> { rows }, sink) {
            Ok(_) => Exit::Ok.into(),
            Err(error) => Outcome::with_message(Exit::Failed, error),
        }
    }
}

/// One round of rows from memory.
struct MadeFeed<'r, 'b, T: Table> {
    rows: &'r [T::Row<'b>],
}

impl<T: Table> Feed<T> for MadeFeed<'_, '_, T> {
    fn next(
        &mut self,
        _: &Demand<T>,
        _: &mut Accounting,
        read: &mut ReadPart<'_, T>,
    ) -> Result<FeedState, SourceError> {
        let mut scan = full_scan::<T, _>("netwren", "rows that the command creates", |each| {
            let mut stats = Accounting::default();
            for row in self.rows {
                stats.seen += 1;
                if each(row) == Next::Stop {
                    break;
                }
            }
            Ok(stats)
        });
        read(FeedPart::new(&mut *scan, &Lookups::empty(), &|| false));
        Ok(FeedState::Ended)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::command::{Command, ready};
    use crate::flags::parser;
    use record::rows::Features;

    fn planned(line: &str) -> Result<MadeRows<Features>, clap::Error> {
        static COMMAND: Command =
            Command { name: "support", prepare: Some(|_| ready(|| Exit::Ok.into())), ..Command::TABLE };
        parser::parse_line(&COMMAND, line, |words| MadeRows::plan(Request::of(words)?))
    }

    #[test]
    fn text_unless_rows_are_asked_for() {
        assert!(planned("").unwrap().wants_text());
        for line in ["-o json", "-o csv", "-o wide", "works = no", "--columns feature", "--sort feature", "--by works"]
        {
            assert!(!planned(line).unwrap().wants_text(), "{line}");
        }
        let said = planned("worx = no").map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("did you mean `works`"), "{said}");
    }
}
