//! IPv4.

use super::{CounterMeaning, c, g};

/// `Ip` of /proc/net/snmp.
pub(super) const IP: &[CounterMeaning] = &[
    g("IpForwarding", "Setting: 1 if this namespace forwards IPv4 packets, 2 if not."),
    g("IpDefaultTTL", "Setting: the time to live of IPv4 packets that this host sends."),
    c("IpInReceives", "IPv4 packets received, including those that were dropped later."),
    c(
        "IpInHdrErrors",
        "IPv4 packets dropped because of their header: wrong version, length or checksum, or time to live exceeded.",
    ),
    c(
        "IpInAddrErrors",
        "IPv4 packets dropped because their destination is not an address of this host and they are not forwarded.",
    ),
    c("IpForwDatagrams", "IPv4 packets forwarded to another host."),
    c("IpInUnknownProtos", "IPv4 packets for this host with a protocol that it does not support."),
    c("IpInDiscards", "Valid IPv4 packets dropped on input: mostly for lack of memory, or by a filter of the stack."),
    c("IpInDelivers", "IPv4 packets delivered to TCP, UDP, ICMP or another protocol of this host."),
    c("IpOutRequests", "IPv4 packets that protocols of this host wanted to send."),
    c("IpOutDiscards", "Valid IPv4 packets dropped on output: no memory, no neighbour, or refused by the device."),
    c("IpOutNoRoutes", "IPv4 packets of this host dropped for lack of a route to their destination."),
    c("IpReasmTimeout", "IPv4 datagrams discarded because fragments did not arrive in time."),
    c("IpReasmReqds", "IPv4 fragments received for reassembly."),
    c("IpReasmOKs", "IPv4 datagrams reassembled from fragments."),
    c("IpReasmFails", "Failed IPv4 reassemblies: timeout, lack of memory, or fragments that do not fit."),
    c("IpFragOKs", "IPv4 packets split into fragments."),
    c("IpFragFails", "IPv4 packets dropped because they exceed the path MTU and must not be fragmented (DF)."),
    c("IpFragCreates", "IPv4 fragments created."),
    c("IpOutTransmits", "IPv4 packets passed to a device: local and forwarded packets and their fragments."),
];

/// `IpExt` of /proc/net/netstat.
pub(super) const IP_EXT: &[CounterMeaning] = &[
    c("IpExtInNoRoutes", "IPv4 packets received and dropped for lack of a route to their destination."),
    c("IpExtInTruncatedPkts", "IPv4 packets dropped because they are shorter than their header states."),
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
    c("IpExtInECT0Pkts", "IPv4 packets received with the mark ECT(0): their sender supports congestion marks."),
    c("IpExtInCEPkts", "IPv4 packets received that a router on the path marked as having met congestion."),
    c("IpExtReasmOverlaps", "IPv4 fragments that overlap others: a faulty sender, or an attack."),
];
