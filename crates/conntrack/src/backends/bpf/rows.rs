//! What the walk of the connection-tracking table writes, as rows.
//!
//! A block is a head and rows behind it; both are written by `crates/bpf/c/conntrack_walk.bpf.c`, in the machine's byte
//! order. A row is its base, its parts, its addresses; the head tells which parts there are, so a block from a recording
//! explains itself. Blocks may come from a hostile file: every length is checked, none is believed. Knows no BPF.
use std::ops::ControlFlow;

use netlink::DecodeError;
use netlink::prefix::{array_at, be16_at, u16_at, u32_at, u64_at};
use record::rows::{Conntrack, CtCounters, CtState, CtStatus, CtTuple, ip_proto};
use record::{Addr, RowBytes, Rules, Value};

use crate::backends::netlink::uapi::{AF_INET, AF_INET6};
use crate::backends::seen::{HandedOut, mix};

/// Parts that may follow the base of a row, and members of the base that cost more than the rest.
pub(crate) mod part {
    /// The reply tuple.
    pub(crate) const REPLY: u32 = 1;
    /// Packets and bytes.
    pub(crate) const COUNTERS: u32 = 2;
    /// Begin and end.
    pub(crate) const TIMES: u32 = 4;
    /// Labels.
    pub(crate) const LABELS: u32 = 8;
    /// Name of the helper.
    pub(crate) const HELPER: u32 = 16;
    /// The base's network namespace is filled in: for tables of all of them.
    pub(crate) const NETNS: u32 = 32;
    /// The base's state is filled in.
    pub(crate) const STATE: u32 = 64;
    /// Every part that is known.
    pub(crate) const ALL: u32 = REPLY | COUNTERS | TIMES | LABELS | HELPER | NETNS | STATE;
}

/// `struct head`: magic, parts u32; jiffies, monotonic time u64; place of the addresses, pad u32.
const HEAD: usize = 32;
const MAGIC: u32 = 0x326b_7463;
/// `struct base`: words u8, pad u24; left, uses u32; family, protocol, state, has u8; status u32; ports, zone u16; the
/// zone's direction, pad u8; mark, netns u32.
const BASE: usize = 36;
/// What is before this place changes by itself: time, references.
const STEADY: usize = 12;
const LEFT: usize = 4;
const USES: usize = 8;
const FAMILY: usize = 12;
const PROTO: usize = 13;
const STATE: usize = 14;
const HAS: usize = 15;
const STATUS: usize = 16;
const PORTS: usize = 20;
const ZONE: usize = 24;
const ZONE_DIR: usize = 26;
const MARK: usize = 28;
const NETNS: usize = 32;
const REPLY: usize = 4;
const COUNTERS: usize = 32;
const TIMES: usize = 16;
const LABELS: usize = 16;
const HELPER: usize = 16;

/// Bits of `has`.
const HAS_COUNTERS: u8 = 1;
const HAS_TIMES: u8 = 2;
const HAS_LABELS: u8 = 4;
const HAS_HELPER: u8 = 8;
/// There is memory for extensions, whatever is in it.
const HAS_EXTENSIONS: u8 = 16;
/// There is a security mark.
const HAS_SECMARK: u8 = 32;
/// `NF_CT_ZONE_DIR_ORIG`, `NF_CT_ZONE_DIR_REPL` (include/net/netfilter/nf_conntrack_zones.h); 3 is both.
const ZONE_ORIG: u8 = 1;
const ZONE_REPLY: u8 = 2;

/// The head of a block with these parts, 250 ticks a second: for the fuzzer and for tests.
pub(crate) fn head(parts: u32) -> [u8; HEAD] {
    let (jiffies, monotonic_ns) = ((1u64 << 32) + 700 * 250, 1_000_000_000_000u64);
    let mut head = [0; HEAD];
    let fields = [u64::from(MAGIC) | u64::from(parts) << 32, jiffies, monotonic_ns];
    head.chunks_exact_mut(8).zip(fields).for_each(|(place, field)| place.copy_from_slice(&field.to_ne_bytes()));
    head
}

/// What a block's head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    reply: Option<usize>,
    counters: Option<usize>,
    times: Option<usize>,
    labels: Option<usize>,
    helper: Option<usize>,
    has_netns: bool,
    /// Where a row's addresses begin.
    addresses: usize,
    /// The kernel tracks states of DCCP.
    tracks_dccp: bool,
    /// Ticks of the kernel's clock a second.
    hz: u32,
    /// Parts and ticks: by which rules rows are decoded.
    layout: u64,
}

impl Layout {
    fn of(block: &[u8], tracks_dccp: bool) -> Result<Layout, DecodeError> {
        let short = DecodeError::Short { what: "block of the walk", claims: HEAD, has: block.len() };
        let word = |at| u32_at(block, at).ok_or(short);
        let parts = word(4)?;
        if block.len() < HEAD || word(0)? != MAGIC || parts & !part::ALL != 0 {
            return Err(short);
        }
        let mut at = BASE;
        let mut place = |bit, bytes| {
            let here = (parts & bit != 0).then_some(at);
            at += if here.is_some() { bytes } else { 0 };
            here
        };
        let reply = place(part::REPLY, REPLY);
        let counters = place(part::COUNTERS, COUNTERS);
        let times = place(part::TIMES, TIMES);
        let labels = place(part::LABELS, LABELS);
        let helper = place(part::HELPER, HELPER);
        let hz = sys::clock::jiffies_per_second(u64_at(block, 8).ok_or(short)?, u64_at(block, 16).ok_or(short)?).max(1);
        let (has_netns, layout) = (parts & part::NETNS != 0, u64::from(parts) << 32 | u64::from(hz));
        Ok(Layout { reply, counters, times, labels, helper, has_netns, tracks_dccp, addresses: at, hz, layout })
    }

    fn has_extensions(&self) -> bool {
        self.counters.is_some() || self.times.is_some() || self.labels.is_some() || self.helper.is_some()
    }
}

/// Who takes rows.
pub(crate) trait RowVisitor {
    /// So many rows stood in a block; each was handed on by one of the others. Called once for a block.
    fn arrived(&mut self, rows: u64) {
        let _ = rows;
    }

    /// A decoded row.
    fn row(&mut self, row: Result<&Conntrack<'_>, DecodeError>) -> ControlFlow<()>;

    /// Where what is handed on is to be noted, if anywhere.
    fn notes(&mut self) -> Option<&mut HandedOut> {
        None
    }

    /// True if [`RowVisitor::again`] shall be asked.
    fn knows_bytes(&self) -> bool {
        false
    }

    /// Whether more is wanted after a row that is the same as before, but for the time left that stands beside it; `None`
    /// if it is not and must be decoded.
    fn reuse(&mut self, bytes: RowBytes<'_>) -> Option<ControlFlow<()>> {
        let _ = bytes;
        None
    }
}

impl<F: FnMut(Result<&Conntrack<'_>, DecodeError>) -> ControlFlow<()>> RowVisitor for F {
    fn row(&mut self, row: Result<&Conntrack<'_>, DecodeError>) -> ControlFlow<()> {
        self(row)
    }
}

/// Hands every row of a block to `visitor`; `netns_id` is for those whose namespace the block does not tell.
///
/// A row that makes no sense costs itself; one whose length makes none costs the rest of the block.
pub(crate) fn decode_block(
    block: &[u8],
    netns_id: u64,
    tracks_dccp: bool,
    visitor: &mut impl RowVisitor,
) -> ControlFlow<()> {
    let mut rows = 0;
    let flow = decode_each(block, netns_id, tracks_dccp, visitor, &mut rows);
    visitor.arrived(rows);
    flow
}

// `rows` counts what is handed on, whatever becomes of it.
fn decode_each(
    block: &[u8],
    netns_id: u64,
    tracks_dccp: bool,
    visitor: &mut impl RowVisitor,
    rows: &mut u64,
) -> ControlFlow<()> {
    let head = match Layout::of(block, tracks_dccp) {
        Ok(head) => head,
        Err(error) => {
            *rows += 1;
            return visitor.row(Err(error));
        }
    };
    let asks = visitor.knows_bytes();
    let rules = Rules { netns_id, layout: head.layout };
    // Filled anew for every row: most of its 600 bytes stay as they are.
    let mut row = Conntrack { netns_id, ..Conntrack::EMPTY };
    let mut rest = block.get(HEAD..).unwrap_or_default();
    while let Some(words) = rest.first() {
        *rows += 1;
        let size = usize::from(*words) * 4;
        let Some((bytes, behind)) = rest.split_at_checked(size).filter(|_| size >= BASE) else {
            let (claims, has) = (size.max(BASE), rest.len());
            return visitor.row(Err(DecodeError::Short { what: "row of the walk", claims, has }));
        };
        rest = behind;
        if let Some((key, steady)) = if asks { key(bytes, &head) } else { None } {
            let beside = Value::number(time_left(bytes, &head));
            if let Some(flow) = visitor.reuse(RowBytes { rules, key, bytes: steady, beside }) {
                note(visitor, bytes, &head, netns_id);
                flow?;
                continue;
            }
        }
        match fill(&mut row, bytes, &head) {
            Ok(()) => {
                note(visitor, bytes, &head, netns_id);
                visitor.row(Ok(&row))?;
            }
            Err(error) => visitor.row(Err(error))?,
        }
    }
    ControlFlow::Continue(())
}

/// Notes a row that makes sense where its visitor wants that.
#[inline(always)]
fn note(visitor: &mut impl RowVisitor, bytes: &[u8], head: &Layout, netns_id: u64) {
    let Some(notes) = visitor.notes() else { return };
    let part = |at| be16_at(bytes, at).unwrap_or(0);
    let byte = |at| bytes.get(at).copied().unwrap_or(0);
    let addresses = bytes.get(head.addresses..).unwrap_or_default();
    let both = addresses.get(..if byte(FAMILY) == AF_INET6 { 32 } else { 8 }).unwrap_or_default();
    let netns_id = if head.has_netns { u32_at(bytes, NETNS).unwrap_or(0).into() } else { netns_id };
    let zone = u16_at(bytes, ZONE).unwrap_or(0);
    notes.note([part(PORTS), part(PORTS + 2)], zone, byte(PROTO), netns_id, both);
}

/// What only the same entry has again, nearly always, and all of the row that does not change by itself.
#[inline(always)]
fn key<'b>(bytes: &'b [u8], head: &Layout) -> Option<(u64, &'b [u8])> {
    let mut key = u64::from(u32_at(bytes, PORTS)?);
    let words = if *bytes.get(FAMILY)? == AF_INET6 { 4 } else { 1 };
    for word in 0..words {
        key = mix(key, u64_at(bytes, head.addresses + 8 * word)?);
    }
    Some((key, bytes.get(STEADY..)?))
}

/// Of a row that a source of ours shows as bytes: the source ports of its original direction and of its answers, which
/// are those of sockets that hold its ends. What is none for protocols without ports does no harm.
#[inline]
pub fn own_ports(row: &RowBytes<'_>) -> Option<[u16; 2]> {
    let reply = if row.rules.layout >> 32 & u64::from(part::REPLY) != 0 { BASE } else { PORTS };
    Some([be16_at(row.bytes, PORTS - STEADY)?, be16_at(row.bytes, reply - STEADY)?])
}

/// Seconds; `None` for an entry that a flow table has.
#[inline(always)]
fn time_left(bytes: &[u8], head: &Layout) -> Option<u32> {
    let left = u32_at(bytes, LEFT).unwrap_or(0) as i32;
    // By a flow table the kernel keeps neither time nor state, and netlink tells neither.
    let offloaded = CtStatus(u32_at(bytes, STATUS).unwrap_or(0)).has(CtStatus::OFFLOAD);
    if offloaded { None } else { Some(left.max(0) as u32 / head.hz) }
}

#[inline(always)]
fn fill<'b>(row: &mut Conntrack<'b>, bytes: &'b [u8], head: &Layout) -> Result<(), DecodeError> {
    let short = |claims| DecodeError::Short { what: "row of the walk", claims, has: bytes.len() };
    let Some(base) = bytes.first_chunk::<BASE>() else { return Err(short(BASE)) };
    let word = |at| u32_at(base, at).unwrap_or(0);
    let (family, proto) = (base[FAMILY], base[PROTO]);
    row.family = family;
    let addresses = bytes.get(head.addresses..).unwrap_or_default();
    let [src, dst, reply_src, reply_dst] = match (family, head.reply.is_some()) {
        (AF_INET, true) => take_v4(addresses.first_chunk::<16>().ok_or(short(head.addresses + 16))?),
        (AF_INET, false) => take_v4(addresses.first_chunk::<8>().ok_or(short(head.addresses + 8))?),
        (AF_INET6, true) => take_v6(addresses.first_chunk::<64>().ok_or(short(head.addresses + 64))?),
        (AF_INET6, false) => take_v6(addresses.first_chunk::<32>().ok_or(short(head.addresses + 32))?),
        _ => return Err(DecodeError::Family(family)),
    };
    let parts = |at| (be16_at(bytes, at).unwrap_or(0), be16_at(bytes, at + 2).unwrap_or(0));
    let (src_part, dst_part) = parts(PORTS);
    row.orig = CtTuple { src, dst, proto, src_part, dst_part, zone: None };
    row.reply = match head.reply {
        Some(at) => {
            let (src_part, dst_part) = parts(at);
            CtTuple { src: reply_src, dst: reply_dst, proto, src_part, dst_part, zone: None }
        }
        None => CtTuple::EMPTY,
    };
    let has = base[HAS];
    row.status = Some(CtStatus(word(STATUS)));
    row.expired = Some(word(LEFT) as i32 <= 0);
    row.timeout_s = time_left(base, head);
    // What has no time has no state: a flow table has it.
    row.state =
        row.timeout_s.and_then(|_| state(proto, base[STATE]).filter(|_| proto != ip_proto::DCCP || head.tracks_dccp));
    row.mark = Some(word(MARK));
    row.uses = Some(word(USES));
    row.extended = Some(has & HAS_EXTENSIONS != 0);
    row.secctx_untold = has & HAS_SECMARK != 0;
    if head.has_netns {
        row.netns_id = word(NETNS).into();
    }
    put_zone(row, u16_at(base, ZONE).unwrap_or(0), base[ZONE_DIR]);
    if head.has_extensions() {
        put_extensions(row, bytes, has, head);
    }
    Ok(())
}

#[inline]
fn take_v4<const N: usize>(bytes: &[u8; N]) -> [Addr; 4] {
    [0, 4, 8, 12].map(|at| Addr::V4(array_at(bytes, at).unwrap_or_default()))
}

#[inline]
fn take_v6<const N: usize>(bytes: &[u8; N]) -> [Addr; 4] {
    [0, 16, 32, 48].map(|at| Addr::V6(array_at(bytes, at).unwrap_or_default()))
}

#[inline]
fn state(proto: u8, number: u8) -> Option<CtState> {
    match proto {
        _ if number == 0xff => None,
        ip_proto::TCP => Some(CtState::Tcp(number)),
        ip_proto::SCTP => Some(CtState::Sctp(number)),
        ip_proto::DCCP => Some(CtState::Dccp(number)),
        _ => None,
    }
}

#[inline]
fn put_zone(row: &mut Conntrack<'_>, zone: u16, direction: u8) {
    row.zone = None;
    match direction {
        _ if zone == 0 => {}
        ZONE_ORIG => row.orig.zone = Some(zone),
        ZONE_REPLY => row.reply.zone = Some(zone),
        _ => row.zone = Some(zone),
    }
}

fn put_extensions<'b>(row: &mut Conntrack<'b>, bytes: &'b [u8], has: u8, head: &Layout) {
    let at = |place: Option<usize>, bit: u8| place.filter(|_| has & bit != 0);
    let counters = |at: usize| Some(CtCounters { packets: u64_at(bytes, at)?, bytes: u64_at(bytes, at + 8)? });
    let counted = at(head.counters, HAS_COUNTERS);
    row.counters_orig = counted.and_then(counters);
    row.counters_reply = counted.and_then(|at| counters(at + 16));
    let times = at(head.times, HAS_TIMES);
    row.start_ns = times.and_then(|at| u64_at(bytes, at));
    row.stop_ns = times.and_then(|at| u64_at(bytes, at + 8)).filter(|stop| *stop != 0);
    let labels = at(head.labels, HAS_LABELS).and_then(|at| bytes.get(at..at + LABELS));
    // Room for labels is no label: netlink does not tell it either.
    row.labels = labels.filter(|bits| bits.iter().any(|bits| *bits != 0));
    let name = at(head.helper, HAS_HELPER).and_then(|at| bytes.get(at..at + HELPER));
    row.helper = name.and_then(|name| name.split(|byte| *byte == 0).next()).filter(|name| !name.is_empty());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn row(kind: [u8; 3], left: i32, zone: (u16, u8), has: u8, rest: &[u8]) -> Vec<u8> {
        let [family, proto, state] = kind;
        let mut row = vec![0; 4];
        row.extend_from_slice(&left.to_ne_bytes());
        row.extend_from_slice(&1u32.to_ne_bytes());
        row.extend_from_slice(&[family, proto, state, has]);
        row.extend_from_slice(&0x18eu32.to_ne_bytes());
        row.extend_from_slice(&[0x30, 0x39, 0, 80]);
        row.extend_from_slice(&zone.0.to_ne_bytes());
        row.extend_from_slice(&[zone.1, 0]);
        for word in [7u32, 4026] {
            row.extend_from_slice(&word.to_ne_bytes());
        }
        row.extend_from_slice(rest);
        row[0] = (row.len() / 4) as u8;
        row
    }

    #[test]
    fn issue_10_a_kernel_without_states_of_dccp_has_none() {
        let block = [&head(0)[..], &row([2, ip_proto::DCCP, 3], 250, (0, 3), 0, &[1; 8])].concat();
        for (tracks_dccp, state) in [(true, Some(CtState::Dccp(3))), (false, None)] {
            let mut found = Vec::new();
            let _ = decode_block(&block, 9, tracks_dccp, &mut |row: Result<&Conntrack<'_>, DecodeError>| {
                found.push(row.unwrap().state);
                ControlFlow::Continue(())
            });
            assert_eq!(found, [state]);
        }
    }

    fn told(block: &[u8]) -> Vec<Result<String, DecodeError>> {
        let mut found = Vec::new();
        let _ = decode_block(block, 9, true, &mut |row: Result<&Conntrack<'_>, DecodeError>| {
            found.push(row.map(|row| {
                let Conntrack { orig, reply, timeout_s, expired, state, netns_id, .. } = row;
                let end = |addr: Addr, part: u16| format!("{addr}:{part}");
                let tuple = |t: &CtTuple| format!("{}>{}", end(t.src, t.src_part), end(t.dst, t.dst_part));
                let zones = (row.zone, orig.zone, reply.zone);
                format!(
                    "{} {} {timeout_s:?} {expired:?} {state:?} {netns_id} {zones:?} {:?} {:?} {:?}",
                    tuple(orig),
                    tuple(reply),
                    (row.counters_orig.map(|c| c.packets), row.counters_reply.map(|c| c.bytes)),
                    (row.start_ns, row.stop_ns),
                    (row.labels.map(|bits| bits[0]), row.helper.map(String::from_utf8_lossy))
                )
            }));
            ControlFlow::Continue(())
        });
        found
    }

    fn every_part() -> Vec<u8> {
        let mut rest = vec![0, 80, 0x30, 0x39];
        for number in [1u64, 2, 3, 4, 5, 0] {
            rest.extend_from_slice(&number.to_ne_bytes());
        }
        rest.extend_from_slice(&[0x21; 16]);
        rest.extend_from_slice(b"ftp\0garbage.....");
        rest.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 2, 10, 0, 0, 1]);
        rest
    }

    #[test]
    fn every_part_has_its_place() {
        let block = [&head(part::ALL)[..], &row([2, 6, 3], 1000, (0, 3), 15, &every_part())].concat();
        let want = "10.0.0.1:12345>10.0.0.2:80 10.0.0.2:80>10.0.0.1:12345 Some(4) Some(false) Some(Tcp(3)) 4026 \
                    (None, None, None) (Some(1), Some(4)) (Some(5), None) (Some(33), Some(\"ftp\"))";
        assert_eq!(told(&block), [Ok(want.to_owned())]);
    }

    #[test]
    fn what_an_entry_does_not_have() {
        let without = row([2, 17, 0xff], -250, (0, 3), 0, &every_part());
        let with = row([2, 6, 3], 1000, (5, 3), 15, &every_part());
        let found = told(&[&head(part::ALL)[..], &with, &without, &with].concat());
        assert!(found[0].as_ref().unwrap().contains("(Some(5), None, None) (Some(1), Some(4))"), "{found:?}");
        let ends = "Some(0) Some(true) None 4026 (None, None, None) (None, None) (None, None) (None, None)";
        assert!(found[1].as_ref().unwrap().ends_with(ends), "{found:?}");
        assert_eq!(found[0], found[2]);
    }

    /// Knows every row.
    struct KnowsAll(Vec<(u64, Option<[u16; 2]>, String)>);

    impl RowVisitor for KnowsAll {
        fn row(&mut self, row: Result<&Conntrack<'_>, DecodeError>) -> ControlFlow<()> {
            panic!("{row:?}")
        }

        fn knows_bytes(&self) -> bool {
            true
        }

        fn reuse(&mut self, bytes: RowBytes<'_>) -> Option<ControlFlow<()>> {
            self.0.push((bytes.key, own_ports(&bytes), format!("{:?} {:?}", bytes.bytes, bytes.beside)));
            Some(ControlFlow::Continue(()))
        }
    }

    #[test]
    fn rows_as_bytes() {
        let mut rest = vec![0, 80, 0x30, 0x39];
        rest.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 2, 10, 0, 0, 1]);
        let told = |parts, left, rest: &[u8]| {
            let mut known = KnowsAll(Vec::new());
            let block = [&head(parts)[..], &row([2, 6, 3], left, (0, 3), 0, rest)].concat();
            assert!(decode_block(&block, 9, true, &mut known).is_continue());
            known.0.remove(0)
        };
        let (one, later) = (told(part::REPLY, 5000, &rest), told(part::REPLY, 4750, &rest));
        assert_eq!((one.0, one.1), (later.0, Some([12345, 80])));
        let end = |words: &str| words.split("] ").last().unwrap().to_owned();
        assert_eq!((end(&one.2), end(&later.2)), ("U64(20)".into(), "U64(19)".into()));
        assert_eq!(one.2.split("] ").next(), later.2.split("] ").next());
        assert_eq!(told(0, 250, rest.get(4..12).unwrap()).1, Some([12345, 12345]), "the only direction there is");
        rest[4] = 11;
        assert_ne!(told(part::REPLY, 5000, &rest).0, one.0);
    }

    #[test]
    fn zones_of_one_direction() {
        for (direction, want) in
            [(1, "(None, Some(4), None)"), (2, "(None, None, Some(4))"), (3, "(Some(4), None, None)")]
        {
            let block = [&head(0)[..], &row([2, 6, 1], 250, (4, direction), 0, &[1; 8])].concat();
            let found = told(&block);
            assert!(found[0].as_ref().unwrap().contains(want), "{found:?}");
            assert!(found[0].as_ref().unwrap().contains(" 9 "), "the namespace that was asked for");
        }
    }

    #[test]
    fn offloaded_ones_have_no_time() {
        let mut one = row([2, 6, 3], 1000, (0, 3), 0, &[1; 8]);
        one[STATUS..STATUS + 4].copy_from_slice(&(CtStatus::OFFLOAD | 8).to_ne_bytes());
        assert!(told(&[&head(0)[..], &one].concat())[0].as_ref().unwrap().contains(" None Some(false) None "));
    }

    #[test]
    fn lengths_are_not_believed() {
        let good = row([10, 6, 1], 1, (0, 3), 0, &[1; 32]);
        let block = |rows: &[&[u8]]| [&[&head(0)[..]], rows].concat().concat();
        assert!(told(&block(&[&good, &good])).iter().all(Result::is_ok));
        // Too short for its family: it costs itself.
        let cut = row([10, 6, 1], 1, (0, 3), 0, &[1; 8]);
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
        odd[FAMILY] = 3;
        assert_eq!(told(&block(&[&odd])), [Err(DecodeError::Family(3))]);
        for garbage in [&b""[..], b"ctk1", &head(1024)] {
            assert!(matches!(told(garbage)[..], [Err(_)]));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        #[test]
        fn any_bytes_are_survived(parts in 0u32..256, bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = told(&[&head(parts)[..], &bytes].concat());
        }
    }
}
