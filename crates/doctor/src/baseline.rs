//! Comparison of a host with a recording from when it was well. Start reading at [`compare`].

use crate::checks::SETTINGS;
use crate::seen::{Moved, Sample};
use record::rows::{BaselineChange, BaselineVerb, ChangedThing, CounterKind, CounterSource, Finding};
use std::collections::BTreeMap;

/// A rate that is at least this many times as high is a change.
const TIMES: u64 = 3;

/// Fewest events in the window for a rate: fewer occur by chance.
const EVENTS_MIN: u64 = 10;

/// Gauges that are settings: they change only if a user or a program sets them.
const GAUGE_SETTINGS: &[(CounterSource, &str)] = &[(CounterSource::Conntrack, "max"), (CounterSource::Iface, "mtu")];

/// Settings of the machine, by the names that [`compare`] gives them: one value for all network namespaces.
const OF_MACHINE: &[&str] = &["net.netfilter.nf_conntrack_buckets", "conntrack max"];

/// The state of one network namespace, or of the host, at one time.
pub struct BaselineSide<'s> {
    /// Name of the namespace; empty for the host.
    pub netns: &'s str,
    /// Its counters and settings.
    pub sample: &'s Sample,
    /// The findings in it.
    pub findings: Vec<&'s Finding>,
    /// Its listeners: protocol and address (`tcp 0.0.0.0:80`), and the owner of each.
    pub listeners: BTreeMap<String, String>,
}

/// Returns the kind of a counter and its meaning.
pub type Describe<'d> = dyn Fn(CounterSource, &str) -> Option<(CounterKind, &'static str)> + 'd;

/// Returns the changes since the baseline: findings, settings, listeners, then rates sorted by growth.
pub fn compare(before: &BaselineSide<'_>, after: &BaselineSide<'_>, describe: &Describe<'_>) -> Vec<BaselineChange> {
    let mut changes = findings(before, after);
    changes.extend(settings(before, after));
    changes.extend(listeners(before, after));
    changes.extend(rates(before, after, describe));
    changes
}

fn change(netns: &str, thing: ChangedThing, verb: BaselineVerb, subject: String) -> BaselineChange {
    let (before, after, meaning) = Default::default();
    BaselineChange { netns: netns.to_owned(), thing, verb, subject, before, after, times: None, meaning }
}

/// Compares findings by check and object: their sentences have numbers that differ each time.
fn findings(before: &BaselineSide<'_>, after: &BaselineSide<'_>) -> Vec<BaselineChange> {
    let is_same = |a: &Finding, b: &Finding| (a.id, &a.object) == (b.id, &b.object);
    let of = |finding: &Finding, verb| {
        let object = if finding.object.is_empty() { String::new() } else { format!(" {}", finding.object) };
        let row = change(after.netns, ChangedThing::Finding, verb, format!("{}{object}", finding.id));
        BaselineChange { meaning: finding.title.clone(), ..row }
    };
    let mut changes = Vec::new();
    for finding in after.findings.iter().filter(|one| !before.findings.iter().any(|old| is_same(old, one))) {
        let row = of(finding, BaselineVerb::New);
        changes.push(BaselineChange { after: finding.severity.name().to_owned(), ..row });
    }
    for finding in before.findings.iter().filter(|one| !after.findings.iter().any(|new| is_same(new, one))) {
        let row = of(finding, BaselineVerb::Gone);
        changes.push(BaselineChange { before: finding.severity.name().to_owned(), ..row });
    }
    changes
}

/// True for a setting of the whole machine: every network namespace shows it, so several report the same change.
pub fn is_of_machine(change: &BaselineChange) -> bool {
    change.thing == ChangedThing::Setting && OF_MACHINE.contains(&&*change.subject)
}

/// Compares settings that both sides have. The host's sample also has a namespace's settings, to compare counters
/// with; they are reported for that namespace only.
fn settings(before: &BaselineSide<'_>, after: &BaselineSide<'_>) -> Vec<BaselineChange> {
    let mut changes = Vec::new();
    if after.sample.netns_id.is_none() {
        return changes;
    }
    let mut differ = |subject: String, old: String, new: String| {
        if old != new {
            let row = change(after.netns, ChangedThing::Setting, BaselineVerb::Changed, subject);
            changes.push(BaselineChange { before: old, after: new, ..row });
        }
    };
    let text = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    for name in SETTINGS {
        if let (Some(old), Some(new)) = (before.sample.numbers(name), after.sample.numbers(name)) {
            differ(format!("net.{}", name.replace('/', ".")), text(old), text(new));
        }
    }
    for (source, name) in GAUGE_SETTINGS {
        for (object, new) in after.sample.objects(*source, name) {
            let old = before.sample.objects(*source, name).find(|(known, _)| *known == object);
            let object = String::from_utf8_lossy(object);
            let subject = format!("{} {name} {object}", source.name()).trim_end().to_owned();
            let Some((_, old)) = old else { continue };
            differ(subject, old.after.to_string(), new.after.to_string());
        }
    }
    changes
}

/// Returns listeners that appeared, disappeared or have another owner.
fn listeners(before: &BaselineSide<'_>, after: &BaselineSide<'_>) -> Vec<BaselineChange> {
    let mut changes = Vec::new();
    let mut add = |verb, subject: &String, old: &str, new: &str| {
        let row = change(after.netns, ChangedThing::Listener, verb, subject.clone());
        changes.push(BaselineChange { before: old.to_owned(), after: new.to_owned(), ..row });
    };
    for (name, process) in &after.listeners {
        match before.listeners.get(name) {
            None => add(BaselineVerb::New, name, "", or_unknown(process)),
            // The owner may be unknown on one side for lack of privileges.
            Some(old) if !old.is_empty() && !process.is_empty() && old != process => {
                add(BaselineVerb::Changed, name, old, process);
            }
            Some(_) => {}
        }
    }
    for (name, process) in before.listeners.iter().filter(|(name, _)| !after.listeners.contains_key(*name)) {
        add(BaselineVerb::Gone, name, or_unknown(process), "");
    }
    changes
}

fn or_unknown(process: &str) -> &str {
    if process.is_empty() { "?" } else { process }
}

/// Returns counters that grow several times as fast as before.
fn rates(before: &BaselineSide<'_>, after: &BaselineSide<'_>, describe: &Describe<'_>) -> Vec<BaselineChange> {
    if before.sample.window_ns == 0 || after.sample.window_ns == 0 {
        return Vec::new();
    }
    let (old, new) = (grown(before.sample), grown(after.sample));
    let mut changes = Vec::new();
    for ((source, name, object), count) in &new {
        let Some((CounterKind::Counter, meaning)) = describe(*source, name) else { continue };
        let Some(count_before) = old.get(&(*source, *name, object)) else { continue };
        let (was, is) = (per_s(*count_before, before.sample), per_s(*count, after.sample));
        if *count < EVENTS_MIN || is < was.saturating_mul(TIMES) {
            continue;
        }
        let object = String::from_utf8_lossy(object);
        let subject = format!("{} {name} {object}", source.name()).trim_end().to_owned();
        let row = change(after.netns, ChangedThing::Rate, BaselineVerb::Higher, subject);
        let times = (was > 0).then(|| u64::try_from(u128::from(is) * 1000 / u128::from(was)).unwrap_or(u64::MAX));
        changes.push(BaselineChange {
            before: rate_text(was),
            after: rate_text(is),
            times,
            meaning: meaning.to_owned(),
            ..row
        });
    }
    // A rate that was 0 counts as the largest growth.
    changes.sort_by_key(|row| std::cmp::Reverse(row.times.unwrap_or(u64::MAX)));
    changes
}

/// A counter by its source, name and object.
type CounterOf<'s> = (CounterSource, &'s str, &'s [u8]);

/// Returns the growth of each counter. Counters of single CPUs are added up, because the work moves between CPUs.
fn grown(sample: &Sample) -> BTreeMap<CounterOf<'_>, u64> {
    let mut all = BTreeMap::new();
    for (source, name, object, moved) in sample.counters() {
        let Moved { before: Some(_), .. } = moved else { continue };
        let object = if source == CounterSource::Softnet { &[][..] } else { object };
        let sum: &mut u64 = all.entry((source, name, object)).or_default();
        *sum = sum.saturating_add(moved.grown());
    }
    all
}

/// Returns the rate in thousandths per second.
fn per_s(count: u64, sample: &Sample) -> u64 {
    let thousandths = u128::from(count) * 1_000_000_000_000 / u128::from(sample.window_ns.max(1));
    u64::try_from(thousandths).unwrap_or(u64::MAX)
}

fn rate_text(thousandths: u64) -> String {
    format!("{}.{}/s", thousandths / 1000, thousandths / 100 % 10)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::checks::diagnose;

    fn described(source: CounterSource, name: &str) -> Option<(CounterKind, &'static str)> {
        let is_gauge = source == CounterSource::Conntrack && name == "max" || name == "mtu";
        Some((if is_gauge { CounterKind::Gauge } else { CounterKind::Counter }, "it counts"))
    }

    fn rows(before: &Sample, after: &Sample, listeners: [&[(&str, &str)]; 2]) -> Vec<(String, String, String, String)> {
        let findings = [before, after].map(|sample| diagnose(&[clone(sample)]));
        let of = |nth: usize, sample| BaselineSide {
            netns: "web",
            sample,
            findings: findings[nth].iter().collect(),
            listeners: listeners[nth].iter().map(|(name, who)| ((*name).to_owned(), (*who).to_owned())).collect(),
        };
        let changes = compare(&of(0, before), &of(1, after), &described);
        assert!(changes.iter().all(|row| row.netns == "web"));
        let texts = |row: BaselineChange| {
            (format!("{} {}", row.thing.name(), row.verb.name()), row.subject, row.before, row.after)
        };
        changes.into_iter().map(texts).collect()
    }

    fn clone(sample: &Sample) -> Sample {
        let mut copy = Sample::new(sample.netns_id);
        for (source, name, object, moved) in sample.counters() {
            let row = record::rows::Counter {
                netns_id: sample.netns_id,
                source,
                name: name.as_bytes(),
                iface: None,
                ifindex: 0,
                is_virtual: false,
                is_drop_trap: false,
                cpu: None,
                qdisc: None,
                object,
                value: moved.after.into(),
                delta: moved.before.map(|before| i128::from(moved.after) - i128::from(before)),
                window_ns: Some(sample.window_ns),
                kind: CounterKind::Counter,
                note: None,
                meaning: "",
            };
            copy.add_counter(&row);
        }
        copy
    }

    #[test]
    fn what_is_as_it_was_is_no_change() {
        let of = |after| Sample::of(&[(CounterSource::Snmp, "UdpInDatagrams", "", 0, after)]);
        let listeners: &[(&str, &str)] = &[("tcp 0.0.0.0:80", "nginx"), ("udp 0.0.0.0:53", "")];
        let with_rights: &[(&str, &str)] = &[("tcp 0.0.0.0:80", ""), ("udp 0.0.0.0:53", "named")];
        assert_eq!(rows(&of(1000), &of(1000), [listeners, with_rights]), []);
        assert_eq!(rows(&of(1000), &of(2999), [&[], &[]]), [], "not three times as many");
        assert_eq!(rows(&of(0), &of(9), [&[], &[]]), [], "a few come by chance");
        assert_eq!(rows(&of(1000), &of(0), [&[], &[]]), [], "less is well");
    }

    #[test]
    fn settings_of_the_host_are_those_of_a_namespace() {
        let of = |somaxconn| {
            let mut sample = Sample::of(&[]);
            sample.netns_id = None;
            sample.add_setting("core/somaxconn", vec![somaxconn]);
            sample
        };
        assert_eq!(rows(&of(4096), &of(77), [&[], &[]]), []);
        let mut buckets = change("web", ChangedThing::Setting, BaselineVerb::Changed, "conntrack max".to_owned());
        assert!(is_of_machine(&buckets));
        buckets.subject = "net.core.somaxconn".to_owned();
        assert!(!is_of_machine(&buckets));
    }

    #[test]
    fn changes_are_reported_by_kind() {
        let of = |overflows: i64, datagrams: i64, max: i64, cpus: [i64; 2]| {
            let mut sample = Sample::of(&[
                (CounterSource::Netstat, "TcpExtListenOverflows", "", 5, 5 + overflows),
                (CounterSource::Snmp, "UdpInDatagrams", "", 7, 7 + datagrams),
                (CounterSource::Conntrack, "max", "", max, max),
                (CounterSource::Softnet, "processed", "cpu0", 0, cpus[0]),
                (CounterSource::Softnet, "processed", "cpu1", 0, cpus[1]),
            ]);
            sample.add_setting("core/somaxconn", vec![max / 64]);
            sample
        };
        let (before, after) = (of(0, 30, 262_144, [300, 0]), of(60, 120, 1024, [0, 300]));
        let found = rows(
            &before,
            &after,
            [
                &[("tcp 0.0.0.0:80", "nginx"), ("tcp 0.0.0.0:22", "sshd")],
                &[("tcp 0.0.0.0:80", "apache2"), ("tcp 0.0.0.0:25", "")],
            ],
        );
        let row = |what: &str, subject: &str, before: &str, after: &str| {
            (what.to_owned(), subject.to_owned(), before.to_owned(), after.to_owned())
        };
        assert_eq!(found[0].0, "finding new");
        assert!(found[0].1.starts_with("listen-overflow"), "{found:?}");
        assert_eq!(
            found[1..],
            [
                row("setting changed", "net.core.somaxconn", "4096", "16"),
                row("setting changed", "conntrack max", "262144", "1024"),
                row("listener new", "tcp 0.0.0.0:25", "", "?"),
                row("listener changed", "tcp 0.0.0.0:80", "nginx", "apache2"),
                row("listener gone", "tcp 0.0.0.0:22", "sshd", ""),
                row("rate higher", "netstat TcpExtListenOverflows", "0.0/s", "20.0/s"),
                row("rate higher", "snmp UdpInDatagrams", "10.0/s", "40.0/s"),
            ]
        );
        let back = rows(&after, &before, [&[], &[]]);
        assert_eq!(back[0].0, "finding gone");
    }
}
