//! Packets refused by a route of type blackhole, unreachable or prohibit.

use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};

/// Fewest packets for more than a hint.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "route-refuses",
    needs: &[Probe::Drops, Probe::Routes],
    area: "routing",
    about: "A route drops packets on purpose: blackhole, unreachable or prohibit.",
    rule: "Packets were dropped where the kernel rejects a destination: by a route of such a type, which is named if \
           the routing tables contain one, or by a policy routing rule.",
    sources: "the tracepoint kfree_skb via BPF: ip_error, dst_discard, ip6_pkt_drop; routes via rtnetlink",
    refuted_by: "`ip route get ADDRESS` that shows a next hop.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id);
    let routes = &sample.around.refused;
    if dropped.count == 0 {
        return;
    }
    let severity = if dropped.count >= SOME { Severity::Warning } else { Severity::Hint };
    let title = match routes.as_slice() {
        [(first, kind)] => format!("the {kind} route to {first} drops packets{}", dropped.example()),
        [] => format!("a policy routing rule drops packets{}", dropped.example()),
        _ => format!("a blackhole, unreachable or prohibit route drops packets{}", dropped.example()),
    };
    let shown = routes.iter().take(4).map(|(to, kind)| state(format!("{kind} route to {to}"), 1, None));
    found
        .add(severity, Confidence::Certain, title)
        .object(routes.first().map_or(String::new(), |(to, _)| to.clone()))
        .proof(dropped.evidence())
        .proof(shown)
        .lost(dropped.count, "packets dropped")
        .remedy("netwren routes 'type in (blackhole, unreachable, prohibit)'", "shows these routes", "")
        .remedy("ip rule show", "shows the policy routing rules", "")
        .remedy("", "if the destination should be reachable, delete the route or rule, or add a narrower route", "");
}
