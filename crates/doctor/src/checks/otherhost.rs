//! Frames for another hardware address or VLAN.

use record::rows::CounterSource::Iface;
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::{argument, of_object, percent};
use super::{Check, Findings, Sample};

/// Fewest frames, and smallest share of all frames, for a finding; fewer come from a switch that forgot an address.
const SOME: u64 = 10;
const MANY_PERCENT: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "otherhost",
    needs: &[],
    area: "interfaces",
    about: "Frames arrive for another hardware address, or for a VLAN that this host does not have.",
    rule: "rx_otherhost_dropped of an interface grew by at least 10, and by 10 % of the received frames. It is a \
           hint: a switch floods frames for addresses that it does not know.",
    sources: "RTM_GETLINK: IFLA_STATS64",
    refuted_by: "an interface in promiscuous mode (during a capture) on a mirror port: this is intended.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (iface, moved) in sample.objects(Iface, "rx_otherhost_dropped") {
        let came = sample.objects(Iface, "rx_packets").find(|(other, _)| *other == iface);
        let (lost, came) = (moved.grown(), came.map_or(0, |(_, moved)| moved.grown()));
        if lost < SOME || lost.saturating_mul(100) < came.saturating_mul(MANY_PERCENT) {
            continue;
        }
        let name = String::from_utf8_lossy(iface);
        let argument = argument(&name, "any");
        let share = percent(lost, came.max(lost));
        found
            .add(
                Severity::Warning,
                Confidence::Likely,
                format!("{share} of the frames on {name} are for another hardware address or VLAN"),
            )
            .object(name.clone())
            .proof([of_object("rx_otherhost_dropped", iface, moved, None)])
            .lost(lost, "frames dropped")
            .reach(Reach::Nobody, "")
            .remedy(format!("netwren tcpdump -i {argument} -e -c 20"), "shows addresses and VLANs of the frames", "")
            .remedy("", "look for a wrong neighbour entry at the sender, or a missing VLAN interface here", "");
    }
}
