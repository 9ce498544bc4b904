//! One packet in the ring.

/// A packet as the kernel handed it over; the bytes lie in the ring.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'r> {
    /// What was captured, from the link-layer header on. A VLAN tag that the kernel has taken out is back in its place.
    pub bytes: &'r [u8],
    /// Bytes that the packet had.
    pub len: u32,
    /// When it was received or sent, in ns since 1970.
    pub time_ns: u64,
    /// Interface it was seen on.
    pub ifindex: u32,
    /// `ARPHRD_…` of that interface: 1 Ethernet, 772 loopback, 65534 none.
    pub hardware: u16,
    /// Whom it is for.
    pub packet_type: PacketType,
    /// What the kernel says about it.
    pub status: FrameStatus,
}

impl Frame<'_> {
    /// True if interface, type and clock are the same. What the kernel says of checksums may differ.
    #[inline]
    pub(super) fn is_like(&self, other: &Frame<'_>) -> bool {
        let stamped = FrameStatus::STAMPED_BY_ADAPTER;
        (self.ifindex, self.hardware, self.packet_type, self.status.has(stamped))
            == (other.ifindex, other.hardware, other.packet_type, other.status.has(stamped))
    }
}

/// Packets one behind the other, all of the interface, type and clock of the first.
#[derive(Debug, Clone, Copy)]
pub struct AlikeFrames<'r> {
    /// The first one.
    pub first: Frame<'r>,
    /// The memory in which all of them lie.
    pub memory: &'r [u8],
}

/// `sll_pkttype` of `struct sockaddr_ll` (include/uapi/linux/if_packet.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketType(pub u8);

impl PacketType {
    /// For this host.
    pub const HOST: PacketType = PacketType(0);
    /// For all hosts of the link.
    pub const BROADCAST: PacketType = PacketType(1);
    /// For a group of hosts.
    pub const MULTICAST: PacketType = PacketType(2);
    /// For another host; seen because the interface is promiscuous.
    pub const OTHER_HOST: PacketType = PacketType(3);
    /// Sent by this host.
    pub const OUTGOING: PacketType = PacketType(4);
}

/// Bits of `tp_status` (include/uapi/linux/if_packet.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameStatus(pub u32);

impl FrameStatus {
    /// The frame is the reader's.
    pub(super) const USER: u32 = 1;
    /// The slot was too short for it: the whole packet waits at the socket (`TP_STATUS_COPY`).
    pub(super) const WAITS_WHOLE: u32 = 1 << 1;
    /// Packets were dropped before it.
    pub const LOSING: u32 = 1 << 2;
    /// The checksum is filled in by the device later: what stands there is no error.
    pub const CHECKSUM_NOT_READY: u32 = 1 << 3;
    /// `tp_vlan_tci` is one.
    pub(super) const VLAN_VALID: u32 = 1 << 4;
    /// `tp_vlan_tpid` is one, too.
    pub(super) const VLAN_TPID_VALID: u32 = 1 << 6;
    /// The checksum was found to be right.
    pub const CHECKSUM_VALID: u32 = 1 << 7;
    /// Several TCP segments in one (since 6.0).
    pub const GSO_TCP: u32 = 1 << 8;
    /// The stamp is the host's, of the moment when the packet was received.
    pub const STAMPED_BY_HOST: u32 = 1 << 29;
    /// The stamp is that of the adapter's clock.
    pub const STAMPED_BY_ADAPTER: u32 = 1 << 31;

    /// True if one of these bits is set.
    pub fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }
}

/// Bytes of a VLAN tag; so much is kept free in front of each packet.
pub(super) const TAG_BYTES: usize = 4;
/// The tag stands behind the two Ethernet addresses.
const TAG_AT: usize = 12;
/// `ETH_P_8021Q`: the kind of tag where the kernel names none.
const ETH_P_8021Q: u16 = 0x8100;

/// A tag that the kernel has taken out of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct StrippedTag {
    pub(super) tci: u16,
    pub(super) tpid: u16,
}

impl StrippedTag {
    /// The tag, if the status says that there is one.
    pub(super) fn of(status: u32, tci: u16, tpid: u16) -> Option<StrippedTag> {
        let is_there = status & FrameStatus::VLAN_VALID != 0;
        let tpid = if status & FrameStatus::VLAN_TPID_VALID != 0 { tpid } else { ETH_P_8021Q };
        is_there.then_some(StrippedTag { tci, tpid })
    }

    /// Puts the tag back into `place`: [`TAG_BYTES`] of free room, then the packet. False if too little of the packet
    /// was captured: then nothing is changed.
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
