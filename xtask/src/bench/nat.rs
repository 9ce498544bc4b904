//! The connection tracking tables and the tasks of `bench nat`.

use super::contestants::Binaries;
use super::tasks::{Entry as Program, Shape, Task, ours, peer, refresh};
use super::{Options, Outcome, one};
use anyhow::{Result, ensure};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use testkit::conntrack::{self, Entry, status};
use testkit::knob::HostKnob;
use testkit::netns::Lab;

/// Numbers of entries.
const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];
const LIMIT: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// Fills a table of every size and runs the tasks on it.
pub(super) fn run(options: &Options, binaries: &Binaries) -> Result<Vec<Outcome<'static>>> {
    ensure!(testkit::tool::is_installed("conntrack"), "bench nat needs conntrack: ./netwren.sh bench installs it");
    let mut outcomes = Vec::new();
    for rows in SIZES.into_iter().filter(|rows| options.rows.contains(rows)) {
        let limit: u64 = std::fs::read_to_string(LIMIT)?.trim().parse()?;
        let _room = (rows * 5 / 4 > limit).then(|| HostKnob::set(LIMIT, &(rows * 5 / 4).to_string()));
        let lab = Lab::new("benchnat");
        println!("bench: {rows} entries of connection tracking");
        let made = lab.run_inside(|| conntrack::insert((0..rows as u32).map(entry)));
        let buckets = std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_buckets")?;
        let load = json!({"entries": made, "buckets": buckets.trim(), "sources": CLIENTS});
        for task in TASKS.iter().filter(|task| (task.sizes.0..=task.sizes.1).contains(&rows)) {
            let runs = options.runs.unwrap_or_else(|| task.runs(rows));
            outcomes.push(one(&lab, task, rows, runs, &load, binaries)?);
        }
    }
    Ok(outcomes)
}

/// Number of distinct clients; they have different numbers of entries.
const CLIENTS: u32 = 5_000;
const PUBLISHED: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 30);

/// Entry number `n` of the mix: 70 % TCP (more than half of it in TIME_WAIT), 24 % UDP, 4 % ICMP, 2 % SCTP. Every
/// tenth entry is IPv6; a third of the others have a rewritten destination, and a quarter have a rewritten source.
///
/// The source port makes each entry unique; when the source ports are used up, the next destination port is used.
fn entry(n: u32) -> Entry {
    let r = n.wrapping_mul(0x9e37_79b1) >> 5;
    // Clients with smaller numbers have more entries.
    let client = (r % CLIENTS) * ((r / 7) % CLIENTS) / CLIENTS;
    let v6 = n % 10 == 3;
    let (round, port) = (n / 60_000, 1024 + (n % 60_000) as u16);
    let of = |v4: u32, net: u16, host: u32| -> IpAddr {
        if v6 {
            Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host as u16 + 1).into()
        } else {
            Ipv4Addr::from(v4 + host).into()
        }
    };
    let (src, dst) = (of(0x0a00_0002, 1, client), of(0xc633_6402, 2, n % 200));
    let service = 8000 + round as u16;
    let entry = match n % 50 {
        0..35 => Entry::tcp((src, port), (dst, service), tcp_state(r)),
        35..47 => Entry::udp((src, port), (dst, service)).status([0, status::SEEN_REPLY, 6][(r % 3) as usize]),
        47 | 48 => Entry::ping(src, of(0xc633_0000, 3, round), port).status(status::SEEN_REPLY),
        _ => Entry::sctp((src, port), (dst, service), (1 + r % 8) as u8).status(status::SEEN_REPLY),
    };
    with_nat(entry, n, v6).timeout_s(3_000 + r % 600)
}

fn tcp_state(r: u32) -> u8 {
    match r % 100 {
        0..55 => 7,
        55..80 => 3,
        80..88 => 1,
        88..90 => 2,
        90..93 => 4,
        93..96 => 5,
        96..98 => 6,
        _ => 8,
    }
}

fn with_nat(entry: Entry, n: u32, v6: bool) -> Entry {
    let ported = n % 50 < 47;
    if v6 || n % 50 == 49 {
        return entry;
    }
    let entry = if ported && n % 3 == 0 {
        entry
            .with_destination(PUBLISHED.into())
            .dnat(Ipv4Addr::new(172, 17, (n % 4) as u8, 2 + (n % 200) as u8).into(), 0)
    } else {
        entry
    };
    if n % 4 == 1 { entry.snat(Ipv4Addr::new(203, 0, 113, (n % 16) as u8).into(), 0) } else { entry }
}

const fn conntrack(label: &'static str, command: &'static str, shape: Shape) -> Program {
    peer(label, "sh", command, shape)
}

const LIST: Program = conntrack("conntrack -L", "-c 'exec conntrack -L 2>/dev/null'", Shape::Conntrack);

/// The pipeline of the bug report that led to this bench; it counts destinations on lines without a state.
const SOURCES_AS_REPORTED: Program = conntrack(
    "awk as reported",
    "-c 'conntrack -L -o extended 2>/dev/null | awk \"{print \\$7}\" | cut -d= -f2 | sort | uniq -c | sort -nr'",
    Shape::Unread,
);
/// A pipeline that answers the same question correctly.
const SOURCES_RIGHT: Program = conntrack(
    "awk, by name",
    "-c 'conntrack -L -o extended 2>/dev/null | awk \"{ for (i = 4; i <= NF; i++) if (substr(\\$i, 1, 4) \
        == \\\"src=\\\") { print substr(\\$i, 5); break } }\" | sort | uniq -c | sort -nr'",
    Shape::Counts,
);
const STATES: Program = conntrack(
    "conntrack | awk",
    "-c 'conntrack -L -o extended 2>/dev/null | awk \"\\$3 == \\\"tcp\\\" { n[\\$6]++ } END { for (s in n) print \
        n[s], s }\"'",
    Shape::Counts,
);
const FROM: Program = conntrack("conntrack -L -s", "-c 'exec conntrack -L -s 10.0.0.2 2>/dev/null'", Shape::Conntrack);
const SNAT: Program = conntrack("--src-nat", "-c 'exec conntrack -L --src-nat 2>/dev/null'", Shape::Conntrack);

const TASKS: &[Task] = &[
    Task {
        id: "nat-list",
        title: "the connection-tracking table as text",
        sizes: (10_000, 1_000_000),
        namespaces: 1,
        idle: 0,
        owned: false,
        peers: &[LIST],
        ours: &[
            ours("native", "nat --no-owner", Shape::Nat),
            ours("face conntrack", "conntrack -L", Shape::Conntrack),
            ours("by netlink", "nat --no-owner --via netlink", Shape::Nat),
            refresh("refresh", "nat --no-owner", Shape::Nat),
            refresh("refresh with owners", "nat", Shape::Nat),
        ],
        ratios: &[
            ("native", "conntrack -L", 10_000, 2.5),
            ("native", "conntrack -L", 100_000, 5.0),
            ("native", "conntrack -L", 1_000_000, 6.0),
            ("by netlink", "conntrack -L", 100_000, 1.6),
            ("by netlink", "conntrack -L", 1_000_000, 1.6),
        ],
        memory: &[("native", 1_000_000, 32.0), ("by netlink", 1_000_000, 32.0)],
    },
    Task {
        id: "nat-states",
        title: "TCP entries by state",
        sizes: (10_000, 1_000_000),
        namespaces: 1,
        idle: 0,
        owned: false,
        peers: &[STATES],
        ours: &[
            ours("native", "nat top state --no-owner --limit 100 'proto = tcp'", Shape::Counts),
            ours("by netlink", "nat top state --no-owner --limit 100 --via netlink 'proto = tcp'", Shape::Counts),
        ],
        ratios: &[("native", "conntrack | awk", 1_000_000, 10.0)],
        memory: &[],
    },
    Task {
        id: "nat-sources",
        title: "entries by source",
        sizes: (10_000, 1_000_000),
        namespaces: 1,
        idle: 0,
        owned: false,
        peers: &[SOURCES_AS_REPORTED, SOURCES_RIGHT],
        ours: &[
            ours("native", "nat top orig_src --no-owner --limit 10000", Shape::Counts),
            ours("by netlink", "nat top orig_src --no-owner --limit 10000 --via netlink", Shape::Counts),
        ],
        ratios: &[("native", "awk as reported", 1_000_000, 9.0)],
        memory: &[],
    },
    Task {
        id: "nat-from",
        title: "entries of one source",
        sizes: (100_000, 1_000_000),
        namespaces: 1,
        idle: 0,
        owned: false,
        peers: &[FROM],
        ours: &[
            ours("native", "nat --no-owner 'orig_src = 10.0.0.2'", Shape::Nat),
            ours("face conntrack", "conntrack -L -s 10.0.0.2", Shape::Conntrack),
        ],
        ratios: &[("native", "conntrack -L -s", 100_000, 8.0)],
        memory: &[],
    },
    Task {
        id: "nat-kind",
        title: "entries with their source rewritten",
        sizes: (100_000, 1_000_000),
        namespaces: 1,
        idle: 0,
        owned: false,
        peers: &[SNAT],
        ours: &[
            ours("native", "nat --no-owner 'nat in (snat, both)'", Shape::Nat),
            ours("face conntrack", "conntrack -L --src-nat", Shape::Conntrack),
        ],
        ratios: &[("native", "--src-nat", 100_000, 3.7)],
        memory: &[],
    },
];
