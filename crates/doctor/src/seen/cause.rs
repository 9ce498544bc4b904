//! The check that explains a drop, by its reason and place.
//!
//! Reasons are matched by name, because their numbers differ from kernel to kernel. Older kernels have fewer reasons:
//! then the place decides.

/// Reason and place that a check explains together.
const AT_PLACES: &[(&str, &str, &str)] = &[
    ("NETFILTER_DROP", "nf_hook_slow", "rule-drop"),
    ("IP_INHDR", "ip_forward", "ttl-expired"),
    ("IP_INHDR", "ip6_forward", "ttl-expired"),
    ("NOT_SPECIFIED", "nf_queue", "nfqueue"),
    ("NOT_SPECIFIED", "nf_reinject", "nfqueue"),
    ("NOT_SPECIFIED", "ip_error", "route-refuses"),
    ("NOT_SPECIFIED", "dst_discard_out", "route-refuses"),
    ("NOT_SPECIFIED", "dst_discard", "route-refuses"),
    ("NOT_SPECIFIED", "dst_discard_sk", "route-refuses"),
    ("NOT_SPECIFIED", "ip6_pkt_drop", "route-refuses"),
    ("NOT_SPECIFIED", "ip6_pkt_discard", "route-refuses"),
    ("NOT_SPECIFIED", "ip6_pkt_prohibit", "route-refuses"),
    // XDP_DROP has no reason: generic XDP, and XDP in the driver veth.
    ("NOT_SPECIFIED", "do_xdp_generic", "tc-xdp-drop"),
    ("NOT_SPECIFIED", "netif_receive_generic_xdp", "tc-xdp-drop"),
    ("NOT_SPECIFIED", "veth_xdp_rcv_skb", "tc-xdp-drop"),
    ("NOT_SPECIFIED", "__dev_forward_skb", "mtu-mismatch"),
    ("NOT_SPECIFIED", "__dev_forward_skb2", "mtu-mismatch"),
    ("NOT_SPECIFIED", "br_dev_queue_push_xmit", "mtu-mismatch"),
    ("NO_TX_TARGET", "br_handle_frame_finish", "bridge-port"),
    ("NO_TX_TARGET", "br_flood", "bridge-port"),
    ("NO_TX_TARGET", "br_forward", "bridge-port"),
    ("NO_TX_TARGET", "br_multicast_flood", "mcast-snooping"),
    ("NOT_SPECIFIED", "noop_enqueue", "iface-down"),
    // IPv6 gives no reason. The first function may call the second without a frame of its own.
    ("NOT_SPECIFIED", "ndisc_error_report", "neigh-failed"),
    ("NOT_SPECIFIED", "neigh_invalidate", "neigh-failed"),
    ("NOT_SPECIFIED", "netlink_attachskb", "netlink-overrun"),
    ("NOT_SPECIFIED", "netlink_broadcast_filtered", "netlink-overrun"),
    ("NOT_SPECIFIED", "netlink_unicast", "netlink-overrun"),
    ("NOT_SPECIFIED", "tpacket_rcv", "packet-drops"),
    ("NOT_SPECIFIED", "packet_rcv", "packet-drops"),
    ("NOT_SPECIFIED", "tcp_conn_request", "syn-cookies"),
];

/// Reasons that a check explains wherever they occur.
const REASONS: &[(&str, &[&str])] = &[
    ("rule-drop", &["NETFILTER_DROP"]),
    ("tc-xdp-drop", &["TC_INGRESS", "TC_EGRESS", "XDP", "CAN_RX_INVALID_FRAME"]),
    ("cgroup-drop", &["BPF_CGROUP_EGRESS"]),
    ("socket-filter", &["SOCKET_FILTER"]),
    ("ipsec", &["XFRM_POLICY"]),
    (
        "tcp-signature",
        &[
            "TCP_MD5NOTFOUND",
            "TCP_MD5UNEXPECTED",
            "TCP_MD5FAILURE",
            "TCP_AONOTFOUND",
            "TCP_AOUNEXPECTED",
            "TCP_AOKEYNOTFOUND",
            "TCP_AOFAILURE",
            "TCP_AUTH_HDR",
        ],
    ),
    ("rp-filter", &["IP_RPFILTER"]),
    ("forwarding-off", &["IP_INADDRERRORS"]),
    ("no-route", &["IP_INNOROUTES", "IP_OUTNOROUTES"]),
    ("ttl-expired", &["IP_TTL_EXCEEDED"]),
    ("checksum", &["TCP_CSUM", "UDP_CSUM", "IP_CSUM", "ICMP_CSUM", "SKB_CSUM"]),
    ("neigh-failed", &["NEIGH_FAILED", "NEIGH_DEAD", "NEIGH_QUEUEFULL"]),
    ("neigh-full", &["NEIGH_CREATEFAIL"]),
    ("mtu", &["PKT_TOO_BIG"]),
    ("martian", &["IP_LOCAL_SOURCE", "IP_INVALID_SOURCE", "IP_INVALID_DEST", "IP_LOCALNET"]),
    ("ipv6-off", &["IPV6DISABLED"]),
    ("closed-port", &["NO_SOCKET"]),
    ("qdisc-drop", &["QDISC_DROP", "QDISC_OVERLIMIT", "QDISC_BURST_DROP", "QDISC_CONGESTED"]),
    ("softnet-drop", &["CPU_BACKLOG"]),
    ("packet-drops", &["PACKET_SOCK_ERROR"]),
    ("paws", &["TCP_RFC7323_PAWS", "TCP_RFC7323_PAWS_ACK", "TCP_RFC7323_TW_PAWS"]),
    ("challenged", &["TCP_RESET", "TCP_TOO_OLD_ACK", "TCP_ACK_UNSENT_DATA"]),
    ("rcv-prune", &["TCP_OVERWINDOW", "TCP_ZEROWINDOW", "TCP_OFO_QUEUE_PRUNE", "TCP_OFO_DROP", "SOCKET_BACKLOG"]),
    ("reassembly", &["FRAG_REASM_TIMEOUT", "DUP_FRAG", "FRAG_TOO_FAR"]),
    ("iface-down", &["DEV_READY"]),
    ("bridge-port", &["BRIDGE_INGRESS_STP_STATE"]),
];

/// Reasons of packets whose protocol this host does not support.
const FOREIGN: &[&str] = &["UNHANDLED_PROTO", "NOT_DROPPED_YET"];

/// Reasons without a meaning of their own.
pub(crate) const VAGUE: &[&str] = &["NOT_SPECIFIED", ""];

/// Returns the check that explains packets of the protocol `proto` dropped for `reason` in the function `place`:
/// `packet-drop` if no other check does, `` for packets that need no finding.
pub(crate) fn cause_of(reason: &str, place: &str, proto: &str) -> &'static str {
    // Before Linux 5.17 there are no reasons. Then a place decides if it drops packets for only one reason.
    let is_it = |of: &str| of == reason || reason.is_empty() && ["NOT_SPECIFIED", "NETFILTER_DROP"].contains(&of);
    if let Some((.., id)) = AT_PLACES.iter().find(|(of, at, _)| is_it(of) && *at == place) {
        return id;
    }
    if matches!(reason, "SOCKET_RCVBUFF" | "PROTO_MEM") {
        return match (place, proto) {
            (_, "udp") => "udp-rcvbuf",
            (_, "tcp") => "rcv-prune",
            (place, _) if place.starts_with("netlink_") => "netlink-overrun",
            (place, _) if place.contains("packet_rcv") => "packet-drops",
            _ => "packet-drop",
        };
    }
    match REASONS.iter().find(|(_, reasons)| reasons.contains(&reason)) {
        Some((id, _)) => id,
        None if FOREIGN.contains(&reason) => "",
        None => "packet-drop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::CHECKS;

    #[test]
    fn places_and_reasons() {
        assert_eq!(cause_of("IP_INHDR", "ip_forward", "udp"), "ttl-expired");
        assert_eq!(cause_of("IP_INHDR", "ip_rcv_core", "udp"), "packet-drop");
        assert_eq!(cause_of("SOCKET_RCVBUFF", "sock_queue_rcv_skb_reason", "udp"), "udp-rcvbuf");
        assert_eq!(cause_of("UNHANDLED_PROTO", "somewhere", ""), "");
    }

    #[test]
    fn places_without_reasons() {
        assert_eq!(cause_of("", "nf_queue", "tcp"), "nfqueue");
        assert_eq!(cause_of("", "nf_hook_slow", "tcp"), "rule-drop");
        assert_eq!(cause_of("", "ip_forward", "udp"), "packet-drop", "for several reasons");
        assert_eq!(cause_of("IP_INHDR", "nf_queue", "tcp"), "packet-drop", "another one");
    }

    #[test]
    fn every_cause_is_a_check() {
        let of_places = AT_PLACES.iter().map(|(.., id)| *id);
        let others = ["udp-rcvbuf", "rcv-prune", "netlink-overrun", "packet-drops", "packet-drop"];
        for id in of_places.chain(REASONS.iter().map(|(id, _)| *id)).chain(others) {
            assert!(CHECKS.iter().any(|check| check.id == id), "{id}");
        }
    }
}
