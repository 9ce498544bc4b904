//! Filters that the kernel runs: a small condition tree, compiled to INET_DIAG bytecode.
//!
//! Bytecode is a list of conditional forward jumps (net/ipv4/inet_diag.c, inet_diag_bc_run): each operation has a `yes`
//! distance of one byte, which here is always its own length, and a `no` distance of two bytes. A program accepts a
//! socket by jumping to its very end, and rejects it by jumping four bytes beyond the end. So execution falls through
//! after a condition that holds and jumps after one that fails; `and`, `or`, `not` only choose the jump targets.
//!
//! Knows no fields, operators or filter syntax: `pushdown` translates those into a [`Code`].
use std::fmt;

use record::rows::Socket;
use record::{Addr, Prefix};

use crate::address_families::{AF_INET, AF_INET6};

#[cfg(test)]
mod kernel;
#[cfg(test)]
pub(crate) mod tests;

/// A longer program is not worth the kernel's audit, which loops over the whole program for every jump.
pub(crate) const PROGRAM_BYTES_MAX: usize = 16 << 10;

// Operations, `INET_DIAG_BC_…`.
pub(crate) const JMP: u8 = 1;
pub(crate) const S_GE: u8 = 2;
pub(crate) const S_LE: u8 = 3;
pub(crate) const D_GE: u8 = 4;
pub(crate) const D_LE: u8 = 5;
pub(crate) const AUTO: u8 = 6;
pub(crate) const S_COND: u8 = 7;
pub(crate) const D_COND: u8 = 8;
pub(crate) const DEV_COND: u8 = 9;
/// Needs CAP_NET_ADMIN; without it the kernel refuses the whole request with EPERM.
pub(crate) const MARK_COND: u8 = 10;
/// Since 4.16.
pub(crate) const S_EQ: u8 = 11;
/// Since 4.16.
pub(crate) const D_EQ: u8 = 12;
/// Since 5.8.
pub(crate) const CGROUP_COND: u8 = 13;

/// The local or the remote endpoint of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointSide {
    Local,
    Peer,
}

/// A condition that the kernel can test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cond {
    /// The port is in this range, both bounds included.
    Port { side: EndpointSide, low: u16, high: u16 },
    /// The address is in the prefix and the port, if given, is this one. An IPv4 prefix also matches IPv4-mapped
    /// addresses; an IPv6 prefix never matches the address of an AF_INET socket, not even `::/0`.
    Host { side: EndpointSide, prefix: Prefix, port: Option<u16> },
    /// Bound to this interface; 0 means not bound to any.
    Iface(u32),
    /// The mark, masked with `mask`, is this value.
    Mark { value: u32, mask: u32 },
    /// Created in the cgroup with this id; 0 for minisocks.
    Cgroup(u64),
    /// The kernel chose the port, not bind(2). Rows do not show this.
    Auto,
}

/// A condition tree. Build it with [`Code::and`], [`Code::or`], [`Code::not`], which fold constants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Code {
    True,
    False,
    Cond(Cond),
    And(Vec<Code>),
    Or(Vec<Code>),
    Not(Box<Code>),
}

impl Code {
    pub(crate) fn and(parts: impl IntoIterator<Item = Code>) -> Code {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Code::True => {}
                Code::False => return Code::False,
                Code::And(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match (kept.len(), kept.pop()) {
            (_, None) => Code::True,
            (1, Some(only)) => only,
            (_, Some(last)) => {
                kept.push(last);
                Code::And(kept)
            }
        }
    }

    pub(crate) fn or(parts: impl IntoIterator<Item = Code>) -> Code {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Code::False => {}
                Code::True => return Code::True,
                Code::Or(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match (kept.len(), kept.pop()) {
            (_, None) => Code::False,
            (1, Some(only)) => only,
            (_, Some(last)) => {
                kept.push(last);
                Code::Or(kept)
            }
        }
    }

    pub(crate) fn not(part: Code) -> Code {
        match part {
            Code::True => Code::False,
            Code::False => Code::True,
            Code::Not(inner) => *inner,
            other => Code::Not(Box::new(other)),
        }
    }

    /// True if the kernel would accept the row, or if the row does not show whether it would. For backends that cannot
    /// filter.
    pub(crate) fn accepts(&self, row: &Socket<'_>) -> bool {
        self.may_hold(row, true)
    }

    // `unknown` is the result of conditions that the row does not show; it is inverted below a `not`.
    fn may_hold(&self, row: &Socket<'_>, unknown: bool) -> bool {
        match self {
            Code::True => true,
            Code::False => false,
            Code::Cond(Cond::Auto) => unknown,
            Code::Cond(cond) => cond.accepts_row(row),
            Code::And(parts) => parts.iter().all(|part| part.may_hold(row, unknown)),
            Code::Or(parts) => parts.iter().any(|part| part.may_hold(row, unknown)),
            Code::Not(part) => !part.may_hold(row, !unknown),
        }
    }

    /// Returns the program: empty for [`Code::True`], `None` if it would be longer than [`PROGRAM_BYTES_MAX`].
    pub(crate) fn compile(&self) -> Option<Vec<u8>> {
        let mut assembler = Assembler::default();
        assembler.emit(self, REJECT);
        assembler.finish()
    }
}

impl Cond {
    fn accepts_row(&self, row: &Socket<'_>) -> bool {
        match *self {
            Cond::Port { side, low, high } => (low..=high).contains(&end(row, side).port),
            Cond::Host { side, prefix, port } => {
                let end = end(row, side);
                port.is_none_or(|port| port == end.port) && prefix.contains(end.addr)
            }
            Cond::Iface(index) => row.ifindex == index,
            Cond::Mark { value, mask } => row.mark.unwrap_or(0) & mask == value,
            Cond::Cgroup(id) => row.cgroup_id.unwrap_or(0) == id,
            // Handled above.
            Cond::Auto => true,
        }
    }
}

fn end(row: &Socket<'_>, side: EndpointSide) -> record::rows::Endpoint {
    match side {
        EndpointSide::Local => row.local,
        EndpointSide::Peer => row.peer,
    }
}

/// Index of a place in the program that is not known yet.
type Label = usize;

/// Label of rejection: four bytes beyond the end.
const REJECT: Label = 0;

/// Writes operations, and fills in the distances once all places are known.
#[derive(Debug)]
struct Assembler {
    program: Vec<u8>,
    /// Start of each operation with a jump, and the target if its condition does not hold.
    jumps: Vec<(usize, Label)>,
    /// Offsets of the labels; 0 until bound (nothing jumps to the start).
    places: Vec<usize>,
}

impl Default for Assembler {
    fn default() -> Assembler {
        Assembler { program: Vec::new(), jumps: Vec::new(), places: vec![0] }
    }
}

impl Assembler {
    // Emits code that falls through if the tree holds and jumps to `fail` if it does not.
    fn emit(&mut self, code: &Code, fail: Label) {
        match code {
            Code::True => {}
            Code::False => self.op(JMP, &[], fail),
            Code::Cond(cond) => self.cond(cond, fail),
            Code::And(parts) => parts.iter().for_each(|part| self.emit(part, fail)),
            Code::Or(parts) => self.any_of(parts, fail),
            Code::Not(part) => {
                let holds_not = self.label();
                self.emit(part, holds_not);
                self.op(JMP, &[], fail);
                self.bind(holds_not);
            }
        }
    }

    fn any_of(&mut self, parts: &[Code], fail: Label) {
        let Some((last, first)) = parts.split_last() else { return self.op(JMP, &[], fail) };
        let holds = self.label();
        for part in first {
            let next = self.label();
            self.emit(part, next);
            self.op(JMP, &[], holds);
            self.bind(next);
        }
        self.emit(last, fail);
        self.bind(holds);
    }

    fn cond(&mut self, cond: &Cond, fail: Label) {
        match *cond {
            Cond::Port { side, low, high } => self.port(side, low, high, fail),
            Cond::Host { side, prefix, port } => self.host(side, prefix, port, fail),
            Cond::Iface(index) => self.op(DEV_COND, &index.to_ne_bytes(), fail),
            Cond::Mark { value, mask } => {
                // struct inet_diag_markcond
                let [a, b, c, d] = value.to_ne_bytes();
                let [e, f, g, h] = mask.to_ne_bytes();
                self.op(MARK_COND, &[a, b, c, d, e, f, g, h], fail);
            }
            Cond::Cgroup(id) => self.op(CGROUP_COND, &id.to_ne_bytes(), fail),
            Cond::Auto => self.op(AUTO, &[], fail),
        }
    }

    fn port(&mut self, side: EndpointSide, low: u16, high: u16, fail: Label) {
        let (equal, at_least, at_most) = match side {
            EndpointSide::Local => (S_EQ, S_GE, S_LE),
            EndpointSide::Peer => (D_EQ, D_GE, D_LE),
        };
        // The port is stored in the `no` field of an additional operation, in host byte order.
        let operand = |port: u16| {
            let [a, b] = port.to_ne_bytes();
            [0, 0, a, b]
        };
        if low == high {
            return self.op(equal, &operand(low), fail);
        }
        if low > 0 {
            self.op(at_least, &operand(low), fail);
        }
        if high < u16::MAX {
            self.op(at_most, &operand(high), fail);
        }
    }

    fn host(&mut self, side: EndpointSide, prefix: Prefix, port: Option<u16>, fail: Label) {
        let code = if side == EndpointSide::Local { S_COND } else { D_COND };
        let family = if matches!(prefix.addr(), Addr::V4(_)) { AF_INET } else { AF_INET6 };
        // struct inet_diag_hostcond: family, prefix_len, two bytes of padding, port s32 (-1 any), address
        let mut cond = [0; 24];
        (cond[0], cond[1]) = (family, prefix.len());
        cond[4..8].copy_from_slice(&port.map_or(-1, i32::from).to_ne_bytes());
        let addr = prefix.addr();
        let octets = addr.octets();
        let end = 8 + octets.len();
        cond[8..end].copy_from_slice(octets);
        self.op(code, &cond[..end], fail);
    }

    // Emits one operation: struct inet_diag_bc_op (code u8, yes u8, no u16) and its operand.
    fn op(&mut self, code: u8, operand: &[u8], fail: Label) {
        self.jumps.push((self.program.len(), fail));
        // The longest operand has 24 bytes.
        self.program.extend_from_slice(&[code, 4 + operand.len() as u8, 0, 0]);
        self.program.extend_from_slice(operand);
    }

    fn label(&mut self) -> Label {
        self.places.push(0);
        self.places.len() - 1
    }

    fn bind(&mut self, label: Label) {
        if let Some(place) = self.places.get_mut(label) {
            *place = self.program.len();
        }
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        if self.program.len() > PROGRAM_BYTES_MAX {
            return None;
        }
        let reject = self.program.len() + 4;
        for (at, label) in self.jumps {
            let to = if label == REJECT { reject } else { *self.places.get(label)? };
            let distance = u16::try_from(to.checked_sub(at)?).ok()?;
            self.program.get_mut(at + 2..at + 4)?.copy_from_slice(&distance.to_ne_bytes());
        }
        Some(self.program)
    }
}

impl fmt::Display for Cond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |side| if side == EndpointSide::Local { "local" } else { "peer" };
        match self {
            Cond::Port { side, low, high } if low == high => write!(f, "{}_port = {low}", word(*side)),
            Cond::Port { side, low, high } => write!(f, "{}_port in {low}-{high}", word(*side)),
            Cond::Host { side, prefix, port } => {
                write!(f, "{} in {prefix}", word(*side))?;
                port.map_or(Ok(()), |port| write!(f, " with port {port}"))
            }
            Cond::Iface(index) => write!(f, "interface {index}"),
            Cond::Mark { value, mask: u32::MAX } => write!(f, "mark = {value:#x}"),
            Cond::Mark { value, mask } => write!(f, "mark = {value:#x}/{mask:#x}"),
            Cond::Cgroup(id) => write!(f, "cgroup_id = {id}"),
            Cond::Auto => f.write_str("autobound"),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Code], word: &str| {
            for (i, part) in parts.iter().enumerate() {
                let between = if i > 0 { word } else { "" };
                match part {
                    Code::And(_) | Code::Or(_) => write!(f, "{between}({part})")?,
                    part => write!(f, "{between}{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Code::True => f.write_str("everything"),
            Code::False => f.write_str("nothing"),
            Code::Cond(cond) => cond.fmt(f),
            Code::And(parts) => joined(f, parts, " and "),
            Code::Or(parts) => joined(f, parts, " or "),
            Code::Not(part) => write!(f, "not ({part})"),
        }
    }
}
