//! The meaning of reasons, the role that can act on them, and the next step.
//!
//! Reasons are looked up by name, because numbers differ from kernel to kernel. Names also change, so an entry may have
//! several.

/// Explanation of a reason; its fields are empty if there is nothing to explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DropMeaning {
    /// The explanation, a sentence.
    pub says: &'static str,
    /// The role that can act.
    pub ask: &'static str,
    /// The next step, and the remedy.
    pub remedy: &'static str,
}

const fn of(says: &'static str, ask: &'static str, remedy: &'static str) -> DropMeaning {
    DropMeaning { says, ask, remedy }
}

/// Prefix of the place if hardware does not forward a packet and hands it to the kernel; the trap's group follows it.
pub(crate) const BY_HARDWARE: &str = "devlink ";
/// Suffix of trap groups whose packets the kernel takes over: it answers them, or forwards them in the end.
const TAKEN_OVER: &[u8] = b"_exceptions";
const HARDWARE: DropMeaning = of(
    "dropped by hardware: the devlink trap of this name",
    "network",
    "`netwren counters source = trap`; devlink trap show",
);
const EXCEPTION: DropMeaning =
    of("passed to the kernel by hardware that could not forward the packet: not lost", "", "");

/// Explains a reason for a packet that the function `place` dropped.
pub fn meaning_of(reason: &[u8], place: &[u8]) -> DropMeaning {
    if place.starts_with(BY_HARDWARE.as_bytes()) {
        return if place.ends_with(TAKEN_OVER) { EXCEPTION } else { HARDWARE };
    }
    let of_place = AT_PLACES.iter().find(|(of, at, _)| of.as_bytes() == reason && at.as_bytes() == place);
    if let Some((_, _, meaning)) = of_place {
        return *meaning;
    }
    let found = REASONS.iter().find(|(names, _)| names.iter().any(|name| name.as_bytes() == reason));
    if let Some((_, meaning)) = found {
        return *meaning;
    }
    let family = FAMILIES.iter().find(|(prefix, _)| reason.starts_with(prefix.as_bytes()));
    family.map(|(_, meaning)| *meaning).unwrap_or_default()
}

/// True if such drops are part of normal operation: no data is lost that anyone waits for.
pub fn is_benign(reason: &[u8], place: &[u8]) -> bool {
    let at = |(of, at): &(&str, &str)| of.as_bytes() == reason && at.as_bytes() == place;
    let is_taken_over = place.starts_with(BY_HARDWARE.as_bytes()) && place.ends_with(TAKEN_OVER);
    is_taken_over || BENIGN.iter().any(|name| name.as_bytes() == reason) || BENIGN_AT.iter().any(at)
}

/// Reasons that are routine at any place.
const BENIGN: &[&str] = &["CONSUMED", "SKB_CONSUMED", "QUEUE_PURGE", "TCP_OFOMERGE", "TCP_OLD_DATA", "OTHERHOST"];

/// Reasons that are routine at one place.
const BENIGN_AT: &[(&str, &str)] = &[
    ("NOT_SPECIFIED", "udp_destruct_common"),
    ("NOT_SPECIFIED", "inet_sock_destruct"),
    ("NOT_SPECIFIED", "ip6_mc_input"),
    ("NOT_SPECIFIED", "netlink_release"),
    ("NOT_SPECIFIED", "tcp_rcv_state_process"),
    ("NOT_SPECIFIED", "tcp_v4_rcv"),
    ("NOT_SPECIFIED", "tcp_v6_rcv"),
];

/// Explanations of a reason at one place.
const AT_PLACES: &[(&str, &str, DropMeaning)] = &[
    (
        "NETFILTER_DROP",
        "nft_do_chain",
        of("dropped by an nftables rule or a chain's policy", "firewall owner", "`nft list ruleset` with counters"),
    ),
    (
        "NETFILTER_DROP",
        "ipt_do_table",
        of("dropped by an iptables rule or a chain's policy", "firewall owner", "`iptables-save -c`"),
    ),
    (
        "NETFILTER_DROP",
        "ip6t_do_table",
        of("dropped by an ip6tables rule or a chain's policy", "firewall owner", "`ip6tables-save -c`"),
    ),
    (
        "NETFILTER_DROP",
        "nf_hook_slow",
        of(
            "dropped by connection tracking (no room or no free port), or by a hook function other than rules",
            "firewall owner, administrator",
            "`netwren nat stats`: drop, insert_failed; before Linux 6.12 also drops by rules",
        ),
    ),
    ("NOT_SPECIFIED", "udp_destruct_common", of("a UDP socket was closed with unread data", "", "")),
    ("NOT_SPECIFIED", "inet_sock_destruct", of("a socket was closed with unread data", "", "")),
    ("NOT_SPECIFIED", "netlink_release", of("a netlink socket was closed with unread messages", "", "")),
    ("NOT_SPECIFIED", "ip6_mc_input", of("the packet's multicast group has no member on this host", "", "")),
    (
        "NOT_SPECIFIED",
        "netlink_attachskb",
        of(
            "the receive buffer of a netlink socket is full: its program reads too slowly",
            "application",
            "`netwren sockets 'proto = netlink and socket_drops > 0'`",
        ),
    ),
    (
        "NOT_SPECIFIED",
        "tcp_rcv_state_process",
        of("the last acknowledgement of a connection that has ended (LAST_ACK)", "", ""),
    ),
    ("NOT_SPECIFIED", "tcp_v4_rcv", of("the last packet of a connection that has ended (TIME_WAIT)", "", "")),
    ("NOT_SPECIFIED", "tcp_v6_rcv", of("the last packet of a connection that has ended (TIME_WAIT)", "", "")),
    (
        "IP_INHDR",
        "ip_forward",
        of(
            "the hop limit was exceeded here, or the header is malformed",
            "routing",
            "look for a routing loop: `traceroute -n DST`",
        ),
    ),
    (
        "IP_INHDR",
        "ip6_forward",
        of(
            "the hop limit was exceeded here, or the header is malformed",
            "routing",
            "look for a routing loop: `traceroute -6 -n DST`",
        ),
    ),
];

/// Explanations of reasons.
const REASONS: &[(&[&str], DropMeaning)] = &[
    (
        &["NOT_SPECIFIED"],
        of(
            "the kernel gives no reason; the place shows the function that dropped it",
            "",
            "`--columns +stack` shows the call stack",
        ),
    ),
    (
        &["NO_SOCKET"],
        of(
            "no socket listens on this address and port, or the connection no longer exists",
            "sender, owner of the service",
            "`netwren listeners`: is the service running?",
        ),
    ),
    (
        &["SOCKET_CLOSE", "UNIX_DISCONNECT"],
        of(
            "data arrived for a socket that had just been closed",
            "application",
            "normal at the end of a connection; if frequent: a peer that keeps writing",
        ),
    ),
    (
        &["SOCKET_FILTER"],
        of("rejected by the socket's filter", "application", "expected for capturing programs and DHCP"),
    ),
    (
        &["SOCKET_RCVBUFF"],
        of(
            "the receive buffer of the socket is full: the program reads too slowly",
            "application",
            "`netwren sockets --sort recv_q`; SO_RCVBUF, net.core.rmem_max",
        ),
    ),
    (
        &["SOCKET_BACKLOG"],
        of(
            "the backlog queue of a busy socket is full",
            "application",
            "against bursts: larger receive buffers, or several sockets",
        ),
    ),
    (
        &["PROTO_MEM"],
        of(
            "the memory limit for all sockets of the protocol is reached",
            "administrator",
            "net.ipv4.udp_mem, net.ipv4.tcp_mem; `netwren sockets --sort recv_q`",
        ),
    ),
    (
        &["TCP_LISTEN_OVERFLOW"],
        of(
            "the accept queue of the listener is full",
            "application",
            "`netwren sockets 'state = listen' --columns +accept_q,accept_q_max`; backlog, net.core.somaxconn",
        ),
    ),
    (
        &["TCP_CSUM", "UDP_CSUM", "ICMP_CSUM", "IP_CSUM", "SKB_CSUM", "CSUM", "CSUM_INVALID"],
        of(
            "the checksum is wrong, or could not be computed",
            "network, NIC",
            "count by interface; check cable and tunnel; test with `ethtool -K IFACE rx off`",
        ),
    ),
    (
        &["NETFILTER_DROP"],
        of(
            "dropped by a firewall rule or by connection tracking",
            "firewall owner",
            "`netwren nat stats`, the counters of the rules",
        ),
    ),
    (&["XDP"], of("dropped by an XDP program", "owner of the program", "`ip -d link`, `bpftool net`")),
    (
        &["TC_INGRESS", "TC_EGRESS"],
        of("dropped by a tc filter", "owner of the filter (CNI, QoS)", "`tc -s filter show dev IFACE ingress`"),
    ),
    (
        &["BPF_CGROUP_EGRESS"],
        of(
            "rejected on output by a BPF program of the cgroup",
            "container platform",
            "IPAddressDeny= of systemd, policy of the CNI",
        ),
    ),
    (&["SECURITY_HOOK", "LSM"], of("rejected by a security module", "security", "audit log of the security module")),
    (
        &["XFRM_POLICY"],
        of("an IPsec policy requires encryption or blocks the packet", "VPN", "`ip xfrm policy`, /proc/net/xfrm_stat"),
    ),
    (
        &["IP_RPFILTER"],
        of(
            "the route to the source address uses another interface (reverse path filter)",
            "routing",
            "asymmetric path: net.ipv4.conf.IFACE.rp_filter=2, or correct the routes",
        ),
    ),
    (
        &["OTHERHOST"],
        of(
            "the destination MAC address belongs to another host",
            "",
            "normal during a capture; otherwise a switch that floods",
        ),
    ),
    (
        &["UNICAST_IN_L2_MULTICAST"],
        of(
            "a unicast IP packet arrived in a broadcast or multicast frame",
            "switch, cluster",
            "check for a load balancer's multicast MAC address",
        ),
    ),
    (
        &["IP_INHDR", "HDR_TRUNC", "PKT_TOO_SMALL"],
        of(
            "the header is malformed or truncated, or (on some kernels, when forwarding) the hop limit was exceeded",
            "sender, driver",
            "capture it",
        ),
    ),
    (
        &["IP_NOPROTO", "UNHANDLED_PROTO"],
        of(
            "this host does not support the protocol",
            "sender",
            "LLDP and STP are harmless; otherwise a missing kernel module",
        ),
    ),
    (
        &["IP_INADDRERRORS"],
        of(
            "the address is invalid here, or the host does not forward packets",
            "routing",
            "net.ipv4.ip_forward, `ip route get DST from SRC iif IFACE`",
        ),
    ),
    (
        &["IP_INNOROUTES"],
        of("there is no route to the destination", "routing", "`ip route get DST from SRC iif IFACE`"),
    ),
    (
        &["IP_OUTNOROUTES"],
        of(
            "there is no route for a packet of this host",
            "routing",
            "missing default route, or a policy routing rule: `netwren routes`",
        ),
    ),
    (
        &["IP_LOCAL_SOURCE", "IP_INVALID_SOURCE", "IP_INVALID_DEST", "IP_LOCALNET"],
        of(
            "a source or destination address is not allowed: this host's own, zero, multicast or 127.0.0.0/8",
            "network, sender",
            "a duplicate address, a loop, spoofing; DNAT to 127.0.0.1 needs route_localnet",
        ),
    ),
    (
        &["IP_TTL_EXCEEDED", "TCP_MINTTL"],
        of(
            "the hop limit was exceeded, or is lower than the socket requires",
            "routing",
            "look for a routing loop: `traceroute -n DST`; or TTL security of BGP",
        ),
    ),
    (&["IPV6DISABLED"], of("IPv6 is off on this interface", "administrator", "net.ipv6.conf.IFACE.disable_ipv6")),
    (
        &[
            "IPV6_BAD_EXTHDR",
            "IPV6_NDISC_FRAG",
            "IPV6_NDISC_HOP_LIMIT",
            "IPV6_NDISC_BAD_CODE",
            "IPV6_NDISC_BAD_OPTIONS",
            "IPV6_NDISC_NS_OTHERHOST",
        ],
        of("the IPv6 headers or the neighbour discovery message are invalid", "sender", "capture it"),
    ),
    (
        &["NEIGH_FAILED", "NEIGH_DEAD"],
        of(
            "the next hop does not answer ARP or neighbour discovery",
            "network",
            "`ip neigh show`: gateway down, VLAN, wrong mask",
        ),
    ),
    (
        &["NEIGH_QUEUEFULL"],
        of(
            "too many packets are waiting for one answer to ARP or neighbour discovery",
            "network",
            "`ip neigh show`; unres_qlen_bytes",
        ),
    ),
    (
        &["NEIGH_CREATEFAIL"],
        of("the neighbour table is full", "administrator", "net.ipv4.neigh.default.gc_thresh1, 2, 3"),
    ),
    (
        &["QDISC_DROP", "QDISC_OVERLIMIT", "QDISC_BURST_DROP"],
        of(
            "the send queue of the interface is full",
            "capacity",
            "`tc -s qdisc show dev IFACE`: saturated link, or a shaper",
        ),
    ),
    (
        &["QDISC_CONGESTED", "CAKE_FLOOD", "DUALPI2_STEP_DROP"],
        of(
            "dropped on purpose by the send queue, to slow the sender down",
            "",
            "normal in small numbers; ECN avoids the drops",
        ),
    ),
    (
        &["CPU_BACKLOG"],
        of("the input queue of the CPU is full", "administrator", "net.core.netdev_max_backlog; spread by RPS"),
    ),
    (
        &["FULL_RING"],
        of(
            "the ring of a virtual machine, a VPN or a reading program is full",
            "owner of the virtual machine or program",
            "it reads too slowly; configure a longer queue",
        ),
    ),
    (
        &["DEV_READY", "DEV_HDR"],
        of(
            "the interface is not up, or could not accept the packet",
            "administrator",
            "`ip link`: normal while an interface starts",
        ),
    ),
    (
        &["NOMEM", "PFMEMALLOC", "SKB_UCOPY_FAULT", "SKB_GSO_SEG"],
        of("out of memory", "administrator", "vm.min_free_kbytes, memory of the host"),
    ),
    (
        &["PKT_TOO_BIG"],
        of(
            "the packet is longer than the MTU and must not be fragmented",
            "network",
            "check that ICMP errors pass the firewalls; clamp the MSS",
        ),
    ),
    (
        &["FRAG_REASM_TIMEOUT", "DUP_FRAG", "FRAG_TOO_FAR"],
        of(
            "fragments are incomplete, duplicate or too old",
            "network",
            "lost or reordered fragments of datagrams longer than the MTU",
        ),
    ),
    (
        &["TCP_ZEROWINDOW", "TCP_OVERWINDOW", "TCP_OFO_QUEUE_PRUNE", "TCP_OFO_DROP"],
        of(
            "the receiver has no room: the program reads too slowly",
            "application",
            "`netwren sockets --sort recv_q`; net.ipv4.tcp_rmem",
        ),
    ),
    (
        &["TCP_RFC7323_PAWS", "TCP_RFC7323_PAWS_ACK", "TCP_RFC7323_TW_PAWS", "TCP_RFC7323_TSECR"],
        of(
            "the TCP timestamp is older than an earlier one",
            "network",
            "several clients behind one NAT, or a load balancer's clock",
        ),
    ),
    (
        &[
            "TCP_OLD_SEQUENCE",
            "TCP_OLD_ACK",
            "TCP_INVALID_SEQUENCE",
            "TCP_INVALID_END_SEQUENCE",
            "TCP_INVALID_ACK_SEQUENCE",
            "TCP_ACK_UNSENT_DATA",
            "TCP_TOO_OLD_ACK",
        ],
        of(
            "the segment is outside the window: duplicate, late or forged",
            "network",
            "unnecessary retransmissions, or a middlebox",
        ),
    ),
    (&["TCP_OLD_DATA", "TCP_OFOMERGE"], of("the data had already been received", "", "unnecessary retransmissions")),
    (
        &[
            "TCP_FLAGS",
            "TCP_INVALID_SYN",
            "TCP_RESET",
            "TCP_CLOSE",
            "TCP_ABORT_ON_DATA",
            "TCP_FASTOPEN",
            "TCP_LISTEN_RST",
        ],
        of(
            "the segment is not allowed in the state of its connection",
            "peer",
            "a port scan, a crashed peer, or a NAT that lost the connection",
        ),
    ),
    (
        &["TCP_REQQFULLDROP"],
        of(
            "the queue of half-open connections is full",
            "administrator",
            "SYN flood: net.ipv4.tcp_max_syn_backlog, tcp_syncookies",
        ),
    ),
    (
        &["IP_TUNNEL_ECN", "TUNNEL_TXINFO", "NO_TX_TARGET"],
        of(
            "the overlay network has no target for the packet, or its marks are invalid",
            "overlay, CNI",
            "`bridge fdb show`",
        ),
    ),
    (
        &[
            "BRIDGE_INGRESS_STP_STATE",
            "BRIDGE_NON_FORWARDING",
            "LOCAL_MAC",
            "MAC_INVALID_SOURCE",
            "ARP_PVLAN_DISABLE",
            "MAC_IEEE_MAC_CONTROL",
            "NO_PORT",
        ],
        of(
            "a bridge port is blocked, or a MAC address is at the wrong port",
            "switch, administrator",
            "STP, or a duplicate MAC address",
        ),
    ),
    (&["RECURSION_LIMIT"], of("virtual interfaces form a loop", "administrator", "stacked tunnels and bonds")),
    (
        &["PACKET_SOCK_ERROR"],
        of(
            "a capturing program had no room for its copy; the packet itself was not dropped",
            "owner of the capture",
            "`netwren capture latency`, a larger ring, a filter",
        ),
    ),
    (
        &["TC_COOKIE_ERROR", "TC_CHAIN_NOTFOUND", "TC_RECLASSIFY_LOOP"],
        of(
            "tc filters lead nowhere or form a loop",
            "owner of the filters (CNI, QoS)",
            "`tc filter show dev IFACE ingress`",
        ),
    ),
    (&["NEIGH_HH_FILLFAIL"], of("there was no room for the link-layer header", "driver", "capture it")),
    (&["UNIX_SKIP_OOB"], of("urgent data of a unix socket was skipped by its reader", "", "")),
    (&["QUEUE_PURGE"], of("a queue was emptied because its owner was removed", "", "")),
    (&["INVALID_PROTO"], of("the protocol does not match the interface", "sender", "capture it")),
    (&["TAP_FILTER", "TAP_TXFILTER"], of("rejected by a filter of the tap interface", "VM", "")),
    (&["DUPLICATE_SOURCE_ADDRESS"], of("another host uses the same source address", "network", "`ip neigh show`")),
];

/// Explanations of reasons with a common prefix.
const FAMILIES: &[(&str, DropMeaning)] = &[
    ("TCP_MD5", of("the TCP MD5 signature is missing or wrong", "routing", "key of the BGP session")),
    ("TCP_AO", of("the TCP-AO signature is missing or wrong", "routing", "key and key ID of the BGP session")),
    ("TCP_AUTH", of("the TCP signature is malformed", "routing", "key of the BGP session")),
    ("VXLAN_", of("the network or target is unknown to the overlay network", "overlay, CNI", "VNI, `bridge fdb show`")),
    (
        "TUNNEL_",
        of("the network or target is unknown to the overlay network", "overlay, CNI", "VNI, `bridge fdb show`"),
    ),
    ("FQ_", of("the send queue of the interface is full", "capacity", "`tc -s qdisc show dev IFACE`")),
    ("QDISC_", of("dropped by the send queue of the interface", "capacity", "`tc -s qdisc show dev IFACE`")),
    ("MAC80211_", of("dropped by the wireless stack", "wireless", "")),
    ("OPENVSWITCH_", of("dropped by an Open vSwitch flow", "owner of the switch", "`ovs-dpctl dump-flows`")),
    ("CAN_", of("a CAN bus frame is malformed", "sender", "")),
    ("CANFD_", of("a CAN bus frame is malformed", "sender", "")),
    ("CANXL_", of("a CAN bus frame is malformed", "sender", "")),
    ("PSP_", of("PSP encryption failed", "security", "")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_and_aliases_decide() {
        let says = |reason: &str, place: &str| meaning_of(reason.as_bytes(), place.as_bytes()).says;
        assert!(says("NETFILTER_DROP", "nft_do_chain").starts_with("dropped by an nftables rule"));
        assert!(says("NETFILTER_DROP", "nf_hook_slow").starts_with("dropped by connection tracking"));
        assert!(says("NETFILTER_DROP", "ip_forward").starts_with("dropped by a firewall rule"));
        assert_eq!(says("SKB_CSUM", ""), says("CSUM", ""));
        assert!(!says("TCP_AONOTFOUND", "").is_empty() && !says("QDISC_NEW", "").is_empty());
        assert_eq!(says("UNKNOWN_99", "x"), "");
        assert!(is_benign(b"NOT_SPECIFIED", b"udp_destruct_common") && !is_benign(b"NOT_SPECIFIED", b"ip_rcv"));
        assert!(is_benign(b"QUEUE_PURGE", b"") && !is_benign(b"", b"") && !is_benign(b"PACKET_SOCK_ERROR", b""));
    }

    #[test]
    fn no_reason_stands_twice() {
        let mut names: Vec<&str> = REASONS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        let all = REASONS.iter().map(|(_, meaning)| meaning).chain(FAMILIES.iter().map(|(_, meaning)| meaning));
        for meaning in all {
            assert!(!meaning.says.is_empty() && !meaning.says.ends_with('.'), "{meaning:?}");
        }
    }

    /// Reasons of the running kernel; newer kernels may have reasons that are not explained yet.
    #[cfg(feature = "bpf")]
    #[test]
    fn most_reasons_of_the_running_kernel_have_words() {
        let Ok(reasons) = bpf::DropReasons::read(&sys::Host::live()) else {
            println!("skipped: no types of the kernel here");
            return;
        };
        let all = reasons.reasons.iter().map(|(_, name)| &**name);
        let wordless: Vec<&str> = all.filter(|name| meaning_of(name.as_bytes(), b"").says.is_empty()).collect();
        println!("{wordless:?}");
        assert!(wordless.len() * 10 <= reasons.reasons.len(), "{wordless:?}");
    }
}
