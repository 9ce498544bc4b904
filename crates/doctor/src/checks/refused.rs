//! Connections that are refused.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

/// Fewest refusals for a finding; fewer come from programs that merely try.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "refused",
    needs: &[],
    area: "services",
    about: "Connections or datagrams of this host are refused at once: by a closed port, or a reject rule.",
    rule: "TcpAttemptFails (at most TcpActiveOpens, and at least a fifth of it), or ICMP \"unreachable\" messages \
           (IcmpInDestUnreachs), grew by at least 5; one such message is enough if SYNs are retransmitted or attempts \
           fail.",
    sources: "/proc/net/snmp: AttemptFails, ActiveOpens, InDestUnreachs; netstat: TCPSynRetrans",
    refuted_by: "programs that look for a free server on purpose.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let failed = sample.grown(Snmp, "TcpAttemptFails");
    let unreachable = sample.grown(Snmp, "IcmpInDestUnreachs");
    // Half-open connections of other hosts that end also count: at most those begun here can be our own.
    let begun = sample.grown(Snmp, "TcpActiveOpens");
    let own = if failed.saturating_mul(5) >= begun { failed.min(begun) } else { 0 };
    // The refusing host's kernel limits these answers to one per second.
    let is_told = unreachable > 0 && (own > 0 || sample.grown(Netstat, "TcpExtTCPSynRetrans") > 0);
    let lost = own.max(unreachable);
    if lost < SOME && !is_told {
        return;
    }
    let title = match unreachable > 0 && unreachable >= own / 8 {
        true => "packets of this host are refused: a router, host or rule answers \"unreachable\"",
        false => "connections of this host are refused: no program listens there, or a rule rejects them",
    };
    let names = ["TcpAttemptFails", "TcpActiveOpens", "IcmpInDestUnreachs"];
    found
        .add(Severity::Warning, Confidence::Likely, title.to_owned())
        .proof(names.into_iter().filter_map(|name| sample.evidence(Snmp, name, None)))
        .lost(lost, "connections or datagrams refused")
        .remedy(
            "netwren capture 'icmp[0] = 3 or tcp[13] & 4 != 0' --limit 20",
            "shows the hosts that refuse, and the refused packets",
            "",
        );
}
