//! The advised limit and number of buckets, and their memory.
use super::{Census, Evidence, TimeoutAdvice, Trend, some};
use record::rows::StatCounter;

/// Factor between the entries that were seen and the room there should be.
const HEADROOM: u64 = 2;
/// A growing table grows until its first entries expire; timeouts longer than this do not predict that.
const LIFETIME_MAX_S: u64 = 120;
/// Largest limit that the kernel accepts: it is an int.
const MAX_MAX: u64 = i32::MAX as u64;
/// Bytes of a bucket: `struct hlist_nulls_head`.
const BUCKET_BYTES: u64 = 8;
/// Most buckets that the kernel makes: their size in bytes is an int.
const BUCKETS_MAX: u64 = MAX_MAX / BUCKET_BYTES;

/// Memory of one entry, in bytes, including its share of a slab's unused rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryBytes {
    /// The entry alone.
    pub entry: u64,
    /// Its extensions, if it has any.
    pub extension: u64,
    /// Its extensions if a helper is among them.
    pub helped: u64,
}

/// Memory of one entry by kind, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bytes {
    pub(super) mean: u64,
    pub(super) plain: u64,
    pub(super) nat: u64,
}

impl EntryBytes {
    /// Returns the bytes of a table's entries; `all_extended` is true if the settings give every new entry extensions.
    /// Facts that a backend reported take precedence.
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

    /// Returns the mean over `entries`, rounded.
    fn mean(&self, entries: u64, extended: u64, helped: u64) -> u64 {
        let total = u128::from(self.entry) * u128::from(entries)
            + u128::from(self.extension) * u128::from(extended.saturating_sub(helped))
            + u128::from(self.helped) * u128::from(helped);
        let entries = u128::from(entries.max(1));
        u64::try_from((total + entries / 2) / entries).unwrap_or(u64::MAX)
    }
}

/// The advised sizes, with their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// `nf_conntrack_max`; the present value if it is large enough.
    pub advised_max: u64,
    /// `nf_conntrack_buckets`; the present value if it is large enough.
    pub advised_buckets: u64,
    /// Number of entries that should fit.
    pub wanted: u64,
    /// True if the limit hides how many entries there would be, so that `wanted` is estimated from the limit.
    pub is_estimate: bool,
    /// Most memory for the advised table if every entry is as large as with NAT; `None` if the host's memory is
    /// unknown.
    pub memory_bytes_max: Option<u64>,
    /// True if `wanted` would need more memory than that: the advised sizes are the largest that fit.
    pub is_capped: bool,
    /// Memory of a full table of the advised size: entries, buckets, and the buckets of NAT's own hash, whose size is
    /// fixed when it is made.
    pub memory_bytes: Option<u64>,
    /// Memory of a full table of the present size.
    pub memory_now_bytes: Option<u64>,
    /// True if a size should be changed.
    pub is_change: bool,
}

/// Returns the number of buckets per page: the kernel allocates buckets by the page.
pub fn slots_of_page(page_bytes: u64) -> u64 {
    (page_bytes / BUCKET_BYTES).max(1)
}

/// The table may use the host's memory divided by this, unless the user sets a limit.
const MEMORY_PART: u64 = 10;
/// Assumed bytes per entry if slab sizes are not readable, for comparison with the host's memory: more than 64-bit
/// kernels use (320 and 128 for extensions).
const ENTRY_BYTES_AT_MOST: u64 = 512;

/// The present table, with the facts that its size depends on.
struct TableSize {
    max: u64,
    buckets: u64,
    /// The number of buckets is a multiple of this.
    slots: u64,
    /// Entries of other namespaces.
    others: u64,
    /// Most bytes of an entry; a high guess if they are unknown.
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
            // An entry that is plain today may be masqueraded, counted or reported in events tomorrow.
            entry_bytes: bytes.map_or(ENTRY_BYTES_AT_MOST, |bytes| bytes.nat.max(bytes.mean)),
        })
    }

    /// Returns the limit and the buckets for `wanted` entries; the present values if they are large enough.
    fn sized_for(&self, wanted: u64) -> (u64, u64) {
        let rounded = |n: u64| n.checked_next_multiple_of(self.slots).unwrap_or(n);
        // A sufficient limit is left alone: a lower one frees nothing.
        let max = if wanted <= self.max { self.max } else { rounded(wanted).min(MAX_MAX) };
        // One bucket for each expected entry of any namespace. A small number of entries of other namespaces does not
        // justify a new table: the number includes objects that are free again.
        let others = if self.others > self.buckets / 8 { self.others } else { 0 };
        let for_all = wanted.saturating_add(others).max(if max > self.max { max } else { 0 });
        let most = BUCKETS_MAX / self.slots * self.slots;
        let buckets = if for_all <= self.buckets { self.buckets } else { rounded(for_all).min(most).max(self.buckets) };
        (max, buckets)
    }

    /// Returns the bytes of a full table: its entries, its buckets, and the buckets that NAT's own hash was made with.
    fn memory(&self, max: u64, buckets: u64, entry_bytes: u64) -> u64 {
        let hashes = buckets.saturating_add(self.buckets).saturating_mul(BUCKET_BYTES);
        max.saturating_mul(entry_bytes).saturating_add(hashes)
    }

    /// Like `memory`, plus the present entries of other namespaces.
    fn memory_of_host(&self, (max, buckets): (u64, u64)) -> u64 {
        let others = self.others.saturating_mul(self.entry_bytes);
        self.memory(max, buckets, self.entry_bytes).saturating_add(others)
    }

    /// Returns the limit and the buckets for as many entries as fit into `most` bytes; the present values if none fit.
    fn fitting(&self, most: u64) -> (u64, u64) {
        let fixed = self.memory_of_host((0, self.others.saturating_add(self.slots)));
        let fit = most.saturating_sub(fixed) / self.entry_bytes.saturating_add(BUCKET_BYTES);
        let sized = self.sized_for(fit / self.slots * self.slots);
        if self.memory_of_host(sized) <= most { sized } else { (self.max, self.buckets) }
    }
}

/// Returns the sizes for the evidence; `None` without a limit, buckets or a sample.
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
    // An unknown amount of memory counts as too little.
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

/// Returns the expected number of entries, and whether it is an estimate because the limit hides it.
fn demand(max: u64, peak: u64, trend: &Trend, timeout: Option<&TimeoutAdvice>) -> (u64, bool) {
    // If packets found no room or entries were evicted, the limit hides how many there would be. A larger table does
    // not help tuples that clashed.
    let is_cut = trend.without_room() > 0 || some(&trend.grown, StatCounter::EarlyDrop).is_some() || peak >= max;
    let seen = if is_cut { peak.max(max) } else { peak };
    let growth = trend.steady_growth_per_s.and_then(|growth| u64::try_from(growth).ok()).unwrap_or(0);
    let lifetime = timeout.map_or(LIFETIME_MAX_S, |timeout| timeout.seconds.min(LIFETIME_MAX_S));
    (seen.saturating_add(growth.saturating_mul(lifetime)), is_cut)
}
