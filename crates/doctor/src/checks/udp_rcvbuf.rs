//! UDP sockets with a full receive buffer.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::losers::{Loser, losers};
use super::reach::Reach;
use super::remedy::{RemedyParts, larger, larger_memory};
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "udp-rcvbuf",
    needs: &[Probe::Sockets],
    area: "udp",
    about: "Datagrams are dropped because the receive buffer of their socket is full: its program reads too slowly.",
    rule: "UdpRcvbufErrors, UdpMemErrors or their IPv6 counterparts grew; the finding names the socket whose own drop \
           counter grew. Less than 1 % of the datagrams is a hint, unless the buffer is still full.",
    sources: "/proc/net/snmp, snmp6: RcvbufErrors, MemErrors; drops of each socket via sock_diag",
    refuted_by: "`netwren counters 'name ~ RcvbufErrors' --watch` without growth.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let of_memory = sample.grown(Snmp, "UdpMemErrors") + sample.grown(Snmp6, "Udp6MemErrors");
    let lost = sample.grown(Snmp, "UdpRcvbufErrors") + sample.grown(Snmp6, "Udp6RcvbufErrors") + of_memory;
    if lost == 0 {
        return;
    }
    let losers = losers(&sample.before.udp, &sample.after.udp);
    // A socket that is full now may have lost everything that was sent to it, even if others lost nothing.
    let is_full = |one: &Loser<'_>| one.socket.limit.is_some_and(|limit| one.socket.queue >= limit / 2);
    let got = sample.grown(Snmp, "UdpInDatagrams") + sample.grown(Snmp6, "Udp6InDatagrams");
    let is_now = of_memory > 0 || losers.first().is_some_and(is_full);
    let reach = Reach::part(lost, if is_now { lost } else { lost.saturating_add(got) });
    let title = match losers.first() {
        Some(one) => format!("{} reads too slowly: its receive buffer is full", one.socket.words()),
        None if of_memory > 0 => "UDP has reached its memory limit (net.ipv4.udp_mem)".to_owned(),
        None => "a UDP receive buffer is full: its program reads too slowly".to_owned(),
    };
    // With larger buffers, the memory of all is used up sooner.
    let remedy = match of_memory {
        0 => larger_buffers(sample),
        _ => larger_memory(sample, "ipv4/udp_mem", "UDP.mem"),
    };
    let of_sockets = losers.iter().take(8).map(Loser::evidence);
    let of_all = [
        sample.evidence(Snmp, "UdpRcvbufErrors", None),
        sample.evidence(Snmp6, "Udp6RcvbufErrors", None),
        sample.evidence(Snmp, "UdpMemErrors", None),
        sample.evidence(Snmp6, "Udp6MemErrors", None),
    ];
    found
        .add(Severity::Critical, Confidence::Certain, title)
        .socket(losers.first().map(|one| one.socket))
        .proof(of_all.into_iter().flatten())
        .proof(of_sockets)
        .lost(lost, "datagrams dropped")
        .reach(reach, if is_now { "" } else { "datagrams" })
        .remedy("", "make the program read faster, or request a larger buffer (SO_RCVBUF)", "")
        .remedies([remedy]);
}

fn larger_buffers(sample: &Sample) -> RemedyParts<String> {
    let default = larger(sample.setting("core/rmem_default", 0), 1_048_576);
    let most = sample.setting("core/rmem_max", 0).unwrap_or(0).max(default).max(4_194_304);
    let effect = "gives larger buffers to sockets opened later; rmem_max limits what programs may request";
    let command = format!("sysctl -w net.core.rmem_default={default} net.core.rmem_max={most}");
    (command, effect, "each socket may take that much memory")
}
