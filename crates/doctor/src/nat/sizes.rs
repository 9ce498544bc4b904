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
    /// Bytes of the entries of a table; `all_extended` if every new one gets extensions, as far as settings tell. What a
    /// door saw counts more.
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
    /// Memory of a full table of this size: entries, buckets, and the buckets of NAT's own hash, which keeps the size it
    /// was made with.
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

/// The sizes for what was seen; `None` without a limit, buckets or a sample to go by.
pub(super) fn advise(
    evidence: &Evidence,
    trend: &Trend,
    bytes: Option<u64>,
    timeout: Option<&TimeoutAdvice>,
) -> Option<Sizes> {
    let (max, buckets, peak) = (evidence.max?, evidence.buckets?, trend.peak?);
    let wanted = demand(max, peak, trend, timeout).saturating_mul(HEADROOM);
    let slots = slots_of_page(evidence.page_bytes);
    let rounded = |n: u64| n.checked_next_multiple_of(slots).unwrap_or(n);
    // A limit that does is left alone: a lower one frees nothing.
    let advised_max = if wanted <= max { max } else { rounded(wanted).min(MAX_MAX) };
    // One bucket for each entry that there will be, of whatever namespace.
    // A few of others' are not worth a new table: the number includes objects that are free again.
    let all = evidence.host_entries.or(evidence.chains.map(|chains| chains.nodes / 2));
    let others = all.map_or(0, |all| all.saturating_sub(peak));
    let others = if others > buckets / 8 { others } else { 0 };
    let for_all = wanted.saturating_add(others).max(if advised_max > max { advised_max } else { 0 });
    let most = BUCKETS_MAX / slots * slots;
    let advised_buckets = if for_all <= buckets { buckets } else { rounded(for_all).min(most).max(buckets) };
    let memory = |max: u64, table: u64| {
        let hashes = table.saturating_add(buckets).saturating_mul(BUCKET_BYTES);
        bytes.map(|bytes| max.saturating_mul(bytes).saturating_add(hashes))
    };
    Some(Sizes {
        advised_max,
        advised_buckets,
        wanted,
        memory_bytes: memory(advised_max, advised_buckets),
        memory_now_bytes: memory(max, buckets),
        is_change: advised_max != max || advised_buckets != buckets,
    })
}

/// Entries that there would be.
fn demand(max: u64, peak: u64, trend: &Trend, timeout: Option<&TimeoutAdvice>) -> u64 {
    // Where packets were dropped or entries thrown out, the limit hides how many there would be.
    let is_cut = some(&trend.grown, StatCounter::Drop).or(some(&trend.grown, StatCounter::EarlyDrop)).is_some();
    let seen = if is_cut || peak >= max { peak.max(max) } else { peak };
    let growth = trend.growth_per_s.and_then(|growth| u64::try_from(growth).ok()).unwrap_or(0);
    let lifetime = timeout.map_or(LIFETIME_MAX_S, |timeout| timeout.seconds.min(LIFETIME_MAX_S));
    seen.saturating_add(growth.saturating_mul(lifetime))
}
