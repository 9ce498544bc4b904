//! The output of the parser: primitives in order, and how `and`, `or`, `not` join them.

use crate::words::{Dir, IdKind, Proto};
use std::net::Ipv6Addr;

/// The qualifiers of a primitive. A bare name or address after `and` or `or` inherits them from
/// the previous primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Qualifiers {
    pub(crate) proto: Proto,
    pub(crate) dir: Dir,
    pub(crate) kind: IdKind,
}

/// The name, number or address after the qualifiers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Id {
    Name(String),
    Number(u32),
    /// Two to four numbers separated by dots.
    Ipv4(String),
    /// `10.0.0.0/8`
    Ipv4Prefix(String, u32),
    /// `10.0.0.0 mask 255.0.0.0`
    Ipv4Mask(String, String),
    /// An address and the length of its prefix, which is 128 if the expression gives none.
    Ipv6(String, Ipv6Addr, u32),
    Ether([u8; 6]),
    Arcnet,
}

/// An arithmetic expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arith {
    Number(u32),
    Len,
    /// `proto[offset:size]`
    Load {
        proto: Proto,
        offset: Box<Arith>,
        size: u32,
    },
    Binary(Operator, Box<Arith>, Box<Arith>),
    Negate(Box<Arith>),
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Greater,
    GreaterOrEqual,
    Equal,
    LessOrEqual,
    Less,
    NotEqual,
}

/// The smallest part of an expression that is true or false for a packet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Primitive {
    /// `tcp`, `ip6`, `stp`
    Proto(Proto),
    /// Qualifiers and their id. The qualifiers are None if there were none to inherit.
    Id(Option<Qualifiers>, Id),
    Relation(Relation, Arith, Arith),
    Broadcast(Proto),
    Multicast(Proto),
    Less(u32),
    Greater(u32),
    /// `byte 0 & 1`
    Byte(u32, u8, u32),
    Inbound,
    Outbound,
    Ifindex(u32),
    Vlan(Option<u32>),
    Mpls(Option<u32>),
    Pppoed,
    Pppoes(Option<u32>),
    Geneve(Option<u32>),
    /// `llc`, and the name of a frame type.
    Llc(Option<String>),
    /// A primitive for link types that we do not support, with the error message that refuses it.
    Foreign(&'static str),
    /// A word defined by the caller (index into its list) and its argument.
    Extra(usize, String),
}

/// A primitive and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub(crate) primitive: Primitive,
    /// Bytes from the beginning of the expression.
    pub(crate) at: usize,
}

/// How terms are joined. Both operators have the same precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    And,
    Or,
}

/// A tree over the leaves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    /// Index of a leaf.
    Leaf(usize),
    Not(Box<Expr>),
    /// Terms that are evaluated from left to right.
    Chain(Box<Expr>, Vec<(Join, Expr)>),
}
