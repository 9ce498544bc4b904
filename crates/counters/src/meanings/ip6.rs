//! IPv6.

use super::{CounterMeaning, c};

/// `Ip6` of /proc/net/snmp6.
pub(super) const IP6: &[CounterMeaning] = &[
    c("Ip6InReceives", "IPv6 packets received, including those that were dropped later."),
    c(
        "Ip6InHdrErrors",
        "IPv6 packets dropped because of their header: wrong version or option, or hop limit exceeded.",
    ),
    c("Ip6InTooBigErrors", "IPv6 packets not forwarded because they exceed the MTU of the next link."),
    c("Ip6InNoRoutes", "IPv6 packets received and dropped for lack of a route to their destination."),
    c(
        "Ip6InAddrErrors",
        "IPv6 packets dropped because their destination is not a valid address of this host and they \
        are not forwarded.",
    ),
    c("Ip6InUnknownProtos", "IPv6 packets for this host with a next header that it does not support."),
    c("Ip6InTruncatedPkts", "IPv6 packets dropped because they are shorter than their header states."),
    c(
        "Ip6InDiscards",
        "Valid IPv6 packets dropped on input: mostly for lack of memory, or because IPv6 is off on the interface.",
    ),
    c("Ip6InDelivers", "IPv6 packets delivered to a protocol of this host."),
    c("Ip6OutForwDatagrams", "IPv6 packets forwarded to another host."),
    c("Ip6OutRequests", "IPv6 packets that protocols of this host wanted to send."),
    c("Ip6OutDiscards", "Valid IPv6 packets dropped on output: no memory, no neighbour, or IPv6 is off."),
    c("Ip6OutNoRoutes", "IPv6 packets of this host dropped for lack of a route to their destination."),
    c("Ip6ReasmTimeout", "IPv6 datagrams discarded because fragments did not arrive in time."),
    c("Ip6ReasmReqds", "IPv6 fragments received for reassembly."),
    c("Ip6ReasmOKs", "IPv6 datagrams reassembled from fragments."),
    c("Ip6ReasmFails", "Failed IPv6 reassemblies: timeout, lack of memory, or fragments that do not fit."),
    c("Ip6FragOKs", "IPv6 packets of this host split into fragments."),
    c("Ip6FragFails", "IPv6 packets that could not be fragmented."),
    c("Ip6FragCreates", "IPv6 fragments created."),
    c("Ip6InMcastPkts", "IPv6 multicast packets received."),
    c("Ip6OutMcastPkts", "IPv6 multicast packets sent."),
    c("Ip6InOctets", "Bytes of IPv6 packets received, with their headers."),
    c("Ip6OutOctets", "Bytes of IPv6 packets sent, with their headers."),
    c("Ip6InMcastOctets", "Bytes of IPv6 multicast packets received."),
    c("Ip6OutMcastOctets", "Bytes of IPv6 multicast packets sent."),
    c("Ip6InBcastOctets", "Bytes of IPv6 broadcasts received: always 0, IPv6 has no broadcast."),
    c("Ip6OutBcastOctets", "Bytes of IPv6 broadcasts sent: always 0, IPv6 has no broadcast."),
    c("Ip6InNoECTPkts", "IPv6 packets received whose sender does not use explicit congestion notification."),
    c("Ip6InECT1Pkts", "IPv6 packets received with the mark ECT(1)."),
    c("Ip6InECT0Pkts", "IPv6 packets received with the mark ECT(0): their sender supports congestion marks."),
    c("Ip6InCEPkts", "IPv6 packets received that a router on the path marked as having met congestion."),
    c("Ip6OutTransmits", "IPv6 packets passed to a device: local and forwarded packets and their fragments."),
];
