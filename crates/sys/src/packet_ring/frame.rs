//! A packet in the ring.

/// A packet as the kernel delivered it; its bytes are in the ring.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'r> {
    /// The captured bytes, starting with the link-layer header. A VLAN tag that the kernel removed is back in place.
    pub bytes: &'r [u8],
    /// Original length in bytes.
    pub len: u32,
    /// When it was received or sent, in ns since 1970.
    pub time_ns: u64,
    /// Index of the interface on which it was seen.
    pub ifindex: u32,
    /// `ARPHRD_…` of that interface: 1 Ethernet, 772 loopback, 65534 none.
    pub hardware: u16,
    /// The packet type that the kernel assigned.
    pub packet_type: PacketType,
    /// The kernel's status bits for it.
    pub status: FrameStatus,
}

impl Frame<'_> {
    /// True if interface, packet type and clock are the same. The status of checksums may differ.
    #[inline]
    pub(super) fn is_like(&self, other: &Frame<'_>) -> bool {
        let stamped = FrameStatus::STAMPED_BY_ADAPTER;
        (self.ifindex, self.hardware, self.packet_type, self.status.has_any(stamped))
            == (other.ifindex, other.hardware, other.packet_type, other.status.has_any(stamped))
    }
}

/// Consecutive packets, all with the interface, packet type and clock of the first.
#[derive(Debug, Clone, Copy)]
pub struct SimilarFrames<'r> {
    /// The first packet.
    pub first: Frame<'r>,
    /// The memory that contains all of them.
    pub memory: &'r [u8],
}

/// `sll_pkttype` of `struct sockaddr_ll` (include/uapi/linux/if_packet.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketType(pub u8);

impl PacketType {
    /// Addressed to this host.
    pub const HOST: PacketType = PacketType(0);
    /// Addressed to all hosts on the link.
    pub const BROADCAST: PacketType = PacketType(1);
    /// Addressed to a multicast group.
    pub const MULTICAST: PacketType = PacketType(2);
    /// Addressed to another host; seen because the interface is promiscuous.
    pub const OTHER_HOST: PacketType = PacketType(3);
    /// Sent by this host.
    pub const OUTGOING: PacketType = PacketType(4);
}

/// Bits of `tp_status` (include/uapi/linux/if_packet.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameStatus(pub u32);

impl FrameStatus {
    /// The frame belongs to the reader.
    pub(super) const USER: u32 = 1;
    /// The slot was too short: the whole packet waits on the socket (`TP_STATUS_COPY`).
    pub(super) const WAITS_WHOLE: u32 = 1 << 1;
    /// Packets were dropped before it.
    pub const LOSING: u32 = 1 << 2;
    /// The device will fill in the checksum later: an incorrect value is not an error.
    pub const CHECKSUM_NOT_READY: u32 = 1 << 3;
    /// `tp_vlan_tci` is valid.
    pub(super) const VLAN_VALID: u32 = 1 << 4;
    /// `tp_vlan_tpid` is also valid.
    pub(super) const VLAN_TPID_VALID: u32 = 1 << 6;
    /// The checksum was verified.
    pub const CHECKSUM_VALID: u32 = 1 << 7;
    /// The packet consists of several TCP segments (since 6.0).
    pub const GSO_TCP: u32 = 1 << 8;
    /// The time stamp comes from the host's clock, at reception.
    pub const STAMPED_BY_HOST: u32 = 1 << 29;
    /// The time stamp comes from the adapter's clock.
    pub const STAMPED_BY_ADAPTER: u32 = 1 << 31;

    /// True if one of these bits is set.
    pub fn has_any(self, bits: u32) -> bool {
        self.0 & bits != 0
    }
}

/// Size of a VLAN tag in bytes; this much space is kept free before each packet.
pub(super) const TAG_BYTES: usize = 4;
/// The tag follows the two Ethernet addresses.
const TAG_AT: usize = 12;
/// `ETH_P_8021Q`: the tag type if the kernel does not report it.
const ETH_P_8021Q: u16 = 0x8100;

/// A VLAN tag that the kernel has removed from a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct StrippedTag {
    pub(super) tci: u16,
    pub(super) tpid: u16,
}

impl StrippedTag {
    /// The tag, if the status says that it is valid.
    pub(super) fn from_status(status: u32, tci: u16, tpid: u16) -> Option<StrippedTag> {
        let is_there = status & FrameStatus::VLAN_VALID != 0;
        let tpid = if status & FrameStatus::VLAN_TPID_VALID != 0 { tpid } else { ETH_P_8021Q };
        is_there.then_some(StrippedTag { tci, tpid })
    }

    /// Puts the tag back into `place`: [`TAG_BYTES`] of free space, followed by the packet. Returns false and changes
    /// nothing if too little of the packet was captured.
    pub(super) fn put_back(self, place: &mut [u8]) -> bool {
        if place.len() < TAG_BYTES + TAG_AT {
            return false;
        }
        place.copy_within(TAG_BYTES..TAG_BYTES + TAG_AT, 0);
        for (at, word) in [(TAG_AT, self.tpid), (TAG_AT + 2, self.tci)] {
            if let Some(place) = place.get_mut(at..at + 2) {
                place.copy_from_slice(&word.to_be_bytes());
            }
        }
        true
    }
}
