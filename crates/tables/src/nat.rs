//! The tables of connection tracking.

use crate::error::TableError;
use crate::plan::{self, PlanError};
use crate::provider::SourceProvider;
use crate::request::{Repeat, TableRequest};
use crate::rounds;
use conntrack::stats::{StatMemory, StatOptions, StatSource, read_number};
use conntrack::{AllNetnsConntrack, ConntrackSource, CtTable, Options, Via};
use engine::{Plan, Run};
use lookups::asked::{Asked, with_asked};
use lookups::owners::readings::read_sockets;
use lookups::session::Session;
use owners::EntryOwners;
use record::rows::{Nat, NatStats, nat_need};
use record::{Accounting, Annotated, LookupId, Lookups, Sink, Source};
use std::cell::RefCell;
use std::hash::RandomState;
use sys::Mode;

/// Reads the entries of a request into a sink.
pub fn read(session: &Session, request: &TableRequest<'_>, sink: &mut dyn Sink) -> Result<Run, TableError> {
    let (plan, provider) = prepare(request, CtTable::Conntrack).map_err(TableError::Plan)?;
    rounds::read(session, request, &plan, &provider, sink).map_err(TableError::Run)
}

/// The plan of a request, and the provider of its rows.
pub fn prepare(request: &TableRequest<'_>, table: CtTable) -> Result<(Plan<Nat>, EntryProvider), PlanError> {
    let plan = plan::of_request::<Nat>(request)?;
    let owners = plan.demand().need & nat_need::OWNERS != 0;
    let named = plan.named_need();
    Ok((plan, EntryProvider { via: request.via, table, owners, named, secret: RandomState::new() }))
}

/// The `need` bits that a recording contains. Owners come from no table interface, so only the requested ones count.
fn recorded_bits(interface: &str, demanded: u64) -> u64 {
    conntrack::recorded_bits(interface, demanded) & (demanded | !nat_need::OWNERS)
}

/// Provides the source of entries.
pub struct EntryProvider {
    /// The backend to read through; `None` for the best one.
    pub via: Option<Via>,
    /// The table of the kernel.
    pub table: CtTable,
    /// True if the processes at the local end are requested.
    pub owners: bool,
    /// The `need` bits of fields named in the request.
    pub named: u64,
    /// Seed of the checksums that show whether owners have changed since the previous round.
    pub secret: RandomState,
}

impl EntryProvider {
    /// Reads a table of the kernel without owners.
    pub fn of_table(table: CtTable) -> EntryProvider {
        EntryProvider { via: None, table, owners: false, named: 0, secret: RandomState::new() }
    }
}

impl SourceProvider<Nat> for EntryProvider {
    fn needs_lookup(&self, id: LookupId) -> bool {
        id == LookupId::Owners && self.owners
    }

    fn compares(&self, id: LookupId) -> bool {
        self.needs_lookup(id)
    }

    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<Nat>) -> R,
    ) -> R {
        add_uncounted(session, self.named, stats);
        let options = Options { via: self.via, table: self.table, ..Options::new(session.netns_id()) };
        let namespaces = session.namespaces();
        let (one, every);
        let source: &dyn Source<Nat> = match namespaces.as_deref() {
            None => {
                one = ConntrackSource::new(session.host(), options).with_cache(&session.backends().conntrack);
                &one
            }
            Some(namespaces) => {
                let targets = session.targets(Some(namespaces));
                every =
                    AllNetnsConntrack::new(session.host(), options, targets).with_cache(&session.backends().conntrack);
                &every
            }
        };
        let asked;
        let source: &dyn Source<Nat> = match session.host().mode() {
            Mode::Live => source,
            _ => {
                // With several namespaces each table may be read via a different interface, so the requested fields
                // count.
                let held = if namespaces.is_some() { |_: &str, demanded| demanded } else { recorded_bits };
                asked = Asked::new(source, session.host(), held);
                &asked
            }
        };
        // If there are no lookups (`--explain`), no sockets are read.
        let owners = lookups.get(LookupId::Owners).filter(|_| self.owners);
        let Some(owners) = owners else { return then(source) };
        let sockets = &read_sockets(session, stats);
        let owners = EntryOwners::new(sockets, owners, &self.secret, conntrack::source_ports);
        then(&Annotated::new(source, owners))
    }
}

/// A setting, the fields that are null without it, and its effect on new entries.
const SETTINGS: [(u64, &str, &str); 2] = [
    (nat_need::COUNTERS, "nf_conntrack_acct", "bytes and packets of entries are not counted"),
    (nat_need::TIMES, "nf_conntrack_timestamp", "start times of entries are not recorded"),
];

/// Adds a reason for each disabled setting that fields with these `need` bits depend on; with several namespaces only
/// those with entries count. Reads three files per namespace; without such bits it reads nothing.
fn add_uncounted(session: &Session, need: u64, stats: &mut Accounting) {
    let wanted = SETTINGS.iter().filter(|(bit, ..)| need & bit != 0).collect::<Vec<_>>();
    if wanted.is_empty() {
        return;
    }
    session.in_each_namespace(&mut |netns_id| {
        // An unreadable or unrecorded setting is not reported as disabled.
        let is = |name: &str, number| read_number(session.host(), name, netns_id).ok() == Some(number);
        if session.namespaces().is_some() && is("nf_conntrack_count", 0) {
            return;
        }
        for (_, setting, what) in wanted.iter().filter(|(_, setting, _)| is(setting, 0)) {
            stats.add_reason(
                0,
                format!("{what}: net.netfilter.{setting} is 0; set it to 1 to change this for new entries"),
            );
        }
    });
}

/// Reads the counters and settings of a request into a sink.
pub fn read_stats(session: &Session, request: &TableRequest<'_>, sink: &mut dyn Sink) -> Result<Run, TableError> {
    let plan = plan::of_request::<NatStats>(request).map_err(TableError::Plan)?;
    let provider = StatsProvider::new(StatOptions::default(), request.repeat);
    rounds::read(session, request, &plan, &provider, sink).map_err(TableError::Run)
}

/// Makes the source of counters and settings, once per round.
pub struct StatsProvider {
    options: StatOptions,
    /// State kept between rounds, if there are several.
    memory: Option<RefCell<StatMemory>>,
}

impl StatsProvider {
    /// Makes a provider; with rounds it keeps the counters of the round before.
    pub fn new(options: StatOptions, repeat: Repeat) -> StatsProvider {
        StatsProvider { options, memory: (repeat != Repeat::Once).then(RefCell::default) }
    }
}

impl SourceProvider<NatStats> for StatsProvider {
    fn with_source<R>(
        &self,
        session: &Session,
        _lookups: Lookups<'_>,
        _stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<NatStats>) -> R,
    ) -> R {
        let namespaces = session.namespaces();
        let targets = session.targets(namespaces.as_deref());
        let source = StatSource::new(session.host(), targets, self.options, self.memory.as_ref());
        with_asked(session.host(), &source, then)
    }
}
