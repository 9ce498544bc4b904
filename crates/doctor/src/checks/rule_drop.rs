//! Packets dropped by a rule of the packet filter.

use record::Proto;
use record::rows::CounterSource::{Conntrack, Snmp, Snmp6};
use record::rows::{Confidence, NetfilterHook, Severity};

use super::words::percent;
use super::{Check, Findings, Probe, Sample};
use crate::seen::DropSeen;

/// Fewest drops for a warning, which must also be 1 % of the packets; fewer are normal noise.
const SOME: u64 = 5;
/// Fewest drops of expected packets for a hint.
const FEW: u64 = 3;
/// Smallest share of packets to closed ports, in percent of all, for a hint.
const MANY_PERCENT: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "rule-drop",
    needs: &[Probe::Drops, Probe::Sockets],
    area: "firewall",
    about: "A rule, or a chain's policy, drops packets that are expected by a program or host.",
    rule: "At least 5 packets, and 1 % of all, were dropped by nftables or iptables: outgoing, forwarded, or to a port \
           with a listener. At least 3 such packets are a hint, as are at least 5 packets to closed ports that are 10 \
           % of all.",
    sources: "the tracepoint kfree_skb via BPF: NETFILTER_DROP; nft: the rules and their counters; /proc/net/snmp: \
              InReceives, OutRequests; listeners",
    refuted_by: "a rule that should drop them: then the sender is at fault.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id);
    // Connection tracking drops packets at the same place, and counts them.
    let of_tracking = sample.grown(Conntrack, "drop");
    let at_hooks: u64 = dropped.all.iter().filter(|one| one.place == "nf_hook_slow").map(|one| one.count).sum();
    // The two are not read at the same moment: if most of the drops are conntrack's, all are taken to be.
    let of_tracking = if of_tracking.saturating_mul(2) >= at_hooks { at_hooks } else { of_tracking };
    let count = dropped.count.saturating_sub(of_tracking);
    let Some(first) = dropped.all.first().filter(|_| count > 0) else { return };
    let all: u64 = ["IpInReceives", "IpOutRequests"].iter().map(|name| sample.grown(Snmp, name)).sum::<u64>()
        + ["Ip6InReceives", "Ip6OutRequests"].iter().map(|name| sample.grown(Snmp6, name)).sum::<u64>();
    let is_waited_for = dropped.all.iter().any(|one| is_waited_for(sample, one));
    let is_share = |percent: u64| count.saturating_mul(100) >= all.saturating_mul(percent);
    let severity = match is_waited_for {
        true if count >= SOME && is_share(1) => Severity::Warning,
        true if count >= FEW => Severity::Hint,
        false if count >= SOME && is_share(MANY_PERCENT) && dropped.all.iter().any(|one| is_to_host(one)) => {
            Severity::Hint
        }
        _ => return,
    };
    let hook = first.hook.map_or(String::new(), |hook| format!(" at the hook {}", hook.name()));
    let (subject, confidence) = match &first.rule {
        Some(rule) if rule.is_certain => (format!("the rule `{}`", rule.text), Confidence::Certain),
        Some(rule) => (format!("a rule (`{}`)", rule.text), Confidence::Likely),
        None => ("a rule or policy of the packet filter".to_owned(), Confidence::Certain),
    };
    let title = format!("{subject} drops packets{hook}{}", dropped.example());
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
        .also_cost(format!("{} of the packets of this network namespace", percent(count, all.max(count))))
        .remedy(list, effect, "")
        .remedy("", "if the packets are wanted, accept them in a rule before the dropping rule", "");
}

/// True if the table and chain names can be typed into a shell without quoting.
fn is_plain(chain: &str) -> bool {
    chain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" _-.".contains(&byte))
        && chain.split(' ').all(|word| !word.is_empty() && !word.starts_with('-'))
}

/// True if the packet is for one host, not for a group.
fn is_to_host(one: &DropSeen) -> bool {
    one.ends.is_some_and(|(_, to)| !to.is_multicast())
}

/// True if the packet is sent or forwarded by this host, or is for a port that is served here.
fn is_waited_for(sample: &Sample, one: &DropSeen) -> bool {
    match one.hook {
        Some(NetfilterHook::Output | NetfilterHook::Postrouting | NetfilterHook::Forward | NetfilterHook::Egress) => {
            true
        }
        _ => {
            let proto = match one.proto {
                "tcp" => Proto::Tcp,
                "udp" => Proto::Udp,
                _ => return false,
            };
            let Some((from, to)) = one.ports else { return false };
            let is_served = sample.after.served.contains(&(proto, to));
            // An answer from a service to a client's port.
            is_served || from < 1024 && to >= 1024
        }
    }
}
