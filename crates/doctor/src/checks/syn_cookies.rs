//! Full queues of half-open connections.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "syn-cookies",
    area: "tcp",
    about: "The queue of half-open connections of a listener is full: a flood of SYNs, or a backlog that is too short.",
    rule: "SyncookiesSent, TCPReqQFullDoCookies or TCPReqQFullDrop grew; without cookies ListenDrops by more than \
           ListenOverflows.",
    sources: "/proc/net/netstat; net.ipv4.tcp_syncookies",
    refuted_by: "SyncookiesRecv that grows as fast: then the connections are wanted, and the backlog is too short.",
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
    let what = if is_flood { "a flood of SYNs" } else { "more new connections than the backlog takes" };
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
            "shows which port is meant, and who sends",
            "",
        );
    if dropped > 0 {
        draft.lost(dropped, "SYNs dropped").remedy(
            "sysctl -w net.ipv4.tcp_syncookies=1",
            "answers with cookies in place of dropping",
            "such connections have no window scaling where time stamps are off",
        );
    } else {
        draft.cost(format!("{cookies} connections answered with a cookie")).remedy(
            "sysctl -w net.ipv4.tcp_max_syn_backlog=4096",
            "a longer queue; the program's backlog and net.core.somaxconn bound it, too",
            "",
        );
    }
}
