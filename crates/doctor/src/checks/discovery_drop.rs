//! Neighbour discovery and ARP that rules of this host drop.

use record::rows::{NetfilterHook, Severity};

use super::neigh_failed::evidence_of;
use super::rule_drop::{is_plain, legacy_tool, subject};
use super::silence::{Discovery, dropped};
use super::{Check, FindingBuilder, Findings, Probe, Sample};
use crate::seen::{DropSeen, NeighbourSeen};

/// Messages that IPv6 needs on every link, as nft names them.
const TYPES: &str = "{ nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, nd-router-advert }";

pub(super) const CHECK: Check = Check {
    id: "discovery-drop",
    needs: &[Probe::Drops, Probe::Links, Probe::Neighbours, Probe::Routes],
    area: "firewall",
    about: "A rule of this host drops neighbour discovery (ICMPv6 types 135 and 136) or ARP: hosts do not find each \
            other.",
    rule: "At least 2 such messages, or an evident one, were dropped on an interface with a neighbour that does not \
           answer, which is critical for a gateway; or 2 requests to the solicited-node group of an address of this \
           host, or of hosts between which it is a bridge.",
    sources: "the tracepoint kfree_skb via BPF: NETFILTER_DROP; nft: the rules; neighbours and routes via rtnetlink",
    refuted_by: "a rule that drops other ICMPv6 messages only, and a neighbour that is off.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for kind in [Discovery::Own, Discovery::Others, Discovery::Bridged] {
        let all = dropped(sample, kind);
        let Some(first) = all.all.first() else { continue };
        let silent = silent(sample, kind, first);
        let hook = first.hook.map_or(String::new(), |hook| format!(" at the hook {}", hook.name()));
        let what = if first.proto == "arp" { "ARP" } else { "neighbour discovery" };
        let legacy = legacy_tool(sample, first);
        let (subject, confidence) = subject(first, legacy);
        let title = format!("{subject} drops {what}{hook}: {}", consequence(sample, kind, &silent, first));
        let is_gateway = |one: &&NeighbourSeen| {
            let around = &sample.around;
            around.gateway_at(one).is_some_and(|hop| !around.is_spare(hop))
        };
        let severity = if silent.iter().any(is_gateway) { Severity::Critical } else { Severity::Warning };
        let draft = found
            .add(severity, confidence, title)
            .object(first.hook.map_or("", NetfilterHook::name))
            .proof(all.evidence())
            .proof(silent.iter().take(4).map(|one| evidence_of(sample, one)))
            .lost(all.count, "messages dropped")
            .also_cost("without a hardware address, no packet is sent");
        remedies(draft, first, legacy);
        break;
    }
}

/// Returns the neighbours that the drops keep silent.
fn silent<'s>(sample: &'s Sample, kind: Discovery, first: &DropSeen) -> Vec<&'s NeighbourSeen> {
    sample.around.neighbours.iter().filter(|one| kind.explains(first, one)).collect()
}

fn consequence(sample: &Sample, kind: Discovery, silent: &[&NeighbourSeen], first: &DropSeen) -> String {
    match silent {
        [] if kind == Discovery::Bridged => "hosts on the ports of this bridge do not find each other".to_owned(),
        [] => format!("hosts on {} do not find this host", sample.around.iface(first.ifindex)),
        [one, rest @ ..] => {
            let others = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
            format!("{} on {} is not found{others}", one.addr.unmapped(), sample.around.iface(one.ifindex))
        }
    }
}

fn remedies(draft: FindingBuilder<'_>, first: &DropSeen, legacy: Option<&str>) {
    let chain = first.rule.as_ref().and_then(|rule| rule.chain.as_deref());
    let is_fit = |chain: &&str| is_plain(chain) && first.proto == "icmpv6" && !chain.starts_with("ip ");
    let chain = chain.filter(is_fit);
    let draft = match chain {
        Some(chain) => draft.remedy(
            format!("nft 'insert rule {chain} icmpv6 type {TYPES} accept'"),
            "accepts neighbour discovery and router advertisements, which IPv6 needs on every link",
            "",
        ),
        None => draft,
    };
    let draft = match legacy {
        Some(tool) => draft.remedy(
            format!("{tool}-legacy-save -c"),
            "shows the rules with their counters: the counter of the dropping rule grows. `nft` does not show them",
            "",
        ),
        None => draft.remedy("nft -a list ruleset", "shows the rules: look for `drop` and for policies", ""),
    };
    draft.remedy("", "accept these messages in a rule before the dropping rule", "");
}
