//! `ss -s`: the numbers of sockets.

use crate::pieces::{Left, put};

/// Numbers of /proc/net/sockstat and sockstat6; like in ss, a number that the kernel does not report is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SockStat {
    /// Sockets of the namespace.
    pub sockets: i64,
    /// TCP sockets in ESTABLISHED or CLOSE-WAIT (Tcp CurrEstab of /proc/net/snmp).
    pub established: i64,
    /// Allocated TCP sockets of the whole host.
    pub tcp_alloc: i64,
    /// TCP sockets without a file, of the whole host.
    pub tcp_orphans: i64,
    /// TIME-WAIT sockets of the namespace.
    pub tcp_time_wait: i64,
    /// TCP sockets in the tables of the namespace: IPv4, IPv6.
    pub tcp: (i64, i64),
    /// UDP sockets: IPv4, IPv6.
    pub udp: (i64, i64),
    /// Raw sockets: IPv4, IPv6.
    pub raw: (i64, i64),
    /// Queues of fragments: IPv4, IPv6.
    pub frag: (i64, i64),
}

/// TCP sockets of this namespace only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnTcp {
    /// Number of sockets, including TIME-WAIT.
    pub total: u64,
    /// Number of closed sockets: bound, but neither listening nor connected.
    pub closed: u64,
}

/// Appends the summary. With `own`, total and closed are the namespace's numbers; otherwise they are computed like in
/// ss, from numbers that belong partly to the host and partly to the namespace.
pub fn put_summary(out: &mut Vec<u8>, stat: &SockStat, own: Option<OwnTcp>) {
    let (total, closed) = match own {
        Some(own) => (own.total as i64, own.closed as i64),
        None => {
            let hashed = stat.tcp.0 + stat.tcp.1 - stat.tcp_time_wait;
            (stat.tcp_alloc + stat.tcp_time_wait, stat.tcp_alloc - hashed)
        }
    };
    for (words, n) in [
        ("Total: ", stat.sockets),
        ("\nTCP:   ", total),
        (" (estab ", stat.established),
        (", closed ", closed),
        (", orphaned ", stat.tcp_orphans),
        (", timewait ", stat.tcp_time_wait),
    ] {
        put!(out, words, n);
    }
    put!(out, ")\n\nTransport Total     IP        IPv6\n");
    let inet = (stat.raw.0 + stat.udp.0 + stat.tcp.0, stat.raw.1 + stat.udp.1 + stat.tcp.1);
    for (name, (v4, v6)) in
        [("RAW", stat.raw), ("UDP", stat.udp), ("TCP", stat.tcp), ("INET", inet), ("FRAG", stat.frag)]
    {
        put!(out, name, "\t  ", Left(v4 + v6, 9), " ", Left(v4, 9), " ", Left(v6, 9), "\n");
    }
    put!(out, "\n");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const STAT: SockStat = SockStat {
        sockets: 42,
        established: 20,
        tcp_alloc: 10130,
        tcp_orphans: 0,
        tcp_time_wait: 2,
        tcp: (24, 3),
        udp: (2, 1),
        raw: (1, 0),
        frag: (0, 0),
    };

    fn summary(own: Option<OwnTcp>) -> String {
        let mut out = Vec::new();
        put_summary(&mut out, &STAT, own);
        String::from_utf8(out).unwrap()
    }

    const REST: &str = "\nTransport Total     IP        IPv6\n\
        RAW\t  1         1         0        \n\
        UDP\t  3         2         1        \n\
        TCP\t  27        24        3        \n\
        INET\t  31        27        4        \n\
        FRAG\t  0         0         0        \n\n";

    #[test]
    fn host_and_namespace_mixed_as_ss_does() {
        let head = "Total: 42\nTCP:   10132 (estab 20, closed 10105, orphaned 0, timewait 2)\n";
        assert_eq!(summary(None), format!("{head}{REST}"));
    }

    #[test]
    fn this_namespace_only() {
        let head = "Total: 42\nTCP:   29 (estab 20, closed 0, orphaned 0, timewait 2)\n";
        assert_eq!(summary(Some(OwnTcp { total: 29, closed: 0 })), format!("{head}{REST}"));
    }
}
