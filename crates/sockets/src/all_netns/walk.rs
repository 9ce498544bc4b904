//! Reads TCP of all namespaces in one pass: namespaces that share a table in the kernel are read together.
use std::cell::RefCell;
use std::error::Error;

use record::rows::{Sockets, need};
use record::{Demand, Each, Proto, RowCache, RowStats, SourceError, SourceFault, State};
use sys::{Errno, NetnsTarget, WalkError};

use super::{AllNetnsSockets, EachNetns, Round};
use crate::address_families::{AF_INET, AF_INET6};
use crate::backends::bpf::cache::{WalkRequest, WalkScope};
use crate::backends::bpf::rows::part;
use crate::backends::bpf::{IN_SMALL_TABLES, info_parts, parts_of};
use crate::backends::fault::fault_of as fault_of_errno;
use crate::backends::handed_out::HandedOut;
use crate::backends::rows::{RowOutput, WalkOutput};
use crate::backends::window::Window;
use crate::choose::{BPF_HAS, Choice, Facts, RecordedBackends, Via, WalkDecision, choose};
use crate::keys::{self, Table};
use crate::options::Options;
use crate::pushdown::TableFilter;
use crate::pushdown::bytecode::Code;

/// Sockets that are only bound are in a table that the walk does not visit.
const BOUND: u32 = 1 << State::BOUND_INACTIVE.0;

/// How far the walk got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkExtent {
    /// There are no rows: another backend has to read TCP.
    Not,
    /// It was interrupted: the rows handed out are recorded, and another backend has to read the rest.
    Partly,
    /// All rows were handed out, or missing ones were reported.
    Wholly,
}

impl AllNetnsSockets<'_> {
    /// The filter for TCP, if the walk is the backend for it.
    pub(super) fn tcp_by_walk(
        &self,
        demand: &Demand<Sockets>,
        tables: &[TableFilter],
    ) -> Option<(TableFilter, Choice)> {
        let filter = tables.iter().find(|table| table.proto == Proto::Tcp)?;
        // Even if the user requests the walk: each namespace's own source would have to read them as well.
        if filter.states & BOUND != 0 && !self.host.is_replay() {
            return None;
        }
        let recorded = self.host.is_replay().then(|| {
            let bpf = self.host.contains(&keys::shared_key(0)) || self.host.contains(&keys::walked_listeners_key(0));
            RecordedBackends { netlink: !bpf, bpf, proc: false }
        });
        let walk = || self.is_possible();
        let choice = choose(&Facts {
            proto: Proto::Tcp,
            need: demand.need,
            counted: info_parts(demand) != 0,
            // The listeners of all namespaces also share one table.
            few_states: false,
            via: self.options.via,
            recorded,
            walk: &walk,
        });
        (choice.via == Via::Bpf).then(|| (filter.clone(), choice))
    }

    // A dump of each namespace costs milliseconds, and so does loading the program.
    fn is_possible(&self) -> WalkDecision {
        if !cfg!(feature = "bpf") {
            return WalkDecision::TooFew;
        }
        match self.cache.why_no_walk() {
            Some(why_not) => WalkDecision::No(why_not),
            None => WalkDecision::Pays("all network namespaces in one pass"),
        }
    }

    /// A walk that meets the demand; `cache` may recognise rows by their bytes.
    pub(super) fn walker<'w>(
        &'w self,
        demand: &Demand<Sockets>,
        filter: &'w TableFilter,
        cache: Option<&'w dyn RowCache>,
        handed_out: &'w RefCell<HandedOut>,
    ) -> Walker<'w, 'w> {
        let parts = parts_of(self.host, demand.need, info_parts(demand)) | part::NETNS;
        Walker { every: self, filter, parts, cache, handed_out }
    }

    // Whether netlink reads the sockets that an interrupted walk left out. A replay does what the recorded run did.
    fn is_followed(&self) -> bool {
        let recorded = |target: &NetnsTarget<'_>| {
            let tables = [Table::Tcp, Table::Tcp4, Table::Tcp6];
            tables.iter().any(|table| self.host.contains(&keys::key(*table, Via::Netlink, target.netns_id)))
        };
        match self.host.is_replay() {
            true => self.targets.iter().any(recorded),
            false => self.options.via != Some(Via::Bpf),
        }
    }

    /// Reads the TCP sockets of all namespaces.
    pub(super) fn walk_all(
        &self,
        walker: &Walker<'_, '_>,
        choice: Choice,
        each: &mut Each<'_, Sockets>,
        round: &mut Round,
    ) -> WalkExtent {
        let mut stats = RowStats::default();
        let followed = self.is_followed();
        *walker.handed_out.borrow_mut() = HandedOut::new(self.cache.random_key(), followed);
        let result = walker.read_all_tables(each, &mut stats);
        let has_rows = stats.rows() > 0;
        if has_rows || result.is_ok() {
            stats.add_backend(choice.via.name());
        }
        let walked = match result {
            Ok(()) => WalkExtent::Wholly,
            Err(error) if followed => {
                let what = if has_rows { "the rest of TCP sockets was" } else { "TCP sockets were" };
                stats.add_note(format!("{what} read via netlink: {error}"));
                if has_rows { WalkExtent::Partly } else { WalkExtent::Not }
            }
            Err(error) if has_rows => {
                stats.incomplete(0, format!("TCP sockets are incomplete: {error}"));
                WalkExtent::Wholly
            }
            Err(error) => {
                let (fault, cause) = fault_of(error);
                round.many.add(Err(SourceError { what: Table::Tcp.description(), fault, cause }));
                return WalkExtent::Wholly;
            }
        };
        round.many.add(Ok(stats.close()));
        walked
    }

    /// Reads the TCP sockets of a namespace without a path, by its number, unless they were already read.
    pub(super) fn read_by_number(
        &self,
        target: &NetnsTarget<'_>,
        rest: &EachNetns<'_>,
        options: &Options,
        each: &mut Each<'_, Sockets>,
        round: &mut Round,
    ) {
        let demand = rest.demand;
        let mut tables = rest.tables.iter().filter(|table| options.order.contains(&table.proto));
        round.unreachable += u64::from(tables.clone().any(|table| table.proto != Proto::Tcp));
        let tcp = tables.find(|table| table.proto == Proto::Tcp);
        let (Some(filter), Ok(number)) = (tcp, u32::try_from(target.netns_id)) else { return };
        let lacks = demand.need & !BPF_HAS & !need::TCP_INFO;
        let walker = self.walker(demand, filter, None, rest.handed_out);
        let mut stats = RowStats::default();
        match walker.read_one_netns(number, each, &mut stats) {
            Ok(()) => {
                stats.add_backend(Via::Bpf.name());
                if lacks != 0 {
                    stats.add_note("some columns are empty for a network namespace that cannot be entered");
                }
            }
            Err(WalkError::Broken(error)) if error.errno.is_missing_object() => round.not_entered.gone += 1,
            // It was removed before the walk started, so no stream was recorded.
            Err(WalkError::Broken(error)) if self.host.is_replay() && error.errno == Errno::NOT_RECORDED => {
                round.not_entered.gone += 1;
            }
            Err(error) => stats.incomplete(1, format!("a network namespace was not read: {error}")),
        }
        round.many.add(Ok(stats.close()));
    }
}

fn fault_of(error: WalkError) -> (SourceFault, Box<dyn Error + Send + Sync>) {
    match error {
        WalkError::Unavailable(cause) => (SourceFault::Unsupported, cause),
        WalkError::Broken(error) => (fault_of_errno(Some(error.errno)), Box::new(error)),
    }
}

/// The walk and its parameters.
pub(super) struct Walker<'w, 'h> {
    every: &'w AllNetnsSockets<'h>,
    filter: &'w TableFilter,
    parts: u32,
    cache: Option<&'w dyn RowCache>,
    handed_out: &'w RefCell<HandedOut>,
}

impl Walker<'_, '_> {
    /// Reads the listeners of all namespaces, then each table of connections once.
    fn read_all_tables(&self, each: &mut Each<'_, Sockets>, stats: &mut RowStats) -> Result<(), WalkError> {
        let host = self.every.host;
        let connections = self.filter.states & !IN_SMALL_TABLES != 0;
        let tables = match (connections, host.is_replay()) {
            (false, _) => Vec::new(),
            // In a replay there are as many tables as were recorded.
            (true, true) => (0..).take_while(|n| host.contains(&keys::shared_key(*n))).map(|_| 0).collect(),
            (true, false) => self.tables()?,
        };
        let listeners = self.filter.states & 1 << State::LISTEN.0 != 0;
        if listeners && self.read(WalkScope::AllListeners, &keys::walked_listeners_key(0), 0, each, stats)? {
            return Ok(());
        }
        for (n, number) in tables.into_iter().enumerate() {
            if self.read(WalkScope::Shared(number), &keys::shared_key(n), 0, each, stats)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn read_one_netns(&self, number: u32, each: &mut Each<'_, Sockets>, stats: &mut RowStats) -> Result<(), WalkError> {
        let (id, states) = (u64::from(number), self.filter.states);
        let connections = keys::key(Table::Tcp, Via::Bpf, id);
        let stopped = states & 1 << State::LISTEN.0 != 0
            && self.read(WalkScope::ListenersOf(number), &keys::walked_listeners_key(id), id, each, stats)?;
        if !stopped && states & !IN_SMALL_TABLES != 0 {
            self.read(WalkScope::One(number), &connections, id, each, stats)?;
        }
        Ok(())
    }

    /// One namespace for each table of connections: most share one, some have their own (`tcp_child_ehash_entries`).
    fn tables(&self) -> Result<Vec<u32>, WalkError> {
        let mut found = self.every.cache.namespaces(self.every.host, self.parts)?;
        found.sort_unstable_by_key(|namespace| namespace.1);
        found.dedup_by_key(|namespace| namespace.1);
        Ok(found.into_iter().map(|namespace| namespace.0).collect())
    }

    // Returns true if the consumer wants no more rows.
    fn read(
        &self,
        scope: WalkScope,
        key: &str,
        netns_id: u64,
        each: &mut Each<'_, Sockets>,
        stats: &mut RowStats,
    ) -> Result<bool, WalkError> {
        let (host, filter) = (self.every.host, self.filter);
        let small = matches!(scope, WalkScope::AllListeners | WalkScope::ListenersOf(_));
        let table = if small { 1 << State::LISTEN.0 } else { !(1 << State::CLOSE.0) & !IN_SMALL_TABLES };
        let note = keys::note_of(filter, &[]);
        if host.is_replay() {
            let narrower = host.notes().iter().find(|(of, was)| **of == *key && !was.is_empty() && **was != *note);
            if let Some((_, was)) = narrower {
                stats.add_unanswered(format!("the recording was made with a {was}: other sockets are missing"));
            }
        }
        let request = WalkRequest {
            scope,
            parts: self.parts,
            states: filter.states & table,
            v4: filter.families.contains(AF_INET),
            v6: filter.families.contains(AF_INET6),
            sport: filter.sport,
            dport: filter.dport,
            key,
            note: &note,
            netns_id,
        };
        // The program applies the rest of the filter; a recording may have been made with a weaker one.
        let behind = (host.is_replay() || filter.code != Code::True).then_some(filter);
        let handed_out = &mut *self.handed_out.borrow_mut();
        let rows = RowOutput { each, stats, filter: behind, as_sent: false, window: Window::new(), handed_out };
        self.every.cache.walk(host, &request, &mut WalkOutput::new(rows, host, self.cache))
    }
}
