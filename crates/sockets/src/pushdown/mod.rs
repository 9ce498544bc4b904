//! Decides table by table which parts of a filter the kernel can apply.
//!
//! Each part of the demand's `and` goes through the same steps for every table: tests with the same result for the
//! whole table (`proto`, fields that it never has) are decided; parts that only test states become the state mask;
//! parts that only test families choose the dumps; a single port becomes a member of the request, the cheapest filter
//! of all; the rest becomes bytecode as far as possible. A part that can only be expressed partly is rounded up: the
//! kernel then sends rows that the engine must check again ([`FilterPushdown::Inexact`]), but never too few.
//!
//! A comparison with a null cell is false, but the kernel knows no null: ports 0, unconnected ends, mark 0. So every
//! condition below excludes these explicitly.
use record::rows::{Socket, Sockets};
use record::{Expr, FilterPushdown, Op, Operand, Proto, State, Table, Test};

use crate::address_families::{AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_TIPC, AF_UNIX, AF_VSOCK, AF_XDP};
use crate::pushdown::bytecode::{Code, EndpointSide};

pub(crate) mod bytecode;
mod conditions;
pub(crate) mod ifindex;
mod known;
pub(crate) mod named;

pub(crate) use known::only_in;
#[cfg(test)]
mod tests;

/// Information about the host that the conditions need.
pub(crate) trait PushdownContext {
    /// Returns the index of the interface called `name`.
    fn ifindex(&self, name: &[u8]) -> Option<u32>;
    /// True if the kernel permits conditions on marks.
    fn may_ask_marks(&self) -> bool;
}

/// Every state for a listing: 1–12. Bit 13 (BOUND_INACTIVE, 6.8) is not requested.
pub(crate) const STATES_ALL: u32 = 0x1ffe;

/// Address families of TCP and UDP that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Families {
    /// IPv4 and IPv6.
    #[default]
    Both,
    /// AF_INET only.
    Only4,
    /// AF_INET6 only, including AF_INET6 sockets with IPv4-mapped addresses.
    Only6,
}

impl Families {
    pub(crate) fn contains(self, family: u8) -> bool {
        match family {
            AF_INET => self != Families::Only6,
            AF_INET6 => self != Families::Only4,
            _ => true,
        }
    }

    // Returns `None` if no family is left.
    fn intersect(self, v4: bool, v6: bool) -> Option<Families> {
        match (v4 && self.contains(AF_INET), v6 && self.contains(AF_INET6)) {
            (true, true) => Some(Families::Both),
            (true, false) => Some(Families::Only4),
            (false, true) => Some(Families::Only6),
            (false, false) => None,
        }
    }
}

/// The kernel's filter for one table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableFilter {
    pub(crate) proto: Proto,
    pub(crate) states: u32,
    pub(crate) families: Families,
    /// Ports for the request itself; 0 means any.
    pub(crate) sport: u16,
    pub(crate) dport: u16,
    pub(crate) code: Code,
}

impl TableFilter {
    /// Accepts every row of the table.
    pub(crate) fn accept_all(proto: Proto, families: Families) -> TableFilter {
        TableFilter { proto, states: STATES_ALL, families, sport: 0, dport: 0, code: Code::True }
    }

    /// True if every row of the table passes.
    pub(crate) fn accepts_all(&self) -> bool {
        *self == TableFilter::accept_all(self.proto, Families::Both)
    }

    /// True if a row passes. For backends that cannot filter, and for those that may not filter everything.
    pub(crate) fn accepts(&self, row: &Socket<'_>) -> bool {
        let state = 1u32.checked_shl(row.state.0.into()).unwrap_or(0);
        // A filter for all states also accepts unknown states.
        (self.states == STATES_ALL || state & self.states != 0)
            && self.families.contains(row.family)
            && (self.sport == 0 || self.sport == row.local.port)
            && (self.dport == 0 || self.dport == row.peer.port)
            && self.code.accepts(row)
    }

    /// Describes the kernel's filter; empty if the kernel filters nothing.
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

/// The tables to read, and how far each part of the filter is applied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SplitFilter {
    /// Tables that can have matching rows, in the requested order.
    pub(crate) tables: Vec<TableFilter>,
    /// One result per conjunct.
    pub(crate) pushdown: Vec<FilterPushdown>,
}

/// Splits `conjuncts` for the tables in `order`. `filters(proto)` is true if that table's backend can filter.
pub(crate) fn split(
    conjuncts: &[Expr],
    order: &[Proto],
    families: Families,
    world: &dyn PushdownContext,
    filters: &dyn Fn(Proto) -> bool,
) -> SplitFilter {
    let mut tables = Vec::new();
    let mut answers: Vec<Vec<FilterPushdown>> = vec![Vec::new(); conjuncts.len()];
    for proto in order {
        let mut table =
            TableBuilder { filter: TableFilter::accept_all(*proto, families), world, filters: filters(*proto) };
        // If one conjunct excludes a table, the others are irrelevant.
        let taken: Option<Vec<FilterPushdown>> = conjuncts.iter().map(|part| table.take(part)).collect();
        let Some(taken) = taken else { continue };
        answers.iter_mut().zip(taken).for_each(|(answers, push)| answers.push(push));
        tables.push(table.filter);
    }
    SplitFilter { tables, pushdown: answers.iter().map(|answers| worst_of(answers)).collect() }
}

// `Exact` if there are no tables, as no rows are sent.
fn worst_of(answers: &[FilterPushdown]) -> FilterPushdown {
    if answers.iter().all(|push| *push == FilterPushdown::Exact) {
        return FilterPushdown::Exact;
    }
    if answers.iter().all(|push| *push == FilterPushdown::Unsupported) {
        FilterPushdown::Unsupported
    } else {
        FilterPushdown::Inexact
    }
}

struct TableBuilder<'w> {
    filter: TableFilter,
    world: &'w dyn PushdownContext,
    /// True if the backend can filter; otherwise only tests that have the same result for the whole table count.
    filters: bool,
}

impl TableBuilder<'_> {
    // Applies one conjunct and returns how far; `None` if this table has no matching rows.
    fn take(&mut self, part: &Expr) -> Option<FilterPushdown> {
        let part = known::simplify(part, self.filter.proto);
        if known::is_true(&part) {
            return Some(FilterPushdown::Exact);
        }
        if known::is_false(&part) {
            return None;
        }
        if let Some((v4, v6)) = families_of(&part) {
            self.filter.families = self.filter.families.intersect(v4, v6)?;
            return Some(FilterPushdown::Exact);
        }
        if !self.filters || takes_no_filter(self.filter.proto) {
            return Some(FilterPushdown::Unsupported);
        }
        if let Some(states) = states_of(&part, self.filter.proto) {
            // Replaces STATES_ALL instead of masking it, because a state outside STATES_ALL is read only if the filter
            // names it.
            self.filter.states = if self.filter.states == STATES_ALL { states } else { self.filter.states & states };
            return (self.filter.states != 0).then_some(FilterPushdown::Exact);
        }
        if self.filter.proto == Proto::Unix {
            return Some(FilterPushdown::Unsupported);
        }
        Some(self.take_condition(&part))
    }

    fn take_condition(&mut self, part: &Expr) -> FilterPushdown {
        if let Some((side, port)) = single_port(part) {
            let place = if side == EndpointSide::Local { &mut self.filter.sport } else { &mut self.filter.dport };
            if *place == 0 || *place == port {
                *place = port;
                return FilterPushdown::Exact;
            }
        }
        let lowered = conditions::lower_part(part, self.world);
        let both = Code::and([self.filter.code.clone(), lowered.code.clone()]);
        // A program that is too long is treated as none.
        if lowered.code == Code::True || both.compile().is_none() {
            return FilterPushdown::Unsupported;
        }
        self.filter.code = both;
        if lowered.exact { FilterPushdown::Exact } else { FilterPushdown::Inexact }
    }
}

// For these tables the kernel sends all rows, or (SCTP, DCCP, vsock, TIPC) filters by slightly different states. They
// are small.
fn takes_no_filter(proto: Proto) -> bool {
    matches!(
        proto,
        Proto::Packet | Proto::Netlink | Proto::Sctp | Proto::Dccp | Proto::Vsock | Proto::Tipc | Proto::Xdp
    )
}

/// Name of the field that is tested.
fn field_name(test: &Test) -> &'static str {
    Sockets::FIELDS.get(test.field).map_or("", |field| field.name)
}

// The mask of the states for which the part holds, if it tests only states.
fn states_of(part: &Expr, proto: Proto) -> Option<u32> {
    let mut mask = 0;
    for n in 1..=11u8 {
        let value = State(n).name(proto).as_bytes();
        if decide_expr(part, &|test| known::word_test(test, (field_name(test) == "state").then_some(value)?))? {
            mask |= 1 << n;
        }
    }
    // Replies for request sockets show SYN_RECV; newer kernels set the bit themselves.
    if mask & 1 << State::SYN_RECV.0 != 0 {
        mask |= 1 << State::NEW_SYN_RECV.0;
    }
    // Bound but neither listening nor connected (6.8): requested only by its name, because it costs a separate table.
    if proto == Proto::Tcp && names_bound_inactive(part) {
        let value = State::BOUND_INACTIVE.name(proto).as_bytes();
        if decide_expr(part, &|test| known::word_test(test, (field_name(test) == "state").then_some(value)?))? {
            mask |= 1 << State::BOUND_INACTIVE.0;
        }
    }
    // A TCP socket leaves the kernel's tables before its state is CLOSE, so none is ever found there; but requesting
    // CLOSE besides LISTEN makes the kernel search the table of connections at 20 times the cost (as `ss -l` does).
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

// Whether the part holds for inet and for inet6, if it tests only families.
fn families_of(part: &Expr) -> Option<(bool, bool)> {
    let of = |value: &[u8]| {
        decide_expr(part, &|test| known::word_test(test, (field_name(test) == "family").then_some(value)?))
    };
    Some((of(b"inet")?, of(b"inet6")?))
}

// Evaluates a tree; `None` if `test` cannot decide one of its tests.
fn decide_expr(part: &Expr, test: &dyn Fn(&Test) -> Option<bool>) -> Option<bool> {
    match part {
        Expr::And(parts) => parts.iter().try_fold(true, |all, part| Some(decide_expr(part, test)? && all)),
        Expr::Or(parts) => parts.iter().try_fold(false, |any, part| Some(decide_expr(part, test)? || any)),
        Expr::Not(part) => decide_expr(part, test).map(|holds| !holds),
        Expr::Test(t) => test(t),
    }
}

// Matches exactly `local_port = 443` or the same with `peer_port`.
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
    // 0 means "any" in a request.
    u16::try_from(port).ok().filter(|port| *port != 0).map(|port| (side, port))
}

/// The word for the kernel's number of an address family.
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
