//! What the walk of the TCP tables writes, as rows.
//!
//! A block is a head and rows behind it; both are written by `crates/bpf/c/sockets_walk.bpf.c`, in the machine's byte
//! order. A row is its base, its parts, its addresses; the head tells which parts there are, so a block from a recording explains itself. Blocks
//! may come from a hostile file: every length is checked, none is believed. Knows no BPF.
use std::ops::ControlFlow;

use netlink::DecodeError;
use netlink::prefix::{array_at, u16_at, u32_at, u64_at};
use record::rows::{Endpoint, Socket, TcpInfo};
use record::{Addr, Proto, RowBytes, Rules, State, Timer, Value};

use crate::backends::handed_out::{ends_key, mix_words};
use crate::backends::netlink::inet_diag::{AF_INET, AF_INET6};

/// Parts that may follow the base of a row.
pub(crate) mod part {
    /// Interface and mark.
    pub(crate) const BOUND: u32 = 1;
    /// The running timer.
    pub(crate) const TIMER: u32 = 2;
    /// Number of the network namespace: for tables of all of them.
    pub(crate) const NETNS: u32 = 4;
    /// The socket's address in the kernel, mixed with a key of this run: it tells the socket from all others for as
    /// long as it lives. What may come twice from its interface (the iterator) has it.
    pub(crate) const IDENTITY: u32 = 8;
    /// Some members of `tcp_info`.
    pub(crate) const COUNTERS: u32 = 16;
    /// The queues: they have a place in every row, but are filled in only then.
    pub(crate) const QUEUES: u32 = 32;
    /// Those of the counters that are about resent and acknowledged data: else they are 0.
    pub(crate) const RESENT: u32 = 64;
    /// The mark: else the one of [`BOUND`] is 0.
    pub(crate) const MARK: u32 = 128;
    /// The uid: it has a place in every row, but is filled in only then.
    pub(crate) const UID: u32 = 256;
    /// The inode, likewise.
    pub(crate) const INODE: u32 = 512;
    /// Those of the counters that are about round-trip time and window: else they are 0.
    pub(crate) const PATH: u32 = 1024;
    /// Every part that is known.
    pub(crate) const ALL: u32 =
        BOUND | TIMER | NETNS | IDENTITY | COUNTERS | QUEUES | RESENT | MARK | UID | INODE | PATH;
}

/// Fields of `tcp_info` that [`part::COUNTERS`] has.
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

/// `struct head`: magic, parts, jiffies u64, monotonic time u64, kind, pad.
const HEAD: usize = 32;
const MAGIC: u32 = 0x316b_776e;
/// Kind of a block that holds sockets.
const SOCKETS: u32 = 1;
/// `struct base`: words, family, state, kind u8; ports u16; rqueue, wqueue, inode, uid u32.
const BASE: usize = 24;
const BOUND: usize = 8;
const TIMER: usize = 8;
const COUNTERS: usize = 56;
const NETNS: usize = 8;
const IDENTITY: usize = 8;

/// The bit of `kind` for time-wait sockets.
const MINISOCK: u8 = 1;
/// The bit for request sockets.
const REQUEST: u8 = 2;
/// The bit for listeners that take no IPv4.
const V6ONLY: u8 = 4;

/// Bytes of `tcp_info` as far as its members are filled in: up to `tcpi_bytes_retrans`.
const INFO: usize = 216;

/// The head of a block with these parts: for the fuzzer and for tests.
pub(crate) fn head(parts: u32) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&MAGIC.to_ne_bytes());
    head[4..8].copy_from_slice(&parts.to_ne_bytes());
    head[24..28].copy_from_slice(&SOCKETS.to_ne_bytes());
    head
}

/// What a block's head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    timer: Option<usize>,
    counters: Option<usize>,
    netns: Option<usize>,
    identity: Option<usize>,
    bound: Option<usize>,
    /// Whether the queues are filled in.
    queues: bool,
    /// Whether the uid is.
    uid: bool,
    /// Whether the mark is.
    mark: bool,
    /// Bytes of all parts.
    parts: usize,
    /// Ticks of the kernel's clock a second.
    hz: u32,
    /// Everything above in one number.
    layout: u64,
}

impl Head {
    fn of(block: &[u8]) -> Result<Head, DecodeError> {
        let short = DecodeError::Short { what: "block of the walk", claims: HEAD, has: block.len() };
        let word = |at| u32_at(block, at).ok_or(short);
        let parts = word(4)?;
        if block.len() < HEAD || word(0)? != MAGIC || word(24)? != SOCKETS || parts & !part::ALL != 0 {
            return Err(short);
        }
        let mut at = 0;
        let mut place = |bit, bytes| {
            let here = (parts & bit != 0).then_some(at);
            at += if here.is_some() { bytes } else { 0 };
            here
        };
        let bound = place(part::BOUND, BOUND);
        let timer = place(part::TIMER, TIMER);
        let counters = place(part::COUNTERS, COUNTERS);
        let netns = place(part::NETNS, NETNS);
        let identity = place(part::IDENTITY, IDENTITY);
        let hz = sys::clock::jiffies_per_second(u64_at(block, 8).ok_or(short)?, u64_at(block, 16).ok_or(short)?);
        let layout = u64::from(parts) << 32 | u64::from(hz);
        let [queues, uid, mark] = [part::QUEUES, part::UID, part::MARK].map(|bit| parts & bit != 0);
        Ok(Head { timer, counters, netns, identity, bound, queues, uid, mark, parts: at, hz, layout })
    }
}

fn ticks_to_ms(ticks: u32, hz: u32) -> u32 {
    u32::try_from(u64::from(ticks) * 1000 / u64::from(hz.max(1))).unwrap_or(u32::MAX)
}

/// What a row is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Of one object in the kernel and of no other: the same again is the same socket. 0 if the interface does not
    /// tell.
    pub(crate) identity: u64,
    /// Of its ends. Several sockets may have the same.
    pub(crate) ends: u64,
}

/// Who takes rows.
pub(crate) trait RowVisitor {
    /// So many rows stood in a block; each was handed on by one of the others. Called once for a block.
    fn arrived(&mut self, rows: u64) {
        let _ = rows;
    }

    /// A decoded row with its keys.
    fn row(&mut self, row: Result<(&Socket<'_>, Keys), DecodeError>) -> ControlFlow<()>;

    /// True if [`RowVisitor::again`] shall be asked.
    fn knows_bytes(&self) -> bool {
        false
    }

    /// Whether more is wanted after a row that is the same as before; `None` if it is not and must be decoded.
    fn reuse(&mut self, bytes: RowBytes<'_>, keys: Keys) -> Option<ControlFlow<()>> {
        let _ = (bytes, keys);
        None
    }
}

/// Takes rows by a function.
struct Decoded<'e, F>(&'e mut F);

impl<F: FnMut(Result<(&Socket<'_>, Keys), DecodeError>) -> ControlFlow<()>> RowVisitor for Decoded<'_, F> {
    #[inline(always)]
    fn row(&mut self, row: Result<(&Socket<'_>, Keys), DecodeError>) -> ControlFlow<()> {
        (self.0)(row)
    }
}

/// Makes rows of blocks. One is kept for a whole table: it mixes its keys with a secret of its own.
#[derive(Debug)]
pub(crate) struct WalkDecoder {
    netns_id: u64,
    secret: u64,
    /// Where `tcp_info` is put together: only its members in [`COUNTED`] mean anything.
    info: [u8; INFO],
}

impl WalkDecoder {
    /// `secret` keeps strangers from choosing addresses whose rows pass for one.
    pub(crate) fn new(netns_id: u64, secret: u64) -> WalkDecoder {
        WalkDecoder { netns_id, secret, info: [0; INFO] }
    }

    /// Hands every row of a block to `each`, with what it is known by.
    ///
    /// A row that makes no sense costs itself; one whose length makes none costs the rest of the block.
    pub(crate) fn block(
        &mut self,
        block: &[u8],
        each: &mut impl FnMut(Result<(&Socket<'_>, Keys), DecodeError>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.hand(block, &mut Decoded(each))
    }

    /// The same for a visitor that may know rows by their bytes: those are not decoded.
    pub(crate) fn hand(&mut self, block: &[u8], visitor: &mut impl RowVisitor) -> ControlFlow<()> {
        let mut rows = 0;
        let flow = self.hand_each(block, visitor, &mut rows);
        visitor.arrived(rows);
        flow
    }

    // `rows` counts what is handed on, whatever becomes of it.
    fn hand_each(&mut self, block: &[u8], visitor: &mut impl RowVisitor, rows: &mut u64) -> ControlFlow<()> {
        let head = match Head::of(block) {
            Ok(head) => head,
            Err(error) => {
                *rows += 1;
                return visitor.row(Err(error));
            }
        };
        let asks = visitor.knows_bytes();
        let rules = Rules { netns_id: self.netns_id, layout: head.layout };
        // Filled anew for every row: most of its 400 bytes stay as they are.
        let mut row = Socket { proto: Proto::Tcp, netns_id: self.netns_id, ..Socket::EMPTY };
        let mut rest = block.get(HEAD..).unwrap_or_default();
        while let Some(words) = rest.first() {
            *rows += 1;
            let size = usize::from(*words) * 4;
            let Some((bytes, behind)) = rest.split_at_checked(size).filter(|_| size >= BASE) else {
                return visitor.row(Err(DecodeError::Short {
                    what: "row of the walk",
                    claims: size.max(BASE),
                    has: rest.len(),
                }));
            };
            rest = behind;
            if let Some(keys) = if asks { self.keys(bytes, &head) } else { None } {
                let bytes = RowBytes { rules, key: keys.ends, bytes, beside: Value::Null };
                if let Some(next) = visitor.reuse(bytes, keys) {
                    next?;
                    continue;
                }
            }
            match self.fill(&mut row, bytes, &head) {
                Err(error) => visitor.row(Err(error))?,
                Ok(keys) => match head.counters {
                    None => visitor.row(Ok((&row, keys)))?,
                    Some(at) => self.with_counters(&row, bytes, at, keys, visitor)?,
                },
            }
        }
        ControlFlow::Continue(())
    }

    // Everything but the counters; the row's keys.
    #[inline(always)]
    fn fill(&self, row: &mut Socket<'_>, bytes: &[u8], head: &Head) -> Result<Keys, DecodeError> {
        let short = |claims| DecodeError::Short { what: "row of the walk", claims, has: bytes.len() };
        let Some((base, rest)) = bytes.split_first_chunk::<BASE>() else { return Err(short(BASE)) };
        let Some((parts, rest)) = rest.split_at_checked(head.parts) else { return Err(short(BASE + head.parts)) };
        let (local, peer, addresses) = match base[1] {
            AF_INET => {
                let Some(both) = rest.first_chunk::<8>() else { return Err(short(BASE + head.parts + 8)) };
                let [a, b, c, d, e, f, g, h] = *both;
                (Addr::V4([a, b, c, d]), Addr::V4([e, f, g, h]), self.mix_v4(both))
            }
            AF_INET6 => {
                let Some(both) = rest.first_chunk::<32>() else { return Err(short(BASE + head.parts + 32)) };
                let at = |at| array_at::<16>(both, at).unwrap_or_default();
                (Addr::V6(at(0)), Addr::V6(at(16)), self.mix_v6(both))
            }
            other => return Err(DecodeError::Family(other)),
        };
        let word = |at| u32_at(base, at).unwrap_or(0);
        let port = |at| u16_at(base, at).unwrap_or(0);
        let kind = base[3];
        row.family = base[1];
        row.state = State(base[2]);
        row.local = Endpoint { addr: local, port: port(4) };
        row.peer = Endpoint { addr: peer, port: port(6) };
        row.rqueue = word(8);
        row.wqueue = if head.queues { Some(word(12)) } else { None };
        row.inode = word(16);
        // A time-wait socket has no owner any more.
        row.uid = if kind & MINISOCK == 0 && head.uid { Some(word(20)) } else { None };
        row.v6only = if row.state == State::LISTEN && row.family == AF_INET6 { Some(kind & V6ONLY != 0) } else { None };
        self.fill_parts(row, parts, head);
        let ends = ends_key(addresses, word(4), row.ifindex, row.netns_id, row.family);
        Ok(Keys { identity: identity(parts, head), ends })
    }

    // The keys that `fill` would find; `None` for a row that makes no sense.
    #[inline(always)]
    fn keys(&self, bytes: &[u8], head: &Head) -> Option<Keys> {
        let (base, rest) = bytes.split_first_chunk::<BASE>()?;
        let (parts, rest) = rest.split_at_checked(head.parts)?;
        let family = base[1];
        let addresses = match family {
            AF_INET => self.mix_v4(rest.first_chunk()?),
            AF_INET6 => self.mix_v6(rest.first_chunk()?),
            _ => return None,
        };
        let word = |at: Option<usize>| at.and_then(|at| u32_at(parts, at));
        let netns_id = word(head.netns).map_or(self.netns_id, u64::from);
        let ends = ends_key(addresses, u32_at(base, 4)?, word(head.bound).unwrap_or(0), netns_id, family);
        Some(Keys { identity: identity(parts, head), ends })
    }

    #[inline(always)]
    fn fill_parts(&self, row: &mut Socket<'_>, parts: &[u8], head: &Head) {
        if let Some(at) = head.bound {
            row.ifindex = u32_at(parts, at).unwrap_or(0);
            row.mark = if head.mark { u32_at(parts, at + 4) } else { None };
        }
        if let Some(at) = head.timer {
            row.timer_ms = ticks_to_ms(u32_at(parts, at).unwrap_or(0), head.hz);
            row.timer = Timer(parts.get(at + 4).copied().unwrap_or(0));
            row.retrans = parts.get(at + 5).copied().unwrap_or(0);
        }
        if let Some(at) = head.netns {
            row.netns_id = u32_at(parts, at).map_or(self.netns_id, u64::from);
        }
    }

    #[inline(always)]
    fn mix_v4(&self, both: &[u8; 8]) -> u64 {
        mix_words(self.secret, both)
    }

    #[inline(always)]
    fn mix_v6(&self, both: &[u8; 32]) -> u64 {
        mix_words(self.secret, both)
    }

    fn with_counters(
        &mut self,
        row: &Socket<'_>,
        bytes: &[u8],
        at: usize,
        keys: Keys,
        visitor: &mut impl RowVisitor,
    ) -> ControlFlow<()> {
        let small = bytes.get(3).is_some_and(|kind| kind & (MINISOCK | REQUEST) != 0);
        match bytes.get(BASE + at..).and_then(|counters| counters.first_chunk::<COUNTERS>()) {
            Some(counters) if !small => {
                put_info(&mut self.info, counters);
                visitor.row(Ok((&Socket { tcp_info: Some(TcpInfo::new(&self.info)), ..*row }, keys)))
            }
            _ => visitor.row(Ok((row, keys))),
        }
    }
}

/// `struct counters` into the places of `struct tcp_info` (include/uapi/linux/tcp.h).
fn put_info(info: &mut [u8; INFO], counters: &[u8; COUNTERS]) {
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
    // The kernel keeps the smoothed time eightfold and the deviation fourfold (tcp_get_info).
    for (to, from, by) in [(68, 44, 3), (72, 48, 2)] {
        let value = u32_at(counters, from).unwrap_or(0) >> by;
        if let Some(place) = info.get_mut(to..to + 4) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
    }
}

#[inline(always)]
fn identity(parts: &[u8], head: &Head) -> u64 {
    head.identity.and_then(|at| u64_at(parts, at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn told(block: &[u8]) -> Vec<Result<String, DecodeError>> {
        let mut found = Vec::new();
        let _ = WalkDecoder::new(9, 1).block(block, &mut |row| {
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
        let block = [&head(part::ALL)[..], &row(2, 0, &parts, &[127, 0, 0, 1, 127, 0, 0, 2])].concat();
        assert_eq!(
            told(&block),
            [Ok("Endpoint { addr: V4([127, 0, 0, 1]), port: 12345 } Endpoint { addr: V4([127, 0, 0, 2]), port: 80 } \
                 (3, Some(4)) Some(1000) 77 5 (2, 2) Some((Some(11), Some(34359738368), Some(72)))"
                .to_owned())]
        );
        // Half a socket has no counters and, in time-wait, no owner.
        let small = [&head(part::ALL)[..], &row(2, MINISOCK, &parts, &[0; 8])].concat();
        assert!(
            told(&small)[0].as_ref().is_ok_and(|told| told.contains("None 77 5 (2, 2) None")),
            "{:?}",
            told(&small)
        );
    }

    #[test]
    fn lengths_are_not_believed() {
        let good = row(10, 0, &[], &[1; 32]);
        let block = |rows: &[&[u8]]| [&[&head(0)[..]], rows].concat().concat();
        assert!(told(&block(&[&good, &good])).iter().all(Result::is_ok));
        // Too short for its family: it costs itself.
        let cut = row(10, 0, &[], &[1; 8]);
        let found = told(&block(&[&cut, &good]));
        assert!(found[0].is_err() && found[1].is_ok() && found.len() == 2);
        // No way on from a length of nothing, or of more than there is.
        for words in [0, 1, 255] {
            let mut odd = good.clone();
            odd[0] = words;
            let found = told(&block(&[&good, &odd, &good]));
            assert!(found.len() == 2 && found[1].is_err(), "{found:?}");
        }
        let mut odd = good;
        odd[1] = 3;
        assert_eq!(told(&block(&[&odd])), [Err(DecodeError::Family(3))]);
        for garbage in [&b""[..], b"nwk1", &head(1 << 31)] {
            assert!(matches!(told(garbage)[..], [Err(_)]));
        }
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
            let _ = WalkDecoder::new(9, 1).block(&[&head(0)[..], &rows.concat()].concat(), &mut |row| {
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
