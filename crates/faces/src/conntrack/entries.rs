//! Reads entries for the commands that show or change them.

use super::super::read::{ReadError, read_rows};
use super::options::switch;
use super::parse::Line;
use super::run::words;
use super::stop::Stop;
use super::words::output;
use conntrack::{ConntrackSource, CtTable, KernelFilter, Options, errno_of};
use engine::{Disposition, RunError};
use lookups::session::Session;
use record::rows::{Conntrack, Nat, nat_need};
use record::{Accounting, Demand, Lookups};

/// Hands the entries that pass `filter` in the kernel to `each`, which tests them again. Reads at least the fields of
/// the `need` bits.
pub(super) fn read(
    session: &Session,
    line: &Line,
    filter: KernelFilter,
    need: u64,
    each: impl FnMut(&Conntrack<'_>) -> Disposition,
) -> Result<Accounting, Stop> {
    let options = Options { table: line.table, ..Options::new(session.netns_id()) };
    let source = ConntrackSource::new(session.host(), options).with_cache(&session.backends().conntrack);
    let source = if wants_dump(line, &filter) { source.as_dump(filter) } else { source.with_kernel_filter(filter) };
    let mut demand = Demand::<Nat>::new(&[], Vec::new());
    demand.need = need;
    if line.want.id.is_some() {
        demand.need |= nat_need::ID;
    }
    if line.has(switch::SECMARK) {
        demand.need |= nat_need::SECCTX;
    }
    let read = read_rows(session, &source, demand, &Lookups::empty(), each);
    let mut stats = read.map_err(|error| stop(&error, line))?;
    if !stats.is_partial() {
        // The tool does not report which backend it used.
        stats.why.clear();
    }
    Ok(stats)
}

/// True if only a netlink dump has the required fields, order or effect.
fn wants_dump(line: &Line, filter: &KernelFilter) -> bool {
    let shows_all = line.shows(output::ID) || line.output & (output::XML | output::SAVE) != 0;
    // Send the kernel the filters that it refuses (ctnetlink_filter_parse_status), to get its error.
    let refused = filter.status.is_some_and(|(value, mask)| mask == 0 || value & !mask != 0);
    shows_all || refused || filter.zero_counters || line.bug_compatible || line.table != CtTable::Conntrack
}

/// Turns a read error into a message, in the tool's words if the kernel refused.
fn stop(error: &ReadError, line: &Line) -> Stop {
    let ReadError::Run(RunError::Source(error)) = error else { return Stop::other(error.to_string()) };
    match errno_of(error) {
        Some(errno) => Stop::refused(&words(errno, line.command)),
        None => Stop::other(error.cause.to_string()),
    }
}
