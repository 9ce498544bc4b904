//! ICMP.

use super::{Meaning, c};

/// `Icmp` of /proc/net/snmp.
pub(super) const ICMP: &[Meaning] = &[
    c("IcmpInMsgs", "ICMP messages received."),
    c(
        "IcmpInErrors",
        "ICMP messages received that are wrong: length, checksum, or an error about nothing that this host sent.",
    ),
    c("IcmpInCsumErrors", "ICMP messages received with a wrong checksum."),
    c(
        "IcmpInDestUnreachs",
        "Received: destination unreachable, which is what routers and hosts answer for closed ports, missing routes \
         and packets that are too big.",
    ),
    c("IcmpInTimeExcds", "Received: time exceeded, so packets of this host ran out of hops or fragments did not come."),
    c("IcmpInParmProbs", "Received: parameter problem, so a header of this host was not understood."),
    c("IcmpInSrcQuenchs", "Received: source quench, an old way to ask for slower sending that nobody uses."),
    c("IcmpInRedirects", "Received: redirect, so a router knows a better one."),
    c("IcmpInEchos", "Received: echo request, a ping."),
    c("IcmpInEchoReps", "Received: echo reply, the answer to a ping."),
    c("IcmpInTimestamps", "Received: time stamp request."),
    c("IcmpInTimestampReps", "Received: time stamp reply."),
    c("IcmpInAddrMasks", "Received: address mask request."),
    c("IcmpInAddrMaskReps", "Received: address mask reply."),
    c("IcmpOutMsgs", "ICMP messages sent."),
    c("IcmpOutErrors", "ICMP messages that could not be sent."),
    c("IcmpOutRateLimitGlobal", "ICMP messages not sent because the host sends too many (icmp_msgs_per_sec)."),
    c("IcmpOutRateLimitHost", "ICMP messages not sent because their receiver got too many (icmp_ratelimit)."),
    c(
        "IcmpOutDestUnreachs",
        "Sent: destination unreachable, mostly for closed UDP ports here, missing routes and packets that are too big.",
    ),
    c(
        "IcmpOutTimeExcds",
        "Sent: time exceeded, so packets to be forwarded ran out of hops, or fragments did not come.",
    ),
    c("IcmpOutParmProbs", "Sent: parameter problem."),
    c("IcmpOutSrcQuenchs", "Sent: source quench, which this kernel never sends."),
    c("IcmpOutRedirects", "Sent: redirect, so a host used this router though it could reach the next one itself."),
    c("IcmpOutEchos", "Sent: echo request, a ping of this host."),
    c("IcmpOutEchoReps", "Sent: echo reply, the answer to a ping."),
    c("IcmpOutTimestamps", "Sent: time stamp request."),
    c("IcmpOutTimestampReps", "Sent: time stamp reply."),
    c("IcmpOutAddrMasks", "Sent: address mask request."),
    c("IcmpOutAddrMaskReps", "Sent: address mask reply."),
];
