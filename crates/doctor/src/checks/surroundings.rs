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
    /// Packets that the kernel dropped within the window; `None` if they were not counted.
    pub drops: Option<Vec<DropSeen>>,
    /// Interfaces at the second reading.
    pub links: Vec<LinkSeen>,
    /// IPv6 addresses that another host has as well, with their interface.
    pub duplicates: Vec<(String, Addr)>,
    /// Hosts that have an IPv4 address of this one.
    pub conflicts: Vec<Conflict>,
    /// Neighbours that were asked for in vain within the window.
    pub neighbours: Vec<NeighbourSeen>,
    /// Next hops of routes.
    pub gateways: Vec<Addr>,
    /// Destinations whose packets a route refuses, as text: `203.0.113.0/24`.
    pub refused: Vec<(String, &'static str)>,
    /// Queues of packets that rules hand to programs.
    pub queues: Vec<NfQueue>,
    /// Rules that log to groups which nobody read at either reading.
    pub unread: Vec<UnreadRule>,
    /// Control connections that no helper follows; looked for only if rules dropped what may be their data.
    pub controls: Vec<Control>,
    /// Entries of connection tracking.
    pub flows: FlowCensus,
    /// Source ports in use by source NAT; `None` if no check needed a pass over the table, or if the pass failed.
    pub snat_ports: Option<Ports>,
}

/// Packets that the kernel dropped for one reason at one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DropSeen {
    /// The kernel's name of the reason.
    pub reason: String,
    /// The function that dropped them.
    pub place: String,
    /// The netfilter hook, if one was on the way.
    pub hook: Option<NetfilterHook>,
    /// The interface that they came by or would have left by; empty if there is none.
    pub iface: String,
    /// The protocol: `tcp`; empty if it is not known.
    pub proto: &'static str,
    /// Addresses of the first packet.
    pub ends: Option<(Addr, Addr)>,
    /// Ports of the first packet.
    pub ports: Option<(u16, u16)>,
    /// How many.
    pub count: u64,
    /// The rule that dropped them; `None` if no rule did or the rule is unknown.
    pub rule: Option<RuleSeen>,
    /// A sentence on the reason; empty if there is none.
    pub meaning: &'static str,
    /// Where to look next; empty without advice.
    pub remedy: &'static str,
}

/// The rule or rules that dropped packets. The owner of the rules wrote the texts.
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
    /// Its name.
    pub name: String,
    /// `IFF_…` (include/uapi/linux/if.h).
    pub flags: u32,
    /// Bytes of the largest packet.
    pub mtu: u32,
    /// True if it has an address beyond its own link.
    pub has_address: bool,
    /// True if it is a port of a bridge.
    pub is_bridge_port: bool,
    /// Speed and duplex; `None` where the driver does not know both.
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
    /// Speed of the best BASE-T mode of full duplex that the interface can have.
    pub supported_mbps: Option<u32>,
    /// The same of those that both ends offer.
    pub common_mbps: Option<u32>,
}

/// A host on the same link that has an IPv4 address of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The address.
    pub addr: Addr,
    /// The interface that has it, by which the host was heard.
    pub iface: String,
    /// The host's hardware address.
    pub hardware: [u8; 6],
    /// Messages of ARP that it sent as this address within the window.
    pub count: u32,
}

/// A neighbour whose hardware address was asked for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeighbourSeen {
    /// Its address.
    pub addr: Addr,
    /// The interface that it should be on.
    pub iface: String,
}

/// A queue of packets that rules hand to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NfQueue {
    /// Its number.
    pub number: u16,
    /// Packets that wait for a verdict.
    pub waiting: u32,
    /// Packets dropped because it was full.
    pub dropped: Moved,
    /// Packets dropped because the program's socket was full.
    pub user_dropped: Moved,
}

/// A rule that logs to a group that nobody reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadRule {
    /// The group.
    pub group: u16,
    /// Family of the table, as nft writes it: `inet`.
    pub family: &'static str,
    /// Name of the table.
    pub table: String,
    /// Name of the chain.
    pub chain: String,
    /// Number of the rule in its table.
    pub handle: u64,
    /// Packets that it logged at least; `None` if no counter says so.
    pub logged: Option<Moved>,
    /// True if a chain with a hook leads to it.
    pub is_reached: bool,
}

impl UnreadRule {
    /// Where it stands: `inet filter input handle 7`.
    pub(super) fn place(&self) -> String {
        format!("{} {} {} handle {}", self.family, self.table, self.chain, self.handle)
    }
}

/// A protocol whose control connection agrees on ports of others, which a helper can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlKind {
    /// RFC 959: TCP port 21.
    Ftp,
    /// RFC 1350: UDP port 69; the server answers from another port.
    Tftp,
}

impl ControlKind {
    /// Both.
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

/// A tracked control connection that no helper follows. IPv4 addresses are no mapped ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Its protocol.
    pub kind: ControlKind,
    /// Who began it.
    pub client: Addr,
    /// The server as the client knows it.
    pub server: Addr,
    /// The server behind NAT; else the same.
    pub real_server: Addr,
    /// The client as the server sees it.
    pub outside: Addr,
    /// The client's ports on either side of NAT.
    pub client_ports: [u16; 2],
}

/// Control connections that are remembered of a namespace.
pub const CONTROLS_MAX: usize = 4096;

/// Destinations that are remembered, of each kind.
pub const DESTINATIONS_MAX: usize = 4096;

/// Entries of connection tracking that were used within the window.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FlowCensus {
    /// All entries, used or not.
    pub entries: u64,
    /// Entries used within the window without an answer.
    pub unanswered: u64,
    /// TCP entries used within the window without an answer, by destination.
    pub silent: BTreeMap<Addr, u32>,
    /// Queries to port 53 within the window, by resolver: all, and those without an answer.
    pub queries: BTreeMap<Addr, (u32, u32)>,
    /// Entries towards destinations beyond [`DESTINATIONS_MAX`], counted by no destination.
    pub over: u64,
}

impl FlowCensus {
    /// Adds an entry of TCP without an answer.
    pub fn add_silent(&mut self, to: Addr) {
        if self.silent.len() < DESTINATIONS_MAX || self.silent.contains_key(&to) {
            *self.silent.entry(to).or_default() += 1;
        } else {
            self.over += 1;
        }
    }

    /// Adds a query of DNS.
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
    /// How it is down: `None` for one that is up.
    pub(super) fn down(&self) -> Option<&'static str> {
        match (self.flags & IFF_UP, self.flags & IFF_LOWER_UP) {
            (0, _) => Some(SET_DOWN),
            (_, 0) => Some("has no carrier"),
            _ => None,
        }
    }
}

impl DropSeen {
    /// True if it was dropped where the kernel refuses a destination: routes tell why.
    pub fn is_refused(&self) -> bool {
        cause_of(&self.reason, &self.place, self.proto) == "route-refuses"
    }

    /// True if rules dropped it, and a control connection may have agreed on its ports.
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

    /// The place in words: `NETFILTER_DROP at nft_do_chain in forward`.
    pub(super) fn at(&self) -> String {
        let hook = self.hook.map_or(String::new(), |hook| format!(" in {}", hook.name()));
        let place = if self.place.is_empty() { "an unknown place" } else { &*self.place };
        format!("{} at {place}{hook}", self.reason)
    }
}

/// Drops that one check explains.
pub(super) struct Dropped<'s> {
    /// The most first.
    pub(super) all: Vec<&'s DropSeen>,
    /// Packets.
    pub(super) count: u64,
}

/// Drops and packets that a finding names.
const SHOWN_MAX: usize = 4;

impl<'s> Dropped<'s> {
    /// Those of `drops` that `is_it` tells.
    fn of(drops: &'s [DropSeen], is_it: impl Fn(&DropSeen) -> bool) -> Dropped<'s> {
        let mut all: Vec<&DropSeen> = drops.iter().filter(|one| is_it(one)).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.count));
        let count = all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count));
        Dropped { all, count }
    }

    /// Their numbers as evidence.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let of = |one: &&DropSeen| {
            let packet = one.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
            state(format!("drops: {}{packet}", one.at()), i64::try_from(one.count).unwrap_or(i64::MAX), None)
        };
        self.all.iter().take(SHOWN_MAX).map(of).collect()
    }

    /// The packet that was the first of the most frequent drop, for a sentence: `: 10.0.0.1 to 10.0.0.2 (icmp)`.
    pub(super) fn example(&self) -> String {
        let packet = self.all.iter().find_map(|one| one.packet());
        packet.map_or(String::new(), |packet| format!(", such as {packet}"))
    }
}

impl Surroundings {
    /// The drops that the check `id` explains.
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
