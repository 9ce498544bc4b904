//! UDP and UDP-Lite, of IPv4 and IPv6.

use super::{CounterMeaning, c};

/// `Udp` of /proc/net/snmp.
pub(super) const UDP: &[CounterMeaning] = &[
    c("UdpInDatagrams", "UDP datagrams delivered to programs over IPv4."),
    c(
        "UdpNoPorts",
        "UDP datagrams over IPv4 for a port without a socket: a service is not running, or a sender uses the wrong \
        port.",
    ),
    c(
        "UdpInErrors",
        "UDP datagrams over IPv4 that were dropped: full receive buffers, wrong checksums and other reasons together.",
    ),
    c("UdpOutDatagrams", "UDP datagrams sent over IPv4."),
    c(
        "UdpRcvbufErrors",
        "UDP datagrams over IPv4 dropped because the receive buffer of their socket was full: its program reads too \
         slowly.",
    ),
    c(
        "UdpSndbufErrors",
        "UDP datagrams over IPv4 not sent because the send buffer, or the queue of the device, was full.",
    ),
    c("UdpInCsumErrors", "UDP datagrams over IPv4 dropped because of a wrong checksum: damaged on the path."),
    c("UdpIgnoredMulti", "Multicast UDP datagrams over IPv4 that no socket wanted."),
    c(
        "UdpMemErrors",
        "UDP datagrams over IPv4 dropped because all UDP sockets together use too much memory (udp_mem).",
    ),
];

/// `UdpLite` of /proc/net/snmp.
pub(super) const UDPLITE: &[CounterMeaning] = &[
    c("UdpLiteInDatagrams", "UDP-Lite datagrams delivered to programs over IPv4."),
    c("UdpLiteNoPorts", "UDP-Lite datagrams over IPv4 for a port without a socket."),
    c("UdpLiteInErrors", "UDP-Lite datagrams over IPv4 that were dropped, for all reasons."),
    c("UdpLiteOutDatagrams", "UDP-Lite datagrams sent over IPv4."),
    c("UdpLiteRcvbufErrors", "UDP-Lite datagrams over IPv4 dropped because the receive buffer was full."),
    c("UdpLiteSndbufErrors", "UDP-Lite datagrams over IPv4 not sent because the send buffer was full."),
    c("UdpLiteInCsumErrors", "UDP-Lite datagrams over IPv4 dropped because their checksum is wrong."),
    c("UdpLiteIgnoredMulti", "Multicast UDP-Lite datagrams over IPv4 that no socket wanted."),
    c("UdpLiteMemErrors", "UDP-Lite datagrams over IPv4 dropped because there was too little memory."),
];

/// `Udp6` of /proc/net/snmp6.
pub(super) const UDP6: &[CounterMeaning] = &[
    c("Udp6InDatagrams", "UDP datagrams delivered to programs over IPv6."),
    c(
        "Udp6NoPorts",
        "UDP datagrams over IPv6 for a port without a socket: a service is not running, or a sender uses the wrong \
        port.",
    ),
    c(
        "Udp6InErrors",
        "UDP datagrams over IPv6 that were dropped: full receive buffers, wrong checksums and other reasons together.",
    ),
    c("Udp6OutDatagrams", "UDP datagrams sent over IPv6."),
    c(
        "Udp6RcvbufErrors",
        "UDP datagrams over IPv6 dropped because the receive buffer of their socket was full: its program reads too \
         slowly.",
    ),
    c(
        "Udp6SndbufErrors",
        "UDP datagrams over IPv6 not sent because the send buffer, or the queue of the device, was full.",
    ),
    c("Udp6InCsumErrors", "UDP datagrams over IPv6 dropped because of a wrong or missing checksum."),
    c("Udp6IgnoredMulti", "Multicast UDP datagrams over IPv6 that no socket wanted."),
    c(
        "Udp6MemErrors",
        "UDP datagrams over IPv6 dropped because all UDP sockets together use too much memory (udp_mem).",
    ),
];

/// `UdpLite6` of /proc/net/snmp6.
pub(super) const UDPLITE6: &[CounterMeaning] = &[
    c("UdpLite6InDatagrams", "UDP-Lite datagrams delivered to programs over IPv6."),
    c("UdpLite6NoPorts", "UDP-Lite datagrams over IPv6 for a port without a socket."),
    c("UdpLite6InErrors", "UDP-Lite datagrams over IPv6 that were dropped, for all reasons."),
    c("UdpLite6OutDatagrams", "UDP-Lite datagrams sent over IPv6."),
    c("UdpLite6RcvbufErrors", "UDP-Lite datagrams over IPv6 dropped because the receive buffer was full."),
    c("UdpLite6SndbufErrors", "UDP-Lite datagrams over IPv6 not sent because the send buffer was full."),
    c("UdpLite6InCsumErrors", "UDP-Lite datagrams over IPv6 dropped because their checksum is wrong."),
    c("UdpLite6MemErrors", "UDP-Lite datagrams over IPv6 dropped because there was too little memory."),
];
