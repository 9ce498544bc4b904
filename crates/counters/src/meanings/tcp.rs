//! TCP counters of the MIB in RFC 4022.

use super::{Meaning, c, g};

/// `Tcp` of /proc/net/snmp.
pub(super) const TCP: &[Meaning] = &[
    g("TcpRtoAlgorithm", "Constant: how the retransmission timeout is reckoned; 1 stands for other."),
    g("TcpRtoMin", "Constant: the shortest retransmission timeout, in milliseconds."),
    g("TcpRtoMax", "Constant: the longest retransmission timeout, in milliseconds."),
    g("TcpMaxConn", "Constant: the most connections there may be; -1 as there is no limit."),
    c("TcpActiveOpens", "Connections that programs of this host began (connect)."),
    c("TcpPassiveOpens", "Connections that listeners of this host took in."),
    c(
        "TcpAttemptFails",
        "Connections that failed before they were established: refused, timed out, or reset in the handshake.",
    ),
    c("TcpEstabResets", "Established connections that ended by a reset."),
    g("TcpCurrEstab", "Connections that are established now, those that wait for the local close included."),
    c("TcpInSegs", "Segments received, wrong ones included."),
    c("TcpOutSegs", "Segments sent, without those that were sent again."),
    c("TcpRetransSegs", "Segments sent again: the first copy, or its acknowledgement, was lost or late."),
    c("TcpInErrs", "Segments received that are wrong: length, checksum or header."),
    c("TcpOutRsts", "Resets sent: closed ports, connections that are gone, programs that close with unread data."),
    c("TcpInCsumErrors", "Segments dropped because their checksum is wrong: damaged on the way."),
];
