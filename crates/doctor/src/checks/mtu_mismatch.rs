//! Frames that are larger than the interface at the other end accepts.

use record::rows::{Confidence, Severity};

use super::words::{argument, state};
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "mtu-mismatch",
    needs: &[Probe::Drops, Probe::Links],
    area: "interfaces",
    about: "The two ends of a link have different MTUs: large frames are dropped.",
    rule: "At least 3 frames were dropped because the receiving interface has a smaller MTU.",
    sources: "the tracepoint kfree_skb via BPF: __dev_forward_skb; rx_length_errors; MTU via RTM_GETLINK",
    refuted_by: "`ip link show` with the same MTU at both ends.",
    run,
};

/// Fewest frames for a finding.
const FEW: u64 = 3;

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id);
    if dropped.count < FEW {
        return;
    }
    let ifindex = dropped.all.iter().map(|one| one.ifindex).find(|index| *index != 0).unwrap_or(0);
    let iface = sample.around.iface(ifindex);
    let on = if iface.is_empty() { String::new() } else { format!(" of {iface}") };
    let links = sample.around.links.iter().filter(|link| link.name != "lo").take(8);
    found
        .add(
            Severity::Warning,
            Confidence::Likely,
            format!("large frames are dropped: the two ends of the link{on} have different MTUs"),
        )
        .object(iface.as_str())
        .proof(dropped.evidence())
        .proof(links.map(|link| state(format!("MTU of {}", link.name), link.mtu, None)))
        .lost(dropped.count, "frames dropped")
        .remedy(
            format!("ip link show {}", argument(&iface, "")).trim_end(),
            "shows the MTU; compare with the other end",
            "",
        )
        .remedy("", "give both ends the same MTU: `ip link set` takes effect at once for existing connections", "");
}
