//! Packets dropped by IPsec.

use record::rows::CounterSource::Xfrm;
use record::rows::{Confidence, Severity};

use super::dropped::Dropped;
use super::reach::{Reach, moved_packets};
use super::syn_retrans::wait_for;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{DropSeen, IpsecDirection, IpsecPolicy};

/// Fewest packets for a finding; fewer are lost while keys are renewed.
const FEW: u64 = 3;
/// Fewest packets for more than a hint.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "ipsec",
    needs: &[Probe::Drops, Probe::Ipsec, Probe::Sockets],
    area: "firewall",
    about: "IPsec drops packets: a policy without a state (SA), a policy that blocks, or packets that fit no policy.",
    rule: "A counter of /proc/net/xfrm_stat grew by at least 3: XfrmOutNoStates, XfrmInTmplMismatch and others. The \
           policy is named if it is the only one that applies to the first dropped packet.",
    sources: "/proc/net/xfrm_stat; policies and states via NETLINK_XFRM; the tracepoint kfree_skb via BPF: \
              XFRM_POLICY, dst_discard_out",
    refuted_by: "`ip xfrm policy` that shows no policy for these packets.",
    run,
};

/// A way in which IPsec loses packets.
struct Loss {
    counter: &'static str,
    /// True for packets to send.
    is_out: bool,
    /// The cause, after `the IPsec policy `out ...``; without a policy if `is_of_policy` is false.
    says: &'static str,
    is_of_policy: bool,
}

const fn of(counter: &'static str, is_out: bool, is_of_policy: bool, says: &'static str) -> Loss {
    Loss { counter, is_out, says, is_of_policy }
}

const LOSSES: &[Loss] = &[
    of("XfrmOutNoStates", true, true, "drops packets: no state (SA) protects them"),
    of("XfrmOutPolBlock", true, true, "blocks packets to send"),
    of("XfrmInPolBlock", false, true, "blocks received packets"),
    of("XfrmInTmplMismatch", false, true, "drops received packets: they lack the protection that it demands"),
    of("XfrmInNoPols", false, false, "protected packets arrive, but no IPsec policy allows them"),
    of("XfrmInNoStates", false, false, "IPsec packets arrive for which this host has no state (SA)"),
    of("XfrmInStateProtoError", false, false, "IPsec packets fail authentication: the two ends have different keys"),
    of("XfrmInStateSeqError", false, false, "IPsec packets are outside the replay window: repeated, or too late"),
    of("XfrmInStateExpired", false, false, "IPsec packets arrive for an expired state (SA)"),
    of("XfrmInStateInvalid", false, false, "IPsec packets arrive for a state (SA) that is not established"),
    of("XfrmInStateMismatch", false, false, "IPsec packets arrive whose encapsulation does not fit their state (SA)"),
    of("XfrmOutStateExpired", true, false, "packets are dropped: the IPsec state (SA) for them has expired"),
    of("XfrmOutPolError", true, false, "packets are dropped: their IPsec policy or its state (SA) cannot be resolved"),
    of("XfrmOutBundleGenError", true, false, "packets are dropped: IPsec finds no route for the tunnel, or no memory"),
    of("XfrmOutStateProtoError", true, false, "packets are dropped: IPsec cannot encrypt them"),
    of("XfrmOutStateSeqError", true, false, "packets are dropped: the sequence numbers of an IPsec state are used up"),
];

/// A loss without a counter.
const UNKNOWN: Loss = of("", false, false, "packets are dropped: an IPsec policy demands protection, or blocks them");

/// Returns how many packets to send were refused by IPsec with an error: their connections seem to have no route.
pub(super) fn refused(sample: &Sample) -> u64 {
    ["XfrmOutPolBlock", "XfrmOutPolError"].iter().map(|name| sample.grown(Xfrm, name)).sum()
}

/// True if IPsec dropped the packets: without a state it gives them a route that discards them.
pub(super) fn is_by_ipsec(sample: &Sample, one: &DropSeen) -> bool {
    one.reason == "XFRM_POLICY" || one.place == "dst_discard_out" && sample.grown(Xfrm, "XfrmOutNoStates") > 0
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let grown = |loss: &&Loss| sample.grown(Xfrm, loss.counter);
    let Some(worst) = LOSSES.iter().max_by_key(grown) else { return };
    let dropped = sample.around.all_drops().only(|one| is_by_ipsec(sample, one));
    // Some kernels do not count.
    let (worst, lost) = match grown(&worst) {
        0 => (&UNKNOWN, dropped.count),
        lost => (worst, lost),
    };
    if lost < FEW {
        return;
    }
    let severity = if lost >= SOME { Severity::Warning } else { Severity::Hint };
    let policy = if worst.is_of_policy { find_policy(sample, worst, &dropped) } else { None };
    let subject = match policy {
        Some(policy) => format!("the IPsec policy `{}` ", policy.words()),
        None if worst.is_of_policy => "an IPsec policy ".to_owned(),
        None => String::new(),
    };
    let title = format!("{subject}{}{}", worst.says, dropped.example());
    let counters = LOSSES.iter().filter_map(|loss| sample.evidence(Xfrm, loss.counter, None));
    let states = policy.filter(|policy| !policy.blocks).map(|policy| {
        [
            state("established states (SAs) for this policy", policy.states, None),
            state("states that the key manager was asked for", policy.larval, None),
        ]
    });
    let reach = match worst.is_out && wait_for(sample, &dropped) {
        true => Reach::part(lost, lost),
        false => Reach::part(lost, moved_packets(sample)),
    };
    let draft = found
        .add(severity, Confidence::Certain, title)
        .object(policy.map_or(String::new(), IpsecPolicy::words))
        .proof(counters)
        .proof(states.into_iter().flatten())
        .proof(dropped.evidence())
        .lost(lost, "packets dropped")
        .reach(reach, "packets of this network namespace");
    remedies(draft, worst, policy);
}

fn remedies(draft: super::FindingBuilder<'_>, loss: &Loss, policy: Option<&IpsecPolicy>) {
    let show = if loss.says.starts_with("blocks") { "ip xfrm policy" } else { "ip -s xfrm state" };
    let draft = draft.remedy(show, "shows the IPsec policies, or the states (SAs) that exist", "");
    let draft = match loss.counter {
        "XfrmOutPolBlock" | "XfrmInPolBlock" => draft,
        "XfrmInTmplMismatch" => draft.remedy("", "the sender must protect these packets: look at its policies", ""),
        _ => draft.remedy(
            "",
            "the key managers of both ends must agree on a state (SA): look at the log of strongSwan or Libreswan",
            "",
        ),
    };
    let Some(policy) = policy else { return };
    let command = format!("ip xfrm policy delete index {} dir {}", policy.index, policy.direction.name());
    draft.remedy(command, "removes the policy, if it is a leftover", "its packets then travel unprotected");
}

/// Returns the policy that dropped the packets, if only one can be it.
fn find_policy<'s>(sample: &'s Sample, loss: &Loss, dropped: &Dropped<'_>) -> Option<&'s IpsecPolicy> {
    let is_way = |policy: &&IpsecPolicy| (policy.direction == IpsecDirection::Out) == loss.is_out;
    let is_kind = |policy: &&IpsecPolicy| policy.blocks == loss.says.starts_with("blocks");
    let lacks = |policy: &&IpsecPolicy| loss.counter != "XfrmOutNoStates" || policy.states == 0;
    let all = || sample.around.ipsec.iter().filter(is_way).filter(is_kind).filter(lacks);
    let first = dropped.all.iter().find(|one| one.ends.is_some());
    let Some(first) = first else { return Some(all().next()?).filter(|_| all().count() == 1) };
    all().filter(|policy| policy.applies_to(first)).min_by_key(|policy| policy.priority)
}
