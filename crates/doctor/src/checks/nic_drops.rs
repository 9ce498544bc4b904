//! Interfaces that drop undamaged packets.

use record::rows::CounterSource::Iface;
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::tc_xdp_drop::in_driver;
use super::words::{of_object, percent};
use super::{Check, Findings, Probe, Sample};

/// Fewest drops for a finding, which must also be 1 % of all packets; fewer are packets of unsupported protocols.
const SOME: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "nic-drops",
    needs: &[Probe::Drops, Probe::Links],
    area: "interfaces",
    about: "An interface drops intact packets.",
    rule: "rx_dropped or tx_dropped of an interface grew by at least 10, and by 1 % of its packets, without frames of \
           protocols that this host does not support. If drops are not counted by reason, rx_dropped is only a hint. \
           If an XDP program runs in the interface's driver, the check `tc-xdp-drop` has rx_dropped.",
    sources: "RTM_GETLINK: IFLA_STATS64; the tracepoint kfree_skb via BPF: UNHANDLED_PROTO",
    refuted_by: "protocols that this host does not support (LLDP, other VLANs): they count in rx_dropped and are \
                 harmless.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (dropped, packets, way) in [("rx_dropped", "rx_packets", "received"), ("tx_dropped", "tx_packets", "outgoing")]
    {
        for (iface, moved) in sample.objects(Iface, dropped) {
            let all = sample.objects(Iface, packets).find(|(other, _)| *other == iface);
            let is_rx = dropped == "rx_dropped";
            if is_rx && in_driver(sample, iface).is_some() {
                continue;
            }
            let explained = if is_rx { sample.around.explained(iface) } else { Some(0) };
            let (lost, all) = (moved.grown(), all.map_or(0, |(_, moved)| moved.grown()));
            let lost = lost.saturating_sub(explained.unwrap_or(0));
            if lost < SOME || lost.saturating_mul(100) < all {
                continue;
            }
            let name = String::from_utf8_lossy(iface);
            let link = sample.around.links.iter().find(|link| *link.name == *name);
            let is_down = link.is_some_and(|link| link.down().is_some());
            // The checks `mtu-mismatch` and `iface-down` name the cause.
            if is_down && !is_rx || super::mtu_mismatch::explains(sample, &name, is_rx) {
                continue;
            }
            let share = percent(lost, all.saturating_add(lost));
            let title = match link.filter(|link| link.is_tun && !is_rx) {
                Some(_) if all == 0 => format!("the program of the tun device {name} does not read its packets"),
                Some(_) => {
                    format!("the program of the tun device {name} reads too slowly: {share} of the packets are dropped")
                }
                None => format!("{name} drops {share} of its {way} packets"),
            };
            found
                .add(Severity::Warning, Confidence::Likely, title)
                .object(name.clone())
                .proof([of_object(dropped, iface, moved, None)])
                .lost(lost, "packets dropped")
                .reach(if explained.is_some() { Reach::part(lost, all) } else { Reach::Nobody }, "")
                .remedy(
                    "netwren counters 'source = iface and delta > 0' --for 3",
                    "shows the other counters of the interface",
                    "",
                );
        }
    }
}
