//! Connections that are refused.

use record::rows::CounterSource::{Netstat, Snmp, Snmp6};
use record::rows::{Confidence, NetfilterHook, Severity};

use super::reach::Reach;
use super::syn_retrans::is_wanted;
use super::{Check, Findings, Probe, Sample};
use crate::seen::DropSeen;

/// Fewest refusals for a finding; fewer come from programs that merely try.
const SOME: u64 = 5;
/// Fewest messages if no datagram is answered: a host sends one per second.
const FEW: u64 = 2;

pub(super) const CHECK: Check = Check {
    id: "refused",
    needs: &[Probe::Drops, Probe::Links, Probe::Sockets],
    area: "services",
    about: "Connections or datagrams of this host are refused at once: by a closed port, or a reject rule of another \
            host.",
    rule: "TcpAttemptFails (at most TcpActiveOpens, and at least a fifth of it), or ICMP \"unreachable\" messages, \
           grew by at least 5; not counting half-open connections of others that were reset, this host's own messages, \
           and connections that these ended. One message is enough if SYNs are retransmitted or attempts fail, and two \
           if no datagram is answered. It is a warning if more than half of the attempts fail, or if several \
           connections wait for one peer, or for datagrams if messages answer 1 % of them; otherwise a hint: monitors, \
           load balancers and programs that try IPv6 first are refused now and then.",
    sources: "/proc/net/snmp: AttemptFails, ActiveOpens, InDestUnreachs, OutDestUnreachs, InTimeExcds; netstat: \
              EmbryonicRsts, TCPSynRetrans",
    refuted_by: "programs that look for a free server on purpose.",
    run,
};

/// Returns how many TCP packets of this host its own rules dropped or rejected.
fn rejected_here(sample: &Sample) -> u64 {
    let is_own = |one: &&DropSeen| match one.hook {
        Some(NetfilterHook::Output | NetfilterHook::Postrouting) => true,
        Some(NetfilterHook::Input) => sample.around.iface(one.ifindex) == "lo",
        _ => false,
    };
    let dropped = sample.around.dropped("rule-drop");
    dropped.all.iter().copied().filter(is_own).filter(|one| one.proto == "tcp").map(|one| one.count).sum()
}

/// Returns the messages that this host's kernel sent to its own sockets, because a neighbour did not answer: each ends
/// a connection that is not established yet, and nothing refused it.
fn own_messages(sample: &Sample) -> u64 {
    let of = |source, names: [&str; 2]| names.into_iter().map(|name| sample.grown(source, name)).min().unwrap_or(0);
    let v4 = of(Snmp, ["IcmpInDestUnreachs", "IcmpOutDestUnreachs"]);
    v4.saturating_add(of(Snmp6, ["Icmp6InDestUnreachs", "Icmp6OutDestUnreachs"]))
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let grown = |name: &str| sample.grown(Snmp, name);
    // Half-open connections of other hosts that are reset count in both: health checks and scans.
    let failed = grown("TcpAttemptFails").saturating_sub(sample.grown(Netstat, "TcpExtEmbryonicRsts"));
    let failed = failed.saturating_sub(own_messages(sample));
    // This host's own messages about neighbours that do not answer arrive at its own sockets.
    let unreachable = grown("IcmpInDestUnreachs").saturating_sub(grown("IcmpOutDestUnreachs"));
    let begun = grown("TcpActiveOpens");
    let own = if failed.saturating_mul(5) >= begun { failed.min(begun) } else { 0 };
    // A rule of this host that rejects its own packets has a finding of its own.
    let own = own.saturating_sub(rejected_here(sample));
    // The refusing host's kernel limits these answers to one per second.
    let is_told = unreachable > 0 && (own > 0 || sample.grown(Netstat, "TcpExtTCPSynRetrans") > 0);
    // Datagrams without any answer; a traceroute's datagrams expire first.
    let is_mute = grown("UdpOutDatagrams") >= SOME && grown("UdpInDatagrams") + grown("IcmpInTimeExcds") == 0;
    let is_told = is_told || unreachable >= FEW && is_mute;
    let lost = own.max(unreachable);
    if lost < SOME && !is_told {
        return;
    }
    let title = match unreachable > 0 && unreachable >= own / 8 {
        true => "packets of this host are refused: a router, host or rule answers \"unreachable\"",
        false => "connections of this host are refused: no program listens there, or a rule rejects them",
    };
    let names = ["TcpAttemptFails", "TcpActiveOpens", "IcmpInDestUnreachs"];
    let reach = match own.saturating_mul(2) > begun || is_told && is_wanted(sample) {
        true => Reach::part(lost, lost),
        // A running traceroute is refused by its destination.
        false if own > 0 || grown("IcmpInTimeExcds") > 0 => Reach::Nobody,
        false => Reach::part(unreachable, grown("UdpOutDatagrams")),
    };
    found
        .add(Severity::Warning, Confidence::Likely, title.to_owned())
        .proof(names.into_iter().filter_map(|name| sample.evidence(Snmp, name, None)))
        .lost(lost, "connections or datagrams refused")
        .reach(reach, "")
        .remedy(
            "netwren capture 'icmp[0] = 3 or tcp[13] & 4 != 0' --limit 20",
            "shows the hosts that refuse, and the refused packets",
            "",
        );
}
