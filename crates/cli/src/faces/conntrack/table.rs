//! `-L`: tables.

use super::filter::Filter;
use super::options::given;
use super::parse::Line;
use super::run::{Run, Times, form, refused};
use super::stop::Stop;
use super::words::output;
use conntrack::stats::read_number;
use conntrack::{CtTable, Dumped, dump_entries, dump_expectations};
use record::SinkError;
use sinks::face::conntrack::Options;
use std::ops::ControlFlow;

/// How many rows pass between two looks at the interruption flag.
const ROWS_BETWEEN_LOOKS: u64 = 256;

/// Lists entries; returns how many were shown.
pub(super) fn entries(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    if line.table == CtTable::Conntrack && line.has_any(given::COMPARISON) && line.has(given::ZERO) {
        return Err(Stop::usage("Can't use -z with filtering parameters"));
    }
    let filter = Filter::new(line)?;
    let (session, clock) = (run.session, Times::new(run.session));
    let names = |bit: u16| line.labels.as_ref().and_then(|labels| labels.name(bit));
    let options = Options { ktimestamp: line.shows(output::KTIMESTAMP), ..form(line) };
    let mut writer = run.writer(options, &clock, line.labels.is_some().then_some(&names));
    let (mut shown, mut seen) = (0u64, 0u64);
    let (mut written, mut read) = (Ok(()), Ok(()));
    let buckets = || read_number(session.host(), "nf_conntrack_buckets", session.netns_id()).ok();
    let before = buckets();
    let by_kernel = filter.by_kernel();
    for family in by_kernel.families() {
        let asked = by_kernel.of_family(*family);
        let dumped = dump_entries(session.host(), run.place(), line.table, &asked, "", |row, _| {
            seen += 1;
            if seen % ROWS_BETWEEN_LOOKS == 0 && session.interrupted() {
                return ControlFlow::Break(());
            }
            if filter.passes(row) {
                written = writer.row(row);
                shown += 1;
            }
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        read = dumped.map(|dumped| run.note(&dumped)).map_err(|error| refused(&error, line.command));
        if read.is_err() || written.is_err() || session.interrupted() {
            break;
        }
    }
    let written = written.and_then(|()| writer.finish());
    // The kernel says nothing of it, nor does the tool.
    if before != buckets() && !line.bug_compatible {
        run.books.because(1, "the kernel's table was resized while it was read: entries may be missing or doubled");
    }
    read?;
    wrote(written)?;
    Ok(shown)
}

/// Lists expectations.
pub(super) fn expectations(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    let clock = Times::new(run.session);
    let options = Options { time: line.shows(output::TIMESTAMP), ..form(line) };
    let mut writer = run.writer(options, &clock, None);
    let (mut shown, mut written) = (0, Ok(()));
    let dumped = each_expectation(run, line, |row| {
        written = writer.expectation(row, None, clock.now());
        shown += 1;
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let written = written.and_then(|()| writer.finish());
    dumped?;
    wrote(written)?;
    Ok(shown)
}

/// Counts them.
pub(super) fn count_expectations(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    let mut count = 0;
    each_expectation(run, line, |_| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(count)
}

fn each_expectation(
    run: &mut Run<'_>,
    line: &Line,
    each: impl FnMut(&record::rows::Expectation<'_>) -> ControlFlow<()>,
) -> Result<(), Stop> {
    let dumped: Result<Dumped, _> = dump_expectations(run.session.host(), run.place(), line.family, each);
    dumped.map(|dumped| run.note(&dumped)).map_err(|error| refused(&error, line.command))
}

/// A reader that has enough is no failure.
pub(super) fn wrote(written: Result<(), SinkError>) -> Result<(), Stop> {
    match written {
        Ok(()) | Err(SinkError::Closed) => Ok(()),
        Err(error) => Err(Stop::other(error.to_string())),
    }
}
