//! The size of the connection-tracking table: how full it is, where that leads, what it should be, what that costs.
//!
//! Start reading at [`advise`]. The numbers: `trend` compares samples, [`Census`] counts one pass over the table,
//! [`Sizes`] turns both into a limit, `reasons` into sentences.
mod census;
mod chains;
mod entry_timeout;
mod ports;
mod reasons;
mod sizes;
mod timeouts;
mod trend;

pub use census::Census;
pub use chains::Chains;
pub use entry_timeout::setting_of;
pub use ports::{PortCensus, PortUse, Ports, range_of};
pub use sizes::{EntryBytes, Sizes, slots_of_page};
pub use timeouts::TimeoutAdvice;
pub use trend::{FORECAST_SAMPLES, Sample, Trend};

use record::rows::{CtSetting, CtSettings, SnatRule, StatCounter, StatCounts};

/// Everything that was read of one namespace.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Readings of its counters, in the order of time.
    pub samples: Vec<Sample>,
    /// `nf_conntrack_max`.
    pub max: Option<u64>,
    /// `nf_conntrack_buckets`.
    pub buckets: Option<u64>,
    /// Its settings.
    pub settings: CtSettings,
    /// True if somebody listens to what happens to entries, in whatever namespace: one listener makes the kernel
    /// prepare for it in all of them. `None` if it cannot be told.
    pub is_listened_to: Option<bool>,
    /// One pass over the table.
    pub census: Option<Census>,
    /// Lengths of the hash chains, if somebody walked them.
    pub chains: Option<Chains>,
    /// Entries of all namespaces that were refused while it was watched, because their hash chain was too long.
    pub host_refused: Option<u64>,
    /// Rules of source NAT; `None` if nobody tells.
    pub snat_rules: Option<Vec<SnatRule>>,
    /// What an entry takes on this kernel.
    pub entry: Option<EntryBytes>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Entries of all namespaces: they share the buckets.
    pub host_entries: Option<u64>,
    /// Memory of the host in bytes.
    pub host_memory_bytes: Option<u64>,
    /// Memory that the advised table may take, if the user says so; a tenth of the host's otherwise.
    pub memory_bytes_max: Option<u64>,
    /// True if the limit can be set from this namespace: only from the first.
    pub is_first: bool,
}

/// What is to be thought of the table in one word. The worst that holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// Nothing is known of its size.
    Unknown,
    /// It has room.
    Roomy,
    /// Its chains are too long for its buckets.
    Crowded,
    /// It will be full soon.
    Filling,
    /// It has room, and new entries are refused all the same: source ports are used up, or tuples clash.
    Refusing,
    /// It is nearly full and throws out entries before their time.
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

    /// The value of the column `verdict`.
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

/// The advice for one namespace. What is not known is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The table in one word.
    pub verdict: Verdict,
    /// Entries in the last sample, expired ones that nobody collected included.
    pub entries: Option<u64>,
    /// The limit as it is.
    pub max: Option<u64>,
    /// Buckets as they are.
    pub buckets: Option<u64>,
    /// What the samples show.
    pub trend: Trend,
    /// Entries that have expired and still count.
    pub expired: Option<u64>,
    /// Entries whose address is rewritten.
    pub nat_entries: Option<u64>,
    /// Lengths of the hash chains.
    pub chains: Option<Chains>,
    /// Bytes of an entry: mean of the table as it is, or of a plain one if it is empty.
    pub bytes_per_entry: Option<u64>,
    /// Bytes of an entry without NAT.
    pub bytes_per_entry_plain: Option<u64>,
    /// Bytes of a masqueraded entry, the most that NAT costs.
    pub bytes_per_entry_nat: Option<u64>,
    /// What the limit and the buckets should be, and their memory.
    pub sizes: Option<Sizes>,
    /// The timeout that holds most entries.
    pub timeout: Option<TimeoutAdvice>,
    /// Source ports that are used up.
    pub ports: Ports,
    /// Why, in sentences: lower case, no full stop; the gravest first.
    pub reasons: Vec<String>,
}

/// Which seconds until the table is full are soon.
const SOON_S: u64 = 3600;
/// Below this percentage of the limit, no shorter timeout is proposed: lingering entries take room that is free anyway.
const TIMEOUTS_MATTER_PERCENT: u64 = 50;
/// From which percentage on a table is nearly full. The kernel begins to throw out entries at 95.
const NEARLY_FULL_PERCENT: u64 = 80;

/// What the evidence comes to.
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

/// True if every new entry has extensions, whatever becomes of it.
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
    // The hash table is one for all namespaces: what is refused in one shows how all of them are.
    let is_refused = grew(StatCounter::ChainTooLong) || evidence.host_refused.is_some_and(|refused| refused > 0);
    if is_refused || evidence.chains.is_some_and(Chains::is_long) {
        return Verdict::Crowded;
    }
    Verdict::Roomy
}

/// A share in percent, with one decimal below 10 %: `0.6`, `82`. A table with limit 0 always counts as full.
fn percent_text(part: u64, whole: u64) -> String {
    match part.checked_mul(1000).and_then(|thousandths| thousandths.checked_div(whole)) {
        Some(thousandths) if thousandths < 100 && part > 0 => format!("{}.{}", thousandths / 10, thousandths % 10),
        _ => percent(part, whole).to_string(),
    }
}

/// A part in percent, rounded down; a limit of 0 is always full.
fn percent(part: u64, whole: u64) -> u64 {
    match whole {
        0 => 100,
        whole => u64::try_from(u128::from(part) * 100 / u128::from(whole)).unwrap_or(u64::MAX),
    }
}

/// A counter that is known and not 0.
fn some(counts: &StatCounts, counter: StatCounter) -> Option<u64> {
    counts.get(counter).filter(|count| *count > 0)
}

#[cfg(test)]
mod tests;
