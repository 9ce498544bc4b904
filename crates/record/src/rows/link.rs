//! Network interfaces, the addresses on them, the groups they joined: typed rows for the faces, without a field table.

use crate::Addr;

/// A network interface as rtnetlink tells of it (`RTM_NEWLINK`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Its number in its namespace.
    pub index: u32,
    /// Its name; hostile.
    pub name: Box<[u8]>,
    /// `IFF_…` (include/uapi/linux/if.h).
    pub flags: u32,
    /// `ARPHRD_…` (include/uapi/linux/if_arp.h).
    pub hardware: u16,
    /// Bytes of the largest packet.
    pub mtu: u32,
    /// Number of the bridge or bond that it is a port of; 0: none.
    pub master: u32,
    /// Number of the interface that it stands on (a VLAN's, a macvlan's), or of the other end of a veth pair; 0: none.
    pub lower: u32,
    /// Packets that its queue holds.
    pub tx_queue: u32,
    /// Hardware address.
    pub address: Box<[u8]>,
    /// Counters; none if the kernel sent none.
    pub stats: Option<LinkStats>,
    /// Where the hardware sits.
    pub map: LinkMap,
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

/// Places of the hardware (`struct rtnl_link_ifmap`); all 0 for most of it since PCI.
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
    /// The interface's number.
    pub index: u32,
    /// The interface's name, or that with a colon and a word: an alias. Hostile.
    pub label: Box<[u8]>,
    /// The address.
    pub local: [u8; 4],
    /// The other end of a point-to-point link, else the address once more.
    pub peer: [u8; 4],
    /// The broadcast address; 0 without one.
    pub broadcast: [u8; 4],
    /// Bits of the network.
    pub prefix_len: u8,
}

/// An IPv6 address on an interface, as /proc/net/if_inet6 tells of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkAddr6 {
    /// The interface's name; hostile.
    pub iface: Box<[u8]>,
    /// The address.
    pub addr: [u8; 16],
    /// Bits of the network.
    pub prefix_len: u8,
    /// `IPV6_ADDR_SCOPE_MASK` of the address's type (include/net/ipv6.h): 0 global, 0x10 host, 0x20 link, 0x40 site.
    pub scope: u8,
    /// The lowest eight of `IFA_F_…` (include/uapi/linux/if_addr.h): 8 is a duplicate, 0x40 one not known yet to
    /// be none.
    pub flags: u8,
}

/// Membership of an interface in a multicast group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Membership<'a> {
    /// The interface's name; hostile.
    pub iface: &'a [u8],
    /// How many joined.
    pub users: i32,
    /// The group.
    pub group: Addr,
}
