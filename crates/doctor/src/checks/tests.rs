//! Every check is silent about a healthy host and about totals that stand still, and finds what it is for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use record::rows::CounterSource::{self, Conntrack, Iface, Neigh, Netstat, Qdisc, Snmp, Snmp6, Sockstat, Softnet};

type Row = (CounterSource, &'static str, &'static str, i64, i64);

/// The counters that are wrong while each check finds something; other checks may find more.
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
    ("nic-drops", Severity::Warning, &[(Iface, "rx_dropped", "eth0", 0, 40), (Iface, "rx_packets", "eth0", 0, 400)]),
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
        Severity::Warning,
        &[(Netstat, "TcpExtTCPTimeWaitOverflow", "", 0, 5), (Sockstat, "TCP.tw", "", 9, 9)],
    ),
    ("rcv-prune", Severity::Warning, &[(Netstat, "TcpExtRcvPruned", "", 0, 5)]),
    ("retransmits", Severity::Warning, &[(Snmp, "TcpRetransSegs", "", 0, 50), (Snmp, "TcpOutSegs", "", 0, 1000)]),
    ("syn-retrans", Severity::Warning, &[(Netstat, "TcpExtTCPSynRetrans", "", 0, 50)]),
];

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
        // A table that is nearly full is so without moving.
        let is_state = |finding: &Finding| matches!(finding.id, "ct-filling");
        assert!(found.iter().all(is_state), "{id}: {found:?}");
    }
}

#[test]
fn every_check_has_a_test_and_its_words() {
    for check in CHECKS {
        let by_sockets = ["fd-limit", "port-exhaustion", "unread-queue"].contains(&check.id);
        assert!(by_sockets || ILL.iter().any(|(id, ..)| *id == check.id), "{}", check.id);
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

fn queue(cookie: u64, name: &str, queue: u32, limit: u32) -> Queue {
    Queue {
        cookie,
        name: name.into(),
        owner: "server (7)".into(),
        pid: Some(7),
        queue,
        limit: Some(limit),
        drops: Some(queue),
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
    sample.after.destinations.insert((local, peer, 80), PortsInUse { used: 850, time_wait: 800 });
    sample.after.destinations.insert((local, peer, 81), PortsInUse { used: 799, time_wait: 0 });
    let found = diagnose(&[sample]);
    assert_eq!(
        (found.len(), found[0].severity, &*found[0].object),
        (1, Severity::Warning, "10.0.0.1 to 10.0.0.2 port 80")
    );
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
        Descriptors { owner: "server (7)".into(), pid: 7, used: 1024, limit: 1024 },
        Descriptors { owner: "other (8)".into(), pid: 8, used: 900, limit: 1024 },
    ];
    let found = diagnose(&[sample]);
    let ids: Vec<&str> = found.iter().map(|finding| finding.id).collect();
    assert_eq!((ids, found[0].evidence.len()), (vec!["fd-limit", "listen-overflow"], 2));
}
