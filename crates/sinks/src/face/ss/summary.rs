//! `ss -s`: how many sockets there are.

use record::text::put_i64;

/// Numbers of /proc/net/sockstat and sockstat6; what a kernel does not tell is 0, as in ss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SockStat {
    /// All sockets of the namespace.
    pub sockets: i64,
    /// TCP sockets that were allocated, of the whole host.
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

/// TCP sockets of this namespace, counted row by row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnTcp {
    /// All of them, TIME-WAIT included.
    pub total: u64,
    /// Those that are closed: bound, but neither listening nor connected.
    pub closed: u64,
}

impl SockStat {
    /// Takes in one line of either file; a line that says nothing of interest is skipped.
    pub fn line(&mut self, line: &[u8]) {
        let mut words = line.split(|&b| b == b' ').filter(|w| !w.is_empty());
        let name = words.next().unwrap_or_default();
        // NAME: word number word number …
        let mut numbers = [0i64; 5];
        for slot in &mut numbers {
            let _word = words.next();
            *slot = words.next().and_then(|n| std::str::from_utf8(n).ok()).and_then(|n| n.trim().parse().ok()).unwrap_or(0);
        }
        let [first, second, third, fourth, _] = numbers;
        match name {
            b"sockets:" => self.sockets = first,
            b"TCP:" => {
                self.tcp.0 = first;
                self.tcp_orphans = second;
                self.tcp_time_wait = third;
                self.tcp_alloc = fourth;
            }
            b"TCP6:" => self.tcp.1 = first,
            b"UDP:" => self.udp.0 = first,
            b"UDP6:" => self.udp.1 = first,
            b"RAW:" => self.raw.0 = first,
            b"RAW6:" => self.raw.1 = first,
            b"FRAG:" => self.frag.0 = first,
            b"FRAG6:" => self.frag.1 = first,
            _ => {}
        }
    }
}

/// Appends the summary. With `own` total and closed are those of this namespace; without, what ss computes from
/// numbers that are partly the host's and partly the namespace's. `established` is Tcp CurrEstab.
pub fn put_summary(out: &mut Vec<u8>, stat: &SockStat, established: i64, own: Option<OwnTcp>) {
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
        (" (estab ", established),
        (", closed ", closed),
        (", orphaned ", stat.tcp_orphans),
        (", timewait ", stat.tcp_time_wait),
    ] {
        out.extend_from_slice(words.as_bytes());
        put_i64(out, n);
    }
    out.extend_from_slice(b")\n\nTransport Total     IP        IPv6\n");
    let inet = (stat.raw.0 + stat.udp.0 + stat.tcp.0, stat.raw.1 + stat.udp.1 + stat.tcp.1);
    for (name, (v4, v6)) in [("RAW", stat.raw), ("UDP", stat.udp), ("TCP", stat.tcp), ("INET", inet), ("FRAG", stat.frag)] {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\t  ");
        put_cell(out, v4 + v6, b" ");
        put_cell(out, v4, b" ");
        put_cell(out, v6, b"\n");
    }
    out.push(b'\n');
}

/// At least nine wide, then `end`.
fn put_cell(out: &mut Vec<u8>, n: i64, end: &[u8]) {
    let start = out.len();
    put_i64(out, n);
    out.resize(out.len().max(start + 9), b' ');
    out.extend_from_slice(end);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FILES: &str = "sockets: used 42\n\
        TCP: inuse 24 orphan 0 tw 2 alloc 10130 mem 40\n\
        UDP: inuse 2 mem 0\nUDPLITE: inuse 0\nRAW: inuse 1\nFRAG: inuse 0 memory 0\n\
        TCP6: inuse 3\nUDP6: inuse 1\nUDPLITE6: inuse 0\nRAW6: inuse 0\nFRAG6: inuse 0 memory 0\n";

    fn summary(own: Option<OwnTcp>) -> String {
        let mut stat = SockStat::default();
        FILES.lines().for_each(|line| stat.line(line.as_bytes()));
        let mut out = Vec::new();
        put_summary(&mut out, &stat, 20, own);
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
