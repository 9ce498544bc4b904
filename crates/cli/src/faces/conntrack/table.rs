//! `-L`: tables.

use super::filter::Filter;
use super::options::given;
use super::parse::Line;
use super::run::{Run, Times, form, refused};
use super::stop::Stop;
use super::words::output;
use conntrack::change::{Changes, Given};
use conntrack::stats::read_number;
use conntrack::{CtTable, Dumped, KernelFilter, WalkDump, dump_entries, dump_expectations};
use record::SinkError;
use record::rows::{Conntrack, nat_need as need};
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
    let by_kernel = filter.by_kernel();
    let mut each = |row: &Conntrack<'_>| {
        seen += 1;
        if seen % ROWS_BETWEEN_LOOKS == 0 && session.interrupted() {
            return ControlFlow::Break(());
        }
        if filter.passes(row) {
            written = writer.row(row);
            shown += 1;
        }
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let by_walk = walked(run, line, &by_kernel, &mut each);
    if matches!(by_walk, Ok(false)) {
        let before = buckets();
        for family in by_kernel.families() {
            let asked = by_kernel.of_family(*family);
            let mut stopped = false;
            let dumped = dump_entries(session.host(), run.place(), line.table, &asked, "", |row, _| {
                let flow = each(row);
                stopped |= flow.is_break();
                flow
            });
            read = dumped.map(|dumped| run.note(&dumped)).map_err(|error| refused(&error, line.command));
            if read.is_err() || stopped {
                break;
            }
        }
        // The kernel says nothing of it, nor does the tool.
        if before != buckets() && !line.bug_compatible {
            run.stats
                .add_reason(1, "the kernel's table was resized while it was read: entries may be missing or doubled");
        }
    }
    let written = written.and_then(|()| writer.finish());
    by_walk.and(read)?;
    wrote(written)?;
    Ok(shown)
}

/// Hands entries to `each` by the walk of the table; false if nothing was handed over, because it cannot be had, does
/// not know all that is shown, or costs more than a dump.
fn walked(
    run: &mut Run<'_>,
    line: &Line,
    filter: &KernelFilter,
    each: &mut impl FnMut(&Conntrack<'_>) -> ControlFlow<()>,
) -> Result<bool, Stop> {
    let (host, place) = (run.session.host(), run.place());
    let shows_ids = line.shows(output::ID) || line.output & (output::XML | output::SAVE) != 0;
    let by_ids = line.want.id.is_some() || line.has(given::SECMARK);
    // What the kernel refuses (ctnetlink_filter_parse_status) it shall see.
    let refused = filter.status.is_some_and(|(value, mask)| mask == 0 || value & !mask != 0);
    if refused || shows_ids || by_ids || line.table != CtTable::Conntrack || line.bug_compatible {
        return Ok(false);
    }
    let labels = if line.labels.is_some() || line.want.labels.is_some() { need::LABELS } else { 0 };
    let need = need::COUNTERS | need::TIMES | need::HELPER | labels;
    let ask = WalkDump { place, cache: run.session.cache(), need, filter };
    if !ask.pays(host) {
        return Ok(false);
    }
    let (mut none_yet, mut changes) = (true, Changes::new(host, place));
    let read = ask.entries(host, |row| {
        none_yet = false;
        if row.secctx_untold { with_secctx(&mut changes, row, each) } else { each(row) }
    });
    match read {
        Ok(dumped) => run.note(&dumped),
        Err(_) if none_yet => return Ok(false),
        Err(error) => return Err(Stop::other(error.to_string())),
    }
    Ok(true)
}

/// The same entry with its security context, which only netlink tells; without one, if it is gone or has none.
#[cold]
fn with_secctx(
    changes: &mut Changes<'_>,
    row: &Conntrack<'_>,
    each: &mut impl FnMut(&Conntrack<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut secctx = None;
    let given = Given { orig: Some(row.orig), zone: row.zone, ..Given::default() };
    // That it is gone is no error.
    let _ = changes.get(&given, |now| secctx = now.secctx.map(<[u8]>::to_vec));
    each(&Conntrack { secctx: secctx.as_deref(), ..*row })
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
