//! `netwren nat stats`: counters and settings of connection tracking.

use super::super::Outcome;
use super::super::plan::plan;
use super::super::table::{self, SourceProvider};
use crate::asked::Asked;
use crate::exit::Exit;
use crate::flags::{self, Repeat};
use crate::messages::refused;
use crate::output;
use crate::session::Session;
use conntrack::stats::{StatMemory, StatOptions, StatSource, StatVia};
use engine::columns;
use record::rows::NatStats;
use record::{Accounting, LookupId, Lookups, Source};
use std::cell::RefCell;
use std::ffi::OsString;
use sys::{Mode, NetnsTarget};

/// Runs the command with the words behind `nat stats`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let flags::NatStats { request, per_cpu } = match flags::NatStats::parse(args) {
        Ok(parsed) => parsed,
        Err(error) => return refused(&error).into(),
    };
    if request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<NatStats>()).into();
    }
    let via = request.via.and_then(|via| match via {
        record::Via::Netlink => Some(StatVia::Netlink),
        record::Via::Proc => Some(StatVia::Proc),
        record::Via::Bpf => None,
    });
    let memory = (request.repeat != Repeat::Once).then(RefCell::default);
    let plan = engine::filter::parse(&request.shown.filter).map_err(Into::into).and_then(|ast| plan(&request, &ast));
    match plan {
        Ok(plan) => table::run(&request, &plan, &Reading { options: StatOptions { via, per_cpu }, memory }),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

struct Reading {
    options: StatOptions,
    /// What is remembered from round to round, if there are several.
    memory: Option<RefCell<StatMemory>>,
}

/// How a recording reads counters and settings.
pub(in super::super) fn every_counter() -> impl SourceProvider<NatStats> {
    Reading { options: StatOptions::default(), memory: None }
}

impl SourceProvider<NatStats> for Reading {
    fn needs_lookup(&self, _id: LookupId) -> bool {
        false
    }

    fn with_source<R>(
        &self,
        session: &Session,
        _lookups: Lookups<'_>,
        _stats: &mut Accounting,
        then: impl FnOnce(&mut dyn Source<NatStats>) -> R,
    ) -> R {
        let namespaces = session.namespaces();
        let ways = ways(session, namespaces.as_deref());
        let mut source = StatSource::new(session.host(), ways, self.options, self.memory.as_ref());
        match session.host().mode() {
            Mode::Live => then(&mut source),
            _ => then(&mut Asked::new(&mut source, session.host(), |_, demanded| demanded)),
        }
    }
}

/// The ways into the namespaces of the session: of all, or the one it is in.
pub(super) fn ways<'n>(session: &Session, namespaces: Option<&'n host::Namespaces>) -> Vec<NetnsTarget<'n>> {
    let own = session.netns_id();
    match namespaces {
        None => vec![NetnsTarget::here(own)],
        Some(namespaces) => namespaces.list().iter().map(|namespace| namespace.way(own)).collect(),
    }
}
