//! `netwren nat [FILTER]`: entries as a table.

use super::super::Outcome;
use super::super::plan::{PlanError, plan};
use super::super::table::{self, SourceProvider};
use super::owners::{SocketIndex, WithOwners};
use super::stats::ways;
use crate::asked::Asked;
use crate::exit::Exit;
use crate::flags::{NatList, Request};
use crate::messages::refused;
use crate::output;
use crate::session::Session;
use conntrack::{AllNetnsConntrack, ConntrackSource, CtTable, Options, Via};
use engine::{Plan, columns};
use record::rows::{Nat, nat_need};
use record::{Accounting, LookupId, Lookups, Source};
use std::ffi::OsString;
use std::hash::RandomState;
use sys::Mode;

/// Runs the command with the words behind `nat`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let NatList { request, table } = match NatList::parse(args) {
        Ok(list) => list,
        Err(error) => return refused(&error).into(),
    };
    if request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<Nat>()).into();
    }
    match prepare(&request, table) {
        Ok((plan, reading)) => table::run(&request, &plan, &reading),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

/// The plan of a request, and how its rows are read.
pub(super) fn prepare(request: &Request, table: CtTable) -> Result<(Plan<Nat>, Reading), PlanError> {
    let ast = engine::filter::parse(&request.shown.filter)?;
    let plan = plan::<Nat>(request, &ast)?;
    let owners = plan.demand().need & nat_need::OWNERS != 0;
    Ok((plan, Reading { via: request.via, table, owners, secret: RandomState::new() }))
}

/// How entries are read.
pub(super) struct Reading {
    pub(super) via: Option<Via>,
    pub(super) table: CtTable,
    /// Whether somebody asks for the processes at the local end.
    pub(super) owners: bool,
    /// Of the sums that tell whether owners are the same as in the round before.
    pub(super) secret: RandomState,
}

/// How a recording reads the entries of a table: their owners are found from its sockets.
pub(in super::super) fn every_entry(table: CtTable) -> impl SourceProvider<Nat> {
    Reading { via: None, table, owners: false, secret: RandomState::new() }
}

impl SourceProvider<Nat> for Reading {
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
        then: impl FnOnce(&mut dyn Source<Nat>) -> R,
    ) -> R {
        let options = Options { via: self.via, table: self.table, ..Options::new(session.netns_id()) };
        let namespaces = session.namespaces();
        let (mut one, mut every);
        let source: &mut dyn Source<Nat> = match namespaces.as_deref() {
            None => {
                one = ConntrackSource::new(session.host(), options).with_cache(session.conntrack_cache());
                &mut one
            }
            Some(namespaces) => {
                let ways = ways(session, Some(namespaces));
                every = AllNetnsConntrack::new(session.host(), options, ways).with_cache(session.conntrack_cache());
                &mut every
            }
        };
        let mut asked;
        let source: &mut dyn Source<Nat> = match session.host().mode() {
            Mode::Live => source,
            _ => {
                // In several namespaces each table may be read by another interface: it holds what is demanded.
                let held = if namespaces.is_some() { |_: &str, demanded| demanded } else { conntrack::recorded_bits };
                asked = Asked::new(source, session.host(), held);
                &mut asked
            }
        };
        // Without lookups (`--explain`) no socket is read.
        if !(self.owners && lookups.has(LookupId::Owners)) {
            return then(source);
        }
        let index = SocketIndex::read(session, stats);
        then(&mut WithOwners::new(source, &index, lookups, &self.secret, session.namespaces().is_none()))
    }
}
