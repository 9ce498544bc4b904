//! The target that a filter is compiled for.

use crate::link::LinkType;

/// The origin of packets. The kernel knows more about them than their bytes; a file has everything in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOrigin {
    /// A socket of this host.
    Live {
        /// The kernel removes the outer VLAN tag from the packet (as for any AF_PACKET socket): the program looks for
        /// the tag in the metadata and in the packet. If false, the program is the one that libpcap compiles without a
        /// device (`tcpdump -d`).
        vlan_beside: bool,
    },
    /// A socket of this host, for packets whose outer VLAN tag the kernel keeps in their metadata. The program reads
    /// each packet as it was on the wire, with the tag in place. An expression that reads at a computed offset cannot
    /// be compiled for this origin if the offset may fall into the tag.
    LiveTagged,
    /// A file.
    File {
        /// True if the writer had the other byte order (only matters for [`LinkType::Null`]).
        is_swapped: bool,
    },
}

/// The target that a filter is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct FilterTarget {
    /// The link-layer header of the packets.
    pub link: LinkType,
    /// The origin of the packets.
    pub origin: PacketOrigin,
    /// The number of bytes that an accepted packet is cut to: the return value of the program. Not 0.
    pub snaplen: u32,
    /// The network mask of the interface, for `ip broadcast`.
    pub netmask: Option<u32>,
}

impl FilterTarget {
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.origin, PacketOrigin::File { .. })
    }
}
