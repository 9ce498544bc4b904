//! Conntrack entries that cannot be inserted although the table has room: the source ports are used up, or two packets
//! need the same port at once.

use crate::nat::Ports;
use record::rows::CounterSource::Conntrack;
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "snat-ports",
    needs: &[Probe::SnatPorts],
    area: "conntrack",
    about: "New connections are dropped although the table has room: the source ports of source NAT are exhausted, or \
            two packets chose the same port at once.",
    rule: "`insert_failed` grew by at least 5 more than `chaintoolong`, and the table has less than 80 % of its limit. \
           Ports are exhausted if 90 % of a range are in use for one destination; otherwise packets race.",
    sources: "ctnetlink or /proc/net/stat/nf_conntrack: insert_failed, drop; nf_conntrack_count, nf_conntrack_max; the \
              table's entries; nft: ranges of source NAT",
    refuted_by: "for exhausted ports: a range with free ports in `netwren nat top snat_port_use`.",
    run,
};

/// A finding needs at least this many failures in the window.
const FEW: u64 = 5;

/// How to give each connection a random source port, so that two rarely pick the same one.
const RANDOM: &str = "chooses source ports at random: write `fully-random` after masquerade or snat in the nft rule, \
                      or --random-fully in the iptables rule";

fn run(sample: &Sample, found: &mut Findings<'_>) {
    // A chain that is too long also counts as a failure.
    let too_long = sample.grown(Conntrack, "chaintoolong");
    let failed = sample.grown(Conntrack, "insert_failed").saturating_sub(too_long);
    let (Some(entries), Some(max)) = (sample.counter(Conntrack, "entries"), sample.counter(Conntrack, "max")) else {
        return;
    };
    if failed < FEW || entries.after.saturating_mul(100) >= max.after.saturating_mul(80) {
        return;
    }
    let ports = sample.around.snat_ports.as_ref();
    let (severity, confidence, title) = judged(ports);
    let proof = ["insert_failed", "drop", "chaintoolong"].map(|name| sample.evidence(Conntrack, name, None));
    let finding = found
        .add(severity, confidence, title)
        .object("nf_conntrack")
        .proof(proof.into_iter().flatten())
        .proof(sample.evidence(Conntrack, "entries", Some(max.after)))
        .lost(failed, "new connections dropped");
    let finding = match ports.and_then(|ports| ports.fullest.as_ref()) {
        Some(fullest) => finding.also_cost(format!(
            "the fullest range of source ports, {}, is in use to {} %",
            fullest.ends(),
            fullest.percent()
        )),
        None => finding,
    };
    let finding =
        finding.remedy("netwren nat top snat_port_use", "shows the used source ports by address and destination", "");
    if ports.is_some_and(|ports| ports.used_up.is_empty()) {
        finding.remedy("", RANDOM, "");
    } else {
        finding.remedy("", "add source addresses, or a wider port range, to the source NAT rule", "");
    }
}

/// Chooses severity, confidence and title from the port usage of the table.
fn judged(ports: Option<&Ports>) -> (Severity, Confidence, String) {
    let Some(ports) = ports else {
        let title = "new connections are dropped although the table has room: their NAT source port is taken, or two \
                     packets of one connection raced";
        return (Severity::Critical, Confidence::Likely, title.to_owned());
    };
    match ports.used_up.first() {
        Some(used) => {
            let confidence = if used.is_by_rule { Confidence::Certain } else { Confidence::Likely };
            let title = format!(
                "new connections find no free source port for NAT: {} has {} of {} in use",
                used.ends(),
                used.used,
                used.range.count()
            );
            (Severity::Critical, confidence, title)
        }
        None => {
            let title = "new connections are dropped although source ports are free: packets on several CPUs choose \
                         the same entry at once";
            (Severity::Warning, Confidence::Likely, title.to_owned())
        }
    }
}
