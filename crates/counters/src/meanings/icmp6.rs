//! ICMPv6.

use super::{Meaning, c};

/// `Icmp6` of /proc/net/snmp6.
pub(super) const ICMP6: &[Meaning] = &[
    c("Icmp6InMsgs", "ICMPv6 messages received."),
    c("Icmp6InErrors", "ICMPv6 messages received that are wrong, or are about nothing that this host sent."),
    c("Icmp6OutMsgs", "ICMPv6 messages sent."),
    c("Icmp6OutErrors", "ICMPv6 messages that could not be sent."),
    c("Icmp6InCsumErrors", "ICMPv6 messages received with a wrong checksum."),
    c("Icmp6OutRateLimitHost", "ICMPv6 messages not sent because their receiver got too many."),
    c(
        "Icmp6InDestUnreachs",
        "Received: destination unreachable, which is what is answered for closed ports and missing routes.",
    ),
    c("Icmp6InPktTooBigs", "Received: packet too big, so a link on the way takes only smaller packets."),
    c(
        "Icmp6InTimeExcds",
        "Received: time exceeded, so packets of this host ran out of hops or fragments did not come.",
    ),
    c("Icmp6InParmProblems", "Received: parameter problem, so a header of this host was not understood."),
    c("Icmp6InEchos", "Received: echo request, a ping."),
    c("Icmp6InEchoReplies", "Received: echo reply, the answer to a ping."),
    c("Icmp6InGroupMembQueries", "Received: a router asks which multicast groups are listened to."),
    c("Icmp6InGroupMembResponses", "Received: a host says that it listens to a multicast group."),
    c("Icmp6InGroupMembReductions", "Received: a host says that it left a multicast group."),
    c("Icmp6InRouterSolicits", "Received: a host looks for routers."),
    c("Icmp6InRouterAdvertisements", "Received: a router announces itself and its prefixes."),
    c("Icmp6InNeighborSolicits", "Received: somebody asks for the link-layer address of an IPv6 address."),
    c("Icmp6InNeighborAdvertisements", "Received: the answer with a link-layer address."),
    c("Icmp6InRedirects", "Received: redirect, so a router knows a better one."),
    c("Icmp6InMLDv2Reports", "Received: which multicast groups a host listens to, version 2."),
    c("Icmp6OutDestUnreachs", "Sent: destination unreachable, mostly for closed UDP ports here and missing routes."),
    c("Icmp6OutPktTooBigs", "Sent: packet too big, so packets to be forwarded do not fit the next link."),
    c(
        "Icmp6OutTimeExcds",
        "Sent: time exceeded, so packets to be forwarded ran out of hops, or fragments did not come.",
    ),
    c("Icmp6OutParmProblems", "Sent: parameter problem."),
    c("Icmp6OutEchos", "Sent: echo request, a ping of this host."),
    c("Icmp6OutEchoReplies", "Sent: echo reply, the answer to a ping."),
    c("Icmp6OutGroupMembQueries", "Sent: question which multicast groups are listened to."),
    c("Icmp6OutGroupMembResponses", "Sent: this host listens to a multicast group."),
    c("Icmp6OutGroupMembReductions", "Sent: this host left a multicast group."),
    c("Icmp6OutRouterSolicits", "Sent: this host looks for routers."),
    c("Icmp6OutRouterAdvertisements", "Sent: this router announces itself."),
    c("Icmp6OutNeighborSolicits", "Sent: question for the link-layer address of an IPv6 address."),
    c("Icmp6OutNeighborAdvertisements", "Sent: the answer with a link-layer address of this host."),
    c("Icmp6OutRedirects", "Sent: redirect."),
    c("Icmp6OutMLDv2Reports", "Sent: which multicast groups this host listens to, version 2."),
];
