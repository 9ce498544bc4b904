//! Full neighbour tables.

use record::rows::CounterSource::Neigh;
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "neigh-full",
    area: "neighbours",
    about: "The table of IPv4 or IPv6 neighbours is full: packets to new neighbours are dropped.",
    rule: "`table_fulls` grew, or the table has at least 80 % of gc_thresh3.",
    sources: "/proc/net/stat/arp_cache, ndisc_cache; net.ipv4 and net.ipv6 neigh.default.gc_thresh3",
    refuted_by: "few lines in `ip -s neigh` of all namespaces.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (table, family, setting) in
        [("arp", "ipv4", "ipv4/neigh/default/gc_thresh3"), ("ndisc", "ipv6", "ipv6/neigh/default/gc_thresh3")]
    {
        let name = |what| format!("{table}.{what}");
        let lost = sample.grown(Neigh, &name("table_fulls"));
        let Some(entries) = sample.counter(Neigh, &name("entries")) else { continue };
        let limit = sample.setting(setting, 0);
        let is_near = limit.is_some_and(|limit| entries.after.saturating_mul(100) >= limit.saturating_mul(80));
        if lost == 0 && !is_near {
            continue;
        }
        let severity = if lost > 0 { Severity::Critical } else { Severity::Warning };
        let of = limit.map_or(String::new(), |limit| format!(" of {limit}"));
        let title = format!("the table of {family} neighbours is full: {}{of}", entries.after);
        let proof = [
            sample.evidence(Neigh, &name("table_fulls"), None),
            sample.evidence(Neigh, &name("entries"), limit),
            sample.evidence(Neigh, &name("forced_gc_runs"), None),
        ];
        let larger = limit.unwrap_or(1024).saturating_mul(4);
        let draft =
            found.add(severity, Confidence::Certain, title).object(table).proof(proof.into_iter().flatten()).remedy(
                format!("sysctl -w net.{family}.neigh.default.gc_thresh3={larger}"),
                "makes room for four times as many; must be set in the first network namespace",
                "half a kilobyte of kernel memory for each",
            );
        if lost > 0 {
            draft.lost(lost, "neighbours refused, with the packets to them");
        } else {
            draft.cost("nothing yet; packets to new neighbours are dropped once it is full");
        }
    }
}
