//! Everything in a sample that is neither a counter, a setting nor a socket.

use crate::nat::Ports;
use record::{Addr, Prefix};
use std::collections::BTreeMap;

use super::arp::{Conflict, IgnoredArp};
use super::cgroups::{CgroupSeen, SocketCgroup};
use super::controls::Control;
use super::dns::DnsSeen;
use super::drops::DropSeen;
use super::flows::FlowCensus;
use super::groups::{GroupListener, GroupSeen};
use super::ipsec::IpsecPolicy;
use super::links::{AddressSeen, LinkSeen};
use super::log_groups::RuleWithoutReader;
use super::mac_moves::MacMoved;
use super::neighbours::{NeighbourSeen, OwnMacvlan, PermanentSeen};
use super::processes::ProcessSeen;
use super::queues::NfQueue;
use super::resets::ResetCensus;
use super::router_adverts::IgnoredAdverts;
use super::routes::{Gateway, PathSeen, RedirectSeen};
use super::routing_rules::{RoutingRule, TablesSeen};
use super::shared_ports::SharedPort;
use super::unix::UnixQueue;

/// Surroundings of the counters and sockets of a network namespace.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// Packets that the kernel dropped within the window; `None` if drops were not counted.
    pub drops: Option<Vec<DropSeen>>,
    /// Interfaces at the second reading.
    pub links: Vec<LinkSeen>,
    /// Addresses of the interfaces.
    pub addresses: Vec<AddressSeen>,
    /// IPv6 addresses that another host also has, with their interface.
    pub duplicates: Vec<(String, Addr)>,
    /// Hosts that have an IPv4 address of this host.
    pub conflicts: Vec<Conflict>,
    /// ARP requests for addresses of this host that its settings leave unanswered.
    pub ignored_arp: Vec<IgnoredArp>,
    /// DNS queries and answers.
    pub dns: DnsSeen,
    /// Hardware addresses that moved between ports of bridges within the window.
    pub moves: Vec<MacMoved>,
    /// Memberships in the multicast groups whose packets were dropped for want of a member.
    pub groups: Vec<GroupSeen>,
    /// UDP sockets at the ports of such packets.
    pub listeners: Vec<GroupListener>,
    /// Neighbours that did not answer requests within the window.
    pub neighbours: Vec<NeighbourSeen>,
    /// Neighbours that the kernel never checks.
    pub permanent: Vec<PermanentSeen>,
    /// Macvlans of this host's interfaces that have the address of a neighbour that does not answer.
    pub own_macvlans: Vec<OwnMacvlan>,
    /// Next hops of routes, each with the most preferred route through it.
    pub gateways: Vec<Gateway>,
    /// Destinations that ICMP redirects lead through a neighbour that does not answer.
    pub redirects: Vec<RedirectSeen>,
    /// The ways to the peers of [`super::Sample::peers_in_question`].
    pub paths: BTreeMap<Addr, PathSeen>,
    /// Interfaces that ignore router advertisements; gathered only if IPv6 packets have no route.
    pub ignored_adverts: Vec<IgnoredAdverts>,
    /// Destinations that a route refuses, as text: `203.0.113.0/24`, with the route's type.
    pub refused: Vec<(String, &'static str)>,
    /// The tools whose rules of the older kind the kernel has, which nft does not show: `iptables`, `ip6tables`. Read
    /// only if packets were dropped where such rules drop them.
    pub legacy_rules: Vec<&'static str>,
    /// Rules of policy routing; read only if packets were refused or had no route.
    pub rules: Vec<RoutingRule>,
    /// Tables that have routes; `None` if routes were not read.
    pub tables: Option<TablesSeen>,
    /// IPsec policies that protect or block packets; read only if IPsec dropped packets.
    pub ipsec: Vec<IpsecPolicy>,
    /// Cgroups with programs that decide on packets; read only if packets were dropped that such programs can drop.
    pub cgroups: Vec<CgroupSeen>,
    /// The cgroups of the sockets whose packets a filter dropped.
    pub cgroups_of_sockets: Vec<SocketCgroup>,
    /// Processes that own sockets with a queue.
    pub processes: Vec<ProcessSeen>,
    /// Unix sockets with a queue at both readings.
    pub unix: Vec<UnixQueue>,
    /// Queues of packets that rules pass to programs.
    pub queues: Vec<NfQueue>,
    /// Rules that log to groups without a reader at either reading.
    pub rules_without_reader: Vec<RuleWithoutReader>,
    /// Control connections that no helper follows; gathered only if rules dropped packets that may be their data.
    pub controls: Vec<Control>,
    /// Counts of connection-tracking entries.
    pub flows: FlowCensus,
    /// Connections that ended with a reset within the window; `None` if resets were not recorded.
    pub resets: Option<ResetCensus>,
    /// UDP ports that two or more programs share.
    pub shared_ports: Vec<SharedPort>,
    /// Source ports in use by source NAT; `None` if no check needed a pass over the table, or if the pass failed.
    pub snat_ports: Option<Ports>,
}

impl Surroundings {
    /// Returns the route whose next hop is this neighbour.
    pub(crate) fn gateway_at(&self, neighbour: &NeighbourSeen) -> Option<&Gateway> {
        let is_it = |one: &&Gateway| one.addr == Some(neighbour.addr) && [0, neighbour.ifindex].contains(&one.ifindex);
        self.gateways.iter().find(is_it)
    }

    /// True if the kernel prefers another default route of the same family.
    pub(crate) fn is_spare(&self, gateway: &Gateway) -> bool {
        let family = |one: &Gateway| one.addr.map(Addr::bits);
        let is_better =
            |one: &Gateway| one.to == gateway.to && family(one) == family(gateway) && one.metric < gateway.metric;
        gateway.to == "default" && self.gateways.iter().any(is_better)
    }

    /// True if the address is one of this host's.
    pub fn has_address(&self, addr: Addr) -> bool {
        addr.is_loopback() || self.addresses.iter().any(|own| own.addr == addr.unmapped())
    }

    /// Returns the index of the interface to whose network the address belongs; the narrowest network if there are
    /// several.
    pub fn iface_of(&self, addr: Addr) -> Option<u32> {
        self.on_link(addr).map(|(own, _)| own.ifindex)
    }

    /// Returns the narrowest network of this host's interfaces that contains the address.
    pub(crate) fn network_of(&self, addr: Addr) -> Option<Prefix> {
        self.on_link(addr).map(|(_, network)| network)
    }

    fn on_link(&self, addr: Addr) -> Option<(&AddressSeen, Prefix)> {
        let networks = self.addresses.iter().filter_map(|own| Some((own, own.network()?)));
        networks.filter(|(_, network)| network.contains(addr.unmapped())).max_by_key(|(own, _)| own.prefix_len)
    }

    /// Returns the name of an interface, or `if3` if it is unknown; empty for the index 0.
    pub fn iface(&self, ifindex: u32) -> String {
        match self.links.iter().find(|link| link.index == ifindex) {
            Some(link) => link.name.clone(),
            None if ifindex == 0 => String::new(),
            None => format!("if{ifindex}"),
        }
    }
}
