//! ICMPv6.

use super::{CounterMeaning, c};

/// `Icmp6` of /proc/net/snmp6.
pub(super) const ICMP6: &[CounterMeaning] = &[
    c("Icmp6InMsgs", "ICMPv6 messages received."),
    c("Icmp6InErrors", "Invalid ICMPv6 messages received, or errors about a packet that this host did not send."),
    c("Icmp6OutMsgs", "ICMPv6 messages sent."),
    c("Icmp6OutErrors", "ICMPv6 messages that could not be sent."),
    c("Icmp6InCsumErrors", "ICMPv6 messages received with a wrong checksum."),
    c("Icmp6OutRateLimitHost", "ICMPv6 messages not sent because of the limit per destination."),
    c("Icmp6InDestUnreachs", "Destination unreachable messages received: for closed ports and missing routes."),
    c("Icmp6InPktTooBigs", "Packet too big messages received: a link on the path has a smaller MTU."),
    c(
        "Icmp6InTimeExcds",
        "Time exceeded messages received: packets of this host ran out of hops, or fragments were missing.",
    ),
    c("Icmp6InParmProblems", "Parameter problem messages received: a header sent by this host was not understood."),
    c("Icmp6InEchos", "Echo requests (pings) received."),
    c("Icmp6InEchoReplies", "Echo replies received: answers to pings."),
    c("Icmp6InGroupMembQueries", "Multicast listener queries received: a router asks for the groups in use."),
    c("Icmp6InGroupMembResponses", "Multicast listener reports received: a host joined a group."),
    c("Icmp6InGroupMembReductions", "Multicast listener done messages received: a host left a group."),
    c("Icmp6InRouterSolicits", "Router solicitations received: a host looks for routers."),
    c("Icmp6InRouterAdvertisements", "Router advertisements received: a router announces itself and its prefixes."),
    c(
        "Icmp6InNeighborSolicits",
        "Neighbour solicitations received: a host asks for the link-layer address of an IPv6 address.",
    ),
    c("Icmp6InNeighborAdvertisements", "Neighbour advertisements received: the answer with a link-layer address."),
    c("Icmp6InRedirects", "Redirect messages received: a router named a better next hop."),
    c("Icmp6InMLDv2Reports", "Multicast listener reports (version 2) received: the groups that a host joined."),
    c(
        "Icmp6OutDestUnreachs",
        "Destination unreachable messages sent: mostly for closed UDP ports of this host and missing routes.",
    ),
    c("Icmp6OutPktTooBigs", "Packet too big messages sent: packets to be forwarded exceed the MTU of the next link."),
    c(
        "Icmp6OutTimeExcds",
        "Time exceeded messages sent: packets to be forwarded ran out of hops, or fragments were missing.",
    ),
    c("Icmp6OutParmProblems", "Parameter problem messages sent."),
    c("Icmp6OutEchos", "Echo requests (pings) sent."),
    c("Icmp6OutEchoReplies", "Echo replies sent: answers to pings."),
    c("Icmp6OutGroupMembQueries", "Multicast listener queries sent: this host asks for the groups in use."),
    c("Icmp6OutGroupMembResponses", "Multicast listener reports sent: this host joined a group."),
    c("Icmp6OutGroupMembReductions", "Multicast listener done messages sent: this host left a group."),
    c("Icmp6OutRouterSolicits", "Router solicitations sent: this host looks for routers."),
    c("Icmp6OutRouterAdvertisements", "Router advertisements sent: this router announces itself."),
    c(
        "Icmp6OutNeighborSolicits",
        "Neighbour solicitations sent: this host asks for the link-layer address of an IPv6 address.",
    ),
    c(
        "Icmp6OutNeighborAdvertisements",
        "Neighbour advertisements sent: the answer with a link-layer address of this host.",
    ),
    c("Icmp6OutRedirects", "Sent: redirect."),
    c("Icmp6OutMLDv2Reports", "Multicast listener reports (version 2) sent: the groups that this host joined."),
];
