//! Surroundings of the counters and sockets of a network namespace: drops, interfaces, neighbours, flows.

use crate::nat::Ports;
use record::Addr;
use record::rows::{Evidence, NetfilterHook};
use std::collections::BTreeMap;

use super::cause::cause_of;
use super::moved::Moved;
use super::words::state;

/// Surroundings of the counters and sockets of a network namespace.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// Packets that the kernel dropped within the window; `None` if drops were not counted.
    pub drops: Option<Vec<DropSeen>>,
    /// Interfaces at the second reading.
    pub links: Vec<LinkSeen>,
    /// IPv6 addresses that another host also has, with their interface.
    pub duplicates: Vec<(String, Addr)>,
    /// Hosts that have an IPv4 address of this host.
    pub conflicts: Vec<Conflict>,
    /// Neighbours that did not answer requests within the window.
    pub neighbours: Vec<NeighbourSeen>,
    /// Next hops of routes.
    pub gateways: Vec<Addr>,
    /// Destinations that a route refuses, as text: `203.0.113.0/24`, with the route's type.
    pub refused: Vec<(String, &'static str)>,
    /// Queues of packets that rules pass to programs.
    pub queues: Vec<NfQueue>,
    /// Rules that log to groups without a reader at either reading.
    pub unread: Vec<UnreadRule>,
    /// Control connections that no helper follows; gathered only if rules dropped packets that may be their data.
    pub controls: Vec<Control>,
    /// Counts of connection-tracking entries.
    pub flows: FlowCensus,
    /// Source ports in use by source NAT; `None` if no check needed a pass over the table, or if the pass failed.
    pub snat_ports: Option<Ports>,
}

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

/// An interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkSeen {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// `IFF_…` (include/uapi/linux/if.h).
    pub flags: u32,
    /// Size of the largest packet, in bytes.
    pub mtu: u32,
    /// True if it has an address beyond its own link.
    pub has_address: bool,
    /// True if it is a port of a bridge.
    pub is_bridge_port: bool,
    /// Speed and duplex; `None` if the driver does not report both.
    pub mode: Option<ModeSeen>,
}

/// Speed and duplex of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModeSeen {
    /// Speed in Mb/s.
    pub mbps: u32,
    /// True if it is half duplex.
    pub is_half: bool,
    /// True if both are negotiated.
    pub is_negotiated: bool,
    /// Speed of the fastest full-duplex BASE-T mode that the interface supports, in Mb/s.
    pub supported_mbps: Option<u32>,
    /// Speed of the fastest such mode that both ends offer, in Mb/s.
    pub common_mbps: Option<u32>,
}

/// Another host on the same link that has an IPv4 address of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The address.
    pub addr: Addr,
    /// The interface that has the address and received the other host's messages.
    pub iface: String,
    /// The host's hardware address.
    pub hardware: [u8; 6],
    /// ARP messages that it sent with this address within the window.
    pub count: u32,
}

/// A neighbour that did not answer requests for its hardware address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeighbourSeen {
    /// Its address.
    pub addr: Addr,
    /// Index of the interface that it should be on.
    pub ifindex: u32,
}

/// A queue of packets that rules pass to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NfQueue {
    /// Its number.
    pub number: u16,
    /// Packets that wait for a verdict.
    pub waiting: u32,
    /// Packets dropped because the queue was full.
    pub dropped: Moved,
    /// Packets dropped because the program's socket was full.
    pub user_dropped: Moved,
}

/// A rule that logs to a group without a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadRule {
    /// The group.
    pub group: u16,
    /// Family of the table in nft's words: `inet`.
    pub family: &'static str,
    /// Name of the table.
    pub table: String,
    /// Name of the chain.
    pub chain: String,
    /// Handle of the rule in its table.
    pub handle: u64,
    /// Lower bound for the packets that it logged; `None` without a counter.
    pub logged: Option<Moved>,
    /// True if a chain with a hook leads to it.
    pub is_reached: bool,
}

impl UnreadRule {
    /// Its place: `inet filter input handle 7`.
    pub(super) fn place(&self) -> String {
        format!("{} {} {} handle {}", self.family, self.table, self.chain, self.handle)
    }
}

/// A protocol whose control connection negotiates ports of other connections, which a helper can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlKind {
    /// RFC 959: TCP port 21.
    Ftp,
    /// RFC 1350: UDP port 69; the server answers from another port.
    Tftp,
}

impl ControlKind {
    /// Every kind.
    pub const ALL: [ControlKind; 2] = [ControlKind::Ftp, ControlKind::Tftp];

    /// The name of its helper.
    pub fn name(self) -> &'static str {
        match self {
            ControlKind::Ftp => "ftp",
            ControlKind::Tftp => "tftp",
        }
    }

    /// `tcp` or `udp`.
    pub fn proto(self) -> &'static str {
        match self {
            ControlKind::Ftp => "tcp",
            ControlKind::Tftp => "udp",
        }
    }

    /// The port of its server.
    pub fn port(self) -> u16 {
        match self {
            ControlKind::Ftp => 21,
            ControlKind::Tftp => 69,
        }
    }
}

/// A tracked control connection that no helper follows. IPv4 addresses are not in mapped form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Its protocol.
    pub kind: ControlKind,
    /// The host that began it.
    pub client: Addr,
    /// The server's address for the client.
    pub server: Addr,
    /// The server's real address after NAT, otherwise the same.
    pub real_server: Addr,
    /// The client's address for the server.
    pub outside: Addr,
    /// The client's ports on both sides of NAT.
    pub client_ports: [u16; 2],
}

/// Most control connections that are recorded per namespace.
///
/// Bound: control connections of FTP and TFTP that `doctor` remembers for a namespace. Beyond: further ones are not
/// checked, counted (exit code 3). By: clients with as many connections.
pub const CONTROLS_MAX: usize = 4096;

/// Most destinations of each kind that are recorded.
///
/// Bound: destinations of tracked flows that `doctor` remembers (`surroundings::destinations_of_flows_are_bounded`).
/// Beyond: further destinations are not checked, counted (exit code 3); the checks of counters are complete. By: a user
/// who scans.
pub const DESTINATIONS_MAX: usize = 4096;

/// Counts of connection-tracking entries that were used within the window.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FlowCensus {
    /// Number of all entries, used or not.
    pub entries: u64,
    /// Entries used within the window without an answer.
    pub unanswered: u64,
    /// TCP entries used within the window without an answer, by destination.
    pub silent: BTreeMap<Addr, u32>,
    /// Queries to port 53 within the window, by resolver: their number, and the number without an answer.
    pub queries: BTreeMap<Addr, (u32, u32)>,
    /// Entries to destinations beyond [`DESTINATIONS_MAX`], which no destination counts.
    pub over: u64,
}

impl FlowCensus {
    /// Adds a TCP entry without an answer.
    pub fn add_silent(&mut self, to: Addr) {
        if self.silent.len() < DESTINATIONS_MAX || self.silent.contains_key(&to) {
            *self.silent.entry(to).or_default() += 1;
        } else {
            self.over += 1;
        }
    }

    /// Adds a DNS query.
    pub fn add_query(&mut self, to: Addr, is_answered: bool) {
        if self.queries.len() < DESTINATIONS_MAX || self.queries.contains_key(&to) {
            let of = self.queries.entry(to).or_default();
            *of = (of.0 + 1, of.1 + u32::from(!is_answered));
        } else {
            self.over += 1;
        }
    }
}

// include/uapi/linux/if.h
const IFF_UP: u32 = 1;
const IFF_LOWER_UP: u32 = 0x1_0000;

/// The title about an interface that an administrator set down.
pub(super) const SET_DOWN: &str = "is set down";

impl LinkSeen {
    /// Describes why it is down; `None` if it is up.
    pub(super) fn down(&self) -> Option<&'static str> {
        match (self.flags & IFF_UP, self.flags & IFF_LOWER_UP) {
            (0, _) => Some(SET_DOWN),
            (_, 0) => Some("has no carrier"),
            _ => None,
        }
    }
}

impl DropSeen {
    /// True if it was dropped where the kernel refuses a destination: the routes then show the cause.
    pub fn is_refused(&self) -> bool {
        cause_of(&self.reason, &self.place, self.proto) == "route-refuses"
    }

    /// True if rules dropped it, and a control connection may have negotiated its ports.
    pub fn may_be_data(&self) -> bool {
        let is_of = |kind: ControlKind| self.proto == kind.proto();
        let is_agreed = self.ports.is_some_and(|(_, to)| to >= 1024);
        is_agreed
            && ControlKind::ALL.into_iter().any(is_of)
            && cause_of(&self.reason, &self.place, self.proto) == "rule-drop"
    }

    /// The first packet: `192.0.2.1 to 192.0.2.9 port 80 (tcp)`.
    pub(super) fn packet(&self) -> Option<String> {
        let (from, to) = self.ends?;
        let port = self.ports.map_or(String::new(), |(_, port)| format!(" port {port}"));
        let proto = if self.proto.is_empty() { String::new() } else { format!(" ({})", self.proto) };
        Some(format!("{} to {}{port}{proto}", from.unmapped(), to.unmapped()))
    }

    /// Reason, place and hook in words: `NETFILTER_DROP at nft_do_chain in forward`.
    pub(super) fn at(&self) -> String {
        let hook = self.hook.map_or(String::new(), |hook| format!(" in {}", hook.name()));
        let place = if self.place.is_empty() { "an unknown place" } else { &*self.place };
        format!("{} at {place}{hook}", self.reason)
    }
}

/// Drops that one check explains.
pub(super) struct Dropped<'s> {
    /// The drops, the most frequent first.
    pub(super) all: Vec<&'s DropSeen>,
    /// Number of packets.
    pub(super) count: u64,
}

/// Most drops and packets that a finding names.
const SHOWN_MAX: usize = 4;

impl<'s> Dropped<'s> {
    /// Returns the drops for which `is_it` is true.
    fn of(drops: &'s [DropSeen], is_it: impl Fn(&DropSeen) -> bool) -> Dropped<'s> {
        let mut all: Vec<&DropSeen> = drops.iter().filter(|one| is_it(one)).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.count));
        let count = all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count));
        Dropped { all, count }
    }

    /// Returns their numbers as evidence.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let of = |one: &&DropSeen| {
            let packet = one.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
            state(format!("drops: {}{packet}", one.at()), i64::try_from(one.count).unwrap_or(i64::MAX), None)
        };
        self.all.iter().take(SHOWN_MAX).map(of).collect()
    }

    /// Returns the first packet of the most frequent drop as part of a sentence: `: 10.0.0.1 to 10.0.0.2 (icmp)`.
    pub(super) fn example(&self) -> String {
        let packet = self.all.iter().find_map(|one| one.packet());
        packet.map_or(String::new(), |packet| format!(", such as {packet}"))
    }
}

impl Surroundings {
    /// Returns the name of an interface, or `if3` if it is unknown; empty for the index 0.
    pub(super) fn iface(&self, ifindex: u32) -> String {
        match self.links.iter().find(|link| link.index == ifindex) {
            Some(link) => link.name.clone(),
            None if ifindex == 0 => String::new(),
            None => format!("if{ifindex}"),
        }
    }

    /// Returns the drops that the check `id` explains.
    pub(super) fn dropped(&self, id: &str) -> Dropped<'_> {
        Dropped::of(self.drops.as_deref().unwrap_or_default(), |one| cause_of(&one.reason, &one.place, one.proto) == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_of_flows_are_bounded() {
        let mut flows = FlowCensus::default();
        for n in 0..DESTINATIONS_MAX as u32 + 2 {
            let to = Addr::V4(n.to_be_bytes());
            flows.add_silent(to);
            flows.add_query(to, false);
        }
        flows.add_query(Addr::V4([0; 4]), true);
        let first = flows.queries.get(&Addr::V4([0; 4]));
        assert_eq!((flows.silent.len(), flows.queries.len(), flows.over), (DESTINATIONS_MAX, DESTINATIONS_MAX, 4));
        assert_eq!(first, Some(&(2, 1)));
    }
}
