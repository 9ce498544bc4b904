//! Links that go up and down.

use record::rows::CounterSource::Iface;
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::of_object;
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "link-flap",
    needs: &[Probe::Links],
    area: "interfaces",
    about: "The link of an interface goes down.",
    rule: "carrier_down_count of an interface grew; more than one is critical. It is a hint for a bridge: it has a \
           link only while it has a port with one, and containers come and go.",
    sources: "RTM_GETLINK: IFLA_CARRIER_DOWN_COUNT",
    refuted_by: "an administrator has just set the interface down.",
    run,
};

/// Returns how often the link of an interface went down within the window.
pub(super) fn times(sample: &Sample, name: &str) -> u64 {
    let of = sample.objects(Iface, "carrier_down_count").find(|(iface, _)| *iface == name.as_bytes());
    of.map_or(0, |(_, moved)| moved.grown())
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (iface, moved) in sample.objects(Iface, "carrier_down_count").filter(|(_, moved)| moved.grown() > 0) {
        let (name, times) = (String::from_utf8_lossy(iface), moved.grown());
        let is_up = sample.objects(Iface, "carrier").any(|(other, carrier)| other == iface && carrier.after == 1);
        let is_bridge = sample.around.links.iter().any(|link| link.name == name && link.is_bridge);
        let now = if is_up { "is up again" } else { "is down now" };
        let severity = if times > 1 { Severity::Critical } else { Severity::Warning };
        let plural = if times == 1 { "" } else { "s" };
        found
            .add(severity, Confidence::Certain, format!("the link of {name} went down {times} time{plural} and {now}"))
            .object(name.clone())
            .proof([of_object("carrier_down_count", iface, moved, None)])
            .cost("no packets pass the interface while it is down; neighbours and routes are rediscovered")
            .reach(if is_bridge { Reach::Nobody } else { Reach::part(1, 1) }, "")
            .remedy("", "check the cable, the switch port, or the process that owns the other end", "");
    }
}
