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
    "hardware dropped it by the trap of this name (devlink)",
    "network",
    "`netwren counters source = trap`; devlink trap show",
);
const EXCEPTION: DropMeaning =
    of("hardware could not forward it and left it to the kernel, which decides: no loss", "", "");

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
        of(
            "an nftables rule or the policy of a chain dropped it",
            "firewall owner",
            "`nft list ruleset` with counters",
        ),
    ),
    (
        "NETFILTER_DROP",
        "ipt_do_table",
        of("an iptables rule or the policy of a chain dropped it", "firewall owner", "`iptables-save -c`"),
    ),
    (
        "NETFILTER_DROP",
        "ip6t_do_table",
        of("an ip6tables rule or the policy of a chain dropped it", "firewall owner", "`ip6tables-save -c`"),
    ),
    (
        "NETFILTER_DROP",
        "nf_hook_slow",
        of(
            "connection tracking had no room or no free port for it, or a hook without a rule of its own dropped it",
            "firewall owner, administrator",
            "`netwren nat stats`: drop, insert_failed; before Linux 6.12 rules are dropped here, too",
        ),
    ),
    ("NOT_SPECIFIED", "udp_destruct_common", of("a UDP socket was closed with unread data", "", "")),
    ("NOT_SPECIFIED", "inet_sock_destruct", of("a socket was closed with unread data", "", "")),
    ("NOT_SPECIFIED", "netlink_release", of("a netlink socket was closed with unread messages", "", "")),
    ("NOT_SPECIFIED", "ip6_mc_input", of("it is for a multicast group that has no member here", "", "")),
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
        of("its hop limit was used up here, or its header is malformed", "routing", "a loop: `traceroute -n DST`"),
    ),
    (
        "IP_INHDR",
        "ip6_forward",
        of("its hop limit was used up here, or its header is malformed", "routing", "a loop: `traceroute -6 -n DST`"),
    ),
];

/// Explanations of reasons.
const REASONS: &[(&[&str], DropMeaning)] = &[
    (
        &["NOT_SPECIFIED"],
        of("the kernel gives no reason here: the place tells", "", "--columns +stack shows how it came there"),
    ),
    (
        &["NO_SOCKET"],
        of(
            "nobody listens at this address and port, or the connection is not known any more",
            "sender, owner of the service",
            "`netwren sockets 'state = listen'`: does the service run?",
        ),
    ),
    (
        &["SOCKET_CLOSE", "UNIX_DISCONNECT"],
        of(
            "data came for a socket that had just been closed",
            "application",
            "normal at its end; often: a peer that keeps writing",
        ),
    ),
    (
        &["SOCKET_FILTER"],
        of("a filter on the socket refused it", "application", "expected of programs that capture, and DHCP"),
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
        of("the queue behind a busy socket is full", "application", "bursts: larger receive buffers, several sockets"),
    ),
    (
        &["PROTO_MEM"],
        of(
            "the memory that all sockets of the protocol may use is used up",
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
            "its checksum is wrong, or could not be computed",
            "network, NIC",
            "count by interface: cable, tunnel, `ethtool -K IFACE rx off` as a test",
        ),
    ),
    (
        &["NETFILTER_DROP"],
        of(
            "a firewall rule, or connection tracking, dropped it",
            "firewall owner",
            "`netwren nat stats`, counters of rules",
        ),
    ),
    (&["XDP"], of("an XDP program dropped it", "whoever loaded it", "`ip -d link`, `bpftool net`")),
    (
        &["TC_INGRESS", "TC_EGRESS"],
        of("a tc filter dropped it", "whoever loaded it: CNI, QoS", "`tc -s filter show dev IFACE ingress`"),
    ),
    (
        &["BPF_CGROUP_EGRESS"],
        of(
            "a BPF program of the cgroup refused to send it",
            "container platform",
            "IPAddressDeny= of systemd, policy of the CNI",
        ),
    ),
    (&["SECURITY_HOOK", "LSM"], of("a security module refused it", "security", "its audit log")),
    (
        &["XFRM_POLICY"],
        of("an IPsec policy demands encryption, or forbids it", "VPN", "`ip xfrm policy`, /proc/net/xfrm_stat"),
    ),
    (
        &["IP_RPFILTER"],
        of(
            "its source address would be answered by another interface (reverse path filter)",
            "routing",
            "asymmetric path: net.ipv4.conf.IFACE.rp_filter=2, or mend the routes",
        ),
    ),
    (
        &["OTHERHOST"],
        of("its MAC address is another host's", "", "normal while something captures; else a switch that floods"),
    ),
    (
        &["UNICAST_IN_L2_MULTICAST"],
        of(
            "a unicast IP packet came in a broadcast or multicast frame",
            "switch, cluster",
            "an address of load balancing",
        ),
    ),
    (
        &["IP_INHDR", "HDR_TRUNC", "PKT_TOO_SMALL"],
        of(
            "its header is malformed or cut, or (forwarded, by kernel) its hop limit was used up",
            "sender, driver",
            "capture it",
        ),
    ),
    (
        &["IP_NOPROTO", "UNHANDLED_PROTO"],
        of("nothing here speaks its protocol", "sender", "LLDP and STP are noise; else a missing module"),
    ),
    (
        &["IP_INADDRERRORS"],
        of(
            "its address makes no sense here, or the host does not forward",
            "routing",
            "net.ipv4.ip_forward, `ip route get DST from SRC iif IFACE`",
        ),
    ),
    (&["IP_INNOROUTES"], of("there is no route for it", "routing", "`ip route get DST from SRC iif IFACE`")),
    (
        &["IP_OUTNOROUTES"],
        of("an own packet has no route", "routing", "default route gone, a rule of policy routing: `netwren routes`"),
    ),
    (
        &["IP_LOCAL_SOURCE", "IP_INVALID_SOURCE", "IP_INVALID_DEST", "IP_LOCALNET"],
        of(
            "one of its addresses may not be there: own, zero, multicast or 127.0.0.0/8",
            "network, sender",
            "a duplicate address, a loop, spoofing; DNAT to 127.0.0.1 needs route_localnet",
        ),
    ),
    (
        &["IP_TTL_EXCEEDED", "TCP_MINTTL"],
        of(
            "its hop limit was used up, or is lower than demanded",
            "routing",
            "a loop: `traceroute -n DST`; TTL security of BGP",
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
        of("its IPv6 headers, or its neighbour discovery, are wrong", "sender", "capture it"),
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
            "too many packets wait for one answer to ARP or neighbour discovery",
            "network",
            "`ip neigh show`; unres_qlen_bytes",
        ),
    ),
    (
        &["NEIGH_CREATEFAIL"],
        of("the table of neighbours is full", "administrator", "net.ipv4.neigh.default.gc_thresh1, 2, 3"),
    ),
    (
        &["QDISC_DROP", "QDISC_OVERLIMIT", "QDISC_BURST_DROP"],
        of(
            "the send queue of the interface is full",
            "capacity",
            "`tc -s qdisc show dev IFACE`: link saturated, shaper",
        ),
    ),
    (
        &["QDISC_CONGESTED", "CAKE_FLOOD", "DUALPI2_STEP_DROP"],
        of(
            "the send queue dropped it on purpose, to slow its sender down",
            "",
            "healthy while few; ECN spares the packets",
        ),
    ),
    (
        &["CPU_BACKLOG"],
        of("the input queue of the CPU is full", "administrator", "net.core.netdev_max_backlog; spread by RPS"),
    ),
    (
        &["FULL_RING"],
        of(
            "the ring of a guest, a VPN or a reader is full",
            "owner of the guest or program",
            "it reads too slowly; a longer queue",
        ),
    ),
    (
        &["DEV_READY", "DEV_HDR"],
        of("the interface is not up, or could not take it", "administrator", "`ip link`: normal when it starts"),
    ),
    (
        &["NOMEM", "PFMEMALLOC", "SKB_UCOPY_FAULT", "SKB_GSO_SEG"],
        of("there was no memory for it", "administrator", "vm.min_free_kbytes, memory of the host"),
    ),
    (
        &["PKT_TOO_BIG"],
        of(
            "it is longer than the MTU and may not be fragmented",
            "network",
            "do ICMP errors come through? clamp the MSS",
        ),
    ),
    (
        &["FRAG_REASM_TIMEOUT", "DUP_FRAG", "FRAG_TOO_FAR"],
        of(
            "fragments are incomplete, double or too old",
            "network",
            "lost or reordered fragments: datagrams longer than the MTU",
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
            "its TCP timestamp is older than one seen before",
            "network",
            "clients behind one NAT, a load balancer's clock",
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
            "it lies outside the window: double, late or forged",
            "network",
            "retransmissions that were not needed, a middlebox",
        ),
    ),
    (&["TCP_OLD_DATA", "TCP_OFOMERGE"], of("its data had come before", "", "retransmissions that were not needed")),
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
        of("it does not fit the state of its connection", "peer", "a scan, a peer that died, a NAT that forgot"),
    ),
    (
        &["TCP_REQQFULLDROP"],
        of(
            "the queue of half-open connections is full",
            "administrator",
            "a flood of SYN: net.ipv4.tcp_max_syn_backlog, tcp_syncookies",
        ),
    ),
    (
        &["IP_TUNNEL_ECN", "TUNNEL_TXINFO", "NO_TX_TARGET"],
        of("the overlay network has no target for it, or it was marked wrongly", "overlay, CNI", "`bridge fdb show`"),
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
            "a port of the bridge is blocked, or a MAC address is not where it should be",
            "switch, administrator",
            "STP, a double MAC address",
        ),
    ),
    (&["RECURSION_LIMIT"], of("virtual interfaces lie in a circle", "administrator", "stacked tunnels and bonds")),
    (
        &["PACKET_SOCK_ERROR"],
        of(
            "a program that captures had no room for its copy: the packet itself went on",
            "whoever captures",
            "`netwren capture latency`, a larger ring, a filter",
        ),
    ),
    (
        &["TC_COOKIE_ERROR", "TC_CHAIN_NOTFOUND", "TC_RECLASSIFY_LOOP"],
        of(
            "tc filters lead nowhere or in a circle",
            "whoever loaded them: CNI, QoS",
            "`tc filter show dev IFACE ingress`",
        ),
    ),
    (&["NEIGH_HH_FILLFAIL"], of("there was no room for its link-layer header", "driver", "capture it")),
    (&["UNIX_SKIP_OOB"], of("urgent data of a unix socket was passed over by its reader", "", "")),
    (&["QUEUE_PURGE"], of("a queue was emptied with the thing that it belonged to", "", "")),
    (&["INVALID_PROTO"], of("its protocol does not fit the interface", "sender", "capture it")),
    (&["TAP_FILTER", "TAP_TXFILTER"], of("a filter of the tap interface refused it", "VM", "")),
    (&["DUPLICATE_SOURCE_ADDRESS"], of("another host uses its address", "network", "`ip neigh show`")),
];

/// Explanations of reasons with a common prefix.
const FAMILIES: &[(&str, DropMeaning)] = &[
    ("TCP_MD5", of("the signature of TCP (MD5) is missing or wrong", "routing", "key of the BGP session")),
    ("TCP_AO", of("the signature of TCP (AO) is missing or wrong", "routing", "key and key number of the BGP session")),
    ("TCP_AUTH", of("the signature of TCP is malformed", "routing", "key of the BGP session")),
    (
        "VXLAN_",
        of("the overlay network does not know this network or target", "overlay, CNI", "VNI, `bridge fdb show`"),
    ),
    (
        "TUNNEL_",
        of("the overlay network does not know this network or target", "overlay, CNI", "VNI, `bridge fdb show`"),
    ),
    ("FQ_", of("the send queue of the interface is full", "capacity", "`tc -s qdisc show dev IFACE`")),
    ("QDISC_", of("the send queue of the interface dropped it", "capacity", "`tc -s qdisc show dev IFACE`")),
    ("MAC80211_", of("the wireless stack dropped it", "wireless", "")),
    ("OPENVSWITCH_", of("a flow of Open vSwitch dropped it", "owner of the switch", "`ovs-dpctl dump-flows`")),
    ("CAN_", of("a frame of the CAN bus is malformed", "sender", "")),
    ("CANFD_", of("a frame of the CAN bus is malformed", "sender", "")),
    ("CANXL_", of("a frame of the CAN bus is malformed", "sender", "")),
    ("PSP_", of("encryption by PSP failed", "security", "")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_and_aliases_decide() {
        let says = |reason: &str, place: &str| meaning_of(reason.as_bytes(), place.as_bytes()).says;
        assert!(says("NETFILTER_DROP", "nft_do_chain").starts_with("an nftables rule"));
        assert!(says("NETFILTER_DROP", "nf_hook_slow").starts_with("connection tracking"));
        assert!(says("NETFILTER_DROP", "ip_forward").starts_with("a firewall rule"));
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
