//! The table by the walk, for who takes entries as a dump hands them out ([`crate::dump_entries`]).
use std::ops::ControlFlow;

use netlink::{DecodeError, DumpError};
use record::RowVisitor;
use record::rows::{Conntrack, Nat};
use sys::{Host, Mode, WalkError};

use crate::backends::bpf::cache::{Ask, BackendCache, parts_for};
use crate::backends::bpf::rows::EntryBytes;
use crate::backends::bpf::walk_filter::WalkFilter;
use crate::backends::netlink::dump::{CtTable, Dumped, KernelFilter, NetnsRef, dump_entries};
use crate::backends::seen::HandedOut;
use crate::choose::WalkVerdict;
use crate::sizes::Size;

/// What is to be read, and through what.
#[derive(Debug, Clone, Copy)]
pub struct WalkDump<'a> {
    /// Whose entries.
    pub place: NetnsRef<'a>,
    /// Kept open from one reading to the next.
    pub cache: &'a BackendCache,
    /// Bits of [`record::rows::nat_need`]: what is to be told of an entry.
    pub need: u64,
    /// What may be left out; whoever asks looks again. Counters are never set to 0.
    pub filter: &'a KernelFilter,
}

impl WalkDump<'_> {
    /// True if the walk can be had here, lacks nothing and is cheaper than a dump. Some microseconds.
    pub fn pays(&self, host: &Host) -> bool {
        let sizes = || Size::of_entries(host, self.place).read().zip(Size::of_buckets(host, self.place).read());
        let possible = host.mode() == Mode::Live && !self.filter.zero_counters && self.cache.why_not().is_none();
        let Some((entries, buckets)) = possible.then(sizes).flatten() else { return false };
        let filter = WalkFilter::by_kernel(self.filter);
        let loaded = self.cache.is_loaded(&self.ask(&filter));
        matches!(WalkVerdict::of(entries, buckets, self.need, !filter.is_any(), loaded), WalkVerdict::Pays(_))
    }

    /// Hands every entry that is not over to `each`, until that has enough; evicts nothing. A walk that breaks off is
    /// finished by a dump; the error is the walk's, if there was no entry yet or the dump fails, too.
    pub fn entries(
        &self,
        host: &Host,
        each: impl FnMut(&Conntrack<'_>) -> ControlFlow<()>,
    ) -> Result<Dumped, WalkError> {
        let filter = WalkFilter::by_kernel(self.filter);
        let mut counting = Counting { each, dumped: Dumped::default(), handed_out: HandedOut::noting() };
        match self.cache.walk(host, &self.ask(&filter), &mut counting) {
            Ok(_) => Ok(counting.dumped),
            Err(error) if counting.dumped.rows == 0 => Err(error),
            Err(error) => self.rest(host, counting).map_err(|_| error),
        }
    }

    /// What a walk that broke off has not handed out.
    fn rest(
        &self,
        host: &Host,
        mut walked: Counting<impl FnMut(&Conntrack<'_>) -> ControlFlow<()>>,
    ) -> Result<Dumped, DumpError> {
        walked.handed_out.finish();
        let Counting { mut each, mut dumped, handed_out } = walked;
        for family in self.filter.families() {
            let filter = self.filter.of_family(*family);
            let mut rows = 0;
            let done = dump_entries(host, self.place, CtTable::Conntrack, &filter, "", |row, _| {
                if handed_out.is_out(row) {
                    return ControlFlow::Continue(());
                }
                rows += 1;
                each(row)
            })?;
            dumped.add(&Dumped { rows, ..done });
            if done.end.stopped {
                break;
            }
        }
        Ok(dumped)
    }

    fn ask<'b>(&'b self, filter: &'b WalkFilter) -> Ask<'b> {
        let parts = parts_for(self.need, false);
        Ask {
            netns: self.place.netns,
            all: false,
            parts,
            filter,
            expired: false,
            note: "",
            netns_id: self.place.netns_id,
        }
    }
}

/// Counts and notes what comes.
struct Counting<F> {
    each: F,
    dumped: Dumped,
    handed_out: HandedOut,
}

impl<F: FnMut(&Conntrack<'_>) -> ControlFlow<()>> RowVisitor<Nat, EntryBytes<'_>, DecodeError> for Counting<F> {
    #[inline(always)]
    fn row(&mut self, row: Result<(&Conntrack<'_>, EntryBytes<'_>), DecodeError>) -> ControlFlow<()> {
        match row {
            Ok((row, entry)) => {
                entry.note(&mut self.handed_out);
                self.dumped.rows += 1;
                (self.each)(row)
            }
            Err(error) => {
                self.dumped.failed(error);
                ControlFlow::Continue(())
            }
        }
    }
}
