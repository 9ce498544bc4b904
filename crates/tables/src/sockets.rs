//! Sockets of all families with their owners.

use crate::error::TableError;
use crate::plan::{self, PlanError};
use crate::provider::SourceProvider;
use crate::request::{Repeat, TableRequest};
use crate::rounds;
use engine::{DiffSource, DiffState, Plan, Predicate, Run};
use lookups::owners::leaked::{self, WithLeaked};
use lookups::owners::unseen;
use lookups::pillars;
use lookups::session::Session;
use owners::{OwnerlessCount, OwnerlessSockets};
use record::rows::{Socket, Sockets};
use record::{Accounting, Annotated, Expr, LookupId, Lookups, Sink, Source, Table, Via};
use std::cell::RefCell;

/// Reads the sockets of a request into a sink.
pub fn read(session: &Session, request: &TableRequest<'_>, sink: &mut dyn Sink) -> Result<Run, TableError> {
    let plan = plan::of_request::<Sockets>(request).map_err(TableError::Plan)?;
    let provider = SocketProvider::new(request, &plan).map_err(TableError::Plan)?;
    rounds::read(session, request, &plan, &provider, sink).map_err(TableError::Run)
}

/// The filter parts that depend on the namespace only: a namespace that fails them need not be read.
fn chooser(plan: &Plan<Sockets>) -> Result<Predicate<Sockets>, PlanError> {
    let about = |part: &&Expr| {
        let (mut tests, mut others) = (0, 0);
        part.for_each_test(&mut |test| match Sockets::FIELDS.get(test.field).map(|field| field.name) {
            Some("netns" | "netns_id") => tests += 1,
            _ => others += 1,
        });
        tests > 0 && others == 0
    };
    let parts: Vec<Expr> = plan.demand().conjuncts.iter().filter(about).cloned().collect();
    Predicate::new(&parts).map_err(|bad| PlanError::Plan(engine::PlanError::Pattern(bad)))
}

fn whole_filter(plan: &Plan<Sockets>) -> Result<Predicate<Sockets>, PlanError> {
    Predicate::new(&plan.demand().conjuncts).map_err(|bad| PlanError::Plan(engine::PlanError::Pattern(bad)))
}

/// Makes the source of sockets, once per round.
pub struct SocketProvider {
    via: Option<Via>,
    /// Selects the namespaces to read if all are available.
    places: Predicate<Sockets>,
    filter: Predicate<Sockets>,
    /// True if the provider also looks for TCP sockets that are in no table.
    with_leaked: bool,
    all_netns: bool,
    /// State kept between rounds, if there are several.
    memory: Option<RefCell<DiffState<Sockets>>>,
}

impl SocketProvider {
    /// Makes a provider for the plan of a request. Fails on a regular expression that does not compile.
    pub fn new(request: &TableRequest<'_>, plan: &Plan<Sockets>) -> Result<SocketProvider, PlanError> {
        Ok(SocketProvider {
            via: request.via,
            places: chooser(plan)?,
            filter: whole_filter(plan)?,
            with_leaked: leaked::are_asked_for(&plan.demand().conjuncts),
            all_netns: request.all_netns,
            memory: (request.repeat != Repeat::Once).then(RefCell::default),
        })
    }
}

impl SourceProvider<Sockets> for SocketProvider {
    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<Sockets>) -> R,
    ) -> R {
        // If no names were read (`--explain`), every namespace may match.
        let named = lookups.contains(LookupId::Netns);
        let wanted = |netns_id| !named || self.places.matches(&Socket { netns_id, ..Socket::EMPTY }, &lookups);
        pillars::with_sockets(session, self.via, &wanted, |source| {
            let (partial, by_proc) = (stats.incomplete, unseen::are_read_from_proc(stats));
            let is_wanted = |netns_id| wanted(netns_id) && (self.all_netns || netns_id == session.netns_id());
            let (filter, lookups_of) = (&self.filter, &lookups);
            let leaked = WithLeaked { source, session, filter, lookups: lookups_of, is_wanted: &is_wanted };
            let source = if self.with_leaked { &leaked } else { source };
            let is_shown = |row: &Socket<'_>| self.filter.matches(row, &lookups);
            let receivers = || unseen::receivers(session.host(), source, &lookups);
            let report = |count, stats: &mut _| {
                let receivers = if by_proc { &receivers as &dyn Fn() -> _ } else { &Vec::new };
                unseen::report(session.host(), count, partial, receivers, stats);
            };
            let (is_shown, report, count) = (&is_shown, &report, OwnerlessCount::default());
            let owners = lookups.get(LookupId::Owners);
            let counted =
                owners.map(|owners| Annotated::new(source, OwnerlessSockets { owners, is_shown, report, count }));
            let source = counted.as_ref().map_or(source, |counted| counted);
            match &self.memory {
                None => then(source),
                Some(memory) => then(&DiffSource::new(source, memory, session.steady_ns())),
            }
        })
    }
}
