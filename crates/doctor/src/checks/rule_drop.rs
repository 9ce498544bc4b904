//! Packets dropped by a rule of the packet filter.

use record::rows::CounterSource::{Conntrack, Snmp};
use record::rows::{Confidence, NetfilterHook, Severity};
use record::{Addr, Proto};

use super::dropped::Dropped;
use super::reach::{Reach, moved_packets};
use super::silence::discovery;
use super::syn_retrans::wait_for;
use super::{Check, FindingBuilder, Findings, Probe, Sample};
use crate::seen::{DropSeen, PeerHost, RuleSeen};

/// Fewest drops for a warning; fewer are normal noise.
const SOME: u64 = 5;
/// Fewest drops of expected packets for a hint.
const FEW: u64 = 3;
/// Smallest share of packets that this host did not ask for, in percent of all, for a hint.
const MANY_PERCENT: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "rule-drop",
    needs: &[Probe::Drops, Probe::Neighbours, Probe::Sockets],
    area: "firewall",
    about: "A rule, or a chain's policy, drops packets that are expected by a program or host.",
    rule: "At least 5 packets were dropped by nftables or iptables: packets of this host and answers to it (from 1 % \
           of all packets on), forwarded ones (from 10 % on), or, by a rule, those to a port with a listener and \
           without connections (from 50 % on). At least 3 such packets are a hint, as are at least 5 other packets \
           that are 10 % of all: scans and backscatter. Neighbour discovery and ARP are left to `discovery-drop`.",
    sources: "the tracepoint kfree_skb via BPF: NETFILTER_DROP; nft: the rules and their counters; /proc/net/snmp: \
              InReceives, OutRequests; listeners",
    refuted_by: "a rule that should drop them: then the sender is at fault.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    // NAT drops redirects, whose addresses it cannot translate; without them the route stays as it is.
    let is_redirect = |one: &DropSeen| {
        let is_here = one.place == "nf_hook_slow" && one.hook == Some(NetfilterHook::Output);
        is_here && one.proto == "icmp" && one.count <= sample.grown(Snmp, "IcmpOutRedirects")
    };
    let forgotten = super::ct_forgotten::forgotten(sample);
    let is_explained = |one: &DropSeen| forgotten.iter().any(|of| std::ptr::eq(*of, one));
    let dropped = sample.around.dropped(CHECK.id).only(|one| !is_redirect(one) && !is_explained(one));
    let dropped = dropped.only(|one| discovery(sample, one).is_none());
    // Connection tracking drops packets at the same place, and counts them.
    let of_tracking = sample.grown(Conntrack, "drop");
    let at_hooks: u64 = dropped.all.iter().filter(|one| one.place == "nf_hook_slow").map(|one| one.count).sum();
    // The two are not read at the same moment: if most of the drops are conntrack's, all are taken to be.
    let of_tracking = if of_tracking.saturating_mul(2) >= at_hooks { at_hooks } else { of_tracking };
    let all = moved_packets(sample);
    let Some(Hurt { kind, first, count }) = worst(sample, &dropped, of_tracking, all) else { return };
    let is_unsolicited = kind == Traffic::Unsolicited;
    let is_share = count.saturating_mul(100) >= all.saturating_mul(MANY_PERCENT);
    // Packets that this host did not ask for are worth a word only if they are many, and for one host.
    if count < if is_unsolicited { SOME } else { FEW } || is_unsolicited && (first.is_to_group() || !is_share) {
        return;
    }
    let severity = if count >= SOME && !is_unsolicited { Severity::Warning } else { Severity::Hint };
    let hook = first.hook.map_or(String::new(), |hook| format!(" at the hook {}", hook.name()));
    let legacy = legacy_tool(sample, first);
    let (subject, confidence) = subject(first, legacy);
    let example = first.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
    let element = first.rule.as_ref().and_then(|rule| element_of(rule, first));
    let is_certain = first.rule.as_ref().is_some_and(|rule| rule.is_certain);
    let matched = match &element {
        Some(Element { set, value, .. }) if is_certain => format!(": the set {set} contains {value}"),
        _ => String::new(),
    };
    let verb = if first.rule.as_ref().is_some_and(RuleSeen::rejects) { "rejects" } else { "drops" };
    let title = format!("{subject} {verb} packets{hook}{example}{matched}");
    // Connections that cannot be established are few packets.
    let reach = match kind == Traffic::Own && wait_for(sample, &dropped) {
        true => Reach::part(count, count),
        false => kind.reach(count, all),
    };
    let draft = found
        .add(severity, confidence, title)
        .object(first.hook.map_or("", NetfilterHook::name))
        .proof(dropped.evidence())
        .lost(count, "packets dropped")
        .reach(reach, "packets of this network namespace");
    remedies(draft, first, legacy, element.as_ref());
}

/// The rule in words, and whether it is certain.
pub(super) fn subject(first: &DropSeen, legacy: Option<&str>) -> (String, Confidence) {
    match (&first.rule, legacy) {
        (Some(rule), _) if rule.is_certain => (format!("the rule `{}`", rule.text), Confidence::Certain),
        (Some(rule), _) => (format!("a rule (`{}`)", rule.text), Confidence::Likely),
        (None, Some(tool)) => (format!("a rule or policy of {tool}-legacy"), Confidence::Likely),
        (None, None) => ("a rule or policy of the packet filter".to_owned(), Confidence::Certain),
    }
}

/// The tool of rules that `nft` does not show, if such rules exist and can have dropped the packet: since Linux 6.12,
/// those of nft drop packets in another function.
pub(super) fn legacy_tool(sample: &Sample, one: &DropSeen) -> Option<&'static str> {
    let tool = match one.ends?.1.unmapped() {
        Addr::V4(_) => "iptables",
        Addr::V6(_) => "ip6tables",
    };
    let is_place = !one.place.starts_with("nft_") && one.rule.is_none();
    (is_place && sample.around.legacy_rules.contains(&tool)).then_some(tool)
}

fn remedies(draft: FindingBuilder<'_>, first: &DropSeen, legacy: Option<&str>, element: Option<&Element>) {
    let chain = first.rule.as_ref().and_then(|rule| rule.chain.as_deref()).filter(|chain| is_plain(chain));
    let draft = match (legacy, chain) {
        (Some(tool), _) => draft
            .remedy(
                format!("{tool}-legacy-save -c"),
                "shows the rules with their counters: the counter of the dropping rule grows. `nft` does not show them",
                "",
            )
            .remedy("", &format!("if that command does not exist, run `{tool}-save -c`"), ""),
        (None, Some(chain)) => draft.remedy(format!("nft -a list chain {chain}"), "shows the chain of this rule", ""),
        (None, None) => draft.remedy("nft -a list ruleset", "shows the rules: look for `drop` and for policies", ""),
    };
    let draft = match element {
        Some(Element { place, value, .. }) if is_plain(place) => draft.remedy(
            format!("nft get element {place} '{{ {value} }}'"),
            "shows the element of the set that contains the packet's value; delete it if the packets are wanted",
            "",
        ),
        _ => draft,
    };
    draft.remedy("", "if the packets are wanted, accept them in a rule before the dropping rule", "");
}

/// An element of a named set that a packet matched.
struct Element {
    /// Family, table and set.
    place: String,
    set: String,
    value: String,
}

/// Returns the element of a named set that makes the rule match its first packet. If the rule is certain, so is that
/// the set contains it.
fn element_of(rule: &RuleSeen, first: &DropSeen) -> Option<Element> {
    let mut place = rule.chain.as_deref()?.split(' ');
    let (family, table) = (place.next()?, place.next()?);
    // Concatenated keys, such as `ip saddr . tcp dport @set`, are left out.
    if rule.text.contains(" . ") {
        return None;
    }
    let words: Vec<&str> = rule.text.split(' ').collect();
    let (from, to) = first.ends?;
    words.windows(4).find_map(|words| {
        let (set, keys) = match words {
            [header, field, "vmap", set] => (set, (*header, *field)),
            [_, header, field, set] => (set, (*header, *field)),
            _ => return None,
        };
        let value = match keys {
            ("ip" | "ip6", "saddr") => from.unmapped().to_string(),
            ("ip" | "ip6", "daddr") => to.unmapped().to_string(),
            ("tcp" | "udp" | "th", "sport") => first.ports?.0.to_string(),
            ("tcp" | "udp" | "th", "dport") => first.ports?.1.to_string(),
            _ => return None,
        };
        let set = set.strip_prefix('@')?;
        Some(Element { place: format!("{family} {table} {set}"), set: set.to_owned(), value })
    })
}

/// True if the table and chain names can be typed into a shell without quoting.
pub(super) fn is_plain(chain: &str) -> bool {
    chain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" _-.".contains(&byte))
        && chain.split(' ').all(|word| !word.is_empty() && !word.starts_with('-'))
}

/// The traffic that a dropped packet belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traffic {
    /// A program of this host sent it, or waits for it as an answer.
    Own,
    /// This host forwards for others.
    Forwarded,
    /// A rule closes a port on which a program listens, and no connection to the port exists.
    ToClosedPort,
    /// Traffic that no program here requested: scans, backscatter.
    Unsolicited,
}

impl Traffic {
    const ALL: [Traffic; 4] = [Traffic::Own, Traffic::Forwarded, Traffic::ToClosedPort, Traffic::Unsolicited];

    /// A firewall drops some packets on purpose.
    fn reach(self, count: u64, all: u64) -> Reach {
        let part = Reach::part(count, all);
        match self {
            Traffic::Own => part,
            Traffic::Forwarded => part.or_more_than(10),
            Traffic::ToClosedPort => part.or_more_than(50),
            Traffic::Unsolicited => Reach::Nobody,
        }
    }
}

/// Packets of one kind.
struct Hurt<'s> {
    kind: Traffic,
    first: &'s DropSeen,
    count: u64,
}

/// Returns the packets of the kind that hurts most; `of_tracking` of all packets were dropped by connection tracking.
fn worst<'s>(sample: &Sample, dropped: &Dropped<'s>, of_tracking: u64, all: u64) -> Option<Hurt<'s>> {
    let of_kind = |kind| {
        let mut drops = dropped.all.iter().copied().filter(|one| kind_of(sample, one) == kind).peekable();
        let first = *drops.peek()?;
        let count = drops.map(|one| one.count).sum::<u64>().saturating_sub(of_tracking);
        (count > 0).then_some(Hurt { kind, first, count })
    };
    let found = Traffic::ALL.into_iter().filter_map(of_kind);
    found.min_by_key(|one| (one.kind.reach(one.count, all).limit(), one.kind == Traffic::Unsolicited))
}

fn kind_of(sample: &Sample, one: &DropSeen) -> Traffic {
    use NetfilterHook::{Egress, Forward, Output, Postrouting};
    match one.hook {
        _ if one.is_to_group() => Traffic::Unsolicited,
        Some(Output | Postrouting | Egress) => Traffic::Own,
        Some(Forward) => Traffic::Forwarded,
        _ if is_answer(sample, one) => Traffic::Own,
        _ if is_closed(sample, one) => Traffic::ToClosedPort,
        _ => Traffic::Unsolicited,
    }
}

/// True for an answer to a connection or query of this host. Others' answers to forged addresses have no such socket.
fn is_answer(sample: &Sample, one: &DropSeen) -> bool {
    let (Some((from, to)), Some((service, port))) = (one.ends, one.ports) else { return false };
    match one.proto {
        "tcp" => {
            let (local, peer) = (to.unmapped(), from.unmapped());
            // The first of these connections; it may be bound to any interface.
            let mut of = sample.after.destinations.range((service, local, PeerHost::from(peer))..);
            of.next().is_some_and(|((port, from, to), _)| (*port, *from, to.addr) == (service, local, peer))
        }
        // Sockets that wait for datagrams are not recorded.
        "udp" => service < 1024 && port >= 1024 && sample.grown(Snmp, "UdpOutDatagrams") >= one.count,
        _ => false,
    }
}

/// True if a rule closes the port of a program that serves no one else. The policy of a chain closes ports that no rule
/// opens: that is its purpose.
fn is_closed(sample: &Sample, one: &DropSeen) -> bool {
    let proto = match one.proto {
        "tcp" => Proto::Tcp,
        "udp" => Proto::Udp,
        _ => return false,
    };
    let is_served = |port: u16| sample.after.served.contains_key(&(proto, port)) && !sample.after.used.contains(&port);
    let is_policy = one.rule.as_ref().is_some_and(RuleSeen::is_policy);
    one.ports.is_some_and(|(_, port)| is_served(port)) && !is_policy
}
