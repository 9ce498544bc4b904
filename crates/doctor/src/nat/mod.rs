//! The size of the connection-tracking table: how full it is, how it grows, which size it needs and what that costs.
//!
//! Start reading at [`advise`]. `trend` compares samples, [`Census`] counts one pass over the table, [`Sizes`] derives
//! a limit from both, and `reasons` writes the sentences.
mod census;
mod chains;
mod entry_timeout;
mod ports;
mod reasons;
mod settings;
mod sizes;
mod timeouts;
mod trend;

pub use census::Census;
pub use chains::Chains;
pub use entry_timeout::setting_of;
pub use ports::{PortCensus, PortUse, Ports, range_of};
pub use settings::{Judged, Setting, sizes_of, sysctl_lines, timeout_of};
pub use sizes::{EntryBytes, Sizes, slots_of_page};
pub use timeouts::TimeoutAdvice;
pub use trend::{FORECAST_SAMPLES, Sample, Trend};

use record::rows::{CtSetting, CtSettings, SnatRule, StatCounter, StatCounts};

/// Everything that was read about one namespace.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Readings of its counters, in order of time.
    pub samples: Vec<Sample>,
    /// `nf_conntrack_max`.
    pub max: Option<u64>,
    /// `nf_conntrack_buckets`.
    pub buckets: Option<u64>,
    /// Its settings.
    pub settings: CtSettings,
    /// True if any namespace has a listener for conntrack events: a single one makes the kernel prepare events in all
    /// namespaces. `None` if it is unknown.
    pub is_listened_to: Option<bool>,
    /// One pass over the table.
    pub census: Option<Census>,
    /// Lengths of the hash chains, if the chains were walked.
    pub chains: Option<Chains>,
    /// Entries of all namespaces that were refused during the samples because their hash chain was too long.
    pub host_refused: Option<u64>,
    /// Rules of source NAT; `None` if they are unknown.
    pub snat_rules: Option<Vec<SnatRule>>,
    /// Memory per entry on this kernel.
    pub entry: Option<EntryBytes>,
    /// Page size in bytes.
    pub page_bytes: u64,
    /// Entries of all namespaces, which share the buckets.
    pub host_entries: Option<u64>,
    /// Memory of the host in bytes.
    pub host_memory_bytes: Option<u64>,
    /// Most memory for the advised table, if the user sets it; otherwise a tenth of the host's.
    pub memory_bytes_max: Option<u64>,
    /// True if the limit can be set from this namespace, which is possible only from the first.
    pub is_first: bool,
}

/// A judgement of the table in one word: the worst one that applies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// Its size is unknown.
    Unknown,
    /// It has room.
    Roomy,
    /// Its chains are too long for its buckets.
    Crowded,
    /// It will be full soon.
    Filling,
    /// It has room, but new entries are refused: source ports are exhausted, or tuples clash.
    Refusing,
    /// It is nearly full and evicts entries before they expire.
    Evicting,
    /// It is full: packets are dropped.
    Full,
}

impl Verdict {
    /// The verdict's wording in a sentence: `plenty of room`.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Roomy => "plenty of room",
            other => other.name(),
        }
    }

    /// The value in the column `verdict`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Unknown => "unknown",
            Verdict::Roomy => "roomy",
            Verdict::Crowded => "crowded",
            Verdict::Filling => "filling",
            Verdict::Refusing => "refusing",
            Verdict::Evicting => "evicting",
            Verdict::Full => "full",
        }
    }
}

/// The advice for one namespace. Unknown values are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The judgement of the table.
    pub verdict: Verdict,
    /// Entries in the last sample, including expired ones that were not collected yet.
    pub entries: Option<u64>,
    /// The present limit.
    pub max: Option<u64>,
    /// The present number of buckets.
    pub buckets: Option<u64>,
    /// The trend of the samples.
    pub trend: Trend,
    /// Entries that have expired and still count.
    pub expired: Option<u64>,
    /// Entries with a rewritten address.
    pub nat_entries: Option<u64>,
    /// Lengths of the hash chains.
    pub chains: Option<Chains>,
    /// Mean bytes per entry of the present table, or of a plain entry if it is empty.
    pub bytes_per_entry: Option<u64>,
    /// Bytes per entry without NAT.
    pub bytes_per_entry_plain: Option<u64>,
    /// Bytes per masqueraded entry, the most expensive form of NAT.
    pub bytes_per_entry_nat: Option<u64>,
    /// Advised limit and buckets, with their memory.
    pub sizes: Option<Sizes>,
    /// The timeout that governs most entries.
    pub timeout: Option<TimeoutAdvice>,
    /// Source ports, as far as they are exhausted.
    pub ports: Ports,
    /// The reasons in sentences: lower case, no full stop; the most serious first.
    pub reasons: Vec<String>,
}

/// A table that is full within this many seconds is full soon.
const SOON_S: u64 = 3600;
/// Below this percentage of the limit, no shorter timeout is proposed: lingering entries take room that is free
/// anyway.
const TIMEOUTS_MATTER_PERCENT: u64 = 50;
/// From this percentage of the limit on, a table is nearly full. The kernel begins to evict entries at 95.
const NEARLY_FULL_PERCENT: u64 = 80;

/// Derives the advice from the evidence.
pub fn advise(evidence: &Evidence) -> Advice {
    let trend = Trend::of(&evidence.samples, evidence.max);
    let entries = evidence.samples.last().map(|sample| sample.entries);
    let census = evidence.census.as_ref();
    let all_extended = is_all_extended(evidence);
    let bytes = evidence.entry.map(|entry| entry.of_table(census, all_extended));
    let peak = trend.peak.or(entries).unwrap_or(0);
    let is_wanted = evidence.max.is_none_or(|max| percent(peak, max) >= TIMEOUTS_MATTER_PERCENT);
    let timeout = census.and_then(|census| timeouts::advise(census, &evidence.settings, is_wanted));
    let ports = ports::judge(evidence, trend.clashes());
    let sizes = sizes::advise(evidence, &trend, bytes, timeout.as_ref());
    let mut advice = Advice {
        verdict: verdict(evidence, &trend, entries, &ports),
        entries,
        max: evidence.max,
        buckets: evidence.buckets,
        trend,
        expired: if entries == Some(0) { Some(0) } else { census.and_then(Census::expired) },
        nat_entries: census.map(Census::nat),
        chains: chains::known(evidence),
        bytes_per_entry: bytes.map(|bytes| bytes.mean),
        bytes_per_entry_plain: bytes.map(|bytes| bytes.plain),
        bytes_per_entry_nat: bytes.map(|bytes| bytes.nat),
        sizes,
        timeout,
        ports,
        reasons: Vec::new(),
    };
    advice.reasons = reasons::of(evidence, &advice);
    advice
}

/// True if every new entry gets extensions.
fn is_all_extended(evidence: &Evidence) -> bool {
    let is_on = |setting| evidence.settings.get(setting).is_some_and(|value| value != 0);
    let told = match evidence.settings.get(CtSetting::Events) {
        Some(1) => true,
        Some(2) => evidence.is_listened_to == Some(true),
        _ => false,
    };
    told || is_on(CtSetting::Acct) || is_on(CtSetting::Timestamp)
}

fn verdict(evidence: &Evidence, trend: &Trend, entries: Option<u64>, ports: &Ports) -> Verdict {
    let (Some(entries), Some(max)) = (entries, evidence.max) else { return Verdict::Unknown };
    let grew = |counter| trend.grown.get(counter).is_some_and(|grown| grown > 0);
    let soon = trend.full_in_s.is_some_and(|seconds| seconds < SOON_S);
    if entries >= max || trend.without_room() > 0 && percent(trend.peak.unwrap_or(0), max) >= NEARLY_FULL_PERCENT {
        return Verdict::Full;
    }
    if grew(StatCounter::EarlyDrop) {
        return Verdict::Evicting;
    }
    if grew(StatCounter::Drop) || !ports.used_up.is_empty() {
        return Verdict::Refusing;
    }
    if soon || percent(entries, max) >= NEARLY_FULL_PERCENT {
        return Verdict::Filling;
    }
    // All namespaces share one hash table: entries refused in one namespace show the state of all.
    let is_refused = grew(StatCounter::ChainTooLong) || evidence.host_refused.is_some_and(|refused| refused > 0);
    if is_refused || evidence.chains.is_some_and(Chains::is_long) {
        return Verdict::Crowded;
    }
    Verdict::Roomy
}

/// Returns a share in percent, with one decimal below 10 %: `0.6`, `82`. A table with limit 0 always counts as full.
fn percent_text(part: u64, whole: u64) -> String {
    match part.checked_mul(1000).and_then(|thousandths| thousandths.checked_div(whole)) {
        Some(thousandths) if thousandths < 100 && part > 0 => format!("{}.{}", thousandths / 10, thousandths % 10),
        _ => percent(part, whole).to_string(),
    }
}

/// Returns a share in percent, rounded down. A table with limit 0 always counts as full.
fn percent(part: u64, whole: u64) -> u64 {
    match whole {
        0 => 100,
        whole => u64::try_from(u128::from(part) * 100 / u128::from(whole)).unwrap_or(u64::MAX),
    }
}

/// Returns a counter if it is known and not 0.
fn some(counts: &StatCounts, counter: StatCounter) -> Option<u64> {
    counts.get(counter).filter(|count| *count > 0)
}

#[cfg(test)]
mod tests;
