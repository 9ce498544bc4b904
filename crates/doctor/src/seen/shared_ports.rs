//! UDP ports that several programs have bound.

use super::ends::Holder;

/// A UDP port and address that sockets of different programs have bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPort {
    /// Address and port: `0.0.0.0:514`.
    pub name: String,
    /// The port.
    pub port: u16,
    /// One process of each program; if `is_part`, the one with the address comes first.
    pub programs: Vec<Holder>,
    /// True if some are bound to this address, and others to all addresses: those get what is sent to other addresses.
    pub is_part: bool,
    /// True if the namespace has joined multicast groups of which each socket may receive a copy.
    pub may_be_group: bool,
}
