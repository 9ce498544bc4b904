//! ARP requests for addresses of this host that its settings leave unanswered.

use record::rows::{Confidence, Severity};

use super::words::{argument, iface_setting, state};
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "arp-ignored",
    needs: &[Probe::Arp],
    area: "neighbours",
    about: "Another host asks for the hardware address of an IPv4 address of this host, which does not answer because \
            of arp_ignore or arp_filter.",
    rule: "One host asked at least twice within the window for an address of this host, and arp_ignore or arp_filter \
           of the interface, or of all, excludes the answer.",
    sources: "a packet socket for ARP (AF_PACKET, CAP_NET_RAW); net.ipv4.conf: arp_ignore, arp_filter; addresses via \
              rtnetlink",
    refuted_by: "another host that is meant to answer for the address, such as the director of a load balancer (LVS).",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for one in &sample.around.ignored_arp {
        let (addr, sender, iface, setting) = (one.addr, one.sender, &one.iface, one.setting.name());
        let place = if one.holder == *iface { String::new() } else { format!(", and {addr} is on {}", one.holder) };
        let title = format!("{sender} on {iface} gets no answer to ARP for {addr}: {setting} is {}{place}", one.value);
        let name = argument(iface, "IFACE");
        let draft = found
            .add(Severity::Warning, Confidence::Likely, title)
            .object(addr.to_string())
            .proof([state(format!("ARP requests from {sender} for {addr} on {iface}"), one.count, None)])
            .proof([state(format!("{setting} of {iface}"), one.value, Some(0))])
            .cost(format!("{sender} cannot send to {addr}"));
        let draft = match one.holder == *iface {
            true => draft,
            false => draft.remedy(
                format!("ip addr add {addr}/32 dev {name}"),
                "gives the interface the address, so that it answers",
                "a host that shares the address on purpose (LVS) takes it over",
            ),
        };
        draft.remedy(
            format!("sysctl -w net.ipv4.conf.all.{setting}=0 {}=0", iface_setting("ipv4", iface, setting)),
            "answers requests for all addresses of this host on all interfaces",
            "a host that shares an address on purpose (LVS) takes it over",
        );
    }
}
