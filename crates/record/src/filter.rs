//! A filter as a tree over field indexes: what the engine made of the user's words, and what sources read to find
//! the parts that the kernel can do for them. Evaluating it is the engine's job.

use crate::{Addr, Kind, Prefix};

/// A filter over the fields of one table.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// Every part holds. Empty: true.
    And(Vec<Expr>),
    /// Some part holds. Empty: false.
    Or(Vec<Expr>),
    /// The part does not hold.
    Not(Box<Expr>),
    /// One comparison.
    Test(Test),
}

/// One comparison: field, operator, operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Index into the table's fields.
    pub field: usize,
    /// The operator.
    pub op: Op,
    /// What the field is compared with; its variant fits the field's kind.
    pub operand: Operand,
}

/// Comparison operators. A comparison with a null cell is false; only `Eq Null` is true there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `=`, and `in` for [`Operand::Prefixes`], [`Operand::Ranges`] and [`Operand::Words`].
    Eq,
    /// `!=`, `not in`.
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `~`: the regular expression matches somewhere.
    Match,
    /// `!~`
    NotMatch,
}

impl Op {
    /// The operator of the same comparison seen from its right side.
    pub fn turned(self) -> Op {
        match self {
            Op::Lt => Op::Gt,
            Op::Le => Op::Ge,
            Op::Gt => Op::Lt,
            Op::Ge => Op::Le,
            same => same,
        }
    }
}

/// The right side of a comparison, already in the field's unit.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// `x = null`, `x != null`.
    Null,
    /// true or false.
    Bool(bool),
    /// One number (any operator but match).
    Number(u64),
    /// Numbers and ranges, both ends included: `in (443, 8000-8999)`.
    Ranges(Vec<(u64, u64)>),
    /// `fwmark = 0x10/0xf0`: the field and the mask equal the value.
    Masked {
        /// Value after masking.
        value: u64,
        /// Mask.
        mask: u64,
    },
    /// One address (for ordering operators too).
    Addr(Addr),
    /// Prefixes; a host is a full-length one.
    Prefixes(Vec<Prefix>),
    /// Addresses with ports: one of them is what is wanted.
    Endpoints(Vec<EndpointTest>),
    /// Words or texts; equality is by bytes.
    Words(Vec<Box<[u8]>>),
    /// A regular expression as written.
    Regex(Box<str>),
    /// A member of the objects in a list: any object's member is like that.
    Member {
        /// Name of the member.
        name: &'static str,
        /// Its kind.
        kind: Kind,
        /// What it is compared with.
        operand: Box<Operand>,
    },
    /// A shell pattern (`*`, `?`, `[…]`) as ss takes for unix paths.
    Glob(Box<[u8]>),
    /// Another field of the row, of the same kind; its index.
    Field(usize),
}

/// Addresses and ports that an end may have; what is `None` may be anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndpointTest {
    /// The address lies in it.
    pub prefix: Option<Prefix>,
    /// The port lies between them, both included. An end without a port is none of these.
    pub ports: Option<(u16, u16)>,
}

impl EndpointTest {
    /// True if an end is like that. An IPv4-mapped address lies in IPv4 prefixes.
    pub fn holds(&self, addr: Addr, port: Option<u16>) -> bool {
        let in_prefix = |prefix: Prefix| prefix.contains(addr) || prefix.contains(addr.unmapped());
        self.prefix.is_none_or(in_prefix)
            && self.ports.is_none_or(|(low, high)| port.is_some_and(|port| (low..=high).contains(&port)))
    }
}

impl Expr {
    /// The parts of a top-level `and`, or the expression itself as the only part.
    pub fn into_conjuncts(self) -> Vec<Expr> {
        match self {
            Expr::And(parts) => parts.into_iter().flat_map(Expr::into_conjuncts).collect(),
            other => vec![other],
        }
    }

    /// Calls `each` for every comparison in the tree; for one of two fields twice, once from each side.
    pub fn for_each_test(&self, each: &mut dyn FnMut(&Test)) {
        match self {
            Expr::And(parts) | Expr::Or(parts) => parts.iter().for_each(|p| p.for_each_test(each)),
            Expr::Not(part) => part.for_each_test(each),
            Expr::Test(test) => {
                each(test);
                if let Operand::Field(other) = test.operand {
                    each(&Test { field: other, op: test.op.turned(), operand: Operand::Field(test.field) });
                }
            }
        }
    }
}
