//! Addresses and ports of source NAT rules.

use crate::Addr;

/// A range of ports, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
}

impl PortRange {
    /// The number of ports; 0 if the ends are swapped.
    pub fn count(self) -> u64 {
        (u64::from(self.last) + 1).saturating_sub(self.first.into())
    }

    /// True if the range contains `port`.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// The source ports that a rule allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnatPorts {
    /// The rule names no ports: the kernel chooses.
    Any,
    /// The rule names a range.
    In(PortRange),
    /// The rule specifies ports in a way that this program does not understand (a map, an iptables target).
    Unknown,
}

/// A rule that rewrites source addresses: `snat` or `masquerade`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnatRule {
    /// The lowest and the highest new source address; `None` if the rule does not name them (`masquerade`, a map).
    pub addrs: Option<(Addr, Addr)>,
    /// The new source ports.
    pub ports: SnatPorts,
}
