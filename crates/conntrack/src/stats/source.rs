//! Counters of one or many namespaces as rows, with their growth since the round before.
use std::cell::RefCell;

use record::rows::{Change, NatStat, NatStats, stat_need};
use record::{Accounting, Demand, Each, Next, Offer, Scan, Source, SourceError, SourceFault};
use sys::caps::{self, Cap};
use sys::{Host, NetnsTarget};

use super::{StatMemory, StatVia, Stats, StatsError, read};
use crate::all_netns::in_each;

const WHAT: &str = "connection tracking";

/// Options of the rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatOptions {
    /// The interface for counters; with `None` either may be used.
    pub via: Option<StatVia>,
    /// One row per CPU instead of one per namespace.
    pub per_cpu: bool,
}

/// The rows of all namespaces in `targets`.
#[derive(Debug)]
pub struct StatSource<'h> {
    host: &'h Host,
    targets: Vec<NetnsTarget<'h>>,
    options: StatOptions,
    memory: Option<&'h RefCell<StatMemory>>,
}

impl<'h> StatSource<'h> {
    /// A source for one round; `memory` holds the round before, if rounds are compared.
    pub fn new(
        host: &'h Host,
        targets: Vec<NetnsTarget<'h>>,
        options: StatOptions,
        memory: Option<&'h RefCell<StatMemory>>,
    ) -> StatSource<'h> {
        StatSource { host, targets, options, memory }
    }

    /// Hands out the rows of one namespace.
    fn rows(&self, netns_id: u64, stats: &Stats, each: &mut Each<'_, NatStats>) -> (u64, Next) {
        let growth = self.memory.map(|memory| memory.borrow_mut().compare(netns_id, &stats.cpus)).unwrap_or_default();
        let change = match (self.has_before(), growth.was_there) {
            (false, _) => None,
            (true, false) => Some(Change::New),
            (true, true) => Some(Change::Kept),
        };
        if !self.options.per_cpu {
            let row = NatStat { change, counts: stats.sum(), grown: growth.sum, ..stats.row(netns_id) };
            return (1, each(&row));
        }
        let mut rows = 0;
        for (i, cpu) in stats.cpus.iter().enumerate() {
            let grown = growth.cpus.get(i).copied().unwrap_or_default();
            let row = NatStat { netns_id, cpu: Some(cpu.cpu), change, counts: cpu.counts, grown, ..NatStat::EMPTY };
            rows += 1;
            if each(&row) == Next::Stop {
                return (rows, Next::Stop);
            }
        }
        (rows, Next::More)
    }

    fn has_before(&self) -> bool {
        self.memory.is_some_and(|memory| memory.borrow().is_later())
    }

    /// Hands out rows for removed namespaces, and reports counters that went backwards.
    fn close(&self, stats: &mut Accounting, each: &mut Each<'_, NatStats>) {
        let Some(memory) = self.memory else { return };
        let mut memory = memory.borrow_mut();
        for netns_id in memory.take_vanished() {
            stats.seen += 1;
            if each(&NatStat { netns_id, change: Some(Change::Gone), ..NatStat::EMPTY }) == Next::Stop {
                return;
            }
        }
        if memory.backward_counters() > 0 {
            stats.add_reason(memory.backward_counters(), "a counter decreased: its difference is unknown");
        }
    }
}

impl Source<NatStats> for StatSource<'_> {
    fn prepare(&self, demand: &Demand<NatStats>) -> Box<dyn Scan<NatStats> + '_> {
        Box::new(StatScan { source: self, need: demand.need })
    }
}

/// A prepared scan of the counters.
struct StatScan<'s, 'h> {
    source: &'s StatSource<'h>,
    /// `need` bits of the demand.
    need: u64,
}

impl Scan<NatStats> for StatScan<'_, '_> {
    fn offer(&self) -> Offer {
        let via = self.source.options.via.unwrap_or_else(|| {
            let may_ask = caps::effective().is_ok_and(|set| set.contains(Cap::NetAdmin));
            if may_ask { StatVia::Netlink } else { StatVia::Proc }
        });
        let counters = match via {
            StatVia::Netlink => "counters via ctnetlink (GET_STATS, GET_STATS_CPU)",
            StatVia::Proc => "counters from /proc/net/stat/nf_conntrack",
        };
        let mut explain = vec![format!("{counters}; sizes from /proc/sys/net/netfilter")];
        if self.need & stat_need::SETTINGS != 0 {
            explain.push("settings from /proc/sys/net/netfilter, one file each".to_owned());
        }
        let many = self.source.targets.len();
        if many > 1 {
            explain.push(format!("in each of {many} network namespaces, one after the other"));
        }
        Offer { backend: via.name(), explain, ..Offer::default() }
    }

    fn run(&mut self, each: &mut Each<'_, NatStats>) -> Result<Accounting, SourceError> {
        let source = self.source;
        if let Some(memory) = source.memory {
            memory.borrow_mut().begin();
        }
        let mut stopped = false;
        let mut stats = in_each(source.host, &source.targets, &mut |netns_id, acct| {
            let stats = read(source.host, netns_id, self.need, source.options.via).map_err(|error| {
                if let Some(memory) = source.memory {
                    memory.borrow_mut().keep_previous(netns_id);
                }
                source_error(error)
            })?;
            add_notes(&stats, acct);
            let (rows, next) = source.rows(netns_id, &stats, each);
            acct.seen += rows;
            stopped = next == Next::Stop;
            Ok(next)
        })?;
        if !stopped {
            source.close(&mut stats, each);
        }
        Ok(stats)
    }
}

fn add_notes(stats: &Stats, acct: &mut Accounting) {
    acct.unknown_attrs += stats.unknown_attrs;
    if let Some(via) = stats.via {
        acct.add_backend(via.name());
    }
    if let Some(why) = &stats.without {
        acct.incomplete(1, format!("counters are not available: {why}"));
    }
}

fn source_error(error: StatsError) -> SourceError {
    let fault = match &error {
        StatsError::Absent => SourceFault::Unsupported,
        StatsError::Unreadable(error) if error.errno.is_denied() => SourceFault::Denied,
        StatsError::Unreadable(_) => SourceFault::Io,
    };
    SourceError { what: WHAT, fault, cause: Box::new(error) }
}
