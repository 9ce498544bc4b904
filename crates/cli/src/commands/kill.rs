//! `netwren sockets kill`: the table of what would be closed, or was.
//!
//! One pass chooses, as for any table. Each socket is closed by what names it and stands in the very row that is shown
//! (`acting`): its cookie, protocol, family and addresses.

use super::Outcome;
use super::acting::{self, Act, Rows};
use super::plan::{PlanError, plan};
use super::table::{self, SourceProvider};
use crate::exit::Exit;
use crate::flags::Kill;
use crate::messages::refused;
use crate::output;
use crate::session::Session;
use engine::{Plan, Predicate, columns};
use record::rows::{Endpoint, Socket, Sockets, need};
use record::{
    Accounting, Demand, Each, Field, Kind, LookupId, Lookups, Next, Offer, Proto, RowCache, Source, SourceError, State,
    Value,
};
use sockets::{Closing, Options, SocketSource, Target, Via};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use sys::Host;

/// The order if none is asked for: the oldest socket first.
const ORDER: &str = "cookie";

type F = Field<Sockets>;

/// The cells that identify a socket; [`target_of`] reads them back.
const KEY: &[Field<Sockets>] = &[
    F::own("cookie", Kind::Id, |row| Value::U64(row.cookie)).needs(need::COOKIE),
    F::own("proto", Kind::Id, |row| Value::Name(row.proto.name())),
    F::own("family", Kind::Id, |row| Value::U64(row.family.into())),
    F::own("state", Kind::Id, |row| Value::U64(row.state.0.into())),
    F::own("local", Kind::Endpoint, |row| Value::Endpoint(row.local.addr, Some(row.local.port))),
    F::own("peer", Kind::Endpoint, |row| Value::Endpoint(row.peer.addr, Some(row.peer.port))),
    F::own("ifindex", Kind::Id, |row| Value::U64(row.ifindex.into())).needs(need::IFACE_MARK),
];

/// The socket that cells of [`KEY`] name.
fn target_of(key: &[Value<'_>]) -> Option<Target> {
    let &[
        Value::U64(cookie),
        Value::Name(proto),
        Value::U64(family),
        Value::U64(state),
        Value::Endpoint(local, Some(local_port)),
        Value::Endpoint(peer, Some(peer_port)),
        Value::U64(ifindex),
    ] = key
    else {
        return None;
    };
    Target::of(&Socket {
        cookie,
        proto: Proto::ALL.into_iter().find(|known| known.name() == proto)?,
        family: u8::try_from(family).ok()?,
        state: State(u8::try_from(state).ok()?),
        local: Endpoint { addr: local, port: local_port },
        peer: Endpoint { addr: peer, port: peer_port },
        ifindex: u32::try_from(ifindex).ok()?,
        ..Socket::EMPTY
    })
}

/// Runs the command with the words behind `sockets kill`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let mut kill = match Kill::parse(args) {
        Ok(kill) => kill,
        Err(error) => return refused(&error).into(),
    };
    if kill.request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<Sockets>()).into();
    }
    kill.request.shown.order = Some(ORDER);
    match prepare(&kill) {
        Ok((plan, choosing)) => table::run_through(&kill.request, &plan, &choosing, |session, sink, rounds| {
            let closer = Closer { host: session.host(), choosing: &choosing, closed: 0, not_closed: Vec::new() };
            acting::run(session, sink, rounds, kill.yes, closer)
        }),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

fn prepare(kill: &Kill) -> Result<(Plan<Sockets>, Choosing), PlanError> {
    let ast = engine::filter::parse(&kill.request.shown.filter)?;
    let plan = plan(&kill.request, &ast)?.with_key(KEY);
    let test =
        Predicate::new(&plan.demand().conjuncts).map_err(|bad| PlanError::Plan(engine::PlanError::Pattern(bad)))?;
    Ok((plan, Choosing { test, unclosable: RefCell::default() }))
}

/// Reads sockets and counts those that pass the filter and cannot be closed.
struct Choosing {
    test: Predicate<Sockets>,
    /// How many sockets passed the filter that cannot be closed, by protocol.
    unclosable: RefCell<BTreeMap<Proto, u64>>,
}

impl SourceProvider<Sockets> for Choosing {
    fn needs_lookup(&self, _id: LookupId) -> bool {
        false
    }

    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        _stats: &mut Accounting,
        then: impl FnOnce(&mut dyn Source<Sockets>) -> R,
    ) -> R {
        // /proc has no cookies.
        let options = Options { via: Some(Via::Netlink), ..Options::new(session.netns_id()) };
        let mut source = SocketSource::new(session.host(), options);
        then(&mut Remembering { source: &mut source, choosing: self, lookups })
    }
}

/// The source between: sockets that cannot be closed go no further.
struct Remembering<'c> {
    source: &'c mut dyn Source<Sockets>,
    choosing: &'c Choosing,
    lookups: Lookups<'c>,
}

impl Source<Sockets> for Remembering<'_> {
    fn offer(&self, demand: &Demand<Sockets>) -> Offer {
        self.source.offer(demand)
    }

    fn read(
        &mut self,
        demand: &Demand<Sockets>,
        _: Option<&dyn RowCache>,
        each: &mut Each<'_, Sockets>,
    ) -> Result<Accounting, SourceError> {
        let (choosing, lookups) = (self.choosing, self.lookups);
        let mut left_alone = 0;
        let read = self.source.run(demand, &mut |row| {
            if !choosing.test.matches(row, &lookups) || Target::of(row).is_some() {
                return each(row);
            }
            *choosing.unclosable.borrow_mut().entry(row.proto).or_default() += 1;
            left_alone += 1;
            Next::More
        });
        read.map(|stats| Accounting { filtered: stats.filtered + left_alone, ..stats })
    }
}

/// Closes the sockets of the rows that are shown.
struct Closer<'c> {
    host: &'c Host,
    choosing: &'c Choosing,
    closed: u64,
    not_closed: Vec<Closing>,
}

impl Act for Closer<'_> {
    const RESULTS: &'static [&'static str] = Closing::NAMES;

    const KEY_CELLS: usize = KEY.len();

    /// Closes the socket that the cells name.
    fn act(&mut self, key: &[Value<'_>]) -> Value<'static> {
        let Some(target) = target_of(key) else { return Value::Null };
        let result = sockets::close(self.host, &target);
        let name = result.name();
        match result {
            Closing::Closed => self.closed += 1,
            other => self.not_closed.push(other),
        }
        Value::Name(name)
    }

    fn tell(&self, rows: Rows, stats: &mut Accounting) {
        for (proto, count) in self.choosing.unclosable.borrow().iter() {
            let proto = proto.name();
            stats.add_reason(
                0,
                format!("{proto} sockets are left alone, only TCP and UDP ones can be closed: {count} match"),
            );
        }
        if rows.shown == 0 {
            return stats.add_reason(0, "no socket matches: nothing to close");
        }
        if !rows.yes {
            let n = rows.shown;
            return stats
                .add_reason(0, format!("sockets that would be closed: {n}; nothing was done, --yes closes them"));
        }
        stats.add_reason(0, format!("sockets closed: {} of {}", self.closed, rows.shown));
        for result in &self.not_closed {
            stats.incomplete |= result.is_failure();
            stats.add_reason(1, format!("not closed: {result}"));
        }
        if rows.left > 0 {
            stats.incomplete = true;
            stats.add_reason(rows.left, "not closed: interrupted");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use record::Addr;

    /// Rows that have a cookie in common are each their own target: nothing is looked up by the cookie alone.
    #[test]
    fn replay_issue_10_sockets_with_one_cookie_are_each_their_own_target() {
        let at = |octet, port| Endpoint { addr: Addr::V4([127, 0, 0, octet]), port };
        let row = Socket { cookie: 7, family: 2, local: at(1, 80), peer: at(2, 40_000), ..Socket::EMPTY };
        let v6 = Endpoint { addr: Addr::V6([3; 16]), port: 80 };
        let rows = [
            row,
            Socket { local: at(1, 81), ..row },
            Socket { proto: Proto::Udp, ifindex: 4, ..row },
            Socket { family: 10, local: v6, peer: v6, state: State::LISTEN, ..row },
        ];
        for row in rows {
            let key: Vec<Value<'_>> = KEY.iter().map(|field| field.cell(&row, &Lookups::none())).collect();
            assert_eq!(target_of(&key), Target::of(&row));
            assert!(target_of(&key).is_some());
        }
        let none = Socket { cookie: 0, ..row };
        let key: Vec<Value<'_>> = KEY.iter().map(|field| field.cell(&none, &Lookups::none())).collect();
        assert_eq!(target_of(&key), None);
        assert_eq!(target_of(&[]), None);
    }
}
