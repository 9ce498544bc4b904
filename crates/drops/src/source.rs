//! The rows of one round.
use std::cell::RefCell;

use record::rows::{Drops, PacketDrop};
use record::{Accounting, Demand, Each, Expr, Next, Offer, RowStats, Scan, Source, SourceError, field_index};
use sys::{Host, SysError};

use crate::backend::DropScope;
use crate::block::{DropReading, RoundHeader, SummedRounds};
use crate::counter::DropCounter;
use crate::error::DropsError;
use crate::via::DropsVia;

/// The key of a round in a recording.
const TAPE_KEY: &str = "drops";

/// Selection of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropOptions {
    /// The namespaces to show: in a live run the ones that the counter was opened with, in a replay the requested ones.
    pub scope: DropScope,
    /// True to include drops that are routine.
    pub all: bool,
    /// In a replay: true to sum all rounds so far, false to read only the current round.
    pub sums_rounds: bool,
}

/// The source of `drops`: packets dropped since the previous reading.
#[derive(Debug)]
pub struct DropSource<'h> {
    host: &'h Host,
    options: DropOptions,
    /// Empty in a replay, and if packets are not counted.
    counter: &'h RefCell<Option<DropCounter>>,
}

impl<'h> DropSource<'h> {
    /// A source for rounds of `counter`.
    pub fn new(host: &'h Host, options: DropOptions, counter: &'h RefCell<Option<DropCounter>>) -> DropSource<'h> {
        DropSource { host, options, counter }
    }

    /// The block of this round; empty if packets are not counted.
    fn block(&self) -> Result<Vec<u8>, DropsError> {
        if self.options.sums_rounds && self.host.is_replay() {
            return self.summed_block();
        }
        let (mut block, mut failure) = (Vec::new(), None);
        let mut counter = self.counter.borrow_mut();
        if counter.is_none() && !self.host.is_replay() {
            return Ok(block);
        }
        let read = self.host.bytes(TAPE_KEY, "", &mut block, |into| {
            let Some(counter) = counter.as_mut() else { return Ok(()) };
            counter.read(self.host, into).map_err(|error| {
                let error = failure.insert(error);
                SysError::new("read", error.to_string(), sys::Errno::IO)
            })
        });
        match (failure, read) {
            (Some(error), _) => Err(error),
            (None, read) => read.map(|()| block).map_err(DropsError::from),
        }
    }

    /// Returns one block with the summed counts of all rounds replayed so far.
    fn summed_block(&self) -> Result<Vec<u8>, DropsError> {
        let (mut sum, mut read) = (SummedRounds::default(), Ok(()));
        self.host.replayed_bytes(TAPE_KEY, &mut |block| {
            if block.is_empty() || read.is_err() {
                return;
            }
            read = DropReading::decode(block).map(|reading| reading.add_to(&mut sum));
        })?;
        read.map(|()| sum.encode())
    }
}

impl Source<Drops> for DropSource<'_> {
    fn prepare(&self, demand: &Demand<Drops>) -> Box<dyn Scan<Drops> + '_> {
        let benign = field_index::<Drops>("benign");
        let mut asks_for_benign = false;
        let mut look = |expr: &Expr| expr.for_each_test(&mut |test| asks_for_benign |= Some(test.field) == benign);
        demand.conjuncts.iter().for_each(&mut look);
        Box::new(DropScan { source: self, all: self.options.all || asks_for_benign })
    }
}

struct DropScan<'s, 'h> {
    source: &'s DropSource<'h>,
    all: bool,
}

impl Scan<Drops> for DropScan<'_, '_> {
    fn offer(&self) -> Offer {
        let scope = match self.source.options.scope {
            DropScope::Netns(inode) => format!("only packets of network namespace {inode} are counted"),
            DropScope::AllNetns => "packets of all network namespaces are counted".to_owned(),
        };
        let explain = vec![
            "a BPF program at the tracepoint kfree_skb counts by reason, place, namespace, interface and protocol"
                .to_owned(),
            scope,
            "without BPF: the kernel's trace of that tracepoint (tracefs), for all namespaces; otherwise the kernel's \
             drop monitor (NET_DM)"
                .to_owned(),
        ];
        let via = self.source.counter.borrow().as_ref().map_or(DropsVia::Bpf, DropCounter::via);
        Offer { backend: via.name(), explain, ..Offer::default() }
    }

    fn run(&mut self, each: &mut Each<'_, Drops>) -> Result<Accounting, SourceError> {
        let block = self.source.block()?;
        let mut stats = RowStats::default();
        if block.is_empty() {
            return Ok(stats.close());
        }
        let reading = DropReading::decode(&block)?;
        stats.add_backend(reading.header.via.name());
        let mut left_out = LeftOut::default();
        let is_one = !reading.header.all_netns;
        reading.each(|row, is_merged| {
            stats.add_arrived(1);
            let out = if is_one && row.netns_id == 0 && !is_merged {
                left_out.unplaced(row);
                true
            } else {
                left_out.routine(row, self.all)
            };
            if out {
                stats.add_filtered();
                return true;
            }
            stats.row();
            each(row) == Next::More
        });
        tell(&reading.header, &mut stats);
        let mut stats = stats.close();
        left_out.tell(&mut stats);
        Ok(stats)
    }
}

/// Numbers of packets whose rows are not handed out.
#[derive(Default)]
struct LeftOut {
    routine: u64,
    unplaced: u64,
}

impl LeftOut {
    /// Counts a row without a known namespace.
    fn unplaced(&mut self, row: &PacketDrop<'_>) {
        let count = if row.benign { &mut self.routine } else { &mut self.unplaced };
        *count += row.count;
    }

    /// True for a routine row that is not wanted; counts it.
    fn routine(&mut self, row: &PacketDrop<'_>, all: bool) -> bool {
        let out = row.benign && !all;
        self.routine += if out { row.count } else { 0 };
        out
    }

    fn tell(&self, stats: &mut Accounting) {
        tell_left_out(self.routine, self.unplaced, stats);
    }
}

/// Reports how many packets are not shown. The texts are fixed, so that rounds add up. Packets without a known
/// namespace come from anywhere on the host, so they do not make the counts of one namespace incomplete.
pub(crate) fn tell_left_out(routine: u64, unplaced: u64, stats: &mut Accounting) {
    if routine > 0 {
        stats.add_reason(routine, "a routine drop is not shown: --all shows them");
    }
    if unplaced > 0 {
        stats.add_reason(
            unplaced,
            "a dropped packet that belongs to no known network namespace is not shown: --all-netns shows them",
        );
    }
}

/// Note if the names of functions are hidden.
pub(crate) const NAMES_HIDDEN: &str = "places are shown as addresses: the kernel hides the names of its functions \
                                       (needs CAP_SYSLOG, and kernel.kptr_restrict below 2)";

/// Note for rows from the kernel's trace.
const BY_TRACE: &str = "drops are read from the kernel's trace, not via BPF: it reports only reason, place and \
                        EtherType, and drops of all network namespaces are shown";

/// Note for rows from the kernel's drop monitor.
const BY_NET_DM: &str = "drops are read from the kernel's drop monitor, not via BPF: it reports no network namespace, \
                         socket or stack, and no packets without room for a link-layer header (output), and drops of \
                         all network namespaces are shown";

/// The note about the limits of an interface.
pub(crate) fn limits(via: DropsVia) -> Option<&'static str> {
    match via {
        DropsVia::Tracefs => Some(BY_TRACE),
        DropsVia::NetDm => Some(BY_NET_DM),
        DropsVia::Bpf | DropsVia::Counters => None,
    }
}

/// Reasons for packets that are missing in the rows of their kind: merged, lost by the kernel's interfaces, lost by our
/// program, missed.
pub const NOT_COUNTED: [&str; 4] = [
    "a packet is counted only by reason and place: too many namespaces, interfaces and protocols to count each",
    "a dropped packet was not counted: they arrived faster than they could be read, or are of too many kinds",
    "a dropped packet was not counted: too many reasons and places",
    "a dropped packet was not counted: it was dropped in an interrupt while another packet was counted",
];

/// Reports packets that are missing in the counts.
fn tell(header: &RoundHeader, stats: &mut RowStats) {
    let [merged, lost_of_host, lost, missed] = NOT_COUNTED;
    let lost = if header.via.is_of_host() { lost_of_host } else { lost };
    for (count, why) in [(header.merged, merged), (header.lost, lost), (header.missed, missed)] {
        if count > 0 {
            stats.incomplete(count, why);
        }
    }
    if let Some(limits) = limits(header.via) {
        stats.incomplete(0, limits);
    }
    if header.names_hidden {
        stats.add_note(NAMES_HIDDEN);
    }
    if header.no_reasons {
        stats.incomplete(
            0,
            "this kernel gives no drop reasons (Linux 5.17 and later do): the place shows the function \
            that dropped each packet",
        );
    }
}
