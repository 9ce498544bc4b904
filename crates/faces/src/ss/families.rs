//! Conditions on vsock and AF_XDP sockets. ss compares these values in place of ports: a vsock socket's own port
//! numbers, where all ones means any port; for an AF_XDP socket the queue as local port and 0 as peer port.

use super::condition::{Condition, Hosts, Side};
use super::expr::{not, test, truth};
use super::token::Compare;
use record::{Expr, Op, Operand, Proto};

/// Translates a condition without parts to a filter on rows of `proto`, vsock or xdp; `None` for one with parts.
pub(super) fn leaf(condition: &Condition, proto: Proto) -> Option<Expr> {
    let xdp = proto == Proto::Xdp;
    Some(match condition {
        Condition::And(_) | Condition::Or(_) | Condition::Not(_) => return None,
        Condition::Host(side, cond) => match (&cond.hosts, cond.port) {
            (Hosts::Any, None) => truth(true),
            (Hosts::Any, Some(port)) => port_order(*side, Compare::Eq, port, xdp),
            _ => truth(false),
        },
        Condition::Port(side, compare, port) => port_order(*side, *compare, *port, xdp),
        Condition::Dev(index) if xdp => interface(*index),
        Condition::Dev(index) => truth(*index == 0),
        Condition::Mark { value, .. } => truth(*value == 0),
        Condition::Cgroup(_) | Condition::Autobound => truth(false),
    })
}

fn interface(index: u32) -> Expr {
    let operand = if index == 0 { Operand::Null } else { Operand::Number(index.into()) };
    test("ifindex", Op::Eq, operand)
}

fn port_order(side: Side, compare: Compare, port: i64, xdp: bool) -> Expr {
    let above = port.saturating_add(1);
    match compare {
        Compare::Ge => at_least(side, port, xdp),
        Compare::Gt => at_least(side, above, xdp),
        Compare::Lt => not(at_least(side, port, xdp)),
        Compare::Le => not(at_least(side, above, xdp)),
        Compare::Eq => equal(side, port, xdp),
        Compare::Ne => not(equal(side, port, xdp)),
    }
}

fn field(side: Side, xdp: bool) -> Option<&'static str> {
    match (side, xdp) {
        (Side::Local, true) => Some("xdp_queue"),
        (Side::Peer, true) => None,
        (Side::Local, false) => Some("vsock_port"),
        (Side::Peer, false) => Some("vsock_peer_port"),
    }
}

fn equal(side: Side, port: i64, xdp: bool) -> Expr {
    let Some(field) = field(side, xdp) else { return truth(port == 0) };
    match u32::try_from(port) {
        Ok(0) if xdp => Expr::Or(vec![test(field, Op::Eq, Operand::Number(0)), test(field, Op::Eq, Operand::Null)]),
        Ok(port) => test(field, Op::Eq, Operand::Number(port.into())),
        Err(_) => truth(false),
    }
}

/// `PORT >= n`.
fn at_least(side: Side, port: i64, xdp: bool) -> Expr {
    let Some(field) = field(side, xdp) else { return truth(port <= 0) };
    match u32::try_from(port) {
        Ok(port) if port > 0 => test(field, Op::Ge, Operand::Number(port.into())),
        Ok(_) if xdp => truth(true),
        Ok(port) => test(field, Op::Ge, Operand::Number(port.into())),
        Err(_) => truth(port < 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::expr_text;
    use record::Schema;
    use record::rows::Sockets;

    #[test]
    fn ports_are_ports_and_queues() {
        let text = |compare, port, proto| {
            let condition = Condition::Port(Side::Local, compare, port);
            leaf(&condition, proto).map_or_else(String::new, |expr| expr_text(Schema::from_table::<Sockets>(), &expr))
        };
        assert_eq!(text(Compare::Eq, 1234, Proto::Vsock), "vsock_port = 1234");
        assert_eq!(text(Compare::Lt, 70_000, Proto::Vsock), "not vsock_port >= 70000");
        assert_eq!(text(Compare::Gt, 0, Proto::Xdp), "xdp_queue >= 1");
    }
}
