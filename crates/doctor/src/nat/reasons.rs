//! The advice in sentences.
use record::rows::{CtSetting, StatCounter};

use super::{Advice, Census, Evidence, Sizes, TimeoutAdvice, Trend, Verdict, chains, percent, some};

/// The sentences, the gravest first.
pub(super) fn of(evidence: &Evidence, advice: &Advice) -> Vec<String> {
    let mut says = Vec::new();
    losses(&advice.trend, advice.max, &mut says);
    filling(advice, &mut says);
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

fn losses(trend: &Trend, max: Option<u64>, says: &mut Vec<String>) {
    let seconds = trend.interval_ms.map_or(String::new(), |ms| format!(" in {}.{} s", ms / 1000, ms % 1000 / 100));
    let lost = [
        (StatCounter::Drop, "packets were dropped because no entry could be made for them"),
        (StatCounter::EarlyDrop, "entries were thrown out before their time to make room"),
        (
            StatCounter::InsertFailed,
            "entries could not go in (tuple taken, or chain too long) and their packets were dropped",
        ),
        (StatCounter::ChainTooLong, "entries were refused because their hash chain was too long"),
    ];
    for (counter, words) in lost {
        if let Some(grown) = some(&trend.grown, counter) {
            says.push(format!("{grown} {words}{seconds} (`{}`)", counter.name()));
        } else if let Some(total) = some(&trend.totals, counter) {
            says.push(format!(
                "{total} {words} since the namespace was made, none while it was watched (`{}`)",
                counter.name()
            ));
        }
    }
    if let (Some(_), Some(max)) = (some(&trend.grown, StatCounter::Drop), max) {
        says.push(format!("the limit of {max} entries hides how many there would be: look again when it is raised"));
    }
}

fn filling(advice: &Advice, says: &mut Vec<String>) {
    let (Some(entries), Some(max)) = (advice.entries, advice.max) else { return };
    says.push(match advice.verdict {
        Verdict::Full => format!("the table is full: {entries} of {max} entries"),
        _ => format!("{entries} of {max} entries, {} %", percent(entries, max)),
    });
    if let Some(expired) = advice.expired.filter(|expired| *expired > 0) {
        says.push(format!("{expired} of them have expired and count until the kernel collects them"));
    }
    match (advice.trend.growth_per_s, advice.trend.full_in_s) {
        (Some(growth), Some(0)) if entries >= max => says.push(format!("{growth} entries more each second")),
        (Some(growth), Some(seconds)) => {
            says.push(format!("{growth} entries more each second: full in {seconds} s at this rate"));
        }
        _ => {}
    }
}

fn sizing(evidence: &Evidence, advice: &Advice, sizes: &Sizes, says: &mut Vec<String>) {
    let (Some(max), Some(buckets)) = (advice.max, advice.buckets) else { return };
    let peak = advice.trend.peak.unwrap_or(0);
    if sizes.advised_max != max {
        let wanted = sizes.wanted;
        says.push(format!(
            "room for twice what is to be expected is {wanted} entries (peak seen {peak}): the limit should be {}",
            sizes.advised_max
        ));
    } else if advice.verdict == Verdict::Roomy {
        says.push(format!("the limit has room for twice what is to be expected (peak seen {peak})"));
    }
    if sizes.advised_buckets != buckets {
        says.push(format!(
            "buckets should be no fewer than entries, or each packet walks a chain: {} instead of {buckets}",
            sizes.advised_buckets
        ));
    }
    if sizes.is_change && !evidence.is_first {
        says.push(
            "limit and buckets are one for the whole host and can be set in its first network namespace only"
                .to_owned(),
        );
    }
}

fn of_timeout(timeout: &TimeoutAdvice, census: Option<&Census>) -> String {
    let all = census.map_or(timeout.entries, Census::entries);
    let TimeoutAdvice { setting, seconds, entries, advised_s, frees, why } = timeout;
    let file = setting.file();
    let kept = format!("{file} = {seconds} s keeps {entries} of {all} entries");
    match (advised_s, frees) {
        (Some(lower), Some(0)) => {
            format!("{kept}; none of them has been silent for {lower} s: a lower one would free nothing now")
        }
        (Some(lower), Some(frees)) => {
            format!(
                "{kept}; {frees} of them have been silent for {lower} s or longer and would be gone at {lower} ({why})"
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
                "{} entries have a rewritten source: counted as masqueraded, which takes {} bytes; those of `snat` rules take {}",
                most - certain,
                advice.bytes_per_entry_nat.unwrap_or(0),
                advice.bytes_per_entry_plain.unwrap_or(0)
            ));
        }
    }
    if let Some(host) = evidence.host_memory_bytes {
        // What is not to be swapped out; beyond a quarter a host begins to feel it.
        if sizes.is_change && memory > host / 4 {
            says.push(format!(
                "that is {} % of the host's memory: shorten timeouts, or do without tracking where it is not needed",
                percent(memory, host)
            ));
        }
    }
}

fn unknown(evidence: &Evidence, advice: &Advice, says: &mut Vec<String>) {
    if advice.verdict == Verdict::Unknown {
        says.push("neither the limit nor the number of entries could be read".to_owned());
    }
    if advice.trend.interval_ms.is_none() && !evidence.samples.is_empty() {
        says.push("growth is not known: it needs two samples, a second apart".to_owned());
    }
    match &evidence.census {
        None => says.push("the table itself was not read: who keeps its entries is not known".to_owned()),
        Some(census) if census.entries() > 0 => unseen(evidence, census, says),
        Some(_) => {}
    }
    if evidence.entry.is_none() {
        says.push("what an entry takes is not known: slab sizes are root's to read".to_owned());
    }
    let events = evidence.settings.get(CtSetting::Events);
    let is_seen = evidence.census.as_ref().is_some_and(Census::is_exact);
    if events == Some(2) && evidence.is_listened_to.is_none() && evidence.entry.is_some() && !is_seen {
        says.push(
            "whether somebody in another namespace listens to events, which makes entries larger everywhere, is not known"
                .to_owned(),
        );
    }
}

/// What a door other than the walk leaves open; or the walk, if the table's size changed under it.
fn unseen(evidence: &Evidence, census: &Census, says: &mut Vec<String>) {
    let sentence = match (census.expired(), evidence.chains) {
        (None, None) => {
            "the length of the longest hash chain and how many entries have expired are not known: only the walk by bpf sees that"
        }
        (None, Some(_)) => "how many entries have expired is not known: only the walk by bpf sees them",
        (Some(_), None) => {
            "the length of the longest hash chain is not known: the table's size changed while it was walked"
        }
        (Some(_), Some(_)) => return,
    };
    says.push(sentence.to_owned());
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
