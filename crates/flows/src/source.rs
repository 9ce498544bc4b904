//! The table of flows as a source: first the listeners, then the connections.

use crate::connection::Connection;
use crate::mirror::Mirrors;
use crate::steps::{self, OURS};
use crate::{Grouping, Homes, Listeners, Ranges, Verdict, direction, direction_of_lstf};
use record::rows::{Flow, Flows, Socket, Sockets};
use record::{
    Accounting, BackendLacks, Demand, Each, Expr, Key, Lookups, Next, Offer, Owner, Proto, Push, Scan, Source,
    SourceError, State,
};

/// Which rule tells the direction and which sockets count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rule {
    /// The right one (see [`direction`](fn@direction)).
    #[default]
    Right,
    /// lstf's, for `--bug-compatible`: its direction (see [`direction_of_lstf`]), and TCP sockets that are bound but
    /// were never connected count as flows to nowhere.
    Lstf,
}

/// One part of the user's filter on sockets.
pub struct Conjunct<'a> {
    /// The part as the sockets' source reads it, to do it in the kernel if it can.
    pub expr: Expr,
    /// The same part as a test; called only where the source does not answer for it exactly.
    pub test: Box<dyn Fn(&Socket<'_>) -> bool + 'a>,
}

/// How flows are made.
#[derive(Default)]
pub struct Options<'a> {
    /// The ports that the kernel gives out, by namespace.
    pub ephemeral: Ranges,
    /// Which connections count: all parts must hold. Listeners are never filtered.
    pub conjuncts: Vec<Conjunct<'a>>,
    /// The rule of directions.
    pub rule: Rule,
    /// The addresses of all namespaces, if those of several are read: then the two ends of one connection between two of
    /// them are one flow, seen by the end that opened it.
    pub homes: Option<Homes>,
}

/// Flows made of the sockets of another source.
pub struct FlowSource<'a> {
    sockets: &'a dyn Source<Sockets>,
    lookups: Lookups<'a>,
    options: Options<'a>,
}

impl<'a> FlowSource<'a> {
    /// Makes flows of the rows of `sockets`. Owners come from `lookups`, which must be filled before a run.
    pub fn new(sockets: &'a dyn Source<Sockets>, lookups: Lookups<'a>, options: Options<'a>) -> FlowSource<'a> {
        FlowSource { sockets, lookups, options }
    }

    /// The demand of step 2.
    fn connections(&self, protos: &[Proto], wanted: &Demand<Flows>) -> Demand<Sockets> {
        // With several namespaces a connection may be known from its other end alone, so all connections are read and a
        // flow is shown if either end passes the filter.
        let pushed = if self.options.homes.is_some() { &[] } else { self.options.conjuncts.as_slice() };
        let user = pushed.iter().map(|c| c.expr.clone());
        let mut demand = steps::connections(protos, self.options.rule == Rule::Lstf, wanted, user);
        for part in &self.options.conjuncts {
            part.expr.for_each_test(&mut |test| demand.add(test.field));
        }
        demand
    }
}

impl Source<Flows> for FlowSource<'_> {
    fn prepare(&self, demand: &Demand<Flows>) -> Box<dyn Scan<Flows> + '_> {
        let protos = steps::protocols(self.options.conjuncts.iter().map(|c| &c.expr));
        let services = protos.iter().map(|proto| (*proto, self.sockets.prepare(&steps::services(*proto)))).collect();
        let connections = self.sockets.prepare(&self.connections(&protos, demand));
        let offer = connections.offer();
        let is_tested = |i: &usize| offer.pushed.get(i + OURS) != Some(&Push::Exact);
        let tested = (0..self.options.conjuncts.len()).filter(is_tested).collect();
        Box::new(FlowScan {
            source: self,
            need: demand.need,
            conjuncts: demand.conjuncts.len(),
            services,
            connections,
            tested,
            listeners: Listeners::new(),
            grouping: Grouping::new(),
        })
    }
}

/// Two readings of sockets, prepared: first the services of each protocol, then the connections, which are grouped
/// while they are read. Memory is that of the flows ([`Grouping`]), not of the sockets.
struct FlowScan<'s> {
    source: &'s FlowSource<'s>,
    /// `need` bits of the demand.
    need: u64,
    /// Number of filter parts about flows; the engine tests them.
    conjuncts: usize,
    services: Vec<(Proto, Box<dyn Scan<Sockets> + 's>)>,
    connections: Box<dyn Scan<Sockets> + 's>,
    /// Filter parts about sockets that the scan of connections does not do exactly.
    tested: Vec<usize>,
    listeners: Listeners,
    grouping: Grouping,
}

impl FlowScan<'_> {
    /// Step 1. Where services could not be read completely, the directions of their protocol become guesses, which
    /// the rows show.
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
                    if lacks_listeners(&acct) {
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

    /// Step 2: reads the connections and folds them.
    fn read_connections(&mut self) -> Result<Accounting, SourceError> {
        let Options { ephemeral: ranges, conjuncts, rule, homes } = &self.source.options;
        let (rule, homes, owners) = (*rule, homes.as_ref(), self.need & Flow::NEED_OWNERS != 0);
        let tests: Vec<&Conjunct<'_>> = self.tested.iter().filter_map(|&i| conjuncts.get(i)).collect();
        let (listeners, grouping, lookups) = (&self.listeners, &mut self.grouping, &self.source.lookups);
        let mut mirrors = Mirrors::new();
        let mut filtered = 0u64;
        let read = self.connections.run(&mut |row| {
            let counts = counts(row, rule);
            let wanted = counts && tests.iter().all(|part| (part.test)(row));
            let between = counts && homes.is_some_and(|homes| leaves_for_another(row, homes));
            if !wanted && !between {
                filtered += 1;
                return Next::More;
            }
            let verdict = match rule {
                Rule::Right => direction(row, listeners, ranges.of(row.netns_id)),
                Rule::Lstf => direction_of_lstf(row, listeners),
            };
            let holders = if owners { holders_of(row, verdict, rule, listeners, lookups) } else { &[] };
            if between && mirrors.keep(&Connection::of(row), verdict, holders, wanted) {
                return Next::More;
            }
            match wanted {
                true => grouping.add_soon(row, verdict, holders),
                false => filtered += 1,
            }
            Next::More
        });
        let mut stats = read?;
        self.grouping.settle();
        let settled = mirrors.settle(&mut self.grouping, ranges);
        stats.filtered += filtered + settled.filtered;
        // Both ends of a joined connection were seen, and are in its flow.
        stats.grouped += self.grouping.connections() + settled.joined;
        if mirrors.left_alone() > 0 {
            stats.add_reason(
                mirrors.left_alone(),
                "too many connections between namespaces: an end was left a flow of its own",
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
        explain
            .extend(offer.explain.into_iter().map(|line| format!("step 2, connections, grouped while read: {line}")));
        Offer {
            door: offer.door,
            pushed: vec![Push::No; self.conjuncts],
            lacks: without_info(offer.lacks) & self.need,
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
fn leaves_for_another(row: &Socket<'_>, homes: &Homes) -> bool {
    homes.is_elsewhere(row.peer.addr.unmapped(), row.netns_id)
}

/// True if the row is folded into a flow.
#[inline]
fn counts(row: &Socket<'_>, rule: Rule) -> bool {
    match rule {
        Rule::Right => crate::is_connection(row),
        Rule::Lstf => row.proto == Proto::Tcp && row.state != State::LISTEN,
    }
}

/// The holders of a socket; for a connection that nobody holds any more, or not yet, those of the service that it
/// came to.
fn holders_of<'l>(
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

/// True if listeners may be missing in a namespace that has rows: of one that was not entered there is no row, either.
fn lacks_listeners(acct: &Accounting) -> bool {
    acct.lacks_rows() && !(acct.only_namespaces_missing && acct.failed == 0 && acct.lost == 0)
}

/// What the services of a protocol are called in messages.
fn service_words(proto: Proto) -> &'static str {
    if proto == Proto::Tcp { "TCP listeners" } else { "UDP services" }
}

/// What a step tells beside its counts: the doors, the reasons, the doubts.
fn add_side_notes(stats: &mut Accounting, acct: &Accounting) {
    stats.unknown_attrs += acct.unknown_attrs;
    let side = Accounting {
        incomplete: acct.lacks_rows(),
        only_namespaces_missing: acct.lacks_rows() && !lacks_listeners(acct),
        unanswered: acct.unanswered,
        ..Accounting::default()
    };
    stats.add(&side);
    for why in &acct.why {
        stats.add_reason(why.count, why.text.clone());
    }
    for door in &acct.via {
        stats.used(door);
    }
}

/// What a backend of sockets lacks, in the bits of flows.
fn of_flows(sockets: BackendLacks) -> BackendLacks {
    BackendLacks { lacks: without_info(sockets.lacks), ..sockets }
}

/// The bits of flows that are lacking where sockets have no `tcp_info`.
fn without_info(lacks: u64) -> u64 {
    if lacks & Flow::NEED_TCP_INFO != 0 { Flow::NEED_TCP_INFO | Flow::NEED_RTT } else { 0 }
}
