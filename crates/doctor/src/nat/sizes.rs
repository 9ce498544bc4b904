//! What the limit and the number of buckets should be, and what they cost.
use super::{Census, Evidence, TimeoutAdvice, Trend, some};
use record::rows::StatCounter;

/// How many times what was seen there should be room for.
const HEADROOM: u64 = 2;
/// A growing table grows until what came first expires; a longer timeout than this says nothing of that.
const LIFETIME_MAX_S: u64 = 120;
/// Largest limit the kernel takes: it is an int.
const MAX_MAX: u64 = i32::MAX as u64;
/// Bytes of a bucket: `struct hlist_nulls_head`.
const BUCKET_BYTES: u64 = 8;
/// Most buckets the kernel makes: their bytes are an int.
const BUCKETS_MAX: u64 = MAX_MAX / BUCKET_BYTES;

/// What one entry takes, in bytes, with its share of what is left over in a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryBytes {
    /// The entry alone.
    pub entry: u64,
    /// Its extensions, if it has some.
    pub extension: u64,
    /// Its extensions with a helper among them.
    pub helped: u64,
}

/// The same for kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bytes {
    pub(super) mean: u64,
    pub(super) plain: u64,
    pub(super) nat: u64,
}

impl EntryBytes {
    /// Bytes of the entries of a table; `all_extended` if every new one gets extensions, as far as settings tell. What
    /// a backend saw counts more.
    pub(super) fn of_table(&self, census: Option<&Census>, all_extended: bool) -> Bytes {
        let with = self.entry.saturating_add(self.extension);
        let by_settings = if all_extended { with } else { self.entry };
        let Some(census) = census.filter(|census| census.entries() > 0) else {
            return Bytes { mean: by_settings, plain: by_settings, nat: with };
        };
        let (certain, may_be, helped) = census.extended();
        let extended = match (census.is_exact(), all_extended) {
            (true, _) => certain,
            (false, true) => census.entries(),
            (false, false) => may_be,
        };
        let plain = match census.plain() {
            (entries, extended) if census.is_exact() && entries > 0 => self.mean(entries, extended, 0),
            _ => by_settings,
        };
        Bytes { mean: self.mean(census.entries(), extended, helped), plain, nat: with }
    }

    /// Mean of so many entries, rounded.
    fn mean(&self, entries: u64, extended: u64, helped: u64) -> u64 {
        let total = u128::from(self.entry) * u128::from(entries)
            + u128::from(self.extension) * u128::from(extended.saturating_sub(helped))
            + u128::from(self.helped) * u128::from(helped);
        let entries = u128::from(entries.max(1));
        u64::try_from((total + entries / 2) / entries).unwrap_or(u64::MAX)
    }
}

/// What to set, and its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// `nf_conntrack_max`; as it is if it does.
    pub advised_max: u64,
    /// `nf_conntrack_buckets`; as it is if it does.
    pub advised_buckets: u64,
    /// Entries that there should be room for.
    pub wanted: u64,
    /// True if the limit hides how many entries there would be: `wanted` is an estimate from the limit then.
    pub is_estimate: bool,
    /// Memory that the advised table may take, every entry being as large as NAT makes it; `None` if the host's memory
    /// is not known.
    pub memory_bytes_max: Option<u64>,
    /// True if `wanted` would take more than that: what is advised is what fits.
    pub is_capped: bool,
    /// Memory of a full table of this size: entries, buckets, and the buckets of NAT's own hash, which keeps the size
    /// it was made with.
    pub memory_bytes: Option<u64>,
    /// The same of a full table of the size it has.
    pub memory_now_bytes: Option<u64>,
    /// True if anything should be changed.
    pub is_change: bool,
}

/// The kernel makes buckets by the page: how many are on one.
pub fn slots_of_page(page_bytes: u64) -> u64 {
    (page_bytes / BUCKET_BYTES).max(1)
}

/// The part of the host's memory that is advised without the user's word: one in so many bytes.
const MEMORY_PART: u64 = 10;
/// Bytes of an entry where slab sizes may not be read, to hold against the host's memory: more than 64-bit kernels take
/// (320 and 128 for extensions).
const ENTRY_BYTES_AT_MOST: u64 = 512;

/// The table as it is, and what counts for its size.
struct TableSize {
    max: u64,
    buckets: u64,
    /// Buckets are made by so many.
    slots: u64,
    /// Entries of other namespaces.
    others: u64,
    /// Bytes that any entry may take; a high guess where they are not known.
    entry_bytes: u64,
}

impl TableSize {
    fn of(evidence: &Evidence, peak: u64, bytes: Option<Bytes>) -> Option<TableSize> {
        let all = evidence.host_entries.or(evidence.chains.map(|chains| chains.nodes / 2));
        Some(TableSize {
            max: evidence.max?,
            buckets: evidence.buckets?,
            slots: slots_of_page(evidence.page_bytes),
            others: all.map_or(0, |all| all.saturating_sub(peak)),
            // What is plain today may be masqueraded, counted or listened to tomorrow.
            entry_bytes: bytes.map_or(ENTRY_BYTES_AT_MOST, |bytes| bytes.nat.max(bytes.mean)),
        })
    }

    /// The limit and the buckets for so many entries; each as it is if it does.
    fn sized_for(&self, wanted: u64) -> (u64, u64) {
        let rounded = |n: u64| n.checked_next_multiple_of(self.slots).unwrap_or(n);
        // A limit that does is left alone: a lower one frees nothing.
        let max = if wanted <= self.max { self.max } else { rounded(wanted).min(MAX_MAX) };
        // One bucket for each entry that there will be, of whatever namespace.
        // A few of others' are not worth a new table: the number includes objects that are free again.
        let others = if self.others > self.buckets / 8 { self.others } else { 0 };
        let for_all = wanted.saturating_add(others).max(if max > self.max { max } else { 0 });
        let most = BUCKETS_MAX / self.slots * self.slots;
        let buckets = if for_all <= self.buckets { self.buckets } else { rounded(for_all).min(most).max(self.buckets) };
        (max, buckets)
    }

    /// Bytes of a full table: its entries, its buckets, and the buckets that NAT's own hash was made with.
    fn memory(&self, max: u64, buckets: u64, entry_bytes: u64) -> u64 {
        let hashes = buckets.saturating_add(self.buckets).saturating_mul(BUCKET_BYTES);
        max.saturating_mul(entry_bytes).saturating_add(hashes)
    }

    /// The same with the entries that other namespaces have now.
    fn memory_of_host(&self, (max, buckets): (u64, u64)) -> u64 {
        let others = self.others.saturating_mul(self.entry_bytes);
        self.memory(max, buckets, self.entry_bytes).saturating_add(others)
    }

    /// Limit and buckets for so many entries as fit into `most` bytes with everything else; as they are if none do.
    fn fitting(&self, most: u64) -> (u64, u64) {
        let fixed = self.memory_of_host((0, self.others.saturating_add(self.slots)));
        let fit = most.saturating_sub(fixed) / self.entry_bytes.saturating_add(BUCKET_BYTES);
        let sized = self.sized_for(fit / self.slots * self.slots);
        if self.memory_of_host(sized) <= most { sized } else { (self.max, self.buckets) }
    }
}

/// The sizes for what was seen; `None` without a limit, buckets or a sample to go by.
pub(super) fn advise(
    evidence: &Evidence,
    trend: &Trend,
    bytes: Option<Bytes>,
    timeout: Option<&TimeoutAdvice>,
) -> Option<Sizes> {
    let peak = trend.peak?;
    let table = TableSize::of(evidence, peak, bytes)?;
    let (entries, is_estimate) = demand(table.max, peak, trend, timeout);
    let wanted = entries.saturating_mul(HEADROOM);
    let most = evidence.memory_bytes_max.or(evidence.host_memory_bytes.map(|memory| memory / MEMORY_PART));
    let now = (table.max, table.buckets);
    let for_wanted = table.sized_for(wanted);
    // What is not known is not enough.
    let is_capped = for_wanted != now && table.memory_of_host(for_wanted) > most.unwrap_or(0);
    let (advised_max, advised_buckets) = if is_capped { table.fitting(most.unwrap_or(0)) } else { for_wanted };
    Some(Sizes {
        advised_max,
        advised_buckets,
        wanted,
        is_estimate,
        memory_bytes_max: most,
        is_capped,
        memory_bytes: bytes.map(|bytes| table.memory(advised_max, advised_buckets, bytes.mean)),
        memory_now_bytes: bytes.map(|bytes| table.memory(table.max, table.buckets, bytes.mean)),
        is_change: (advised_max, advised_buckets) != now,
    })
}

/// Entries that there would be; true if that is an estimate, because the limit hides it.
fn demand(max: u64, peak: u64, trend: &Trend, timeout: Option<&TimeoutAdvice>) -> (u64, bool) {
    // Where packets found no room or entries were thrown out, the limit hides how many there would be. A tuple that
    // clashed finds no better place in a larger table.
    let is_cut = trend.without_room() > 0 || some(&trend.grown, StatCounter::EarlyDrop).is_some() || peak >= max;
    let seen = if is_cut { peak.max(max) } else { peak };
    let growth = trend.steady_growth_per_s.and_then(|growth| u64::try_from(growth).ok()).unwrap_or(0);
    let lifetime = timeout.map_or(LIFETIME_MAX_S, |timeout| timeout.seconds.min(LIFETIME_MAX_S));
    (seen.saturating_add(growth.saturating_mul(lifetime)), is_cut)
}
