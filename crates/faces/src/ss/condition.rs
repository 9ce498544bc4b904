//! An ss expression, before it is translated to fields.

use super::token::Compare;
use record::Prefix;

/// An end of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Local,
    Peer,
}

/// An address condition: `src 10.0.0.0/8:80`, `sport = :22`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct HostCond {
    /// None matches any port. Port numbers out of range are kept: they match no socket.
    pub(super) port: Option<i64>,
    pub(super) hosts: Hosts,
}

/// The address part.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Hosts {
    Any,
    /// Matches any of these prefixes.
    Prefixes(Vec<Prefix>),
    /// The protocol of a packet or netlink socket.
    Protocol(u16),
    /// A shell pattern for the name of a unix socket.
    Unix(Vec<u8>),
}

/// A condition on a socket.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Host(Side, HostCond),
    /// A comparison (less or greater) of ports. Equality is a [`Condition::Host`].
    Port(Side, Compare, i64),
    /// Index of an interface; 0 means no interface.
    Dev(u32),
    Mark {
        value: u32,
        mask: u32,
    },
    Cgroup(u64),
    Autobound,
}
