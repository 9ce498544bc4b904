//! Full neighbour tables.

use record::rows::CounterSource::Neigh;
use record::rows::{Confidence, Severity};

use super::remedy::larger;
use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "neigh-full",
    needs: &[],
    area: "neighbours",
    about: "The IPv4 or IPv6 neighbour table is full: packets to new neighbours are dropped.",
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
        let title = format!("the {family} neighbour table is full: {}{of}", entries.after);
        let proof = [
            sample.evidence(Neigh, &name("table_fulls"), None),
            sample.evidence(Neigh, &name("entries"), limit),
            sample.evidence(Neigh, &name("forced_gc_runs"), None),
        ];
        let most = larger(limit, 4096);
        let draft =
            found.add(severity, Confidence::Certain, title).object(table).proof(proof.into_iter().flatten()).remedy(
                format!("sysctl -w net.{family}.neigh.default.gc_thresh3={most}"),
                "allows more neighbours",
                "each takes half a kilobyte of kernel memory",
            );
        if lost > 0 {
            draft.lost(lost, "neighbours not created, and packets to them dropped");
        } else {
            draft.cost("nothing yet; packets to new neighbours are dropped once it is full");
        }
    }
}
