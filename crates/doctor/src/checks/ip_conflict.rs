//! IPv4 addresses that another host on the same link also has, noticed by its ARP messages.
//!
//! The kernel detects duplicates for IPv6 (`dad-failed`) but not for IPv4: it ignores ARP messages whose sender has
//! one of its own addresses, and packets from there count only if they reach it (`martian`). The check sends nothing,
//! so it sees only messages within the window. It ignores neighbour entries for own addresses: a host that has just
//! taken over the address of a failed one still has such an entry.

use record::rows::{Confidence, Severity};

use super::words::{argument, state};
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "ip-conflict",
    needs: &[Probe::Arp],
    area: "addresses",
    about: "Another host on the same link has an IPv4 address of this host: each receives packets meant for the other.",
    rule: "Within the window an ARP message arrived whose sender has an IPv4 address that the interface has at both \
           readings, and a unicast hardware address that none of this host's interfaces has. A host that sends no ARP \
           during the window is not detected.",
    sources: "a packet socket for ARP (AF_PACKET, CAP_NET_RAW); addresses and interfaces via rtnetlink",
    refuted_by: "`arping -D -I IFACE ADDRESS` without an answer, or a bridge or access point that reflects this host's \
                 messages with its own address.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for one in &sample.around.conflicts {
        let (addr, iface) = (one.addr, &one.iface);
        let hardware = one.hardware.map(|byte| format!("{byte:02x}")).join(":");
        let argument = argument(iface, "IFACE");
        found
            .add(
                Severity::Critical,
                Confidence::Likely,
                format!("another host, {hardware}, also has the address {addr} of {iface}"),
            )
            .object(addr.to_string())
            .proof([state(format!("ARP from {hardware} as {addr} on {iface}"), one.count, None)])
            .cost("hosts that learned the other hardware address send packets for this host there")
            .remedy(
                format!("arping -D -c 3 -I {argument} {addr}"),
                "asks for the address: another host answers",
                "sends three messages to all hosts on the link",
            )
            .remedy("", format!("search for {hardware} in the tables of switches and DHCP servers").as_str(), "")
            .remedy("", "give one of the two another address", "");
    }
}
