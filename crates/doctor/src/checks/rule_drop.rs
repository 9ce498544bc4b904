//! Packets dropped by a rule of the packet filter.

use record::Proto;
use record::rows::CounterSource::{Conntrack, Snmp};
use record::rows::{Confidence, NetfilterHook, Severity};

use super::dropped::Dropped;
use super::no_route::moved_packets;
use super::reach::Reach;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{DropSeen, RuleSeen};

/// Fewest drops for a warning; fewer are normal noise.
const SOME: u64 = 5;
/// Fewest drops of expected packets for a hint.
const FEW: u64 = 3;
/// Smallest share of packets that this host did not ask for, in percent of all, for a hint.
const MANY_PERCENT: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "rule-drop",
    needs: &[Probe::Drops, Probe::Sockets],
    area: "firewall",
    about: "A rule, or a chain's policy, drops packets that are expected by a program or host.",
    rule: "At least 5 packets were dropped by nftables or iptables: packets of this host and answers to it (from 1 % \
           of all packets on), forwarded ones (from 10 % on), or, by a rule, those to a port with a listener and \
           without connections (from 50 % on). At least 3 such packets are a hint, as are at least 5 other packets \
           that are 10 % of all: scans and backscatter.",
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
    let dropped = sample.around.dropped(CHECK.id).only(|one| !is_redirect(one));
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
    let (subject, confidence) = match &first.rule {
        Some(rule) if rule.is_certain => (format!("the rule `{}`", rule.text), Confidence::Certain),
        Some(rule) => (format!("a rule (`{}`)", rule.text), Confidence::Likely),
        None => ("a rule or policy of the packet filter".to_owned(), Confidence::Certain),
    };
    let example = first.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
    let title = format!("{subject} drops packets{hook}{example}");
    let chain = first.rule.as_ref().and_then(|rule| rule.chain.as_deref()).filter(|chain| is_plain(chain));
    let (list, effect) = match chain {
        Some(chain) => (format!("nft -a list chain {chain}"), "shows the chain of this rule"),
        None => ("nft -a list ruleset".to_owned(), "shows the rules: look for `drop` and for policies"),
    };
    found
        .add(severity, confidence, title)
        .object(first.hook.map_or("", NetfilterHook::name))
        .proof(dropped.evidence())
        .lost(count, "packets dropped")
        .reach(kind.reach(count, all), "packets of this network namespace")
        .remedy(list, effect, "")
        .remedy("", "if the packets are wanted, accept them in a rule before the dropping rule", "");
}

/// True if the table and chain names can be typed into a shell without quoting.
fn is_plain(chain: &str) -> bool {
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
            let of = &sample.after.destinations;
            of.keys().any(|(local, peer, at)| (*local, peer.addr, *at) == (to.unmapped(), from.unmapped(), service))
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
    let is_served = |port: u16| sample.after.served.contains(&(proto, port)) && !sample.after.used.contains(&port);
    let is_policy = one.rule.as_ref().is_some_and(RuleSeen::is_policy);
    one.ports.is_some_and(|(_, port)| is_served(port)) && !is_policy
}
