//! `-s`: prints counters of the kernel instead of rows.

use super::expr::test;
use super::request::{Question, Request};
use super::run::ask;
use crate::ss::output::{Layout, Options, OwnTcp, SockStat, put_summary};
use counters::{CounterReading, read_sockets};
use lookups::session::Session;
use record::rows::CounterSource::{Snmp, Sockstat, Sockstat6};
use record::{Lookups, Next, Op, Operand, Proto, State};
use runtime::messages::print_message;
use runtime::print;
use std::collections::HashSet;

/// Prints the summary; false if it could not be written.
pub(super) fn print(session: &Session, bug_compatible: bool) -> bool {
    let (host, netns) = (session.host(), session.netns_id());
    let stat = sockstat(&read_sockets(host, netns).unwrap_or_else(|error| {
        print_message(&error.to_string());
        CounterReading::default()
    }));
    let own = (!bug_compatible).then(|| own_tcp(session, &stat));
    let mut text = Vec::new();
    put_summary(&mut text, &stat, own);
    print::print(&String::from_utf8_lossy(&text)) as u8 == 0
}

fn sockstat(reading: &CounterReading) -> SockStat {
    let number = |source, name| reading.get(source, name).and_then(|n| i64::try_from(n).ok()).unwrap_or(0);
    let used = |name, name6| (number(Sockstat, name), number(Sockstat6, name6));
    SockStat {
        sockets: number(Sockstat, "sockets.used"),
        established: number(Snmp, "TcpCurrEstab"),
        tcp_alloc: number(Sockstat, "TCP.alloc"),
        tcp_orphans: number(Sockstat, "TCP.orphan"),
        tcp_time_wait: number(Sockstat, "TCP.tw"),
        tcp: used("TCP.inuse", "TCP6.inuse"),
        udp: used("UDP.inuse", "UDP6.inuse"),
        raw: used("RAW.inuse", "RAW6.inuse"),
        frag: used("FRAG.inuse", "FRAG6.inuse"),
    }
}

/// Counts the TCP sockets of this namespace. `alloc` in sockstat covers the whole host, the other counters cover the
/// namespace. Sockets in no kernel table (neither bound nor connected) are counted by the descriptors that hold them.
fn own_tcp(session: &Session, stat: &SockStat) -> OwnTcp {
    let filter = vec![test("proto", Op::Eq, Operand::Words(vec![b"tcp".as_slice().into()]))];
    let hashed = stat.tcp.0 + stat.tcp.1;
    // Owners are read before sockets, so that a socket created in between is found in a table and not counted as
    // missing from all.
    let owners = if stat.tcp_alloc > hashed { session.owners().read(session.host()).ok() } else { None };
    let (mut closed, mut inodes) = (0, HashSet::new());
    let question = Question { proto: Proto::Tcp, filter, of_netlink: None };
    let request = Request {
        options: Options::plain(Layout::V6_15),
        questions: Vec::new(),
        by_default: true,
        without_bound: false,
        events: None,
        kill: false,
        tcp_file: None,
        states: 0,
    };
    let count = ask(session, &question, &request, &Lookups::empty(), &mut |row| {
        closed += u64::from(matches!(row.state, State::CLOSE | State::BOUND_INACTIVE));
        inodes.insert(row.inode);
        Next::More
    });
    if let Err(says) = &count {
        print_message(says);
    }
    if let (Some(owners), Ok(_)) = (owners, count) {
        let unhashed = host::unhashed_tcp(session.host(), &owners, |inode| inodes.contains(&inode));
        closed += unhashed.filter(|socket| socket.netns_id == session.netns_id()).count() as u64;
    }
    OwnTcp { total: u64::try_from(hashed + stat.tcp_time_wait).unwrap_or(0) + closed, closed }
}
