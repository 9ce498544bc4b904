//! The table by the walk, for who takes entries as a dump hands them out ([`crate::dump_entries`]).
use std::ops::ControlFlow;

use netlink::DecodeError;
use record::rows::Conntrack;
use sys::{Host, Mode};

use crate::bpf_door::{Ask, Doors, WalkError, parts_for};
use crate::bpf_rows::Taker;
use crate::choose::Walk;
use crate::dump::{Dumped, KernelFilter, Place};
use crate::sizes::Size;
use crate::walk_filter::WalkFilter;

/// What is to be read, and through what.
#[derive(Debug, Clone, Copy)]
pub struct WalkAsk<'a> {
    /// Whose entries.
    pub place: Place<'a>,
    /// Kept open from one reading to the next.
    pub doors: &'a Doors,
    /// Bits of [`record::rows::nat_need`]: what is to be told of an entry.
    pub need: u64,
    /// What may be left out; whoever asks looks again. Counters are never set to 0.
    pub filter: &'a KernelFilter,
}

impl WalkAsk<'_> {
    /// True if the walk can be had here, lacks nothing and is cheaper than a dump. Some microseconds.
    pub fn pays(&self, host: &Host) -> bool {
        let sizes = || Size::of_entries(host, self.place).read().zip(Size::of_buckets(host, self.place).read());
        let possible = host.mode() == Mode::Live && !self.filter.zero_counters && self.doors.why_not().is_none();
        let Some((entries, buckets)) = possible.then(sizes).flatten() else { return false };
        let filter = WalkFilter::by_kernel(self.filter);
        let loaded = self.doors.is_loaded(&self.ask(&filter));
        matches!(Walk::of(entries, buckets, self.need, !filter.is_any(), loaded), Walk::Pays(_))
    }

    /// Hands every entry that is not over to `each`, until that has enough; evicts nothing.
    pub fn entries(
        &self,
        host: &Host,
        each: impl FnMut(&Conntrack<'_>) -> ControlFlow<()>,
    ) -> Result<Dumped, WalkError> {
        let filter = WalkFilter::by_kernel(self.filter);
        let mut counting = Counting { each, dumped: Dumped::default() };
        self.doors.walk(host, &self.ask(&filter), &mut counting)?;
        Ok(counting.dumped)
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

/// Counts what comes.
struct Counting<F> {
    each: F,
    dumped: Dumped,
}

impl<F: FnMut(&Conntrack<'_>) -> ControlFlow<()>> Taker for Counting<F> {
    #[inline(always)]
    fn row(&mut self, row: Result<&Conntrack<'_>, DecodeError>) -> ControlFlow<()> {
        match row {
            Ok(row) => {
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
