//! Links at half duplex, or much slower than both ends support.

use record::rows::CounterSource::Iface;
use record::rows::{Confidence, Severity};

use super::words::{argument, of_object, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::{LinkSeen, ModeSeen};

/// Interface counters that grow if one end of a link is half duplex and the other is not.
const MISMATCH: &[&str] = &["collisions", "tx_window_errors", "tx_aborted_errors", "rx_crc_errors"];

pub(super) const CHECK: Check = Check {
    id: "link-mode",
    needs: &[Probe::Links],
    area: "interfaces",
    about: "A link is half duplex although its interface supports full duplex, or runs at no more than half of the \
            speed that both ends offer.",
    rule: "The interface is up and has a carrier. It is half duplex and supports a full-duplex BASE-T mode at its \
           speed; or it negotiates, and the best mode that both ends offer is at least twice as fast as the link.",
    sources: "ETHTOOL_MSG_LINKMODES_GET of generic netlink (Linux 5.6): as `ethtool IFACE` shows it",
    refuted_by: "`ethtool IFACE` that shows full duplex, and the highest speed in both lists of link modes.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for link in &sample.around.links {
        if let Some(mode) = link.mode.filter(|_| link.down().is_none()) {
            of_link(sample, found, link, mode);
        }
    }
}

fn of_link(sample: &Sample, found: &mut Findings<'_>, link: &LinkSeen, mode: ModeSeen) {
    let ModeSeen { mbps, is_half, is_negotiated, supported_mbps, common_mbps } = mode;
    let best = common_mbps.filter(|best| is_negotiated && *best >= mbps.saturating_mul(2));
    let is_half = is_half && supported_mbps.is_some_and(|can| can >= mbps);
    let name = &link.name;
    let duplex = if is_half { "half" } else { "full" };
    let (title, cause) = match (is_half, best) {
        (false, None) => return,
        (_, Some(best)) => (
            format!("the link of {name} runs at {mbps} Mb/s, {duplex} duplex, although both ends offer {best} Mb/s"),
            "replace the cable or the port: a broken pair of wires makes both ends fall back to a lower speed",
        ),
        (true, None) => (
            format!("the link of {name} is half duplex at {mbps} Mb/s"),
            "enable negotiation at the other end: if it is configured manually, this end receives no offer and uses \
             half duplex",
        ),
    };
    let counters = MISMATCH.iter().flat_map(|counter| {
        let of =
            sample.objects(Iface, counter).filter(|(object, moved)| *object == name.as_bytes() && moved.grown() > 0);
        of.map(|(object, moved)| of_object(counter, object, moved, None))
    });
    let argument = argument(name, "IFACE");
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .object(name.clone())
        .proof([
            state(format!("Mb/s of {name}"), mbps, best.map(i64::from)),
            state(format!("full duplex of {name}"), i64::from(!is_half), Some(1)),
        ])
        .proof(counters)
        .cost(match best {
            Some(best) => {
                format!("the link runs at {} % of the possible speed", u64::from(mbps) * 100 / u64::from(best.max(1)))
            }
            None => "one direction at a time; if the other end is full duplex, frames are lost".to_owned(),
        })
        .remedy(format!("ethtool {argument}"), "shows the modes that each end offers, and the current one", "")
        .remedy("", cause, "")
        .remedy(
            format!("ethtool -s {argument} autoneg on"),
            "makes this end negotiate speed and duplex",
            "the link goes down for a few seconds",
        );
}
