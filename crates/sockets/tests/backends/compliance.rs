//! Both backends return the same values for the same sockets in every field that both have.
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};

use record::rows::need;
use record::{Proto, Source, State};
use sockets::Via;
use testkit::netns::Lab;

use crate::odd_sockets;
use crate::rows::{ATTRIBUTES, Kept, live};

/// Creates connections in FIN_WAIT1 (client) and LAST_ACK (server), closed when packets can no longer pass.
pub(crate) fn last_words(lab: &Lab) {
    lab.run_inside(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let pair = || (TcpStream::connect(at).unwrap(), listener.accept().unwrap().0);
        let (closing, kept) = pair();
        let (half, server) = pair();
        // Fully closed by one side only: a minisock in FIN_WAIT2.
        let (gone, open) = pair();
        drop(gone);
        assert_eq!(std::io::Read::read(&mut &open, &mut [0]).unwrap(), 0);
        half.shutdown(std::net::Shutdown::Write).unwrap();
        let arrived = std::io::Read::read(&mut &server, &mut [0]).unwrap();
        assert_eq!(arrived, 0);
        // The ACK of its FIN may be delayed; until it arrives, the socket stays in FIN_WAIT1.
        let minisock = |row: &Kept| row.timer == 3 && row.state == State::FIN_WAIT2;
        lab.wait_until("a minisock in FIN_WAIT2", || live(Proto::Tcp, None, 0).iter().any(minisock));
        lab.ip(&["link", "set", "lo", "down"]);
        // Dropping them makes orphans whose FIN is not acknowledged.
        drop((closing, server));
        // Kept open until the process ends.
        std::mem::forget((kept, half, open));
    });
}

// Clears fields that /proc lacks, and running times.
fn common(rows: &[Kept]) -> Vec<Kept> {
    let of_both = |row: &Kept| {
        let request = row.state == State::SYN_RECV;
        Kept {
            cookie: 0,
            ifindex: 0,
            mark: None,
            cgroup_id: None,
            timer_ms: 0,
            wqueue: if row.state == State::LISTEN { None } else { row.wqueue },
            // /proc shows the listener's uid, sock_diag 0.
            uid: if request { None } else { row.uid },
            // /proc counts the timer's expirations, sock_diag the retransmissions: a listener that waits for data sends
            // nothing (inet_csk_reqsk_queue_timer, reqsk_timer_handler).
            retrans: if request { 0 } else { row.retrans },
            ..row.clone()
        }
    };
    let mut rows: Vec<Kept> = rows.iter().map(of_both).collect();
    rows.sort();
    rows
}

// Timers run down between two reads, and may be set again: each is close to its value before or after.
fn timers_agree(quiet: &Quiet) {
    let key = |row: &Kept| (row.local, row.peer, row.inode, row.state);
    for row in &quiet.by_proc {
        let near = |twin: &Kept| row.timer_ms.abs_diff(twin.timer_ms) <= 5_000;
        let mut twins = quiet.by_netlink.iter().chain(&quiet.after).filter(|other| key(other) == key(row));
        assert!(twins.any(near), "{row:?}");
    }
}

/// Rows of /proc from between two equal reads via netlink, so nothing changed in between.
struct Quiet {
    by_netlink: Vec<Kept>,
    by_proc: Vec<Kept>,
    after: Vec<Kept>,
}

fn quiet(proto: Proto) -> Quiet {
    for _ in 0..50 {
        let by_netlink = live(proto, Some(Via::Netlink), need::UNIX_NAME | ATTRIBUTES);
        let by_proc = live(proto, Some(Via::Proc), 0);
        let after = live(proto, Some(Via::Netlink), need::UNIX_NAME | ATTRIBUTES);
        if common(&by_netlink) == common(&after) {
            return Quiet { by_netlink, by_proc, after };
        }
    }
    panic!("the table never rests");
}

fn same(a: &[Kept], b: &[Kept]) {
    let (a, b) = (common(a), common(b));
    let set = |rows: &[Kept]| rows.iter().cloned().collect::<BTreeSet<Kept>>();
    let (only_a, only_b) = (&set(&a) - &set(&b), &set(&b) - &set(&a));
    assert!(only_a.is_empty() && only_b.is_empty(), "netlink only: {only_a:#?}\nproc only: {only_b:#?}");
    assert_eq!(a.len(), b.len());
}

#[test]
fn root_netlink_and_proc_agree_on_tcp() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let lab = Lab::new("agree");
    let _ = (lab.connect_v4(200), lab.connect_v6(200), lab.connect_mapped(150), lab.connect_link_local(5));
    let _ = (lab.listen_tcp(60), lab.time_wait(20), lab.half_closed(10), lab.make_unaccepted(5), lab.syn_sent());
    odd_sockets::open(&lab);
    last_words(&lab);
    lab.run_inside(|| {
        let quiet = quiet(Proto::Tcp);
        timers_agree(&quiet);
        let Quiet { by_netlink, by_proc, .. } = quiet;
        same(&by_netlink, &by_proc);
        let states: BTreeSet<u8> = by_netlink.iter().map(|row| row.state.0).collect();
        // CLOSING needs two FINs that cross; sockets in CLOSE are in no table.
        assert_eq!(states, BTreeSet::from([1, 2, 3, 4, 5, 6, 8, 9, 10]));
        assert!(by_netlink.len() >= 1000, "{}", by_netlink.len());
        assert!(by_netlink.iter().all(|row| row.cookie != 0));
        let families: BTreeSet<u8> = by_netlink.iter().map(|row| row.family).collect();
        assert_eq!(families, BTreeSet::from([2, 10]));
        // Time-wait sockets have no owner, although the kernel may send a uid.
        let minisocks: BTreeSet<u8> = by_netlink.iter().filter(|row| row.timer == 3).map(|row| row.state.0).collect();
        assert_eq!(minisocks, BTreeSet::from([5, 6]));
        assert!(by_netlink.iter().filter(|row| row.timer == 3).all(|row| row.uid.is_none() && row.inode == 0));
        assert!(by_netlink.iter().any(|row| row.mark == Some(7)) && by_netlink.iter().any(|row| row.ifindex == 1));
    });
}

#[test]
fn root_netlink_and_proc_agree_on_udp() {
    testkit::require_root!();
    let lab = Lab::new("agreeudp");
    for _ in 0..50 {
        lab.udp((Ipv4Addr::UNSPECIFIED, 0).into());
        lab.udp((Ipv6Addr::LOCALHOST, 0).into());
        lab.udp_pair();
    }
    lab.run_inside(|| {
        let Quiet { by_netlink, by_proc, .. } = quiet(Proto::Udp);
        same(&by_netlink, &by_proc);
        assert_eq!(by_netlink.len(), 200);
        assert_eq!(by_netlink.iter().filter(|row| row.state == State::ESTABLISHED).count(), 100);
    });
}

#[test]
fn root_netlink_and_proc_agree_on_unix() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let lab = Lab::new("agreeunix");
    lab.unix_stream("stream", 5);
    lab.unix_abstract("abstract", 3);
    lab.unix_datagram("datagram");
    for _ in 0..20 {
        lab.unix_pair();
    }
    odd_sockets::open(&lab);
    lab.run_inside(|| {
        let Quiet { by_netlink, by_proc, .. } = quiet(Proto::Unix);
        // Unaccepted sockets have no inode and are only in /proc; queues, peers and uids are only in netlink.
        let by_proc: Vec<Kept> = by_proc.into_iter().filter(|row| row.inode != 0).collect();
        let bare = |rows: &[Kept]| -> Vec<Kept> {
            rows.iter()
                .map(|row| Kept { wqueue: None, rqueue: 0, uid: None, peer_inode: None, ..row.clone() })
                .collect()
        };
        same(&bare(&by_netlink), &bare(&by_proc));
        assert!(by_netlink.iter().any(|row| row.path.as_deref() == Some(b"\0abstract")));
        let kinds: BTreeSet<u8> = by_netlink.iter().map(|row| row.unix_type).collect();
        assert_eq!(kinds, BTreeSet::from([1, 2, 5]));
    });
}

/// One dump for both families returns the same as one dump for each.
#[test]
fn root_the_legacy_dump_is_the_sum_of_both() {
    testkit::require_root!();
    let lab = Lab::new("legacy");
    let _ = (lab.connect_v4(20), lab.connect_v6(20), lab.connect_mapped(20), lab.time_wait(3));
    lab.run_inside(|| {
        let of = |families| {
            let options = sockets::Options { families, order: vec![Proto::Tcp], ..crate::rows::here() };
            crate::rows::read(&sys::Host::live(), options, &crate::rows::demand(need::IFACE_MARK, Vec::new())).0
        };
        let both = of(sockets::Families::Both);
        let mut each = of(sockets::Families::Only4);
        each.extend(of(sockets::Families::Only6));
        each.sort();
        assert_eq!(common(&both), common(&each));
    });
}

/// The file of packet sockets and netlink agree in the fields of the file; it lacks rings and filters.
#[test]
fn root_netlink_and_proc_agree_on_packet_sockets() {
    testkit::require_root!();
    let lab = Lab::new("agreepacket");
    lab.ip(&["link", "set", "lo", "up"]);
    for _ in 0..20 {
        lab.packet_sockets();
    }
    let wanted = need::QUEUES | need::PACKET;
    lab.run_inside(|| {
        let (by_netlink, by_proc) =
            (live(Proto::Packet, Some(Via::Netlink), wanted), live(Proto::Packet, Some(Via::Proc), 0));
        same(&by_netlink, &by_proc);
        assert_eq!(by_netlink.len(), 100);
        assert!(by_netlink.iter().all(|row| row.cookie != 0 && row.inode != 0 && row.uid == Some(0)));
        assert_eq!(by_netlink.iter().filter(|row| row.ifindex == 1).count(), 40);
        assert!(
            words(Proto::Packet, Via::Netlink, wanted, IN_FILE) == words(Proto::Packet, Via::Proc, wanted, IN_FILE)
        );
        let rings =
            words(Proto::Packet, Via::Netlink, wanted, &["rx_blocks", "tx_blocks", "fanout_id", "packet_version"]);
        assert_eq!(rings.iter().filter(|row| row.contains("rx_blocks=4") && row.contains("fanout_id=7")).count(), 20);
        assert_eq!(rings.iter().filter(|row| row.contains("tx_blocks=2")).count(), 20);
    });
}

/// Fields of packet and netlink sockets that both backends have.
const IN_FILE: &[&str] =
    &["inode", "packet_type", "ethertype", "running", "netlink_protocol", "portid", "groups", "dump_running"];

fn words(proto: Proto, via: Via, need: u64, names: &[&str]) -> Vec<String> {
    let options = sockets::Options { via: Some(via), order: vec![proto], if_named: &[], ..crate::rows::here() };
    let mut rows = Vec::new();
    let demand = crate::rows::demand(need, Vec::new());
    let told = sockets::SocketSource::new(&sys::Host::live(), options).run(&demand, &mut |row| {
        let all = crate::rows::cells(row);
        let kept = |word: &&str| names.iter().any(|name| word.split_once('=').is_some_and(|(n, _)| n == *name));
        rows.push(all.split(' ').filter(kept).collect::<Vec<_>>().join(" "));
        record::Next::More
    });
    let stats = told.unwrap_or_else(|error| panic!("{error}"));
    assert!(!stats.is_partial(), "{stats:?}");
    assert_eq!(stats.seen, rows.len() as u64 + stats.duplicates, "{stats:?}");
    rows.sort();
    rows
}

#[test]
fn root_netlink_and_proc_agree_on_netlink_sockets() {
    testkit::require_root!();
    let lab = Lab::new("agreenetlink");
    for _ in 0..20 {
        lab.netlink_sockets();
    }
    let wanted = need::QUEUES | need::NETLINK;
    lab.run_inside(|| {
        // The sock_diag socket that reads is itself among the rows; the file omits groups above 32.
        let read = |via| -> Vec<String> {
            let rows = words(Proto::Netlink, via, wanted, IN_FILE);
            rows.into_iter().filter(|row| !row.contains("sock_diag")).map(|row| row.replace("1,5,33", "1,5")).collect()
        };
        // The kernel keeps the netlink sockets of all namespaces in one table per protocol, and the file omits rows if
        // that table grows or shrinks while it is read.
        let mut by_netlink = Vec::new();
        lab.wait_until("the same rows by netlink and from the file", || {
            by_netlink = read(Via::Netlink);
            by_netlink == read(Via::Proc)
        });
        // A socket with groups is in two of the kernel's lists, but is one row.
        assert_eq!(by_netlink.iter().filter(|row| row.contains("groups=1,5")).count(), 20);
    });
}

/// The kernel sends a socket with groups twice; it becomes one row, and the row counts still balance.
#[test]
fn root_issue_10_netlink_sockets_of_groups_are_counted_once() {
    testkit::require_root!();
    let lab = Lab::new("netlinkgroups");
    lab.netlink_sockets();
    lab.run_inside(|| {
        let rows = words(Proto::Netlink, Via::Netlink, need::NETLINK, &["groups"]);
        assert_eq!(rows.iter().filter(|row| row.contains("groups=1,5,33")).count(), 1, "{rows:?}");
    });
}

/// Raw sockets are read via netlink if the kernel supports it, else from the file: the rows are the same.
#[test]
fn root_raw_sockets_have_a_protocol_and_no_port() {
    testkit::require_root!();
    let lab = Lab::new("agreeraw");
    lab.ip(&["link", "set", "lo", "up"]);
    lab.raw_sockets();
    lab.run_inside(|| {
        let by_proc = live(Proto::Raw, Some(Via::Proc), 0);
        same(&live(Proto::Raw, None, ATTRIBUTES), &by_proc);
        let told = words(Proto::Raw, Via::Proc, 0, &["ip_protocol", "local_port", "peer_addr"]);
        assert_eq!(told, ["ip_protocol=1", "ip_protocol=255", "ip_protocol=58", "peer_addr=127.0.0.2 ip_protocol=89"]);
    });
}

/// Many kernels list raw sockets only in the file: if the user insists on netlink, a message counts the missing ones.
#[test]
fn root_issue_10_raw_sockets_hidden_from_netlink_are_reported() {
    testkit::require_root!();
    let lab = Lab::new("rawunseen");
    lab.raw_sockets();
    lab.run_inside(|| {
        let options = sockets::Options { via: Some(Via::Netlink), ..crate::rows::here() };
        let (rows, stats) = crate::rows::read(&sys::Host::live(), options, &crate::rows::demand(0, Vec::new()));
        let seen = rows.iter().filter(|row| row.proto == Proto::Raw).count() as u64;
        let said = stats.why.iter().filter(|why| why.text.contains("raw sockets")).map(|why| why.count).sum::<u64>();
        assert_eq!((seen + said, stats.incomplete), (4, said > 0), "{stats:?}");
    });
}

/// The subflows of an MPTCP connection are TCP sockets with the same token.
#[test]
fn root_mptcp_and_its_subflows_share_a_token() {
    testkit::require_root!();
    let lab = Lab::new("mptcp");
    lab.ip(&["link", "set", "lo", "up"]);
    if !lab.mptcp_connection() {
        return eprintln!("this kernel has no MPTCP");
    }
    lab.run_inside(|| {
        let token = |proto| -> BTreeSet<String> {
            let rows = words(proto, Via::Netlink, need::ULP, &["mptcp_token"]);
            rows.into_iter().filter(|row| !row.is_empty() && row != "mptcp_token=0").collect()
        };
        assert_eq!(token(Proto::Mptcp).len(), 2);
        assert_eq!(token(Proto::Mptcp), token(Proto::Tcp));
        let (by_mptcp, by_tcp) = (live(Proto::Mptcp, None, need::ULP), live(Proto::Tcp, None, ATTRIBUTES));
        assert_eq!(by_mptcp.len(), 3);
        assert!(by_mptcp.iter().all(|row| by_tcp.iter().any(|tcp| tcp.local == row.local && tcp.state == row.state)));
    });
}
