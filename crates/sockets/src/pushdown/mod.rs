//! Which parts of a filter the kernel can do, table by table.
//!
//! Each part of the demand's `and` goes through the same steps for every table: what is decided for the whole table
//! (`proto`, fields that it never has) is decided; what speaks of states alone becomes the state mask, of families
//! alone the choice of dumps; one port becomes a member of the request, the cheapest filter of all; the rest becomes
//! bytecode as far as it can. A part that can be expressed only half is rounded up: the kernel then sends rows that
//! the engine must look at again ([`Push::Narrowed`]), but never too few.
//!
//! A comparison with a null cell is false, and the kernel knows no null: ports 0, unconnected ends, mark 0. Every
//! condition below says so itself.
use record::rows::{Socket, Sockets};
use record::{Expr, Op, Operand, Proto, Push, State, Table, Test};

use crate::backends::netlink::inet_diag::{AF_INET, AF_INET6, STATES_ALL};
use crate::backends::netlink::netlink_diag::AF_NETLINK;
use crate::backends::netlink::packet_diag::AF_PACKET;
use crate::backends::netlink::tipc_diag::AF_TIPC;
use crate::backends::netlink::unix_diag::AF_UNIX;
use crate::backends::netlink::vsock_diag::AF_VSOCK;
use crate::backends::netlink::xdp_diag::AF_XDP;
use crate::pushdown::bytecode::{Code, EndpointSide};

pub(crate) mod bytecode;
mod conditions;
pub(crate) mod ifindex;
mod known;
pub(crate) mod named;

pub(crate) use known::only_in;
#[cfg(test)]
mod tests;

/// What the conditions need to know of the world.
pub(crate) trait PushdownContext {
    /// Index of the interface called `name`.
    fn ifindex(&self, name: &[u8]) -> Option<u32>;
    /// Whether the kernel will let us ask for marks.
    fn may_ask_marks(&self) -> bool;
}

/// Which address families of TCP and UDP are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Families {
    /// IPv4 and IPv6.
    #[default]
    Both,
    /// AF_INET only.
    Only4,
    /// AF_INET6 only, with the IPv4-mapped ones that are AF_INET6 sockets.
    Only6,
}

impl Families {
    pub(crate) fn has(self, family: u8) -> bool {
        match family {
            AF_INET => self != Families::Only6,
            AF_INET6 => self != Families::Only4,
            _ => true,
        }
    }

    // `None` if nothing is left.
    fn intersect(self, v4: bool, v6: bool) -> Option<Families> {
        match (v4 && self.has(AF_INET), v6 && self.has(AF_INET6)) {
            (true, true) => Some(Families::Both),
            (true, false) => Some(Families::Only4),
            (false, true) => Some(Families::Only6),
            (false, false) => None,
        }
    }
}

/// What is asked of the kernel for one table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableFilter {
    pub(crate) proto: Proto,
    pub(crate) states: u32,
    pub(crate) families: Families,
    /// Ports for the request itself; 0 is any.
    pub(crate) sport: u16,
    pub(crate) dport: u16,
    pub(crate) code: Code,
}

impl TableFilter {
    /// Everything in the table.
    pub(crate) fn all(proto: Proto, families: Families) -> TableFilter {
        TableFilter { proto, states: STATES_ALL, families, sport: 0, dport: 0, code: Code::True }
    }

    /// True if every row of the table passes.
    pub(crate) fn is_everything(&self) -> bool {
        *self == TableFilter::all(self.proto, Families::Both)
    }

    /// True if a row passes. For backends that cannot filter, and for those that may not filter everything.
    pub(crate) fn admits(&self, row: &Socket<'_>) -> bool {
        let state = 1u32.checked_shl(row.state.0.into()).unwrap_or(0);
        // A state that is not known yet is part of everything.
        (self.states == STATES_ALL || state & self.states != 0)
            && self.families.has(row.family)
            && (self.sport == 0 || self.sport == row.local.port)
            && (self.dport == 0 || self.dport == row.peer.port)
            && self.code.holds(row)
    }

    /// The kernel's part in words; empty if there is none.
    pub(crate) fn words(&self) -> String {
        let mut parts = Vec::new();
        if self.states != STATES_ALL {
            let named = (1..=11u8).chain([13]).filter(|n| self.states & 1 << n != 0);
            let named: Vec<&str> = named.map(|n| State(n).name(self.proto)).collect();
            parts.push(format!("state in ({})", named.join(", ")));
        }
        match (self.proto, self.families) {
            (proto, _) if !proto.is_inet() => {}
            (_, Families::Both) => {}
            (_, Families::Only4) => parts.push("family = inet".into()),
            (_, Families::Only6) => parts.push("family = inet6".into()),
        }
        for (port, word) in [(self.sport, "local_port"), (self.dport, "peer_port")] {
            if port != 0 {
                parts.push(format!("{word} = {port}"));
            }
        }
        if self.code != Code::True {
            parts.push(self.code.to_string());
        }
        parts.join(" and ")
    }
}

/// The tables to read and what became of each part of the filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Split {
    /// Tables that can have rows, in the order wanted.
    pub(crate) tables: Vec<TableFilter>,
    /// One answer a conjunct.
    pub(crate) pushed: Vec<Push>,
}

/// Splits `conjuncts` for the tables in `order`. `filters(proto)` is true if that table's backend can filter.
pub(crate) fn split(
    conjuncts: &[Expr],
    order: &[Proto],
    families: Families,
    world: &dyn PushdownContext,
    filters: &dyn Fn(Proto) -> bool,
) -> Split {
    let mut tables = Vec::new();
    let mut answers: Vec<Vec<Push>> = vec![Vec::new(); conjuncts.len()];
    for proto in order {
        let mut table = TableBuilder { filter: TableFilter::all(*proto, families), world, filters: filters(*proto) };
        // A table that one part rules out needs no answer from the others.
        let taken: Option<Vec<Push>> = conjuncts.iter().map(|part| table.take(part)).collect();
        let Some(taken) = taken else { continue };
        answers.iter_mut().zip(taken).for_each(|(answers, push)| answers.push(push));
        tables.push(table.filter);
    }
    Split { tables, pushed: answers.iter().map(|answers| worst_of(answers)).collect() }
}

// No table at all: exactly nothing comes.
fn worst_of(answers: &[Push]) -> Push {
    if answers.iter().all(|push| *push == Push::Exact) {
        return Push::Exact;
    }
    if answers.iter().all(|push| *push == Push::No) { Push::No } else { Push::Narrowed }
}

struct TableBuilder<'w> {
    filter: TableFilter,
    world: &'w dyn PushdownContext,
    /// The backend can filter; else only what concerns the whole table counts.
    filters: bool,
}

impl TableBuilder<'_> {
    // What became of one conjunct; `None` if this table has no rows for it.
    fn take(&mut self, part: &Expr) -> Option<Push> {
        let part = known::simplify(part, self.filter.proto);
        if known::is_true(&part) {
            return Some(Push::Exact);
        }
        if known::is_false(&part) {
            return None;
        }
        if let Some((v4, v6)) = families_of(&part) {
            self.filter.families = self.filter.families.intersect(v4, v6)?;
            return Some(Push::Exact);
        }
        if !self.filters || takes_no_filter(self.filter.proto) {
            return Some(Push::No);
        }
        if let Some(states) = states_of(&part, self.filter.proto) {
            // A state that is no part of everything comes in only by its name.
            self.filter.states = if self.filter.states == STATES_ALL { states } else { self.filter.states & states };
            return (self.filter.states != 0).then_some(Push::Exact);
        }
        if self.filter.proto == Proto::Unix {
            return Some(Push::No);
        }
        Some(self.take_condition(&part))
    }

    fn take_condition(&mut self, part: &Expr) -> Push {
        if let Some((side, port)) = single_port(part) {
            let place = if side == EndpointSide::Local { &mut self.filter.sport } else { &mut self.filter.dport };
            if *place == 0 || *place == port {
                *place = port;
                return Push::Exact;
            }
        }
        let lowered = conditions::lower(part, self.world);
        let both = Code::and([self.filter.code.clone(), lowered.code.clone()]);
        // Too long a program is the same as none.
        if lowered.code == Code::True || both.compile().is_none() {
            return Push::No;
        }
        self.filter.code = both;
        if lowered.exact { Push::Exact } else { Push::Narrowed }
    }
}

// Of these the kernel sends all, or (SCTP, DCCP, vsock, TIPC) filters by states that are not quite ours: they are few.
fn takes_no_filter(proto: Proto) -> bool {
    matches!(
        proto,
        Proto::Packet | Proto::Netlink | Proto::Sctp | Proto::Dccp | Proto::Vsock | Proto::Tipc | Proto::Xdp
    )
}

/// Name of the field that a test is about.
fn field_name(test: &Test) -> &'static str {
    Sockets::FIELDS.get(test.field).map_or("", |field| field.name)
}

// For a part that speaks of states alone: the mask of those it holds for.
fn states_of(part: &Expr, proto: Proto) -> Option<u32> {
    let mut mask = 0;
    for n in 1..=11u8 {
        let value = State(n).name(proto).as_bytes();
        if decide(part, &|test| known::word_test(test, (field_name(test) == "state").then_some(value)?))? {
            mask |= 1 << n;
        }
    }
    // Replies of request sockets say SYN_RECV; newer kernels set the bit themselves.
    if mask & 1 << State::SYN_RECV.0 != 0 {
        mask |= 1 << State::NEW_SYN_RECV.0;
    }
    // Bound but neither listening nor connected (6.8): asked for only by its name, it costs a table of its own.
    if proto == Proto::Tcp && names_bound_inactive(part) {
        let value = State::BOUND_INACTIVE.name(proto).as_bytes();
        if decide(part, &|test| known::word_test(test, (field_name(test) == "state").then_some(value)?))? {
            mask |= 1 << State::BOUND_INACTIVE.0;
        }
    }
    // A TCP socket leaves the kernel's tables before it is called closed, so none is ever found there; but asking for
    // one beside listeners makes the kernel cross the table of connections: 20 times the price (`ss -l` pays it).
    if proto == Proto::Tcp && mask == (1 << State::LISTEN.0 | 1 << State::CLOSE.0) {
        mask = 1 << State::LISTEN.0;
    }
    Some(mask)
}

fn names_bound_inactive(part: &Expr) -> bool {
    let mut named = false;
    part.for_each_test(&mut |test| {
        if let (Op::Eq, Operand::Words(words)) = (test.op, &test.operand) {
            named |= words.iter().any(|word| **word == *State::NAMES[usize::from(State::BOUND_INACTIVE.0)].as_bytes());
        }
    });
    named
}

// For a part that speaks of families alone: whether it holds for inet, for inet6.
fn families_of(part: &Expr) -> Option<(bool, bool)> {
    let of =
        |value: &[u8]| decide(part, &|test| known::word_test(test, (field_name(test) == "family").then_some(value)?));
    Some((of(b"inet")?, of(b"inet6")?))
}

// Evaluates a tree whose every test can be decided.
fn decide(part: &Expr, test: &dyn Fn(&Test) -> Option<bool>) -> Option<bool> {
    match part {
        Expr::And(parts) => parts.iter().try_fold(true, |all, part| Some(decide(part, test)? && all)),
        Expr::Or(parts) => parts.iter().try_fold(false, |any, part| Some(decide(part, test)? || any)),
        Expr::Not(part) => decide(part, test).map(|holds| !holds),
        Expr::Test(t) => test(t),
    }
}

// `local_port = 443` and nothing else.
fn single_port(part: &Expr) -> Option<(EndpointSide, u16)> {
    let Expr::Test(test) = part else { return None };
    let side = match field_name(test) {
        "local_port" => EndpointSide::Local,
        "peer_port" => EndpointSide::Peer,
        _ => return None,
    };
    let port = match (&test.operand, test.op) {
        (Operand::Number(port), Op::Eq) => *port,
        (Operand::Ranges(ranges), Op::Eq) => match ranges.as_slice() {
            [(low, high)] if low == high => *low,
            _ => return None,
        },
        _ => return None,
    };
    // 0 is "any" in a request.
    u16::try_from(port).ok().filter(|port| *port != 0).map(|port| (side, port))
}

/// The kernel's number of a family's native word.
pub(crate) fn family_word(family: u8) -> &'static [u8] {
    match family {
        AF_UNIX => b"unix",
        AF_PACKET => b"packet",
        AF_NETLINK => b"netlink",
        AF_TIPC => b"tipc",
        AF_VSOCK => b"vsock",
        AF_XDP => b"xdp",
        AF_INET6 => b"inet6",
        _ => b"inet",
    }
}
