//! ICMP.

use super::{CounterMeaning, c};

/// `Icmp` of /proc/net/snmp.
pub(super) const ICMP: &[CounterMeaning] = &[
    c("IcmpInMsgs", "ICMP messages received."),
    c(
        "IcmpInErrors",
        "Invalid ICMP messages received: wrong length or checksum, or an error about a packet that this host did not \
        send.",
    ),
    c("IcmpInCsumErrors", "ICMP messages received with a wrong checksum."),
    c(
        "IcmpInDestUnreachs",
        "Destination unreachable messages received: from routers and hosts, for closed ports, missing routes and \
         packets that are too big.",
    ),
    c(
        "IcmpInTimeExcds",
        "Time exceeded messages received: packets of this host ran out of hops, or fragments were missing.",
    ),
    c("IcmpInParmProbs", "Parameter problem messages received: a header sent by this host was not understood."),
    c("IcmpInSrcQuenchs", "Source quench messages received: an obsolete request to send more slowly."),
    c("IcmpInRedirects", "Redirect messages received: a router named a better next hop."),
    c("IcmpInEchos", "Echo requests (pings) received."),
    c("IcmpInEchoReps", "Echo replies received: answers to pings."),
    c("IcmpInTimestamps", "Timestamp requests received."),
    c("IcmpInTimestampReps", "Timestamp replies received."),
    c("IcmpInAddrMasks", "Address mask requests received."),
    c("IcmpInAddrMaskReps", "Address mask replies received."),
    c("IcmpOutMsgs", "ICMP messages sent."),
    c("IcmpOutErrors", "ICMP messages that could not be sent."),
    c("IcmpOutRateLimitGlobal", "ICMP messages not sent because of the limit for the whole host (icmp_msgs_per_sec)."),
    c("IcmpOutRateLimitHost", "ICMP messages not sent because of the limit per destination (icmp_ratelimit)."),
    c(
        "IcmpOutDestUnreachs",
        "Destination unreachable messages sent: mostly for closed UDP ports of this host, missing routes and packets \
        that are too big.",
    ),
    c(
        "IcmpOutTimeExcds",
        "Time exceeded messages sent: packets to be forwarded ran out of hops, or fragments were missing.",
    ),
    c("IcmpOutParmProbs", "Parameter problem messages sent."),
    c("IcmpOutSrcQuenchs", "Source quench messages sent: always 0, the kernel never sends them."),
    c(
        "IcmpOutRedirects",
        "Redirect messages sent: a host used this router although it can reach the next hop directly.",
    ),
    c("IcmpOutEchos", "Echo requests (pings) sent."),
    c("IcmpOutEchoReps", "Echo replies sent: answers to pings."),
    c("IcmpOutTimestamps", "Timestamp requests sent."),
    c("IcmpOutTimestampReps", "Timestamp replies sent."),
    c("IcmpOutAddrMasks", "Address mask requests sent."),
    c("IcmpOutAddrMaskReps", "Address mask replies sent."),
];
