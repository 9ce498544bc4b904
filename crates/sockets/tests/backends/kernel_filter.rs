//! The kernel runs our programs as we expect.
use std::net::Ipv6Addr;

use record::{Addr, Expr, FilterPushdown, Op, Operand, Prefix, Proto, Source};
use sockets::{Options, SocketSource};
use sys::Host;
use testkit::netns::Lab;

use crate::odd_sockets;
use crate::rows::{ATTRIBUTES, Kept, demand, here, is, read, test};

fn prefix(text: &str) -> Operand {
    Operand::Prefixes(vec![text.parse::<Prefix>().unwrap()])
}

fn ranges(ranges: &[(u64, u64)]) -> Operand {
    Operand::Ranges(ranges.to_vec())
}

/// Reads with the filter in the kernel and compares with `keep` applied to all rows, at a moment when nothing changes.
#[track_caller]
fn check(filter: Expr, pushdown: FilterPushdown, keep: impl Fn(&Kept) -> bool) {
    let host = Host::live();
    let options = Options { order: vec![Proto::Tcp, Proto::Udp], ..here() };
    let filtered = demand(ATTRIBUTES, vec![filter.clone()]);
    let offer = SocketSource::new(&host, options.clone()).prepare(&filtered).offer();
    assert_eq!(offer.pushdown, [pushdown], "{:?}", offer.explain);
    let kept = || without_times(read(&host, options.clone(), &demand(ATTRIBUTES, Vec::new())).0, &keep);
    for _ in 0..50 {
        let expected = kept();
        let (got, stats) = read(&host, options.clone(), &filtered);
        assert_eq!(stats.via, ["netlink"]);
        // Something changed, such as a retransmission or a closed connection: try again.
        if kept() != expected {
            continue;
        }
        assert!(!expected.is_empty(), "nothing to compare for {filter:?}");
        return assert_eq!(without_times(got, |_| true), expected, "{filter:?} {:?}", offer.explain);
    }
    panic!("the table never rests");
}

// Sorted, and without running times.
fn without_times(rows: Vec<Kept>, keep: impl Fn(&Kept) -> bool) -> Vec<Kept> {
    let mut rows: Vec<Kept> = rows.into_iter().filter(keep).map(|row| Kept { timer_ms: 0, ..row }).collect();
    rows.sort();
    rows
}

// An address is null if nothing is bound or connected.
fn peer(row: &Kept) -> Option<Addr> {
    (row.peer.1 != 0 || !row.peer.0.is_unspecified()).then(|| row.peer.0.unmapped())
}

fn in_prefix(text: &str, addr: Option<Addr>) -> bool {
    addr.is_some_and(|addr| text.parse::<Prefix>().unwrap().contains(addr))
}

fn open(lab: &Lab) -> u16 {
    let _ = (lab.connect_v4(10), lab.connect_v6(5), lab.connect_mapped(5), lab.time_wait(3), lab.half_closed(3));
    let _ = (lab.make_unaccepted(2), lab.syn_sent(), lab.connect_link_local(2));
    lab.udp(([0, 0, 0, 0], 0).into());
    lab.udp((Ipv6Addr::UNSPECIFIED, 0).into());
    lab.udp_pair();
    odd_sockets::open(lab);
    lab.listen_tcp(5)[2]
}

#[test]
fn root_programs_mean_what_they_say() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let lab = Lab::new("programs");
    let port = open(&lab);
    lab.run_inside(|| {
        use FilterPushdown::Exact;
        check(test("local_port", Op::Eq, Operand::Number(port.into())), Exact, |row| row.local.1 == port);
        check(test("local_port", Op::Ne, Operand::Number(port.into())), Exact, |row| {
            row.local.1 != port && row.local.1 != 0
        });
        check(test("peer_port", Op::Eq, ranges(&[(7100, 7110)])), Exact, |row| (7100..=7110).contains(&row.peer.1));
        check(test("peer_port", Op::Eq, Operand::Null), Exact, |row| row.peer.1 == 0);
        check(test("peer_port", Op::Gt, Operand::Number(1024)), Exact, |row| row.peer.1 > 1024);
        check(
            Expr::Or(vec![test("local_port", Op::Eq, ranges(&[(7101, 7101), (7103, 7105)])), is("iface", "lo")]),
            Exact,
            |row| matches!(row.local.1, 7101 | 7103..=7105) || row.ifindex == 1,
        );
        // IPv4 conditions match IPv4-mapped sockets, as their cells show IPv4.
        check(test("peer_addr", Op::Eq, prefix("127.0.0.0/8")), Exact, |row| in_prefix("127.0.0.0/8", peer(row)));
        check(test("peer_addr", Op::Ne, prefix("127.0.0.0/8")), Exact, |row| {
            peer(row).is_some() && !in_prefix("127.0.0.0/8", peer(row))
        });
        check(test("peer_addr", Op::Eq, prefix("0.0.0.0/0")), Exact, |row| in_prefix("0.0.0.0/0", peer(row)));
        check(test("peer_addr", Op::Eq, prefix("::/0")), Exact, |row| in_prefix("::/0", peer(row)));
        check(test("peer_addr", Op::Eq, prefix("fe80::/10")), Exact, |row| in_prefix("fe80::/10", peer(row)));
        check(test("peer_addr", Op::Eq, Operand::Null), Exact, |row| peer(row).is_none());
        check(test("local_addr", Op::Eq, Operand::Addr("::1".parse().unwrap())), Exact, |row| {
            row.local.0 == "::1".parse().unwrap()
        });
        check(test("mark", Op::Eq, Operand::Number(7)), Exact, |row| row.mark == Some(7));
        check(test("mark", Op::Eq, Operand::Masked { value: 1, mask: 1 }), Exact, |row| {
            row.mark.is_some_and(|m| m & 1 == 1)
        });
        check(test("mark", Op::Eq, Operand::Null), Exact, |row| row.mark.unwrap_or(0) == 0);
        let group = read(&Host::live(), here(), &demand(ATTRIBUTES, Vec::new()))
            .0
            .iter()
            .find_map(|row| row.cgroup_id)
            .unwrap();
        check(test("cgroup_id", Op::Eq, Operand::Number(group)), Exact, |row| row.cgroup_id == Some(group));
        check(is("family", "inet6"), Exact, |row| row.family == 10);
        check(Expr::Not(Box::new(test("local_addr", Op::Eq, prefix("127.0.0.0/8")))), Exact, |row| {
            !in_prefix("127.0.0.0/8", Some(row.local.0.unmapped()))
        });
    });
}

#[test]
fn root_states_mean_what_they_say() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let lab = Lab::new("states");
    open(&lab);
    lab.run_inside(|| {
        for (word, state) in [
            ("established", 1u8),
            ("syn_sent", 2),
            ("syn_recv", 3),
            ("fin_wait2", 5),
            ("time_wait", 6),
            ("close_wait", 8),
            ("listen", 10),
        ] {
            check(is("state", word), FilterPushdown::Exact, |row| row.state.0 == state);
        }
        check(
            test("state", Op::Ne, Operand::Words(vec![b"established".as_slice().into()])),
            FilterPushdown::Exact,
            |row| row.state.0 != 1,
        );
        check(is("state", "unconn"), FilterPushdown::Exact, |row| row.proto == Proto::Udp && row.state.0 == 7);
    });
}

/// A search for listeners must not include the table of connections: one state bit, two receive calls.
#[test]
fn root_few_system_calls() {
    testkit::require_root!();
    let lab = Lab::new("calls");
    let _ = lab.connect_v4(1000);
    lab.run_inside(|| {
        let calls = |filter: Vec<Expr>| {
            let before = sys::cost::measure();
            let options = Options { order: vec![Proto::Tcp], ..here() };
            let rows = read(&Host::live(), options, &demand(ATTRIBUTES, filter)).0.len() as u64;
            (sys::cost::measure().since(&before).syscalls, rows)
        };
        // Calls of other threads of this process are counted as well, so the smallest of several numbers is compared.
        let (count, rows) = (0..10).map(|_| calls(Vec::new())).min().unwrap();
        assert!(rows >= 2001 && count <= rows / 100 + 100, "{count} system calls for {rows} rows");
    });
}
