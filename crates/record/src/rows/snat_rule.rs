//! What a rule of source NAT says of addresses and ports.

use crate::Addr;

/// Ports in a row, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
}

impl PortRange {
    /// How many ports it has; 0 if the ends are swapped.
    pub fn count(self) -> u64 {
        (u64::from(self.last) + 1).saturating_sub(self.first.into())
    }

    /// True if `port` is one of them.
    pub fn holds(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// The source ports that a rule allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnatPorts {
    /// The rule names none: the kernel chooses.
    Any,
    /// The rule names a range.
    In(PortRange),
    /// The rule names ports in a way that is not understood (a map, a target of iptables).
    Unknown,
}

/// A rule that rewrites sources: `snat` or `masquerade`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnatRule {
    /// The lowest and the highest address it rewrites to; `None` if the rule does not name them (`masquerade`, a map).
    pub addrs: Option<(Addr, Addr)>,
    /// The ports it rewrites to.
    pub ports: SnatPorts,
}
