//! Statistics of some drivers, mostly those known to count losses. Other driver statistics have no description.

use super::{Meaning, c, g};

/// Meanings of driver statistics.
pub(super) const DRIVER: &[Meaning] = &[
    g("peer_ifindex", "Number of the interface at the other end of the veth pair."),
    c(XDP_DROPS.0, XDP_DROPS.1),
    c("rx_xdp_drop", "Packets that an XDP program in the driver dropped."),
    c(
        "rx_discards_phy",
        "Packets received whole that the card dropped for want of room in its own buffer: it is congested.",
    ),
    c(
        "conntrack_allowance_exceeded",
        "Packets that the cloud dropped because the instance may have no more tracked connections.",
    ),
    c(
        "linklocal_allowance_exceeded",
        "Packets to the cloud's own services (DNS, metadata, time) that it dropped: there were too many a second.",
    ),
];

/// The name and meaning of a queue's statistic.
pub(super) const XDP_DROPS: (&str, &str) =
    ("rx_queue_#_xdp_drops", "Packets of this queue that an XDP program in the driver dropped.");

/// Meanings of the counters of a trap, by the end of their name.
pub(super) const TRAP: &[Meaning] = &[
    c(
        ".packets",
        "Packets that the device did not forward and handed to the kernel: of a trap that drops they are lost.",
    ),
    c(".bytes", "Bytes of the packets that the device handed to the kernel."),
    c(".dropped", "Packets that the device dropped by itself, as the trap's action says."),
];
