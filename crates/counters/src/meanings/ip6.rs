//! IPv6.

use super::{Meaning, c};

/// `Ip6` of /proc/net/snmp6.
pub(super) const IP6: &[Meaning] = &[
    c("Ip6InReceives", "IPv6 packets that came in, also those that were dropped afterwards."),
    c("Ip6InHdrErrors", "IPv6 packets dropped for their header: wrong version or option, or their hop limit was over."),
    c("Ip6InTooBigErrors", "IPv6 packets not forwarded because they are larger than the next link takes."),
    c("Ip6InNoRoutes", "IPv6 packets that came in and were dropped because no route leads to their destination."),
    c("Ip6InAddrErrors", "IPv6 packets dropped because their address is not valid here or is not forwarded to."),
    c("Ip6InUnknownProtos", "IPv6 packets for this host whose next header nothing here speaks."),
    c("Ip6InTruncatedPkts", "IPv6 packets dropped because they are shorter than their header says."),
    c(
        "Ip6InDiscards",
        "IPv6 packets without a fault dropped on the way in: mostly memory, or IPv6 is off on the interface.",
    ),
    c("Ip6InDelivers", "IPv6 packets handed to a protocol of this host."),
    c("Ip6OutForwDatagrams", "IPv6 packets forwarded to another host."),
    c("Ip6OutRequests", "IPv6 packets that protocols of this host gave to be sent."),
    c("Ip6OutDiscards", "IPv6 packets without a fault dropped on the way out: no memory, no neighbour, IPv6 is off."),
    c("Ip6OutNoRoutes", "IPv6 packets of this host dropped because no route leads to their destination."),
    c("Ip6ReasmTimeout", "IPv6 datagrams given up because fragments did not come in time."),
    c("Ip6ReasmReqds", "IPv6 fragments that came to be put together."),
    c("Ip6ReasmOKs", "IPv6 datagrams put together from fragments."),
    c("Ip6ReasmFails", "Failures to put IPv6 fragments together: time, memory, or pieces that do not fit."),
    c("Ip6FragOKs", "IPv6 packets of this host cut into fragments."),
    c("Ip6FragFails", "IPv6 packets that could not be cut into fragments."),
    c("Ip6FragCreates", "IPv6 fragments made."),
    c("Ip6InMcastPkts", "IPv6 multicast packets received."),
    c("Ip6OutMcastPkts", "IPv6 multicast packets sent."),
    c("Ip6InOctets", "Bytes of IPv6 packets received, with their headers."),
    c("Ip6OutOctets", "Bytes of IPv6 packets sent, with their headers."),
    c("Ip6InMcastOctets", "Bytes of IPv6 multicast packets received."),
    c("Ip6OutMcastOctets", "Bytes of IPv6 multicast packets sent."),
    c("Ip6InBcastOctets", "Bytes of IPv6 broadcasts received: IPv6 has none, so it stays 0."),
    c("Ip6OutBcastOctets", "Bytes of IPv6 broadcasts sent: IPv6 has none, so it stays 0."),
    c("Ip6InNoECTPkts", "IPv6 packets received whose sender does not use explicit congestion notification."),
    c("Ip6InECT1Pkts", "IPv6 packets received with the mark ECT(1)."),
    c("Ip6InECT0Pkts", "IPv6 packets received with the mark ECT(0): their sender understands congestion marks."),
    c("Ip6InCEPkts", "IPv6 packets received that a router on the way marked as having met congestion."),
    c("Ip6OutTransmits", "IPv6 packets handed to the device: own, forwarded, and fragments of both."),
];
