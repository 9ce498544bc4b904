//! Statistics of some drivers, mostly those known to count losses. Other driver statistics have no description.

use super::{CounterMeaning, c, g};

/// Meanings of driver statistics.
pub(super) const DRIVER: &[CounterMeaning] = &[
    g("peer_ifindex", "Interface index of the peer in the veth pair."),
    c(XDP_DROPS.0, XDP_DROPS.1),
    c("rx_xdp_drop", "Packets dropped by an XDP program in the driver."),
    c(
        "rx_discards_phy",
        "Intact packets that the network card dropped because its own buffer was full: it is congested.",
    ),
    c(
        "conntrack_allowance_exceeded",
        "Packets that the cloud dropped because the instance reached its limit of tracked connections.",
    ),
    c(
        "linklocal_allowance_exceeded",
        "Packets to the cloud's own services (DNS, metadata, time) that it dropped: too many per second.",
    ),
];

/// The name and meaning of a queue's statistic.
pub(super) const XDP_DROPS: (&str, &str) =
    ("rx_queue_#_xdp_drops", "Packets of this queue dropped by an XDP program in the driver.");

/// Meanings of the counters of a trap, by the end of their name.
pub(super) const TRAP: &[CounterMeaning] = &[
    c(
        ".packets",
        "Packets that the device handed to the kernel instead of forwarding them; they are lost if the trap's action \
        is drop.",
    ),
    c(".bytes", "Bytes of the packets that the device handed to the kernel."),
    c(".dropped", "Packets that the device itself dropped because of the trap's action."),
];
