//! IPv4.

use super::{Meaning, c, g};

/// `Ip` of /proc/net/snmp.
pub(super) const IP: &[Meaning] = &[
    g("IpForwarding", "Setting: 1 if this namespace forwards IPv4 packets, 2 if not."),
    g("IpDefaultTTL", "Setting: the time to live of IPv4 packets that this host sends."),
    c("IpInReceives", "IPv4 packets that came in, also those that were dropped afterwards."),
    c(
        "IpInHdrErrors",
        "IPv4 packets dropped for their header: wrong version, length or checksum, or their time to live was over.",
    ),
    c(
        "IpInAddrErrors",
        "IPv4 packets dropped because their destination is no address of this host and is not forwarded to.",
    ),
    c("IpForwDatagrams", "IPv4 packets forwarded to another host."),
    c("IpInUnknownProtos", "IPv4 packets for this host whose protocol nothing here speaks."),
    c("IpInDiscards", "IPv4 packets without a fault dropped on the way in: mostly memory, or a filter of the stack."),
    c("IpInDelivers", "IPv4 packets handed to TCP, UDP, ICMP or another protocol of this host."),
    c("IpOutRequests", "IPv4 packets that protocols of this host gave to be sent."),
    c(
        "IpOutDiscards",
        "IPv4 packets without a fault dropped on the way out: no memory, no neighbour, or a device that refused.",
    ),
    c("IpOutNoRoutes", "IPv4 packets of this host dropped because no route leads to their destination."),
    c("IpReasmTimeout", "IPv4 datagrams given up because fragments did not come in time."),
    c("IpReasmReqds", "IPv4 fragments that came to be put together."),
    c("IpReasmOKs", "IPv4 datagrams put together from fragments."),
    c("IpReasmFails", "Failures to put IPv4 fragments together: time, memory, or pieces that do not fit."),
    c("IpFragOKs", "IPv4 packets cut into fragments."),
    c("IpFragFails", "IPv4 packets dropped because they are larger than the path and must not be cut (DF)."),
    c("IpFragCreates", "IPv4 fragments made."),
    c("IpOutTransmits", "IPv4 packets handed to the device: own, forwarded, and fragments of both."),
];

/// `IpExt` of /proc/net/netstat.
pub(super) const IP_EXT: &[Meaning] = &[
    c("IpExtInNoRoutes", "IPv4 packets that came in and were dropped because no route leads to their destination."),
    c("IpExtInTruncatedPkts", "IPv4 packets dropped because they are shorter than their header says."),
    c("IpExtInMcastPkts", "IPv4 multicast packets received."),
    c("IpExtOutMcastPkts", "IPv4 multicast packets sent."),
    c("IpExtInBcastPkts", "IPv4 broadcast packets received."),
    c("IpExtOutBcastPkts", "IPv4 broadcast packets sent."),
    c("IpExtInOctets", "Bytes of IPv4 packets received, with their headers."),
    c("IpExtOutOctets", "Bytes of IPv4 packets sent, with their headers."),
    c("IpExtInMcastOctets", "Bytes of IPv4 multicast packets received."),
    c("IpExtOutMcastOctets", "Bytes of IPv4 multicast packets sent."),
    c("IpExtInBcastOctets", "Bytes of IPv4 broadcast packets received."),
    c("IpExtOutBcastOctets", "Bytes of IPv4 broadcast packets sent."),
    c("IpExtInCsumErrors", "IPv4 packets dropped because the checksum of their header is wrong."),
    c("IpExtInNoECTPkts", "IPv4 packets received whose sender does not use explicit congestion notification."),
    c("IpExtInECT1Pkts", "IPv4 packets received with the mark ECT(1)."),
    c("IpExtInECT0Pkts", "IPv4 packets received with the mark ECT(0): their sender understands congestion marks."),
    c("IpExtInCEPkts", "IPv4 packets received that a router on the way marked as having met congestion."),
    c("IpExtReasmOverlaps", "IPv4 fragments that overlap others: a broken sender, or an attack."),
];
