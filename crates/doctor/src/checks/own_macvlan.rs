//! Hosts that are macvlans of this host: an interface and its macvlans cannot reach each other.

use record::rows::Confidence;

use super::neigh_failed::{evidence_of, severity_of};
use super::silence::macvlan_of;
use super::words::{argument, state};
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "own-macvlan",
    needs: &[Probe::Drops, Probe::Links, Probe::Macvlans, Probe::Neighbours],
    area: "neighbours",
    about: "This host sends packets to a container whose macvlan is on the same interface: they never arrive.",
    rule: "A neighbour that does not answer has the address of a macvlan on top of its interface, in another network \
           namespace of this host, and the interface receives frames for the macvlan's hardware address. A warning if \
           3 packets per second to each were dropped, otherwise a hint.",
    sources: "neighbours and hardware addresses of interfaces via rtnetlink; interfaces of other network namespaces \
              (CAP_SYS_ADMIN); the tracepoint kfree_skb via BPF",
    refuted_by: "an answer to `ping ADDRESS` from this network namespace.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let around = &sample.around;
    let dropped = around.dropped("neigh-failed");
    for one in &around.neighbours {
        let Some(macvlan) = macvlan_of(sample, one) else { continue };
        let (addr, iface) = (one.addr.unmapped(), around.iface(one.ifindex));
        let place = if macvlan.netns.is_empty() { String::new() } else { format!(" of namespace {}", macvlan.netns) };
        let title = format!(
            "{addr} is the macvlan {}{place} on {iface}: this host cannot reach its own macvlans through {iface}",
            macvlan.name
        );
        let name = argument(&iface, "IFACE");
        let version = if matches!(addr, record::Addr::V4(_)) { "-4" } else { "-6" };
        let draft = found
            .add(severity_of(sample, dropped.count, around.neighbours.len()), Confidence::Certain, title)
            .object(addr.to_string())
            .proof([
                evidence_of(sample, one),
                state(format!("macvlan {} on {iface} with {addr}", macvlan.name), 1, None),
            ])
            .proof(dropped.evidence())
            .remedy(
                format!(
                    "ip link add host0 link {name} type macvlan mode bridge && ip link set host0 up && \
                     ip {version} route add {addr} dev host0"
                ),
                "gives this host a macvlan of its own, through which it reaches the other one (mode bridge)",
                "the interface and the route are lost at the next start",
            );
        match dropped.count {
            0 => draft.cost("all packets to it are lost; other hosts reach it"),
            lost => draft.lost(lost, "packets dropped").also_cost("other hosts reach it"),
        };
    }
}
