//! Interfaces and queueing disciplines.

use super::{Meaning, c, g};

/// Meanings of the counters and states of an interface (rtnetlink).
pub(super) const IFACE: &[Meaning] = &[
    g("mtu", "Setting: the largest packet that the interface sends, in bytes."),
    g("carrier", "1 if the link is up, 0 if its cable, its peer or its driver is not."),
    c("carrier_changes", "Times that the link went up or down."),
    c("carrier_up_count", "Times that the link went up."),
    c("carrier_down_count", "Times that the link went down."),
    c("rx_packets", "Packets received."),
    c("tx_packets", "Packets sent."),
    c("rx_bytes", "Bytes received."),
    c("tx_bytes", "Bytes sent."),
    c("rx_errors", "Packets received damaged, for all reasons together."),
    c("tx_errors", "Packets that could not be sent, for all reasons together."),
    c(
        "rx_dropped",
        "Packets received whole and dropped by the host: no memory, an unknown protocol, a VLAN that nobody has.",
    ),
    c(
        "tx_dropped",
        "Packets dropped on their way to the device: it is down, its peer does not take them, or has no room.",
    ),
    c("multicast", "Multicast packets received."),
    c("collisions", "Collisions while sending: a half-duplex link, or a switch port that disagrees."),
    c("rx_length_errors", "Packets received with a wrong length."),
    c("rx_over_errors", "Packets lost because the device's buffer overran."),
    c("rx_crc_errors", "Packets received with a wrong checksum of the link: cable, plug, optics."),
    c("rx_frame_errors", "Packets received that are no whole bytes: cable, duplex."),
    c("rx_fifo_errors", "Packets lost because the device's queue overran: the host takes them too slowly."),
    c(
        "rx_missed_errors",
        "Packets that the device had to drop because the host gave it no buffers in time: a larger ring or more \
         queues help.",
    ),
    c("tx_aborted_errors", "Packets given up by the device while sending."),
    c("tx_carrier_errors", "Packets not sent because the link was lost."),
    c("tx_fifo_errors", "Packets not sent because the device ran out of data: the bus is too slow."),
    c("tx_heartbeat_errors", "Missing heartbeats of old Ethernet transceivers."),
    c("tx_window_errors", "Collisions later than allowed: the link is too long, or of another duplex."),
    c("rx_compressed", "Compressed packets received (PPP, SLIP)."),
    c("tx_compressed", "Compressed packets sent (PPP, SLIP)."),
    c("rx_nohandler", "Packets dropped because the interface is an inactive member of a bond or team."),
    c(
        "rx_otherhost_dropped",
        "Packets dropped because their link-layer address is another host's: a switch floods, or the interface is \
         promiscuous.",
    ),
];

/// Meanings of the counters of a queueing discipline (rtnetlink).
pub(super) const QDISC: &[Meaning] = &[
    c("bytes", "Bytes sent through the queue."),
    c("packets", "Packets sent through the queue."),
    g("qlen", "Packets that wait in the queue now."),
    g("backlog", "Bytes that wait in the queue now."),
    c("drops", "Packets that the queue dropped: it was full, or its rule for delay or rate said so."),
    c("requeues", "Times that a packet went back into the queue because the device was busy."),
    c(
        "overlimits",
        "Times that a packet had to wait because its rate was used up; of fq_codel and the like: that a limit was met.",
    ),
];
