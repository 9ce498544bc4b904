//! What a filter is compiled for.

use crate::link::LinkType;

/// Where packets come from: the kernel knows more of them than their bytes, a file has all in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A socket of this host.
    Live {
        /// The kernel takes the outer VLAN tag out of the packet (any AF_PACKET socket): the tag is looked for beside
        /// the packet and in it. Without it the program is libpcap's for no device at all (`tcpdump -d`).
        vlan_beside: bool,
    },
    /// A socket of this host, for packets whose outer VLAN tag the kernel keeps in their metadata. The program sees
    /// each packet as it was on the wire, with the tag in its place. An expression that reads at a computed offset
    /// cannot be compiled for this origin if the offset may fall into the tag.
    LiveTagged,
    /// A file.
    File {
        /// Its writer had the other byte order (it matters for [`LinkType::Null`] only).
        is_swapped: bool,
    },
}

/// What a filter is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct FilterTarget {
    /// The packets' link-layer header.
    pub link: LinkType,
    /// Where they come from.
    pub origin: Origin,
    /// Bytes that an accepted packet is cut to: what the program returns. Not 0.
    pub snaplen: u32,
    /// The network mask of the interface, for `ip broadcast`.
    pub netmask: Option<u32>,
}

impl FilterTarget {
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.origin, Origin::File { .. })
    }
}
