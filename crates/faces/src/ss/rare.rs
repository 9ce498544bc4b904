//! Conditions on packet and netlink sockets, with the values that ss keeps in place of addresses and ports.
//!
//! For a packet socket the address is its protocol and the port is its interface index. For a netlink socket the
//! address is its protocol and the port is its port id, read as a signed number. Peer values are 0, except a netlink
//! socket's peer port, which is -1.

use super::condition::{Condition, HostCond, Hosts, Side};
use super::expr::{not, test, truth};
use super::token::Compare;
use record::rows::NetlinkProtocol;
use record::{Expr, Op, Operand, Proto};

/// Translates a condition without parts to a filter on rows of `proto`, packet or netlink; `None` for one with parts.
pub(super) fn leaf(condition: &Condition, proto: Proto) -> Option<Expr> {
    let packet = proto == Proto::Packet;
    Some(match condition {
        Condition::And(_) | Condition::Or(_) | Condition::Not(_) => return None,
        Condition::Host(side, cond) => host(*side, cond, packet),
        Condition::Port(side, compare, port) => port_order(*side, *compare, *port, packet),
        Condition::Dev(0) if packet => test("ifindex", Op::Eq, Operand::Null),
        Condition::Dev(index) if packet => test("ifindex", Op::Eq, Operand::Number((*index).into())),
        Condition::Dev(index) => truth(*index == 0),
        Condition::Mark { value, .. } => truth(*value == 0),
        Condition::Cgroup(_) => truth(false),
        Condition::Autobound if packet => {
            let unbound = test("ifindex", Op::Eq, Operand::Null);
            Expr::And(vec![unbound, test("ethertype", Op::Eq, Operand::Number(0))])
        }
        Condition::Autobound => negative(),
    })
}

/// A port id that ss reads as a negative number: the kernel chose it.
fn negative() -> Expr {
    test("portid", Op::Gt, Operand::Number(i32::MAX as u64))
}

fn host(side: Side, cond: &HostCond, packet: bool) -> Expr {
    let protocol = match (&cond.hosts, side) {
        (Hosts::Any, _) => truth(true),
        (Hosts::Protocol(number), Side::Peer) => truth(*number == 0),
        (Hosts::Protocol(number), _) if packet => test("ethertype", Op::Eq, Operand::Number((*number).into())),
        (Hosts::Protocol(number), _) => netlink_protocol(*number),
        (Hosts::Unix(_) | Hosts::Prefixes(_), _) => truth(false),
    };
    match cond.port {
        None => protocol,
        Some(port) if cond.hosts == Hosts::Any => equal(side, port, packet),
        Some(port) => Expr::And(vec![protocol, equal(side, port, packet)]),
    }
}

/// All protocol numbers without a name share one word in the field; no socket uses those numbers in practice.
fn netlink_protocol(number: u16) -> Expr {
    match u8::try_from(number).map(|n| NetlinkProtocol(n).name()) {
        Ok(word) if word != "unknown" => test("netlink_protocol", Op::Eq, Operand::Words(vec![word.as_bytes().into()])),
        _ => truth(false),
    }
}

fn port_order(side: Side, compare: Compare, port: i64, packet: bool) -> Expr {
    let above = port.saturating_add(1);
    match compare {
        Compare::Ge => at_least(side, port, packet),
        Compare::Gt => at_least(side, above, packet),
        Compare::Lt => not(at_least(side, port, packet)),
        Compare::Le => not(at_least(side, above, packet)),
        Compare::Eq => equal(side, port, packet),
        Compare::Ne => not(equal(side, port, packet)),
    }
}

fn equal(side: Side, port: i64, packet: bool) -> Expr {
    match (side, packet) {
        (Side::Peer, true) => truth(port == 0),
        (Side::Peer, false) => truth(port == -1),
        (Side::Local, true) if port == 0 => test("ifindex", Op::Eq, Operand::Null),
        (Side::Local, true) => match u32::try_from(port) {
            Ok(index) => test("ifindex", Op::Eq, Operand::Number(index.into())),
            Err(_) => truth(false),
        },
        (Side::Local, false) => match i32::try_from(port) {
            Ok(n) => test("portid", Op::Eq, Operand::Number((n as u32).into())),
            Err(_) => truth(false),
        },
    }
}

/// `PORT >= n`
fn at_least(side: Side, port: i64, packet: bool) -> Expr {
    match (side, packet) {
        (Side::Peer, true) => truth(port <= 0),
        (Side::Peer, false) => truth(port <= -1),
        (Side::Local, true) if port <= 0 => truth(true),
        (Side::Local, true) => match u64::try_from(port) {
            Ok(index) => test("ifindex", Op::Ge, Operand::Number(index)),
            Err(_) => truth(true),
        },
        (Side::Local, false) => match (i32::try_from(port), port > 0) {
            (Err(_), above) => truth(!above),
            (Ok(n), _) if n < 0 => {
                // -1 is the largest unsigned number, so all non-negative numbers follow it in ss's order.
                let number = Operand::Number((n as u32).into());
                Expr::Or(vec![test("portid", Op::Ge, number), not(negative())])
            }
            (Ok(n), _) => Expr::And(vec![test("portid", Op::Ge, Operand::Number(n as u64)), not(negative())]),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::expr_text;
    use record::Schema;
    use record::rows::Sockets;

    fn text(condition: &Condition, proto: Proto) -> String {
        leaf(condition, proto).map_or_else(String::new, |expr| expr_text(Schema::from_table::<Sockets>(), &expr))
    }

    #[test]
    fn ports_are_interfaces_and_port_ids() {
        let order = |compare, port| Condition::Port(Side::Local, compare, port);
        assert_eq!(text(&order(Compare::Ge, 2), Proto::Packet), "ifindex >= 2");
        assert_eq!(text(&order(Compare::Lt, 2), Proto::Packet), "not ifindex >= 2");
        assert_eq!(text(&order(Compare::Ge, 7), Proto::Netlink), "portid >= 7 and not portid > 2147483647");
        assert_eq!(text(&order(Compare::Ge, -1), Proto::Netlink), "portid >= 4294967295 or not portid > 2147483647");
        assert_eq!(text(&Condition::Dev(3), Proto::Packet), "ifindex = 3");
        assert_eq!(text(&Condition::Autobound, Proto::Netlink), "portid > 2147483647");
    }

    #[test]
    fn addresses_are_protocols() {
        let of = |hosts| Condition::Host(Side::Local, HostCond { port: None, hosts });
        assert_eq!(text(&of(Hosts::Protocol(0x800)), Proto::Packet), "ethertype = 2048");
        assert_eq!(text(&of(Hosts::Protocol(0)), Proto::Netlink), "netlink_protocol = route");
    }
}
