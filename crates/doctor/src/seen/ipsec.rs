//! IPsec policies.

use record::Prefix;

use super::drops::DropSeen;

/// The direction of an IPsec policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpsecDirection {
    /// Packets to programs of this host.
    In,
    /// Packets to send.
    Out,
    /// Packets that this host forwards, as they arrive.
    Forward,
}

impl IpsecDirection {
    /// The word that `ip xfrm policy` uses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            IpsecDirection::In => "in",
            IpsecDirection::Out => "out",
            IpsecDirection::Forward => "fwd",
        }
    }
}

/// An IPsec policy that protects or blocks packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpsecPolicy {
    /// The packets that it applies to.
    pub direction: IpsecDirection,
    /// Packets from this prefix.
    pub from: Prefix,
    /// Packets to this prefix.
    pub to: Prefix,
    /// The transport protocol: `tcp`; empty for all.
    pub proto: &'static str,
    /// The destination port; 0 for all.
    pub dport: u16,
    /// Rules are tried in ascending order of this number.
    pub priority: u32,
    /// The kernel's number of it.
    pub index: u32,
    /// True if it drops its packets.
    pub blocks: bool,
    /// The ends of its tunnel: `192.0.2.1 to 192.0.2.2`; empty without one.
    pub tunnel: String,
    /// Number of established states (SAs) that can protect its packets.
    pub states: u32,
    /// Number of states that the key manager was asked for.
    pub larval: u32,
}

impl IpsecPolicy {
    /// True if it applies to the packets.
    pub(crate) fn applies_to(&self, one: &DropSeen) -> bool {
        let Some((from, to)) = one.ends else { return false };
        let is_port = self.dport == 0 || one.ports.is_none_or(|(_, port)| port == self.dport);
        let is_proto = self.proto.is_empty() || self.proto == one.proto;
        self.from.contains(from.unmapped()) && self.to.contains(to.unmapped()) && is_port && is_proto
    }

    /// Its direction and its packets: `out 192.0.2.1 to 198.51.100.0/24`.
    pub(crate) fn words(&self) -> String {
        let proto = if self.proto.is_empty() { String::new() } else { format!(" {}", self.proto) };
        let port = if self.dport == 0 { String::new() } else { format!(" port {}", self.dport) };
        format!("{} {} to {}{proto}{port}", self.direction.name(), self.from, self.to)
    }
}
