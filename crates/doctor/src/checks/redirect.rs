//! ICMP redirects that lead to a gateway that does not answer.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::neigh_failed::evidence_of;
use super::silence::redirect_to;
use super::words::{iface_setting, state};
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "redirect",
    needs: &[Probe::Drops, Probe::Links, Probe::Neighbours, Probe::Routes],
    area: "routing",
    about: "A router redirected this host to another gateway (ICMP redirect), which does not answer.",
    rule: "A neighbour that is in no route but in a redirect has not answered within the window. Critical if the \
           redirect is used for several destinations, otherwise a warning.",
    sources: "neighbours and cached routes via rtnetlink; the tracepoint kfree_skb via BPF",
    refuted_by: "`ip route show cache` without `redirected`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let around = &sample.around;
    let dropped = around.dropped("neigh-failed");
    for one in &around.neighbours {
        let Some(first) = redirect_to(sample, one) else { continue };
        let is_it = |other: &&crate::seen::RedirectSeen| (other.gateway, other.ifindex) == (one.addr, one.ifindex);
        let all = around.redirects.iter().filter(is_it).count();
        let (gateway, to, iface) = (first.gateway.unmapped(), first.to.unmapped(), around.iface(one.ifindex));
        let others = if all > 1 { format!(" and {} more", all - 1) } else { String::new() };
        let title = format!("a redirect leads packets for {to}{others} to {gateway} on {iface}, which does not answer");
        let severity = if all > 1 { Severity::Critical } else { Severity::Warning };
        let family = if matches!(gateway, record::Addr::V4(_)) { "ipv4" } else { "ipv6" };
        let version = if family == "ipv4" { "-4" } else { "-6" };
        let draft = found
            .add(severity, Confidence::Certain, title)
            .object(gateway.to_string())
            .proof([evidence_of(sample, one), state(format!("redirects to {gateway} on {iface}"), all as i64, None)])
            .proof(
                [(Snmp, "IcmpInRedirects"), (Snmp6, "Icmp6InRedirects")]
                    .into_iter()
                    .filter_map(|(source, name)| sample.evidence(source, name, None)),
            )
            .proof(dropped.evidence())
            .remedy(
                format!("ip {version} route flush cache"),
                "forgets redirects: packets take the configured route again",
                "learned path MTUs are also forgotten",
            )
            .remedy(
                format!(
                    "sysctl -w net.{family}.conf.all.accept_redirects=0 {}=0",
                    iface_setting(family, &iface, "accept_redirects")
                ),
                "ignores further redirects",
                "packets take the longer way through the first router",
            );
        match dropped.count {
            0 => draft.cost("all packets to these destinations are lost"),
            lost => draft.lost(lost, "packets dropped"),
        };
    }
}
