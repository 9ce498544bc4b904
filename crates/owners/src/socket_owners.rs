//! Adds to rows of packets the owners of the sockets that sent or received them.

use crate::attribution::Attribution;
use crate::readings::{ReadOwners, Readings, SeenOwners};
use record::{Accounting, Annotate, Each, Next, Offer, Table};

/// A table of packets that sockets of this host sent or received.
pub(crate) trait PacketTable: Table {
    /// The rows that have an end on this host, as the last lines of a run call them.
    const ROWS: &'static str;
    /// The line of `--explain`, if there is one.
    const EXPLAIN: Option<&'static str>;

    /// Finds the owners of the socket at the end that is on this host.
    fn find<R: ReadOwners>(row: &Self::Row<'_>, readings: &mut Readings<R>) -> Attribution<SeenOwners>;

    /// Hands out `row` with these owners.
    fn hand_out(row: &Self::Row<'_>, seen: &SeenOwners, each: &mut Each<'_, Self>) -> Next;
}

/// The owners of the sockets of log records and of dropped packets. Takes readings of all sockets, and may wait for
/// one: rows then wait in the buffers of their stream.
pub struct SocketOwners<R: ReadOwners> {
    readings: Readings<R>,
    counts: OwnerCounts,
}

impl<R: ReadOwners> SocketOwners<R> {
    /// Takes readings through `reader`; nothing is read yet.
    pub fn new(reader: R) -> SocketOwners<R> {
        SocketOwners { readings: Readings::new(reader), counts: OwnerCounts::default() }
    }
}

impl<T: PacketTable, R: ReadOwners> Annotate<T> for SocketOwners<R> {
    fn explain(&self, offer: &mut Offer) {
        offer.explain.extend(T::EXPLAIN.map(str::to_owned));
    }

    fn row(&mut self, row: &T::Row<'_>, each: &mut Each<'_, T>) -> Next {
        let answer = T::find(row, &mut self.readings);
        self.counts.add(&answer);
        match &answer {
            Attribution::Found(seen) => T::hand_out(row, seen, each),
            _ => each(row),
        }
    }

    fn close(&mut self, stats: &mut Accounting) {
        stats.add(&self.readings.close());
        self.counts.report(
            T::ROWS,
            "the socket was closed before it was looked up, or no process listens there",
            stats,
        );
    }
}

/// The number of rows with an end on this host, and of those without an owner: the socket is looked up after the
/// packet or event, and may be closed by then.
#[derive(Debug, Default)]
pub(crate) struct OwnerCounts {
    pub(crate) here: u64,
    pub(crate) unknown: u64,
}

impl OwnerCounts {
    pub(crate) fn add(&mut self, answer: &Attribution<SeenOwners>) {
        self.here += u64::from(*answer != Attribution::NotHere);
        self.unknown += u64::from(*answer == Attribution::Unknown);
    }

    /// Reports the rows without an owner; `rows` says which rows have an end on this host, and `why` names the reasons.
    pub(crate) fn report(&self, rows: &str, why: &str, stats: &mut Accounting) {
        let OwnerCounts { here, unknown } = self;
        if *unknown > 0 {
            stats.add_reason(0, format!("{unknown} of {here} {rows} have no owner: {why}"));
        }
    }
}
