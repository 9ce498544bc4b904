//! Destination NAT to a loopback address, whose packets routing rejects.

use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::{argument, iface_setting};
use super::{Check, Findings, Probe, Sample};
use crate::seen::DropSeen;

/// Fewest packets for a finding.
const SOME: u64 = 3;

pub(super) const CHECK: Check = Check {
    id: "route-localnet",
    needs: &[Probe::Drops, Probe::Links],
    area: "conntrack",
    about: "Destination NAT sends packets of other hosts to 127.0.0.0/8, and routing rejects them.",
    rule: "At least 3 packets of another host to a loopback address were dropped as IP_LOCALNET: `route_localnet` is \
           0 on the interface. Hosts do not send to such an address by themselves.",
    sources: "the tracepoint kfree_skb via BPF: IP_LOCALNET",
    refuted_by: "no rule with such a target in `nft list ruleset`: then another host forges the packets.",
    run,
};

/// True for a packet of another host to a loopback address.
pub(super) fn is_refused(one: &DropSeen) -> bool {
    let is_it = |(from, to): (record::Addr, record::Addr)| to.is_loopback() && !from.is_loopback();
    one.reason == "IP_LOCALNET" && one.ends.is_some_and(is_it)
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped("martian").only(is_refused);
    let Some(first) = dropped.all.first().filter(|_| dropped.count >= SOME) else { return };
    let (iface, (_, to)) = (sample.around.iface(first.ifindex), first.ends.unzip());
    let to = to.map_or(String::new(), |to| to.unmapped().to_string());
    let port = first.ports.map_or(String::new(), |(_, port)| format!(" port {port}"));
    let named = argument(&iface, "all");
    found
        .add(
            Severity::Warning,
            Confidence::Likely,
            format!("destination NAT sends packets to {to}{port}, but route_localnet is 0 on {named}"),
        )
        .object(iface.clone())
        .proof(dropped.evidence())
        .lost(dropped.count, "packets dropped")
        .reach(Reach::part(dropped.count, dropped.count), "")
        .remedy(
            "",
            "bind the service to an address of this host, and use `redirect to :PORT` instead of a DNAT to 127.0.0.1",
            "",
        )
        .remedy(
            format!("sysctl -w {}=1", iface_setting("ipv4", named, "route_localnet")),
            "lets routing accept the translated packets",
            "hosts on the link can also reach other services at 127.0.0.1: drop their packets to 127.0.0.0/8 before \
             the translation (chain at priority raw)",
        );
}
