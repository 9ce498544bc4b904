//! Lines that the tools printed, and our own deviations.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::{Layout, Options, Writer, show};
use record::rows::{
    Endpoint, FamilyExtras, NetlinkPart, NetlinkProtocol, PacketPart, PacketRing, PacketType, SkMem, Socket, TcpInfo,
    UnixPart, UnixType,
};
use record::{Addr, Comm, Key, Lookup, LookupId, Lookups, Owner, Proto, State, Timer, Value};

/// Interfaces, owners and cgroups of a small host.
struct TestLookup {
    owners: Vec<(u64, Vec<Owner>)>,
}

impl Lookup for TestLookup {
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
    Owner { pid, fd, process: Comm::new(name.as_bytes()), started: 0 }
}

fn test_lookup() -> TestLookup {
    let srv = |fd| owner("srv1", 10850, fd);
    TestLookup {
        owners: vec![
            (1164062, vec![srv(8)]),
            (1164073, vec![srv(19)]),
            (7, vec![srv(3), srv(4), owner("b\"c)\x1b", 11000, 1)]),
        ],
    }
}

fn print(options: Options, rows: &[Socket<'_>]) -> String {
    let test_lookup = test_lookup();
    let lookups = Lookups::empty()
        .with_lookup(LookupId::Ifaces, &test_lookup)
        .with_lookup(LookupId::Owners, &test_lookup)
        .with_lookup(LookupId::Cgroups, &test_lookup);
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
    Options::plain(layout).without(show::NETID)
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
        let none = tan(layout).without(show::HEADER);
        assert_eq!(print(none, &[]), "");
        let one = print(none, &four()[..1]);
        assert_eq!(one, "LISTEN 0      5      0.0.0.0%c0:7002 0.0.0.0:*\n");
        let single = print(none.without(show::STATE), &four()[1..2]);
        assert_eq!(single, "0      0      192.0.2.10:43844 198.51.100.20:80\n");
    }
    let alone = print(Options::plain(Layout::V6_15), &[]);
    assert_eq!(alone, "Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port\n");
    let alone = print(Options::plain(Layout::V6_1), &[]);
    assert_eq!(alone, "Netid State Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\n");
    let no_queues = print(tan(Layout::V6_15).without(show::QUEUES), &four()[1..2]);
    assert_eq!(
        no_queues,
        "State Local Address:Port   Peer Address:Port\nESTAB    192.0.2.10:43844 198.51.100.20:80  \n"
    );
}

fn extended() -> [Socket<'static>; 3] {
    let base =
        |inode, cookie, row: Socket<'static>| Socket { inode, cookie, cgroup_id: Some(1), shutdown: Some(0), ..row };
    [
        base(
            1164073,
            0x36909,
            Socket { uid: Some(0), wqueue: Some(1), mark: Some(7), ..tcp(State::LISTEN, "0.0.0.0:7020", "0.0.0.0:0") },
        ),
        base(
            1164062,
            0x3691e,
            Socket {
                timer: Timer(2),
                timer_ms: 66 * 60_000,
                ..tcp(State::ESTABLISHED, "192.0.2.10:53390", "198.51.100.20:80")
            },
        ),
        base(9, 0x36921, Socket { uid: Some(1000), v6only: Some(true), ..tcp(State::LISTEN, "[::]:7031", "[::]:0") }),
    ]
}

#[test]
fn owners_and_extras_in_both_layouts() {
    let options = |layout| tan(layout).with(show::PROCESSES | show::TIMERS | show::DETAILS).without(show::HEADER);
    let owners = [r#" users:(("srv1",pid=10850,fd=19))"#, r#" users:(("srv1",pid=10850,fd=8))"#, ""];
    let extras = [
        " ino:1164073 sk:36909 fwmark:0x7 cgroup:/ <->",
        " timer:(keepalive,66min,0) ino:1164062 sk:3691e cgroup:/ <->",
        " uid:1000 ino:9 sk:36921 cgroup:/ v6only:1 <->",
    ];
    let new = print(options(Layout::V6_15), &extended());
    let old = print(options(Layout::V6_1), &extended());
    for (i, (new, old)) in new.lines().zip(old.lines()).enumerate() {
        // The extras of the last row do not affect the width in either version.
        assert!(new.ends_with(&format!("{:33}{:60}", owners[i], extras[i])), "{new:?}");
        assert!(old.ends_with(&format!("{:92}", owners[i].to_owned() + extras[i])), "{old:?}");
    }
}

#[test]
fn several_owners_newest_first_and_their_names_defused() {
    let row = Socket { inode: 7, ..tcp(State::ESTABLISHED, "192.0.2.10:1", "192.0.2.10:2") };
    let line = |bug_compatible| {
        let options = Options { bug_compatible, ..tan(Layout::V6_15).with(show::PROCESSES).without(show::HEADER) };
        print(options, &[row])
    };
    assert!(
        line(false).contains(r#"users:(("b\"c)?",pid=11000,fd=1),("srv1",pid=10850,fd=4),("srv1",pid=10850,fd=3))"#)
    );
    assert!(line(true).contains(r#"users:(("b"c",pid=11000,fd=1),("#));
}

#[test]
fn cgroup_without_a_path() {
    let row = Socket { cgroup_id: Some(0x1f), ..tcp(State::ESTABLISHED, "192.0.2.10:1", "192.0.2.10:2") };
    let cgroup = tan(Layout::V6_15).with(show::CGROUP).without(show::HEADER);
    let line = |bug_compatible| print(Options { bug_compatible, ..cgroup }, &[row]);
    assert_eq!(line(false), "ESTAB 0      0      192.0.2.10:1 192.0.2.10:2\n");
    assert_eq!(line(true), "ESTAB 0      0      192.0.2.10:1 192.0.2.10:2 cgroup:unreachable:1f\n");
}

#[test]
fn services_and_unix() {
    let unix = UnixPart {
        kind: UnixType(1),
        path: Some(b"/run/x/sock1"),
        peer_inode: None,
        vfs: None,
        refs: None,
        flags: None,
        icons: None,
    };
    let rows = [
        Socket {
            proto: Proto::Unix,
            family: 1,
            state: State::LISTEN,
            inode: 1164065,
            wqueue: Some(4),
            unix: Some(unix),
            ..Socket::EMPTY
        },
        tcp(State::ESTABLISHED, "192.0.2.10:43844", "198.51.100.20:80"),
    ];
    let expected = "\
u_str LISTEN 0      4      /run/x/sock1 1164065             * 0   \n\
tcp   ESTAB  0      0        192.0.2.10:43844   198.51.100.20:http\n";
    let options = Options::plain(Layout::V6_15).without(show::NUMERIC | show::HEADER);
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
    let options = tan(Layout::V6_15).with(show::MEMORY | show::INFO | show::DETAILS).without(show::HEADER);
    let expected = "ESTAB 0      0      192.0.2.10:43844 198.51.100.20:80 ino:0 sk:0\n\t \
        skmem:(r0,rb131072,t0,tb69120,f0,w0,o0,bl0,d0) ts sack bbr wscale:10,10 rto:200 rtt:0.066/0.033 mss:1448 \
        cwnd:10 send 1755151515bps rcv_wnd:64512\n";
    assert_eq!(print(options, &[row]), expected);
    let one_line = print(options.with(show::ONE_LINE), &[row]);
    assert_eq!(one_line, expected.replace("\n\t", ""));
    let old = print(Options { layout: Layout::V6_1, ..options }, &[row]);
    assert_eq!(old, expected.replace(" rcv_wnd:64512", ""));
}

/// Every item of `-i` in ss's order: offset and width in `tcp_info`, a number, and its printed form.
const ITEMS: &[(usize, usize, u64, &str)] = &[
    (5, 1, 0x7f, " ts usec_ts sack ecn ecnseen fastopen cubic"),
    (6, 1, 0xa9, " wscale:9,10"),
    (8, 4, 204_000, " rto:204"),
    (4, 1, 2, " backoff:2"),
    (68, 4, 1_234_567, " rtt:1234.57"),
    (72, 4, 33, "/0.033"),
    (12, 4, 40_000, " ato:40"),
    (16, 4, 1448, " mss:1448"),
    (60, 4, 1500, " pmtu:1500"),
    (20, 4, 536, " rcvmss:536"),
    (84, 4, 1449, " advmss:1449"),
    (80, 4, 10, " cwnd:10"),
    (76, 4, 7, " ssthresh:7"),
    (200, 8, 11, " bytes_sent:11"),
    (208, 8, 12, " bytes_retrans:12"),
    (120, 8, 13, " bytes_acked:13"),
    (128, 8, 14, " bytes_received:14"),
    (136, 4, 15, " segs_out:15"),
    (140, 4, 16, " segs_in:16"),
    (156, 4, 17, " data_segs_out:17"),
    (
        152,
        4,
        18,
        " data_segs_in:18 dctcp:(ce_state:2,alpha:3,ab_ecn:4,ab_tot:5) \
            bbr:(bw:8bps,mrtt:0.002,pacing_gain:2.88672,cwnd_gain:1) send 93830bps",
    ),
    (44, 4, 19, " lastsnd:19"),
    (52, 4, 20, " lastrcv:20"),
    (56, 4, 21, " lastack:21"),
    (104, 8, 100, " pacing_rate 800bps"),
    (112, 8, 200, "/1600bps"),
    (160, 8, 300, " delivery_rate 2400bps"),
    (192, 4, 22, " delivered:22"),
    (196, 4, 23, " delivered_ce:23"),
    (7, 1, 1, " app_limited"),
    (168, 8, 4_000, " busy:4ms"),
    (176, 8, 1_000, " rwnd_limited:1ms(25.0%)"),
    (184, 8, 3_000, " sndbuf_limited:3ms(75.0%)"),
    (24, 4, 24, " unacked:24"),
    (36, 4, 25, " retrans:25"),
    (100, 4, 26, "/26"),
    (32, 4, 27, " lost:27"),
    (28, 4, 28, " sacked:28"),
    (216, 4, 29, " dsack_dups:29"),
    (40, 4, 30, " fackets:30"),
    (88, 4, 31, " reordering:31"),
    (220, 4, 32, " reord_seen:32"),
    (92, 4, 33_000, " rcv_rtt:33"),
    (96, 4, 34, " rcv_space:34"),
    (64, 4, 35, " rcv_ssthresh:35"),
    (144, 4, 36, " notsent:36"),
    (148, 4, 37, " minrtt:0.037"),
    (224, 4, 38, " rcv_ooopack:38"),
    (228, 4, 39, " snd_wnd:39"),
    (232, 4, 40, " rcv_wnd:40"),
    (236, 4, 41, " rehash:41"),
];

#[test]
fn every_item_of_tcp_info_in_order() {
    let mut info = vec![0u8; 280];
    for (at, width, n, _) in ITEMS {
        info[*at..at + width].copy_from_slice(&n.to_ne_bytes()[..*width]);
    }
    let words = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>();
    let mut dctcp = words(&[0, 3, 4, 5]);
    dctcp[..4].copy_from_slice(&[1u16.to_ne_bytes(), 2u16.to_ne_bytes()].concat());
    let bbr = words(&[1, 0, 2, 739, 256]);
    let row = Socket {
        tcp_info: Some(TcpInfo::new(&info)),
        cong: Some(b"cubic"),
        dctcp: Some(&dctcp),
        bbr: Some(&bbr),
        ..tcp(State::ESTABLISHED, "192.0.2.10:1", "192.0.2.20:2")
    };
    let options = tan(Layout::V6_15).with(show::INFO | show::TIMERS | show::ONE_LINE).without(show::HEADER);
    let expected: String = ITEMS.iter().map(|(.., text)| *text).collect();
    let line = print(options, &[row]);
    assert_eq!(line, format!("ESTAB 0      0      192.0.2.10:1 192.0.2.20:2{expected}\n"));
    // Three of them are unknown to 6.1.
    let old = expected.replace(" usec_ts", "").replace(" rcv_wnd:40", "").replace(" rehash:41", "");
    let line = print(Options { layout: Layout::V6_1, ..options }, &[row]);
    assert_eq!(line, format!("ESTAB 0      0      192.0.2.10:1 192.0.2.20:2{old}\n"));
    // A member that is 0 has no item; an older kernel's shorter struct has fewer items.
    for (at, width, _, text) in ITEMS.iter().filter(|(at, ..)| ![5, 16, 68, 72, 80, 36, 100, 88, 168, 104].contains(at))
    {
        let mut less = info.clone();
        less[*at..at + width].fill(0);
        let line = print(options, &[Socket { tcp_info: Some(TcpInfo::new(&less)), ..row }]);
        let word = text.split(' ').next_back().unwrap_or_default().split(':').next().unwrap_or_default();
        let gone = text.starts_with(' ') && !line.contains(&format!(" {word}:"));
        assert!(gone || !line.contains(text), "{text}: {line}");
    }
}

/// A packet socket with a ring, one without, a connected netlink socket and the kernel's own.
fn rare_parts() -> [FamilyExtras<'static>; 4] {
    let ring = PacketRing {
        block_size: 16384,
        blocks: 4,
        frame_size: 2048,
        frames: 32,
        retire_ms: 60,
        ..PacketRing::default()
    };
    let tapped = FamilyExtras {
        packet: Some(PacketPart {
            version: Some(2),
            copy_thresh: Some(0),
            flags: Some(3),
            rx_ring: Some(ring),
            fanout: Some(7 | 1 << 16),
            ..PacketPart::new(PacketType::RAW, 3)
        }),
        ..FamilyExtras::EMPTY
    };
    let cooked = FamilyExtras { packet: Some(PacketPart::new(PacketType::DGRAM, 0x800)), ..FamilyExtras::EMPTY };
    let bus = NetlinkPart {
        protocol: NetlinkProtocol(15),
        portid: 23314,
        dst_portid: 0,
        dst_group: 2,
        groups: Some(&[1, 0, 0, 0, 0, 0, 0, 0]),
        groups_text: b"1",
        flags: None,
        drops: None,
    };
    let events = FamilyExtras { netlink: Some(bus), ..FamilyExtras::EMPTY };
    let kernel = FamilyExtras {
        netlink: Some(NetlinkPart { protocol: NetlinkProtocol(0), portid: 0, dst_group: 0, ..bus }),
        ..FamilyExtras::EMPTY
    };
    [tapped, cooked, events, kernel]
}

/// Rows that have neither address nor port, and one that has both: the output of `ss -a` of 6.1 for them.
#[test]
fn packet_netlink_and_raw_sockets() {
    let [tapped, cooked, events, kernel] = rare_parts();
    let other =
        |proto, rare| Socket { proto, state: State::CLOSE, wqueue: Some(0), extras: Some(rare), ..Socket::EMPTY };
    let icmp = Socket { proto: Proto::Raw, state: State::CLOSE, ..tcp(State::CLOSE, "0.0.0.0:1", "0.0.0.0:0") };
    let rows = [
        Socket { state: State::ESTABLISHED, ..other(Proto::Netlink, &events) },
        other(Proto::Netlink, &kernel),
        Socket { ifindex: 2, inode: 5, cookie: 0xabc, ..other(Proto::Packet, &tapped) },
        other(Proto::Packet, &cooked),
        icmp,
    ];
    let plain = Options::plain(Layout::V6_15).without(show::NUMERIC);
    let expected = "\
Netid State  Recv-Q Send-Q Local Address:Port      Peer Address:Port\n\
nl    UNCONN 0      0             uevent:23314                2:0   \n\
nl    UNCONN 0      0               rtnl:kernel                *    \n\
p_raw UNCONN 0      0                  *:c0                    *    \n\
p_dgr UNCONN 0      0                 ip:*                     *    \n\
raw   UNCONN 0      0            0.0.0.0:ipproto-1       0.0.0.0:*   \n";
    let squeezed =
        |text: &str| text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    // If process names are unavailable, numbers are printed.
    let nobody = |_: u32, _: &mut Vec<u8>| false;
    let services = |_: Proto, _: u16| None;
    let test_lookup = test_lookup();
    let lookups = Lookups::empty().with_lookup(LookupId::Ifaces, &test_lookup);
    let mut writer = Writer::new(plain, &services, Vec::new()).naming(&nobody);
    rows.iter().for_each(|row| writer.row(row, &lookups).unwrap());
    writer.finish().unwrap();
    let printed = String::from_utf8(writer.into_inner()).unwrap();
    assert_eq!(squeezed(&printed), squeezed(expected));
    // The longest cell determines the position of a column.
    assert!(printed.lines().all(|line| line.len() == printed.lines().next().unwrap().len()), "{printed}");
    let numeric = Options::plain(Layout::V6_1).with(show::DETAILS).without(show::HEADER);
    let line = |row: &Socket<'_>| print(numeric, &[*row]);
    assert!(line(&rows[0]).starts_with("nl UNCONN 0      0      15:23314 2:0 sk=0 cb=0 groups=0x00000001"));
    let tapped = line(&rows[2]);
    let second = "\n\tver:2 cpy_thresh:0 flags( running auxdata )\n\tring_rx(blk_size:16384,blk_nr:4,frm_size:2048,\
        frm_nr:32,tmo:60,features:0x0)\n\tfanout(id:7,type:lb)";
    assert!(tapped.contains(&format!(" ino:5 sk:abc{second}")), "{tapped}");
    assert!(line(&rows[3]).starts_with("p_dgr UNCONN 0      0      [2048]:* *"), "{}", line(&rows[3]));
    assert_eq!(line(&rows[4]).trim_end(), "raw UNCONN 0      0      0.0.0.0:1 0.0.0.0:*");
}

/// The fast paths print the same as the general one, over several blocks of ss's buffer.
#[test]
fn the_short_ways_print_the_same() {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let rows: Vec<Socket<'_>> = (0..130_000u32)
        .map(|n| {
            let octets = (random(1 << 32) as u32 >> random(25)).to_be_bytes();
            let six = random(40) == 0;
            let addr = |last: u8| match six {
                true => Addr::V6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, octets[0], 0, 0, 0, 0, 0, 0, last]),
                false => Addr::V4([octets[0], octets[1], octets[2], last]),
            };
            let mut port = || (random(1 << 16) >> random(17)) as u16;
            let (here, there) = (port(), port());
            // Long queues come late, so that the widths of the first blocks stay unchanged.
            let queue = if random(9) == 0 { (random(1 << 32) as u32) >> (31 - n / 10_000) } else { 0 };
            Socket {
                proto: [Proto::Tcp, Proto::Udp, Proto::Mptcp][n as usize / 3 % 7 % 3],
                family: if six { 10 } else { 2 },
                state: State((n % 15) as u8),
                local: Endpoint { addr: addr(octets[3]), port: here },
                peer: Endpoint { addr: addr(n as u8), port: there },
                rqueue: queue,
                wqueue: (n % 11 != 0).then_some(queue / 3),
                ..Socket::EMPTY
            }
        })
        .collect();
    let all = |options: Options, slowly: bool| {
        let mut writer = Writer::new(options, &|_, _| None, Vec::new());
        if slowly {
            writer = writer.slowly();
        }
        rows.iter().for_each(|row| writer.row(row, &Lookups::empty()).unwrap());
        writer.finish().unwrap();
        writer.into_inner()
    };
    let [old, new] = [Layout::V6_1, Layout::V6_15].map(Options::plain);
    for options in [
        old,
        old.without(show::QUEUES | show::NETID),
        new.without(show::NETID),
        new.without(show::STATE | show::HEADER),
    ] {
        let (fast, slow) = (all(options, false), all(options, true));
        let differs = fast.iter().zip(&slow).position(|(a, b)| a != b);
        assert_eq!((differs, fast.len()), (None, slow.len()), "{options:?}");
    }
}
