//! Compares the writer with the installed ss, on tables that do not come from a kernel.
//!
//! ss reads netlink messages from the file named by `TCPDIAG_FILE`, so both print the same rows: every item of
//! `tcp_info`, widths of many blocks, and states and timers that are hard to produce.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
use faces::ss::output::{Layout, Options, Writer, show};
use record::rows::{Endpoint, SkMem, Socket, TcpInfo};
use record::{Addr, Lookups, Proto, State, Timer};
use std::io::Write;
use std::process::Command;
use testkit::{require_tool, tool};

/// xorshift: pseudo-random rows that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
    }
    /// Often 0, mostly small, sometimes any value.
    fn number(&mut self, bits: u32) -> u64 {
        let n = match self.below(4) {
            0 => 0,
            1 => self.below(100),
            2 => self.below(2_000_000),
            _ => self.roll(),
        };
        if bits == 64 { n >> 12 } else { n & ((1 << bits) - 1) }
    }
}

/// Data that a row borrows.
struct Payloads {
    info: Option<Vec<u8>>,
    skmem: Option<Vec<u8>>,
    cong: Option<Vec<u8>>,
    vegas: Option<Vec<u8>>,
    dctcp: Option<Vec<u8>>,
    bbr: Option<Vec<u8>>,
}

fn attribute(message: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    message.extend(((payload.len() + 4) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(payload);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// `inet_diag_msg` and attributes of a row, in the layout of include/uapi/linux/inet_diag.h.
fn message(row: &Socket<'_>) -> Vec<u8> {
    let mut m = vec![0; 16];
    m.extend([row.family, row.state.0, row.timer.0, row.retrans]);
    m.extend(row.local.port.to_be_bytes());
    m.extend(row.peer.port.to_be_bytes());
    for addr in [row.local.addr, row.peer.addr] {
        let at = m.len();
        m.extend(addr.octets());
        m.resize(at + 16, 0);
    }
    m.extend(row.ifindex.to_ne_bytes());
    m.extend((row.cookie as u32).to_ne_bytes());
    m.extend(((row.cookie >> 32) as u32).to_ne_bytes());
    for n in [row.timer_ms, row.rqueue, row.wqueue.unwrap_or(0), row.uid.unwrap_or(0), row.inode] {
        m.extend(n.to_ne_bytes());
    }
    let info = row.tcp_info.map(|i| i.as_bytes().to_vec());
    let skmem = row.skmem.map(|s| (0..9).filter_map(|i| s.get(i)).flat_map(u32::to_ne_bytes).collect::<Vec<_>>());
    let cong = row.cong.map(|c| [c, b"\0"].concat());
    for (kind, payload) in [
        (2, info.as_deref()),
        (3, row.vegas),
        (4, cong.as_deref()),
        (5, row.tos.as_ref().map(std::slice::from_ref)),
        (6, row.tclass.as_ref().map(std::slice::from_ref)),
        (7, skmem.as_deref()),
        (8, row.shutdown.as_ref().map(std::slice::from_ref)),
        (9, row.dctcp),
        (11, row.v6only.map(|v| if v { &[1u8][..] } else { &[0] })),
        (15, row.mark.map(u32::to_ne_bytes).as_ref().map(|b| &b[..])),
        (16, row.bbr),
        (17, row.class_id.map(u32::to_ne_bytes).as_ref().map(|b| &b[..])),
        (18, row.md5sig),
        (19, row.ulp),
        (21, row.cgroup_id.map(u64::to_ne_bytes).as_ref().map(|b| &b[..])),
        (22, row.sockopt.as_ref().map(|b| &b[..])),
    ] {
        if let Some(payload) = payload {
            attribute(&mut m, kind, payload);
        }
    }
    let len = (m.len() as u32).to_ne_bytes();
    m[..4].copy_from_slice(&len);
    m[4..6].copy_from_slice(&20u16.to_ne_bytes());
    m
}

fn layout() -> Layout {
    let version = tool::version("ss").expect("ss tells its version");
    if version >= tool::Version(6, 15, 0) { Layout::V6_15 } else { Layout::V6_1 }
}

/// The output of the installed ss for the rows.
fn theirs(rows: &[Socket<'_>], args: &[&str]) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut bytes: Vec<u8> = rows.iter().flat_map(message).collect();
    // NLMSG_DONE, the only end that ss accepts.
    bytes.extend([16u32.to_ne_bytes(), [3, 0, 0, 0], [0; 4], [0; 4]].concat());
    file.write_all(&bytes).unwrap();
    let out = Command::new("ss").args(args).env("LC_ALL", "C").env("TCPDIAG_FILE", file.path()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn ours(rows: &[Socket<'_>], options: Options) -> String {
    let services = |_, _| None;
    let mut writer = Writer::new(options, &services, Vec::new());
    for row in rows {
        writer.row(row, &Lookups::empty()).unwrap();
    }
    writer.finish().unwrap();
    String::from_utf8(writer.into_inner()).unwrap()
}

#[track_caller]
fn same(rows: &[Socket<'_>], args: &[&str], options: Options) {
    let (theirs, ours) = (theirs(rows, args), ours(rows, options));
    for (i, (t, o)) in theirs.lines().zip(ours.lines()).enumerate() {
        assert_eq!(t.trim_end(), o.trim_end(), "line {i} of ss {args:?}");
    }
    for (i, (t, o)) in theirs.lines().zip(ours.lines()).enumerate() {
        assert_eq!(t, o, "width of line {i} of ss {args:?}");
    }
    assert_eq!(theirs.len(), ours.len());
}

fn tan() -> Options {
    Options { bug_compatible: true, ..Options::plain(layout()).without(show::NETID) }
}

fn random_row(dice: &mut Dice) -> Socket<'static> {
    let v6 = dice.below(4) == 0;
    let addr = |dice: &mut Dice| match (v6, dice.below(5)) {
        (false, 0) => Addr::ANY4,
        (true, 0) => Addr::ANY6,
        (false, _) => Addr::V4((dice.roll() as u32).to_be_bytes()),
        (true, n) => {
            let keep = dice.roll() as u16;
            let octets: [u8; 16] =
                std::array::from_fn(|i| if n < 4 && keep >> i & 1 == 0 { 0 } else { dice.roll() as u8 });
            Addr::V6(octets)
        }
    };
    let (local, peer) = (addr(dice), addr(dice));
    Socket {
        proto: Proto::Tcp,
        family: if v6 { 10 } else { 2 },
        state: State(1 + dice.below(11) as u8),
        local: Endpoint { addr: local, port: dice.number(16) as u16 },
        peer: Endpoint { addr: peer, port: dice.number(16) as u16 },
        rqueue: if dice.below(4) == 0 { dice.number(31) as u32 } else { 0 },
        wqueue: Some(if dice.below(4) == 0 { dice.number(31) as u32 } else { 0 }),
        ifindex: if dice.below(8) == 0 { 99_999 } else { 0 },
        uid: Some(dice.number(32) as u32),
        inode: dice.number(32) as u32,
        cookie: dice.number(64),
        timer: Timer(dice.below(7) as u8),
        timer_ms: dice.number(32) as u32,
        retrans: dice.number(8) as u8,
        mark: (dice.below(2) == 0).then(|| dice.number(32) as u32),
        shutdown: (dice.below(4) != 0).then(|| dice.below(4) as u8),
        v6only: (dice.below(2) == 0).then(|| dice.below(2) == 0),
        sockopt: (dice.below(2) == 0).then(|| (dice.roll() as u16).to_le_bytes()),
        tos: (dice.below(2) == 0).then(|| dice.number(8) as u8),
        tclass: (dice.below(2) == 0).then(|| dice.number(8) as u8),
        class_id: (dice.below(2) == 0).then(|| dice.number(32) as u32),
        ..Socket::EMPTY
    }
}

/// Random numbers below 2^31, because ss prints some members as signed numbers.
fn numbers(dice: &mut Dice, n: usize) -> Vec<u8> {
    (0..n).flat_map(|_| (dice.number(31) as u32).to_ne_bytes()).collect()
}

fn random_payloads(dice: &mut Dice) -> Payloads {
    let len = [280, 240, 232, 104, 192][dice.below(5) as usize];
    let mut info = numbers(dice, len / 4);
    for at in (104..len.saturating_sub(7)).step_by(8) {
        // 64-bit members are below 2^52, because ss computes with doubles.
        if [104, 112, 120, 128, 160, 168, 176, 184, 200, 208].contains(&at) {
            info[at..at + 8].copy_from_slice(&dice.number(64).to_ne_bytes());
        }
    }
    for at in [104, 112] {
        if dice.below(4) == 0 && at + 8 <= len {
            info[at..at + 8].fill(0xff);
        }
    }
    if dice.below(8) == 0 {
        info[8..12].copy_from_slice(&3_000_000u32.to_ne_bytes());
        info[88..92].copy_from_slice(&3u32.to_ne_bytes());
    }
    let some = |n: u64, dice: &mut Dice| dice.below(n) == 0;
    Payloads {
        info: (!some(8, dice)).then_some(info),
        skmem: (!some(8, dice)).then(|| {
            let n = [9, 8, 7][dice.below(3) as usize];
            numbers(dice, n)
        }),
        cong: (!some(8, dice)).then(|| b"cubic_or_some_long_name"[..1 + dice.below(22) as usize].to_vec()),
        vegas: some(4, dice).then(|| numbers(dice, 4)),
        dctcp: some(4, dice).then(|| numbers(dice, 4)),
        bbr: some(4, dice).then(|| numbers(dice, 5)),
    }
}

impl Payloads {
    fn on<'p>(&'p self, row: Socket<'static>) -> Socket<'p> {
        Socket {
            tcp_info: self.info.as_deref().map(TcpInfo::new),
            skmem: self.skmem.as_deref().map(SkMem::new),
            cong: self.cong.as_deref(),
            vegas: self.vegas.as_deref(),
            dctcp: self.dctcp.as_deref(),
            bbr: self.bbr.as_deref(),
            ..row
        }
    }
}

#[test]
fn rows_of_every_sort() {
    require_tool!("ss");
    let mut dice = Dice(0x1234_5678_9abc_def1);
    let payloads: Vec<Payloads> = (0..3_000).map(|_| random_payloads(&mut dice)).collect();
    let rows: Vec<Socket<'_>> = payloads.iter().map(|p| p.on(random_row(&mut dice))).collect();
    let plain = tan();
    same(&rows, &["-tan"], plain);
    same(&rows, &["-Htan"], plain.without(show::HEADER));
    same(&rows, &["-tano"], plain.with(show::TIMERS));
    same(&rows, &["-tane"], plain.with(show::TIMERS | show::DETAILS));
    let tos = plain.with(show::TOS | show::CGROUP | show::SOCKOPT);
    same(&rows, &["-tan", "--tos", "--cgroup", "--inet-sockopt"], tos);
    same(&rows, &["-tanO", "--inet-sockopt"], plain.with(show::SOCKOPT | show::ONE_LINE));
    // ss prints everything in the messages, even if it was not requested, so memory and info are combined here.
    let info = plain.with(show::MEMORY | show::INFO);
    same(&rows, &["-tanmi"], info);
    same(&rows, &["-tanmiO"], info.with(show::ONE_LINE));
    // Ephemeral ports have no names in either program.
    let nameless = |row: &Socket<'_>| row.local.port > 40_000 && row.peer.port > 40_000;
    let rows: Vec<Socket<'_>> = rows.into_iter().filter(|row| nameless(row) && row.local.port < 60_000).collect();
    let rows: Vec<Socket<'_>> = rows.into_iter().filter(|row| row.peer.port < 60_000).collect();
    assert!(!rows.is_empty());
    same(&rows, &["-tamie"], info.with(show::TIMERS | show::DETAILS).without(show::NUMERIC));
}

#[test]
fn widths_of_many_blocks() {
    require_tool!("ss");
    let mut dice = Dice(77);
    let rows: Vec<Socket<'_>> = (0..150_000).map(|_| random_row(&mut dice)).collect();
    same(&rows, &["-tan"], tan());
    same(&rows, &["-tane"], tan().with(show::TIMERS | show::DETAILS));
    same(&rows, &["-Htan", "state", "established"], tan().without(show::HEADER | show::STATE));
    // Growing rows: each block is wider than the previous one.
    let mut rows: Vec<Socket<'_>> = (0..200_000u32)
        .map(|i| {
            let addr = Addr::V4((i * 17_000).to_be_bytes());
            let local = Endpoint { addr, port: (i / 4) as u16 };
            Socket {
                proto: Proto::Tcp,
                family: 2,
                state: State(1),
                local,
                peer: local,
                wqueue: Some(0),
                ..Socket::EMPTY
            }
        })
        .collect();
    same(&rows, &["-tan"], tan());
    // A block whose last row is the longest, which does not affect the width.
    rows.truncate(100);
    rows[99].timer = Timer(1);
    rows[99].timer_ms = 5;
    same(&rows, &["-tano"], tan().with(show::TIMERS));
}
