//! Paths of unix sockets that imitate lines of /proc/net/unix.
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

use record::rows::need;
use record::{Accounting, Next, Proto, Source};
use sockets::{Options, SocketSource, Via};
use sys::fault::{Fault, arm, disarm_all};
use sys::{Errno, Host};
use testkit::netns::Lab;

use crate::rows::{Kept, demand, here, live, read};

/// The line of the listener with this abstract name, without the line end.
fn line_of(name: &str) -> String {
    let text = std::fs::read_to_string("/proc/thread-self/net/unix").unwrap();
    text.lines().find(|line| line.ends_with(&format!(" @{name}")) && line.contains("00010000")).unwrap().to_owned()
}

/// Creates a listener, sockets whose names contain its line with another reference count, and one whose name contains a
/// line of a nonexistent socket.
fn hostile(lab: &Lab) {
    lab.unix_abstract("victim", 1);
    let line = lab.run_inside(|| line_of("victim"));
    let imitated = line.replacen(": 00000002 ", ": 00000FFF ", 1);
    assert_ne!(line, imitated);
    let invented = imitated.replacen(" 0001 01 ", " 0001 01 9", 1);
    // Also names that begin or end with a line break.
    lab.unix_abstract(&format!("x\n{imitated}"), 1);
    lab.unix_abstract(&format!("\n{invented}"), 0);
    lab.unix_abstract("last\n\n", 0);
}

fn options(via: Option<Via>) -> Options {
    Options { via, order: vec![Proto::Unix], if_named: &[], ..here() }
}

/// (inode, reference count) of each row.
fn counts(host: &Host) -> (Vec<(u32, Option<u32>)>, Accounting) {
    let mut rows = Vec::new();
    let demand = demand(need::UNIX_NAME | need::UNIX_REFS, Vec::new());
    let stats = SocketSource::new(host, options(None)).run(&demand, &mut |row| {
        rows.push((row.inode, row.unix.unwrap().refs));
        Next::More
    });
    rows.sort_unstable();
    (rows, stats.unwrap())
}

fn names(rows: &[Kept]) -> Vec<(u32, Option<Vec<u8>>)> {
    // /proc shows the NULs of abstract names as `@`; only the first one can be recognised.
    rows.iter().map(|row| (row.inode, row.path.clone())).collect()
}

#[test]
fn root_issue_10_a_line_break_in_a_path_forges_no_row() {
    testkit::require_root!();
    let lab = Lab::new("forged");
    hostile(&lab);
    lab.run_inside(|| {
        let by_netlink = live(Proto::Unix, Some(Via::Netlink), need::UNIX_NAME);
        let by_proc = live(Proto::Unix, Some(Via::Proc), 0);
        assert_eq!(by_netlink.len(), 8);
        assert_eq!(names(&by_proc), names(&by_netlink));
        let (rows, stats) = counts(&Host::live());
        assert_eq!(stats.via, ["proc", "netlink"]);
        assert_eq!((stats.seen, stats.is_partial()), (8, false), "{stats:?}");
        let inodes: Vec<u32> = by_netlink.iter().map(|row| row.inode).collect();
        assert!(rows.iter().all(|(inode, refs)| inodes.contains(inode) && refs.is_some_and(|refs| refs < 0xfff)));
    });
}

#[test]
fn root_issue_10_connections_waiting_for_accept_are_distinguished_from_forged_ones() {
    testkit::require_root!();
    let lab = Lab::new("forgedwait");
    lab.unix_abstract("victim", 0);
    let line = lab.run_inside(|| line_of("victim"));
    let (head, _) = line.split_once(" 00010000 ").unwrap();
    lab.unix_abstract(&format!("x\n{head} 00000000 0001 02     0 @victim"), 0);
    let waiting = lab.run_inside(|| {
        let name = SocketAddr::from_abstract_name("victim").unwrap();
        std::os::unix::net::UnixStream::connect_addr(&name).unwrap()
    });
    lab.run_inside(|| {
        let (rows, stats) = counts(&Host::live());
        // Two listeners, and both ends of a connection.
        assert_eq!((rows.len(), stats.is_partial()), (4, false), "{rows:?} {stats:?}");
        assert_eq!(rows.iter().filter(|(inode, _)| *inode == 0).count(), 1);
        assert_eq!(read(&Host::live(), options(Some(Via::Proc)), &demand(0, Vec::new())).0.len(), 4);
    });
    drop(waiting);
}

#[test]
fn root_issue_10_without_netlink_rows_of_paths_are_not_shown_as_certain() {
    testkit::require_root!();
    let lab = Lab::new("unproven");
    lab.run_inside(|| {
        let read = || {
            arm("socket", 0, 100, Fault::Fails(Errno::PROTONOSUPPORT));
            let (_, stats) = read(&Host::live(), options(Some(Via::Proc)), &demand(0, Vec::new()));
            disarm_all();
            stats
        };
        assert!(!read().is_partial(), "there is no path");
        lab.unix_pair();
        assert!(!read().is_partial(), "there is no path yet");
        lab.unix_abstract("any", 0);
        let stats = read();
        assert!(stats.incomplete, "{stats:?}");
        assert!(stats.why.iter().any(|why| why.text.starts_with("rows of unix sockets may be forged")), "{stats:?}");
    });
}

#[test]
fn root_issue_10_a_recording_holds_what_tells_lines_apart() {
    testkit::require_root!();
    let lab = Lab::new("forgedtape");
    hostile(&lab);
    let tmp = tempfile::tempdir().unwrap();
    lab.run_inside(|| {
        for (n, via) in [Some(Via::Proc), None].into_iter().enumerate() {
            let tape = tmp.path().join(n.to_string());
            let host = Host::live().recording(&tape).unwrap();
            let demand = demand(need::UNIX_NAME | if via.is_none() { need::UNIX_REFS } else { 0 }, Vec::new());
            let (rows, _) = read(&host, options(via), &demand);
            host.finish().unwrap();
            let (again, stats) = read(&Host::open_replay(&tape).unwrap(), options(None), &demand);
            assert_eq!(again, rows);
            assert!(!stats.is_partial(), "{stats:?}");
        }
    });
}
