//! Lines as the tools printed them, and what is ours to decide.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::{Layout, Options, Writer};
use record::rows::{Endpoint, SkMem, Socket, TcpInfo, UnixPart, UnixType};
use record::{Addr, Comm, Key, Lookup, LookupId, Lookups, Owner, Proto, State, Timer, Value};

/// Interfaces, owners and cgroups of a small world.
struct World {
    owners: Vec<(u64, Vec<Owner>)>,
}

impl Lookup for World {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Pair(_, 2) => Value::Bytes(b"c0"),
            Key::Id(1) => Value::Bytes(b"/"),
            _ => Value::Null,
        }
    }
    fn owners(&self, key: Key) -> &[Owner] {
        self.owners.iter().find(|(inode, _)| key == Key::Id(*inode)).map_or(&[], |(_, owners)| owners)
    }
}

fn owner(name: &str, pid: u32, fd: u32) -> Owner {
    Owner { pid, fd, process: Comm::new(name.as_bytes()) }
}

fn world() -> World {
    let srv = |fd| owner("srv1", 10850, fd);
    World { owners: vec![(1164062, vec![srv(8)]), (1164073, vec![srv(19)]), (7, vec![srv(3), srv(4), owner("b\"c)\x1b", 11000, 1)])] }
}

fn print(options: Options, rows: &[Socket<'_>]) -> String {
    let world = world();
    let lookups = Lookups::none()
        .with(LookupId::Ifaces, &world)
        .with(LookupId::Owners, &world)
        .with(LookupId::Cgroups, &world);
    let services = |proto, port| if (proto, port) == (Proto::Tcp, 80) { Some(&b"http"[..]) } else { None };
    let mut writer = Writer::new(options, &services, Vec::new());
    for row in rows {
        writer.row(row, &lookups).unwrap();
    }
    writer.finish().unwrap();
    String::from_utf8(writer.into_inner()).unwrap()
}

fn end(text: &str) -> Endpoint {
    let (addr, port) = text.rsplit_once(':').unwrap();
    let port = port.parse().unwrap();
    Endpoint { addr: addr.trim_matches(['[', ']']).parse().unwrap(), port }
}

fn tcp(state: State, local: &str, peer: &str) -> Socket<'static> {
    let (local, peer) = (end(local), end(peer));
    let family = if matches!(local.addr, Addr::V4(_)) { 2 } else { 10 };
    Socket { proto: Proto::Tcp, family, state, local, peer, wqueue: Some(0), ..Socket::EMPTY }
}

fn tan(layout: Layout) -> Options {
    Options { netid: false, ..Options::plain(layout) }
}

fn four() -> [Socket<'static>; 4] {
    [
        Socket { ifindex: 2, wqueue: Some(5), ..tcp(State::LISTEN, "0.0.0.0:7002", "0.0.0.0:0") },
        tcp(State::ESTABLISHED, "192.0.2.10:43844", "198.51.100.20:80"),
        tcp(State::FIN_WAIT2, "192.0.2.10:43880", "198.51.100.20:80"),
        tcp(State::ESTABLISHED, "[2001:db8:1::10]:50750", "[2001:db8:2:0:bbbb:cccc:dddd:eeee]:443"),
    ]
}

#[test]
fn the_plain_table() {
    let expected = "\
State      Recv-Q Send-Q    Local Address:Port                        Peer Address:Port\n\
LISTEN     0      5            0.0.0.0%c0:7002                             0.0.0.0:*   \n\
ESTAB      0      0            192.0.2.10:43844                      198.51.100.20:80  \n\
FIN-WAIT-2 0      0            192.0.2.10:43880                      198.51.100.20:80  \n\
ESTAB      0      0      [2001:db8:1::10]:50750 [2001:db8:2:0:bbbb:cccc:dddd:eeee]:443 \n";
    assert_eq!(print(tan(Layout::V6_15), &four()), expected);
}

#[test]
fn the_table_of_6_1_has_seven_columns_more() {
    let old = print(tan(Layout::V6_1), &four());
    let new = print(tan(Layout::V6_15), &four());
    let old: Vec<&str> = old.lines().collect();
    for (i, line) in new.lines().enumerate() {
        assert_eq!(old[i], format!("{line}{}", if i == 0 { "Process" } else { "       " }));
    }
}

#[test]
fn without_heading_and_rows() {
    for layout in [Layout::V6_1, Layout::V6_15] {
        let none = Options { header: false, ..tan(layout) };
        assert_eq!(print(none, &[]), "");
        let one = print(none, &four()[..1]);
        assert_eq!(one, "LISTEN 0      5      0.0.0.0%c0:7002 0.0.0.0:*\n");
        let single = print(Options { state: false, ..none }, &four()[1..2]);
        assert_eq!(single, "0      0      192.0.2.10:43844 198.51.100.20:80\n");
    }
    let alone = print(Options::plain(Layout::V6_15), &[]);
    assert_eq!(alone, "Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port\n");
    let alone = print(Options::plain(Layout::V6_1), &[]);
    assert_eq!(alone, "Netid State Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\n");
    let no_queues = print(Options { queues: false, ..tan(Layout::V6_15) }, &four()[1..2]);
    assert_eq!(no_queues, "State Local Address:Port   Peer Address:Port\nESTAB    192.0.2.10:43844 198.51.100.20:80  \n");
}

fn extended() -> [Socket<'static>; 3] {
    let base = |inode, cookie, row: Socket<'static>| Socket {
        inode,
        cookie,
        cgroup_id: Some(1),
        shutdown: Some(0),
        ..row
    };
    [
        base(1164073, 0x36909, Socket { uid: Some(0), wqueue: Some(1), mark: Some(7), ..tcp(State::LISTEN, "0.0.0.0:7020", "0.0.0.0:0") }),
        base(1164062, 0x3691e, Socket { timer: Timer(2), timer_ms: 66 * 60_000, ..tcp(State::ESTABLISHED, "192.0.2.10:53390", "198.51.100.20:80") }),
        base(9, 0x36921, Socket { uid: Some(1000), v6only: Some(true), ..tcp(State::LISTEN, "[::]:7031", "[::]:0") }),
    ]
}

#[test]
fn owners_and_extras_in_both_layouts() {
    let options = |layout| Options { processes: true, timers: true, details: true, header: false, ..tan(layout) };
    let owners = [r#" users:(("srv1",pid=10850,fd=19))"#, r#" users:(("srv1",pid=10850,fd=8))"#, ""];
    let extras = [
        " ino:1164073 sk:36909 fwmark:0x7 cgroup:/ <->",
        " timer:(keepalive,66min,0) ino:1164062 sk:3691e cgroup:/ <->",
        " uid:1000 ino:9 sk:36921 cgroup:/ v6only:1 <->",
    ];
    let new = print(options(Layout::V6_15), &extended());
    let old = print(options(Layout::V6_1), &extended());
    for (i, (new, old)) in new.lines().zip(old.lines()).enumerate() {
        // The extras of the last row do not count for the width, in either version.
        assert!(new.ends_with(&format!("{:33}{:60}", owners[i], extras[i])), "{new:?}");
        assert!(old.ends_with(&format!("{:92}", owners[i].to_owned() + extras[i])), "{old:?}");
    }
}

#[test]
fn several_owners_newest_first_and_their_names_defused() {
    let row = Socket { inode: 7, ..tcp(State::ESTABLISHED, "192.0.2.10:1", "192.0.2.10:2") };
    let line = |bug_compatible| {
        let options = Options { processes: true, header: false, bug_compatible, ..tan(Layout::V6_15) };
        print(options, &[row])
    };
    assert!(line(false).contains(r#"users:(("b\"c)?",pid=11000,fd=1),("srv1",pid=10850,fd=4),("srv1",pid=10850,fd=3))"#));
    assert!(line(true).contains(r#"users:(("b"c",pid=11000,fd=1),("#));
}

#[test]
fn cgroup_without_a_path() {
    let row = Socket { cgroup_id: Some(0x1f), ..tcp(State::ESTABLISHED, "192.0.2.10:1", "192.0.2.10:2") };
    let line = |bug_compatible| {
        print(Options { cgroup: true, header: false, bug_compatible, ..tan(Layout::V6_15) }, &[row])
    };
    assert_eq!(line(false), "ESTAB 0      0      192.0.2.10:1 192.0.2.10:2\n");
    assert_eq!(line(true), "ESTAB 0      0      192.0.2.10:1 192.0.2.10:2 cgroup:unreachable:1f\n");
}

#[test]
fn services_and_unix() {
    let unix = UnixPart { kind: UnixType(1), path: Some(b"/run/x/sock1"), peer_inode: None, vfs: None, refs: None, flags: None };
    let rows = [
        Socket { proto: Proto::Unix, family: 1, state: State::LISTEN, inode: 1164065, wqueue: Some(4), unix: Some(unix), ..Socket::EMPTY },
        tcp(State::ESTABLISHED, "192.0.2.10:43844", "198.51.100.20:80"),
    ];
    let expected = "\
u_str LISTEN 0      4      /run/x/sock1 1164065             * 0   \n\
tcp   ESTAB  0      0        192.0.2.10:43844   198.51.100.20:http\n";
    let options = Options { numeric: false, header: false, ..Options::plain(Layout::V6_15) };
    assert_eq!(print(options, &rows), expected);
}

#[test]
fn second_line() {
    let mut info = vec![0u8; 240];
    let mut put = |at: usize, n: u32| info[at..at + 4].copy_from_slice(&n.to_ne_bytes());
    for (at, n) in [(8, 200_000), (16, 1448), (68, 66), (72, 33), (80, 10), (88, 3), (232, 64512)] {
        put(at, n);
    }
    info[5] = 7;
    info[6] = 0xaa;
    let mem: Vec<u8> = [0u32, 131072, 0, 69120, 0, 0, 0, 0, 0].iter().flat_map(|n| n.to_ne_bytes()).collect();
    let row = Socket {
        tcp_info: Some(TcpInfo::new(&info)),
        cong: Some(b"bbr"),
        skmem: Some(SkMem::new(&mem)),
        ..tcp(State::ESTABLISHED, "192.0.2.10:43844", "198.51.100.20:80")
    };
    let options = Options { memory: true, info: true, details: true, header: false, ..tan(Layout::V6_15) };
    let expected = "ESTAB 0      0      192.0.2.10:43844 198.51.100.20:80 ino:0 sk:0\n\t \
        skmem:(r0,rb131072,t0,tb69120,f0,w0,o0,bl0,d0) ts sack bbr wscale:10,10 rto:200 rtt:0.066/0.033 mss:1448 \
        cwnd:10 send 1755151515bps rcv_wnd:64512\n";
    assert_eq!(print(options, &[row]), expected);
    let one_line = print(Options { one_line: true, ..options }, &[row]);
    assert_eq!(one_line, expected.replace("\n\t", ""));
    let old = print(Options { layout: Layout::V6_1, ..options }, &[row]);
    assert_eq!(old, expected.replace(" rcv_wnd:64512", ""));
}
