//! The advice as words and as JSON.

use super::judged::Judged;
use super::settings;
use doctor::nat::{Advice, PortUse, Ports, Sizes, Verdict};
use record::rows::{StatCounter, ip_proto};
use record::text::{put_json, put_text};
use std::fmt::Write;

/// Counters that tell of losses.
const LOSSES: [StatCounter; 4] =
    [StatCounter::Drop, StatCounter::EarlyDrop, StatCounter::InsertFailed, StatCounter::ChainTooLong];

/// A paragraph for each namespace, the worst first, and what to set. Of several, those that have room get one line.
pub(super) fn words(judged: &[Judged]) -> String {
    let mut text = String::new();
    let mut worst_first: Vec<&Judged> = judged.iter().collect();
    worst_first.sort_by_key(|one| std::cmp::Reverse(one.advice.verdict));
    if let [worst, _, ..] = worst_first.as_slice() {
        let verdict = worst.advice.verdict.name();
        let _ = writeln!(text, "this host: {verdict}, the worst of {} network namespaces", judged.len());
    }
    for Judged { name, advice, .. } in worst_first {
        let mut shown = Vec::new();
        put_text(&mut shown, name);
        let (shown, verdict) = (String::from_utf8_lossy(&shown), advice.verdict.name());
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
    let lines = settings::lines(&settings::sizes(judged));
    if !lines.is_empty() {
        text.push_str("to set, in the first network namespace:\n");
        for line in &lines {
            let _ = writeln!(text, "  sysctl -w {line}");
        }
    }
    timeouts(&mut text, judged);
    text
}

/// The timeouts that should be shorter, each with its namespace if there are several.
fn timeouts(text: &mut String, judged: &[Judged]) {
    let mut advised = judged.iter().filter_map(|one| Some((one, settings::timeout(one)?))).peekable();
    if advised.peek().is_none() {
        return;
    }
    text.push_str("to shorten a timeout, each in its network namespace (--apply --timeouts does it, too):\n");
    for (one, setting) in advised {
        let mut shown = Vec::new();
        put_text(&mut shown, &one.name);
        let _ = writeln!(text, "  sysctl -w {}    # {}", setting.line(), String::from_utf8_lossy(&shown));
    }
}

/// One object a namespace.
pub(super) fn json(judged: &[Judged]) -> String {
    let mut out = Vec::new();
    // What the text says once stands in one object: that of the namespace in which it can be set.
    let bearer = judged.iter().position(|one| one.evidence.is_first).unwrap_or(0);
    for (place, one) in judged.iter().enumerate() {
        let sizes = if place == bearer { settings::sizes(judged) } else { Vec::new() };
        object(&mut out, one, &settings::lines(&sizes));
        out.push(b'\n');
    }
    // What comes from outside was made valid by its escaping.
    String::from_utf8_lossy(&out).into_owned()
}

fn object(out: &mut Vec<u8>, judged: &Judged, sysctl: &[String]) {
    let Judged { netns_id, name, evidence, advice } = judged;
    let Advice { trend, sizes, timeout, chains, .. } = advice;
    out.extend_from_slice(b"{\"netns\":");
    string(out, name);
    number(out, "netns_id", Some(*netns_id));
    word(out, "verdict", Some(advice.verdict.name()));
    number(out, "entries", advice.entries);
    number(out, "max", advice.max);
    number(out, "buckets", advice.buckets);
    number(out, "samples", u64::try_from(evidence.samples.len()).ok());
    number(out, "interval_ms", trend.interval_ms);
    number(out, "peak", trend.peak);
    number(out, "growth_per_s", trend.growth_per_s);
    number(out, "steady_growth_per_s", trend.steady_growth_per_s);
    number(out, "full_in_s", trend.full_in_s);
    number(out, "expired", advice.expired);
    for counter in LOSSES {
        number(out, counter.name(), trend.totals.get(counter));
        number(out, &format!("{}_delta", counter.name()), trend.grown.get(counter));
    }
    number(out, "longest_chain", chains.and_then(|chains| chains.longest));
    let mean = chains.zip(evidence.buckets.filter(|buckets| *buckets > 0));
    number(out, "mean_chain", mean.map(|(chains, buckets)| format!("{:.3}", chains.nodes as f64 / buckets as f64)));
    number(out, "nat_entries", advice.nat_entries);
    number(out, "bytes_per_entry", advice.bytes_per_entry);
    number(out, "bytes_per_entry_plain", advice.bytes_per_entry_plain);
    number(out, "bytes_per_entry_nat", advice.bytes_per_entry_nat);
    advised(out, sizes.as_ref());
    used_up(out, &advice.ports);
    word(out, "timeout", timeout.map(|timeout| timeout.setting.file()));
    number(out, "timeout_s", timeout.map(|timeout| timeout.seconds));
    number(out, "timeout_entries", timeout.map(|timeout| timeout.entries));
    number(out, "timeout_advised_s", timeout.and_then(|timeout| timeout.advised_s));
    number(out, "timeout_frees", timeout.and_then(|timeout| timeout.frees));
    list(out, "sysctl", sysctl);
    list(out, "sysctl_timeouts", &settings::lines(settings::timeout(judged).as_slice()));
    list(out, "reasons", &advice.reasons);
    out.push(b'}');
}

/// What the table's size should be; null where it is not known.
fn advised(out: &mut Vec<u8>, sizes: Option<&Sizes>) {
    number(out, "advised_max", sizes.map(|sizes| sizes.advised_max));
    number(out, "advised_buckets", sizes.map(|sizes| sizes.advised_buckets));
    number(out, "memory_bytes", sizes.and_then(|sizes| sizes.memory_bytes));
    number(out, "memory_now_bytes", sizes.and_then(|sizes| sizes.memory_now_bytes));
    number(out, "memory_bytes_max", sizes.and_then(|sizes| sizes.memory_bytes_max));
    number(out, "is_capped", sizes.map(|sizes| sizes.is_capped));
    number(out, "is_estimate", sizes.map(|sizes| sizes.is_estimate));
}

/// Ranges of source ports that are used up.
fn used_up(out: &mut Vec<u8>, ports: &Ports) {
    key(out, "ports_used_up");
    out.push(b'[');
    for (i, used) in ports.used_up.iter().enumerate() {
        let PortUse { proto, addr, dest, dest_port, range, is_by_rule, .. } = used;
        out.extend_from_slice(if i > 0 { b",{" } else { b"{" });
        out.extend_from_slice(format!("\"proto\":\"{}\"", ip_proto::name(*proto)).as_bytes());
        word(out, "snat_addr", Some(&addr.to_string()));
        word(out, "dest_addr", Some(&dest.to_string()));
        number(out, "dest_port", Some(dest_port));
        number(out, "used", Some(used.used));
        number(out, "ports", Some(range.count()));
        number(out, "first_port", Some(range.first));
        number(out, "last_port", Some(range.last));
        number(out, "is_by_rule", Some(is_by_rule));
        out.push(b'}');
    }
    out.push(b']');
}

fn key(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(format!(",\"{name}\":").as_bytes());
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    put_json(out, text);
    out.push(b'"');
}

fn number(out: &mut Vec<u8>, name: &str, value: Option<impl ToString>) {
    key(out, name);
    out.extend_from_slice(value.map_or("null".to_owned(), |value| value.to_string()).as_bytes());
}

fn word(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    key(out, name);
    match value {
        Some(word) => string(out, word.as_bytes()),
        None => out.extend_from_slice(b"null"),
    }
}

fn list(out: &mut Vec<u8>, name: &str, values: &[String]) {
    key(out, name);
    out.push(b'[');
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        string(out, value.as_bytes());
    }
    out.push(b']');
}
