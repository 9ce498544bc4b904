//! Endpoints in filters (`local`, `peer`): an address, a port or both in one word.

use super::literal;
use record::{EndpointTest, Expr, Op, Operand, Prefix, Test};

/// One end of a connection; a part that is `None` may have any value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Endpoint {
    prefix: Option<Prefix>,
    ports: Option<(u64, u64)>,
}

/// Parses `10.1.2.3`, `10.0.0.0/8`, `10.1.2.3:443`, `[2001:db8::1]:443`, `2001:db8::1`, `:443`, `:8000-8999`.
pub(super) fn parse(text: &str) -> Option<Endpoint> {
    if let Some(prefix) = literal::prefix(text) {
        return Some(Endpoint { prefix: Some(prefix), ports: None });
    }
    let (host, port) = text.rsplit_once(':')?;
    let (low, high) = port.split_once('-').unwrap_or((port, port));
    let ports = (port_number(low)?, port_number(high)?);
    if ports.0 > ports.1 {
        return None;
    }
    // An IPv6 address with a port needs brackets: `::1:443` is itself an address.
    if host.contains(':') && !host.starts_with('[') {
        return None;
    }
    let prefix = if host.is_empty() || host == "*" { None } else { Some(literal::prefix(host)?) };
    Some(Endpoint { prefix, ports: Some(ports) })
}

/// Parses a port in decimal digits.
fn port_number(text: &str) -> Option<u64> {
    literal::parse_plain(text).ok().filter(|&n| n <= u64::from(u16::MAX))
}

impl Endpoint {
    /// Returns the endpoint as a test of two fields: `op` is `Eq` (both hold) or `Ne` (either does not).
    pub(super) fn to_expr(self, addr: usize, port: usize, op: Op) -> Expr {
        let mut parts = Vec::new();
        if let Some(prefix) = self.prefix {
            let is_host = prefix.len() == prefix.addr().bits();
            let operand = if is_host { Operand::Addr(prefix.addr()) } else { Operand::Prefixes(vec![prefix]) };
            parts.push(Expr::Test(Test { field: addr, op, operand }));
        }
        if let Some((low, high)) = self.ports {
            let operand = if low == high { Operand::Number(low) } else { Operand::Ranges(vec![(low, high)]) };
            parts.push(Expr::Test(Test { field: port, op, operand }));
        }
        match (parts.len(), op) {
            (1, _) => parts.remove(0),
            (_, Op::Ne) => Expr::Or(parts),
            _ => Expr::And(parts),
        }
    }

    /// Returns the endpoint as a test of one cell with address and port.
    pub(super) fn to_test(self) -> EndpointTest {
        let port = |n: u64| u16::try_from(n).unwrap_or(u16::MAX);
        EndpointTest { prefix: self.prefix, ports: self.ports.map(|(low, high)| (port(low), port(high))) }
    }

    /// Returns the prefix, if no port was given.
    pub(super) fn only_prefix(self) -> Option<Prefix> {
        self.prefix.filter(|_| self.ports.is_none())
    }
}
