//! `-L`: lists tables.

use super::entries;
use super::filter::Filter;
use super::options::switch;
use super::parse::Line;
use super::run::{Run, Times, ToStdout, form, refused};
use super::stop::Stop;
use super::words::output;
use crate::conntrack::output::EntryOptions;
use conntrack::change::{Changes, EntryAttrs};
use conntrack::{CtTable, dump_expectations};
use engine::Disposition;
use record::SinkError;
use record::rows::{Conntrack, nat_need as need};
use std::ops::ControlFlow;

/// Lists entries; returns the number shown.
pub(super) fn list(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    if line.table == CtTable::Conntrack && line.has_any(switch::COMPARISON) && line.has(switch::ZERO) {
        return Err(Stop::usage("Can't use -z with filtering parameters"));
    }
    let filter = Filter::new(line)?;
    let (session, clock) = (run.session, Times::new(run.session));
    let names = |bit: u16| line.labels.as_ref().and_then(|labels| labels.name(bit));
    let options = EntryOptions { ktimestamp: line.shows(output::KTIMESTAMP), ..form(line) };
    let mut writer = run.writer(options, &clock, line.labels.is_some().then_some(&names));
    let (mut shown, mut written) = (0, Ok(()));
    let mut changes = Changes::new(session.host(), run.place());
    let labels = if line.labels.is_some() || line.want.labels.is_some() { need::LABELS } else { 0 };
    let need = need::COUNTERS | need::TIMES | need::HELPER | labels;
    let read = entries::read(session, line, filter.by_kernel(), need, |row| {
        if !filter.passes(row) {
            return Disposition::Filtered;
        }
        shown += 1;
        written = if row.secctx_untold { put_with_secctx(&mut writer, &mut changes, row) } else { writer.row(row) };
        if written.is_ok() { Disposition::Emitted } else { Disposition::Closed }
    });
    let written = written.and_then(|()| writer.finish());
    run.stats.add(&read?);
    wrote(written)?;
    Ok(shown)
}

/// Writes the entry with its security context, which only netlink reports; without it if the entry has ended or has
/// none.
#[cold]
fn put_with_secctx(writer: &mut ToStdout<'_>, changes: &mut Changes<'_>, row: &Conntrack<'_>) -> Result<(), SinkError> {
    let mut secctx = None;
    let attrs = EntryAttrs { orig: Some(row.orig), zone: row.zone, ..EntryAttrs::default() };
    // The entry may have ended, which is not an error.
    let _ = changes.get(&attrs, |now| secctx = now.secctx.map(<[u8]>::to_vec));
    writer.row(&Conntrack { secctx: secctx.as_deref(), ..*row })
}

/// Lists expectations.
pub(super) fn expectations(run: &mut Run<'_>, line: &Line) -> Result<u64, Stop> {
    let clock = Times::new(run.session);
    let options = EntryOptions { time: line.shows(output::TIMESTAMP), ..form(line) };
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

/// Counts expectations.
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
    let dumped = dump_expectations(run.session.host(), run.place(), line.family, each);
    dumped.map(|dumped| run.note(&dumped)).map_err(|error| refused(&error, line.command))
}

/// Accepts a closed stdout as success.
pub(super) fn wrote(written: Result<(), SinkError>) -> Result<(), Stop> {
    match written {
        Ok(()) | Err(SinkError::Closed) => Ok(()),
        Err(error) => Err(Stop::other(error.to_string())),
    }
}
