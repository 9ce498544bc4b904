//! The advice in sentences.
use record::rows::{CtSetting, StatCounter, StatCounts};

use super::trend::clashes;
use super::{
    Advice, Census, Evidence, FORECAST_SAMPLES, Sizes, TimeoutAdvice, Trend, Verdict, chains, percent, percent_text,
    ports, some,
};

/// Returns the sentences, the most serious first.
pub(super) fn of(evidence: &Evidence, advice: &Advice) -> Vec<String> {
    let mut says = Vec::new();
    ports::of(evidence, &advice.ports, advice.trend.clashes(), &mut says);
    losses(&advice.trend, &mut says);
    filling(evidence, advice, &mut says);
    chains::of(evidence, advice, &mut says);
    if let Some(sizes) = &advice.sizes {
        sizing(evidence, advice, sizes, &mut says);
    }
    if let Some(timeout) = &advice.timeout {
        says.push(of_timeout(timeout, evidence.census.as_ref()));
    }
    memory(evidence, advice, &mut says);
    unknown(evidence, advice, &mut says);
    says
}

fn losses(trend: &Trend, says: &mut Vec<String>) {
    let seconds = trend.interval_ms.map_or(String::new(), |ms| format!(" in {}", in_seconds(ms)));
    let lost = [
        (StatCounter::Drop, "packets were dropped because no entry could be created for them"),
        (StatCounter::EarlyDrop, "entries were evicted early to make room"),
        (
            StatCounter::InsertFailed,
            "entries could not be inserted (tuple taken, or chain too long) and their packets were dropped",
        ),
        (StatCounter::ChainTooLong, "entries were rejected because their hash chain was too long"),
    ];
    let (grown, totals) = (own_losses(&trend.grown), own_losses(&trend.totals));
    for (counts, is_now) in [(&trend.grown, true), (&trend.totals, false)] {
        let clashed = clashes(counts);
        if clashed > 0 && (is_now || trend.clashes() == 0) {
            let when = if is_now {
                seconds.clone()
            } else {
                " since the namespace was created, none during the samples".into()
            };
            says.push(format!(
                "{clashed} packets were dropped although there was room, because the tuple of their entry was \
                 taken{when} (`insert_failed` and `drop` count them)"
            ));
        }
    }
    for (counter, words) in lost {
        if let Some(grown) = some(&grown, counter) {
            says.push(format!("{grown} {words}{seconds} (`{}`)", counter.name()));
        } else if let Some(total) = some(&totals, counter) {
            says.push(format!(
                "{total} {words} since the namespace was created, none during the samples (`{}`)",
                counter.name()
            ));
        }
    }
}

/// Returns the counters without the tuples that clashed: a separate sentence reports them, and the kernel counts them
/// twice.
fn own_losses(counts: &StatCounts) -> StatCounts {
    let (clashed, mut own) = (clashes(counts), *counts);
    for counter in [StatCounter::Drop, StatCounter::InsertFailed] {
        own.set(counter, counts.get(counter).map(|count| count.saturating_sub(clashed)));
    }
    own
}

fn in_seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

fn filling(evidence: &Evidence, advice: &Advice, says: &mut Vec<String>) {
    let (Some(entries), Some(max)) = (advice.entries, advice.max) else { return };
    says.push(match advice.verdict {
        Verdict::Full => format!("the table is full: {entries} of {max} entries"),
        _ => format!("{entries} of {max} entries, {} %", percent_text(entries, max)),
    });
    if let Some(expired) = advice.expired.filter(|expired| *expired > 0) {
        says.push(format!("{expired} of them have expired and still count until the kernel collects them"));
    }
    let (Some(growth), Some(ms)) = (advice.trend.growth_per_s, advice.trend.interval_ms) else { return };
    let sampled = format!("{growth} more entries per second, sampled for {}", in_seconds(ms));
    match (advice.trend.steady_growth_per_s, advice.trend.full_in_s) {
        (Some(_), Some(0)) if entries >= max => says.push(sampled),
        (Some(steady), Some(seconds)) if steady == growth => {
            says.push(format!("{sampled}: full in {seconds} s at this rate"));
        }
        (Some(steady), Some(seconds)) => {
            says.push(format!("{sampled}; {steady} of them steadily: full in {seconds} s at that rate"));
        }
        (Some(_), None) if growth > 0 => says.push(format!("{sampled}, but not steadily: a burst is not growth")),
        (None, _) if growth > 0 => says.push(format!(
            "{sampled} in {} samples: a burst is not growth, a forecast needs {FORECAST_SAMPLES} samples (--samples)",
            evidence.samples.len()
        )),
        _ => {}
    }
}

fn sizing(evidence: &Evidence, advice: &Advice, sizes: &Sizes, says: &mut Vec<String>) {
    let (Some(max), Some(buckets)) = (advice.max, advice.buckets) else { return };
    let (peak, wanted) = (advice.trend.peak.unwrap_or(0), sizes.wanted);
    let room = match sizes.is_estimate {
        true => format!(
            "the number of entries without a limit is unknown, because the limit is {max}: estimated as twice the \
             limit, {wanted} entries"
        ),
        false => format!("twice the expected number is {wanted} entries (observed peak {peak})"),
    };
    let again = if sizes.is_estimate { "; check again after raising it" } else { "" };
    if sizes.advised_max != max {
        says.push(format!("{room}: the limit should be {}{again}", sizes.advised_max));
    } else if sizes.is_capped || sizes.is_estimate {
        says.push(room);
    } else if advice.verdict == Verdict::Roomy {
        says.push(format!("the limit is at least twice the expected number (observed peak {peak})"));
    }
    if sizes.advised_buckets != buckets {
        says.push(format!(
            "there should be at least as many buckets as entries, or packets walk long chains: {} instead of {buckets}",
            sizes.advised_buckets
        ));
    }
    if sizes.is_capped {
        says.push(capped(evidence, sizes));
    }
    if sizes.is_change && !evidence.is_first {
        says.push(
            "limit and buckets apply to the whole host and can be set only in its first network namespace".to_owned(),
        );
    }
}

/// Explains why no larger table is advised.
fn capped(evidence: &Evidence, sizes: &Sizes) -> String {
    let remedy = "shorten timeouts, or disable tracking where it is not needed";
    match (sizes.memory_bytes_max, evidence.memory_bytes_max) {
        (Some(most), Some(_)) => {
            format!("{} entries would need more than {} MiB (--memory): {remedy}", sizes.wanted, most >> 20)
        }
        (Some(most), None) => format!(
            "{} entries would need more than {} MiB, a tenth of the host's memory: {remedy}; --memory SIZE allows more",
            sizes.wanted,
            most >> 20
        ),
        (None, _) => "the host's memory is unknown: no larger table is recommended without --memory SIZE".to_owned(),
    }
}

fn of_timeout(timeout: &TimeoutAdvice, census: Option<&Census>) -> String {
    let all = census.map_or(timeout.entries, Census::entries);
    let TimeoutAdvice { setting, seconds, entries, advised_s, frees, why } = timeout;
    let file = setting.file();
    let kept = format!("{file} = {seconds} s keeps {entries} of {all} entries");
    match (advised_s, frees) {
        (Some(lower), Some(0)) => {
            format!("{kept}; none of them has been silent for {lower} s: a lower timeout would free none now")
        }
        (Some(lower), Some(frees)) => {
            format!(
                "{kept}; {frees} of them have been silent for {lower} s or longer and would be removed with a timeout \
                 of {lower} s ({why})"
            )
        }
        _ => kept,
    }
}

fn memory(evidence: &Evidence, advice: &Advice, says: &mut Vec<String>) {
    let Some(sizes) = &advice.sizes else { return };
    let (Some(bytes), Some(memory)) = (advice.bytes_per_entry, sizes.memory_bytes) else { return };
    says.push(format!(
        "an entry takes {bytes} bytes here: {} MiB for {} entries and {} buckets",
        mib(memory),
        sizes.advised_max,
        sizes.advised_buckets
    ));
    if let Some((certain, most, _)) = evidence.census.as_ref().map(Census::extended) {
        if most > certain && !super::is_all_extended(evidence) {
            says.push(format!(
                "{} entries have a rewritten source: counted as masqueraded, {} bytes each; entries of `snat` rules \
                 take {}",
                most - certain,
                advice.bytes_per_entry_nat.unwrap_or(0),
                advice.bytes_per_entry_plain.unwrap_or(0)
            ));
        }
    }
    // This memory cannot be swapped out.
    if let Some(host) = evidence.host_memory_bytes.filter(|host| sizes.is_change && memory > host / 10) {
        says.push(format!("that is {} % of the host's memory", percent(memory, host)));
    }
}

fn unknown(evidence: &Evidence, advice: &Advice, says: &mut Vec<String>) {
    if advice.verdict == Verdict::Unknown {
        says.push("neither the limit nor the number of entries could be read".to_owned());
    }
    if advice.trend.interval_ms.is_none() && !evidence.samples.is_empty() {
        says.push("growth is unknown: it needs two samples, one second apart".to_owned());
    }
    match &evidence.census {
        None => says.push("the table itself was not read: the timeouts of its entries are unknown".to_owned()),
        Some(census) if census.entries() > 0 => unseen(evidence, census, says),
        Some(_) => {}
    }
    if evidence.entry.is_none() {
        says.push("the memory per entry is unknown: only root can read slab sizes".to_owned());
    }
    let events = evidence.settings.get(CtSetting::Events);
    let is_seen = evidence.census.as_ref().is_some_and(Census::is_exact);
    if events == Some(2) && evidence.is_listened_to.is_none() && evidence.entry.is_some() && !is_seen {
        says.push(
            "it is unknown whether a program in another namespace listens to events, which makes all entries larger"
                .to_owned(),
        );
    }
}

/// Reports facts that only the walk can see, or that it missed because the table's size changed.
fn unseen(evidence: &Evidence, census: &Census, says: &mut Vec<String>) {
    let sentence = match (census.expired(), evidence.chains) {
        (None, None) => {
            "the longest hash chain and the number of expired entries are unknown: only the walk via BPF shows them"
        }
        (None, Some(_)) => "the number of expired entries is unknown: only the walk via BPF shows it",
        (Some(_), None) => "the length of the longest hash chain is unknown: the table was resized during the walk",
        (Some(_), Some(_)) => return,
    };
    says.push(sentence.to_owned());
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
