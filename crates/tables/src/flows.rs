//! Flows: filter parts about sockets select sockets before they are grouped, and the rest selects flows.

use crate::error::TableError;
use crate::plan::{self, PlanError};
use crate::provider::{SourceProvider, Subject};
use crate::request::{Repeat, TableRequest};
use crate::rounds;
use engine::{DiffSource, DiffState, Plan, Predicate, Run, filter};
use flows::{Conjunct, Ephemeral, FlowSource, NetnsAddresses, Ranges};
use host::ports::LocalPorts;
use lookups::pillars;
use lookups::session::Session;
use record::rows::{Flow, Flows, Sockets};
use record::{Accounting, Demand, Expr, LookupId, Lookups, Next, Schema, Sink, Source, Table, Via};
use std::cell::RefCell;

/// Reads the flows of a request into a sink.
pub fn read(session: &Session, request: &TableRequest<'_>, sink: &mut dyn Sink) -> Result<Run, TableError> {
    let (plan, provider) = prepare(request).map_err(TableError::Plan)?;
    rounds::read(session, request, &plan, &provider, sink).map_err(TableError::Run)
}

/// Fields of both tables that refer to the flow rather than to a socket, because they are sums there.
const OF_FLOWS: &[&str] = &[
    "recv_q",
    "send_q",
    "bytes_in",
    "bytes_out",
    "retrans_total",
    "min_rtt_us",
    "change",
    "bytes_in_per_s",
    "bytes_out_per_s",
    "bytes_per_s",
];

/// True if the filter word is about sockets before they are grouped.
fn is_about_sockets(name: &str) -> bool {
    // Unknown words are passed on to flows, whose error suggests valid fields.
    filter::is_known_name(Schema::from_table::<Sockets>(), name) && !OF_FLOWS.contains(&name)
}

/// The plan of a request, and the provider of its rows.
pub fn prepare(request: &TableRequest<'_>) -> Result<(Plan<Flows>, FlowProvider), PlanError> {
    let ast = plan::parse(Schema::from_table::<Flows>(), request)?;
    let (of_sockets, of_flows) = filter::split(&ast, is_about_sockets)?;
    let plan = plan::plan::<Flows>(request, &of_flows)?;
    let conjuncts = plan::bind(Schema::from_table::<Sockets>(), request, &of_sockets)?.into_conjuncts();
    let tests = conjuncts
        .iter()
        .map(|part| Predicate::new(std::slice::from_ref(part)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|bad| PlanError::Plan(engine::PlanError::Pattern(bad)))?;
    let owners = plan.demand().need & Flow::NEED_OWNERS != 0;
    let memory = (request.repeat != Repeat::Once).then(Rounds::default);
    Ok((plan, FlowProvider { via: request.via, conjuncts, tests, owners, memory }))
}

/// A plan of flows whose rates are available from the second reading on, even without `--watch`.
pub fn compared(request: &TableRequest<'_>) -> Result<(Plan<Flows>, FlowProvider), PlanError> {
    let (plan, provider) = prepare(request)?;
    Ok((plan, FlowProvider { memory: Some(Rounds::default()), ..provider }))
}

/// Makes the source of flows, once per round.
pub struct FlowProvider {
    via: Option<Via>,
    conjuncts: Vec<Expr>,
    tests: Vec<Predicate<Sockets>>,
    owners: bool,
    /// State kept between rounds, if there are several.
    memory: Option<Rounds>,
}

/// The remembered connections, for their rates, and the remembered flows.
#[derive(Default)]
struct Rounds {
    sockets: RefCell<DiffState<Sockets>>,
    flows: RefCell<DiffState<Flows>>,
}

impl FlowProvider {
    /// Reads the flows that the next reading is compared with, without showing them.
    pub fn remember(&self, session: &Session, lookups: Lookups<'_>, plan: &Plan<Flows>) {
        // The next reading will have the same errors and report them.
        let mut stats = Accounting::default();
        let _ = self.with_source(session, lookups, &mut stats, |flows| flows.run(plan.demand(), &mut |_| Next::More));
    }
}

impl SourceProvider<Flows> for FlowProvider {
    fn needs_lookup(&self, id: LookupId) -> bool {
        let demand = Demand::<Sockets>::new(&[], self.conjuncts.clone());
        let filtered = demand.fields.iter().any(|&i| Sockets::FIELDS.get(i).is_some_and(|f| f.needs_lookup(id)));
        filtered || (id == LookupId::Owners && self.owners)
    }

    fn tests(&self, subject: Subject) -> bool {
        subject.is_in::<Sockets>(&self.conjuncts)
    }

    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<Flows>) -> R,
    ) -> R {
        let lookups = &lookups;
        let conjuncts = self
            .conjuncts
            .iter()
            .zip(&self.tests)
            .map(|(expr, test)| Conjunct { expr: expr.clone(), test: Box::new(move |row| test.matches(row, lookups)) });
        let (ephemeral, netns_addresses) = read_surroundings(session, stats);
        let options = flows::FlowOptions {
            ephemeral,
            netns_addresses,
            conjuncts: conjuncts.collect(),
            ..flows::FlowOptions::default()
        };
        pillars::with_sockets(session, self.via, &|_| true, |sockets| {
            let Some(memory) = &self.memory else { return then(&FlowSource::new(sockets, *lookups, options)) };
            let now_ns = session.steady_ns();
            let sockets = DiffSource::new(sockets, &memory.sockets, now_ns);
            let flows = FlowSource::new(&sockets, *lookups, options);
            then(&DiffSource::new(&flows, &memory.flows, now_ns))
        })
    }
}

/// Data on the namespaces that is read before their sockets: ephemeral port ranges and, with several namespaces,
/// addresses. If it cannot be read, results are less certain, which is noted.
pub fn read_surroundings(session: &Session, stats: &mut Accounting) -> (Ranges, Option<NetnsAddresses>) {
    let (host, several) = (session.host(), session.namespaces().is_some());
    let (mut ranges, mut netns_addresses) = (Ranges::default(), several.then(NetnsAddresses::new));
    session.in_each_namespace(&mut |netns_id| {
        match LocalPorts::read(host, netns_id, None) {
            Ok(ports) => {
                let (first, last) = ports.range();
                ranges.set(netns_id, Ephemeral { first, last });
            }
            // This namespace was not entered while recording, so it has no rows either.
            Err(error) if several && error.is_not_recorded() => {}
            Err(error) => {
                stats.add_reason(1, format!("{error}; the kernel's default range of ephemeral ports is assumed"));
            }
        }
        let Some(netns_addresses) = &mut netns_addresses else { return };
        match host::addresses::read(host, netns_id, None, &mut |addr| netns_addresses.add(netns_id, addr)) {
            Err(error) if !error.is_not_recorded() => {
                stats.add_reason(1, format!("{error}; connections with that namespace are shown as two flows"));
            }
            _ => {}
        }
    });
    let left_out = netns_addresses.as_ref().map_or(0, NetnsAddresses::left_out);
    if left_out > 0 {
        stats.add_reason(left_out, "too many addresses: connections with the remaining ones are shown as two flows");
    }
    (ranges, netns_addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::field_index;

    #[test]
    fn sums_belong_to_flows() {
        assert!(OF_FLOWS.iter().all(|name| field_index::<Flows>(name).is_some()));
        assert!(is_about_sockets("state") && is_about_sockets("local_port") && is_about_sockets("rtt"));
        assert!(!is_about_sockets("bytes_in") && !is_about_sockets("connections") && !is_about_sockets("nonsense"));
    }
}
