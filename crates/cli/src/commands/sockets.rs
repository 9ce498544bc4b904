//! `netwren sockets`.

use super::Outcome;
use super::follow;
use super::ownerless::Ownerless;
use super::plan::{PlanError, plan};
use super::table::{self, SourceProvider};
use crate::exit::Exit;
use crate::flags::{Repeat, Request};
use crate::output;
use crate::session::Session;
use engine::{DiffSource, DiffState, Plan, Predicate, columns};
use record::Via;
use record::rows::{Socket, Sockets};
use record::{Accounting, Expr, LookupId, Lookups, Source, Table};
use std::cell::RefCell;

/// Runs the command.
pub(super) fn run(request: &Request) -> Outcome {
    if request.follow.is_some() {
        return follow::sockets(request);
    }
    if request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<Sockets>()).into();
    }
    let plan = engine::filter::parse(&request.shown.filter).map_err(Into::into).and_then(|ast| plan(request, &ast));
    let prepared = plan.and_then(|plan| Ok((chooser(&plan)?, whole_filter(&plan)?, plan)));
    match prepared {
        Ok((places, filter, plan)) => {
            table::run(request, &plan, &Reading { via: request.via, places, filter, memory: memory(request) })
        }
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

/// The parts of the filter that are about the namespace alone: where they do not hold, nothing needs to be read.
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

struct Reading {
    via: Option<Via>,
    /// Which namespaces are read when all could be.
    places: Predicate<Sockets>,
    filter: Predicate<Sockets>,
    /// What is remembered from round to round, if there are several.
    memory: Option<RefCell<DiffState<Sockets>>>,
}

fn memory(request: &Request) -> Option<RefCell<DiffState<Sockets>>> {
    (request.repeat != Repeat::Once).then(RefCell::default)
}

impl SourceProvider<Sockets> for Reading {
    fn needs_lookup(&self, _id: LookupId) -> bool {
        false
    }

    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        stats: &mut Accounting,
        then: impl FnOnce(&mut dyn Source<Sockets>) -> R,
    ) -> R {
        // Without names (`--explain` reads none) every namespace may be meant.
        let named = lookups.has(LookupId::Netns);
        let wanted = |netns_id| !named || self.places.matches(&Socket { netns_id, ..Socket::EMPTY }, &lookups);
        session.with_sockets(self.via, &wanted, |source| {
            let mut source = Ownerless::new(source, session, lookups, &self.filter, stats.incomplete);
            match &self.memory {
                None => then(&mut source),
                Some(memory) => then(&mut DiffSource::new(&mut source, &mut memory.borrow_mut(), session.steady_ns())),
            }
        })
    }
}
