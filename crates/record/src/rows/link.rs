//! Network interfaces, their addresses and their multicast memberships: typed rows for the faces, without a field
//! table.

use crate::Addr;

/// A network interface as rtnetlink reports it (`RTM_NEWLINK`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Its index in its namespace.
    pub index: u32,
    /// Its name, unescaped.
    pub name: Box<[u8]>,
    /// Bits of [`iff`].
    pub flags: u32,
    /// `ARPHRD_…` (include/uapi/linux/if_arp.h).
    pub hardware: u16,
    /// MTU in bytes.
    pub mtu: u32,
    /// Index of the bridge or bond that it is a port of, or 0.
    pub master: u32,
    /// Index of its underlying interface (for a VLAN or macvlan), or of the other end of a veth pair; 0 if neither
    /// exists.
    pub lower: u32,
    /// True if `lower` is in another network namespace.
    pub is_lower_elsewhere: bool,
    /// The number by which this namespace knows that other one (`IFLA_LINK_NETNSID`); `None` without a number.
    pub lower_nsid: Option<u32>,
    /// The kernel's name for its kind: `veth`, `bridge`; empty for hardware.
    pub kind: Box<[u8]>,
    /// True if it is a bridge.
    pub is_bridge: bool,
    /// State of the bridge; `None` for other kinds.
    pub bridge: Option<BridgeState>,
    /// State of the bridge port; `None` if it is not the port of a bridge.
    pub port: Option<PortState>,
    /// Hop limit of IPv6 packets that leave through it (net.ipv6.conf.IFACE.hop_limit); `None` without IPv6.
    pub hop_limit: Option<u32>,
    /// Length of its transmit queue in packets.
    pub tx_queue: u32,
    /// Hardware address.
    pub address: Box<[u8]>,
    /// Counters; `None` if the kernel sent none.
    pub stats: Option<LinkStats>,
    /// Hardware resources.
    pub map: LinkMap,
    /// Its XDP program, if it has one.
    pub xdp: Option<LinkXdp>,
}

/// An XDP program on an interface (`IFLA_XDP`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkXdp {
    /// `XDP_ATTACHED_…`: 1 in the driver, 2 in the kernel (generic), 3 in the card, 4 in several places.
    pub mode: u8,
    /// The kernel's id of the program; 0 if there are several.
    pub program: u32,
}

/// State of a bridge (`IFLA_BR_…`, include/uapi/linux/if_link.h). Times are in hundredths of a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BridgeState {
    /// 0 without a spanning tree protocol, 1 for the kernel's, 2 for a program's.
    pub stp: u32,
    /// Time that STP keeps a port in each of the states listening and learning.
    pub forward_delay: u32,
    /// True if it forwards groups only to ports with members.
    pub is_snooping: bool,
    /// True if it sends queries for members itself.
    pub is_querier: bool,
    /// Time after which a member is forgotten unless it reports again.
    pub membership_interval: u64,
    /// Time after its last query after which another querier is forgotten.
    pub querier_interval: u64,
    /// Time between two queries.
    pub query_interval: u64,
    /// Time until the other querier of IPv4 is forgotten; `None` if there is none.
    pub other_querier: Option<u64>,
    /// Time until the other querier of IPv6 is forgotten; `None` if there is none.
    pub other_querier6: Option<u64>,
}

/// State of a port of a bridge (`IFLA_BRPORT_…`, include/uapi/linux/if_link.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortState {
    /// `BR_STATE_…` (include/uapi/linux/if_bridge.h): 0 disabled, 1 listening, 2 learning, 3 forwarding, 4 blocking.
    pub state: u8,
    /// True if the port is disabled by the first frame of STP that it receives.
    pub is_guarded: bool,
    /// True if frames for unknown hosts leave through it.
    pub floods_hosts: bool,
    /// True if broadcasts leave through it.
    pub floods_broadcasts: bool,
    /// True if it takes only frames of hosts that the bridge knows at this port (802.1X).
    pub is_locked: bool,
    /// True if frames for unknown groups leave through it.
    pub floods_groups: bool,
    /// True if it exchanges no frames with other isolated ports.
    pub is_isolated: bool,
}

/// Flags of interfaces, `IFF_…` (include/uapi/linux/if.h).
#[allow(missing_docs)] // The kernel's names, explained in its header.
pub mod iff {
    pub const UP: u32 = 1;
    pub const BROADCAST: u32 = 1 << 1;
    pub const DEBUG: u32 = 1 << 2;
    pub const LOOPBACK: u32 = 1 << 3;
    pub const POINTOPOINT: u32 = 1 << 4;
    pub const NOTRAILERS: u32 = 1 << 5;
    pub const RUNNING: u32 = 1 << 6;
    pub const NOARP: u32 = 1 << 7;
    pub const PROMISC: u32 = 1 << 8;
    pub const ALLMULTI: u32 = 1 << 9;
    pub const MASTER: u32 = 1 << 10;
    pub const SLAVE: u32 = 1 << 11;
    pub const MULTICAST: u32 = 1 << 12;
    pub const PORTSEL: u32 = 1 << 13;
    pub const AUTOMEDIA: u32 = 1 << 14;
    pub const DYNAMIC: u32 = 1 << 15;
    pub const LOWER_UP: u32 = 1 << 16;
}

/// Counters of an interface (`struct rtnl_link_stats64`, include/uapi/linux/if_link.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // The kernel's names, explained in its header.
pub struct LinkStats {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub collisions: u64,
    pub rx_length_errors: u64,
    pub rx_over_errors: u64,
    pub rx_crc_errors: u64,
    pub rx_frame_errors: u64,
    pub rx_fifo_errors: u64,
    pub rx_missed_errors: u64,
    pub tx_aborted_errors: u64,
    pub tx_carrier_errors: u64,
    pub tx_fifo_errors: u64,
    pub tx_heartbeat_errors: u64,
    pub tx_window_errors: u64,
    pub rx_compressed: u64,
    pub tx_compressed: u64,
}

/// Hardware resources (`struct rtnl_link_ifmap`); mostly 0 since PCI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // The kernel's names.
pub struct LinkMap {
    pub mem_start: u64,
    pub mem_end: u64,
    pub base_addr: u64,
    pub irq: u16,
    pub dma: u8,
    pub port: u8,
}

/// An IPv4 address on an interface (`RTM_NEWADDR`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkAddr {
    /// The interface's index.
    pub index: u32,
    /// The interface's name, or an alias: the name, a colon and a word. Unescaped.
    pub label: Box<[u8]>,
    /// The address.
    pub local: [u8; 4],
    /// The other end of a point-to-point link, otherwise equal to `local`.
    pub peer: [u8; 4],
    /// The broadcast address, or all zeros.
    pub broadcast: [u8; 4],
    /// Length of the network prefix in bits.
    pub prefix_len: u8,
}

/// An IPv6 address on an interface, as /proc/net/if_inet6 lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkAddr6 {
    /// The interface's name, unescaped.
    pub iface: Box<[u8]>,
    /// The address.
    pub addr: [u8; 16],
    /// Length of the network prefix in bits.
    pub prefix_len: u8,
    /// The address's `IPV6_ADDR_SCOPE_MASK` bits (include/net/ipv6.h): 0 global, 0x10 host, 0x20 link, 0x40 site.
    pub scope: u8,
    /// The lowest eight bits of `IFA_F_…` (include/uapi/linux/if_addr.h): 8 means a duplicate, 0x40 tentative, that
    /// is, duplicate detection has not finished.
    pub flags: u8,
}

/// Membership of an interface in a multicast group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Membership<'a> {
    /// The interface's name, unescaped.
    pub iface: &'a [u8],
    /// Number of users of the membership.
    pub users: i32,
    /// The group.
    pub group: Addr,
}
