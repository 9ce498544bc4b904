//! The table of flows as a source: its input and its options. Reading is in `scan`.
mod scan;

use crate::steps;
use crate::{NetnsAddresses, Ranges};
use record::rows::{Flows, Socket, Sockets};
use record::{Demand, Expr, Lookups, Proto, Scan, Source};
use scan::FlowScan;

/// The rule that determines the direction of a connection and which sockets count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rule {
    /// The correct one (see [`direction`](fn@crate::direction)).
    #[default]
    Right,
    /// lstf's, for `--bug-compatible`: its direction (see [`crate::direction_of_lstf`]), and TCP sockets that are bound
    /// but were never connected count as flows without a peer.
    Lstf,
}

/// One part of the user's filter on sockets.
pub struct Conjunct<'a> {
    /// The part for the source of sockets, which may let the kernel apply it.
    pub expr: Expr,
    /// The same part as a test; called for each row if the source does not apply the part exactly.
    pub test: Box<dyn Fn(&Socket<'_>) -> bool + 'a>,
}

/// Determines how flows are built.
#[derive(Default)]
pub struct FlowOptions<'a> {
    /// The ranges of ports that the kernel chooses from, by namespace.
    pub ephemeral: Ranges,
    /// Filter on connections: all parts must hold. Listeners are never filtered.
    pub conjuncts: Vec<Conjunct<'a>>,
    /// The rule for directions.
    pub rule: Rule,
    /// True if connections that are bound to different interfaces share a flow, as in lstf, which shows none.
    pub joins_links: bool,
    /// The addresses of all namespaces, if several are read: then the two ends of a connection between two of them are
    /// one flow, seen from the end that opened it.
    pub netns_addresses: Option<NetnsAddresses>,
}

/// Flows built from the sockets of another source.
pub struct FlowSource<'a> {
    sockets: &'a dyn Source<Sockets>,
    lookups: Lookups<'a>,
    options: FlowOptions<'a>,
}

impl<'a> FlowSource<'a> {
    /// Builds flows from the rows of `sockets`. Owners come from `lookups`, which must be filled before a run.
    pub fn new(sockets: &'a dyn Source<Sockets>, lookups: Lookups<'a>, options: FlowOptions<'a>) -> FlowSource<'a> {
        FlowSource { sockets, lookups, options }
    }

    /// The demand of step 2 for the source of sockets.
    fn connections(&self, protos: &[Proto], wanted: &Demand<Flows>) -> Demand<Sockets> {
        // With several namespaces a connection may be visible only at its other end, so all connections are read and a
        // flow is shown if either end passes the filter.
        let pushed = if self.options.netns_addresses.is_some() { &[] } else { self.options.conjuncts.as_slice() };
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
        Box::new(FlowScan::new(self, demand))
    }
}
