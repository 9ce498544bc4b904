//! `netwren sockets kill`: a table of the sockets that would be or were closed.
//!
//! One pass selects them, as in any table. Each socket is closed by the identity in the row that is shown (`acting`):
//! its cookie, protocol, family and addresses.

use super::acting::{self, Act, Verb};
use super::plan::{PlanError, of_request};
use super::table;
use crate::command::{Command, ParsedWords, Prepared, ready};
use crate::flags::defs::Scope;
use engine::Predicate;
use lookups::pillars;
use lookups::session::Session;
use record::rows::{Endpoint, Socket, Sockets, need};
use record::{Accounting, Annotate, Annotated, Each, Field, Kind, Lookups, Next, Proto, Source, State, Value};
use sockets::{CloseOutcome, Target, Via};
use std::cell::RefCell;
use std::collections::BTreeMap;
use sys::Host;
use tables::SourceProvider;

/// The default order: the oldest socket first.
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
    F::own("mptcp_token", Kind::Id, |row| Value::number(sockets::mptcp_token(row))).needs(need::ULP),
];

/// The socket that the cells of [`KEY`] identify.
fn target_of(key: &[Value<'_>]) -> Option<Target> {
    let &[
        Value::U64(cookie),
        Value::Name(proto),
        Value::U64(family),
        Value::U64(state),
        Value::Endpoint(local, Some(local_port)),
        Value::Endpoint(peer, Some(peer_port)),
        Value::U64(ifindex),
        ref mptcp_token,
    ] = key
    else {
        return None;
    };
    let mptcp_token = match *mptcp_token {
        Value::U64(token) => u32::try_from(token).ok(),
        _ => None,
    };
    let target = Target::from_row(&Socket {
        cookie,
        proto: Proto::ALL.into_iter().find(|known| known.name() == proto)?,
        family: u8::try_from(family).ok()?,
        state: State(u8::try_from(state).ok()?),
        local: Endpoint { addr: local, port: local_port },
        peer: Endpoint { addr: peer, port: peer_port },
        ifindex: u32::try_from(ifindex).ok()?,
        ..Socket::EMPTY
    })?;
    Some(target.subflow_of(mptcp_token))
}

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "sockets kill",
    about: "Close TCP and UDP sockets of any owner; without --yes only show them",
    examples: EXAMPLES,
    scope: Scope::ACTION.and(Scope::USERS).and(Scope::CLOSING),
    refusals: &[("replay", "a recording has no sockets to close: leave out --replay")],
    tables: &[tables::SOCKETS],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren sockets kill 'peer = 192.0.2.7'                 what would be closed
  netwren sockets kill 'peer = 192.0.2.7' --yes           close it
  netwren sockets kill 'state = close_wait and process = \"java\"' --yes
  netwren sockets kill local_port = 8080 and state = established --limit 1 --yes
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let (request, yes) = acting::asked(words, ORDER)?;
    let plan = of_request(&request)?.with_key(KEY);
    let test =
        Predicate::new(&plan.demand().conjuncts).map_err(|bad| PlanError::Plan(engine::PlanError::Pattern(bad)))?;
    let choosing = Choosing { test, unclosable: RefCell::default() };
    ready(move || {
        table::act_through(&request, &plan, &choosing, |session, sink, rounds| {
            let closer = Closer { host: session.host(), choosing: &choosing, closed: 0, not_closed: Vec::new() };
            acting::run(session, sink, rounds, yes, closer)
        })
    })
}

/// Reads sockets, and counts those that match the filter but cannot be closed.
struct Choosing {
    test: Predicate<Sockets>,
    /// Number of matching sockets that cannot be closed, by protocol.
    unclosable: RefCell<BTreeMap<Proto, u64>>,
}

impl SourceProvider<Sockets> for Choosing {
    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        _stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<Sockets>) -> R,
    ) -> R {
        // Netlink, because /proc has no cookies. A run over all namespaces only produces a hint and closes nothing.
        pillars::with_sockets(session, Some(Via::Netlink), &|_| true, |source| {
            then(&Annotated::new(source, Remembering { choosing: self, lookups, left_alone: 0 }))
        })
    }
}

/// Filters out sockets that cannot be closed, and remembers how many there were.
struct Remembering<'c> {
    choosing: &'c Choosing,
    lookups: Lookups<'c>,
    left_alone: u64,
}

impl Annotate<Sockets> for Remembering<'_> {
    fn row(&mut self, row: &Socket<'_>, each: &mut Each<'_, Sockets>) -> Next {
        if !self.choosing.test.matches(row, &self.lookups) || Target::from_row(row).is_some() {
            return each(row);
        }
        *self.choosing.unclosable.borrow_mut().entry(row.proto).or_default() += 1;
        self.left_alone += 1;
        Next::More
    }

    fn close(&mut self, stats: &mut Accounting) {
        stats.filtered += std::mem::take(&mut self.left_alone);
    }
}

/// Closes the sockets of shown rows.
struct Closer<'c> {
    host: &'c Host,
    choosing: &'c Choosing,
    closed: u64,
    not_closed: Vec<CloseOutcome>,
}

impl Act for Closer<'_> {
    const VERB: Verb =
        Verb { thing: "socket", things: "sockets", infinitive: "close", present: "closes", past: "closed" };

    const RESULTS: &'static [&'static str] = CloseOutcome::NAMES;

    const KEY_CELLS: usize = KEY.len();

    /// Closes the socket that the cells identify.
    fn act(&mut self, key: &[Value<'_>]) -> Value<'static> {
        let Some(target) = target_of(key) else { return Value::Null };
        let result = sockets::close(self.host, &target);
        let name = result.name();
        match result {
            CloseOutcome::Closed | CloseOutcome::Aborted => self.closed += 1,
            other => self.not_closed.push(other),
        }
        Value::Name(name)
    }

    fn done(&self) -> u64 {
        self.closed
    }

    fn add_unfit(&self, stats: &mut Accounting) {
        for (proto, count) in self.choosing.unclosable.borrow().iter() {
            let proto = proto.name();
            stats.add_reason(
                0,
                format!("{proto} sockets are not closed, only TCP and UDP sockets can be closed: {count} match"),
            );
        }
    }

    fn add_failures(&self, stats: &mut Accounting) {
        for result in &self.not_closed {
            stats.incomplete |= result.is_failure();
            stats.add_reason(1, format!("not closed: {result}"));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::flags::parser;
    use crate::flags::request::Request;
    use record::Addr;

    /// Rows with the same cookie are separate targets, because no lookup uses the cookie alone.
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
            let key: Vec<Value<'_>> = KEY.iter().map(|field| field.cell(&row, &Lookups::empty())).collect();
            assert_eq!(target_of(&key), Target::from_row(&row));
            assert!(target_of(&key).is_some());
        }
        let none = Socket { cookie: 0, ..row };
        let key: Vec<Value<'_>> = KEY.iter().map(|field| field.cell(&none, &Lookups::empty())).collect();
        assert_eq!(target_of(&key), None);
        assert_eq!(target_of(&[]), None);
    }

    fn parse(line: &str) -> Result<(Request, bool), clap::Error> {
        parser::parse_line(&COMMAND, line, |words| acting::asked(words, ORDER))
    }

    #[test]
    fn nothing_is_closed_by_accident() {
        assert!(!parse("state = established").unwrap().1);
        assert!(parse("state = established --yes --limit 1").unwrap().1);
        assert!(parse("--all").unwrap().0.shown.filter.is_empty());
        for (line, says) in [
            ("--yes", "needs --all"),
            ("--all state = listen", "cannot be used with"),
            ("--all --replay f", "a recording has no sockets"),
            ("--all --watch", "--watch cannot be used with"),
            ("--all --by state", "--by cannot be used with"),
            ("--all --record f", "--record cannot be used with"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
