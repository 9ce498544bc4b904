//! What the parser has read: primitives in their order, and how `and`, `or`, `not` join them.

use crate::words::{Dir, IdKind, Proto};
use std::net::Ipv6Addr;

/// The qualifiers of a primitive; a bare name or address after `and` or `or` takes those of the primitive before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Qualifiers {
    pub(crate) proto: Proto,
    pub(crate) dir: Dir,
    pub(crate) kind: IdKind,
}

/// What qualifiers are applied to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Id {
    Name(String),
    Number(u32),
    /// Two to four numbers with dots.
    Ipv4(String),
    /// `10.0.0.0/8`
    Ipv4Prefix(String, u32),
    /// `10.0.0.0 mask 255.0.0.0`
    Ipv4Mask(String, String),
    /// An address and the length of its prefix, which is 128 where none was given.
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

/// What joins two numbers.
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

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Greater,
    GreaterOrEqual,
    Equal,
    LessOrEqual,
    Less,
    NotEqual,
}

/// The smallest thing that is true or false of a packet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Primitive {
    /// `tcp`, `ip6`, `stp`
    Proto(Proto),
    /// Qualifiers and what they are applied to; None where there were none to inherit.
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
    /// `llc`, and the name of a type of frames.
    Llc(Option<String>),
    /// A primitive of link types that are not ours; the sentence that refuses it.
    Foreign(&'static str),
    /// A word of the caller's (index into its list) and its argument.
    Extra(usize, String),
}

/// A primitive and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub(crate) primitive: Primitive,
    /// Bytes from the beginning of the expression.
    pub(crate) at: usize,
}

/// How terms are joined; both have the same precedence.
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
    /// From left to right.
    Chain(Box<Expr>, Vec<(Join, Expr)>),
}
