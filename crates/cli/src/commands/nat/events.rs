//! `netwren nat events`: entries of connection tracking as they come, change and go.

use super::super::Outcome;
use super::super::follow::{self, Words};
use super::super::plan::{PlanError, plan};
use super::holders::HoldersNow;
use crate::exit::Exit;
use crate::flags::{Events, Request};
use crate::messages::refused;
use crate::output;
use crate::session::Session;
use conntrack::events::{EventsVia, FindNamespaces, FollowNat, Found, NatEventStream};
use engine::{Plan, RunError, columns};
use host::Namespaces;
use record::rows::NatEvents;
use std::ffi::OsString;
use sys::Host;

/// Runs the command with the words behind `nat events`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let events = match Events::parse(args) {
        Ok(events) => events,
        Err(error) => return refused(&error).into(),
    };
    if events.request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<NatEvents>()).into();
    }
    match planned(&events.request) {
        Ok(plan) => followed(&events, &plan),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

fn planned(request: &Request) -> Result<Plan<NatEvents>, PlanError> {
    plan(request, &engine::filter::parse(&request.shown.filter)?)
}

fn followed(events: &Events, plan: &Plan<NatEvents>) -> Outcome {
    follow::run(&events.request, plan, |session, then| {
        let stop = || follow::is_over(session);
        let follow = place_of(events, session, &stop);
        let mut stream = NatEventStream::open(session.host(), plan.demand(), follow).map_err(RunError::Source)?;
        let words = Words { caveat: stream.caveat(), cost: stream.shut().map(not_by_bpf).into_iter().collect() };
        then(&mut stream, words)
    })
}

fn not_by_bpf(why: &str) -> String {
    format!("new entries were not told of by bpf: {why}")
}

fn place_of<'h>(events: &Events, session: &'h Session, stop: &'h dyn Fn() -> bool) -> FollowNat<'h> {
    let everywhere = events.request.all_netns;
    let own = session.netns_id();
    FollowNat {
        via: events.via,
        buffer_bytes: events.buffer,
        netns_id: own,
        find: everywhere.then(finder),
        resync: events.resync.then(|| if everywhere { finder() } else { alone(own) }),
        holders: Some(Box::new(HoldersNow::new(session))),
        stop,
    }
}

/// The one namespace, which needs no way in.
fn alone(own: u64) -> FindNamespaces {
    Box::new(move |_| vec![Found { netns_id: own, netns: None }])
}

/// All namespaces that can be found, with a way into those that are not settled. Not through the session's host: it is
/// called on the reader's thread, and what it finds goes into the recording with the events.
fn finder() -> FindNamespaces {
    Box::new(|is_settled| {
        let host = Host::live();
        let (Ok(found), Ok(own)) = (Namespaces::read(&host), sys::netns::current_inode()) else { return Vec::new() };
        let one = |namespace: &host::Namespace| Found {
            netns_id: namespace.inode,
            netns: if is_settled(namespace.inode) { None } else { namespace.open(&host, own).ok().flatten() },
        };
        found.list().iter().map(one).collect()
    })
}

/// The word of `--via`.
pub(crate) fn via_of(via: Option<record::Via>) -> Result<Option<EventsVia>, String> {
    match via {
        None => Ok(None),
        Some(record::Via::Netlink) => Ok(Some(EventsVia::Netlink)),
        Some(record::Via::Bpf) => Ok(Some(EventsVia::Bpf)),
        Some(record::Via::Proc) => Err("/proc tells of no events: --via takes netlink or bpf here".to_owned()),
    }
}
