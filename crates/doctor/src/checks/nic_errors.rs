//! Interfaces with damaged packets in either direction, or with overruns.

use record::rows::CounterSource::Iface;
use record::rows::{Confidence, Severity};
use std::collections::BTreeMap;

use super::reach::Reach;
use super::words::{argument, of_object};
use super::{Check, Findings, Sample};
use crate::seen::Moved;

pub(super) const CHECK: Check = Check {
    id: "nic-errors",
    needs: &[],
    area: "interfaces",
    about: "An interface receives damaged packets, cannot send, or runs out of room.",
    rule: "rx_errors, tx_errors, rx_missed_errors, rx_fifo_errors or rx_over_errors of an interface grew. Less than 1 \
           % of its packets is a hint.",
    sources: "RTM_GETLINK: IFLA_STATS64",
    refuted_by: "`ip -s -s link show` with counters that do not grow.",
    run,
};

/// Error counters; the first two are sums of the others.
const ERRORS: &[&str] =
    &["rx_errors", "tx_errors", "rx_missed_errors", "rx_fifo_errors", "rx_over_errors", "rx_crc_errors"];

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let mut ifaces: BTreeMap<&[u8], Vec<(&str, Moved)>> = BTreeMap::new();
    for name in ERRORS {
        for (iface, moved) in sample.objects(Iface, name).filter(|(_, moved)| moved.grown() > 0) {
            ifaces.entry(iface).or_default().push((name, moved));
        }
    }
    for (iface, errors) in ifaces {
        let name = String::from_utf8_lossy(iface);
        let is_overrun = errors.iter().any(|(name, _)| name.contains("missed") || name.contains("fifo"));
        let lost = errors.iter().map(|(_, moved)| moved.grown()).max().unwrap_or(0);
        let moved = ["rx_packets", "tx_packets"].iter().flat_map(|name| sample.objects(Iface, name));
        let moved = moved.filter(|(other, _)| *other == iface).map(|(_, moved)| moved.grown()).sum::<u64>();
        let what = if is_overrun { "loses packets: its ring is full" } else { "reports damaged packets" };
        let command = argument(&name, "IFACE");
        let draft = found
            .add(Severity::Warning, Confidence::Certain, format!("{name} {what}"))
            .object(name.clone())
            .proof(errors.iter().map(|(error, moved)| of_object(error, iface, *moved, None)))
            .lost(lost, "packets lost")
            .reach(Reach::part(lost, lost.saturating_add(moved)), "packets");
        if is_overrun {
            draft.remedy(
                format!("ethtool -G {command} rx 4096"),
                "enlarges the ring, if the card can (`ethtool -g`)",
                "the link may go down briefly",
            );
        } else {
            draft.remedy(
                format!("ethtool -S {command}"),
                "shows the types of errors; then check cable, connector, optics and duplex",
                "",
            );
        }
    }
}
