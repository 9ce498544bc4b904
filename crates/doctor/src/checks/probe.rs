//! What a check may need in addition to counters and settings.

use std::collections::BTreeSet;

use super::Check;

/// A kind of data that a check needs. Counters and settings are read for every check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// Hosts that send ARP with an IPv4 address of this host, or ask for one in vain.
    Arp,
    /// Cgroups with programs that decide on packets.
    Cgroups,
    /// Control connections without a helper.
    Controls,
    /// File descriptors of processes with waiting connections.
    Descriptors,
    /// DNS queries and answers within the window.
    Dns,
    /// Packets that the kernel dropped within the window.
    Drops,
    /// Entries of connection tracking that were used within the window.
    Flows,
    /// Members of multicast groups whose packets were dropped.
    Groups,
    /// IPsec policies and states.
    Ipsec,
    /// Interfaces, and the names of those that other data refers to.
    Links,
    /// Rules that log to groups without a reader.
    LogGroups,
    /// Hardware addresses that move between ports of bridges.
    MacMoves,
    /// Macvlans of this host that have the address of a neighbour that does not answer.
    Macvlans,
    /// Neighbours that do not answer, and those that the kernel never checks.
    Neighbours,
    /// Processes that own sockets with a queue.
    Processes,
    /// Queues of packets for programs.
    Queues,
    /// Connections that end with a reset within the window.
    Resets,
    /// Interfaces that ignore router advertisements.
    RouterAdverts,
    /// Next hops, destinations that a route refuses, and rules of policy routing.
    Routes,
    /// UDP ports that several programs share.
    SharedPorts,
    /// Source ports in use by source NAT.
    SnatPorts,
    /// Sockets at both readings.
    Sockets,
    /// Unix sockets with a queue at both readings.
    Unix,
}

impl Probe {
    /// Every probe.
    pub const ALL: [Probe; 23] = [
        Probe::Arp,
        Probe::Cgroups,
        Probe::Controls,
        Probe::Descriptors,
        Probe::Dns,
        Probe::Drops,
        Probe::Flows,
        Probe::Groups,
        Probe::Ipsec,
        Probe::Links,
        Probe::LogGroups,
        Probe::MacMoves,
        Probe::Macvlans,
        Probe::Neighbours,
        Probe::Processes,
        Probe::Queues,
        Probe::Resets,
        Probe::RouterAdverts,
        Probe::Routes,
        Probe::SharedPorts,
        Probe::SnatPorts,
        Probe::Sockets,
        Probe::Unix,
    ];
}

/// Returns the probes that these checks need.
pub fn probes_of<'c>(checks: impl IntoIterator<Item = &'c Check>) -> BTreeSet<Probe> {
    checks.into_iter().flat_map(|check| check.needs).copied().collect()
}
