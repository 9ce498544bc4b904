//! The advice as text and as rows.

use doctor::nat::{
    Advice, Evidence, Judged, PortUse, Sizes, TimeoutAdvice, Verdict, sizes_of, sysctl_lines, timeout_of,
};
use record::rows::{AdviceNumber, NatAdvice, StatCounter, ip_proto};
use record::text::put_text;
use record::{Object, Value};
use std::fmt::Write;

/// A paragraph per namespace, the worst first, and the settings. With several namespaces, one line covers all that
/// have room.
pub(super) fn words(judged: &[Judged]) -> String {
    let mut text = String::new();
    let mut worst_first: Vec<&Judged> = judged.iter().collect();
    worst_first.sort_by_key(|one| std::cmp::Reverse(one.advice.verdict));
    if let [worst, _, ..] = worst_first.as_slice() {
        let verdict = worst.advice.verdict.words();
        let _ = writeln!(text, "this host: {verdict}, the worst state of {} network namespaces", judged.len());
    }
    for Judged { name, advice, .. } in worst_first {
        let mut shown = Vec::new();
        put_text(&mut shown, name);
        let (shown, verdict) = (String::from_utf8_lossy(&shown), advice.verdict.words());
        let is_changed = advice.sizes.is_some_and(|sizes| sizes.is_change);
        if judged.len() > 1 && advice.verdict == Verdict::Roomy && !is_changed {
            let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
            let _ = writeln!(text, "{shown}: {verdict}, {} of {} entries", number(advice.entries), number(advice.max));
            continue;
        }
        let _ = writeln!(text, "{shown}: {verdict}");
        for reason in &advice.reasons {
            let _ = writeln!(text, "  {reason}");
        }
    }
    let lines = sysctl_lines(&sizes_of(judged));
    if !lines.is_empty() {
        text.push_str("to set, in the first network namespace:\n");
        for line in &lines {
            let _ = writeln!(text, "  sysctl -w {line}");
        }
    }
    timeouts(&mut text, judged);
    text
}

/// Adds the timeouts that should be shorter, with their namespaces if there are several.
fn timeouts(text: &mut String, judged: &[Judged]) {
    let mut advised = judged.iter().filter_map(|one| Some((one, timeout_of(one)?))).peekable();
    if advised.peek().is_none() {
        return;
    }
    text.push_str("to shorten a timeout, each in its network namespace (also done by --apply --timeouts):\n");
    for (one, setting) in advised {
        let mut shown = Vec::new();
        put_text(&mut shown, &one.name);
        let _ = writeln!(text, "  sysctl -w {}    # {}", setting.line(), String::from_utf8_lossy(&shown));
    }
}

/// A row per namespace, in the order of reading.
pub(super) struct AdviceRows<'j> {
    judged: &'j [Judged],
    /// For each namespace the sysctl assignments of its sizes and timeouts.
    sysctl: Vec<[Vec<String>; 2]>,
    ports: Vec<Vec<UsedUp<'j>>>,
}

impl<'j> AdviceRows<'j> {
    /// Collects the data that rows borrow.
    pub(super) fn of(judged: &'j [Judged]) -> AdviceRows<'j> {
        // Host-wide settings appear in one row only: the row of the namespace in which they can be set.
        let bearer = judged.iter().position(|one| one.evidence.is_first).unwrap_or(0);
        let lines = |(place, one): (usize, &Judged)| {
            let sizes = if place == bearer { sizes_of(judged) } else { Vec::new() };
            [sysctl_lines(&sizes), sysctl_lines(timeout_of(one).as_slice())]
        };
        AdviceRows {
            judged,
            sysctl: judged.iter().enumerate().map(lines).collect(),
            ports: judged.iter().map(|one| one.advice.ports.used_up.iter().map(UsedUp).collect()).collect(),
        }
    }

    /// The rows.
    pub(super) fn rows(&self) -> Vec<NatAdvice<'_>> {
        let parts = self.judged.iter().zip(&self.sysctl).zip(&self.ports);
        parts.map(|((one, [sysctl, sysctl_timeouts]), ports)| row(one, sysctl, sysctl_timeouts, ports)).collect()
    }
}

fn row<'r>(
    judged: &'r Judged,
    sysctl: &'r Vec<String>,
    sysctl_timeouts: &'r Vec<String>,
    ports_used_up: &'r Vec<UsedUp<'r>>,
) -> NatAdvice<'r> {
    let Judged { netns_id, name, evidence, advice } = judged;
    let mut numbers = [Value::Null; AdviceNumber::COUNT];
    let mut set = |number: AdviceNumber, value| numbers[number as usize] = value;
    for (number, n) in counts(evidence, advice) {
        set(number, Value::number(n));
    }
    let signed = |n: Option<i64>| n.map_or(Value::Null, Value::I64);
    set(AdviceNumber::GrowthPerS, signed(advice.trend.growth_per_s));
    set(AdviceNumber::SteadyGrowthPerS, signed(advice.trend.steady_growth_per_s));
    let buckets = evidence.buckets.filter(|buckets| *buckets > 0);
    if let Some((chains, buckets)) = advice.chains.zip(buckets) {
        let thousandths = (u128::from(chains.nodes) * 1000 + u128::from(buckets) / 2) / u128::from(buckets);
        set(AdviceNumber::MeanChain, Value::Thousandths(u64::try_from(thousandths).unwrap_or(u64::MAX)));
    }
    if let Some(sizes) = &advice.sizes {
        set(AdviceNumber::IsCapped, Value::Bool(sizes.is_capped));
        set(AdviceNumber::IsEstimate, Value::Bool(sizes.is_estimate));
    }
    NatAdvice {
        netns: name,
        netns_id: *netns_id,
        verdict: advice.verdict.name(),
        numbers,
        ports_used_up,
        timeout: advice.timeout.as_ref().map(|timeout| timeout.setting.file()),
        sysctl,
        sysctl_timeouts,
        reasons: &advice.reasons,
    }
}

/// The counts; `None` for unknown ones.
fn counts(evidence: &Evidence, advice: &Advice) -> impl Iterator<Item = (AdviceNumber, Option<u64>)> {
    use AdviceNumber as N;
    let Advice { trend, sizes, timeout, chains, .. } = advice;
    let sizes = |of: fn(&Sizes) -> Option<u64>| sizes.as_ref().and_then(of);
    let timeout = |of: fn(&TimeoutAdvice) -> Option<u64>| timeout.as_ref().and_then(of);
    let total = |counter| trend.totals.get(counter);
    let grown = |counter| trend.grown.get(counter);
    [
        (N::Entries, advice.entries),
        (N::Max, advice.max),
        (N::Buckets, advice.buckets),
        (N::Samples, u64::try_from(evidence.samples.len()).ok()),
        (N::IntervalMs, trend.interval_ms),
        (N::Peak, trend.peak),
        (N::FullInS, trend.full_in_s),
        (N::Expired, advice.expired),
        (N::Drop, total(StatCounter::Drop)),
        (N::DropDelta, grown(StatCounter::Drop)),
        (N::EarlyDrop, total(StatCounter::EarlyDrop)),
        (N::EarlyDropDelta, grown(StatCounter::EarlyDrop)),
        (N::InsertFailed, total(StatCounter::InsertFailed)),
        (N::InsertFailedDelta, grown(StatCounter::InsertFailed)),
        (N::ChainTooLong, total(StatCounter::ChainTooLong)),
        (N::ChainTooLongDelta, grown(StatCounter::ChainTooLong)),
        (N::LongestChain, chains.and_then(|chains| chains.longest)),
        (N::NatEntries, advice.nat_entries),
        (N::BytesPerEntry, advice.bytes_per_entry),
        (N::BytesPerEntryPlain, advice.bytes_per_entry_plain),
        (N::BytesPerEntryNat, advice.bytes_per_entry_nat),
        (N::AdvisedMax, sizes(|sizes| Some(sizes.advised_max))),
        (N::AdvisedBuckets, sizes(|sizes| Some(sizes.advised_buckets))),
        (N::MemoryBytes, sizes(|sizes| sizes.memory_bytes)),
        (N::MemoryNowBytes, sizes(|sizes| sizes.memory_now_bytes)),
        (N::MemoryBytesMax, sizes(|sizes| sizes.memory_bytes_max)),
        (N::TimeoutS, timeout(|timeout| Some(timeout.seconds))),
        (N::TimeoutEntries, timeout(|timeout| Some(timeout.entries))),
        (N::TimeoutAdvisedS, timeout(|timeout| timeout.advised_s)),
        (N::TimeoutFrees, timeout(|timeout| timeout.frees)),
    ]
    .into_iter()
}

/// An exhausted range of source ports, as a value.
struct UsedUp<'j>(&'j PortUse);

impl Object for UsedUp<'_> {
    fn for_each(&self, each: &mut dyn FnMut(&'static str, Value<'_>)) {
        let PortUse { proto, addr, dest, dest_port, range, is_by_rule, used } = self.0;
        each("proto", Value::Name(ip_proto::name(*proto)));
        each("snat_addr", Value::Addr(*addr));
        each("dest_addr", Value::Addr(*dest));
        each("dest_port", Value::U64((*dest_port).into()));
        each("used", Value::U64(*used));
        each("ports", Value::U64(range.count()));
        each("first_port", Value::U64(range.first.into()));
        each("last_port", Value::U64(range.last.into()));
        each("is_by_rule", Value::Bool(*is_by_rule));
    }
}
