//! Decodes the blocks that the walk of the connection-tracking table writes.
//!
//! ```text
//! block:  header | row | row | …
//! row:    base (36 bytes) | the parts that the header names, in the order of their bits | addresses
//! addresses: original source, destination; with the reply part its source, destination. 4 or 16 bytes each
//! ```
//! Numbers are in the machine's byte order, addresses and ports in network byte order. The writer is
//! `crates/bpf/c/conntrack_walk.bpf.c`. A block may come from a recording, so nothing in it is trusted: every length is
//! checked. Start reading at [`decode_block`]. This module does not depend on BPF.
use std::ops::ControlFlow;

use netlink::prefix::{array_at, be16_at, u16_at, u32_at, u64_at};
use netlink::{BlockHeader, BlockRows, DecodeError, PartOffsets};
use record::rows::{Conntrack, CtCounters, CtState, CtStatus, CtTuple, Nat, ip_proto};
use record::{Addr, RowBytes, RowVisitor, Rules, Value};

use crate::backends::seen::HandedOut;
use crate::uapi::{AF_INET, AF_INET6};
use record::hash::mix_into;

/// Bits of the header: the parts after the base of each row, and optional members of the base.
pub(crate) mod part {
    /// The reply tuple.
    pub(crate) const REPLY: u32 = 1;
    /// Packets and bytes.
    pub(crate) const COUNTERS: u32 = 2;
    /// Start and stop time.
    pub(crate) const TIMES: u32 = 4;
    /// Labels.
    pub(crate) const LABELS: u32 = 8;
    /// Name of the helper.
    pub(crate) const HELPER: u32 = 16;
    /// The base contains the network namespace; used if a scan covers all namespaces.
    pub(crate) const NETNS: u32 = 32;
    /// The base contains the state.
    pub(crate) const STATE: u32 = 64;
    /// Every known bit.
    pub(crate) const ALL: u32 = REPLY | COUNTERS | TIMES | LABELS | HELPER | NETNS | STATE;
}

const MAGIC: u32 = 0x326b_7463;
/// Bytes of `struct base`. Its first byte is the length of the row in words of 4 bytes.
const BASE: usize = 36;
/// Ticks until the entry expires, i32.
const LEFT: usize = 4;
/// Reference count, u32.
const USES: usize = 8;
/// Offset from which the bytes change only when the entry does. The row length, the ticks and the reference count come
/// before it.
const STEADY: usize = 12;
const FAMILY: usize = 12;
const PROTO: usize = 13;
const STATE: usize = 14;
/// Bits `HAS_…`, u8.
const HAS: usize = 15;
const STATUS: usize = 16;
/// Source and destination port of the original direction, or the values that ICMP and GRE use instead.
const PORTS: usize = 20;
const ZONE: usize = 24;
/// `ZONE_ORIG`, `ZONE_REPLY` or both, u8.
const ZONE_DIR: usize = 26;
const MARK: usize = 28;
/// Inode of the namespace, u32.
const NETNS: usize = 32;

/// Sizes of the parts in bytes.
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
/// The entry has memory for extensions, even if it is empty.
const HAS_EXTENSIONS: u8 = 16;
/// The entry has a security mark.
const HAS_SECMARK: u8 = 32;
/// `NF_CT_ZONE_DIR_ORIG`, `NF_CT_ZONE_DIR_REPL` (include/net/netfilter/nf_conntrack_zones.h); 3 is both.
const ZONE_ORIG: u8 = 1;
const ZONE_REPLY: u8 = 2;

/// A header with these parts, for the fuzzer and for tests.
pub(crate) fn header(parts: u32) -> [u8; 32] {
    BlockHeader::bytes(MAGIC, parts, 0)
}

/// Offsets of the parts within a row, derived from the block's header; `None` for parts that its rows lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    reply: Option<usize>,
    counters: Option<usize>,
    times: Option<usize>,
    labels: Option<usize>,
    helper: Option<usize>,
    has_netns: bool,
    /// Offset of the addresses.
    addresses: usize,
    /// True if the kernel tracks the states of DCCP; otherwise the state of such an entry has no meaning.
    tracks_dccp: bool,
    /// Ticks of the kernel's clock per second.
    hz: u32,
    /// Identifies parts and ticks: the same bytes under the same layout are the same row.
    layout: u64,
}

impl Layout {
    fn from_block(block: &[u8], tracks_dccp: bool) -> Result<Layout, DecodeError> {
        let header = BlockHeader::parse(block, MAGIC, part::ALL)?;
        let mut offsets = PartOffsets::new(&header, BASE);
        Ok(Layout {
            reply: offsets.take_offset(part::REPLY, REPLY),
            counters: offsets.take_offset(part::COUNTERS, COUNTERS),
            times: offsets.take_offset(part::TIMES, TIMES),
            labels: offsets.take_offset(part::LABELS, LABELS),
            helper: offsets.take_offset(part::HELPER, HELPER),
            has_netns: header.has_part(part::NETNS),
            tracks_dccp,
            addresses: offsets.end(),
            hz: header.hz,
            layout: header.layout(),
        })
    }

    fn has_extensions(&self) -> bool {
        self.counters.is_some() || self.times.is_some() || self.labels.is_some() || self.helper.is_some()
    }
}

/// The undecoded bytes of an entry, which identify it without decoding its fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryBytes<'b> {
    bytes: &'b [u8],
    /// Offset of the addresses.
    addresses: usize,
    netns_id: u64,
}

impl<'b> EntryBytes<'b> {
    #[inline(always)]
    fn new(bytes: &'b [u8], layout: &Layout, netns_id: u64) -> EntryBytes<'b> {
        let own = if layout.has_netns { u32_at(bytes, NETNS) } else { None };
        EntryBytes { bytes, addresses: layout.addresses, netns_id: own.map_or(netns_id, u64::from) }
    }

    /// Records that the entry was handed out.
    #[inline(always)]
    pub(crate) fn add_to(&self, handed_out: &mut HandedOut) {
        if !handed_out.is_noting() {
            return;
        }
        let part = |at| be16_at(self.bytes, at).unwrap_or(0);
        let byte = |at| self.bytes.get(at).copied().unwrap_or(0);
        let addresses = self.bytes.get(self.addresses..).unwrap_or_default();
        let both = addresses.get(..if byte(FAMILY) == AF_INET6 { 32 } else { 8 }).unwrap_or_default();
        let zone = u16_at(self.bytes, ZONE).unwrap_or(0);
        handed_out.add([part(PORTS), part(PORTS + 2)], zone, byte(PROTO), self.netns_id, both);
    }
}

/// Passes every row of a block to `visitor`; `netns_id` is used for rows whose namespace the block does not contain.
///
/// A malformed row only costs that row; an invalid row length costs the rest of the block.
pub(crate) fn decode_block(
    block: &[u8],
    netns_id: u64,
    tracks_dccp: bool,
    visitor: &mut impl for<'b> RowVisitor<Nat, EntryBytes<'b>, DecodeError>,
) -> ControlFlow<()> {
    let mut rows = 0;
    let flow = decode_rows(block, netns_id, tracks_dccp, visitor, &mut rows);
    visitor.add_arrived(rows);
    flow
}

// `rows` counts what is passed to the visitor, errors included.
fn decode_rows(
    block: &[u8],
    netns_id: u64,
    tracks_dccp: bool,
    visitor: &mut impl for<'b> RowVisitor<Nat, EntryBytes<'b>, DecodeError>,
    rows: &mut u64,
) -> ControlFlow<()> {
    let layout = match Layout::from_block(block, tracks_dccp) {
        Ok(layout) => layout,
        Err(error) => {
            *rows += 1;
            return visitor.row(Err(error));
        }
    };
    let reuses_rows = visitor.reuses_rows();
    let rules = Rules { netns_id, layout: layout.layout };
    // One row is reused: most of its 600 bytes stay the same.
    let mut row = Conntrack { netns_id, ..Conntrack::EMPTY };
    for bytes in BlockRows::new(block, BASE) {
        *rows += 1;
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => return visitor.row(Err(error)),
        };
        let entry = EntryBytes::new(bytes, &layout, netns_id);
        if let Some((key, steady)) = if reuses_rows { key(bytes, &layout) } else { None } {
            let beside = Value::number(time_left(bytes, &layout));
            if let Some(flow) = visitor.reuse(RowBytes { rules, key, bytes: steady, beside }, entry) {
                flow?;
                continue;
            }
        }
        match fill(&mut row, bytes, &layout) {
            Ok(()) => visitor.row(Ok((&row, entry)))?,
            Err(error) => visitor.row(Err(error))?,
        }
    }
    ControlFlow::Continue(())
}

/// A key that two entries rarely share, and the bytes of the row that change only when the entry does.
#[inline(always)]
fn key<'b>(bytes: &'b [u8], head: &Layout) -> Option<(u64, &'b [u8])> {
    let mut key = u64::from(u32_at(bytes, PORTS)?);
    let words = if *bytes.get(FAMILY)? == AF_INET6 { 4 } else { 1 };
    for word in 0..words {
        key = mix_into(key, u64_at(bytes, head.addresses + 8 * word)?);
    }
    Some((key, bytes.get(STEADY..)?))
}

/// The source ports of both directions of a row that the walk offers as bytes: a socket at either end of the connection
/// has one of them. For protocols without ports these are other numbers.
#[inline]
pub fn source_ports(row: &RowBytes<'_>) -> Option<[u16; 2]> {
    let reply = if row.rules.layout >> 32 & u64::from(part::REPLY) != 0 { BASE } else { PORTS };
    Some([be16_at(row.bytes, PORTS - STEADY)?, be16_at(row.bytes, reply - STEADY)?])
}

/// Seconds until the entry expires; `None` for an entry in a flow table.
#[inline(always)]
fn time_left(bytes: &[u8], head: &Layout) -> Option<u32> {
    let left = u32_at(bytes, LEFT).unwrap_or(0) as i32;
    // The kernel keeps neither timeout nor state for an entry in a flow table, and netlink reports neither.
    let offloaded = CtStatus(u32_at(bytes, STATUS).unwrap_or(0)).contains(CtStatus::OFFLOAD);
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
    // An entry without a timeout is in a flow table and has no state.
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
    // An entry may have memory for labels without any label set; netlink does not report such labels either.
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
        let block = [&header(0)[..], &row([2, ip_proto::DCCP, 3], 250, (0, 3), 0, &[1; 8])].concat();
        for (tracks_dccp, state) in [(true, Some(CtState::Dccp(3))), (false, None)] {
            let mut found = Vec::new();
            let _ = decode_block(&block, 9, tracks_dccp, &mut |row: Result<
                (&Conntrack<'_>, EntryBytes<'_>),
                DecodeError,
            >| {
                found.push(row.unwrap().0.state);
                ControlFlow::Continue(())
            });
            assert_eq!(found, [state]);
        }
    }

    fn decode_row(block: &[u8]) -> Vec<Result<String, DecodeError>> {
        let mut found = Vec::new();
        let _ = decode_block(block, 9, true, &mut |row: Result<(&Conntrack<'_>, EntryBytes<'_>), DecodeError>| {
            found.push(row.map(|(row, _)| {
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
        let block = [&header(part::ALL)[..], &row([2, 6, 3], 1000, (0, 3), 15, &every_part())].concat();
        let want = "10.0.0.1:12345>10.0.0.2:80 10.0.0.2:80>10.0.0.1:12345 Some(4) Some(false) Some(Tcp(3)) 4026 \
                    (None, None, None) (Some(1), Some(4)) (Some(5), None) (Some(33), Some(\"ftp\"))";
        assert_eq!(decode_row(&block), [Ok(want.to_owned())]);
    }

    #[test]
    fn what_an_entry_does_not_have() {
        let without = row([2, 17, 0xff], -250, (0, 3), 0, &every_part());
        let with = row([2, 6, 3], 1000, (5, 3), 15, &every_part());
        let found = decode_row(&[&header(part::ALL)[..], &with, &without, &with].concat());
        assert!(found[0].as_ref().unwrap().contains("(Some(5), None, None) (Some(1), Some(4))"), "{found:?}");
        let ends = "Some(0) Some(true) None 4026 (None, None, None) (None, None) (None, None) (None, None)";
        assert!(found[1].as_ref().unwrap().ends_with(ends), "{found:?}");
        assert_eq!(found[0], found[2]);
    }

    /// A cache that recognises every row.
    struct KnowsAll(Vec<(u64, Option<[u16; 2]>, String)>);

    impl RowVisitor<Nat, EntryBytes<'_>, DecodeError> for KnowsAll {
        fn row(&mut self, row: Result<(&Conntrack<'_>, EntryBytes<'_>), DecodeError>) -> ControlFlow<()> {
            panic!("{row:?}")
        }

        fn reuses_rows(&self) -> bool {
            true
        }

        fn reuse(&mut self, bytes: RowBytes<'_>, _: EntryBytes<'_>) -> Option<ControlFlow<()>> {
            self.0.push((bytes.key, source_ports(&bytes), format!("{:?} {:?}", bytes.bytes, bytes.beside)));
            Some(ControlFlow::Continue(()))
        }
    }

    #[test]
    fn rows_as_bytes() {
        let mut rest = vec![0, 80, 0x30, 0x39];
        rest.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 2, 10, 0, 0, 1]);
        let told = |parts, left, rest: &[u8]| {
            let mut known = KnowsAll(Vec::new());
            let block = [&header(parts)[..], &row([2, 6, 3], left, (0, 3), 0, rest)].concat();
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
            let block = [&header(0)[..], &row([2, 6, 1], 250, (4, direction), 0, &[1; 8])].concat();
            let found = decode_row(&block);
            assert!(found[0].as_ref().unwrap().contains(want), "{found:?}");
            assert!(found[0].as_ref().unwrap().contains(" 9 "), "the namespace that was asked for");
        }
    }

    #[test]
    fn offloaded_ones_have_no_time() {
        let mut one = row([2, 6, 3], 1000, (0, 3), 0, &[1; 8]);
        one[STATUS..STATUS + 4].copy_from_slice(&(CtStatus::OFFLOAD | 8).to_ne_bytes());
        assert!(decode_row(&[&header(0)[..], &one].concat())[0].as_ref().unwrap().contains(" None Some(false) None "));
    }

    #[test]
    fn lengths_are_not_believed() {
        let good = row([10, 6, 1], 1, (0, 3), 0, &[1; 32]);
        let block = |rows: &[&[u8]]| [&[&header(0)[..]], rows].concat().concat();
        assert!(decode_row(&block(&[&good, &good])).iter().all(Result::is_ok));
        // The row is too short for its family: only this row is lost.
        let cut = row([10, 6, 1], 1, (0, 3), 0, &[1; 8]);
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
        odd[FAMILY] = 3;
        assert_eq!(decode_row(&block(&[&odd])), [Err(DecodeError::Family(3))]);
        for garbage in [&b""[..], b"ctk1", &header(1024)] {
            assert!(matches!(decode_row(garbage)[..], [Err(_)]));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        #[test]
        fn any_bytes_are_survived(parts in 0u32..256, bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = decode_row(&[&header(parts)[..], &bytes].concat());
        }
    }
}
