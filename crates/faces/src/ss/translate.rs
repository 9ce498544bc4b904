//! Translates conditions to filters over the field table, one socket table at a time.
//!
//! The field table shows v4-mapped addresses as IPv4 and an absent port or address as null, while ss compares the
//! kernel's values. Each translation notes the difference.

use super::condition::{Condition, HostCond, Hosts, Side};
use super::environment::Environment;
use super::expr::{not, test, truth};
use super::families;
use super::rare;
use super::token::Compare;
use record::{Addr, Expr, Op, Operand, Prefix, Proto};

/// The condition as a filter on rows of `proto`.
pub(super) fn expr(condition: &Condition, proto: Proto, environment: &dyn Environment) -> Expr {
    if matches!(proto, Proto::Vsock | Proto::Xdp) {
        if let Some(expr) = families::leaf(condition, proto) {
            return expr;
        }
    }
    if matches!(proto, Proto::Packet | Proto::Netlink) {
        if let Some(expr) = rare::leaf(condition, proto) {
            return expr;
        }
    }
    match condition {
        Condition::And(parts) => Expr::And(parts.iter().map(|c| expr(c, proto, environment)).collect()),
        Condition::Or(parts) => Expr::Or(parts.iter().map(|c| expr(c, proto, environment)).collect()),
        Condition::Not(inside) => Expr::Not(Box::new(expr(inside, proto, environment))),
        Condition::Host(side, cond) if proto == Proto::Unix => unix_host(*side, cond),
        Condition::Host(side, cond) => inet_host(*side, cond, proto),
        Condition::Port(side, compare, port) => port_order(*side, *compare, *port, proto),
        // Unix sockets have no interface, no cgroup in the kernel's reports, and no mark.
        Condition::Dev(index) if proto == Proto::Unix => truth(*index == 0),
        Condition::Mark { value, .. } if proto == Proto::Unix => truth(*value == 0),
        Condition::Cgroup(_) if proto == Proto::Unix => truth(false),
        Condition::Autobound if proto == Proto::Unix => unix_autobound(),
        Condition::Dev(0) => test("iface", Op::Eq, Operand::Null),
        Condition::Dev(index) => match environment.iface_name(*index) {
            Some(name) => test("iface", Op::Eq, Operand::Words(vec![name.into()])),
            None => truth(false),
        },
        Condition::Mark { value, mask } => mark(*value, *mask),
        Condition::Cgroup(id) => test("cgroup_id", Op::Eq, Operand::Number(*id)),
        // As in ss: the kernel reports whether it chose the port, and the port range is also checked, even under
        // `not`.
        Condition::Autobound => test("autobound", Op::Eq, Operand::Bool(true)),
    }
}

fn port_field(side: Side, proto: Proto) -> &'static str {
    match (proto, side) {
        // ss keeps inodes in place of ports.
        (Proto::Unix, Side::Local) => "inode",
        (Proto::Unix, Side::Peer) => "peer_inode",
        // It also keeps the protocol of a raw socket there.
        (Proto::Raw, Side::Local) => "ip_protocol",
        (_, Side::Local) => "local_port",
        (_, Side::Peer) => "peer_port",
    }
}

/// Largest value of a port, or of an inode.
fn port_max(proto: Proto) -> i64 {
    if proto == Proto::Unix { u32::MAX.into() } else { u16::MAX.into() }
}

fn port_is(side: Side, port: i64, proto: Proto) -> Expr {
    let field = port_field(side, proto);
    match port {
        0 => test(field, Op::Eq, Operand::Null),
        n if n > 0 && n <= port_max(proto) => test(field, Op::Eq, Operand::Number(n as u64)),
        _ => truth(false),
    }
}

/// `PORT >= n`. Port 0 is null in the field.
fn port_at_least(side: Side, port: i64, proto: Proto) -> Expr {
    match port {
        n if n <= 0 => truth(true),
        n if n > port_max(proto) => truth(false),
        n => test(port_field(side, proto), Op::Ge, Operand::Number(n as u64)),
    }
}

fn port_order(side: Side, compare: Compare, port: i64, proto: Proto) -> Expr {
    let above = port.saturating_add(1);
    match compare {
        Compare::Ge => port_at_least(side, port, proto),
        Compare::Gt => port_at_least(side, above, proto),
        Compare::Lt => not(port_at_least(side, port, proto)),
        Compare::Le => not(port_at_least(side, above, proto)),
        Compare::Eq => port_is(side, port, proto),
        Compare::Ne => not(port_is(side, port, proto)),
    }
}

fn inet_host(side: Side, cond: &HostCond, proto: Proto) -> Expr {
    let port = cond.port.map(|port| port_is(side, port, proto));
    let hosts = match &cond.hosts {
        Hosts::Any => None,
        Hosts::Unix(_) | Hosts::Protocol(_) => Some(truth(false)),
        Hosts::Prefixes(prefixes) => Some(any_of(prefixes, side)),
    };
    match (hosts, port) {
        (None, None) => truth(true),
        (Some(one), None) | (None, Some(one)) => one,
        (Some(hosts), Some(port)) => Expr::And(vec![hosts, port]),
    }
}

fn family(word: &str) -> Expr {
    test("family", Op::Eq, Operand::Words(vec![word.as_bytes().into()]))
}

/// `::ffff:0:0`, the prefix of v4-mapped addresses.
const MAPPED: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0];

fn any_of(prefixes: &[Prefix], side: Side) -> Expr {
    let field = if side == Side::Local { "local_addr" } else { "peer_addr" };
    let mut ways = vec![test(field, Op::Eq, Operand::Prefixes(prefixes.to_vec()))];
    for prefix in prefixes {
        let family = || family(if matches!(prefix.addr(), Addr::V4(_)) { "inet" } else { "inet6" });
        if prefix.contains(prefix_any(prefix)) {
            // An unset address is null in the field, but the wildcard address in the kernel's message.
            ways.push(Expr::And(vec![family(), test(field, Op::Eq, Operand::Null)]));
        }
        if let Some(inside) = mapped_part(prefix) {
            ways.push(Expr::And(vec![family(), test(field, Op::Eq, Operand::Prefixes(vec![inside]))]));
        }
    }
    match ways.len() {
        1 => ways.remove(0),
        _ => Expr::Or(ways),
    }
}

fn prefix_any(prefix: &Prefix) -> Addr {
    match prefix.addr() {
        Addr::V4(_) => Addr::ANY4,
        Addr::V6(_) => Addr::ANY6,
    }
}

/// The v4-mapped addresses of an IPv6 prefix, as IPv4.
fn mapped_part(prefix: &Prefix) -> Option<Prefix> {
    let Addr::V6(octets) = prefix.addr() else { return None };
    if prefix.len() <= 96 {
        return prefix.contains(Addr::V6(MAPPED)).then(|| Prefix::new(Addr::ANY4, 0)).flatten();
    }
    let [.., a, b, c, d] = octets;
    octets.starts_with(&MAPPED[..12]).then(|| Prefix::new(Addr::V4([a, b, c, d]), prefix.len() - 96)).flatten()
}

/// A condition on the mark. A mark of 0 is null in the field.
fn mark(value: u32, mask: u32) -> Expr {
    let masked = test("mark", Op::Eq, Operand::Masked { value: value.into(), mask: mask.into() });
    if value != 0 {
        return masked;
    }
    Expr::Or(vec![masked, test("mark", Op::Eq, Operand::Null)])
}

fn unix_host(side: Side, cond: &HostCond) -> Expr {
    match (&cond.hosts, side) {
        (Hosts::Unix(pattern), Side::Local) => unix_path(pattern),
        // ss has no name for the peer, so it matches the pattern against empty text.
        (Hosts::Unix(pattern), Side::Peer) => truth(takes_nothing(pattern)),
        (Hosts::Any, side) => cond.port.map_or(truth(true), |port| port_is(side, port, Proto::Unix)),
        (Hosts::Prefixes(_) | Hosts::Protocol(_), _) => truth(false),
    }
}

fn takes_nothing(pattern: &[u8]) -> bool {
    pattern.iter().all(|&b| b == b'*')
}

fn unix_path(pattern: &[u8]) -> Expr {
    let named = test("path", Op::Match, Operand::Regex(pattern_as_regex(pattern).into()));
    if takes_nothing(pattern) {
        return Expr::Or(vec![named, test("path", Op::Eq, Operand::Null)]);
    }
    named
}

/// Matches sockets without a name, or with a name made by the kernel: NUL and five hex digits.
fn unix_autobound() -> Expr {
    let made_up = test("path", Op::Match, Operand::Regex(r"\A\x00[0-9a-f]{5}\z".into()));
    Expr::Or(vec![made_up, test("path", Op::Eq, Operand::Null)])
}

/// Translates a shell pattern over the displayed name (ignoring case, `@` for NUL) to a regular expression over its
/// bytes.
fn pattern_as_regex(pattern: &[u8]) -> String {
    let mut regex = String::from(r"(?is)\A");
    let mut rest = pattern;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'*' => regex.push_str(".*"),
            b'?' => regex.push('.'),
            b'[' => match set(tail) {
                Some((set, behind)) => {
                    regex.push_str(&set);
                    rest = behind;
                }
                None => regex.push_str(r"\["),
            },
            b'\\' => {
                let Some((escaped, behind)) = tail.split_first() else { break };
                literal(&mut regex, *escaped);
                rest = behind;
            }
            other => literal(&mut regex, *other),
        }
    }
    regex + r"\z"
}

fn literal(regex: &mut String, byte: u8) {
    match byte {
        b'@' => regex.push_str(r"[@\x00]"),
        b if b.is_ascii_alphanumeric() => regex.push(b.into()),
        b => regex.push_str(&format!(r"\x{b:02x}")),
    }
}

/// Parses a bracket set after its opening bracket; None if it is not closed.
fn set(inside: &[u8]) -> Option<(String, &[u8])> {
    let (negated, members) = match inside {
        [b'!' | b'^', members @ ..] => (true, members),
        members => (false, members),
    };
    // A closing bracket in first position is a member.
    let end = 1 + members.get(1..)?.iter().position(|&b| b == b']')?;
    let (members, behind) = members.split_at_checked(end)?;
    let mut set = String::from(if negated { "[^" } else { "[" });
    for (i, &member) in members.iter().enumerate() {
        match member {
            b'-' if i > 0 && i + 1 < members.len() => set.push('-'),
            b'@' => set.push_str(r"@\x00"),
            b => set.push_str(&format!(r"\x{b:02x}")),
        }
    }
    Some((set + "]", behind.get(1..)?))
}
