//! One reading of the counters as bytes: stored in a recording and decoded into rows.
//!
//! ```text
//! header  magic, flags, ns of the round, merged, lost, missed, number of rows
//! rows    of ROW_BYTES each: key, packets of the round, packets of the run, bytes of the round, sample
//! names   kind, number, length, text
//! ```
use std::collections::{BTreeMap, HashMap};

use record::rows::PacketDrop;
use record::{Addr, text};

use crate::error::DropsError;
use crate::hook;
use crate::meaning::{is_benign, meaning_of};
use crate::names::{FUNCTION, REASON, put_name, read_names};
use crate::via::DropsVia;

/// `netwren drops`, and the version of this layout.
const MAGIC: u64 = u64::from_ne_bytes(*b"nwdrops1");
const HEADER_BYTES: usize = 56;
pub(crate) const KEY_BYTES: usize = 24;
pub(crate) const SAMPLE_BYTES: usize = 248;
/// Offset of the hook in a key; a value that no hook has marks packets that were counted by reason and place only.
const HOOK_AT: usize = 23;
const MERGED: u8 = 255;
const STACK_BYTES_AT: usize = 52;
const STACK_AT: usize = 56;
const FRAMES: usize = 24;
/// Key, three numbers, sample.
pub(crate) const ROW_BYTES: usize = KEY_BYTES + 24 + SAMPLE_BYTES;

/// Flags of the header.
const ALL_NETNS: u64 = 1;
const NAMES_HIDDEN: u64 = 1 << 1;
const NO_REASONS: u64 = 1 << 2;
const BY_TRACE: u64 = 1 << 3;
const BY_NET_DM: u64 = 1 << 4;

/// The program's `HAS_…` flags.
pub(crate) const HAS_ADDRESSES: u8 = 1;
pub(crate) const HAS_PORTS: u8 = 2;
const HAS_SOCKET: u8 = 4;
const HAS_FLAGS: u8 = 8;
pub(crate) const ETH_P_IPV6: u16 = 0x86dd;
/// The reason of drops by firewall rules and by connection tracking.
pub(crate) const NETFILTER_DROP: &[u8] = b"NETFILTER_DROP";

/// The header of a block of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RoundHeader {
    /// Duration of the round in ns.
    pub(crate) round_ns: u64,
    /// Packets of the round that were counted by reason and place only.
    pub(crate) merged: u64,
    /// Packets of the round that are missing in the counts.
    pub(crate) lost: u64,
    /// Drops that happened in interrupts of the program.
    pub(crate) missed: u64,
    /// True if all namespaces were counted.
    pub(crate) all_netns: bool,
    /// True if the kernel hides the names of its functions.
    pub(crate) names_hidden: bool,
    /// True if the kernel gives no reasons.
    pub(crate) no_reasons: bool,
    /// The interface that counted.
    pub(crate) via: DropsVia,
}

/// One key's numbers and sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedDrops {
    pub(crate) key: [u8; KEY_BYTES],
    /// Packets of the round, packets of the run, bytes of the round.
    pub(crate) numbers: [u64; 3],
    /// The sample; all zeros without a sample.
    pub(crate) sample: [u8; SAMPLE_BYTES],
}

impl CountedDrops {
    /// The place, followed by the addresses of the stack.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        Some(u64_at(&self.key, 0)).into_iter().chain(stack(&self.sample))
    }

    pub(crate) fn reason(&self) -> u32 {
        u32_at(&self.key, 8)
    }
}

/// The interface, from the flags of a block.
pub(crate) fn via_of(by_trace: bool, by_net_dm: bool) -> DropsVia {
    match (by_trace, by_net_dm) {
        (true, _) => DropsVia::Tracefs,
        (_, true) => DropsVia::NetDm,
        _ => DropsVia::Bpf,
    }
}

/// Appends a reading to `into`. Names are (kind, number, text).
pub(crate) fn encode<'n>(
    into: &mut Vec<u8>,
    header: &RoundHeader,
    rows: &[CountedDrops],
    names: impl Iterator<Item = (u8, u64, &'n [u8])>,
) {
    let flag = |set: bool, flag: u64| if set { flag } else { 0 };
    let flags = flag(header.all_netns, ALL_NETNS)
        | flag(header.names_hidden, NAMES_HIDDEN)
        | flag(header.no_reasons, NO_REASONS)
        | flag(header.via == DropsVia::Tracefs, BY_TRACE)
        | flag(header.via == DropsVia::NetDm, BY_NET_DM);
    let words = [MAGIC, flags, header.round_ns, header.merged, header.lost, header.missed, rows.len() as u64];
    words.iter().for_each(|word| into.extend_from_slice(&word.to_ne_bytes()));
    for row in rows {
        into.extend_from_slice(&row.key);
        row.numbers.iter().for_each(|number| into.extend_from_slice(&number.to_ne_bytes()));
        into.extend_from_slice(&row.sample);
    }
    for (kind, number, name) in names {
        put_name(into, kind, number, name);
    }
}

/// A decoded reading.
#[derive(Debug)]
pub(crate) struct DropReading<'b> {
    pub(crate) header: RoundHeader,
    rows: &'b [u8],
    names: HashMap<(u8, u64), &'b [u8]>,
}

impl<'b> DropReading<'b> {
    /// Decodes a block. Survives any bytes without panicking.
    pub(crate) fn decode(bytes: &'b [u8]) -> Result<DropReading<'b>, DropsError> {
        let cut = DropsError::Malformed("drop records are truncated");
        let (head, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(cut.clone())?;
        let word = |n: usize| u64_at(head, n * 8);
        if word(0) != MAGIC {
            return Err(DropsError::Malformed("drop records of another version"));
        }
        let flags = word(1);
        let header = RoundHeader {
            round_ns: word(2),
            merged: word(3),
            lost: word(4),
            missed: word(5),
            all_netns: flags & ALL_NETNS != 0,
            names_hidden: flags & NAMES_HIDDEN != 0,
            no_reasons: flags & NO_REASONS != 0,
            via: via_of(flags & BY_TRACE != 0, flags & BY_NET_DM != 0),
        };
        let rows_bytes = usize::try_from(word(6)).ok().and_then(|rows| rows.checked_mul(ROW_BYTES));
        let (rows, rest) = rest.split_at_checked(rows_bytes.ok_or(cut.clone())?).ok_or(cut.clone())?;
        let mut names = HashMap::new();
        read_names(rest, |kind, number, name| _ = names.insert((kind, number), name))?;
        Ok(DropReading { header, rows, names })
    }

    /// Adds the counts of this reading, one round of a recording, to the sum of the earlier rounds.
    pub(crate) fn add_to(&self, sum: &mut SummedRounds) {
        let (header, of_round) = (&mut sum.header, &self.header);
        let add = |sum: &mut u64, number: u64| *sum = sum.saturating_add(number);
        add(&mut header.round_ns, of_round.round_ns);
        add(&mut header.merged, of_round.merged);
        add(&mut header.lost, of_round.lost);
        add(&mut header.missed, of_round.missed);
        header.all_netns = of_round.all_netns;
        header.via = of_round.via;
        header.names_hidden |= of_round.names_hidden;
        header.no_reasons |= of_round.no_reasons;
        for row in self.rows.chunks_exact(ROW_BYTES) {
            let (Some(key), Some(sample)) = (row.first_chunk(), row.last_chunk()) else { continue };
            let number = |nth: usize| u64_at(row, KEY_BYTES + nth * 8);
            let counted = sum.rows.entry(*key).or_insert(CountedDrops { key: *key, numbers: [0; 3], sample: *sample });
            add(&mut counted.numbers[0], number(0));
            counted.numbers[1] = number(1);
            add(&mut counted.numbers[2], number(2));
        }
        let names = self.names.iter().map(|((kind, number), name)| ((*kind, *number), Box::from(*name)));
        sum.names.extend(names);
    }

    /// Calls back with each row, and whether it covers several namespaces and interfaces, until the callback returns
    /// false.
    pub(crate) fn each(&self, mut each: impl FnMut(&PacketDrop<'_>, bool) -> bool) {
        let mut words = RowText::default();
        for row in self.rows.chunks_exact(ROW_BYTES) {
            if !each(&self.row(row, &mut words), byte_at(row, HOOK_AT) == MERGED) {
                return;
            }
        }
    }

    fn name(&self, kind: u8, number: u64) -> &'b [u8] {
        self.names.get(&(kind, number)).copied().unwrap_or_default()
    }

    fn row<'r>(&'r self, bytes: &[u8], words: &'r mut RowText) -> PacketDrop<'r> {
        let (key, rest) = bytes.split_at_checked(KEY_BYTES).unwrap_or_default();
        let (numbers, sample) = rest.split_at_checked(24).unwrap_or_default();
        let packet = packet(key, sample);
        let reason = self.name(REASON, packet.reason_number.into());
        words.place.clear();
        words.stack.clear();
        put_function(&mut words.place, self.name(FUNCTION, packet.place_address), packet.place_address);
        put_stack(&mut words.stack, packet.place_address, sample, |address| self.name(FUNCTION, address));
        let count = u64_at(numbers, 0);
        let meaning = meaning_of(reason, &words.place);
        let by_stack = || hook::of_stack(stack(sample).map(|address| self.name(FUNCTION, address)));
        PacketDrop {
            count,
            total: u64_at(numbers, 8),
            bytes: u64_at(numbers, 16),
            per_s: rate(count, self.header.round_ns),
            reason,
            hook: if reason == NETFILTER_DROP { by_stack().or(packet.hook) } else { None },
            meaning: meaning.says,
            ask: meaning.ask,
            remedy: meaning.remedy,
            benign: is_benign(reason, &words.place),
            place: &words.place,
            stack: &words.stack,
            ..without_made_numbers(packet, self.header.via)
        }
    }
}

/// The summed counts of several rounds. At most as large as the tables of the program that counted them.
#[derive(Debug, Default)]
pub(crate) struct SummedRounds {
    header: RoundHeader,
    rows: BTreeMap<[u8; KEY_BYTES], CountedDrops>,
    names: BTreeMap<(u8, u64), Box<[u8]>>,
}

impl SummedRounds {
    /// Encodes the sum as one block.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut block = Vec::new();
        let rows: Vec<CountedDrops> = self.rows.into_values().collect();
        encode(
            &mut block,
            &self.header,
            &rows,
            self.names.iter().map(|((kind, number), name)| (*kind, *number, &**name)),
        );
        block
    }
}

/// Decodes the numbers of a key and a sample into a row; the caller adds the names.
pub(crate) fn packet(key: &[u8], sample: &[u8]) -> PacketDrop<'static> {
    let has = byte_at(sample, 39);
    let port = |at: usize| u16::from_be_bytes([byte_at(sample, at), byte_at(sample, at + 1)]);
    PacketDrop {
        place_address: u64_at(key, 0),
        reason_number: u32_at(key, 8),
        netns_id: u32_at(key, 12).into(),
        ifindex: u32_at(key, 16),
        hook: hook::of_number(byte_at(key, HOOK_AT)),
        route_hook: hook::of_number(byte_at(key, HOOK_AT)),
        ethertype: u16_at(sample, 36),
        l4: (has & HAS_ADDRESSES != 0).then(|| byte_at(sample, 38)),
        ends: (has & HAS_ADDRESSES != 0).then(|| ends(sample)),
        ports: (has & HAS_PORTS != 0).then(|| (port(32), port(34))),
        // The program packs FIN, SYN, RST and ACK into the upper half.
        tcp_flags: (has & HAS_FLAGS != 0).then_some(has >> 4 & 7 | has >> 3 & 16),
        first_bytes: u32_at(sample, 40),
        socket_inode: u32_at(sample, 44),
        uid: (has & HAS_SOCKET != 0).then(|| u32_at(sample, 48)),
        ..PacketDrop::default()
    }
}

/// Removes the numbers that stand for names of the drop monitor, because they are not the kernel's.
pub(crate) fn without_made_numbers(packet: PacketDrop<'_>, via: DropsVia) -> PacketDrop<'_> {
    if via != DropsVia::NetDm {
        return packet;
    }
    let is_address = packet.place_address > u32::MAX.into();
    PacketDrop { reason_number: 0, place_address: if is_address { packet.place_address } else { 0 }, ..packet }
}

/// The texts of one row.
#[derive(Debug, Default)]
struct RowText {
    place: Vec<u8>,
    stack: Vec<u8>,
}

/// Writes the name of a function, or its address if it has no name.
pub(crate) fn put_function(into: &mut Vec<u8>, name: &[u8], address: u64) {
    match name {
        [] if address == 0 => {}
        [] => {
            into.extend_from_slice(b"0x");
            text::put_hex(into, address);
        }
        name => into.extend_from_slice(name),
    }
}

/// Writes the functions of a sample's stack, joined by commas, starting with the function that dropped the packet.
pub(crate) fn put_stack<'n>(into: &mut Vec<u8>, place: u64, sample: &[u8], name: impl Fn(u64) -> &'n [u8]) {
    // The first frames belong to the program and the tracepoint.
    let own = stack(sample).take_while(|address| *address != place).count();
    let own = if own == stack(sample).count() { 0 } else { own };
    for address in stack(sample).skip(own) {
        if !into.is_empty() {
            into.push(b',');
        }
        put_function(into, name(address), address);
    }
}

/// Packets per second, in thousandths.
pub(crate) fn rate(count: u64, round_ns: u64) -> u64 {
    let thousandths = u128::from(count) * 1_000_000_000_000 / u128::from(round_ns.max(1));
    u64::try_from(thousandths).unwrap_or(u64::MAX)
}

fn ends(sample: &[u8]) -> (Addr, Addr) {
    let address = |at: usize| {
        let bytes: [u8; 16] = sample.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        match (u16_at(sample, 36), bytes) {
            (ETH_P_IPV6, bytes) => Addr::V6(bytes).unmapped(),
            (_, [a, b, c, d, ..]) => Addr::V4([a, b, c, d]),
        }
    };
    (address(0), address(16))
}

/// The addresses of a sample's stack, the innermost first.
pub(crate) fn stack(sample: &[u8]) -> impl Iterator<Item = u64> + use<> {
    let bytes = i32::from_ne_bytes(u32_at(sample, STACK_BYTES_AT).to_ne_bytes());
    let frames = usize::try_from(bytes / 8).unwrap_or(0).min(FRAMES);
    let mut all = [0; FRAMES];
    for (n, to) in all.iter_mut().enumerate().take(frames) {
        *to = u64_at(sample, STACK_AT + n * 8);
    }
    all.into_iter().take(frames).filter(|address| *address != 0)
}

// Returns 0 beyond the end.
fn byte_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([byte_at(bytes, at), byte_at(bytes, at + 1)])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_ne_bytes(*four))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |eight| u64::from_ne_bytes(*eight))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PLACE: u64 = 0xffff_ffff_8100_1234;
    const CALLER: u64 = 0xffff_ffff_8100_9999;

    /// 20 datagrams from 10.0.0.1:5000 to 10.0.0.2:53 that an input rule dropped, through one caller.
    fn counted() -> CountedDrops {
        let mut key = [0; KEY_BYTES];
        key[..8].copy_from_slice(&PLACE.to_ne_bytes());
        key[8..12].copy_from_slice(&7_u32.to_ne_bytes());
        key[12..16].copy_from_slice(&4_026_531_840_u32.to_ne_bytes());
        key[16..20].copy_from_slice(&3_u32.to_ne_bytes());
        key[HOOK_AT] = 2;
        let mut sample = [0; SAMPLE_BYTES];
        sample[..4].copy_from_slice(&[10, 0, 0, 1]);
        sample[16..20].copy_from_slice(&[10, 0, 0, 2]);
        sample[32..36].copy_from_slice(&[5000_u16.to_be_bytes(), 53_u16.to_be_bytes()].concat());
        sample[36..38].copy_from_slice(&0x0800_u16.to_ne_bytes());
        sample[38..40].copy_from_slice(&[17, HAS_ADDRESSES | HAS_PORTS | HAS_SOCKET]);
        sample[40..44].copy_from_slice(&60_u32.to_ne_bytes());
        sample[44..56].copy_from_slice(&[77_u32, 1000, 24].map(u32::to_ne_bytes).concat());
        for (n, address) in [1, PLACE, CALLER].into_iter().enumerate() {
            sample[STACK_AT + n * 8..][..8].copy_from_slice(&u64::to_ne_bytes(address));
        }
        CountedDrops { key, numbers: [20, 50, 1200], sample }
    }

    fn block(names: &[(u8, u64, &[u8])]) -> Vec<u8> {
        let mut block = Vec::new();
        let header = RoundHeader { round_ns: 2_000_000_000, merged: 1, lost: 2, missed: 3, ..RoundHeader::default() };
        encode(&mut block, &header, &[counted()], names.iter().copied());
        block
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let names: &[(u8, u64, &[u8])] = &[
            (REASON, 7, b"NETFILTER_DROP"),
            (FUNCTION, PLACE, b"nft_do_chain"),
            (FUNCTION, CALLER, b"ip_forward"),
            (FUNCTION, 1, b"of_the_program"),
        ];
        let block = block(names);
        let reading = DropReading::decode(&block).unwrap();
        assert_eq!((reading.header.merged, reading.header.lost, reading.header.missed), (1, 2, 3));
        let mut rows = 0;
        reading.each(|row, is_merged| {
            rows += 1;
            assert_eq!((row.count, row.total, row.bytes, row.per_s, row.ifindex), (20, 50, 1200, 10_000, 3));
            assert_eq!((row.reason, row.place, row.stack), (names[0].2, names[1].2, &b"nft_do_chain,ip_forward"[..]));
            assert_eq!(row.hook.unwrap().name(), "forward", "the stack's, not the route's");
            assert_eq!(row.ends, Some((Addr::V4([10, 0, 0, 1]), Addr::V4([10, 0, 0, 2]))));
            assert_eq!((row.socket_inode, row.uid), (77, Some(1000)));
            assert_eq!((row.ports, row.l4, row.ethertype), (Some((5000, 53)), Some(17), 0x0800));
            assert!(row.meaning.contains("nftables") && !row.benign && !is_merged);
            true
        });
        assert_eq!(rows, 1);
    }

    #[test]
    fn without_names_there_are_addresses() {
        let block = block(&[(REASON, 7, b"NETFILTER_DROP")]);
        DropReading::decode(&block).unwrap().each(|row, _| {
            assert_eq!(row.place, b"0xffffffff81001234");
            assert_eq!(row.hook.unwrap().name(), "input", "by the route");
            true
        });
    }

    #[test]
    fn cut_anywhere_nothing_panics() {
        let whole = block(&[(REASON, 7, b"NETFILTER_DROP"), (FUNCTION, PLACE, b"x")]);
        let decoded = (0..=whole.len()).filter(|end| DropReading::decode(&whole[..*end]).is_ok()).count();
        assert_eq!(decoded, 3, "whole, without one name, without both");
    }
}
