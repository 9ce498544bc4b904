//! Packets with an impossible source or destination.

use record::Addr;
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::route_localnet;
use super::words::argument;
use super::{Check, Findings, Probe, Sample};
use crate::seen::DropSeen;

/// Fewest packets for a finding; fewer may be forged.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "martian",
    needs: &[Probe::Drops, Probe::Links],
    area: "addresses",
    about: "Packets arrive with this host's address as source, or with an address that is not valid on a network.",
    rule: "At least 5 packets were dropped with the reasons IP_LOCAL_SOURCE, IP_INVALID_SOURCE, IP_INVALID_DEST or \
           IP_LOCALNET, not for a multicast group or broadcast address, for the sender itself, or for a loopback \
           address from another host. It is a hint unless the address is this host's.",
    sources: "the tracepoint kfree_skb via BPF",
    refuted_by: "no other host with the address: `arping -D -I IFACE ADDRESS`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    // Access points, and bridges with a loop, send packets for groups back to their sender. Destination NAT also sends
    // packets back, or to a loopback address.
    let is_of_nat = |one: &DropSeen| one.is_returned() || route_localnet::is_refused(one);
    let dropped = sample.around.dropped(CHECK.id).only(|one| !one.is_to_group() && !is_of_nat(one));
    let Some(first) = dropped.all.first().filter(|_| dropped.count >= SOME) else { return };
    let own = first.reason == "IP_LOCAL_SOURCE";
    let title = match first.ends.filter(|_| own) {
        Some((from, _)) => format!("another host uses this host's address {}", from.unmapped()),
        None if own => "another host uses an address of this host".to_owned(),
        None => format!("packets with invalid addresses arrive{}", dropped.example()),
    };
    let iface = sample.around.iface(first.ifindex);
    let asks = first.ends.filter(|(from, _)| own && matches!(from.unmapped(), Addr::V4(_))).map(|(from, _)| {
        let command = format!("arping -D -c 3 -I {} {}", argument(&iface, "IFACE"), from.unmapped());
        (command, "asks whether another host has the address", "")
    });
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(iface.as_str())
        .proof(dropped.evidence())
        .lost(dropped.count, "packets dropped")
        .reach(if own { Reach::part(dropped.count, dropped.count) } else { Reach::Nobody }, "")
        .remedies(asks)
        .remedy(
            "",
            "give one of the two another address; a loop of cables or bridges also returns a host's own packets",
            "",
        );
}
