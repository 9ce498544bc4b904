//! Filters as trees over field indexes. The engine builds a tree from the user's words; sources read it to find the
//! parts that the kernel can evaluate. The engine evaluates the rest.

use crate::{Addr, FarTime, Kind, Prefix};

/// A filter over the fields of one table.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// All parts hold. An empty list is true.
    And(Vec<Expr>),
    /// At least one part holds. An empty list is false.
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
    /// The value that the field is compared with; its variant fits the field's kind.
    pub operand: Operand,
}

/// Comparison operators. A comparison with a null cell is false, except `Eq Null`.
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
    /// The operator of the same comparison with its two sides swapped.
    pub fn swapped(self) -> Op {
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
    /// One number (any operator except match).
    Number(u64),
    /// One point in time that no number of ns since 1970 holds (any operator but match).
    FarTime(FarTime),
    /// Numbers and ranges, both ends included: `in (443, 8000-8999)`.
    Ranges(Vec<(u64, u64)>),
    /// `fwmark = 0x10/0xf0`: the field and the mask equal the value.
    Masked {
        /// Value after masking.
        value: u64,
        /// Mask.
        mask: u64,
    },
    /// One address (also for ordering operators).
    Addr(Addr),
    /// Prefixes; a host is a prefix of full length.
    Prefixes(Vec<Prefix>),
    /// Addresses with ports; the field must match one of them.
    Endpoints(Vec<EndpointTest>),
    /// Words or texts, compared byte by byte.
    Words(Vec<Box<[u8]>>),
    /// A regular expression as written.
    Regex(Box<str>),
    /// A member of the objects in a list: the test holds if it holds for any of the objects.
    Member {
        /// Name of the member.
        name: &'static str,
        /// Its kind.
        kind: Kind,
        /// The value that the member is compared with.
        operand: Box<Operand>,
    },
    /// A shell pattern (`*`, `?`, `[…]`), as ss accepts it for unix paths.
    Glob(Box<[u8]>),
    /// Index of another field of the row, of the same kind.
    Field(usize),
}

/// The addresses and ports that an endpoint may have; `None` matches anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndpointTest {
    /// The prefix that must contain the address.
    pub prefix: Option<Prefix>,
    /// The range that must contain the port, both ends included. An endpoint without a port does not match.
    pub ports: Option<(u16, u16)>,
}

impl EndpointTest {
    /// True if the endpoint matches. An IPv4-mapped address is in the IPv4 prefixes of its IPv4 address.
    pub fn matches(&self, addr: Addr, port: Option<u16>) -> bool {
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

    /// Calls `each` for every comparison in the tree. A comparison of two fields is visited twice, once from each
    /// side.
    pub fn for_each_test(&self, each: &mut dyn FnMut(&Test)) {
        match self {
            Expr::And(parts) | Expr::Or(parts) => parts.iter().for_each(|p| p.for_each_test(each)),
            Expr::Not(part) => part.for_each_test(each),
            Expr::Test(test) => {
                each(test);
                if let Operand::Field(other) = test.operand {
                    each(&Test { field: other, op: test.op.swapped(), operand: Operand::Field(test.field) });
                }
            }
        }
    }
}
