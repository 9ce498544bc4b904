//! What is known of every row of a table before it is read: its protocol, and fields that it never has.
use record::rows::{Sockets, need};
use record::{Expr, Op, Operand, Proto, Table, Test};

use super::{family_word, field_name};
use crate::unix_diag::AF_UNIX;

/// `need` bits whose fields are null in every unix socket.
const NOT_IN_UNIX: u64 =
    need::TCP_INFO | need::CONG | need::CONG_INFO | need::TOS | need::CGROUP | need::SOCKOPT | need::V6ONLY | need::IFACE_MARK;
/// The same for TCP and UDP.
const NOT_IN_INET: u64 = need::UNIX_NAME | need::UNIX_PEER;
/// The same for everything but TCP.
const ONLY_IN_TCP: u64 = need::TCP_INFO | need::CONG | need::CONG_INFO;

/// Fields without such a bit that are null in every unix socket.
const NAMES_NOT_IN_UNIX: &[&str] =
    &["local_addr", "local_port", "peer_addr", "peer_port", "timer", "timer_ms", "retransmits"];

/// The expression with everything decided that is the same for every row of the table, and constants folded: true is
/// an empty `and`, false an empty `or`.
pub(super) fn simplify(part: &Expr, proto: Proto) -> Expr {
    match part {
        Expr::Test(test) => known(test, proto).map_or_else(|| part.clone(), constant),
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

fn known(test: &Test, proto: Proto) -> Option<bool> {
    if is_null(test, proto) {
        // Only `= null` is true of a null.
        return Some(test.op == Op::Eq && test.operand == Operand::Null);
    }
    match (field_name(test), proto) {
        ("proto", _) => word_test(test, proto.name().as_bytes()),
        ("family", Proto::Unix) => word_test(test, family_word(AF_UNIX)),
        _ => None,
    }
}

fn is_null(test: &Test, proto: Proto) -> bool {
    let Some(field) = Sockets::FIELDS.get(test.field) else { return false };
    let never = match proto {
        Proto::Tcp => NOT_IN_INET,
        Proto::Udp => NOT_IN_INET | ONLY_IN_TCP,
        Proto::Unix => NOT_IN_UNIX,
    };
    field.need & never != 0
        || (proto == Proto::Unix && NAMES_NOT_IN_UNIX.contains(&field.name))
        || (proto != Proto::Unix && field.name == "unix_type")
}

/// What a test says of a cell that is this word; `None` if only a regular expression or an order would tell.
pub(super) fn word_test(test: &Test, value: &[u8]) -> Option<bool> {
    match (&test.operand, test.op) {
        (Operand::Words(words), Op::Eq) => Some(words.iter().any(|word| &**word == value)),
        (Operand::Words(words), Op::Ne) => Some(words.iter().all(|word| &**word != value)),
        (Operand::Null, Op::Eq) => Some(false),
        (Operand::Null, Op::Ne) => Some(true),
        _ => None,
    }
}
