//! Interfaces and queueing disciplines.

use super::{CounterMeaning, c, g};

/// Meanings of the counters and states of an interface (rtnetlink).
pub(super) const IFACE: &[CounterMeaning] = &[
    g("mtu", "Setting: MTU, the largest packet that the interface sends, in bytes."),
    g("carrier", "1 if the link is up, 0 if its cable, its peer or its driver is down."),
    c("carrier_changes", "Number of times that the link went up or down."),
    c("carrier_up_count", "Number of times that the link went up."),
    c("carrier_down_count", "Number of times that the link went down."),
    c("rx_packets", "Packets received."),
    c("tx_packets", "Packets sent."),
    c("rx_bytes", "Bytes received."),
    c("tx_bytes", "Bytes sent."),
    c("rx_errors", "Damaged packets received, for all reasons together."),
    c("tx_errors", "Packets that could not be sent, for all reasons together."),
    c(
        "rx_dropped",
        "Intact packets dropped by the host: out of memory, unknown protocol, or a VLAN that is not configured.",
    ),
    c(
        "tx_dropped",
        "Packets dropped before the device sent them: it is down, or its peer refuses them or has no room.",
    ),
    c("multicast", "Multicast packets received."),
    c("collisions", "Collisions while sending: a half-duplex link, or a duplex mismatch with the switch port."),
    c("rx_length_errors", "Packets received with a wrong length."),
    c("rx_over_errors", "Packets lost because the device's buffer overran."),
    c("rx_crc_errors", "Packets received with a wrong link-layer checksum: check cable, connector and optics."),
    c("rx_frame_errors", "Packets received with an incomplete byte (alignment error): check cable and duplex."),
    c("rx_fifo_errors", "Packets lost because the device's queue overran: the host fetches them too slowly."),
    c(
        "rx_missed_errors",
        "Packets that the device dropped because the host did not provide buffers in time: a larger ring or more \
         queues help.",
    ),
    c("tx_aborted_errors", "Packets that the device gave up sending."),
    c("tx_carrier_errors", "Packets not sent because the link was lost."),
    c("tx_fifo_errors", "Packets not sent because the device ran out of data (FIFO underrun): the bus is too slow."),
    c("tx_heartbeat_errors", "Missing heartbeats of old Ethernet transceivers."),
    c("tx_window_errors", "Late collisions: the link is too long, or its ends differ in duplex mode."),
    c("rx_compressed", "Compressed packets received (PPP, SLIP)."),
    c("tx_compressed", "Compressed packets sent (PPP, SLIP)."),
    c("rx_nohandler", "Packets dropped because the interface is an inactive member of a bond or team."),
    c(
        "rx_otherhost_dropped",
        "Packets dropped because their link-layer address belongs to another host: a switch floods, or the interface \
         is promiscuous.",
    ),
];

/// Meanings of the counters of a queueing discipline (rtnetlink).
pub(super) const QDISC: &[CounterMeaning] = &[
    c("bytes", "Bytes sent through the queue."),
    c("packets", "Packets sent through the queue."),
    g("qlen", "Packets waiting in the queue."),
    g("backlog", "Bytes waiting in the queue."),
    c("drops", "Packets dropped by the queue: it was full, or its delay or rate limit was exceeded."),
    c("requeues", "Number of times that a packet was requeued because the device was busy."),
    c(
        "overlimits",
        "Number of times that a packet had to wait because the rate was used up; for fq_codel and similar queues, that \
        a limit was reached.",
    ),
];
