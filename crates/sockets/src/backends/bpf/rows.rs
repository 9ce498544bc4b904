//! Decodes the blocks that the walk of the TCP tables writes.
//!
//! A block is a header and rows (`netlink::BlockRows`), written by `crates/bpf/c/sockets_walk.bpf.c`. A row is its
//! base, its parts, its addresses. Blocks may come from a hostile file: every length is checked. This module does not
//! depend on BPF.
use std::ops::ControlFlow;

use netlink::prefix::{array_at, u16_at, u32_at, u64_at};
use netlink::{BlockHeader, BlockRows, DecodeError, PartOffsets};
use record::rows::{Endpoint, SkMem, Socket, Sockets, TcpInfo};
use record::{Addr, Proto, RowBytes, RowVisitor, Rules, State, Timer, Value};

use crate::address_families::{AF_INET, AF_INET6};
use crate::backends::handed_out::ends_key;
use crate::backends::row_keys::Keys;
use record::hash::{mix_into, mix_words};

/// Optional parts after the base of a row, and members of the base that are filled in only on request.
pub(crate) mod part {
    /// Interface and mark.
    pub(crate) const BOUND: u32 = 1;
    /// The running timer.
    pub(crate) const TIMER: u32 = 2;
    /// Number of the network namespace, for scans of all namespaces.
    pub(crate) const NETNS: u32 = 4;
    /// The socket's address in the kernel, mixed with a key of this run: it identifies the socket for its whole
    /// lifetime. Present if the interface may deliver sockets twice (the iterator).
    pub(crate) const IDENTITY: u32 = 8;
    /// Some members of `tcp_info`.
    pub(crate) const COUNTERS: u32 = 16;
    /// The queues, for which every row has room.
    pub(crate) const QUEUES: u32 = 32;
    /// The counters of resent and acknowledged data; without this part they are 0.
    pub(crate) const RESENT: u32 = 64;
    /// The mark; without this part the mark in [`BOUND`] is 0.
    pub(crate) const MARK: u32 = 128;
    /// The uid, for which every row has room.
    pub(crate) const UID: u32 = 256;
    /// The inode, for which every row has room.
    pub(crate) const INODE: u32 = 512;
    /// The counters of round-trip time and window; without this part they are 0.
    pub(crate) const PATH: u32 = 1024;
    /// Socket memory, nine numbers.
    pub(crate) const MEMORY: u32 = 2048;
    /// `tcp_info`, in place of [`COUNTERS`]. Only the walk has it: its kernels have every member.
    pub(crate) const INFO: u32 = 4096;
    /// Every known part.
    pub(crate) const ALL: u32 =
        BOUND | TIMER | NETNS | IDENTITY | COUNTERS | QUEUES | RESENT | MARK | UID | INODE | PATH | MEMORY | INFO;
}

/// Fields of `tcp_info` in [`part::COUNTERS`].
pub(crate) const COUNTED: &[&str] = &[
    "bytes_in",
    "bytes_acked",
    "bytes_out",
    "bytes_retrans",
    "segs_in",
    "segs_out",
    "retrans_total",
    "rtt_us",
    "rtt_var_us",
    "cwnd",
];

/// Fields of `tcp_info` that the walk cannot provide: the kernel computes them in several steps, or its structures
/// differ between versions.
pub const NOT_IN_WALK: &[&str] = &[
    "ato_us",
    "rto_total",
    "rto_recoveries",
    "rto_time_ms",
    "received_ce",
    "delivered_e1_bytes",
    "delivered_e0_bytes",
    "delivered_ce_bytes",
    "received_e1_bytes",
    "received_e0_bytes",
    "received_ce_bytes",
    "accecn_fail_mode",
    "accecn_opt_seen",
];

const MAGIC: u32 = 0x316b_776e;
/// The program's own word in the header: a block of sockets.
const SOCKETS: u32 = 1;
/// `struct base`: words, family, state, kind u8; ports u16; rqueue, wqueue, inode, uid u32.
const BASE: usize = 24;
const FAMILY: usize = 1;
const STATE: usize = 2;
const KIND: usize = 3;
const PORTS: usize = 4;
const RQUEUE: usize = 8;
const WQUEUE: usize = 12;
const INODE: usize = 16;
const UID: usize = 20;
/// Sizes of the parts in bytes.
const BOUND: usize = 8;
const TIMER: usize = 8;
const COUNTERS: usize = 56;
const NETNS: usize = 8;
const IDENTITY: usize = 8;
const MEMORY: usize = 40;
const INFO: usize = 240;
/// The nine numbers of [`MEMORY`].
const NUMBERS: usize = 36;

/// The bit of `kind` for time-wait sockets.
const MINISOCK: u8 = 1;
/// The bit for request sockets.
const REQUEST: u8 = 2;
/// The bit for listeners that do not accept IPv4.
const V6ONLY: u8 = 4;

/// Size of the part of `tcp_info` that counters fill in: up to `tcpi_bytes_retrans`.
const COUNTED_INFO: usize = 216;

/// The header of a block with these parts, for the fuzzer and for tests.
pub(crate) fn header(parts: u32) -> [u8; 32] {
    BlockHeader::bytes(MAGIC, parts, SOCKETS)
}

/// Offsets of the parts of a row, and the members of the base that are filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RowLayout {
    bound: Option<usize>,
    timer: Option<usize>,
    counters: Option<usize>,
    netns: Option<usize>,
    identity: Option<usize>,
    memory: Option<usize>,
    info: Option<usize>,
    /// Offset of the addresses.
    addresses: usize,
    queues: bool,
    uid: bool,
    mark: bool,
    /// Ticks of the kernel's clock per second.
    hz: u32,
    /// All of the above as one number.
    id: u64,
}

impl RowLayout {
    fn from_block(block: &[u8]) -> Result<RowLayout, DecodeError> {
        let header = BlockHeader::parse(block, MAGIC, part::ALL)?;
        if header.own_word != SOCKETS {
            return Err(DecodeError::Missing("the kind of the block"));
        }
        let mut offsets = PartOffsets::new(&header, BASE);
        Ok(RowLayout {
            bound: offsets.take_offset(part::BOUND, BOUND),
            timer: offsets.take_offset(part::TIMER, TIMER),
            counters: offsets.take_offset(part::COUNTERS, COUNTERS),
            netns: offsets.take_offset(part::NETNS, NETNS),
            identity: offsets.take_offset(part::IDENTITY, IDENTITY),
            memory: offsets.take_offset(part::MEMORY, MEMORY),
            info: offsets.take_offset(part::INFO, INFO),
            addresses: offsets.end(),
            queues: header.has_part(part::QUEUES),
            uid: header.has_part(part::UID),
            mark: header.has_part(part::MARK),
            hz: header.hz,
            id: header.layout(),
        })
    }
}

fn ticks_to_ms(ticks: u32, hz: u32) -> u32 {
    u32::try_from(u64::from(ticks) * 1000 / u64::from(hz.max(1))).unwrap_or(u32::MAX)
}

/// Decodes the blocks of one table. Keys of rows are mixed with a secret.
#[derive(Debug)]
pub(crate) struct WalkDecoder {
    netns_id: u64,
    secret: u64,
    /// The buffer for `tcp_info` of rows with counters: only its members in [`COUNTED`] are filled in.
    counted: [u8; COUNTED_INFO],
    /// The buffer for `tcp_info` of rows that have it.
    info: [u8; INFO],
}

impl WalkDecoder {
    /// `secret` prevents remote hosts from choosing addresses whose rows have equal keys.
    pub(crate) fn new(netns_id: u64, secret: u64) -> WalkDecoder {
        WalkDecoder { netns_id, secret, counted: [0; COUNTED_INFO], info: [0; INFO] }
    }

    /// Passes every row of a block to `visitor`, with its keys.
    ///
    /// A malformed row only costs that row; an invalid row length costs the rest of the block.
    pub(crate) fn visit(
        &mut self,
        block: &[u8],
        visitor: &mut impl RowVisitor<Sockets, Keys, DecodeError>,
    ) -> ControlFlow<()> {
        let mut rows = 0;
        let flow = self.visit_rows(block, visitor, &mut rows);
        visitor.add_arrived(rows);
        flow
    }

    // `rows` counts what is passed to the visitor, errors included.
    fn visit_rows(
        &mut self,
        block: &[u8],
        visitor: &mut impl RowVisitor<Sockets, Keys, DecodeError>,
        rows: &mut u64,
    ) -> ControlFlow<()> {
        let layout = match RowLayout::from_block(block) {
            Ok(layout) => layout,
            Err(error) => {
                *rows += 1;
                return visitor.row(Err(error));
            }
        };
        let reuses_rows = visitor.reuses_rows();
        let rules = Rules { netns_id: self.netns_id, layout: layout.id };
        // One row is reused: most of its 400 bytes stay the same.
        let mut row = Socket { proto: Proto::Tcp, netns_id: self.netns_id, ..Socket::EMPTY };
        for bytes in BlockRows::new(block, BASE) {
            *rows += 1;
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(error) => return visitor.row(Err(error)),
            };
            if let Some(keys) = if reuses_rows { self.keys(bytes, &layout) } else { None } {
                let bytes = RowBytes { rules, key: keys.ends, bytes, beside: Value::Null };
                if let Some(flow) = visitor.reuse(bytes, keys) {
                    flow?;
                    continue;
                }
            }
            match self.fill(&mut row, bytes, &layout) {
                Err(error) => visitor.row(Err(error))?,
                Ok(keys) if layout.counters.or(layout.info).is_none() => visitor.row(Ok((&row, keys)))?,
                Ok(keys) => visitor.row(Ok((&Socket { tcp_info: self.tcp_info(bytes, &layout), ..row }, keys)))?,
            }
        }
        ControlFlow::Continue(())
    }

    // Fills in everything but the counters, and returns the row's keys.
    #[inline(always)]
    fn fill<'b>(&self, row: &mut Socket<'b>, bytes: &'b [u8], layout: &RowLayout) -> Result<Keys, DecodeError> {
        let short = |claims| DecodeError::Short { what: "row of the walk", claims, has: bytes.len() };
        let Some(base) = bytes.first_chunk::<BASE>() else { return Err(short(BASE)) };
        let Some(addresses) = bytes.get(layout.addresses..) else { return Err(short(layout.addresses)) };
        let (local, peer, mixed) = match base[FAMILY] {
            AF_INET => {
                let Some(both) = addresses.first_chunk::<8>() else { return Err(short(layout.addresses + 8)) };
                let [a, b, c, d, e, f, g, h] = *both;
                (Addr::V4([a, b, c, d]), Addr::V4([e, f, g, h]), mix_words(self.secret, both))
            }
            AF_INET6 => {
                let Some(both) = addresses.first_chunk::<32>() else { return Err(short(layout.addresses + 32)) };
                let at = |at| array_at::<16>(both, at).unwrap_or_default();
                (Addr::V6(at(0)), Addr::V6(at(16)), mix_words(self.secret, both))
            }
            other => return Err(DecodeError::Family(other)),
        };
        let word = |at| u32_at(base, at).unwrap_or(0);
        let port = |at| u16_at(base, at).unwrap_or(0);
        let kind = base[KIND];
        row.family = base[FAMILY];
        row.state = State(base[STATE]);
        row.local = Endpoint { addr: local, port: port(PORTS) };
        row.peer = Endpoint { addr: peer, port: port(PORTS + 2) };
        row.rqueue = word(RQUEUE);
        row.wqueue = if layout.queues { Some(word(WQUEUE)) } else { None };
        row.inode = word(INODE);
        // A time-wait socket no longer has an owner.
        row.uid = if kind & MINISOCK == 0 && layout.uid { Some(word(UID)) } else { None };
        row.v6only = if row.state == State::LISTEN && row.family == AF_INET6 { Some(kind & V6ONLY != 0) } else { None };
        self.fill_parts(row, bytes, layout);
        let ends = ends_key(mixed, word(PORTS), row.ifindex, row.netns_id, row.family);
        let keys = Keys { identity: identity(bytes, layout), ends };
        if layout.identity.is_some() {
            // The kernel uses the memory of a closed socket for another.
            row.address_hash = mix_into(keys.identity, ends) | 1;
        }
        Ok(keys)
    }

    // The keys that `fill` would return; `None` for a malformed row.
    #[inline(always)]
    fn keys(&self, bytes: &[u8], layout: &RowLayout) -> Option<Keys> {
        let family = *bytes.get(FAMILY)?;
        let addresses = bytes.get(layout.addresses..)?;
        let mixed = match family {
            AF_INET => mix_words(self.secret, addresses.first_chunk::<8>()?),
            AF_INET6 => mix_words(self.secret, addresses.first_chunk::<32>()?),
            _ => return None,
        };
        let word = |at: Option<usize>| at.and_then(|at| u32_at(bytes, at));
        let netns_id = word(layout.netns).map_or(self.netns_id, u64::from);
        let ends = ends_key(mixed, u32_at(bytes, PORTS)?, word(layout.bound).unwrap_or(0), netns_id, family);
        Some(Keys { identity: identity(bytes, layout), ends })
    }

    #[inline(always)]
    fn fill_parts<'b>(&self, row: &mut Socket<'b>, bytes: &'b [u8], layout: &RowLayout) {
        if let Some(at) = layout.bound {
            row.ifindex = u32_at(bytes, at).unwrap_or(0);
            row.mark = if layout.mark { u32_at(bytes, at + 4) } else { None };
        }
        if let Some(at) = layout.timer {
            row.timer_ms = ticks_to_ms(u32_at(bytes, at).unwrap_or(0), layout.hz);
            row.timer = Timer(bytes.get(at + 4).copied().unwrap_or(0));
            row.retrans = bytes.get(at + 5).copied().unwrap_or(0);
        }
        if let Some(at) = layout.netns {
            row.netns_id = u32_at(bytes, at).map_or(self.netns_id, u64::from);
        }
        if let Some(at) = layout.memory {
            row.skmem = bytes.get(at..at + NUMBERS).filter(|_| !is_small(bytes)).map(SkMem::new);
        }
    }

    // Half-open and time-wait sockets have no `tcp_info`.
    fn tcp_info(&mut self, bytes: &[u8], layout: &RowLayout) -> Option<TcpInfo<'_>> {
        if is_small(bytes) {
            return None;
        }
        if let Some(at) = layout.info {
            self.info = array_at(bytes, at)?;
            finish_info(&mut self.info, layout.hz);
            return Some(TcpInfo::new(&self.info));
        }
        put_counters(&mut self.counted, &array_at(bytes, layout.counters?)?);
        Some(TcpInfo::new(&self.counted))
    }
}

fn is_small(bytes: &[u8]) -> bool {
    bytes.get(KIND).is_some_and(|kind| kind & (MINISOCK | REQUEST) != 0)
}

/// Turns what the program wrote in place of `struct tcp_info` into what tcp_get_info (net/ipv4/tcp.c) would have
/// written: it cannot divide by the kernel's clock rate, and read without a lock.
fn finish_info(info: &mut [u8; INFO], hz: u32) {
    let old = *info;
    let word = |at| u32_at(&old, at).unwrap_or(0);
    let mut put_bytes = |at: usize, bytes: &[u8]| {
        if let Some(to) = info.get_mut(at..at + bytes.len()) {
            to.copy_from_slice(bytes);
        }
    };
    let mut put = |at, value: u32| put_bytes(at, &value.to_ne_bytes());
    put(8, u32::try_from(ticks_to_us(word(8).into(), hz)).unwrap_or(u32::MAX)); // rto
    // The time since data were sent, and since data and acknowledgements were received. An event after the program
    // had read the clock was just now.
    for at in [44, 52, 56] {
        put(at, ticks_to_ms(not_negative(word(at)), hz));
    }
    put(144, not_negative(word(144))); // notsent_bytes
    // The stopwatches follow each other; the running one is numbered from 1.
    let (running, so_far) = (word(40), not_negative(word(48)));
    put(40, 0); // fackets
    put(48, 0); // last_ack_sent
    let mut total = 0;
    for (number, at) in (1..).zip([168, 176, 184]) {
        let ticks = u64_at(&old, at).unwrap_or(0) + u64::from(if running == number { so_far } else { 0 });
        let spent = ticks_to_us(ticks, hz);
        total += spent;
        put_bytes(at, &spent.to_ne_bytes());
    }
    // The first one is the time with data in flight, which the kernel reports with the two others.
    put_bytes(168, &total.to_ne_bytes());
}

/// A difference of the kernel's 32-bit numbers; 0 if it is negative.
fn not_negative(difference: u32) -> u32 {
    if difference > i32::MAX as u32 { 0 } else { difference }
}

fn ticks_to_us(ticks: u64, hz: u32) -> u64 {
    ticks.saturating_mul(1_000_000) / u64::from(hz.max(1))
}

/// Copies `struct counters` to the offsets of `struct tcp_info` (include/uapi/linux/tcp.h).
fn put_counters(info: &mut [u8; COUNTED_INFO], counters: &[u8; COUNTERS]) {
    let mut put = |at: usize, from: usize, bytes: usize| {
        if let (Some(to), Some(from)) = (info.get_mut(at..at + bytes), counters.get(from..from + bytes)) {
            to.copy_from_slice(from);
        }
    };
    put(128, 0, 8); // bytes_received
    put(120, 8, 8); // bytes_acked
    put(200, 16, 8); // bytes_sent
    put(208, 24, 8); // bytes_retrans
    put(140, 32, 4); // segs_in
    put(136, 36, 4); // segs_out
    put(100, 40, 4); // total_retrans
    put(80, 52, 4); // snd_cwnd
    // The kernel stores the smoothed time multiplied by eight and the deviation multiplied by four (tcp_get_info).
    for (to, from, by) in [(68, 44, 3), (72, 48, 2)] {
        let value = u32_at(counters, from).unwrap_or(0) >> by;
        if let Some(place) = info.get_mut(to..to + 4) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
    }
}

#[inline(always)]
fn identity(bytes: &[u8], layout: &RowLayout) -> u64 {
    layout.identity.and_then(|at| u64_at(bytes, at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::need;
    use record::{Lookups, Table as _};

    fn row(family: u8, kind: u8, parts: &[u8], addresses: &[u8]) -> Vec<u8> {
        let mut row = vec![0, family, 1, kind, 0x39, 0x30, 80, 0];
        for word in [3u32, 4, 77, 1000] {
            row.extend_from_slice(&word.to_ne_bytes());
        }
        row.extend_from_slice(parts);
        row.extend_from_slice(addresses);
        row[0] = (row.len() / 4) as u8;
        row
    }

    fn decode_row(block: &[u8]) -> Vec<Result<String, DecodeError>> {
        let mut found = Vec::new();
        let _ = WalkDecoder::new(9, 1).visit(block, &mut |row: Result<(&Socket<'_>, Keys), _>| {
            found.push(row.map(|(row, _)| {
                let Socket { local, peer, uid, inode, netns_id, .. } = row;
                let queues = (row.rqueue, row.wqueue);
                let info = row.tcp_info.map(|info| (info.rtt_us(), info.bytes_received(), info.segs_out()));
                format!(
                    "{local:?} {peer:?} {queues:?} {uid:?} {inode} {netns_id} {:?} {info:?}",
                    (row.ifindex, row.timer.0)
                )
            }));
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn every_part_has_its_place() {
        let mut parts = Vec::new();
        for word in [2u32, 7] {
            parts.extend_from_slice(&word.to_ne_bytes());
        }
        parts.extend_from_slice(&[50, 0, 0, 0, 2, 1, 0, 0]);
        let counters: Vec<u8> = (0..14u32).flat_map(|n| (n * 8).to_ne_bytes()).collect();
        parts.extend_from_slice(&counters);
        parts.extend_from_slice(&[5, 0, 0, 0, 0, 0, 0, 0]);
        parts.extend_from_slice(&[0xee; 8]);
        // Memory and `tcp_info` have their own test.
        let header = header(part::ALL & !(part::MEMORY | part::INFO));
        let block = [&header[..], &row(2, 0, &parts, &[127, 0, 0, 1, 127, 0, 0, 2])].concat();
        assert_eq!(
            decode_row(&block),
            [Ok("Endpoint { addr: V4([127, 0, 0, 1]), port: 12345 } Endpoint { addr: V4([127, 0, 0, 2]), port: 80 } \
                 (3, Some(4)) Some(1000) 77 5 (2, 2) Some((Some(11), Some(34359738368), Some(72)))"
                .to_owned())]
        );
        // A minisock has no counters and, in time-wait, no owner.
        let small = [&header[..], &row(2, MINISOCK, &parts, &[0; 8])].concat();
        assert!(
            decode_row(&small)[0].as_ref().is_ok_and(|told| told.contains("None 77 5 (2, 2) None")),
            "{:?}",
            decode_row(&small)
        );
    }

    #[test]
    fn lengths_are_not_believed() {
        let good = row(10, 0, &[], &[1; 32]);
        let block = |rows: &[&[u8]]| [&[&header(0)[..]], rows].concat().concat();
        assert!(decode_row(&block(&[&good, &good])).iter().all(Result::is_ok));
        // The row is too short for its family: only this row is lost.
        let cut = row(10, 0, &[], &[1; 8]);
        let found = decode_row(&block(&[&cut, &good]));
        assert!(found[0].is_err() && found[1].is_ok() && found.len() == 2);
        // A length of 0, or beyond the end of the block, ends the block.
        for words in [0, 1, 255] {
            let mut odd = good.clone();
            odd[0] = words;
            let found = decode_row(&block(&[&good, &odd, &good]));
            assert!(found.len() == 2 && found[1].is_err(), "{found:?}");
        }
        let mut odd = good;
        odd[1] = 3;
        assert_eq!(decode_row(&block(&[&odd])), [Err(DecodeError::Family(3))]);
        for garbage in [&b""[..], b"nwk1", &header(1 << 31)] {
            assert!(matches!(decode_row(garbage)[..], [Err(_)]));
        }
    }

    #[test]
    fn memory_and_tcp_info_are_read_in_place() {
        let mut info = [0u8; INFO];
        let mut put = |at: usize, value: u64, bytes: usize| {
            info[at..at + bytes].copy_from_slice(&value.to_ne_bytes()[..bytes]);
        };
        put(0, 1, 1); // state
        put(8, 50, 4); // rto: 50 ticks
        put(44, 25, 4); // last_data_sent: 25 ticks
        put(52, u64::from(u32::MAX), 4); // data arrived after the clock was read
        put(144, u64::from(u32::MAX), 4); // more was sent than was written, for a moment
        put(40, 2, 4); // the second stopwatch runs
        put(48, 100, 4); // for 100 ticks
        put(168, 25, 8);
        put(184, 50, 8);
        let memory: Vec<u8> = (1..=10u32).flat_map(u32::to_ne_bytes).collect();
        let block = [
            &header(part::MEMORY | part::INFO)[..],
            &row(2, 0, &[&memory[..], &info].concat(), &[0; 8]),
            &row(2, MINISOCK, &[&memory[..], &info].concat(), &[0; 8]),
        ]
        .concat();
        let mut seen = Vec::new();
        let _ = WalkDecoder::new(9, 1).visit(&block, &mut |row: Result<(&Socket<'_>, Keys), DecodeError>| {
            let (row, _) = row.unwrap();
            let of_info = row
                .tcp_info
                .map(|info| [info.rto_us(), info.last_data_sent_ms(), info.last_data_recv_ms(), info.notsent_bytes()]);
            let times = row.tcp_info.map(|info| [info.busy_us(), info.rwnd_limited_us(), info.sndbuf_limited_us()]);
            seen.push((row.skmem.map(|memory| (memory.get(0), memory.get(8), memory.get(9))), of_info, times));
            for field in Sockets::FIELDS.iter().filter(|field| field.need & need::TCP_INFO != 0) {
                let is_null = field.cell(row, &Lookups::empty()) == Value::Null;
                let is_lacked = NOT_IN_WALK.contains(&field.name) && field.name != "ato_us";
                assert_eq!(is_null, row.tcp_info.is_none() || is_lacked, "{}", field.name);
            }
            ControlFlow::Continue(())
        });
        // HZ is 250 in this header.
        let first = (
            Some((Some(1), Some(9), None)),
            Some([Some(200_000), Some(100), Some(0), Some(0)]),
            Some([Some(700_000), Some(400_000), Some(200_000)]),
        );
        assert_eq!(seen, [first, (None, None, None)]);
    }

    #[test]
    fn ticks_become_milliseconds() {
        assert_eq!((ticks_to_ms(25, 250), ticks_to_ms(7, 1000), ticks_to_ms(3, 300)), (100, 7, 10));
        assert_eq!(ticks_to_ms(u32::MAX, 0), u32::MAX);
    }

    #[test]
    fn keys_tell_connections_apart() {
        let keys = |rows: &[Vec<u8>]| {
            let mut keys = Vec::new();
            let _ = WalkDecoder::new(9, 1).visit(&[&header(0)[..], &rows.concat()].concat(), &mut |row: Result<
                (&Socket<'_>, Keys),
                DecodeError,
            >| {
                keys.extend(row.map(|(_, keys)| keys.ends));
                ControlFlow::Continue(())
            });
            keys
        };
        let mut rows: Vec<Vec<u8>> = (0..30)
            .map(|n| {
                row(10, 0, &[], &{
                    let mut a = [0; 32];
                    a[n] = 1;
                    a
                })
            })
            .collect();
        rows.extend((0..8).map(|n| {
            row(2, 0, &[], &{
                let mut a = [0; 8];
                a[n] = 1;
                a
            })
        }));
        let mut found = keys(&rows);
        assert_eq!(found, keys(&rows));
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), rows.len());
    }
}
