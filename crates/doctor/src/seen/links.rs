//! Interfaces.

use record::rows::{BridgeState, PortState, iff};
use record::{Addr, Prefix};

/// An interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkSeen {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Bits of [`iff`].
    pub flags: u32,
    /// Size of the largest packet, in bytes.
    pub mtu: u32,
    /// True if it has an address beyond its own link.
    pub has_address: bool,
    /// True if it is a bridge.
    pub is_bridge: bool,
    /// True if it is a port of a bridge.
    pub is_bridge_port: bool,
    /// Index of the bridge or bond that it is a port of, or 0.
    pub master: u32,
    /// Index of the interface that it is on (a VLAN or macvlan), if that is in this namespace; otherwise 0.
    pub lower: u32,
    /// True if it is an end of a veth pair.
    pub is_veth: bool,
    /// MTU of the other end of a veth pair; read only if one end dropped packets.
    pub peer_mtu: Option<u32>,
    /// Hop limit of the IPv6 packets that leave through it; `None` without IPv6.
    pub hop_limit: Option<u32>,
    /// State of the bridge; `None` if it is not a bridge.
    pub bridge: Option<BridgeState>,
    /// State of the bridge port; `None` if it is not a port.
    pub port: Option<PortState>,
    /// True for a tun or tap device, whose packets a program reads.
    pub is_tun: bool,
    /// True for VXLAN and GENEVE: a daemon maintains the neighbours of such an interface.
    pub is_overlay: bool,
    /// Speed and duplex; `None` if the driver does not report both.
    pub mode: Option<ModeSeen>,
    /// Its XDP program, if it has one.
    pub xdp: Option<XdpSeen>,
}

/// An XDP program on an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct XdpSeen {
    /// The kernel's id of the program; 0 if there are several.
    pub program: u32,
    /// True if it runs in the kernel (generic mode); false if it runs in the driver or the card.
    pub is_generic: bool,
    /// The id of the BPF link that holds it; `None` without a link, or if it is unknown.
    pub link: Option<u32>,
}

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressSeen {
    /// Index of the interface.
    pub ifindex: u32,
    /// The address.
    pub addr: Addr,
    /// Length of its network's prefix.
    pub prefix_len: u8,
}

impl AddressSeen {
    /// Its network; `None` without other hosts, or if it is malformed.
    pub(crate) fn network(&self) -> Option<Prefix> {
        Prefix::new(self.addr, self.prefix_len).filter(|_| self.prefix_len < self.addr.bits())
    }
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

/// The title about an interface that an administrator set down.
pub(crate) const SET_DOWN: &str = "is set down";

impl LinkSeen {
    /// Describes why it is down; `None` if it is up.
    pub(crate) fn down(&self) -> Option<&'static str> {
        match (self.flags & iff::UP, self.flags & iff::LOWER_UP) {
            (0, _) => Some(SET_DOWN),
            (_, 0) => Some("has no carrier"),
            _ => None,
        }
    }
}
