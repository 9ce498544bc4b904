//! IPv4 addresses that another host on the same link has as well, heard by ARP.
//!
//! IPv6 looks for duplicates itself (`dad-failed`), IPv4 does not: the kernel leaves a message of ARP with one of its
//! own addresses as the sender without a word, and packets from there only where they reach it (`martian`). Nothing is
//! sent: what is heard within the window is all. Not taken: an entry of the neighbour table for an own address, which
//! is what a host keeps that has just taken the address of a failed one over.

use record::rows::{Confidence, Severity};

use super::words::{argument, state};
use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "ip-conflict",
    area: "addresses",
    about: "Another host on the same link has an IPv4 address of this one: each takes packets from the other.",
    rule: "Within the window a message of ARP came in whose sender has an IPv4 address that its interface has at both \
           readings, and a hardware address that none of our interfaces has, and that is none of a group. A host that \
           sends no ARP meanwhile is not heard.",
    sources: "a packet socket for ARP (AF_PACKET, CAP_NET_RAW); addresses and interfaces by rtnetlink",
    refuted_by: "`arping -D -I IFACE ADDRESS` without an answer, or a bridge or access point that sends our own \
                 messages back with its address in them.",
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
                format!("another host, {hardware}, has the address {addr} of {iface} as well"),
            )
            .object(addr.to_string())
            .proof([state(format!("ARP of {hardware} as {addr} on {iface}"), one.count, None)])
            .cost("whoever learned the other one's hardware address sends there what is for this host")
            .remedy(
                format!("arping -D -c 3 -I {argument} {addr}"),
                "asks who has the address: another host answers",
                "sends three messages to every host of the link",
            )
            .remedy("", format!("look for {hardware} in the tables of switches and DHCP servers").as_str(), "")
            .remedy("", "give one of the two another address", "");
    }
}
