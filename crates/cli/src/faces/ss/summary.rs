//! `-s`: counters of the kernel, in place of rows.

use super::expr::test;
use super::request::{Question, Request};
use super::run::ask;
use crate::messages::say;
use crate::output;
use crate::session::Session;
use host::Counters;
use record::{Lookups, Next, Op, Operand, Proto};
use sinks::face::ss::{Layout, Options, OwnTcp, SockStat, put_summary};

/// Prints the summary; false if it could not be written.
pub(super) fn print(session: &Session, bug_compatible: bool) -> bool {
    let (host, netns) = (session.host(), session.netns_id());
    let read = |what: Result<Counters, host::HostError>| {
        what.unwrap_or_else(|error| {
            say(&error.to_string());
            Counters::default()
        })
    };
    let stat =
        sockstat(&read(Counters::read_sockets(host, netns, None)), &read(Counters::read_protocols(host, netns, None)));
    let own = (!bug_compatible).then(|| own_tcp(session, &stat));
    let mut text = Vec::new();
    put_summary(&mut text, &stat, own);
    output::print(&String::from_utf8_lossy(&text)) as u8 == 0
}

fn sockstat(sockets: &Counters, protocols: &Counters) -> SockStat {
    let number =
        |counters: &Counters, group, name| counters.get(group, name).and_then(|n| i64::try_from(n).ok()).unwrap_or(0);
    let used = |group| number(sockets, group, "inuse");
    SockStat {
        sockets: number(sockets, "sockets", "used"),
        established: number(protocols, "Tcp", "CurrEstab"),
        tcp_alloc: number(sockets, "TCP", "alloc"),
        tcp_orphans: number(sockets, "TCP", "orphan"),
        tcp_time_wait: number(sockets, "TCP", "tw"),
        tcp: (used("TCP"), used("TCP6")),
        udp: (used("UDP"), used("UDP6")),
        raw: (used("RAW"), used("RAW6")),
        frag: (used("FRAG"), used("FRAG6")),
    }
}

/// TCP sockets of this namespace. `alloc` of sockstat is the whole host's, the other counters are the namespace's;
/// what is in no table of the kernel (a socket neither bound nor connected) nobody can see.
fn own_tcp(session: &Session, stat: &SockStat) -> OwnTcp {
    let words = ["close", "bound_inactive"].map(|w| w.as_bytes().into()).to_vec();
    let filter = vec![
        test("proto", Op::Eq, Operand::Words(vec![b"tcp".as_slice().into()])),
        test("state", Op::Eq, Operand::Words(words)),
    ];
    let mut closed = 0;
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
    let count = ask(session, &question, &request, &Lookups::none(), &mut |_| {
        closed += 1;
        Next::More
    });
    if let Err(says) = count {
        say(&says);
    }
    let hashed = stat.tcp.0 + stat.tcp.1 + stat.tcp_time_wait;
    OwnTcp { total: u64::try_from(hashed).unwrap_or(0) + closed, closed }
}
