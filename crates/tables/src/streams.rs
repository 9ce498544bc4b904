//! Streams: rows as events occur, with lookups that stay current.

use crate::error::TableError;
use crate::plan;
use crate::request::{Repeat, TableRequest};
use crate::stream_rounds::{RateSink, RoundFacts, StreamRounds};
use engine::{Plan, Run, RunError, StreamFeed};
use lookups::asked;
use lookups::followed::with_lookups;
use lookups::long_work;
use lookups::names::{self, DnsNames};
use lookups::session::Session;
use record::rows::SocketEvents;
use record::{Sink, Stream, Table};
use sockets::{Follow, LiveConnections};
use std::time::Duration;

/// Columns of the process that owns a connection, and columns derived from it.
const OWNED: [&str; 9] =
    ["process", "pid", "cmdline", "container_pid", "container", "pod", "unit", "cgroup", "cgroup_id"];

/// The message about missing owners. The exit code is the same as for lists with unreadable owners.
const NO_OWNERS: &str = "owners of connections are missing: the kernel reports them only via BPF (--no-owner leaves \
                         their columns out)";

/// The message for reasons of closings that could not be read.
const NO_REASONS: &str = "the reasons why connections ended are missing: the kernel reports them only via BPF";

/// Follows `stream` into a sink until it ends: rows as they come; groups and sorted rows in rounds, or once at the end.
pub fn read<T: Table>(
    session: &Session,
    request: &TableRequest<'_>,
    plan: &Plan<T>,
    stream: &mut dyn Stream<T>,
    sink: &mut dyn Sink,
) -> Result<Run, RunError> {
    with_lookups(session, plan, &[], |lookups, notes| {
        // Groups and sorted rows are written once, at the end, and no later row can show a name that arrives late.
        let is_repeated = plan.is_streaming() || request.repeat != Repeat::Once;
        let mut names = request.resolve.map(|bound| DnsNames::new(session, bound, is_repeated));
        if names.is_some() {
            asked::host_names(session.host(), notes);
        }
        let stop = || session.is_replay_interrupted();
        let mut feed = StreamFeed::new(stream, lookups, &stop);
        match request.repeat {
            _ if plan.is_streaming() => names::run(plan, &mut feed, names.as_mut(), sink),
            Repeat::Every(period) => {
                let facts = RoundFacts::default();
                let mut sink = RateSink::new(sink, request.group_rates, &facts);
                names::run(plan, &mut StreamRounds::new(feed, period, &facts), names.as_mut(), &mut sink)
            }
            Repeat::Once => {
                let time_left = engine::time_left(request.ends_ns, sys::clock::monotonic_ns());
                let _line = long_work::progress(session, "reading rows", time_left, String::new);
                names::run(plan, &mut feed, names.as_mut(), sink)
            }
        }
    })
}

/// Reads the events of sockets into a sink until `ends_ns`, the limit or Ctrl-C.
pub fn read_socket_events(
    session: &Session,
    request: &TableRequest<'_>,
    sink: &mut dyn Sink,
) -> Result<Run, TableError> {
    let plan = plan::of_request::<SocketEvents>(request).map_err(TableError::Plan)?;
    let time_left = || engine::time_left(request.ends_ns, sys::clock::monotonic_ns());
    let stop = || session.interrupted() || time_left() == Some(Duration::ZERO);
    let follow = follow(session, request, &stop);
    let run = with_socket_events(session, &plan, follow, |live| {
        let caveat = live.caveat();
        let mut run = read(session, request, &plan, live, &mut *sink)?;
        caveat.into_iter().for_each(|text| run.stats.add_reason(0, text));
        Ok(run)
    });
    run.map_err(TableError::Run)
}

/// What sockets are followed in the session's namespaces, until `stop` returns true.
pub fn follow<'h>(session: &Session, request: &TableRequest<'_>, stop: &'h dyn Fn() -> bool) -> Follow<'h> {
    Follow { via: request.via, netns_id: session.netns_id(), all_netns: request.all_netns, hooks: true, stop }
}

/// Calls `then` with the events of connections. Adds to its run what they lack of the plan's columns.
pub fn with_socket_events(
    session: &Session,
    plan: &Plan<SocketEvents>,
    follow: Follow<'_>,
    then: impl FnOnce(&mut LiveConnections<'_>) -> Result<Run, RunError>,
) -> Result<Run, RunError> {
    let mut live = LiveConnections::open(session.host(), follow).map_err(RunError::Source)?;
    let mut run = then(&mut live)?;
    // The interface that reports no processes reports no reasons either.
    let lacks = !live.reports_processes();
    for (fields, words) in [(&OWNED[..], NO_OWNERS), (&["reason"], NO_REASONS)] {
        if lacks && fields.iter().any(|name| plan.demand().wants(name)) {
            run.stats.incomplete(1, words);
        }
    }
    Ok(run)
}
