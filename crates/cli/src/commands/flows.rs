//! `netwren flows`: the filter's parts about sockets choose sockets before they are grouped, the others choose flows.

use super::Outcome;
use super::follow;
use super::plan::{Wrong, plan};
use super::table::{self, Reads};
use crate::exit::Exit;
use crate::flags::Request;
use crate::output;
use crate::session::Session;
use engine::{Plan, Predicate, columns, filter};
use flows::{Conjunct, Ephemeral, FlowSource, Ranges};
use host::ports::LocalPorts;
use record::rows::{Flow, Flows, Sockets};
use record::{Accounting, Demand, Expr, LookupId, Lookups, Source, Table};
use sockets::Via;
use sys::NetNs;

/// Runs the command.
pub(super) fn run(request: &Request) -> Outcome {
    if let Some(interval) = request.follow {
        return follow::flows(request, interval);
    }
    if request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<Flows>()).into();
    }
    match prepare(request) {
        Ok((plan, reading)) => table::run(request, &plan, &reading),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

/// Fields that stand in both tables and mean the flow, not one of its sockets: they are sums there.
const OF_FLOWS: &[&str] = &["recv_q", "send_q", "bytes_in", "bytes_out", "retrans_total"];

/// True if the filter word is about sockets, before they are grouped.
fn is_about_sockets(name: &str) -> bool {
    // Unknown words go to the flows, whose error proposes what they have.
    filter::knows::<Sockets>(name) && !OF_FLOWS.contains(&name)
}

fn prepare(request: &Request) -> Result<(Plan<Flows>, Reading), Wrong> {
    let ast = filter::parse(&request.shown.filter)?;
    let (of_sockets, of_flows) = filter::split(&ast, is_about_sockets)?;
    let plan = plan::<Flows>(request, &of_flows)?;
    let conjuncts = filter::bind::<Sockets>(&of_sockets)?.into_conjuncts();
    let tests = conjuncts
        .iter()
        .map(|part| Predicate::new(std::slice::from_ref(part)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|bad| Wrong::Plan(engine::PlanError::Pattern(bad)))?;
    let owners = plan.demand().need & Flow::NEED_OWNERS != 0;
    Ok((plan, Reading { via: request.via, conjuncts, tests, owners }))
}

struct Reading {
    via: Option<Via>,
    conjuncts: Vec<Expr>,
    tests: Vec<Predicate<Sockets>>,
    owners: bool,
}

impl Reads<Flows> for Reading {
    fn needs_lookup(&self, id: LookupId) -> bool {
        let demand = Demand::<Sockets>::new(&[], self.conjuncts.clone());
        let filtered = demand.fields.iter().any(|&i| Sockets::FIELDS.get(i).and_then(|f| f.lookup()) == Some(id));
        filtered || (id == LookupId::Owners && self.owners)
    }

    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        books: &mut Accounting,
        then: impl FnOnce(&mut dyn Source<Flows>) -> R,
    ) -> R {
        let lookups = &lookups;
        let conjuncts = self
            .conjuncts
            .iter()
            .zip(&self.tests)
            .map(|(expr, test)| Conjunct { expr: expr.clone(), test: Box::new(move |row| test.matches(row, lookups)) });
        let options = flows::Options {
            ephemeral: ephemeral(session, books),
            conjuncts: conjuncts.collect(),
            ..flows::Options::default()
        };
        session.with_sockets(self.via, |sockets| then(&mut FlowSource::new(sockets, *lookups, options)))
    }
}

/// The ranges of ephemeral ports; the kernel's default, and a note, where one cannot be read.
fn ephemeral(session: &Session, books: &mut Accounting) -> Ranges {
    let own = session.netns_id();
    let Some(namespaces) = session.namespaces() else { return range(session, own, None, books).into() };
    let mut ranges = Ranges::default();
    for namespace in namespaces.list() {
        // Where it cannot be entered, no row is read either, and the reading says so.
        if let Ok(inside) = namespace.open(session.host(), own) {
            ranges = ranges.with(namespace.inode, range(session, namespace.inode, inside.as_ref(), books));
        }
    }
    ranges
}

fn range(session: &Session, netns_id: u64, inside: Option<&NetNs>, books: &mut Accounting) -> Ephemeral {
    match LocalPorts::read(session.host(), netns_id, inside) {
        Ok(ports) => {
            let (first, last) = ports.range();
            Ephemeral { first, last }
        }
        // It could not be entered when this was recorded: no row of it is there, either.
        Err(error) if error.is_not_recorded() && session.namespaces().is_some() => Ephemeral::default(),
        Err(error) => {
            books.because(1, format!("{error}; the kernel's default range of ephemeral ports is assumed"));
            Ephemeral::default()
        }
    }
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
