//! Reads flows: first the listeners, then the connections, which are folded while they are read.

use super::{Conjunct, FlowOptions, FlowSource, Rule};
use crate::connection::Connection;
use crate::mirror::Mirrors;
use crate::steps::{self, OURS};
use crate::{Grouping, Listeners, NetnsAddresses, Verdict, direction, direction_of_lstf};
use record::rows::{Flow, Flows, Socket, Sockets};
use record::{
    Accounting, BackendLacks, Demand, Each, FilterPushdown, Key, Lookups, Next, Offer, Owner, Proto, Scan, SourceError,
    State,
};

/// Two prepared scans of sockets: first the services of each protocol, then the connections, which are grouped while
/// they are read. Only the flows need memory ([`Grouping`]), not the sockets.
pub(super) struct FlowScan<'s> {
    source: &'s FlowSource<'s>,
    /// `need` bits of the demand.
    need: u64,
    /// Number of filter parts about flows; the engine tests them.
    conjuncts: usize,
    /// Step 1: a scan of the services of each protocol.
    services: Vec<(Proto, Box<dyn Scan<Sockets> + 's>)>,
    /// Step 2: the scan of the connections of all these protocols.
    connections: Box<dyn Scan<Sockets> + 's>,
    /// Filter parts about sockets that the scan of connections does not apply exactly, as indexes of
    /// [`FlowOptions::conjuncts`].
    tested: Vec<usize>,
    listeners: Listeners,
    grouping: Grouping,
}

impl<'s> FlowScan<'s> {
    /// Prepares both steps. The filter's parts about sockets are passed to the scan of connections, those about flows
    /// stay with the engine.
    pub(super) fn new(source: &'s FlowSource<'s>, demand: &Demand<Flows>) -> FlowScan<'s> {
        let conjuncts = &source.options.conjuncts;
        let protos = steps::protocols(conjuncts.iter().map(|c| &c.expr));
        let prepare = |proto: &Proto| (*proto, source.sockets.prepare(&steps::services(*proto)));
        let services = protos.iter().map(prepare).collect();
        let connections = source.sockets.prepare(&source.connections(&protos, demand));
        let offer = connections.offer();
        let is_tested = |i: &usize| offer.pushdown.get(i + OURS) != Some(&FilterPushdown::Exact);
        FlowScan {
            source,
            need: demand.need,
            conjuncts: demand.conjuncts.len(),
            services,
            tested: (0..conjuncts.len()).filter(is_tested).collect(),
            connections,
            listeners: Listeners::new(),
            grouping: if source.options.joins_links { Grouping::new().joining_links() } else { Grouping::new() },
        }
    }

    /// Step 1: reads the services. If the services of a protocol could not be read completely, its directions become
    /// guesses, which the rows show.
    fn read_listeners(&mut self, stats: &mut Accounting) {
        for (proto, scan) in &mut self.services {
            let listeners = &mut self.listeners;
            let read = scan.run(&mut |row| {
                listeners.add(row);
                Next::More
            });
            match read {
                Ok(acct) => {
                    add_side_notes(stats, &acct);
                    if acct.lacks_rows_of_namespaces() {
                        self.listeners.lacks_some_of(*proto);
                    }
                }
                Err(error) => {
                    self.listeners.lacks_some_of(*proto);
                    let words = service_words(*proto);
                    stats.add_reason(0, format!("{words} are unknown, directions are guessed: {error}"));
                }
            }
        }
    }

    /// Step 2: reads the connections and folds each into its flow. A connection that may lead to another namespace of
    /// this host waits in [`Mirrors`] for its other end.
    fn read_connections(&mut self) -> Result<Accounting, SourceError> {
        let FlowOptions { ephemeral: ranges, conjuncts, rule, netns_addresses, .. } = &self.source.options;
        let (rule, netns_addresses, wants_owners) =
            (*rule, netns_addresses.as_ref(), self.need & Flow::NEED_OWNERS != 0);
        let tests: Vec<&Conjunct<'_>> = self.tested.iter().filter_map(|&i| conjuncts.get(i)).collect();
        let (listeners, grouping, lookups) = (&self.listeners, &mut self.grouping, &self.source.lookups);
        let mut mirrors = Mirrors::new();
        let mut filtered = 0u64;
        let read = self.connections.run(&mut |row| {
            let counts = counts(row, rule);
            let wanted = counts && tests.iter().all(|part| (part.test)(row));
            let between =
                counts && netns_addresses.is_some_and(|netns_addresses| leaves_for_another(row, netns_addresses));
            if !wanted && !between {
                filtered += 1;
                return Next::More;
            }
            let verdict = match rule {
                Rule::Right => direction(row, listeners, ranges.of(row.netns_id)),
                Rule::Lstf => direction_of_lstf(row, listeners),
            };
            let owners = if wants_owners { owners_of(row, verdict, rule, listeners, lookups) } else { &[] };
            if between && mirrors.keep(&Connection::of(row), verdict, owners, wanted) {
                return Next::More;
            }
            match wanted {
                true => grouping.add_soon(row, verdict, owners),
                false => filtered += 1,
            }
            Next::More
        });
        let mut stats = read?;
        self.grouping.settle();
        let settled = mirrors.settle(&mut self.grouping, ranges);
        stats.filtered += filtered + settled.filtered;
        // Both ends of a joined connection were seen and are part of its flow.
        stats.grouped += self.grouping.connections() + settled.joined;
        if mirrors.left_alone() > 0 {
            stats.add_reason(
                mirrors.left_alone(),
                "too many connections between namespaces: one endpoint is shown as a separate flow",
            );
        }
        Ok(stats)
    }
}

impl Scan<Flows> for FlowScan<'_> {
    fn offer(&self) -> Offer {
        let mut explain = Vec::new();
        for (proto, scan) in &self.services {
            let words = service_words(*proto);
            let lines = scan.offer().explain.into_iter();
            explain.extend(lines.map(|line| format!("step 1, {words}, unfiltered: {line}")));
        }
        let offer = self.connections.offer();
        explain.extend(
            offer.explain.into_iter().map(|line| format!("step 2, connections, grouped while they are read: {line}")),
        );
        Offer {
            backend: offer.backend,
            pushdown: vec![FilterPushdown::Unsupported; self.conjuncts],
            lacks: lacks_of_flows(offer.lacks) & self.need,
            backends: offer.backends.into_iter().map(of_flows).collect(),
            explain,
        }
    }

    fn run(&mut self, each: &mut Each<'_, Flows>) -> Result<Accounting, SourceError> {
        self.listeners.clear();
        self.grouping.clear();
        let mut stats = Accounting::default();
        if self.services.is_empty() {
            return Ok(stats);
        }
        self.read_listeners(&mut stats);
        stats.add(&self.read_connections()?);
        stats.seen += self.grouping.emit(each);
        Ok(stats)
    }
}

/// True if the other end may be in another namespace of this host.
#[inline]
fn leaves_for_another(row: &Socket<'_>, netns_addresses: &NetnsAddresses) -> bool {
    netns_addresses.is_elsewhere(row.peer.addr.unmapped(), row.netns_id)
}

/// True if the row is folded into a flow.
#[inline]
fn counts(row: &Socket<'_>, rule: Rule) -> bool {
    match rule {
        Rule::Right => crate::is_connection(row),
        Rule::Lstf => row.proto == Proto::Tcp && row.state != State::LISTEN,
    }
}

/// The owners of a connection's socket. A connection without a socket file (closing, or not yet accepted) has the
/// owners of the service that it connected to.
fn owners_of<'l>(
    row: &Socket<'_>,
    verdict: Verdict,
    rule: Rule,
    listeners: &Listeners,
    lookups: &Lookups<'l>,
) -> &'l [Owner] {
    if row.inode != 0 {
        return lookups.owners(Key::Id(row.inode.into()));
    }
    if verdict.direction != record::rows::Direction::In {
        return &[];
    }
    let service = match rule {
        Rule::Right => listeners.of(row),
        Rule::Lstf => listeners.lstf_service(row.netns_id, row.local.port),
    };
    match service {
        Some(service) if service.inode != 0 => lookups.owners(Key::Id(service.inode.into())),
        _ => &[],
    }
}

/// The services of a protocol, for messages.
fn service_words(proto: Proto) -> &'static str {
    if proto == Proto::Tcp { "TCP listeners" } else { "UDP services" }
}

/// Adds what a step reports in addition to its row counts: backends, reasons, and whether something is missing.
fn add_side_notes(stats: &mut Accounting, acct: &Accounting) {
    stats.unknown_attrs += acct.unknown_attrs;
    let side = Accounting {
        incomplete: acct.lacks_rows(),
        only_namespaces_missing: acct.lacks_rows() && !acct.lacks_rows_of_namespaces(),
        unanswered: acct.unanswered,
        ..Accounting::default()
    };
    stats.add(&side);
    for why in &acct.why {
        stats.add_reason(why.count, why.text.clone());
    }
    for backend in &acct.via {
        stats.add_backend(backend);
    }
}

/// Converts the missing `need` bits of a backend of sockets to `need` bits of flows.
fn of_flows(sockets: BackendLacks) -> BackendLacks {
    BackendLacks { lacks: lacks_of_flows(sockets.lacks), ..sockets }
}

/// The `need` bits of flows that a backend lacks if it lacks these of sockets.
fn lacks_of_flows(sockets: u64) -> u64 {
    let of_info = if sockets & Flow::NEED_TCP_INFO != 0 { Flow::NEED_TCP_INFO | Flow::NEED_RTT } else { 0 };
    of_info | sockets & Flow::NEED_IFACE
}
