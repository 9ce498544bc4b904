//! Interfaces with an address that are down while packets should leave through them.

use record::rows::CounterSource::Snmp;
use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{LinkSeen, SET_DOWN};

/// Fewest packets without a route that a downed interface explains.
const SOME: u64 = 3;

pub(super) const CHECK: Check = Check {
    id: "iface-down",
    needs: &[Probe::Drops, Probe::Links, Probe::Neighbours],
    area: "interfaces",
    about: "An interface with an address is down or has no carrier, and packets are lost.",
    rule: "An interface without carrier dropped packets; or an interface with an address is set down, or has no \
           carrier, while IpOutNoRoutes grows or neighbours on it do not answer.",
    sources: "flags and addresses via RTM_GETLINK, RTM_GETADDR; /proc/net/snmp: OutNoRoutes; the tracepoint kfree_skb",
    refuted_by: "`ip link show` that lists the interface as UP and LOWER_UP.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id);
    let unrouted = sample.grown(Snmp, "IpOutNoRoutes");
    let lost_on = |link: &LinkSeen| {
        let drops = dropped.all.iter().filter(|one| one.ifindex == link.index).map(|one| one.count).sum::<u64>();
        let is_asked = sample.around.neighbours.iter().any(|one| one.ifindex == link.index);
        // The routes of an interface disappear when it is set down.
        let is_unrouted = link.down() == Some(SET_DOWN) && unrouted >= SOME;
        (drops, drops > 0 || is_asked || is_unrouted)
    };
    // The loopback interface has its address only while it is up.
    let is_meant = |link: &&LinkSeen| link.has_address || link.name == "lo";
    let set_down = sample.around.links.iter().filter(is_meant).filter(|link| link.down() == Some(SET_DOWN));
    let is_only_one = set_down.count() == 1;
    for link in sample.around.links.iter().filter(is_meant) {
        let Some(how) = link.down() else { continue };
        // The check `link-flap` covers a link that goes up and down.
        if super::link_flap::times(sample, &link.name) > 1 {
            continue;
        }
        let (drops, is_lost) = lost_on(link);
        if !is_lost {
            continue;
        }
        let name = super::words::argument(&link.name, "IFACE");
        let draft = found
            .add(Severity::Critical, Confidence::Likely, format!("{} {how}, but packets are sent to it", link.name))
            .object(link.name.clone())
            .proof([state(format!("flags of {}", link.name), i64::from(link.flags), None)])
            .proof(sample.evidence(Snmp, "IpOutNoRoutes", None))
            .proof(dropped.evidence());
        let draft = match drops.max(unrouted) {
            0 => draft.cost("all packets for this interface are lost"),
            lost => draft.lost(lost, "packets lost"),
        };
        match how {
            SET_DOWN if drops > 0 || is_only_one => draft.remedy(
                format!("ip link set {name} up"),
                "brings the interface up; routes that were added by hand must be added again",
                "",
            ),
            SET_DOWN => draft.remedy("ip -br link", "shows all interfaces: several are set down", ""),
            _ => draft.remedy("", "check the cable, the switch port, or the process at the other end", ""),
        };
    }
}
