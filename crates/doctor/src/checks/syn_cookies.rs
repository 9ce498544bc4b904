//! Full queues of half-open connections.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};

use super::remedy::larger;
use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "syn-cookies",
    needs: &[],
    area: "tcp",
    about: "A listener's queue of half-open connections is full: a SYN flood, or a backlog that is too short.",
    rule: "SyncookiesSent, TCPReqQFullDoCookies or TCPReqQFullDrop grew; without cookies ListenDrops by more than \
           ListenOverflows.",
    sources: "/proc/net/netstat; net.ipv4.tcp_syncookies",
    refuted_by: "SyncookiesRecv that grows as fast: then the connections are legitimate, and the backlog is too short.",
    run,
};

/// Returns the SYNs dropped near the end of the queue while SYN cookies are off: the kernel counts them as drops of
/// listeners that are not overflows.
fn without_cookies(sample: &Sample) -> u64 {
    let listen = |name| sample.grown(Netstat, name);
    match sample.setting("ipv4/tcp_syncookies", 0) {
        Some(0) => listen("TcpExtListenDrops").saturating_sub(listen("TcpExtListenOverflows")),
        _ => 0,
    }
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.grown(Netstat, "TcpExtTCPReqQFullDrop").saturating_add(without_cookies(sample));
    let cookies =
        sample.grown(Netstat, "TcpExtTCPReqQFullDoCookies").max(sample.grown(Netstat, "TcpExtSyncookiesSent"));
    if dropped == 0 && cookies == 0 {
        return;
    }
    let came_back = sample.grown(Netstat, "TcpExtSyncookiesRecv");
    // The sources of a flood do not complete the handshake.
    let is_flood = came_back.saturating_mul(10) < cookies;
    let what = if is_flood { "a SYN flood" } else { "more new connections than the backlog holds" };
    let names = [
        "TcpExtSyncookiesSent",
        "TcpExtSyncookiesRecv",
        "TcpExtSyncookiesFailed",
        "TcpExtTCPReqQFullDoCookies",
        "TcpExtTCPReqQFullDrop",
        "TcpExtListenDrops",
    ];
    let (severity, confidence) = match dropped {
        0 => (Severity::Warning, Confidence::Likely),
        _ => (Severity::Critical, Confidence::Certain),
    };
    let draft = found
        .add(severity, confidence, format!("the queue of half-open connections is full: {what}"))
        .proof(names.into_iter().filter_map(|name| sample.evidence(Netstat, name, None)))
        .remedy(
            "netwren sockets 'state = syn_recv' --by local_port,peer_addr --limit 10",
            "shows the port and the senders",
            "",
        );
    if dropped > 0 {
        draft.lost(dropped, "SYNs dropped").remedy(
            "sysctl -w net.ipv4.tcp_syncookies=1",
            "answers with SYN cookies instead of dropping SYNs",
            "such connections have no window scaling if timestamps are off",
        );
        return;
    }
    let draft = draft.cost(format!("{cookies} connections answered with a SYN cookie"));
    if is_flood {
        draft.remedy("", "SYN cookies answer in the meantime; ask the network provider to filter the senders", "");
    } else {
        let backlog = larger(sample.setting("ipv4/tcp_max_syn_backlog", 0), 4096);
        draft.remedy(
            format!("sysctl -w net.ipv4.tcp_max_syn_backlog={backlog}"),
            "allows a longer queue; also limited by the program's backlog and net.core.somaxconn",
            "",
        );
    }
}
