//! Facts about every row of a table before it is read: its protocol, and the fields that are always null.
use record::rows::{Sockets, need};
use record::{Expr, Op, Operand, Proto, State, Table, Test};

use super::{family_word, field_name};
use crate::address_families::{AF_NETLINK, AF_PACKET, AF_TIPC, AF_UNIX, AF_VSOCK, AF_XDP};

/// Fields that only TCP sockets have, not even MPTCP.
const ONLY_IN_TCP: u64 = need::TCP_INFO | need::COUNTERS | need::RESENT | need::CONG | need::CONG_INFO;
/// Fields that only sockets with IP addresses can have.
const ONLY_IN_INET: u64 = need::TOS | need::CGROUP | need::SOCKOPT | need::V6ONLY | need::ULP | need::STORAGES;
/// Fields that only unix sockets have.
const ONLY_IN_UNIX: u64 = need::UNIX_NAME | need::UNIX_PEER;
/// Fields that only packet sockets have.
const ONLY_IN_PACKET: u64 = need::PACKET | need::FILTER;

/// Fields without a `need` bit that are null in every socket without an IP address.
const NAMES_ONLY_IN_INET: &[&str] =
    &["local_addr", "local_port", "peer_addr", "peer_port", "timer", "timer_ms", "timer_retransmits"];

/// `need` bits whose fields are null in every socket of the table.
fn null_need(proto: Proto) -> u64 {
    let sctp = if proto == Proto::Sctp { 0 } else { need::SCTP };
    let xdp = if proto == Proto::Xdp { 0 } else { need::XDP };
    sctp | xdp | nullable_need(proto)
}

fn nullable_need(proto: Proto) -> u64 {
    match proto {
        // The kernel also fills in `tcp_info` for DCCP (net/dccp/diag.c).
        Proto::Tcp | Proto::Dccp => ONLY_IN_UNIX | ONLY_IN_PACKET | need::NETLINK,
        Proto::Mptcp => ONLY_IN_UNIX | ONLY_IN_PACKET | need::NETLINK | need::TCP_INFO | need::COUNTERS | need::RESENT,
        Proto::Udp | Proto::UdpLite | Proto::Raw | Proto::Sctp => {
            ONLY_IN_UNIX | ONLY_IN_PACKET | need::NETLINK | ONLY_IN_TCP | need::ULP
        }
        Proto::Unix => ONLY_IN_INET | ONLY_IN_PACKET | need::NETLINK | ONLY_IN_TCP | need::IFACE_MARK,
        Proto::Packet => ONLY_IN_INET | ONLY_IN_UNIX | need::NETLINK | ONLY_IN_TCP,
        Proto::Netlink => ONLY_IN_INET | ONLY_IN_UNIX | ONLY_IN_PACKET | ONLY_IN_TCP | need::IFACE_MARK,
        Proto::Vsock | Proto::Tipc => {
            ONLY_IN_INET | ONLY_IN_UNIX | ONLY_IN_PACKET | need::NETLINK | ONLY_IN_TCP | need::IFACE_MARK
        }
        Proto::Xdp => ONLY_IN_INET | ONLY_IN_UNIX | ONLY_IN_PACKET | need::NETLINK | ONLY_IN_TCP,
    }
}

/// The table of a field that only one table has.
pub(crate) fn only_in(name: &str) -> Option<Proto> {
    match name {
        "unix_type" => Some(Proto::Unix),
        "ip_protocol" => Some(Proto::Raw),
        "packet_type" | "ethertype" => Some(Proto::Packet),
        "netlink_protocol" | "portid" | "dst_portid" | "dst_group" | "groups" | "dump_running" => Some(Proto::Netlink),
        _ if name.starts_with("sctp_") => Some(Proto::Sctp),
        _ if name.starts_with("vsock_") => Some(Proto::Vsock),
        _ if name.starts_with("tipc_") => Some(Proto::Tipc),
        _ if name.starts_with("xdp_") => Some(Proto::Xdp),
        _ => None,
    }
}

/// Replaces every test that has the same result for every row of the table by a constant, and folds constants: true is
/// an empty `and`, false an empty `or`.
pub(super) fn simplify(part: &Expr, proto: Proto) -> Expr {
    match part {
        Expr::Test(test) => decide_test(test, proto).map_or_else(|| part.clone(), constant),
        Expr::Not(inner) => match simplify(inner, proto) {
            inner if is_true(&inner) => constant(false),
            inner if is_false(&inner) => constant(true),
            inner => Expr::Not(Box::new(inner)),
        },
        Expr::And(parts) => {
            let parts: Vec<Expr> = parts.iter().map(|part| simplify(part, proto)).filter(|p| !is_true(p)).collect();
            if parts.iter().any(is_false) { constant(false) } else { only_or(parts, Expr::And) }
        }
        Expr::Or(parts) => {
            let parts: Vec<Expr> = parts.iter().map(|part| simplify(part, proto)).filter(|p| !is_false(p)).collect();
            if parts.iter().any(is_true) { constant(true) } else { only_or(parts, Expr::Or) }
        }
    }
}

fn only_or(mut parts: Vec<Expr>, wrap: fn(Vec<Expr>) -> Expr) -> Expr {
    if parts.len() == 1 {
        if let Some(only) = parts.pop() {
            return only;
        }
    }
    wrap(parts)
}

fn constant(holds: bool) -> Expr {
    if holds { Expr::And(Vec::new()) } else { Expr::Or(Vec::new()) }
}

pub(super) fn is_true(part: &Expr) -> bool {
    matches!(part, Expr::And(parts) if parts.is_empty())
}

pub(super) fn is_false(part: &Expr) -> bool {
    matches!(part, Expr::Or(parts) if parts.is_empty())
}

fn decide_test(test: &Test, proto: Proto) -> Option<bool> {
    if is_null(test, proto) {
        // Only `= null` is true for a null.
        return Some(test.op == Op::Eq && test.operand == Operand::Null);
    }
    match (field_name(test), proto) {
        ("proto", _) => word_test(test, proto.name().as_bytes()),
        ("family", Proto::Unix) => word_test(test, family_word(AF_UNIX)),
        ("family", Proto::Packet) => word_test(test, family_word(AF_PACKET)),
        ("family", Proto::Netlink) => word_test(test, family_word(AF_NETLINK)),
        ("family", Proto::Vsock) => word_test(test, family_word(AF_VSOCK)),
        ("family", Proto::Tipc) => word_test(test, family_word(AF_TIPC)),
        ("family", Proto::Xdp) => word_test(test, family_word(AF_XDP)),
        ("state", Proto::Packet | Proto::Xdp) => word_test(test, State::CLOSE.name(proto).as_bytes()),
        _ => None,
    }
}

fn is_null(test: &Test, proto: Proto) -> bool {
    let Some(field) = Sockets::FIELDS.get(test.field) else { return false };
    // It depends on the port of sockets with ports, but on the name of unix sockets: its bits cover both.
    if field.name == "autobound" {
        return !proto.is_inet() && proto != Proto::Unix;
    }
    field.need & null_need(proto) != 0
        || only_in(field.name).is_some_and(|only| only != proto)
        || (!proto.is_inet() && NAMES_ONLY_IN_INET.contains(&field.name))
        // Raw sockets have a protocol instead of ports.
        || (proto == Proto::Raw && matches!(field.name, "local_port" | "peer_port"))
}

/// Result of a test on a cell with this word; `None` if it is a regular expression or an order comparison.
pub(super) fn word_test(test: &Test, value: &[u8]) -> Option<bool> {
    match (&test.operand, test.op) {
        (Operand::Words(words), Op::Eq) => Some(words.iter().any(|word| &**word == value)),
        (Operand::Words(words), Op::Ne) => Some(words.iter().all(|word| &**word != value)),
        (Operand::Null, Op::Eq) => Some(false),
        (Operand::Null, Op::Ne) => Some(true),
        _ => None,
    }
}
