//! Arguments and results of a call of the program.
use super::wanted::WantedEntries;
use crate::conntrack_table::CtTable;

/// Number of nodes per call, two per entry: limits the length of the kernel's RCU section.
const NODES_A_CALL: u32 = 20_000;

/// `struct walk`.
pub(super) struct Context(pub(super) [u8; Context::BYTES]);

impl Context {
    pub(super) const TUPLES: usize = 64;
    pub(super) const ENDED: usize = 224;
    pub(super) const NEXT: usize = 228;
    pub(super) const FILLED: usize = 232;
    pub(super) const BUCKETS: usize = 236;
    pub(super) const RESTARTS: usize = 240;
    pub(super) const GONE: usize = 244;
    pub(super) const NODES: usize = 248;
    pub(super) const LONGEST: usize = 252;
    pub(super) const ADDRESS: usize = 256;
    pub(super) const NET: usize = 264;
    pub(super) const PORTION: usize = 356;
    pub(super) const SIZE_FD: usize = 364;
    pub(super) const VARIABLES: usize = 368;
    pub(super) const DIGEST: usize = 376;
    pub(super) const BYTES: usize = 384;

    pub(super) fn new(
        wanted: &WantedEntries,
        [start, end, region, fd]: [u32; 4],
        [lanes, found]: [u32; 2],
        net: u64,
    ) -> Context {
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
        let mut context = Context(bytes);
        context.put(Context::NET, &net.to_ne_bytes());
        context.put(Context::TUPLES, tuples.as_flattened());
        context
    }

    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0.iter_mut().skip(at).zip(bytes).for_each(|(place, byte)| *place = *byte);
    }

    pub(super) fn get(&self, at: usize) -> u32 {
        self.0.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    pub(super) fn word(&self, at: usize) -> u64 {
        self.0.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    pub(super) fn table(&self) -> CtTable {
        CtTable { address: self.word(Context::ADDRESS), buckets: self.get(Context::BUCKETS) }
    }
}
