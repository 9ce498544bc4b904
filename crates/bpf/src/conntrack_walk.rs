//! The walk of the kernel's connection-tracking table: which entries in, blocks of rows out.
//!
//! The program (`c/conntrack_walk.bpf.c`) follows the hash chains as plain memory and writes rows into a region that is
//! mapped here; a call walks a stretch of buckets, and what it wrote is one block. What a row looks like is known to
//! the program and to whoever reads the blocks (`conntrack::bpf_rows`), not here. Needs Linux 6.9 (`may_goto`), BTF,
//! CAP_BPF and CAP_PERFMON, and a readable /proc/net/nf_conntrack. Start reading at [`Walk::read`].
//!
//! How the table is found, and how a change of its size is noticed, is in `conntrack_table.rs`.
use std::cell::Cell;
use std::collections::HashSet;

use sys::bpf::Mapped;
use sys::{Blocks, Errno, Host, SysError};

use crate::conntrack_table::{MODULE, Reader, Table, Witness};
use crate::{BpfError, KernelTypes, Loaded, Program, Spec, load_with};

static OBJECT: &[u8] = include_bytes!("../objects/conntrack_walk.o");

/// Bytes of a region before the first row; where the head says how far into a row its addresses begin.
const HEAD: usize = 32;
const ADDRESSES_AT: usize = 24;
/// Members of a row that, with its original addresses, tell it from all others: family and protocol, ports, zone and
/// its direction, namespace.
const FAMILY: usize = 12;
const TELLING: [std::ops::Range<usize>; 3] = [12..14, 20..27, 32..36];
const AF_INET6: u8 = 10;

/// Nodes a call, two to an entry: so that the kernel's RCU section is short.
const NODES_A_CALL: u32 = 20_000;
/// Buckets a call, should all be empty.
const BUCKETS_A_CALL: u32 = 1 << 16;
/// Chains that are followed at once, and entries that are written at once: what keeps the memory busy.
const AT_ONCE: [u32; 2] = [40, 128];
/// The least of both, for tables whose chains are so long that they do not fit otherwise: eight buckets a turn.
const FEW_AT_ONCE: [u32; 2] = [1, 1];
/// Calls that may end without a step forward because chains changed a thousand times meanwhile.
const UNQUIET_MAX: u32 = 20;
// How a call ended, `ended` of `struct walk`.
const NO_TABLE: u32 = 1;
const FULL: u32 = 3;
const UNQUIET: u32 = 4;
const STRANGE: u32 = 5;

// Which conditions a walk was loaded with.
const ORIG: u32 = 1;
const ANSWER: u32 = 2;
const STATUS: u32 = 4;
const MARK: u32 = 8;
const STATES: u32 = 16;
const ZONE: u32 = 32;

/// What a tuple must be like, as far as anything was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TupleIs {
    value: [u8; 40],
    mask: [u8; 40],
}

impl TupleIs {
    // `struct nf_conntrack_tuple` (include/net/netfilter/nf_conntrack_tuple.h).
    const SRC: usize = 0;
    const SPORT: usize = 16;
    const FAMILY: usize = 18;
    const DST: usize = 20;
    const DPORT: usize = 36;
    const PROTO: usize = 38;

    /// Any.
    pub const ANY: TupleIs = TupleIs { value: [0; 40], mask: [0; 40] };

    /// True if it says nothing.
    pub fn is_any(&self) -> bool {
        self.mask.iter().all(|bits| *bits == 0)
    }

    fn with(mut self, at: usize, bytes: &[u8], mask: &[u8]) -> TupleIs {
        let places = self.value.iter_mut().zip(&mut self.mask).skip(at);
        for ((value, masked), (byte, bits)) in places.zip(bytes.iter().zip(mask)) {
            *value = byte & bits;
            *masked = *bits;
        }
        self
    }

    fn with_net(self, at: usize, addr: &[u8], bits: u8) -> TupleIs {
        let mask = |byte: usize| {
            let left = usize::from(bits).saturating_sub(8 * byte).min(8);
            (0xff00u16 >> left) as u8
        };
        let masks: Vec<u8> = (0..addr.len()).map(mask).collect();
        self.family(if addr.len() == 4 { 2 } else { AF_INET6 }).with(at, addr, &masks)
    }

    /// Of this family: 2 AF_INET, 10 AF_INET6.
    pub fn family(self, family: u8) -> TupleIs {
        self.with(TupleIs::FAMILY, &u16::from(family).to_ne_bytes(), &[0xff; 2])
    }

    /// Of this IP protocol.
    pub fn proto(self, proto: u8) -> TupleIs {
        self.with(TupleIs::PROTO, &[proto], &[0xff])
    }

    /// From an address whose first `bits` are those of `addr` (4 or 16 bytes).
    pub fn src(self, addr: &[u8], bits: u8) -> TupleIs {
        self.with_net(TupleIs::SRC, addr, bits)
    }

    /// To an address whose first `bits` are those of `addr` (4 or 16 bytes).
    pub fn dst(self, addr: &[u8], bits: u8) -> TupleIs {
        self.with_net(TupleIs::DST, addr, bits)
    }

    /// With this beside the source: a port, an ICMP id, a GRE key. Host order.
    pub fn sport(self, port: u16) -> TupleIs {
        self.with(TupleIs::SPORT, &port.to_be_bytes(), &[0xff; 2])
    }

    /// With this beside the destination: a port, ICMP type and code, a GRE key. Host order.
    pub fn dport(self, port: u16) -> TupleIs {
        self.with(TupleIs::DPORT, &port.to_be_bytes(), &[0xff; 2])
    }
}

/// Which entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Entries of every namespace, not of the calling thread's alone.
    pub all: bool,
    /// Entries that live.
    pub live: bool,
    /// Entries whose time is over, which wait to be collected.
    pub expired: bool,
    /// Status bits: value and mask.
    pub status: Option<(u32, u32)>,
    /// Mark: value and mask.
    pub mark: Option<(u32, u32)>,
    /// States of the protocol: bit n is TCP's state n, bit 16 + n SCTP's, bit 32 + n DCCP's. Protocols without states do
    /// not pass.
    pub states: Option<u64>,
    /// Zone.
    pub zone: Option<u16>,
    /// The direction that made the entry.
    pub orig: TupleIs,
    /// What answers look like.
    pub reply: TupleIs,
}

impl Wanted {
    /// Every living entry of the calling thread's namespace.
    pub const LIVE: Wanted = Wanted {
        all: false,
        live: true,
        expired: false,
        status: None,
        mark: None,
        states: None,
        zone: None,
        orig: TupleIs::ANY,
        reply: TupleIs::ANY,
    };

    fn conditions(&self) -> u32 {
        let each = [
            (!self.orig.is_any(), ORIG),
            (!self.reply.is_any(), ANSWER),
            (self.status.is_some(), STATUS),
            (self.mark.is_some(), MARK),
            (self.states.is_some(), STATES),
            (self.zone.is_some(), ZONE),
        ];
        each.iter().filter(|(is, _)| *is).fold(0, |bits, (_, bit)| bits | bit)
    }
}

/// The loaded program and its memory. Stays good for as many readings as one likes.
#[derive(Debug)]
pub struct Walk {
    loaded: Loaded,
    regions: Mapped,
    parts: u32,
    conditions: u32,
    whole: Cell<Option<Counts>>,
}

impl Walk {
    /// Loads the program, to write these parts of a row (`enum` in the program) and to know the conditions of `wanted`.
    /// Costs some milliseconds.
    pub fn load(host: &Host, parts: u32, wanted: &Wanted) -> Result<Walk, BpfError> {
        let conditions = wanted.conditions();
        let constants: &[(&str, &[u8])] = &[("parts", &parts.to_ne_bytes()), ("conditions", &conditions.to_ne_bytes())];
        let types = KernelTypes::read(host)?.with_module(host, MODULE)?;
        let spec = Spec { object: OBJECT, programs: &["walk_conntrack"], constants, entries: &[] };
        let loaded = load_with(&types, &spec)?;
        let regions = loaded.map("out")?.mapped()?;
        Ok(Walk { loaded, regions, parts, conditions, whole: Cell::new(None) })
    }

    /// True if it can do what a walk loaded with these arguments could.
    pub fn covers(&self, parts: u32, wanted: &Wanted) -> bool {
        self.parts & parts == parts && self.conditions & wanted.conditions() == wanted.conditions()
    }

    /// What the latest reading met, once it had got to the table's end and if the table's size had stayed as it was: else
    /// chains of two tables are mixed in it.
    pub fn whole(&self) -> Option<Counts> {
        self.whole.get()
    }

    /// Begins to read the table. Each block is what one call of the program wrote, at most 256 KiB.
    ///
    /// Entries are those of the namespace that the calling thread is in now, wherever it is while the blocks come.
    /// The blocks end in an error if the table was made smaller while it was read and by so much that it cannot be said
    /// which rows are out (EAGAIN), if it will not keep still (EAGAIN), or if its chains are too long (ENOSPC).
    /// Fails if /proc/net/nf_conntrack cannot be read. Collects what has expired at the table's beginning, as every
    /// reading of that file does: up to the first entry of one's own.
    pub fn read(&self, host: &Host, wanted: Wanted) -> Result<Walking<'_>, BpfError> {
        let program = self.loaded.program("walk_conntrack")?;
        let (reader, witness) = (Reader::open(host)?, Witness::open(host));
        self.whole.set(None);
        let mut walking = Walking {
            regions: &self.regions,
            whole: &self.whole,
            program,
            wanted,
            reader,
            witness,
            table: Table::default(),
            net: 0,
            next: 0,
            out_until: Share::NOTHING,
            newest: Newest { from: Share::NOTHING, region: 0, filled: 0 },
            recent: Vec::new(),
            passed: Vec::new(),
            unproved: false,
            at_once: AT_ONCE,
            unquiet: 0,
            counts: Counts::default(),
        };
        walking.reader.look()?;
        let context = walking.run(0, 0)?;
        (walking.table, walking.net) = (context.table(), context.word(Context::NET));
        Ok(walking)
    }
}

/// What a reading met beside rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Nodes of the chains, each counted once: every entry has two, also those that were not wanted.
    pub nodes: u64,
    /// Nodes of the longest chain: of all namespaces and both directions, as the kernel counts them when it refuses an
    /// entry because of a long chain.
    pub longest: u32,
    /// Turns that were read again because a chain had changed meanwhile.
    pub restarts: u64,
    /// Entries that went while their row was made.
    pub gone: u64,
    /// Changes of the table's size.
    pub resizes: u64,
}

/// The block that was handed out last, from which bucket on, of a table of how many.
#[derive(Debug, Clone, Copy)]
struct Newest {
    from: Share,
    region: u32,
    filled: usize,
}

/// How far into a table: buckets before it, of so many. Entries stand in the order of their hash in a table of any size,
/// so that a share of one is the same share of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    bucket: u32,
    of: u32,
}

impl Share {
    const NOTHING: Share = Share { bucket: 0, of: 1 };

    fn is_before(self, other: Share) -> bool {
        u64::from(self.bucket) * u64::from(other.of) < u64::from(other.bucket) * u64::from(self.of)
    }

    /// The bucket in a table of `buckets` where it lies, rounded down.
    fn in_table(self, buckets: u32) -> u32 {
        (u64::from(self.bucket) * u64::from(buckets) / u64::from(self.of.max(1))) as u32
    }
}

/// Blocks that are shorter than this are not enough to know again what is out: they are kept together.
const RECENT_BYTES: usize = 128 << 10;

/// A reading under way.
#[derive(Debug)]
pub struct Walking<'w> {
    regions: &'w Mapped,
    whole: &'w Cell<Option<Counts>>,
    program: &'w Program,
    wanted: Wanted,
    reader: Reader,
    /// Where it can be had: cheaper than reading the file again.
    witness: Option<Witness>,
    table: Table,
    /// The namespace that the calling thread was in at the beginning, as the program knows it.
    net: u64,
    /// All buckets before this one are out.
    next: u32,
    /// Rows up to here may be out, if the table's size changed: they are in the newest block, or in `recent`.
    out_until: Share,
    newest: Newest,
    /// What followed the newest block since, if it was little or the table's size changed: that block, and the rows.
    recent: Vec<u8>,
    /// What of a block was not out.
    passed: Vec<u8>,
    /// True if something was handed out since the table was looked for.
    unproved: bool,
    at_once: [u32; 2],
    unquiet: u32,
    counts: Counts,
}

impl Walking<'_> {
    /// What was met so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Buckets of the table.
    pub fn buckets(&self) -> u32 {
        self.table.buckets
    }

    fn run(&self, start: u32, end: u32) -> Result<Context, SysError> {
        let fd = self.reader.number();
        let region = self.newest.region ^ 1;
        let mut context = Context::new(&self.wanted, [start, end, region, fd], self.at_once, self.net);
        self.program.run(&mut context.0).map_err(|error| failed(error.errno().unwrap_or(Errno::INVAL)))?;
        match context.get(Context::ENDED) {
            NO_TABLE => Err(failed(Errno::NOENT)),
            STRANGE => Err(failed(Errno::NOSYS)),
            _ => Ok(context),
        }
    }

    /// Where the table is now; a change of its size that is under way is waited for.
    fn look(&mut self) -> Result<Table, SysError> {
        self.reader.look()?;
        Ok(self.run(0, 0)?.table())
    }

    /// One call of the program. What it wrote, if the table is still the one it was.
    fn call(&mut self, end: u32) -> Result<Option<Newest>, SysError> {
        let context = self.run(self.next, end)?;
        let (next, ended) = (context.get(Context::NEXT), context.get(Context::ENDED));
        let counted = |at| u64::from(context.get(at));
        self.counts.restarts += counted(Context::RESTARTS);
        if let Some(found) = self.check(next >= self.table.buckets, ended == UNQUIET)? {
            self.resized(found)?;
            return Ok(None);
        }
        self.judge(ended, next)?;
        self.counts.nodes += counted(Context::NODES);
        self.counts.gone += counted(Context::GONE);
        self.counts.longest = self.counts.longest.max(context.get(Context::LONGEST));
        let from = self.done();
        self.next = next;
        let newest = Newest { from, region: self.newest.region ^ 1, filled: context.get(Context::FILLED) as usize };
        Ok(Some(newest).filter(|newest| newest.filled > HEAD))
    }

    /// Whether the table is still the one that was walked; the other, if not. What cannot be said now stays unproved.
    fn check(&mut self, is_last: bool, is_odd: bool) -> Result<Option<Table>, SysError> {
        let same_size = self.witness.as_ref().is_some_and(|witness| witness.buckets() == Some(self.table.buckets));
        // Smaller and back again while we did not look: only the address tells, so it is asked for at the end. Where that
        // is dear it is not: both changes would have to fall between a call and the look behind it.
        let for_sure = is_odd || (is_last && (self.reader.is_cheap() || self.witness.is_none()));
        if !for_sure && (same_size || (self.witness.is_none() && !self.reader.is_due())) {
            self.unproved |= !same_size;
            return Ok(None);
        }
        let found = self.look()?;
        if found != self.table {
            return Ok(Some(found));
        }
        self.unproved = false;
        Ok(None)
    }

    fn done(&self) -> Share {
        Share { bucket: self.next, of: self.table.buckets }
    }

    /// What a call's end means for the next.
    fn judge(&mut self, ended: u32, next: u32) -> Result<(), SysError> {
        let stands = next == self.next;
        match ended {
            FULL if stands && self.at_once == FEW_AT_ONCE => return Err(failed(Errno::NOSPC)),
            FULL if stands => self.at_once = FEW_AT_ONCE,
            // Also when the kernel had enough of it (`may_goto` ends a call after a quarter of a second).
            _ if stands => {
                self.unquiet += 1;
                if self.unquiet > UNQUIET_MAX {
                    return Err(failed(Errno::AGAIN));
                }
            }
            _ => (self.unquiet, self.at_once) = (0, AT_ONCE),
        }
        Ok(())
    }

    /// The table was exchanged for a larger or smaller one: the rest begins at the same share of it. Where that is
    /// within a bucket, or within eight, rows come again that are out, and are known by the newest block.
    fn resized(&mut self, new: Table) -> Result<(), SysError> {
        self.counts.resizes += 1;
        let done = self.done();
        if self.out_until.is_before(done) {
            self.out_until = done;
        }
        self.keep_newest();
        self.table = new;
        self.next = done.in_table(new.buckets) & !7;
        // Not as far back as that, or who knows what was missed.
        let lost = self.done().is_before(self.newest.from) || self.unproved;
        if lost { Err(failed(Errno::AGAIN)) } else { Ok(()) }
    }

    fn keep_newest(&mut self) {
        if self.recent.is_empty() {
            self.recent = self.block(self.newest).to_vec();
        }
    }

    /// Notes a block as handed out.
    fn handed_out(&mut self, block: Newest) {
        if block.filled >= RECENT_BYTES || self.newest.filled == 0 {
            self.newest = block;
            self.recent.clear();
            return;
        }
        self.keep_newest();
        let mut recent = std::mem::take(&mut self.recent);
        recent.extend_from_slice(self.block(block).get(HEAD..).unwrap_or_default());
        // Enough of the like: what was before may be forgotten.
        if recent.len() > 8 * RECENT_BYTES {
            self.newest.from = block.from;
            recent.clear();
            recent.extend_from_slice(self.block(block));
        }
        self.recent = recent;
        self.newest.region = block.region;
    }

    /// Keeps what of a block is not out; true if there is any.
    fn pass(&mut self, newest: Newest) -> bool {
        let out: HashSet<Vec<u8>> = rows(&self.recent).map(|(row, at)| telling(row, at)).collect();
        let mut passed = std::mem::take(&mut self.passed);
        passed.clear();
        let block = self.block(newest);
        passed.extend_from_slice(block.get(..HEAD).unwrap_or_default());
        for (row, _) in rows(block).filter(|(row, at)| !out.contains(&telling(row, *at))) {
            passed.extend_from_slice(row);
        }
        self.recent.extend_from_slice(passed.get(HEAD..).unwrap_or_default());
        self.passed = passed;
        self.passed.len() > HEAD
    }

    fn block(&self, newest: Newest) -> &[u8] {
        let bytes = self.regions.bytes();
        let size = bytes.len() / 2;
        bytes.get(size * newest.region as usize..).and_then(|region| region.get(..newest.filled)).unwrap_or_default()
    }
}

impl Blocks for Walking<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        while self.next < self.table.buckets {
            let partly = self.done().is_before(self.out_until);
            let until = self.out_until.in_table(self.table.buckets) + 8;
            let end = if partly { until & !7 } else { self.next.saturating_add(BUCKETS_A_CALL) };
            let Some(newest) = self.call(end)? else { continue };
            if !partly {
                self.handed_out(newest);
                return Ok(Some(self.block(newest)));
            }
            if self.pass(newest) {
                return Ok(Some(&self.passed));
            }
        }
        self.whole.set(Some(self.counts).filter(|counts| counts.resizes == 0));
        Ok(None)
    }
}

/// Rows of a block, with the place of their addresses.
fn rows(block: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let word = block.get(ADDRESSES_AT..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; 4]);
    let at = u32::from_ne_bytes(word) as usize;
    let mut rest = block.get(HEAD..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (row, behind) =
            rest.split_at_checked(usize::from(*rest.first()?) * 4).filter(|(row, _)| !row.is_empty())?;
        rest = behind;
        Some((row, at))
    })
}

/// What tells a row from all others.
fn telling(row: &[u8], addresses_at: usize) -> Vec<u8> {
    let addresses = if row.get(FAMILY) == Some(&AF_INET6) { 32 } else { 8 };
    let parts = TELLING.into_iter().chain(std::iter::once(addresses_at..addresses_at + addresses));
    parts.flat_map(|part| row.get(part).unwrap_or_default().iter().copied()).collect()
}

fn failed(errno: Errno) -> SysError {
    SysError::new("bpf_prog_run", "the walk of the connection-tracking table", errno)
}

/// `struct walk`.
struct Context([u8; Context::BYTES]);

impl Context {
    const TUPLES: usize = 64;
    const ENDED: usize = 224;
    const NEXT: usize = 228;
    const FILLED: usize = 232;
    const BUCKETS: usize = 236;
    const RESTARTS: usize = 240;
    const GONE: usize = 244;
    const NODES: usize = 248;
    const LONGEST: usize = 252;
    const ADDRESS: usize = 256;
    const NET: usize = 264;
    const BYTES: usize = 360;

    fn new(wanted: &Wanted, [start, end, region, fd]: [u32; 4], [lanes, found]: [u32; 2], net: u64) -> Context {
        let (status, status_mask) = wanted.status.unwrap_or_default();
        let (mark, mark_mask) = wanted.mark.unwrap_or_default();
        let (states, zone) = (wanted.states.unwrap_or(0), wanted.zone.unwrap_or(0).into());
        let [states_low, states_high] = [states as u32, (states >> 32) as u32];
        let (all, expiry) = (wanted.all.into(), u32::from(wanted.live) | u32::from(wanted.expired) << 1);
        let words = [start, end, region, fd, all, NODES_A_CALL, lanes, found, expiry];
        let conditions = [status, status_mask, mark, mark_mask, zone, states_low, states_high];
        let mut bytes = [0; Context::BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words.iter().chain(&conditions)) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        let tuples = [wanted.orig.value, wanted.orig.mask, wanted.reply.value, wanted.reply.mask];
        bytes.iter_mut().skip(Context::NET).zip(net.to_ne_bytes()).for_each(|(place, byte)| *place = byte);
        for (place, tuple) in bytes.iter_mut().skip(Context::TUPLES).zip(tuples.as_flattened()) {
            *place = *tuple;
        }
        Context(bytes)
    }

    fn get(&self, at: usize) -> u32 {
        self.0.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    fn word(&self, at: usize) -> u64 {
        self.0.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    fn table(&self) -> Table {
        Table { address: self.word(Context::ADDRESS), buckets: self.get(Context::BUCKETS) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_tuple_is_value_and_mask() {
        assert!(TupleIs::ANY.is_any());
        let is = TupleIs::ANY.proto(6).dport(443).src(&[10, 1, 2, 3], 12);
        assert_eq!((is.value[38], is.mask[38]), (6, 0xff));
        assert_eq!((&is.value[36..38], &is.mask[36..38]), (&[1, 187][..], &[0xff; 2][..]));
        assert_eq!((&is.value[..5], &is.mask[..5]), (&[10, 0, 0, 0, 0][..], &[0xff, 0xf0, 0, 0, 0][..]));
        assert_eq!(u16::from_ne_bytes([is.value[18], is.value[19]]), 2, "an address has a family");
        let v6 = TupleIs::ANY.dst(&[0xff; 16], 128);
        assert_eq!((&v6.mask[20..36], v6.value[18]), (&[0xff; 16][..], 10));
        assert!(TupleIs::ANY.dst(&[1; 16], 0).mask[20..36].iter().all(|bits| *bits == 0));
    }

    #[test]
    fn conditions_are_what_was_said() {
        let some = Wanted { states: Some(2), reply: TupleIs::ANY.proto(6), ..Wanted::LIVE };
        assert_eq!((Wanted::LIVE.conditions(), some.conditions()), (0, ANSWER | STATES));
        let context = Context::new(&Wanted { all: true, ..some }, [8, 16, 1, 5], AT_ONCE, 77);
        assert_eq!((context.get(0), context.get(4), context.get(8), context.get(12)), (8, 16, 1, 5));
        assert_eq!((context.word(56), context.word(Context::NET)), (2, 77));
        assert_eq!(context.0[Context::TUPLES + 80 + 38], 6);
    }

    #[test]
    fn a_share_is_one_of_any_size() {
        let third = Share { bucket: 1000, of: 3000 };
        assert!(!third.is_before(Share { bucket: 1, of: 3 }) && Share::NOTHING.is_before(third));
        assert!(Share { bucket: 999, of: 3000 }.is_before(third));
        assert_eq!((third.in_table(600), third.in_table(601), third.in_table(u32::MAX)), (200, 200, 0x5555_5555));
    }

    #[test]
    fn crooked_blocks_are_cut() {
        let mut block = vec![0; HEAD];
        block[ADDRESSES_AT..ADDRESSES_AT + 4].copy_from_slice(&32u32.to_ne_bytes());
        for words in [10, 10, 0, 10] {
            block.push(words);
            block.extend_from_slice(&[2; 39]);
        }
        let found: Vec<_> = rows(&block).collect();
        assert_eq!((found.len(), found[0].1), (2, 32));
        assert_eq!(telling(found[0].0, found[0].1).len(), 2 + 7 + 4 + 8);
        assert!(telling(&[], 1000).is_empty() && rows(&[]).next().is_none());
        block.truncate(HEAD + 41);
        assert_eq!(rows(&block).count(), 1);
    }

    #[test]
    fn root_an_empty_namespace() {
        testkit::require_root!();
        let lab = testkit::netns::Lab::new("walkempty");
        lab.inside(|| {
            let host = Host::live();
            let walk = Walk::load(&host, 1, &Wanted::LIVE).unwrap();
            assert!(walk.covers(1, &Wanted::LIVE) && !walk.covers(2, &Wanted::LIVE));
            assert!(!walk.covers(1, &Wanted { mark: Some((1, 1)), ..Wanted::LIVE }));
            for _ in 0..3 {
                let mut walking = walk.read(&host, Wanted::LIVE).unwrap();
                assert!(walking.next().unwrap().is_none());
                assert!(walking.buckets() >= 512 && walking.buckets() % 512 == 0);
            }
        });
    }

    const BUCKETS: &str = "/proc/sys/net/netfilter/nf_conntrack_buckets";

    /// Sets the size also from inside a namespace that may not: the file is opened in the first.
    fn resizer() -> impl Fn(&str) + Sync {
        use std::os::unix::fs::FileExt;
        let file = std::fs::File::options().write(true).open(BUCKETS).unwrap();
        move |buckets| assert_eq!(file.write_at(buckets.as_bytes(), 0).unwrap(), buckets.len())
    }

    fn counts_of(walk: &Walk, host: &Host) -> Counts {
        let mut walking = walk.read(host, Wanted::LIVE).unwrap();
        while walking.next().unwrap().is_some() {}
        walk.whole().expect("nobody resizes the table meanwhile")
    }

    /// Nodes of each eight buckets, and of all: by the number of steps alone, however deep they were.
    fn nodes_by_eight(walk: &Walk, host: &Host) -> (Vec<u32>, u64) {
        let walking = walk.read(host, Wanted::LIVE).unwrap();
        let eight = |start| walking.run(start, start + 8).unwrap().get(Context::NODES);
        let nodes: Vec<u32> = (0..walking.buckets()).step_by(8).map(eight).collect();
        let all = nodes.iter().map(|nodes| u64::from(*nodes)).sum();
        (nodes, all)
    }

    /// A bucket of a table is eight of one with eight times as many: what stands in these is the length of its chain.
    #[test]
    fn root_the_longest_chain_is_as_long_as_counted_in_a_larger_table() {
        testkit::require_root!();
        let knob = testkit::HostKnob::set(BUCKETS, "65536");
        let resize = resizer();
        let lab = testkit::netns::Lab::new("walkdepth");
        lab.inside(|| {
            let host = Host::live();
            let walk = Walk::load(&host, 1, &Wanted::LIVE).unwrap();
            // A mean of a few, and one that needs many rounds and more than one call.
            for (made, count) in [(0, 300), (300, 12_000)] {
                // Into a large table: the kernel refuses entries where chains are long.
                resize("65536");
                testkit::conntrack::insert(testkit::conntrack::mixed(count).skip(made));
                testkit::wait_until("two readings of the same chains", || {
                    resize("4096");
                    let (nodes, all) = nodes_by_eight(&walk, &host);
                    assert!(nodes.len() == 512 && all >= 2 * u64::from(count), "{all}");
                    let of_larger = counts_of(&walk, &host);
                    resize("512");
                    let counts = counts_of(&walk, &host);
                    // Beside ours there are those of the host, which come and go.
                    let is_still = [counts.nodes, of_larger.nodes, nodes_by_eight(&walk, &host).1] == [all; 3];
                    let longest = nodes.iter().max().copied().unwrap();
                    if is_still {
                        assert_eq!(counts.longest, longest, "of {all} nodes");
                        assert!(of_larger.longest <= longest && u64::from(of_larger.longest) >= all.div_ceil(4096));
                    }
                    is_still
                });
            }
        });
        drop(knob);
    }

    /// Makes entries and takes them away until told to stop.
    fn come_and_go(lab: &testkit::netns::Lab, at_once: u16, stop: &AtomicBool) {
        let _inside = lab.enter();
        for round in 0u16.. {
            let [high, low] = round.to_be_bytes();
            let entry = |n: u16| {
                let source = ([10, 30, high, low].into(), 1024 + n);
                testkit::conntrack::Entry::udp(source, ([10, 40, 0, 1].into(), 53))
            };
            testkit::conntrack::insert((0..at_once).map(entry));
            testkit::conntrack::remove((0..at_once).map(entry));
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }

    #[test]
    fn root_a_turn_that_is_read_again_counts_once() {
        testkit::require_root!();
        let knob = testkit::HostKnob::set(BUCKETS, "65536");
        let resize = resizer();
        let (lab, stop) = (testkit::netns::Lab::new("walkagain"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let read = || {
                let host = Host::live();
                let walk = Walk::load(&host, 1, &Wanted::LIVE).unwrap();
                testkit::conntrack::insert(testkit::conntrack::mixed(10_000));
                // Twenty nodes a bucket, whoever else has entries: many in a turn, and none is refused.
                let buckets = counts_of(&walk, &host).nodes / 20;
                resize(&buckets.next_multiple_of(512).to_string());
                let quiet = counts_of(&walk, &host);
                scope.spawn(|| come_and_go(&lab, 256, &stop));
                // A turn has some 900 nodes; those that come and go, both directions, are 512.
                testkit::wait_until("a reading that began again and again", || {
                    let counts = counts_of(&walk, &host);
                    assert!(counts.nodes < quiet.nodes + 1_200, "{counts:?}, before {quiet:?}");
                    assert!(counts.longest < quiet.longest + 12, "{counts:?}, before {quiet:?}");
                    counts.restarts >= 4
                });
            };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lab.inside(read)));
            stop.store(true, Ordering::Relaxed);
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
        drop(knob);
    }

    #[test]
    fn root_what_two_tables_have_is_no_length_of_either() {
        testkit::require_root!();
        let knob = testkit::HostKnob::set(BUCKETS, "65536");
        let resize = resizer();
        let lab = testkit::netns::Lab::new("walkmixed");
        lab.track(testkit::conntrack::mixed(30_000));
        lab.inside(|| {
            let host = Host::live();
            let walk = Walk::load(&host, 1, &Wanted::LIVE).unwrap();
            let mut walking = walk.read(&host, Wanted::LIVE).unwrap();
            assert!(walking.next().unwrap().is_some() && walk.whole().is_none(), "not before its end");
            resize("131072");
            while walking.next().unwrap().is_some() {}
            assert_eq!((walking.counts().resizes, walk.whole()), (1, None));
        });
        drop(knob);
    }

    #[test]
    fn without_the_file_there_is_no_table() {
        testkit::require_root!();
        let walk = Walk::load(&Host::live(), 1, &Wanted::LIVE).unwrap();
        let elsewhere = Host::with_roots("/nonexistent/proc".into(), "/sys".into(), "/etc".into());
        let error = walk.read(&elsewhere, Wanted::LIVE).map(drop).unwrap_err();
        assert!(error.to_string().contains("nf_conntrack"), "{error}");
    }
}
