//! Packets that the kernel dropped, by reason and place.

use record::Addr;
use record::rows::NetfilterHook;

use super::cause::cause_of;
use super::controls::ControlKind;

/// Ports that traceroute counts up from the first, one for each probe: three for each of 255 hops at most.
const TRACEROUTE_PORTS: std::ops::Range<u16> = 33_434..33_434 + 3 * 255;

/// The bit of ACK in the flags of a TCP segment.
const ACK: u8 = 16;

/// Packets that the kernel dropped for one reason at one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DropSeen {
    /// The kernel's name for the reason.
    pub reason: String,
    /// The function that dropped them.
    pub place: String,
    /// The netfilter hook, if they were dropped in one.
    pub hook: Option<NetfilterHook>,
    /// Index of the interface that they came in through or would have left by; 0 without one.
    pub ifindex: u32,
    /// The protocol: `tcp`; empty if it is unknown.
    pub proto: &'static str,
    /// Addresses of the first packet.
    pub ends: Option<(Addr, Addr)>,
    /// Ports of the first packet.
    pub ports: Option<(u16, u16)>,
    /// FIN, SYN, RST and ACK of the first packet, with their bits in a TCP header; `None` if they are unknown.
    pub tcp_flags: Option<u8>,
    /// Number of packets.
    pub count: u64,
    /// The rule that dropped them; `None` if no rule did or the rule is unknown.
    pub rule: Option<RuleSeen>,
    /// A sentence about the reason; empty without one.
    pub meaning: &'static str,
    /// Advice on the next step; empty without one.
    pub remedy: &'static str,
}

/// The rule or rules that dropped packets. The texts come from the owner of the rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSeen {
    /// Place and text: `inet filter input handle 4: tcp dport 80 drop`; for several rules `one of 2: ...`.
    pub text: String,
    /// Family, table and chain; `None` for several rules.
    pub chain: Option<String>,
    /// True if no other rule can have dropped them, or if the rule's counter confirms it.
    pub is_certain: bool,
}

impl RuleSeen {
    /// True if it is a rule that also answers the packet.
    pub(crate) fn rejects(&self) -> bool {
        self.text.split(' ').any(|word| word == "reject")
    }

    /// True if it is a chain's policy: no rule accepted the packet.
    pub(crate) fn is_policy(&self) -> bool {
        self.text.ends_with(" policy drop")
    }
}

impl DropSeen {
    /// True if it was dropped where the kernel refuses a destination: the routes then show the cause.
    pub fn is_refused(&self) -> bool {
        cause_of(&self.reason, &self.place, self.proto) == "route-refuses"
    }

    /// True if a rule of the older kind can have dropped it, which nft does not show.
    pub fn may_be_legacy(&self) -> bool {
        self.reason == "NETFILTER_DROP" && !self.place.starts_with("nft_")
    }

    /// True if it had no route, as the kernel says: an `unreachable` rule of policy routing may be the cause.
    pub fn lacks_route(&self) -> bool {
        ["IP_INNOROUTES", "IP_OUTNOROUTES"].contains(&self.reason.as_str())
    }

    /// True if a filter dropped it that may be a cgroup's program.
    pub fn may_be_of_cgroup(&self) -> bool {
        ["cgroup-drop", "socket-filter"].contains(&cause_of(&self.reason, &self.place, self.proto))
    }

    /// True if rules dropped it, and a control connection may have negotiated its ports.
    pub fn may_be_data(&self) -> bool {
        let is_of = |kind: ControlKind| self.proto == kind.proto();
        let is_agreed = self.ports.is_some_and(|(_, to)| to >= 1024);
        is_agreed
            && ControlKind::ALL.into_iter().any(is_of)
            && cause_of(&self.reason, &self.place, self.proto) == "rule-drop"
    }

    /// True if it is for a multicast group or a broadcast address. An address that ends in 255 is
    /// taken for the broadcast address of another subnet.
    pub(crate) fn is_to_group(&self) -> bool {
        let is_broadcast = |to: Addr| matches!(to.unmapped(), Addr::V4([.., 255]));
        self.ends.is_some_and(|(_, to)| to.unmapped().is_multicast() || is_broadcast(to))
    }

    /// True if no socket takes it, although it looks like an answer: NAT may have forgotten its client.
    pub fn may_be_for_nat(&self) -> bool {
        self.reason == "NO_SOCKET" && self.count > 1 && self.ports.is_some_and(|(from, to)| from < to && to >= 1024)
    }

    /// True if it was on its way back to the host that sent it.
    pub(crate) fn is_returned(&self) -> bool {
        self.ends.is_some_and(|(from, to)| from.unmapped() == to.unmapped() && !to.is_loopback())
    }

    /// True if a bridge dropped it because it would leave by the port that it came in through.
    pub(crate) fn is_refused_by_bridge(&self) -> bool {
        self.is_returned() && self.place.starts_with("br_")
    }

    /// True if it may be a probe of `traceroute` or `mtr`: an ICMP message, or a datagram to one of their ports.
    pub(crate) fn is_probe(&self) -> bool {
        let is_port = self.ports.is_some_and(|(_, to)| TRACEROUTE_PORTS.contains(&to));
        self.proto.starts_with("icmp") || self.proto == "udp" && is_port
    }

    /// True for a segment in the middle of a TCP connection: an ACK without SYN, FIN and RST.
    pub(crate) fn is_midway(&self) -> bool {
        self.tcp_flags == Some(ACK)
    }

    /// The first packet: `192.0.2.1 to 192.0.2.9 port 80 (tcp)`.
    pub(crate) fn packet(&self) -> Option<String> {
        let (from, to) = self.ends?;
        let port = self.ports.map_or(String::new(), |(_, port)| format!(" port {port}"));
        let proto = if self.proto.is_empty() { String::new() } else { format!(" ({})", self.proto) };
        Some(format!("{} to {}{port}{proto}", from.unmapped(), to.unmapped()))
    }

    /// Reason, place and hook in words: `NETFILTER_DROP at nft_do_chain in forward`.
    pub(crate) fn at(&self) -> String {
        let hook = self.hook.map_or(String::new(), |hook| format!(" in {}", hook.name()));
        let place = if self.place.is_empty() { "an unknown place" } else { &*self.place };
        format!("{} at {place}{hook}", self.reason)
    }
}
