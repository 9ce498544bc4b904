//! Every check is silent about a healthy host and about totals that do not move, and finds the fault that it is for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "tests_waiting.rs"]
mod waiting;

use super::*;
use crate::seen::{
    ArpSetting, Asking, CgroupSeen, Conflict, Control, ControlKind, Descriptors, Difference, DnsMismatch,
    DnsServerSeen, DropSeen, FlowCensus, Gateway, GroupListener, GroupSeen, Hold, IgnoredAdverts, IgnoredArp,
    IpsecDirection, IpsecPolicy, LateReader, LinkSeen, MacMoved, ModeSeen, Moved, NeighbourSeen, NfQueue, OwnMacvlan,
    PathSeen, PermanentSeen, PortsInUse, PortsTaken, PublishedPort, RedirectSeen, ResetCount, ResetGroup, ResetKind,
    RoutingRule, RuleAction, RuleSeen, RuleWithoutReader, SendingConnection, Served, SharedPort, SmallPath,
    SmallSegments, SocketCgroup, StaleFlow, Stuck, TrackedFlow, Transfer, Unanswered, Unclosed, UnixKind, XdpSeen,
};
use record::rows::CounterSource::{
    self, Conntrack, Iface, Neigh, Netstat, Qdisc, Snmp, Snmp6, Sockstat, Softnet, Xfrm,
};
use record::rows::{BridgeState, PortState};

type Row = (CounterSource, &'static str, &'static str, i64, i64);

/// Counters with which each check finds something; other checks may also find something.
const ILL: &[(&str, Severity, &[Row])] = &[
    (
        "ct-full",
        Severity::Critical,
        &[
            (Conntrack, "drop", "", 10, 59),
            (Conntrack, "insert_failed", "", 0, 0),
            (Conntrack, "early_drop", "", 5, 9),
            (Conntrack, "entries", "", 1000, 1000),
            (Conntrack, "max", "", 1000, 1000),
        ],
    ),
    ("ct-evicting", Severity::Warning, &[(Conntrack, "early_drop", "", 5, 9), (Conntrack, "drop", "", 7, 7)]),
    ("ct-filling", Severity::Warning, &[(Conntrack, "entries", "", 100, 850), (Conntrack, "max", "", 1000, 1000)]),
    (
        "snat-ports",
        Severity::Critical,
        &[
            (Conntrack, "drop", "", 0, 147),
            (Conntrack, "insert_failed", "", 0, 147),
            (Conntrack, "entries", "", 10, 10),
            (Conntrack, "max", "", 262144, 262144),
        ],
    ),
    ("listen-overflow", Severity::Critical, &[(Netstat, "TcpExtListenOverflows", "", 3, 343)]),
    ("softnet-drop", Severity::Critical, &[(Softnet, "dropped", "cpu1", 0, 5)]),
    ("neigh-full", Severity::Critical, &[(Neigh, "arp.table_fulls", "", 0, 9), (Neigh, "arp.entries", "", 1024, 1024)]),
    ("tcp-memory", Severity::Critical, &[(Netstat, "TcpExtTCPMemoryPressures", "", 1, 2)]),
    ("udp-rcvbuf", Severity::Critical, &[(Snmp6, "Udp6RcvbufErrors", "", 0, 4)]),
    ("rp-filter", Severity::Warning, &[(Netstat, "TcpExtIPReversePathFilter", "", 0, 4)]),
    ("no-route", Severity::Warning, &[(Snmp, "IpOutNoRoutes", "", 0, 40)]),
    ("no-route", Severity::Hint, &[(Snmp6, "Ip6OutNoRoutes", "", 0, 40)]),
    ("nic-errors", Severity::Warning, &[(Iface, "rx_crc_errors", "eth0", 0, 4), (Iface, "rx_errors", "eth0", 0, 4)]),
    ("nic-errors", Severity::Warning, &[(Iface, "rx_missed_errors", "eth0", 0, 4)]),
    ("nic-drops", Severity::Warning, &[(Iface, "tx_dropped", "eth0", 0, 40), (Iface, "tx_packets", "eth0", 0, 400)]),
    ("nic-drops", Severity::Hint, &[(Iface, "rx_dropped", "eth0", 0, 40), (Iface, "rx_packets", "eth0", 0, 400)]),
    ("link-flap", Severity::Warning, &[(Iface, "carrier_down_count", "eth0", 1, 2), (Iface, "carrier", "eth0", 1, 0)]),
    ("mtu", Severity::Warning, &[(Snmp, "IpFragFails", "", 1, 20)]),
    ("checksum", Severity::Warning, &[(Snmp, "TcpInCsumErrors", "", 1, 2)]),
    (
        "qdisc-drop",
        Severity::Warning,
        &[
            (Qdisc, "drops", "lo tbf 1: root", 0, 30),
            (Qdisc, "packets", "lo tbf 1: root", 0, 50),
            (Qdisc, "qlen", "lo tbf 1: root", 0, 3),
        ],
    ),
    ("qdisc-drop", Severity::Hint, &[(Qdisc, "drops", "a", 0, 3), (Qdisc, "packets", "a", 0, 50_000)]),
    ("syn-cookies", Severity::Warning, &[(Netstat, "TcpExtSyncookiesSent", "", 0, 500)]),
    ("syn-cookies", Severity::Critical, &[(Netstat, "TcpExtTCPReqQFullDrop", "", 0, 500)]),
    ("orphans", Severity::Critical, &[(Netstat, "TcpExtTCPAbortOnMemory", "", 0, 5)]),
    (
        "tw-overflow",
        Severity::Hint,
        &[(Netstat, "TcpExtTCPTimeWaitOverflow", "", 0, 5), (Sockstat, "TCP.tw", "", 9, 9)],
    ),
    ("rcv-prune", Severity::Warning, &[(Netstat, "TcpExtRcvPruned", "", 0, 5)]),
    ("retransmits", Severity::Warning, &[(Snmp, "TcpRetransSegs", "", 0, 50), (Snmp, "TcpOutSegs", "", 0, 1000)]),
    ("syn-retrans", Severity::Hint, &[(Netstat, "TcpExtTCPSynRetrans", "", 0, 50)]),
    ("ct-chains", Severity::Critical, &[(Conntrack, "chaintoolong", "", 0, 5), (Conntrack, "insert_failed", "", 0, 5)]),
    ("ct-invalid", Severity::Hint, &[(Conntrack, "invalid", "", 3, 50), (Snmp, "IpInReceives", "", 0, 900)]),
    ("ttl-expired", Severity::Hint, &[(Snmp, "IcmpOutTimeExcds", "", 0, 20)]),
    ("paws", Severity::Warning, &[(Netstat, "TcpExtPAWSEstab", "", 0, 20)]),
    ("reassembly", Severity::Warning, &[(Snmp, "IpReasmFails", "", 0, 20)]),
    ("closed-port", Severity::Hint, &[(Snmp, "UdpNoPorts", "", 0, 20)]),
    ("refused", Severity::Warning, &[(Snmp, "IcmpInDestUnreachs", "", 0, 20)]),
    ("refused", Severity::Warning, &[(Snmp, "TcpAttemptFails", "", 0, 80), (Snmp, "TcpActiveOpens", "", 0, 90)]),
    (
        "otherhost",
        Severity::Hint,
        &[(Iface, "rx_otherhost_dropped", "eth0", 0, 20), (Iface, "rx_packets", "eth0", 0, 40)],
    ),
    (
        "reordering",
        Severity::Warning,
        &[
            (Netstat, "TcpExtTCPSACKReorder", "", 0, 400),
            (Netstat, "TcpExtPAWSEstab", "", 0, 90),
            (Snmp, "TcpOutSegs", "", 0, 3000),
            (Snmp, "TcpRetransSegs", "", 0, 150),
        ],
    ),
    ("reordering", Severity::Hint, &[(Netstat, "TcpExtTCPTSReorder", "", 0, 40), (Snmp, "TcpOutSegs", "", 0, 3000)]),
    (
        "duplicates",
        Severity::Warning,
        &[(Netstat, "TcpExtTCPDSACKIgnoredDubious", "", 0, 400), (Snmp, "TcpOutSegs", "", 0, 3000)],
    ),
    (
        "duplicates",
        Severity::Hint,
        &[
            (Netstat, "TcpExtTCPDSACKOldSent", "", 0, 60),
            (Netstat, "TcpExtTCPOFOQueue", "", 0, 9),
            (Snmp, "TcpInSegs", "", 0, 3000),
        ],
    ),
    (
        "challenged",
        Severity::Hint,
        &[(Netstat, "TcpExtTCPChallengeACK", "", 0, 4), (Netstat, "TcpExtTCPACKSkippedChallenge", "", 0, 3)],
    ),
    (
        "challenged",
        Severity::Warning,
        &[(Netstat, "TcpExtTCPChallengeACK", "", 0, 9), (Netstat, "TcpExtTCPSYNChallenge", "", 0, 9)],
    ),
    ("service-resets", Severity::Hint, &[(Netstat, "TcpExtTCPAbortOnClose", "", 0, 9)]),
    ("softnet-squeeze", Severity::Hint, &[(Softnet, "time_squeeze", "cpu0", 0, 900)]),
];

/// Adds a fault to a sample.
type MakeIll = fn(&mut Sample);

/// Surroundings with which each check finds something.
const AROUND: &[(&str, Severity, MakeIll)] = &[
    ("udp-shared", Severity::Warning, |sample| {
        sample.around.shared_ports.push(shared(false));
        sample.counters_of(&[(Snmp, "UdpInDatagrams", "", 0, 9)]);
    }),
    ("udp-shared", Severity::Hint, |sample| sample.around.shared_ports.push(shared(false))),
    ("udp-shared", Severity::Hint, |sample| {
        sample.around.shared_ports.push(SharedPort { is_part: true, ..shared(false) });
        sample.counters_of(&[(Snmp, "UdpInDatagrams", "", 0, 9)]);
    }),
    ("service-resets", Severity::Warning, |sample| {
        reset_by(sample, ResetKind::Unread, true, ResetCount { count: 3, unread_bytes: 300, ..ResetCount::default() });
    }),
    ("service-resets", Severity::Hint, |sample| {
        reset_by(sample, ResetKind::Aborted, true, ResetCount { count: 3, ..ResetCount::default() });
    }),
    ("service-resets", Severity::Warning, |sample| {
        reset_by(sample, ResetKind::Aborted, true, ResetCount { count: 3, unacked: 1, ..ResetCount::default() });
    }),
    ("peer-resets", Severity::Warning, |sample| {
        reset_by(sample, ResetKind::ByPeer, false, ResetCount { count: 3, unanswered: 3, ..ResetCount::default() });
    }),
    ("peer-resets", Severity::Hint, |sample| {
        reset_by(sample, ResetKind::ByPeer, false, ResetCount { count: 3, ..ResetCount::default() });
    }),
    ("peer-resets", Severity::Hint, |sample| {
        reset_by(sample, ResetKind::ByPeer, true, ResetCount { count: 30, empty: 20, ..ResetCount::default() });
    }),
    ("idle-reset", Severity::Warning, |sample| {
        reset_by(
            sample,
            ResetKind::ByPeerAfterIdle,
            false,
            ResetCount { count: 3, silent_ms: 4000, ..ResetCount::default() },
        );
    }),
    ("idle-reset", Severity::Hint, |sample| {
        reset_by(sample, ResetKind::Unknown, true, ResetCount { count: 3, ..ResetCount::default() });
    }),
    ("gave-up", Severity::Hint, |sample| {
        sample.before.stuck = vec![stuck(1, false)];
        sample.counters_of(&[(Netstat, "TcpExtTCPAbortOnTimeout", "", 0, 1)]);
    }),
    ("gave-up", Severity::Warning, |sample| {
        reset_by(sample, ResetKind::OfKernel, false, ResetCount { count: 3, ..ResetCount::default() });
        sample.counters_of(&[(Netstat, "TcpExtTCPAbortOnTimeout", "", 0, 3)]);
    }),
    ("ct-forgotten", Severity::Warning, |sample| {
        dropped(sample, midway("inet f c policy drop", 16));
        sample.counters_of(&[(Conntrack, "entries", "", 9, 9)]);
    }),
    ("rule-drop", Severity::Warning, |sample| {
        let hook = Some(record::rows::NetfilterHook::Forward);
        dropped(sample, DropSeen { hook, ..drop_of("NETFILTER_DROP", "nft_do_chain", 9) });
    }),
    ("rule-drop", Severity::Hint, |sample| {
        // The port is not served: rules are supposed to drop such packets.
        let hook = Some(record::rows::NetfilterHook::Input);
        dropped(sample, DropSeen { hook, ports: Some((40_000, 23)), ..drop_of("NETFILTER_DROP", "nft_do_chain", 9) });
    }),
    ("ct-helper", Severity::Warning, |sample| {
        sample.around.controls.push(control(ControlKind::Ftp));
        dropped(sample, data("tcp", CLIENT, PEER, (40_000, 30_123)));
    }),
    ("ct-helper", Severity::Warning, |sample| {
        sample.around.controls.push(control(ControlKind::Ftp));
        dropped(sample, data("tcp", PEER, CLIENT, (20, 40_001)));
    }),
    ("ct-helper", Severity::Warning, |sample| {
        sample.around.controls.push(control(ControlKind::Tftp));
        dropped(sample, data("udp", PEER, CLIENT, (50_000, 5555)));
    }),
    ("tc-xdp-drop", Severity::Warning, |sample| dropped(sample, drop_of("XDP", "do_xdp_generic", 9))),
    ("socket-filter", Severity::Hint, |sample| dropped(sample, drop_of("SOCKET_FILTER", "sk_filter_trim_cap", 90))),
    ("ttl-expired", Severity::Warning, |sample| dropped(sample, drop_of("IP_INHDR", "ip_forward", 20))),
    ("martian", Severity::Warning, |sample| {
        let ends = Some((CLIENT, PEER));
        dropped(sample, DropSeen { ends, ..drop_of("IP_LOCAL_SOURCE", "ip_rcv_finish_core", 9) });
    }),
    ("hairpin", Severity::Warning, |sample| {
        dropped(sample, drop_of("IP_LOCAL_SOURCE", "ip_rcv_finish_core", 9));
    }),
    ("hairpin", Severity::Warning, |sample| dropped(sample, drop_of("NOT_SPECIFIED", "br_handle_frame_finish", 9))),
    ("hairpin", Severity::Warning, |sample| published(sample, 6, 3)),
    ("hairpin", Severity::Hint, |sample| published(sample, 17, 2)),
    ("route-localnet", Severity::Warning, |sample| {
        let ends = Some((CLIENT, record::Addr::V4([127, 0, 0, 1])));
        dropped(sample, DropSeen { ends, ..drop_of("IP_LOCALNET", "ip_rcv_finish_core", 9) });
    }),
    ("ct-stale", Severity::Warning, |sample| sample.around.flows.stale.push(stale(17))),
    ("ct-stale", Severity::Hint, |sample| sample.around.flows.stale.push(stale(6))),
    ("nat-expired", Severity::Warning, |sample| {
        sample.add_setting("netfilter/nf_conntrack_udp_timeout", vec![2]);
        expired(sample);
    }),
    ("nat-expired", Severity::Hint, expired),
    ("answer-source", Severity::Warning, |sample| {
        let mismatch = DnsMismatch { asked: PEER, answered: OTHER, client: CLIENT, is_own: false, count: 2 };
        sample.around.dns.mismatches.push(mismatch);
    }),
    ("answer-source", Severity::Warning, |sample| {
        sample.after.asking.push(asking(record::Proto::Udp, 40_000, PEER, 161));
        dropped(sample, from_other("udp", (161, 40_000)));
    }),
    ("ipv6-off", Severity::Warning, |sample| dropped(sample, drop_of("IPV6DISABLED", "ip6_rcv_core", 9))),
    ("mtu-mismatch", Severity::Warning, |sample| dropped(sample, drop_of("NOT_SPECIFIED", "__dev_forward_skb2", 9))),
    ("nfqueue", Severity::Critical, |sample| dropped(sample, drop_of("NOT_SPECIFIED", "nf_queue", 9))),
    ("nfqueue", Severity::Critical, |sample| {
        let (dropped, user_dropped) = (Moved { before: Some(1), after: 8 }, Moved { before: None, after: 8 });
        sample.around.queues.push(NfQueue { number: 3, waiting: 1024, dropped, user_dropped });
    }),
    ("packet-drop", Severity::Hint, |sample| dropped(sample, drop_of("TCP_INVALID_SYN", "tcp_v4_rcv", 9))),
    ("ipsec", Severity::Warning, |sample| {
        sample.around.ipsec = vec![policy(false, 0)];
        sample.counters_of(&[(Xfrm, "XfrmOutNoStates", "", 2, 11)]);
        dropped(sample, drop_of("NOT_SPECIFIED", "dst_discard_out", 9));
    }),
    ("ipsec", Severity::Warning, |sample| sample.counters_of(&[(Xfrm, "XfrmInTmplMismatch", "", 2, 11)])),
    ("ipsec", Severity::Warning, |sample| dropped(sample, drop_of("XFRM_POLICY", "xfrm_output_resume", 9))),
    ("cgroup-drop", Severity::Warning, |sample| dropped(sample, drop_of("BPF_CGROUP_EGRESS", "ip_finish_output", 9))),
    ("cgroup-drop", Severity::Warning, |sample| filtered(sample, "/a/b")),
    ("tcp-signature", Severity::Warning, |sample| sample.counters_of(&[(Netstat, "TcpExtTCPMD5Failure", "", 2, 11)])),
    ("tcp-signature", Severity::Hint, |sample| sample.counters_of(&[(Netstat, "TcpExtTCPMD5Unexpected", "", 2, 11)])),
    ("tc-xdp-drop", Severity::Warning, |sample| dropped(sample, drop_of("NOT_SPECIFIED", "veth_xdp_rcv_skb", 9))),
    ("tc-xdp-drop", Severity::Warning, |sample| {
        let xdp = Some(XdpSeen { program: 7, is_generic: false, link: None });
        sample.around.links.insert(0, LinkSeen { index: 9, name: "eth9".into(), xdp, ..LinkSeen::default() });
        sample.around.drops = Some(Vec::new());
        sample.counters_of(&[(Iface, "rx_dropped", "eth9", 0, 80), (Iface, "rx_packets", "eth9", 0, 400)]);
    }),
    ("route-refuses", Severity::Warning, |sample| {
        sample.around.rules = vec![routing_rule(RuleAction::Refuse("unreachable"), "0.0.0.0/0")];
        sample.around.tables.get_or_insert_default().with_default.insert((false, 254));
        sample.counters_of(&[(Snmp, "IpOutNoRoutes", "", 0, 40)]);
    }),
    ("packet-drops", Severity::Warning, |sample| dropped(sample, drop_of("PACKET_SOCK_ERROR", "tpacket_rcv", 9))),
    ("netlink-overrun", Severity::Warning, |sample| {
        sample.before.netlink = vec![queue(4, "netlink netfilter port 7", 1, 1)];
        sample.after.netlink = vec![queue(4, "netlink netfilter port 7", 9, 1)];
    }),
    ("nflog-nobody", Severity::Warning, |sample| sample.around.rules_without_reader.push(unread(Some((5, 9))))),
    ("nflog-nobody", Severity::Hint, |sample| {
        sample.around.rules_without_reader.push(unread(None));
        sample.counters_of(&[(Snmp, "IpOutRequests", "", 0, 9)]);
    }),
    ("route-refuses", Severity::Warning, |sample| {
        dropped(sample, drop_of("NOT_SPECIFIED", "ip_error", 9));
        sample.around.refused.push(("203.0.113.0/24".into(), "blackhole"));
    }),
    ("neigh-failed", Severity::Critical, |sample| {
        sample.around.neighbours.push(NeighbourSeen { addr: PEER, ifindex: 2 });
        sample.around.gateways.push(Gateway { addr: Some(PEER), ifindex: 2, ..Gateway::default() });
    }),
    ("neigh-failed", Severity::Hint, |sample| {
        sample.around.neighbours.push(NeighbourSeen { addr: PEER, ifindex: 2 });
    }),
    // The reason has no name for IPv6: the place decides.
    ("neigh-failed", Severity::Warning, |sample| {
        sample.around.neighbours.push(NeighbourSeen { addr: PEER6, ifindex: 2 });
        let drop = drop_of("NOT_SPECIFIED", "ndisc_error_report", 90);
        dropped(sample, DropSeen { proto: "udp", ..drop });
    }),
    ("discovery-drop", Severity::Critical, |sample| {
        sample.around.neighbours.push(NeighbourSeen { addr: PEER6, ifindex: 2 });
        sample.around.gateways.push(Gateway { addr: Some(PEER6), ifindex: 2, ..Gateway::default() });
        dropped(sample, advert(2));
    }),
    ("discovery-drop", Severity::Warning, |sample| {
        sample.around.neighbours.push(NeighbourSeen { addr: PEER, ifindex: 2 });
        dropped(sample, DropSeen { proto: "arp", ends: None, ..drop_of("NETFILTER_DROP", "nft_do_chain", 2) });
    }),
    ("discovery-drop", Severity::Warning, |sample| {
        dropped(sample, DropSeen { ends: Some((PEER6, SOLICITED)), ..advert(2) });
    }),
    ("arp-ignored", Severity::Warning, |sample| {
        sample.around.ignored_arp.push(IgnoredArp {
            addr: PEER,
            iface: "eth0".into(),
            holder: "lo".into(),
            sender: CLIENT,
            count: 3,
            setting: ArpSetting::Ignore,
            value: 1,
        });
    }),
    ("redirect", Severity::Warning, |sample| {
        sample.around.neighbours.push(NeighbourSeen { addr: PEER, ifindex: 2 });
        sample.around.redirects.push(RedirectSeen { to: CLIENT, gateway: PEER, ifindex: 2 });
    }),
    ("own-macvlan", Severity::Hint, |sample| {
        sample.around.neighbours.push(NeighbourSeen { addr: PEER, ifindex: 2 });
        let (name, netns) = ("eth0".to_owned(), "web".to_owned());
        sample.around.own_macvlans.push(OwnMacvlan { addr: PEER, ifindex: 2, name, netns });
    }),
    ("ra-ignored", Severity::Warning, |sample| {
        sample.around.ignored_adverts.push(IgnoredAdverts { iface: "eth0".into(), received: 4 });
        sample.counters_of(&[(Snmp6, "Ip6OutNoRoutes", "", 0, 40)]);
    }),
    ("neigh-permanent", Severity::Warning, |sample| pinned(sample, None)),
    ("neigh-permanent", Severity::Warning, |sample| {
        pinned(sample, Some(PEER));
        sample.counters_of(&[(Iface, "tx_packets", "eth0", 0, 40), (Iface, "rx_packets", "eth0", 0, 1)]);
    }),
    ("neigh-permanent", Severity::Warning, |sample| {
        pinned(sample, None);
        sample.after.unanswered.clear();
        (0..3).for_each(|_| sample.around.flows.add_silent(PEER));
    }),
    ("neigh-permanent", Severity::Hint, |sample| {
        pinned(sample, None);
        sample.after.unanswered.clear();
        sample.counters_of(&[(Iface, "tx_packets", "eth0", 0, 40), (Iface, "rx_packets", "eth0", 0, 1)]);
    }),
    ("iface-down", Severity::Critical, |sample| {
        let link = LinkSeen { index: 2, name: "eth0".into(), flags: 1, has_address: true, ..LinkSeen::default() };
        sample.around.links.push(link);
        dropped(sample, drop_of("NOT_SPECIFIED", "noop_enqueue", 9));
    }),
    ("iface-down", Severity::Critical, |sample| {
        sample.around.links.push(LinkSeen { index: 1, name: "lo".into(), has_address: true, ..LinkSeen::default() });
        sample.counters_of(&[(Iface, "tx_dropped", "lo", 0, 9), (Snmp, "IpOutRequests", "", 0, 9)]);
    }),
    ("bridge-port", Severity::Warning, |sample| {
        bridge_with(sample, &[(4, false), (3, false)]);
        dropped(sample, DropSeen { ifindex: 20, ..drop_of("BRIDGE_INGRESS_STP_STATE", "br_handle_frame", 9) });
    }),
    ("bridge-port", Severity::Hint, |sample| {
        bridge_with(sample, &[(3, true), (3, true)]);
        sample.counters_of(&[(Iface, "rx_packets", "p20", 0, 3), (Iface, "tx_packets", "p20", 4, 4)]);
    }),
    ("mac-moves", Severity::Warning, |sample| {
        bridge_with(sample, &[(3, false), (3, false)]);
        let hardware = [2, 0, 0, 0, 0, 5];
        sample.around.moves.push(MacMoved { hardware, bridge: 10, ports: [20, 21], count: 9 });
    }),
    ("mcast-snooping", Severity::Warning, |sample| {
        bridge_with(sample, &[(3, false), (3, false)]);
        dropped(sample, to_group("br_multicast_flood", 20));
        let bridge = sample.around.links.iter_mut().find_map(|link| link.bridge.as_mut()).unwrap();
        // The last query is 200 s old.
        (bridge.is_snooping, bridge.other_querier) = (true, Some(5500));
    }),
    ("mcast-iface", Severity::Warning, |sample| {
        dropped(sample, to_group("ip_rcv_finish_core", 2));
        sample.around.listeners.push(GroupListener { port: 5004, owner: holder("player") });
        sample.around.groups.push(GroupSeen { iface: "eth1".into(), group: GROUP, sources: Vec::new() });
    }),
    ("udp-sndbuf", Severity::Warning, |sample| {
        sample.counters_of(&[(Snmp, "UdpSndbufErrors", "", 0, 90), (Snmp, "UdpOutDatagrams", "", 0, 100)]);
        sample.after.senders.push(queue(4, "0.0.0.0:9", 5000, 4608));
    }),
    ("ttl-expired", Severity::Warning, |sample| {
        sample.counters_of(&[(Snmp6, "Icmp6InTimeExcds", "", 0, 2)]);
        sample.around.links.push(LinkSeen { hop_limit: Some(3), has_address: true, ..linked(1000, false, None) });
    }),
    ("mtu-mismatch", Severity::Warning, |sample| {
        sample.counters_of(&[(Iface, "rx_dropped", "eth0", 0, 40), (Iface, "rx_packets", "eth0", 0, 400)]);
        sample.around.links.push(LinkSeen { mtu: 1000, peer_mtu: Some(1500), ..linked(1000, false, None) });
    }),
    ("link-mode", Severity::Warning, |sample| sample.around.links.push(linked(100, true, Some(100)))),
    ("link-mode", Severity::Warning, |sample| sample.around.links.push(linked(100, true, None))),
    ("link-mode", Severity::Warning, |sample| sample.around.links.push(linked(100, false, Some(1000)))),
    ("bridge-nf", Severity::Warning, |sample| {
        sample.add_setting("bridge/bridge-nf-call-iptables", vec![1]);
        sample.around.links.push(LinkSeen {
            index: 2,
            name: "eth0".into(),
            is_bridge_port: true,
            ..LinkSeen::default()
        });
        dropped(sample, drop_of("NETFILTER_DROP", "nft_do_chain", 9));
    }),
    ("forwarding-off", Severity::Warning, |sample| {
        sample.add_setting("ipv4/ip_forward", vec![0]);
        sample.counters_of(&[(Snmp, "IpInAddrErrors", "", 0, 9)]);
    }),
    ("dad-failed", Severity::Critical, |sample| sample.around.duplicates.push(("eth0".into(), PEER))),
    ("ip-conflict", Severity::Critical, |sample| {
        let hardware = [2, 0, 0, 0, 0, 5];
        sample.around.conflicts.push(Conflict { addr: PEER, iface: "eth0".into(), hardware, count: 2 });
    }),
    ("asymmetric-route", Severity::Warning, |sample| {
        (0..9).for_each(|_| sample.around.flows.add_silent(PEER));
        sample.counters_of(&[(Conntrack, "invalid", "", 0, 90)]);
    }),
    ("dns-silent", Severity::Warning, |sample| (0..5).for_each(|_| sample.around.flows.add_query(PEER, false))),
    ("dns-silent", Severity::Warning, |sample| {
        sample.around.dns.servers = vec![dns_server(PEER, 0, 1, 1500), dns_server(OTHER, 3, 0, 0)];
    }),
    ("dns-errors", Severity::Warning, |sample| sample.around.dns.servers = vec![failing(PEER, 10, 9, 0)]),
    ("dns-errors", Severity::Warning, |sample| sample.around.dns.servers = vec![failing(PEER, 5, 0, 5)]),
    ("dns-errors", Severity::Hint, |sample| sample.around.dns.servers = vec![failing(PEER, 10, 3, 3)]),
    ("dns-errors", Severity::Hint, |sample| {
        sample.around.dns.servers = vec![failing(PEER, 9, 9, 0), dns_server(OTHER, 3, 0, 0)];
    }),
    ("dns-silent", Severity::Warning, |sample| sample.around.dns.servers = vec![dns_server(PEER, 0, 2, 700)]),
    ("dns-silent", Severity::Warning, |sample| {
        // A socket that waited was closed, and a new socket waits.
        sample.before.asking.push(asking(record::Proto::Udp, 40_000, PEER, 53));
        sample.around.dns.servers = vec![dns_server(PEER, 0, 1, 600), dns_server(OTHER, 3, 0, 0)];
    }),
    ("dns-silent", Severity::Warning, |sample| {
        sample.around.flows.add_earlier(PEER, false);
        sample.around.flows.add_earlier(PEER, false);
    }),
    ("dns-silent", Severity::Hint, |sample| sample.around.dns.servers = vec![dns_server(PEER, 0, 1, 1500)]),
    ("dns-silent", Severity::Hint, |sample| {
        sample.before.resolvers = vec![queue(4, "a", 0, 0)];
        sample.after.resolvers = vec![queue(4, "a", 0, 0)];
    }),
    ("ct-unreplied", Severity::Hint, |sample| {
        (sample.around.flows.entries, sample.around.flows.unanswered) = (500, 200);
    }),
    ("ct-unreplied", Severity::Warning, |sample| {
        (sample.around.flows.entries, sample.around.flows.unanswered) = (500, 200);
        (0..150).for_each(|_| sample.around.flows.add_silent(PEER));
    }),
    ("syn-retrans", Severity::Warning, |sample| {
        sample.counters_of(&[(Netstat, "TcpExtTCPSynRetrans", "", 0, 9)]);
        sample.after.unanswered.insert((PEER.into(), 80), 3);
    }),
    ("closed-port", Severity::Warning, |sample| {
        sample.after.used.insert(80);
        sample.counters_of(&[(Snmp, "TcpOutRsts", "", 0, 90)]);
        dropped(sample, DropSeen { ports: Some((40_000, 80)), ..drop_of("NO_SOCKET", "tcp_v4_rcv", 90) });
    }),
    ("nic-drops", Severity::Warning, |sample| {
        sample.around.drops = Some(Vec::new());
        sample.counters_of(&[(Iface, "rx_dropped", "eth0", 0, 40), (Iface, "rx_packets", "eth0", 0, 400)]);
    }),
    ("pmtu-blackhole", Severity::Warning, |sample| {
        (sample.before.stuck, sample.after.stuck) = (vec![stuck(1, false)], vec![stuck(1, false)]);
        sample.after.at_ease.insert(PEER.into(), 1);
    }),
    ("pmtu-blackhole", Severity::Warning, |sample| {
        let two = || vec![stuck(1, false), stuck(2, false)];
        (sample.before.stuck, sample.after.stuck) = (two(), two());
    }),
    ("peer-window", Severity::Warning, |sample| {
        (sample.before.stuck, sample.after.stuck) = (vec![stuck(1, true)], vec![stuck(1, true)]);
    }),
    ("close-wait", Severity::Warning, |sample| {
        let many = Unclosed { count: 60, example: "a".into() };
        sample.before.unclosed.insert(holder("server"), many.clone());
        sample.after.unclosed.insert(holder("server"), many);
    }),
    ("send-buffer", Severity::Warning, |sample| transfer(sample, pace::tests::FULL_SNDBUF)),
    ("small-window", Severity::Warning, |sample| transfer(sample, pace::tests::SMALL_PEER_WINDOW)),
    ("small-window", Severity::Warning, |sample| transfer(sample, pace::tests::SMALL_OWN_WINDOW)),
    ("nagle", Severity::Warning, |sample| transfer(sample, pace::tests::HELD)),
    ("nagle", Severity::Warning, |sample| transfer(sample, pace::tests::CORKED)),
    ("nagle", Severity::Hint, |sample| {
        transfer(sample, pace::tests::PEER_HELD);
        sample.counters_of(&[(Netstat, "TcpExtDelayedACKs", "", 0, 60)]);
    }),
    ("small-pmtu", Severity::Warning, |sample| {
        sample.around.links.push(LinkSeen { name: "eth0".into(), flags: 0x1_0001, mtu: 1500, ..LinkSeen::default() });
        sample.after.pace.small_paths.insert(PEER.into(), SmallPath { mtu: 552, connections: 2 });
    }),
    ("small-mss", Severity::Warning, |sample| {
        let small = SmallSegments { mss: 88, mtu: 1500, is_own: false, segments: 5000, connections: 2 };
        sample.after.pace.small_segments.insert(PEER.into(), small);
    }),
    ("syn-retrans", Severity::Hint, |sample| {
        sample.before.pace.opening.insert((PEER.into(), 80), 3);
        sample.after.pace.opening.insert((PEER.into(), 80), 5);
    }),
    ("reassembly", Severity::Warning, |sample| sample.counters_of(&[(Snmp, "IpReasmReqds", "", 0, 10)])),
    ("ping-ignored", Severity::Hint, |sample| {
        sample.counters_of(&[(Snmp, "IcmpInEchos", "", 0, 9)]);
        sample.add_setting("ipv4/icmp_echo_ignore_all", vec![1]);
    }),
    ("forwarding-off", Severity::Warning, |sample| {
        sample.counters_of(&[(Snmp, "IpInAddrErrors", "", 0, 90)]);
        sample.add_setting("ipv4/ip_forward", vec![1]);
        dropped(sample, drop_of("IP_INADDRERRORS", "ip_error", 90));
    }),
    ("ecn-syn", Severity::Warning, pace::tests::swallow_ecn),
    ("not-accepting", Severity::Critical, |sample| {
        waiting::waiting(sample, 1, (2, 9), &[1, 2], &[1, 2, 3]);
    }),
    ("process-stopped", Severity::Critical, |sample| {
        waiting::waiting(sample, 1, (0, 9), &[], &[1, 2, 3]);
        sample.around.processes.push(waiting::process(Some(Hold::Stopped)));
    }),
    ("udp-unread", Severity::Warning, |sample| waiting::unread_datagrams(sample, (5, 60))),
    ("unread-requests", Severity::Warning, |sample| waiting::unread_at(sample, &[1, 2, 3], (5, 5))),
    ("unix-queue", Severity::Critical, |sample| sample.around.unix.push(waiting::unix(UnixKind::Listener, (2, 4)))),
    ("unix-queue", Severity::Warning, |sample| sample.around.unix.push(waiting::unix(UnixKind::Datagrams, (60, 60)))),
    ("dead-peer", Severity::Warning, |sample| {
        sample.after.waiting.silent = vec![waiting::silent(1, Unanswered::Data, 4)];
    }),
    ("packet-late", Severity::Hint, |sample| {
        sample.after.late.push(LateReader { owner: holder("tcpdump"), late_ms: 500 });
    }),
];

/// The bridge `br0` (index 10), whose ports `p20` and so on have these states and are isolated or not.
fn bridge_with(sample: &mut Sample, ports: &[(u8, bool)]) {
    let times = BridgeState {
        membership_interval: 26_000,
        querier_interval: 25_500,
        query_interval: 12_500,
        forward_delay: 1500,
        ..BridgeState::default()
    };
    let up = LinkSeen { flags: 0x1_0001, ..LinkSeen::default() };
    let bridge = LinkSeen { index: 10, name: "br0".into(), is_bridge: true, bridge: Some(times), ..up.clone() };
    sample.around.links.push(bridge);
    for (number, (state, is_isolated)) in (20..).zip(ports) {
        let port = PortState {
            state: *state,
            is_isolated: *is_isolated,
            floods_groups: true,
            floods_hosts: true,
            floods_broadcasts: true,
            ..PortState::default()
        };
        let name = format!("p{number}");
        sample.around.links.push(LinkSeen { index: number, name, master: 10, port: Some(port), ..up.clone() });
    }
}

const GROUP: record::Addr = record::Addr::V4([239, 1, 2, 3]);

/// Packets of a stream that were dropped without a reason.
fn to_group(place: &str, ifindex: u32) -> DropSeen {
    let (ends, ports) = (Some((PEER, GROUP)), Some((40_000, 5004)));
    DropSeen { ends, ports, proto: "udp", ifindex, ..drop_of("NOT_SPECIFIED", place, 90) }
}

#[test]
fn bridges_at_their_work_are_no_finding() {
    let silent = |make: MakeIll| {
        let mut sample = Sample::of(&[]);
        make(&mut sample);
        assert_eq!(diagnose(&[sample]), []);
    };
    // A group that no host wants, and a querier that asks; one that the bridge floods, for want of a querier.
    silent(|sample| {
        bridge_with(sample, &[(3, false), (3, false)]);
        dropped(sample, to_group("br_multicast_flood", 20));
        let bridge = sample.around.links.iter_mut().find_map(|link| link.bridge.as_mut()).unwrap();
        (bridge.is_snooping, bridge.other_querier) = (true, Some(20_500));
    });
    silent(|sample| {
        bridge_with(sample, &[(3, false), (3, false)]);
        dropped(sample, to_group("ip_rcv_finish_core", 10));
        sample.around.links.iter_mut().find_map(|link| link.bridge.as_mut()).unwrap().is_snooping = true;
    });
    // Guests that must not reach each other, and their gateway.
    silent(|sample| {
        bridge_with(sample, &[(3, true), (3, true), (3, false)]);
        sample.counters_of(&[(Iface, "rx_packets", "p20", 0, 300), (Iface, "tx_packets", "p20", 0, 300)]);
    });
    silent(|sample| {
        bridge_with(sample, &[(3, true), (3, true)]);
        sample.counters_of(&[(Iface, "rx_packets", "p20", 0, 300), (Snmp, "IpInDelivers", "", 0, 300)]);
    });
    // A port that STP blocks receives frames of STP alone; a guest without a running neighbour talks to its host.
    silent(|sample| {
        bridge_with(sample, &[(4, false), (3, false)]);
        sample.around.links.iter_mut().find_map(|link| link.bridge.as_mut()).unwrap().stp = 1;
        sample.counters_of(&[(Iface, "rx_packets", "p20", 0, 3)]);
    });
    silent(|sample| {
        bridge_with(sample, &[(3, false), (0, false)]);
        sample.around.links.iter_mut().find(|link| link.name == "p21").unwrap().flags = 1;
        sample.counters_of(&[(Iface, "rx_packets", "p20", 0, 30), (Snmp, "IpInDelivers", "", 0, 20)]);
    });
    // A guest that was migrated.
    silent(|sample| {
        bridge_with(sample, &[(3, false), (3, false)]);
        let hardware = [2, 0, 0, 0, 0, 5];
        sample.around.moves.push(MacMoved { hardware, bridge: 10, ports: [20, 21], count: 1 });
    });
}

#[test]
fn streams_that_also_arrive_where_they_are_joined_are_no_finding() {
    let with = |change: MakeIll| {
        let mut sample = Sample::of(&[]);
        dropped(&mut sample, to_group("ip_rcv_finish_core", 2));
        sample.around.listeners.push(GroupListener { port: 5004, owner: holder("player") });
        sample.around.groups.push(GroupSeen { iface: "eth1".into(), group: GROUP, sources: Vec::new() });
        change(&mut sample);
        diagnose(&[sample]).iter().map(|finding| finding.title.clone()).collect::<Vec<_>>()
    };
    assert_eq!(with(|_| {}), ["239.1.2.3 arrives on if2, but is joined on eth1 only (player (7) at UDP port 5004)"]);
    assert!(with(|sample| sample.counters_of(&[(Netstat, "IpExtInMcastPkts", "", 0, 90)])).is_empty());
    assert!(with(|sample| sample.around.listeners.clear()).is_empty(), "no program waits for it");
    assert!(with(|sample| sample.around.groups.clear()).is_empty(), "no program has joined");
    let of = |sources| GroupSeen { iface: "if2".into(), group: GROUP, sources };
    let title = with(|sample| {
        sample.around.groups = vec![GroupSeen { iface: "if2".into(), group: GROUP, sources: vec![CLIENT] }];
    });
    assert!(title[0].contains("is joined for 192.0.2.1 only"), "{title:?}");
    let mut sample = Sample::of(&[]);
    dropped(&mut sample, to_group("ip_rcv_finish_core", 2));
    sample.around.listeners.push(GroupListener { port: 5004, owner: holder("player") });
    sample.around.groups.push(of(vec![PEER]));
    assert_eq!(diagnose(&[sample]), [], "the source is wanted");
}

#[test]
fn a_full_queue_and_a_full_send_buffer_are_told_apart() {
    let errors = [(Snmp, "UdpSndbufErrors", "", 0, 90), (Snmp, "UdpOutDatagrams", "", 0, 100)];
    let mut sample = Sample::of(&errors);
    sample.counters_of(&[(Qdisc, "drops", "eth0 tbf 1: root", 0, 90), (Qdisc, "packets", "eth0 tbf 1: root", 0, 10)]);
    let ids: Vec<&str> = diagnose(&[sample]).iter().map(|finding| finding.id).collect();
    assert_eq!(ids, ["qdisc-drop"]);
    // A program that fills its buffer and waits.
    let few = Sample::of(&[(Snmp, "UdpSndbufErrors", "", 0, 90), (Snmp, "UdpOutDatagrams", "", 0, 4000)]);
    assert_eq!(
        diagnose(&[few]).first().map(|finding| (finding.id, finding.severity)),
        Some(("udp-sndbuf", Severity::Hint))
    );
}

#[test]
fn the_interface_below_is_the_cause() {
    let link = |index, name: &str, flags| LinkSeen { index, name: name.into(), flags, ..LinkSeen::default() };
    let mut sample = Sample::of(&[]);
    sample.around.links = vec![
        link(2, "eth0", 0),
        LinkSeen { lower: 2, has_address: true, ..link(3, "eth0.5", 1) },
        link(4, "unused", 0),
    ];
    dropped(&mut sample, DropSeen { ifindex: 3, ..drop_of("DEV_READY", "__dev_queue_xmit", 9) });
    let found = diagnose(&[sample]);
    let first = found.first().unwrap();
    assert!(first.title.starts_with("eth0.5 has no carrier, because eth0, which it is on, is set down"), "{first:?}");
    assert_eq!((first.remedy[0].command.as_str(), found.len()), ("ip link set eth0 up", 1));
    let mut sample = Sample::of(&[]);
    sample.around.links = vec![
        LinkSeen { has_address: true, ..link(2, "bond0", 1) },
        LinkSeen { master: 2, ..link(3, "eth1", 0) },
        LinkSeen { master: 2, ..link(4, "eth2", 1) },
    ];
    dropped(&mut sample, drop_of("NOT_SPECIFIED", "noop_enqueue", 9));
    let title = diagnose(&[sample])[0].title.clone();
    assert!(title.starts_with("bond0 has no carrier: eth1 is set down, eth2 has no carrier"), "{title}");
}

#[test]
fn a_loopback_interface_that_is_down_does_not_explain_other_routes() {
    let lo = |has_address| LinkSeen { index: 1, name: "lo".into(), has_address, ..LinkSeen::default() };
    let ids = |has_address| {
        let mut sample = Sample::of(&[(Snmp, "IpOutNoRoutes", "", 0, 40)]);
        sample.around.links.push(lo(has_address));
        diagnose(&[sample]).iter().map(|finding| finding.id).collect::<Vec<_>>()
    };
    // Its routes remain while it has its address.
    assert_eq!((ids(true), ids(false)), (vec!["no-route"], vec!["iface-down", "no-route"]));
}

#[test]
fn small_hop_limits_are_no_finding_unless_packets_expire() {
    let found = |hop_limit, heard| {
        let mut sample = Sample::of(&[(Snmp6, "Icmp6InTimeExcds", "", 0, heard)]);
        let link = LinkSeen { hop_limit: Some(hop_limit), has_address: true, ..linked(1000, false, None) };
        sample.around.links.push(link);
        diagnose(&[sample]).into_iter().map(|finding| finding.severity).collect::<Vec<_>>()
    };
    assert_eq!(found(3, 0), []);
    assert_eq!(found(64, 2), []);
    assert_eq!(found(3, 2), [Severity::Warning]);
    assert_eq!(found(64, 20), [Severity::Hint], "a traceroute, or a loop on the path");
}

/// Two programs on one port; they may receive a group.
fn shared(may_be_group: bool) -> SharedPort {
    let programs = vec![holder("a"), holder("b")];
    SharedPort { name: "0.0.0.0:514".into(), port: 514, programs, is_part: false, may_be_group }
}

/// Resets of connections between [`PEER`] and a program, at port 80 of this host or of the peer.
fn reset_by(sample: &mut Sample, kind: ResetKind, is_service: bool, count: ResetCount) {
    let group = ResetGroup { kind, is_service, port: 80, peer: PEER, owner: holder("server") };
    sample.around.resets.get_or_insert_default().add(group, &count);
}

/// A forwarded TCP segment with these flags that a rule drops.
fn midway(rule: &str, flags: u8) -> DropSeen {
    let rule = Some(RuleSeen { text: rule.into(), chain: None, is_certain: true });
    let hook = Some(record::rows::NetfilterHook::Forward);
    DropSeen { hook, rule, tcp_flags: Some(flags), ..drop_of("NETFILTER_DROP", "nft_do_chain", 9) }
}

#[test]
fn resets_that_hurt_nobody_are_no_finding() {
    let found = |kind, is_service, count: ResetCount| {
        let mut sample = Sample::of(&[(Netstat, "TcpExtTCPAbortOnClose", "", 0, 90)]);
        reset_by(&mut sample, kind, is_service, count);
        diagnose(&[sample]).len()
    };
    let some = |count| ResetCount { count, ..ResetCount::default() };
    // Programs that leave early, as clients; a few connections; health checks without data.
    assert_eq!(found(ResetKind::Unread, false, some(90)), 0);
    assert_eq!(found(ResetKind::Aborted, false, some(90)), 0);
    assert_eq!(found(ResetKind::Unread, true, some(2)), 0);
    assert_eq!(found(ResetKind::ByPeer, false, some(2)), 0);
    assert_eq!(found(ResetKind::ByPeer, true, ResetCount { empty: 85, ..some(90) }), 0);
    // Without BPF, a host that opens more connections than it accepts is a client.
    let rows = [(Netstat, "TcpExtTCPAbortOnClose", "", 0, 90), (Snmp, "TcpActiveOpens", "", 0, 90)];
    assert_eq!(diagnose(&[Sample::of(&rows)]), []);
    // A SYN that was not answered was given up; a connection that recovered was not.
    let mut sample = Sample::of(&[(Netstat, "TcpExtTCPAbortOnTimeout", "", 0, 9)]);
    sample.before.stuck = vec![stuck(1, false)];
    sample.after.at_ease.insert(PEER.into(), 1);
    assert_eq!(diagnose(std::slice::from_ref(&sample)), []);
    // Sockets that have joined a group receive a copy each.
    let mut grouped = Sample::of(&[(Snmp, "UdpInDatagrams", "", 0, 9)]);
    grouped.around.shared_ports.push(shared(true));
    assert_eq!(diagnose(&[grouped]), []);
    // The port of the lost one is free; it is in use if the connection goes on.
    sample.add_setting("ipv4/ip_local_port_range", vec![32_768, 60_999]);
    let ids =
        |sample: &Sample| diagnose(std::slice::from_ref(sample)).iter().map(|finding| finding.id).collect::<Vec<_>>();
    assert_eq!(ids(&sample), ["gave-up"]);
    sample.after.taken.insert((record::Proto::Tcp, CLIENT), taken(1, 1));
    assert_eq!(ids(&sample), [""; 0]);
}

#[test]
fn segments_that_a_firewall_forgot_are_not_those_that_it_blocks() {
    let ids = |one: DropSeen, entries| {
        let mut sample = Sample::of(&[(Conntrack, "entries", "", entries, entries)]);
        dropped(&mut sample, one);
        diagnose(&[sample]).iter().map(|finding| finding.id).collect::<Vec<_>>()
    };
    let (policy, ports) = ("inet f c policy drop", "inet f c handle 4: tcp dport 80 drop");
    assert_eq!(ids(midway(policy, 16), 9), ["ct-forgotten"]);
    assert_eq!(ids(midway("inet f c handle 4: ct state invalid drop", 16), 9), ["ct-forgotten"]);
    // A SYN, an answer to a forged SYN, the end of a connection; a rule that blocks a port; no tracking.
    for (flags, rule, entries) in [(2, policy, 9), (18, policy, 9), (17, policy, 9), (16, ports, 9), (16, policy, 0)] {
        assert_eq!(ids(midway(rule, flags), entries), ["rule-drop"], "{flags} {rule}");
    }
}

const PEER: record::Addr = record::Addr::V4([192, 0, 2, 9]);
const OTHER: record::Addr = record::Addr::V4([192, 0, 2, 10]);

fn asking(proto: record::Proto, port: u16, peer: record::Addr, peer_port: u16) -> Asking {
    Asking { proto, port, peer, peer_port }
}

/// A packet of [`OTHER`] to a closed port of this host.
fn from_other(proto: &'static str, ports: (u16, u16)) -> DropSeen {
    let (ends, ports) = (Some((OTHER, CLIENT)), Some(ports));
    DropSeen { proto, ends, ports, ..drop_of("NO_SOCKET", "__udp4_lib_rcv", 3) }
}

fn dns_server(server: record::Addr, answered: u32, waiting: u32, longest_ms: u32) -> DnsServerSeen {
    let asked = answered + waiting;
    DnsServerSeen { server, port: 40_001, asked, answered, waiting, longest_ms, failed: 0, refused: 0 }
}

/// A server that answers, but with SERVFAIL and REFUSED.
fn failing(server: record::Addr, answered: u32, failed: u32, refused: u32) -> DnsServerSeen {
    DnsServerSeen { failed, refused, ..dns_server(server, answered, 0, 0) }
}

#[test]
fn errors_of_a_name_server_are_named_once() {
    let found = |servers: Vec<DnsServerSeen>| {
        let mut sample = Sample::of(&[]);
        sample.around.dns.servers = servers;
        diagnose(&[sample]).into_iter().map(|one| one.title).collect::<Vec<_>>()
    };
    let local = record::Addr::V4([127, 0, 0, 53]);
    // The resolver of this host passes on what its server answers.
    assert_eq!(
        found(vec![failing(local, 9, 9, 0), failing(PEER, 9, 9, 0)]),
        [format!("the DNS server {PEER} answers with SERVFAIL: 9 of 9 queries")]
    );
    assert_eq!(
        found(vec![failing(local, 9, 1, 8)]),
        ["the DNS server 127.0.0.53 answers with REFUSED: 8 of 9 queries".to_owned()]
    );
    assert_eq!(found(vec![failing(PEER, 4, 4, 0)]), [""; 0], "a program that asks for one name");
    assert_eq!(found(vec![failing(PEER, 20, 9, 0)]), [""; 0], "names that have no server of their own");
    // Forged answers without a query hide nothing.
    let hidden = DnsServerSeen { answered: 1000, ..failing(PEER, 9, 9, 0) };
    assert_eq!(found(vec![hidden]), [format!("the DNS server {PEER} answers with SERVFAIL: 9 of 9 queries")]);
}

/// Flows of [`CLIENT`] to a port that this host publishes for [`PEER`], in the network of both.
fn published(sample: &mut Sample, l4: u8, hairpins: u32) {
    let asked = record::Addr::V4([203, 0, 113, 1]);
    let of = PublishedPort { all: hairpins + 4, hairpins, example: Some((CLIENT, PEER, 8080)) };
    sample.around.flows.published.insert((l4, asked, 80), of);
}

fn stale(l4: u8) -> StaleFlow {
    let flow = TrackedFlow {
        l4,
        client: (CLIENT, 40_000),
        asked: (OTHER, 514),
        server: (PEER, 514),
        source: CLIENT,
        is_dnat: true,
        is_snat: false,
        is_answered: false,
    };
    StaleFlow { flow, difference: Difference::NoRule, rule: String::new() }
}

/// A late answer of [`OTHER`] to a client that uses this host's source NAT.
fn expired(sample: &mut Sample) {
    sample.around.flows.add_translated((17, OTHER, 7, CLIENT), true);
    dropped(sample, from_other("udp", (7, 40_000)));
}

/// An IPsec policy for packets from and to [`PEER`].
fn policy(blocks: bool, states: u32) -> IpsecPolicy {
    IpsecPolicy {
        direction: IpsecDirection::Out,
        from: record::Prefix::host(PEER),
        to: record::Prefix::host(PEER),
        proto: "",
        dport: 0,
        priority: 0,
        index: 17,
        blocks,
        tunnel: String::new(),
        states,
        larval: 0,
    }
}

/// A rule of policy routing for packets to a prefix.
fn routing_rule(action: RuleAction, to: &str) -> RoutingRule {
    RoutingRule {
        is_v6: false,
        priority: 5,
        from: "0.0.0.0/0".parse().unwrap(),
        to: to.parse().unwrap(),
        proto: "",
        dports: None,
        has_more: false,
        action,
        text: format!("from all to {to}"),
    }
}

/// Packets that a filter drops for a socket of the cgroup `/a/b`, while this cgroup has programs.
fn filtered(sample: &mut Sample, cgroup: &str) {
    sample.around.cgroups.push(CgroupSeen { path: cgroup.into(), ingress: 1, egress: 0 });
    let of_socket = SocketCgroup { proto: record::Proto::Tcp, port: 80, path: "/a/b".into() };
    sample.around.cgroups_of_sockets.push(of_socket);
    dropped(sample, DropSeen { ports: Some((40_000, 80)), ..drop_of("SOCKET_FILTER", "tcp_v4_rcv", 90) });
}

const PEER6: record::Addr = record::Addr::V6([0xfd, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
const SOLICITED: record::Addr = record::Addr::V6([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 1]);

/// Answers of a neighbour that a rule drops.
fn advert(count: u64) -> DropSeen {
    let (hook, ends) = (Some(record::rows::NetfilterHook::Input), Some((PEER6, PEER6)));
    DropSeen { proto: "icmpv6", hook, ends, ..drop_of("NETFILTER_DROP", "nft_do_chain", count) }
}

/// A permanent entry of `PEER`, and connections that wait for `PEER`, or for a peer that it leads to.
fn pinned(sample: &mut Sample, gateway: Option<record::Addr>) {
    sample.around.links = vec![LinkSeen { index: 2, name: "eth0".into(), flags: 0x1_0001, ..LinkSeen::default() }];
    sample.around.permanent.push(PermanentSeen { addr: PEER, ifindex: 2, hardware: [2, 0, 0, 0, 0, 9] });
    let peer = gateway.map_or(PEER, |_| CLIENT);
    let hop = Gateway { addr: gateway, ifindex: 2, ..Gateway::default() };
    sample.around.paths.insert(peer, PathSeen { prefix_len: Some(0), hop });
    sample.after.unanswered.insert((peer.into(), 80), 3);
}

fn drop_of(reason: &str, place: &str, count: u64) -> DropSeen {
    let (reason, place) = (reason.to_owned(), place.to_owned());
    DropSeen { reason, place, ifindex: 2, proto: "tcp", ends: Some((PEER, PEER)), count, ..DropSeen::default() }
}

/// Adds a connection, to which `change` happens within the window.
fn transfer(sample: &mut Sample, change: fn(&mut Transfer)) {
    let mut now = Transfer::example();
    sample.before.pace.transfers.insert(7, now.clone());
    change(&mut now);
    sample.after.pace.transfers.insert(7, now);
}

fn dropped(sample: &mut Sample, one: DropSeen) {
    sample.around.drops.get_or_insert_default().push(one);
}

/// `eth0`, which supports 1000BASE-T, is up and has a carrier, at this speed; both ends offer up to `common_mbps`.
fn linked(mbps: u32, is_half: bool, common_mbps: Option<u32>) -> LinkSeen {
    let mode = ModeSeen { mbps, is_half, is_negotiated: true, supported_mbps: Some(1000), common_mbps };
    LinkSeen { name: "eth0".into(), flags: 0x1_0001, mode: Some(mode), ..LinkSeen::default() }
}

#[test]
fn links_as_good_as_they_can_be_are_no_finding() {
    let with = |change: fn(&mut LinkSeen, &mut ModeSeen)| {
        let mut link = linked(100, true, Some(1000));
        let mut mode = link.mode.unwrap();
        change(&mut link, &mut mode);
        link.mode = Some(mode);
        let mut sample = Sample::of(&[]);
        sample.around.links.push(link);
        assert_eq!(diagnose(&[sample]), []);
    };
    with(|link, _| link.flags = 1);
    with(|_, mode| (mode.mbps, mode.is_half) = (1000, false));
    // Faster than half of the best common mode; set by hand; an end with only half duplex (10BASE-T1S).
    with(|_, mode| (mode.mbps, mode.is_half, mode.common_mbps) = (1000, false, Some(1999)));
    with(|_, mode| (mode.is_half, mode.is_negotiated) = (false, false));
    with(|_, mode| (mode.mbps, mode.supported_mbps, mode.common_mbps) = (10, None, None));
    // A driver without information reports 0 for half duplex and no supported mode.
    with(|_, mode| (mode.supported_mbps, mode.common_mbps) = (None, None));
}

const CLIENT: record::Addr = record::Addr::V4([192, 0, 2, 1]);

/// A control connection from [`CLIENT`] to [`PEER`].
fn control(kind: ControlKind) -> Control {
    Control { kind, client: CLIENT, server: PEER, real_server: PEER, outside: CLIENT, client_ports: [5555; 2] }
}

/// A forwarded packet that a rule drops.
fn data(proto: &'static str, from: record::Addr, to: record::Addr, ports: (u16, u16)) -> DropSeen {
    let hook = Some(record::rows::NetfilterHook::Forward);
    let (ends, ports) = (Some((from, to)), Some(ports));
    DropSeen { hook, proto, ends, ports, ..drop_of("NETFILTER_DROP", "nft_do_chain", 9) }
}

#[test]
fn what_no_control_connection_agreed_on_is_no_data_of_it() {
    for (kind, one) in [
        (ControlKind::Ftp, data("tcp", CLIENT, PEER, (40_000, 80))),
        (ControlKind::Ftp, data("tcp", CLIENT, record::Addr::V4([192, 0, 2, 8]), (40_000, 30_123))),
        (ControlKind::Ftp, data("tcp", PEER, CLIENT, (443, 40_001))),
        (ControlKind::Ftp, data("udp", CLIENT, PEER, (40_000, 30_123))),
        (ControlKind::Tftp, data("udp", PEER, CLIENT, (50_000, 5556))),
        (ControlKind::Tftp, data("udp", CLIENT, PEER, (5555, 50_000))),
        (ControlKind::Ftp, DropSeen { count: 2, ..data("tcp", CLIENT, PEER, (40_000, 30_123)) }),
    ] {
        let mut sample = Sample::of(&[]);
        sample.around.controls.push(control(kind));
        dropped(&mut sample, one);
        let found = diagnose(&[sample]);
        assert!(found.iter().all(|finding| finding.id != "ct-helper"), "{found:?}");
    }
}

fn unread(logged: Option<(i64, i64)>) -> RuleWithoutReader {
    RuleWithoutReader {
        group: 5,
        family: "inet",
        table: "t".into(),
        chain: "c".into(),
        handle: 7,
        logged: logged.map(|(before, after)| Moved { before: Some(before), after }),
        is_reached: true,
    }
}

fn stuck(identity: u64, is_window: bool) -> Stuck {
    let (name, owner) = (format!("socket {identity}"), holder("client"));
    Stuck {
        identity,
        name,
        peer: PEER.into(),
        owner,
        is_window,
        send_q: 9000,
        again: 3,
        local_port: 40_000,
        acked: Some(100),
    }
}

#[test]
fn each_check_finds_what_surrounds_it() {
    for (id, severity, make_ill) in AROUND {
        let mut sample = Sample::of(&[]);
        make_ill(&mut sample);
        let found = diagnose(&[sample]);
        let finding = found.first().unwrap_or_else(|| panic!("{id}"));
        assert_eq!((finding.id, finding.severity), (*id, *severity), "{found:?}");
        assert!(!finding.evidence.is_empty() && !finding.cost.is_empty() && !finding.remedy.is_empty(), "{finding:?}");
    }
}

#[test]
fn what_is_routine_is_no_finding() {
    let silent = |make: MakeIll| {
        let mut sample = Sample::of(&[]);
        make(&mut sample);
        assert_eq!(diagnose(&[sample]), []);
    };
    silent(|sample| dropped(sample, drop_of("UNHANDLED_PROTO", "__netif_receive_skb_core", 900)));
    silent(|sample| dropped(sample, drop_of("NOT_SPECIFIED", "somewhere", 40)));
    // A load balancer's health checks, which end half-open connections, and late answers to clients that have gone
    // away.
    silent(|sample| sample.counters_of(&[(Snmp, "TcpAttemptFails", "", 0, 90), (Snmp, "TcpActiveOpens", "", 0, 2)]));
    silent(|sample| {
        sample.add_setting("ipv4/ip_local_port_range", vec![32_768, 60_999]);
        sample.counters_of(&[(Snmp, "TcpOutRsts", "", 0, 90)]);
        dropped(sample, DropSeen { ports: Some((80, 40_000)), ..drop_of("NO_SOCKET", "tcp_v4_rcv", 90) });
    });
    // Scanners' SYNs whose answers are not acknowledged.
    silent(|sample| sample.counters_of(&[(Netstat, "TcpExtTCPSynRetrans", "", 0, 9)]));
    // A router with many flows: some are unanswered, and some packets belong to no flow.
    silent(|sample| {
        (0..9).for_each(|_| sample.around.flows.add_silent(PEER));
        sample.around.flows.entries = 90_000;
        sample.counters_of(&[(Conntrack, "invalid", "", 0, 90), (Snmp, "IpInReceives", "", 0, 900_000)]);
    });
    // A firewall that blocks packets to closed ports and lets much more traffic pass.
    silent(|sample| {
        let hook = Some(record::rows::NetfilterHook::Input);
        dropped(sample, DropSeen { hook, ports: Some((40_000, 23)), ..drop_of("NETFILTER_DROP", "nft_do_chain", 9) });
        sample.counters_of(&[(Snmp, "IpInReceives", "", 0, 500)]);
    });
    silent(|sample| dropped(sample, drop_of("TCP_INVALID_SYN", "tcp_v4_rcv", 4)));
    // An interface that is down and unused: a bridge without containers.
    silent(|sample| {
        let link = LinkSeen { name: "docker0".into(), flags: 1, has_address: true, ..LinkSeen::default() };
        sample.around.links.push(link);
    });
    // A logging rule that no packet matches; rules without a counter where no packet moves, or that are not reached.
    silent(|sample| sample.around.rules_without_reader.push(unread(Some((9, 9)))));
    silent(|sample| {
        sample.around.rules_without_reader.push(unread(Some((9, 9))));
        sample.counters_of(&[(Snmp, "IpOutRequests", "", 0, 9)]);
    });
    silent(|sample| sample.around.rules_without_reader.push(unread(None)));
    silent(|sample| {
        sample.around.rules_without_reader.push(RuleWithoutReader { is_reached: false, ..unread(None) });
        sample.counters_of(&[(Snmp, "IpOutRequests", "", 0, 9)]);
    });
    // Other hosts forward on purpose, and a router does not see the answers to packets that it only forwards.
    silent(|sample| sample.counters_of(&[(Snmp, "IpInAddrErrors", "", 0, 9)]));
    silent(|sample| sample.around.flows.add_silent(PEER));
    silent(|sample| sample.after.resolvers = vec![queue(4, "a", 0, 0)]);
    silent(|sample| sample.after.stuck = vec![stuck(1, true), stuck(2, false)]);
    // A connection that sent much data before its path failed does not prove a size limit.
    silent(|sample| {
        let two = || [1, 2].map(|identity| Stuck { acked: Some(90_000), ..stuck(identity, false) }).to_vec();
        (sample.before.stuck, sample.after.stuck) = (two(), two());
    });
}

#[test]
fn open_sockets_and_slow_servers_are_no_silent_servers() {
    let silent = |make: MakeIll| severity_of("dns-silent", make);
    let idle = |sample: &mut Sample| {
        sample.before.resolvers = vec![queue(4, "a", 0, 0)];
        sample.after.resolvers = vec![queue(4, "a", 0, 0)];
    };
    assert_eq!(silent(idle), Some(Severity::Hint));
    assert_eq!(
        silent(|sample| {
            let socket = || vec![queue(4, "a", 0, 0)];
            (sample.before.resolvers, sample.after.resolvers) = (socket(), socket());
            sample.after.asking.push(asking(record::Proto::Udp, 80, PEER, 53));
            sample.around.dns.servers = vec![dns_server(PEER, 1, 0, 0)];
        }),
        None,
        "the server answers others"
    );
    assert_eq!(silent(|sample| sample.around.dns.servers = vec![dns_server(PEER, 9, 2, 900)]), None);
    assert_eq!(silent(|sample| sample.around.dns.servers = vec![dns_server(PEER, 0, 0, 0)]), None);
    assert_eq!(
        silent(|sample| {
            (0..3).for_each(|_| sample.around.flows.add_earlier(PEER, false));
            sample.around.flows.add_earlier(PEER, true);
        }),
        None,
        "it answered others"
    );
    assert_eq!(
        severity_of("answer-source", |sample| {
            let mismatch = DnsMismatch { asked: PEER, answered: OTHER, client: CLIENT, is_own: true, count: 2 };
            sample.around.dns.mismatches.push(mismatch);
            sample.around.dns.servers = vec![dns_server(PEER, 0, 2, 900)];
        }),
        Some(Severity::Warning),
        "it is not silent"
    );
}

#[test]
fn packets_of_nat_have_their_own_findings() {
    let late = |port: u16, peer| {
        let mut sample = Sample::of(&[]);
        sample.after.asking.push(asking(record::Proto::Udp, port, peer, 161));
        dropped(&mut sample, from_other("udp", (161, 40_000)));
        diagnose(&[sample])
    };
    assert_eq!(late(40_000, PEER).len(), 1);
    assert_eq!((late(40_000, OTHER), late(40_001, PEER)), (vec![], vec![]), "late, or for another socket");
    let own = |sample: &mut Sample| {
        expired(sample);
        sample.after.asking.push(asking(record::Proto::Udp, 40_002, OTHER, 7));
    };
    assert_eq!(severity_of("nat-expired", own), None, "this host asks the server itself");
    let down = |sample: &mut Sample| {
        published(sample, 6, 3);
        sample.around.neighbours.push(NeighbourSeen { addr: PEER, ifindex: 2 });
    };
    let mut sample = Sample::of(&[]);
    down(&mut sample);
    assert!(diagnose(&[sample]).iter().all(|one| one.id == "neigh-failed"), "the server is down");
    assert_eq!(
        severity_of("martian", |sample| {
            let ends = Some((record::Addr::V4([127, 0, 0, 1]), CLIENT));
            dropped(sample, DropSeen { ends, ..drop_of("IP_LOCALNET", "ip_rcv_finish_core", 9) });
        }),
        Some(Severity::Hint),
        "a forged source"
    );
}

#[test]
fn redirects_that_nat_drops_are_no_rule() {
    let at_output = |redirects: i64| {
        let mut sample = Sample::of(&[(Snmp, "IcmpOutRedirects", "", 0, redirects)]);
        let hook = Some(record::rows::NetfilterHook::Output);
        let ends = Some((CLIENT, PEER));
        dropped(&mut sample, DropSeen { hook, proto: "icmp", ends, ..drop_of("NETFILTER_DROP", "nf_hook_slow", 9) });
        diagnose(&[sample]).len()
    };
    assert_eq!((at_output(9), at_output(3)), (0, 1));
}

/// The severity of the only finding, if there is one.
fn severity_of(id: &str, make: impl FnOnce(&mut Sample)) -> Option<Severity> {
    let mut sample = Sample::of(&[]);
    make(&mut sample);
    let found = diagnose(&[sample]);
    assert!(found.iter().all(|one| one.id == id), "{found:?}");
    found.first().map(|one| one.severity)
}

/// A packet that a rule drops at the input hook.
fn refused(from: record::Addr, ports: (u16, u16), rule: &str) -> DropSeen {
    let rule = Some(RuleSeen { text: rule.into(), chain: None, is_certain: true });
    let (hook, ends) = (Some(record::rows::NetfilterHook::Input), Some((from, CLIENT)));
    DropSeen { hook, ends, ports: Some(ports), rule, ..drop_of("NETFILTER_DROP", "nft_do_chain", 60) }
}

#[test]
fn a_firewall_at_its_work_is_no_warning() {
    assert_eq!(
        severity_of("rule-drop", |sample| {
            let hook = Some(record::rows::NetfilterHook::Forward);
            dropped(sample, DropSeen { hook, ..drop_of("NETFILTER_DROP", "nft_do_chain", 60) });
            sample.counters_of(&[(Snmp, "IpInReceives", "", 0, 700)]);
        }),
        Some(Severity::Hint)
    );
    // Backscatter: answers that nothing here asked for. Answers to a connection of this host are another matter.
    assert_eq!(
        severity_of("rule-drop", |sample| dropped(sample, refused(PEER, (443, 40_001), "inet f c policy drop"))),
        Some(Severity::Hint)
    );
    assert_eq!(
        severity_of("rule-drop", |sample| {
            sample.after.destinations.insert((443, CLIENT, PEER.into()), PortsInUse { used: 1, time_wait: 0 });
            dropped(sample, refused(PEER, (443, 40_001), "inet f c policy drop"));
        }),
        Some(Severity::Warning)
    );
    // The policy closes a port with a listener; a rule does; a rule lets some clients through.
    assert_eq!(
        severity_of("rule-drop", |sample| {
            sample.after.served.insert((record::Proto::Tcp, 5432), Served::default());
            dropped(sample, refused(PEER, (40_000, 5432), "inet f c policy drop"));
        }),
        Some(Severity::Hint)
    );
    assert_eq!(
        severity_of("rule-drop", |sample| {
            sample.after.served.insert((record::Proto::Tcp, 5432), Served::default());
            dropped(sample, refused(PEER, (40_000, 5432), "inet f c handle 4: tcp dport 5432 drop"));
        }),
        Some(Severity::Warning)
    );
    assert_eq!(
        severity_of("rule-drop", |sample| {
            sample.after.served.insert((record::Proto::Tcp, 5432), Served::default());
            sample.after.used.insert(5432);
            dropped(sample, refused(PEER, (40_000, 5432), "inet f c handle 4: tcp dport 5432 drop"));
        }),
        Some(Severity::Hint)
    );
}

/// The title of the first finding.
fn title_of(make: impl FnOnce(&mut Sample)) -> String {
    let mut sample = Sample::of(&[]);
    make(&mut sample);
    diagnose(&[sample]).first().map_or(String::new(), |one| one.title.clone())
}

#[test]
fn a_service_on_another_address_is_named() {
    assert_eq!(
        title_of(|sample| {
            sample.counters_of(&[(Snmp, "TcpOutRsts", "", 0, 90)]);
            dropped(sample, DropSeen { ports: Some((40_000, 80)), ..drop_of("NO_SOCKET", "tcp_v4_rcv", 90) });
            let example = "server (7) at 127.0.0.1:80".to_owned();
            sample.after.served.insert((record::Proto::Tcp, 80), Served { example, more: 0 });
        }),
        "packets for tcp port 80 are refused: its only listener is server (7) at 127.0.0.1:80"
    );
}

#[test]
fn a_program_that_sends_from_a_removed_address_is_named() {
    let title = |acked: (u64, u64), own: &str| {
        title_of(|sample| {
            sample.counters_of(&[(Snmp, "IpOutNoRoutes", "", 0, 9)]);
            let addr = own.parse().unwrap();
            sample.around.addresses.push(crate::seen::AddressSeen { ifindex: 2, addr, prefix_len: 24 });
            let of = |acked| SendingConnection { socket: queue(7, "10.0.0.1:40000", 50, 0), acked: Some(acked) };
            sample.before.sources.insert("10.0.0.1".parse().unwrap(), of(acked.0));
            sample.after.sources.insert("10.0.0.1".parse().unwrap(), of(acked.1));
        })
    };
    let gone = "server (7) sends from 10.0.0.1, which this host no longer has";
    let no_route = "IPv4 packets are dropped: no route leads to their destination";
    assert_eq!(title((5, 5), "10.0.0.2"), gone);
    // The connection moves, or the address is there.
    assert_eq!((&*title((5, 6), "10.0.0.2"), &*title((5, 5), "10.0.0.1")), (no_route, no_route));
}

#[test]
fn the_listener_that_drops_connections_is_named() {
    let overflow = |dropped: (u32, u32)| {
        title_of(|sample| {
            sample.counters_of(&[(Netstat, "TcpExtListenOverflows", "", 0, 9)]);
            let of = |drops, identity| Queue { drops: Some(drops), ..queue(identity, "0.0.0.0:80", 0, 1) };
            sample.before.overflowing = vec![of(dropped.0, 1), of(900, 2)];
            sample.after.overflowing = vec![of(dropped.1, 1), of(900, 2)];
        })
    };
    let some = "an accept queue overflows: its program accepts too slowly";
    assert_eq!(
        (overflow((5, 5)), &*overflow((0, 9))),
        (some.to_owned(), "the accept queue of server (7) at 0.0.0.0:80 overflows at times: its backlog is 1")
    );
}

#[test]
fn a_dns_server_that_refuses_is_not_called_silent() {
    let title = |unreachable: i64| {
        title_of(|sample| {
            sample.counters_of(&[(Snmp, "IcmpInDestUnreachs", "", 0, unreachable)]);
            sample.around.dns.servers = vec![dns_server(PEER, 0, 5, 1500)];
        })
    };
    assert_eq!(title(0), format!("the DNS server {PEER} does not answer"));
    assert!(title(3).contains("seems to refuse queries"), "{}", title(3));
}

#[test]
fn one_destination_without_answers_is_a_hint() {
    let severity = |count| {
        severity_of("ct-unreplied", |sample| {
            sample.around.flows.entries = 1000;
            (0..count).for_each(|_| sample.around.flows.add_silent(PEER));
        })
    };
    assert_eq!((severity(19), severity(20)), (None, Some(Severity::Hint)));
    // Source NAT to an address that no host has, and to a pool that is routed to this host.
    let with = |is_answered| {
        severity_of("ct-unreplied", |sample| {
            let addr = "10.0.0.1".parse().unwrap();
            sample.around.addresses.push(crate::seen::AddressSeen { ifindex: 2, addr, prefix_len: 24 });
            (0..20).for_each(|_| sample.around.flows.add_silent(PEER));
            let source = "10.0.0.99".parse().unwrap();
            sample.around.flows.add_translated((6, PEER, 80, source), false);
            sample.around.flows.add_translated((6, OTHER, 80, source), is_answered);
        })
    };
    assert_eq!((with(false), with(true)), (Some(Severity::Warning), Some(Severity::Hint)));
    // It is found beside a scan of another host, and beside many unanswered flows.
    let beside_a_scan = title_of(|sample| {
        let addr = "10.0.0.1".parse().unwrap();
        sample.around.addresses.push(crate::seen::AddressSeen { ifindex: 2, addr, prefix_len: 24 });
        (0..20).for_each(|_| sample.around.flows.add_silent(PEER));
        (0..500).for_each(|_| sample.around.flows.add_silent(OTHER));
        (sample.around.flows.unanswered, sample.around.flows.entries) = (520, 520);
        sample.around.flows.add_translated((6, PEER, 80, "10.0.0.99".parse().unwrap()), false);
    });
    assert!(beside_a_scan.starts_with("source NAT gives connections to"), "{beside_a_scan}");
}

#[test]
fn ipsec_and_policy_routing_are_told_apart() {
    assert_eq!(
        title_of(|sample| {
            // A policy with a state, and one for other packets, have nothing to do with it.
            let other = IpsecPolicy { to: "203.0.113.0/24".parse().unwrap(), ..policy(false, 0) };
            sample.around.ipsec = vec![policy(false, 3), policy(true, 0), other, policy(false, 0)];
            sample.around.rules = vec![routing_rule(RuleAction::Refuse("prohibit"), "203.0.113.0/24")];
            sample.counters_of(&[(Xfrm, "XfrmOutNoStates", "", 2, 11)]);
            dropped(sample, drop_of("NOT_SPECIFIED", "dst_discard_out", 9));
        }),
        "the IPsec policy `out 192.0.2.9 to 192.0.2.9` drops packets: no state (SA) protects them, such as 192.0.2.9 \
         to 192.0.2.9 (tcp)"
    );
    // A rule that refuses these packets, a blackhole for others, and IPsec that lost packets before the window.
    assert_eq!(
        title_of(|sample| {
            sample.around.refused.push(("203.0.113.0/24".into(), "blackhole"));
            let prohibit = RuleAction::Refuse("prohibit");
            sample.around.rules =
                vec![routing_rule(prohibit, "203.0.113.0/24"), routing_rule(prohibit, "192.0.2.0/24")];
            sample.counters_of(&[(Xfrm, "XfrmOutNoStates", "", 11, 11)]);
            dropped(sample, drop_of("NOT_SPECIFIED", "ip_error", 9));
        }),
        "the policy routing rule `5: from all to 192.0.2.0/24 prohibit` drops packets, such as 192.0.2.9 to 192.0.2.9 \
         (tcp)"
    );
    // IPsec refuses packets of programs, which seem to have no route.
    let rows = [(Xfrm, "XfrmOutPolBlock", "", 0, 9), (Snmp, "IpOutNoRoutes", "", 0, 9)];
    let found = diagnose(&[Sample::of(&rows)]);
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), ["ipsec"]);
    assert_eq!(severity_of("ipsec", |sample| sample.counters_of(&[(Xfrm, "XfrmInError", "", 0, 2)])), None);
}

#[test]
fn a_rule_that_refuses_is_no_missing_route() {
    let with = |to: &'static str, has_default: bool| {
        let mut sample = Sample::of(&[(Snmp, "IpOutNoRoutes", "", 0, 40)]);
        sample.around.rules = vec![routing_rule(RuleAction::Refuse("unreachable"), to)];
        let tables = sample.around.tables.get_or_insert_default();
        if has_default {
            tables.with_default.insert((false, 254));
        }
        dropped(&mut sample, drop_of("IP_OUTNOROUTES", "ip_queue_xmit", 40));
        diagnose(&[sample])[0].id
    };
    assert_eq!([with("192.0.2.0/24", false), with("203.0.113.0/24", true)], ["route-refuses", "no-route"]);
    // A VPN's rule that keeps traffic inside: without a default route, packets have no route anyway.
    let vpn = |sample: &mut Sample| {
        sample.around.rules = vec![routing_rule(RuleAction::Refuse("unreachable"), "0.0.0.0/0")];
        sample.around.tables = Some(Default::default());
        sample.counters_of(&[(Snmp, "IpOutNoRoutes", "", 0, 40)]);
    };
    assert_eq!(severity_of("no-route", vpn), Some(Severity::Warning));
}

#[test]
fn rules_and_empty_tables() {
    let with = |rules: Vec<RoutingRule>| {
        let mut sample = Sample::of(&[(Snmp, "IpOutNoRoutes", "", 0, 40)]);
        sample.around.tables.get_or_insert_default().used.extend([(false, 7), (true, 8), (false, 254)]);
        sample.around.rules = rules;
        diagnose(&[sample])[0].title.clone()
    };
    let (lookup, all) = (RuleAction::Lookup, "0.0.0.0/0");
    let main = || routing_rule(lookup(254), all);
    assert!(with(vec![routing_rule(lookup(8), all), main()]).ends_with("lookup 8` leads to an empty table"));
    assert!(with(vec![routing_rule(lookup(7), all)]).ends_with("leads all packets to the table main"));
    for fine in [vec![], vec![main()], vec![routing_rule(lookup(7), all), main(), routing_rule(lookup(253), all)]] {
        assert!(with(fine).ends_with("their destination"));
    }
}

#[test]
fn programs_of_cgroups_and_filters_of_sockets_are_told_apart() {
    assert_eq!(severity_of("cgroup-drop", |sample| filtered(sample, "/a")), Some(Severity::Warning));
    assert_eq!(severity_of("cgroup-drop", |sample| filtered(sample, "/")), Some(Severity::Warning));
    // The programs belong to another cgroup, or decide on packets to send only.
    assert_eq!(severity_of("socket-filter", |sample| filtered(sample, "/a/bc")), Some(Severity::Hint));
    let egress = |sample: &mut Sample| {
        filtered(sample, "/a/b");
        sample.around.cgroups = vec![CgroupSeen { path: "/a/b".into(), ingress: 0, egress: 1 }];
    };
    assert_eq!(severity_of("socket-filter", egress), Some(Severity::Hint));
}

#[test]
fn drops_in_a_driver_are_those_of_its_xdp_program() {
    let with = |is_generic| {
        let xdp = Some(XdpSeen { program: 7, is_generic, link: None });
        let mut sample = Sample::of(&[(Iface, "rx_dropped", "eth9", 0, 40), (Iface, "rx_packets", "eth9", 0, 400)]);
        sample.around.drops = Some(Vec::new());
        sample.around.links.push(LinkSeen { index: 9, name: "eth9".into(), xdp, ..LinkSeen::default() });
        diagnose(&[sample]).iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!([with(false), with(true)], [["tc-xdp-drop"], ["nic-drops"]]);
}

#[test]
fn a_program_that_a_link_holds_is_detached_through_it() {
    let commands = |link| {
        let mut sample = Sample::of(&[]);
        dropped(&mut sample, drop_of("XDP", "do_xdp_generic", 9));
        let xdp = Some(XdpSeen { program: 7, is_generic: true, link });
        sample.around.links.insert(0, LinkSeen { index: 2, name: "eth9".into(), xdp, ..LinkSeen::default() });
        let found = diagnose(&[sample]);
        assert_eq!(found[0].id, "tc-xdp-drop");
        found[0].remedy.iter().map(|one| one.command.clone()).collect::<Vec<_>>()
    };
    assert_eq!(commands(Some(5)), ["bpftool prog show id 7", "bpftool link detach id 5"]);
    assert_eq!(commands(None), ["bpftool prog show id 7", "ip link set dev eth9 xdpgeneric off"]);
}

#[test]
fn the_element_of_a_set_is_named() {
    let with = |rule: &str, is_certain| {
        let mut sample = Sample::of(&[]);
        let rule = Some(RuleSeen { text: rule.into(), chain: Some("ip f c".into()), is_certain });
        let one = DropSeen { rule, ports: Some((5, 80)), ..drop_of("NETFILTER_DROP", "nft_do_chain", 60) };
        dropped(&mut sample, DropSeen { hook: Some(record::rows::NetfilterHook::Forward), ..one });
        let found = diagnose(&[sample]);
        let get = found[0].remedy.iter().find(|one| one.command.starts_with("nft get"));
        get.map(|one| one.command.clone()).unwrap_or_default()
    };
    let by_source = "nft get element ip f bad '{ 192.0.2.9 }'";
    assert_eq!(with("ip f c handle 4: ip saddr @bad drop", true), by_source);
    assert_eq!(with("ip f c handle 4: ip saddr vmap @bad", true), by_source);
    assert_eq!(with("ip f c handle 4: tcp dport @bad counter drop", true), "nft get element ip f bad '{ 80 }'");
    for none in
        ["ip saddr != @good drop", "ip saddr . tcp dport @bad drop", "add @bad { ip saddr }", "tcp dport 80 drop"]
    {
        assert_eq!(with(&format!("ip f c handle 4: {none}"), true), "");
    }
    assert_eq!(with("ip f c handle 4: ip saddr @bad drop", false), by_source, "shows whether it was this rule");
    assert_eq!(with("ip f c handle 4: ip saddr @$(id) drop", true), "", "a name that a shell would run");
}

#[test]
fn rules_of_the_older_kind_are_listed_by_their_own_tool() {
    let with = |place, legacy: &[&'static str]| {
        let mut sample = Sample::of(&[]);
        let hook = Some(record::rows::NetfilterHook::Forward);
        dropped(&mut sample, DropSeen { hook, ..drop_of("NETFILTER_DROP", place, 60) });
        sample.around.legacy_rules = legacy.to_vec();
        diagnose(&[sample])[0].remedy[0].command.clone()
    };
    assert_eq!(with("nf_hook_slow", &["iptables"]), "iptables-legacy-save -c");
    for (place, legacy) in
        [("nft_do_chain", &["iptables"][..]), ("nf_hook_slow", &["ip6tables"]), ("nf_hook_slow", &[])]
    {
        assert_eq!(with(place, legacy), "nft -a list ruleset");
    }
}

#[test]
fn a_rule_of_this_host_that_rejects_is_no_refusing_host() {
    let with = |hook| {
        let mut sample = Sample::of(&[(Snmp, "TcpAttemptFails", "", 0, 80), (Snmp, "TcpActiveOpens", "", 0, 90)]);
        let rule = Some(RuleSeen { text: "inet f c handle 2: reject".into(), chain: None, is_certain: true });
        dropped(&mut sample, DropSeen { hook: Some(hook), rule, ..drop_of("NETFILTER_DROP", "nft_do_chain", 80) });
        let found = diagnose(&[sample]);
        assert!(found.iter().any(|one| one.id == "rule-drop" && one.title.contains("rejects packets")));
        found.iter().any(|one| one.id == "refused")
    };
    use record::rows::NetfilterHook::{Forward, Output};
    assert_eq!([with(Output), with(Forward)], [false, true]);
}

#[test]
fn packets_for_groups_were_not_asked_for() {
    const ALL: record::Addr = record::Addr::V4([10, 55, 0, 255]);
    const GROUP: record::Addr = record::Addr::V4([224, 0, 0, 251]);
    const FAULTS: &[(&str, &str, &str)] = &[
        ("rp-filter", "IP_RPFILTER", "ip_rcv_finish_core"),
        ("martian", "IP_LOCAL_SOURCE", "ip_rcv_finish_core"),
        ("ipv6-off", "IPV6DISABLED", "ip6_rcv_core"),
        ("forwarding-off", "IP_INADDRERRORS", "ip_error"),
    ];
    for (id, reason, place) in FAULTS {
        let find = |to| {
            let mut sample = Sample::of(&[
                (Netstat, "TcpExtIPReversePathFilter", "", 0, if *id == "rp-filter" { 9 } else { 0 }),
                (Snmp, "IpInAddrErrors", "", 0, if *id == "forwarding-off" { 9 } else { 0 }),
            ]);
            sample.add_setting("ipv4/ip_forward", vec![0]);
            dropped(&mut sample, DropSeen { ends: Some((PEER, to)), ..drop_of(reason, place, 9) });
            diagnose(&[sample]).into_iter().filter(|one| one.id == *id).count()
        };
        assert_eq!((find(ALL), find(GROUP), find(CLIENT)), (0, 0, 1), "{id}");
    }
}

#[test]
fn a_few_of_many_are_a_hint() {
    // 13 of 12,000 datagrams were lost, and the socket is empty again.
    let hiccup = |queue_after| {
        let mut sample = Sample::of(&[(Snmp, "UdpRcvbufErrors", "", 0, 13), (Snmp, "UdpInDatagrams", "", 0, 12_000)]);
        sample.before.udp = vec![Queue { drops: Some(0), ..queue(1, "0.0.0.0:7", 0, 4096) }];
        sample.after.udp = vec![Queue { drops: Some(13), ..queue(1, "0.0.0.0:7", queue_after, 4096) }];
        diagnose(&[sample])[0].severity
    };
    assert_eq!((hiccup(0), hiccup(4000)), (Severity::Hint, Severity::Critical));
    // An accept queue was full for a moment, but most connections were accepted.
    let opened = |opened| {
        let rows = [(Netstat, "TcpExtListenOverflows", "", 0, 20), (Snmp, "TcpPassiveOpens", "", 0, opened)];
        diagnose(&[Sample::of(&rows)])[0].severity
    };
    assert_eq!((opened(200), opened(3)), (Severity::Hint, Severity::Critical));
    for (id, whole, rows) in [
        ("checksum", "IpInReceives", (Snmp, "TcpInCsumErrors", "", 0, 10)),
        ("paws", "TcpInSegs", (Netstat, "TcpExtPAWSEstab", "", 0, 10)),
        ("rcv-prune", "TcpInSegs", (Netstat, "TcpExtTCPBacklogDrop", "", 0, 10)),
        ("reassembly", "IpReasmReqds", (Snmp, "IpReasmFails", "", 0, 10)),
        ("mtu", "IpInReceives", (Snmp, "IpFragFails", "", 0, 10)),
        ("no-route", "IpInReceives", (Snmp, "IpOutNoRoutes", "", 0, 10)),
        ("rp-filter", "IpInReceives", (Netstat, "TcpExtIPReversePathFilter", "", 0, 10)),
    ] {
        let find = |all| {
            let found = diagnose(&[Sample::of(&[rows, (Snmp, whole, "", 0, all)])]);
            found.iter().find(|one| one.id == id).map(|one| one.severity)
        };
        assert_eq!((find(10_000), find(100)), (Some(Severity::Hint), Some(Severity::Warning)), "{id}");
    }
}

#[test]
fn readers_that_read_and_clients_that_pause_are_no_warning() {
    let unread = |read: (u64, u64), is_service: bool| {
        let mut sample = Sample::of(&[]);
        let of = |read| vec![Queue { read: Some(read), ..queue(1, "a", 70_000, 128) }];
        (sample.before.unread, sample.after.unread) = (of(read.0), of(read.1));
        if is_service {
            sample.after.served.insert((record::Proto::Tcp, 80), Served::default());
        }
        diagnose(&[sample]).first().map(|one| one.severity)
    };
    assert_eq!(unread((5, 6), true), None);
    assert_eq!((unread((5, 5), true), unread((5, 5), false)), (Some(Severity::Warning), Some(Severity::Hint)));
    let window = |acked: (u64, u64), local_port| {
        let mut sample = Sample::of(&[]);
        let of = |acked| vec![Stuck { acked: Some(acked), local_port, ..stuck(1, true) }];
        (sample.before.stuck, sample.after.stuck) = (of(acked.0), of(acked.1));
        sample.after.served.insert((record::Proto::Tcp, 80), Served::default());
        diagnose(&[sample]).first().map(|one| one.severity)
    };
    assert_eq!(window((5, 6), 40_000), None);
    assert_eq!((window((5, 5), 40_000), window((5, 5), 80)), (Some(Severity::Warning), Some(Severity::Hint)));
}

#[test]
fn monitors_and_health_checks_are_no_warning() {
    let refused = |rows: &[Row]| {
        let found = diagnose(&[Sample::of(rows)]);
        found.iter().find(|one| one.id == "refused").map(|one| one.severity)
    };
    let own = |failed, reset| {
        refused(&[
            (Snmp, "TcpAttemptFails", "", 0, failed),
            (Snmp, "TcpActiveOpens", "", 0, 90),
            (Netstat, "TcpExtEmbryonicRsts", "", 0, reset),
        ])
    };
    // Connections of this host that were refused; half-open ones of others that were reset.
    assert_eq!((own(90, 0), own(30, 0), own(90, 88)), (Some(Severity::Warning), Some(Severity::Hint), None));
    // Messages of this host's own kernel about a neighbour that is off, messages of other hosts, and a traceroute.
    let told = |own, traced| {
        refused(&[
            (Snmp, "IcmpInDestUnreachs", "", 0, 20),
            (Snmp, "IcmpOutDestUnreachs", "", 0, own),
            (Snmp, "IcmpInTimeExcds", "", 0, traced),
            (Snmp, "UdpOutDatagrams", "", 0, 100),
        ])
    };
    assert_eq!((told(20, 0), told(0, 0), told(0, 5)), (None, Some(Severity::Warning), Some(Severity::Hint)));
    // Connections to neighbours that are off: the own kernel ends them.
    let ended = |six, own| {
        let names = if six {
            (Snmp6, "Icmp6InDestUnreachs", "Icmp6OutDestUnreachs")
        } else {
            (Snmp, "IcmpInDestUnreachs", "IcmpOutDestUnreachs")
        };
        refused(&[
            (Snmp, "TcpAttemptFails", "", 0, 9),
            (Snmp, "TcpActiveOpens", "", 0, 9),
            (names.0, names.1, "", 0, 9),
            (names.0, names.2, "", 0, own),
        ])
    };
    assert_eq!((ended(false, 9), ended(true, 9)), (None, None));
    assert_eq!((ended(false, 0), ended(true, 0)), (Some(Severity::Warning), Some(Severity::Warning)));
    // Six neighbours that are off, asked once a second each; one to which a program sends much.
    let silent = |neighbours: u8, count| {
        let mut sample = Sample::of(&[]);
        for last in 0..neighbours {
            let addr = record::Addr::V4([192, 0, 2, last]);
            sample.around.neighbours.push(NeighbourSeen { addr, ifindex: 2 });
        }
        dropped(&mut sample, drop_of("NEIGH_FAILED", "neigh_invalidate", count));
        diagnose(&[sample])[0].severity
    };
    assert_eq!((silent(6, 18), silent(1, 18)), (Severity::Hint, Severity::Warning));
    // SYNs of two connections to one port, and unacknowledged SYN-ACKs, are not retransmitted data.
    let rows = [
        (Netstat, "TcpExtTCPSynRetrans", "", 0, 50),
        (Snmp, "TcpRetransSegs", "", 0, 50),
        (Snmp, "TcpOutSegs", "", 0, 90),
    ];
    let mut sample = Sample::of(&rows);
    sample.after.unanswered.insert((PEER.into(), 80), 2);
    let found = diagnose(&[sample]);
    assert_eq!(found.iter().map(|one| (one.id, one.severity)).collect::<Vec<_>>(), [("syn-retrans", Severity::Hint)]);
}

#[test]
fn filters_are_no_queues_and_overtaken_acknowledgements_no_old_clocks() {
    let rows: &[Row] = &[
        (Qdisc, "drops", "eth0 clsact ffff: ingress", 0, 30),
        (Qdisc, "packets", "eth0 clsact ffff: ingress", 0, 50),
        (Netstat, "TcpExtPAWSOldAck", "", 0, 20),
    ];
    let mut sample = Sample::of(rows);
    sample.around.drops = Some(Vec::new());
    assert_eq!(diagnose(&[sample]), []);
    let old = |overtaken| {
        let rows = [
            (Netstat, "TcpExtPAWSEstab", "", 0, 40),
            (Netstat, "TcpExtTCPSACKReorder", "", 0, overtaken),
            (Snmp, "TcpInSegs", "", 0, 1000),
            (Snmp, "TcpOutSegs", "", 0, 9000),
        ];
        diagnose(&[Sample::of(&rows)])[0].severity
    };
    assert_eq!((old(60), old(30)), (Severity::Hint, Severity::Warning));
}

#[test]
fn probes_of_traceroute_are_no_loop() {
    let expired = |proto, port| {
        let mut sample = Sample::of(&[(Snmp, "IcmpOutTimeExcds", "", 0, 20)]);
        let ports = Some((40_000, port));
        dropped(&mut sample, DropSeen { proto, ports, ..drop_of("IP_INHDR", "ip_forward", 20) });
        diagnose(&[sample]).first().map(|one| one.severity)
    };
    assert_eq!((expired("udp", 33_450), expired("icmp", 0)), (None, None));
    assert_eq!((expired("udp", 7), expired("tcp", 80)), (Some(Severity::Warning), Some(Severity::Warning)));
}

#[test]
fn late_answers_and_links_of_bridges_are_no_warning() {
    let late = |ports| {
        let mut sample = Sample::of(&[(Snmp, "UdpNoPorts", "", 0, 20)]);
        sample.add_setting("ipv4/ip_local_port_range", vec![32_768, 60_999]);
        dropped(
            &mut sample,
            DropSeen { proto: "udp", ports: Some(ports), ..drop_of("NO_SOCKET", "__udp4_lib_rcv", 20) },
        );
        diagnose(&[sample]).len()
    };
    assert_eq!((late((53, 40_000)), late((40_000, 53))), (0, 1));
    let flap = |is_bridge| {
        let mut sample = Sample::of(&[(Iface, "carrier_down_count", "br0", 0, 4)]);
        sample.around.links.push(LinkSeen { name: "br0".into(), is_bridge, ..LinkSeen::default() });
        diagnose(&[sample])[0].severity
    };
    assert_eq!((flap(true), flap(false)), (Severity::Hint, Severity::Critical));
    // A connection that worked and stopped alone; two that did.
    let stopped = |identities: &[u64]| {
        let of =
            || identities.iter().map(|identity| Stuck { acked: Some(90_000), ..stuck(*identity, false) }).collect();
        let mut sample = Sample::of(&[]);
        (sample.before.stuck, sample.after.stuck) = (of(), of());
        sample.after.at_ease.insert(PEER.into(), 1);
        diagnose(&[sample]).len()
    };
    assert_eq!((stopped(&[1]), stopped(&[1, 2])), (0, 1));
}

#[test]
fn what_connection_tracking_drops_is_no_rule() {
    let mut sample = Sample::of(ILL[0].2);
    dropped(&mut sample, drop_of("NETFILTER_DROP", "nf_hook_slow", 52));
    assert!(diagnose(&[sample]).iter().all(|one| one.id != "rule-drop"));
}

#[test]
fn each_check_finds_what_it_is_for() {
    for (id, severity, rows) in ILL {
        let found = diagnose(&[Sample::of(rows)]);
        let finding = found.iter().find(|finding| finding.id == *id).unwrap_or_else(|| panic!("{id}: {found:?}"));
        assert_eq!(finding.severity, *severity, "{id}");
        assert!(!finding.evidence.is_empty() && !finding.cost.is_empty() && !finding.remedy.is_empty(), "{finding:?}");
        assert!(found.iter().all(|other| other.severity >= finding.severity || other.id == *id), "{id}: {found:?}");
    }
}

#[test]
fn totals_that_stand_still_are_no_findings() {
    for (id, _, rows) in ILL {
        let still: Vec<Row> =
            rows.iter().map(|(source, name, object, _, after)| (*source, *name, *object, *after, *after)).collect();
        let found = diagnose(&[Sample::of(&still)]);
        // A nearly full table is a state and needs no moving counter.
        let is_state = |finding: &Finding| matches!(finding.id, "ct-filling");
        assert!(found.iter().all(is_state), "{id}: {found:?}");
    }
}

#[test]
fn every_check_has_a_test_and_its_words() {
    for check in CHECKS {
        let by_sockets = ["fd-limit", "port-exhaustion", "unread-queue"].contains(&check.id);
        let is_around = AROUND.iter().any(|(id, ..)| *id == check.id);
        assert!(by_sockets || is_around || ILL.iter().any(|(id, ..)| *id == check.id), "{}", check.id);
        assert!([check.about, check.rule, check.sources, check.refuted_by].iter().all(|text| text.len() > 9));
        assert_eq!(CHECKS.iter().filter(|other| other.id == check.id).count(), 1);
    }
}

#[test]
fn a_counter_that_began_anew_proves_nothing() {
    let mut sample = Sample::of(&[]);
    let row = record::rows::Counter {
        netns_id: Some(7),
        source: Netstat,
        name: b"TcpExtListenOverflows",
        iface: None,
        ifindex: 0,
        is_virtual: false,
        is_drop_trap: false,
        cpu: None,
        qdisc: None,
        object: b"",
        value: 500,
        delta: None,
        window_ns: Some(1_000_000_000),
        kind: record::rows::CounterKind::Counter,
        note: Some(record::rows::CounterNote::Reset),
        meaning: "",
    };
    sample.add_counter(&row);
    assert_eq!(diagnose(&[sample]), []);
}

/// The only process that holds a socket.
fn holder(name: &str) -> Holder {
    Holder { name: format!("{name} (7)"), pid: Some(7), is_shared: false }
}

fn queue(identity: u64, name: &str, queue: u32, limit: u32) -> Queue {
    Queue {
        identity,
        name: name.into(),
        owner: holder("server"),
        queue,
        limit: Some(limit),
        drops: Some(queue),
        port: 80,
        read: None,
    }
}

#[test]
fn sockets_are_named() {
    let mut sample = Sample::of(&[(Netstat, "TcpExtListenOverflows", "", 0, 9)]);
    sample.after.listeners = vec![queue(1, "0.0.0.0:80", 5, 128), queue(2, "0.0.0.0:81", 129, 128)];
    let found = diagnose(&[sample]);
    assert_eq!(found[0].title, "server (7) at 0.0.0.0:81 accepts too slowly: its accept queue is full");
    let mut sample = Sample::of(&[(Snmp, "UdpRcvbufErrors", "", 0, 9)]);
    sample.before.udp = vec![queue(1, "0.0.0.0:53", 5, 128), queue(2, "0.0.0.0:54", 7, 128)];
    sample.after.udp = vec![queue(1, "0.0.0.0:53", 5, 128), queue(2, "0.0.0.0:54", 16, 128)];
    assert_eq!(diagnose(&[sample])[0].object, "0.0.0.0:54");
    let mut sample = Sample::of(&[]);
    sample.before.unread = vec![queue(1, "a", 70_000, 128), queue(2, "b", 70_000, 128), queue(0, "c", 70_000, 1)];
    sample.after.unread = vec![queue(1, "a", 70_000, 128), queue(2, "b", 69_000, 128), queue(0, "c", 70_000, 1)];
    let found = diagnose(&[sample]);
    assert_eq!(found.iter().map(|finding| &*finding.object).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn ports_towards_one_destination_are_counted() {
    let mut sample = Sample::of(&[]);
    sample.add_setting("ipv4/ip_local_port_range", vec![32768, 33767]);
    let (local, peer) = (record::Addr::V4([10, 0, 0, 1]), record::Addr::V4([10, 0, 0, 2]));
    sample.after.destinations.insert((80, local, peer.into()), PortsInUse { used: 850, time_wait: 800 });
    sample.after.destinations.insert((81, local, peer.into()), PortsInUse { used: 799, time_wait: 0 });
    let found = diagnose(std::slice::from_ref(&sample));
    assert_eq!(
        (found.len(), found[0].severity, &*found[0].object),
        (1, Severity::Warning, "10.0.0.1 to 10.0.0.2 port 80")
    );
    // The kernel uses ports in TIME_WAIT again; by default on loopback only.
    sample.add_setting("ipv4/tcp_tw_reuse", vec![2]);
    assert_eq!(diagnose(std::slice::from_ref(&sample)).len(), 1);
    sample.add_setting("ipv4/tcp_tw_reuse", vec![1]);
    assert_eq!(diagnose(&[sample]), []);
}

/// Ports from 40,000 on, each of which so many sockets have.
fn taken(ports: u16, each: u16) -> PortsTaken {
    let mut taken = PortsTaken::default();
    for n in 0..ports * each {
        taken.add(40_000 + n % ports, false, &mut || holder("proxy"));
    }
    taken
}

#[test]
fn ports_that_are_used_up_for_every_destination() {
    use record::Proto::{Tcp, Udp};
    let find = |proto, ports: u16, each, last: i64, reserved: &[i64]| {
        let mut sample = Sample::of(&[]);
        sample.add_setting("ipv4/ip_local_port_range", vec![40_000, last]);
        sample.add_setting(RESERVED_PORTS, reserved.to_vec());
        sample.after.taken.insert((proto, CLIENT), taken(ports, each));
        let found = diagnose(&[sample]);
        found.first().map(|one| (one.severity, one.title.clone()))
    };
    let severity = |found: Option<(Severity, String)>| found.map(|(severity, _)| severity);
    let (_, title) = find(Tcp, 100, 1, 40_099, &[]).unwrap();
    let expected = "the ephemeral TCP ports of 192.0.2.1 are nearly exhausted for every destination: 100 of 100; \
                    proxy (7) holds most of them";
    assert_eq!(title, expected);
    assert_eq!(severity(find(Tcp, 100, 1, 40_099, &[])), Some(Severity::Critical));
    assert_eq!(severity(find(Tcp, 85, 1, 40_099, &[])), Some(Severity::Hint));
    // connect() without bind() gives one port to several destinations.
    assert_eq!(find(Tcp, 100, 2, 40_099, &[]), None);
    assert_eq!(find(Tcp, 70, 1, 40_099, &[]), None);
    // Reserved ports are not available; used ones of them take nothing away.
    assert_eq!(severity(find(Tcp, 100, 1, 40_999, &[40_100, 40_999])), Some(Severity::Critical));
    assert_eq!(find(Tcp, 100, 1, 40_999, &[40_000, 40_049]), None);
    assert_eq!(severity(find(Udp, 100, 1, 40_099, &[])), Some(Severity::Critical));
    assert_eq!(severity(find(Udp, 85, 1, 40_099, &[])), Some(Severity::Warning));
    assert_eq!(find(Udp, 70, 1, 40_099, &[]), None);
}

#[test]
fn the_worst_comes_first() {
    let hint = Sample::of(&[(Snmp6, "Ip6OutNoRoutes", "", 0, 40)]);
    let warning = Sample::of(&[(Netstat, "TcpExtIPReversePathFilter", "", 0, 4)]);
    let critical = Sample::of(ILL[0].2);
    let ids: Vec<&str> = diagnose(&[hint, warning, critical]).iter().map(|finding| finding.id).collect();
    assert_eq!(ids, ["ct-full", "rp-filter", "no-route"]);
}

#[test]
fn a_server_out_of_descriptors_is_named_before_its_queue() {
    let mut sample = Sample::of(&[(Netstat, "TcpExtListenOverflows", "", 0, 9)]);
    sample.after.listeners = vec![queue(2, "0.0.0.0:81", 129, 128)];
    sample.descriptors = vec![
        Descriptors { process: "server (7)".into(), pid: 7, used: 1024, limit: 1024, hard_limit: 1024 },
        Descriptors { process: "other (8)".into(), pid: 8, used: 900, limit: 1024, hard_limit: 1024 },
    ];
    let found = diagnose(&[sample]);
    let ids: Vec<&str> = found.iter().map(|finding| finding.id).collect();
    assert_eq!((ids, found[0].evidence.len()), (vec!["fd-limit", "listen-overflow"], 2));
}

/// Connections are refused for two reasons: because the range is full, and because packets raced in a range with room.
#[test]
fn refused_source_ports_are_used_up_or_raced_for() {
    use crate::nat::PortCensus;
    use record::rows::{CtStatus, CtTuple, PortRange, SnatPorts, SnatRule, ip_proto};
    let title = |entries: u16| {
        let mut census = PortCensus::default();
        for n in 0..entries {
            let parts = CtTuple { src_part: 7, dst_part: 5000 + n, ..CtTuple::EMPTY };
            let reply = CtTuple { proto: ip_proto::UDP, src: PEER, dst: CLIENT, ..parts };
            let status = Some(CtStatus(CtStatus::SRC_NAT));
            census.add(&record::rows::Conntrack { reply, status, ..record::rows::Conntrack::EMPTY });
        }
        let range = PortRange { first: 5000, last: 5009 };
        let rules = [SnatRule { addrs: None, ports: SnatPorts::In(range) }];
        let mut sample = Sample::of(&[
            (Conntrack, "insert_failed", "", 0, 147),
            (Conntrack, "entries", "", 10, 10),
            (Conntrack, "max", "", 262_144, 262_144),
        ]);
        sample.around.snat_ports = Some(census.judge(&rules, 147));
        let found = diagnose(&[sample]).remove(0);
        (found.severity, found.confidence, found.title, found.remedy.last().unwrap().effect.clone())
    };
    let (severity, confidence, full, remedy) = title(10);
    assert_eq!((severity, confidence), (Severity::Critical, Confidence::Certain));
    assert!(full.ends_with("has 10 of 10 in use") && remedy.contains("wider port range"), "{full}: {remedy}");
    let (severity, confidence, raced, remedy) = title(1);
    assert_eq!((severity, confidence), (Severity::Warning, Confidence::Likely));
    assert!(raced.contains("source ports are free") && remedy.contains("fully-random"), "{raced}: {remedy}");
}

/// Adds a fault of a socket with this holder.
type BlameHolder = fn(&mut Sample, Holder);

/// Checks whose findings name a process, with such a fault.
const BLAMES: &[(&str, Confidence, BlameHolder)] = &[
    ("listen-overflow", Confidence::Certain, |sample, owner| {
        sample.counters_of(&[(Netstat, "TcpExtListenOverflows", "", 0, 9)]);
        sample.after.listeners = vec![Queue { owner, ..queue(1, "0.0.0.0:80", 129, 128) }];
    }),
    ("listen-overflow", Confidence::Certain, |sample, owner| {
        sample.after.listeners = vec![Queue { owner, ..queue(1, "0.0.0.0:80", 129, 128) }];
        sample.before.listeners.clone_from(&sample.after.listeners);
    }),
    ("udp-rcvbuf", Confidence::Certain, |sample, owner| {
        sample.counters_of(&[(Snmp, "UdpRcvbufErrors", "", 0, 9)]);
        sample.after.udp = vec![Queue { owner, ..queue(1, "0.0.0.0:53", 5, 128) }];
    }),
    ("netlink-overrun", Confidence::Certain, |sample, owner| {
        sample.after.netlink = vec![Queue { owner, ..queue(1, "netlink route port 7", 5, 1) }];
    }),
    ("packet-drops", Confidence::Certain, |sample, owner| {
        sample.after.packet = vec![Queue { owner, ..queue(1, "a packet socket", 5, 1) }];
    }),
    ("peer-window", Confidence::Certain, |sample, owner| {
        sample.after.stuck = vec![Stuck { owner, ..stuck(1, true) }];
        sample.before.stuck.clone_from(&sample.after.stuck);
    }),
    ("close-wait", Confidence::Certain, |sample, owner| {
        sample.after.unclosed.insert(owner, Unclosed { count: 60, example: "a".into() });
        sample.before.unclosed.clone_from(&sample.after.unclosed);
    }),
    ("rcv-prune", Confidence::Likely, |sample, owner| {
        sample.counters_of(&[(Netstat, "TcpExtRcvPruned", "", 0, 5)]);
        sample.after.unread = vec![Queue { owner, ..queue(1, "a", 70_000, 128) }];
    }),
    ("unread-queue", Confidence::Likely, |sample, owner| {
        sample.after.unread = vec![Queue { owner, ..queue(1, "a", 70_000, 128) }];
        sample.before.unread.clone_from(&sample.after.unread);
    }),
    ("dns-silent", Confidence::Likely, |sample, owner| {
        sample.after.resolvers = vec![Queue { owner, ..queue(1, "a", 0, 0) }];
        sample.before.resolvers.clone_from(&sample.after.resolvers);
    }),
    ("not-accepting", Confidence::Likely, |sample, owner| {
        waiting::waiting(sample, 1, (2, 9), &[1, 2], &[1, 2, 3]);
        sample.before.listeners.iter_mut().chain(&mut sample.after.listeners).for_each(|one| one.owner = owner.clone());
    }),
    ("udp-unread", Confidence::Likely, |sample, owner| {
        waiting::unread_datagrams(sample, (5, 9));
        sample.after.udp.iter_mut().for_each(|one| one.owner = owner.clone());
    }),
    ("unread-requests", Confidence::Likely, |sample, owner| {
        waiting::unread_at(sample, &[1, 2, 3], (5, 5));
        sample.after.waiting.readers.insert(80, (owner, "a".into()));
    }),
    ("unix-queue", Confidence::Likely, |sample, owner| {
        sample.around.unix.push(crate::seen::UnixQueue { owner, ..waiting::unix(UnixKind::Listener, (2, 4)) });
    }),
    ("dead-peer", Confidence::Likely, |sample, owner| {
        sample.after.waiting.silent = vec![crate::seen::Silent { owner, ..waiting::silent(1, Unanswered::Data, 4) }];
    }),
    ("packet-late", Confidence::Likely, |sample, owner| {
        sample.after.late = vec![LateReader { owner, late_ms: 500 }];
    }),
];

#[test]
fn a_process_is_named_as_likely_if_others_hold_its_socket() {
    let shared = Holder { name: "nginx (7, likely: 4 processes hold it)".into(), pid: Some(7), is_shared: true };
    let find = |id: &str, blame: BlameHolder, owner: Holder| {
        let mut sample = Sample::of(&[]);
        blame(&mut sample, owner);
        diagnose(&[sample]).into_iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("{id}"))
    };
    for (id, proved, blame) in BLAMES {
        let sole = find(id, *blame, holder("nginx"));
        assert_eq!(sole.confidence, *proved, "{id}");
        assert!(sole.title.contains("nginx (7)"), "{id}: {}", sole.title);
        let guess = find(id, *blame, shared.clone());
        assert_ne!(guess.confidence, Confidence::Certain, "{id}");
        assert!(guess.title.contains("likely: 4 processes hold it"), "{id}: {}", guess.title);
        assert_eq!(find(id, *blame, Holder::default()).confidence, *proved, "{id}: no process is named");
    }
}

/// The findings about a sample.
fn ids(make: MakeIll) -> Vec<&'static str> {
    let mut sample = Sample::of(&[]);
    make(&mut sample);
    diagnose(&[sample]).iter().map(|one| one.id).collect()
}

#[test]
fn causes_of_silent_neighbours_replace_them() {
    let silent = |sample: &mut Sample, addr| sample.around.neighbours.push(NeighbourSeen { addr, ifindex: 2 });
    // Another neighbour's answers are dropped, other ICMPv6 messages are, or too few of them.
    assert_eq!(
        ids(|sample| {
            sample.around.neighbours.push(NeighbourSeen { addr: PEER6, ifindex: 3 });
            dropped(sample, advert(9));
        }),
        ["neigh-failed", "rule-drop"]
    );
    assert_eq!(ids(|sample| dropped(sample, DropSeen { ends: Some((SOLICITED, PEER6)), ..advert(2) })), [""; 0]);
    assert_eq!(ids(|sample| dropped(sample, DropSeen { ends: Some((PEER6, SOLICITED)), ..advert(1) })), [""; 0]);
    // A redirect to another gateway, and a macvlan on another interface.
    let mut sample = Sample::of(&[]);
    silent(&mut sample, PEER);
    sample.around.redirects.push(RedirectSeen { to: CLIENT, gateway: PEER, ifindex: 3 });
    let (name, netns) = ("eth0".to_owned(), String::new());
    sample.around.own_macvlans.push(OwnMacvlan { addr: CLIENT, ifindex: 2, name, netns });
    let found = diagnose(&[sample]);
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), ["neigh-failed"]);
    // IPv6 packets without a route, and no advertisements.
    assert_eq!(ids(|sample| sample.counters_of(&[(Snmp6, "Ip6OutNoRoutes", "", 0, 40)])), ["no-route"]);
}

#[test]
fn gateways_that_do_not_answer() {
    let of = |gateways: &[Gateway]| {
        let mut sample = Sample::of(&[]);
        sample.around.neighbours.push(NeighbourSeen { addr: PEER, ifindex: 2 });
        sample.around.gateways = gateways.to_vec();
        let finding = diagnose(&[sample]).remove(0);
        (finding.severity, finding.title, finding.remedy.iter().any(|one| one.command.contains("multipath")))
    };
    let hop = Gateway { addr: Some(PEER), ifindex: 2, to: "default".into(), metric: 100, ..Gateway::default() };
    let (severity, title, _) = of(std::slice::from_ref(&hop));
    assert_eq!((severity, &*title), (Severity::Critical, "the gateway 192.0.2.9 on if2 does not answer"));
    let (_, title, spreads) = of(&[Gateway { is_shared: true, ..hop.clone() }]);
    assert_eq!(title, "the gateway 192.0.2.9 on if2, one of several next hops of default, does not answer");
    assert!(spreads);
    let (_, title, _) = of(&[Gateway { is_onlink: true, ..hop.clone() }]);
    assert_eq!(title, "the gateway 192.0.2.9 on if2, whose route to default is `onlink`, does not answer");
    // A spare gateway, which a monitor asks, and a gateway with the same address on another link.
    let better = Gateway { addr: Some(CLIENT), metric: 0, ..hop.clone() };
    assert_eq!(of(&[hop.clone(), better]).0, Severity::Hint);
    assert_eq!(of(&[Gateway { ifindex: 3, ..hop }]).0, Severity::Hint);
}

#[test]
fn permanent_neighbours_that_are_not_at_fault() {
    let find = |gateway, change: &dyn Fn(&mut Sample)| {
        let mut sample = Sample::of(&[]);
        pinned(&mut sample, gateway);
        change(&mut sample);
        diagnose(&[sample]).iter().filter(|one| one.id == "neigh-permanent").count()
    };
    assert_eq!(find(None, &|_| {}), 1);
    // Something arrives, so the gateway answers; other connections to the host are answered; an overlay.
    assert_eq!(find(Some(PEER), &|_| {}), 0);
    assert_eq!(
        find(None, &|sample| {
            sample.after.at_ease.insert(PEER.into(), 1);
        }),
        0
    );
    assert_eq!(find(None, &|sample| sample.around.links.iter_mut().for_each(|link| link.is_overlay = true)), 0);
    // The route leads through another neighbour.
    let elsewhere = |sample: &mut Sample| {
        sample.around.paths.values_mut().for_each(|path| path.hop.addr = Some(CLIENT));
    };
    assert_eq!(find(None, &elsewhere), 0);
}

/// Removes the data of a probe.
fn forget(sample: &mut Sample, probe: Probe) {
    let around = &mut sample.around;
    match probe {
        Probe::Arp => {
            around.conflicts.clear();
            around.ignored_arp.clear();
        }
        Probe::Cgroups => {
            around.cgroups.clear();
            around.cgroups_of_sockets.clear();
        }
        Probe::Controls => around.controls.clear(),
        Probe::Descriptors => sample.descriptors.clear(),
        Probe::Dns => around.dns = Default::default(),
        Probe::Drops => around.drops = None,
        Probe::Flows => around.flows = FlowCensus::default(),
        Probe::Groups => {
            around.groups.clear();
            around.listeners.clear();
        }
        Probe::Ipsec => around.ipsec.clear(),
        Probe::Links => {
            around.links.clear();
            around.addresses.clear();
            around.duplicates.clear();
        }
        Probe::LogGroups => around.rules_without_reader.clear(),
        Probe::MacMoves => around.moves.clear(),
        Probe::Processes => around.processes.clear(),
        Probe::Macvlans => around.own_macvlans.clear(),
        Probe::Neighbours => {
            around.neighbours.clear();
            around.permanent.clear();
        }
        Probe::Queues => around.queues.clear(),
        Probe::RouterAdverts => around.ignored_adverts.clear(),
        Probe::Routes => {
            around.gateways.clear();
            around.refused.clear();
            around.rules.clear();
            around.tables = None;
            around.redirects.clear();
            around.paths.clear();
        }
        Probe::SnatPorts => around.snat_ports = None,
        Probe::Resets => around.resets = None,
        Probe::SharedPorts => around.shared_ports.clear(),
        Probe::Sockets => (sample.before, sample.after) = Default::default(),
        Probe::Unix => around.unix.clear(),
    }
}

#[test]
fn a_check_names_all_that_it_looks_at() {
    let find = |make_ill: &dyn Fn(&mut Sample), check: &Check, forgotten: &[Probe]| {
        let mut sample = Sample::of(&[]);
        // What any check may look at, so that a check without the need would show it.
        sample.around.links.push(LinkSeen { index: 2, name: "eth0".into(), flags: 0x1_0001, ..LinkSeen::default() });
        make_ill(&mut sample);
        forgotten.iter().for_each(|probe| forget(&mut sample, *probe));
        let found = diagnose(&[sample]);
        found.into_iter().filter(|finding| finding.id == check.id).collect::<Vec<_>>()
    };
    type Fault = Box<dyn Fn(&mut Sample)>;
    let around = AROUND.iter().map(|(id, _, make)| (*id, Box::new(*make) as Fault));
    let counted = ILL.iter().map(|(id, _, rows)| {
        let make = move |sample: &mut Sample| sample.counters_of(rows);
        (*id, Box::new(make) as Fault)
    });
    for (id, make_ill) in around.chain(counted) {
        let check = CHECKS.iter().find(|check| check.id == id).unwrap();
        let others: Vec<Probe> = Probe::ALL.into_iter().filter(|probe| !check.needs.contains(probe)).collect();
        assert_eq!(find(&*make_ill, check, &others), find(&*make_ill, check, &[]), "{id} needs more");
    }
}

/// Every finding of the faults above, in the first network namespace or in another.
fn all_findings(is_first: bool) -> Vec<Finding> {
    let mut samples = Vec::new();
    let mut add = |make_ill: &dyn Fn(&mut Sample)| {
        let mut sample = Sample::of(&[]);
        sample.around.links.push(LinkSeen { index: 2, name: "eth0".into(), flags: 0x1_0001, ..LinkSeen::default() });
        if is_first {
            sample.add_setting("ipv4/tcp_mem", vec![10, 20, 30]);
        }
        sample.add_setting("ipv4/ip_local_port_range", vec![32_768, 32_867]);
        make_ill(&mut sample);
        samples.push(sample);
    };
    AROUND.iter().for_each(|(.., make)| add(make));
    ILL.iter().for_each(|(.., rows)| add(&|sample| sample.counters_of(rows)));
    BLAMES.iter().for_each(|(.., blame)| add(&|sample| blame(sample, holder("nginx"))));
    add(&|sample| {
        sample.after.destinations.insert((80, CLIENT, PEER.into()), PortsInUse { used: 90, time_wait: 80 });
        sample.descriptors =
            vec![Descriptors { process: "server (7)".into(), pid: 7, used: 99, limit: 99, hard_limit: 4096 }];
    });
    // Each sample alone: some findings suppress others.
    samples.into_iter().flat_map(|sample| diagnose(&[sample])).collect()
}

#[test]
fn remedies_contain_what_the_finding_knows() {
    for finding in all_findings(true) {
        for remedy in &finding.remedy {
            let mut words = remedy.command.split(|c: char| !c.is_ascii_alphanumeric());
            let generic = words.find(|word| ["IFACE", "ADDRESS", "TABLE", "CHAIN", "PID", "any"].contains(word));
            assert_eq!(generic, None, "{}: {}", finding.id, remedy.command);
            assert!(!remedy.command.ends_with(' ') && !remedy.command.contains("  "), "{}", remedy.command);
        }
    }
}

/// Settings that Linux 6.18 lets a network namespace change that is not the first one.
const IN_ALL_NETNS: &[&str] = &[
    "net.bridge.bridge-nf-call-iptables",
    "net.core.somaxconn",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.route.min_pmtu",
    "net.ipv4.tcp_ecn",
    "net.ipv4.icmp_echo_ignore_all",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_orphan_retries",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "net.ipv6.ip6frag_high_thresh",
    "net.netfilter.nf_conntrack_log_invalid",
];

#[test]
fn remedies_say_where_a_setting_can_be_changed() {
    let mut proposed = 0;
    for remedy in all_findings(false).into_iter().flat_map(|finding| finding.remedy) {
        let Some(settings) = remedy.command.strip_prefix("sysctl -w ") else { continue };
        let names = settings.split_whitespace().filter_map(|word| Some(word.split_once('=')?.0.replace('/', ".")));
        for name in names {
            // Those of interfaces, timeouts, and the ones in this list: add a setting here or to `FIRST_ONLY`.
            let is_one_of_many = name.contains(".conf.") || name.contains("_timeout");
            let is_here = is_one_of_many || IN_ALL_NETNS.contains(&name.as_str());
            assert_eq!(remedy.place.is_empty(), is_here, "{}", remedy.command);
            proposed += 1;
        }
    }
    assert!(proposed > 15, "{proposed}");
    assert!(all_findings(true).iter().flat_map(|finding| &finding.remedy).all(|remedy| remedy.place.is_empty()));
}

#[test]
fn remedies_never_lower_a_limit() {
    let remedies = |sample: Sample| diagnose(&[sample]).remove(0).remedy;
    let mut sample = Sample::of(&[(Snmp, "UdpRcvbufErrors", "", 0, 9)]);
    sample.add_setting("core/rmem_max", vec![33_554_432]);
    assert!(remedies(sample)[1].command.ends_with("net.core.rmem_default=1048576 net.core.rmem_max=33554432"));
    let mut sample = Sample::of(&[(Snmp, "UdpMemErrors", "", 0, 9)]);
    sample.add_setting("ipv4/udp_mem", vec![100, 200, 300]);
    assert_eq!(remedies(sample)[1].command, "sysctl -w net.ipv4.udp_mem=\"200 400 600\"");
    let mut sample = Sample::of(&[]);
    sample.add_setting("ipv4/ip_local_port_range", vec![1024, 65_535]);
    sample.after.destinations.insert((80, CLIENT, PEER.into()), PortsInUse { used: 64_000, time_wait: 0 });
    assert_eq!(remedies(sample).len(), 1, "the range is as wide as it can be");
    // Fragments that the path lost need no room.
    let fragments = |used| {
        let mut sample = Sample::of(&[(Snmp, "IpReasmFails", "", 0, 20), (Sockstat, "FRAG.memory", "", used, used)]);
        sample.add_setting("ipv4/ipfrag_high_thresh", vec![4_194_304]);
        remedies(sample).iter().any(|remedy| !remedy.command.is_empty())
    };
    assert_eq!((fragments(9000), fragments(4_000_000)), (false, true));
    // One of two interfaces that are set down may be down on purpose.
    let down = |names: &[&str]| {
        let mut sample = Sample::of(&[(Snmp, "IpOutNoRoutes", "", 0, 40)]);
        let link = |name: &&str| LinkSeen { name: (*name).into(), has_address: true, ..LinkSeen::default() };
        sample.around.links = names.iter().map(link).collect();
        remedies(sample)[0].command.clone()
    };
    assert_eq!(down(&["eth0"]), "ip link set eth0 up");
    assert_eq!(down(&["eth0", "eth1"]), "ip -br link");
}
