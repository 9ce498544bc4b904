//! TCP counters of the MIB in RFC 4022.

use super::{CounterMeaning, c, g};

/// `Tcp` of /proc/net/snmp.
pub(super) const TCP: &[CounterMeaning] = &[
    g("TcpRtoAlgorithm", "Constant: algorithm of the retransmission timeout; 1 means other."),
    g("TcpRtoMin", "Constant: the shortest retransmission timeout, in milliseconds."),
    g("TcpRtoMax", "Constant: the longest retransmission timeout, in milliseconds."),
    g("TcpMaxConn", "Constant: maximum number of connections; -1 for unlimited."),
    c("TcpActiveOpens", "Connections opened by programs of this host (connect)."),
    c("TcpPassiveOpens", "Connections accepted by listeners of this host."),
    c(
        "TcpAttemptFails",
        "Connections that failed before they were established: refused, timed out, or reset in the handshake.",
    ),
    c("TcpEstabResets", "Established connections that ended with a reset."),
    g("TcpCurrEstab", "Currently established connections, including those in CLOSE_WAIT."),
    c("TcpInSegs", "Segments received, including invalid ones."),
    c("TcpOutSegs", "Segments sent, excluding retransmissions."),
    c("TcpRetransSegs", "Segments retransmitted: the segment or its acknowledgement was lost or late."),
    c("TcpInErrs", "Invalid segments received: wrong length, checksum or header."),
    c("TcpOutRsts", "Resets sent: for closed ports, unknown connections, and programs that close with unread data."),
    c("TcpInCsumErrors", "Segments dropped because of a wrong checksum: damaged on the path."),
];
