//! Counters of a network namespace: /proc/net/{sockstat,sockstat6,snmp,netstat,snmp6}.
use sys::{Host, NetNs};

use crate::HostError;
use crate::inside::read_inside;

/// Files in which each line is a group: `TCP: inuse 5 orphan 0`.
const PAIRS: [&str; 2] = ["/proc/thread-self/net/sockstat", "/proc/thread-self/net/sockstat6"];

/// Files in which a line with names is followed by a line with values: `Tcp: RtoAlgorithm …`, `Tcp: 1 …`.
const TWO_LINES: [&str; 2] = ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"];

/// The file with one counter a line: `Ip6InReceives 115`.
const SINGLE: &str = "/proc/thread-self/net/snmp6";

/// Counters kept at most; the kernel has some 350 in all.
const COUNTERS_MAX: usize = 10_000;

/// Counters by group and name, in the kernel's words and order.
#[derive(Debug, Default)]
pub struct Counters {
    counters: Vec<Counter>,
}

/// One counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// `Tcp`, `TcpExt`; `TCP` and the like for sockstat; empty for those of snmp6.
    pub group: Box<str>,
    /// `CurrEstab`, `inuse`, `Ip6InReceives`.
    pub name: Box<str>,
    /// Its value. Some are no counts and may be negative (`Tcp MaxConn`).
    pub value: i128,
}

impl Counters {
    /// How many sockets there are: sockstat and sockstat6 of the namespace whose inode is `netns` (`inside`, or the
    /// calling thread's). Two small files, 30 µs. Without IPv6 there is only the first.
    pub fn read_sockets(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<Counters, HostError> {
        let [first, second] = PAIRS;
        let mut counters = Counters::default();
        let mut text = Vec::new();
        read_inside(host, first, netns, inside, &mut text)?;
        counters.add_pairs(&text);
        if read_inside(host, second, netns, inside, &mut text).is_ok() {
            counters.add_pairs(&text);
        }
        Ok(counters)
    }

    /// Protocol counters: snmp, netstat and snmp6 of the same namespace. What is missing (no IPv6) is left out.
    pub fn read_protocols(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<Counters, HostError> {
        let [first, second] = TWO_LINES;
        let mut counters = Counters::default();
        let mut text = Vec::new();
        read_inside(host, first, netns, inside, &mut text)?;
        counters.add_two_lines(&text);
        if read_inside(host, second, netns, inside, &mut text).is_ok() {
            counters.add_two_lines(&text);
        }
        if read_inside(host, SINGLE, netns, inside, &mut text).is_ok() {
            counters.add_single(&text);
        }
        Ok(counters)
    }

    /// The value of a counter; `None` if this kernel has none of that name. A linear search.
    pub fn get(&self, group: &str, name: &str) -> Option<i128> {
        let found = self.counters.iter().find(|counter| &*counter.group == group && &*counter.name == name);
        found.map(|counter| counter.value)
    }

    /// The same as a number of things: `None` also if it is negative.
    pub fn count(&self, group: &str, name: &str) -> Option<u64> {
        self.get(group, name).and_then(|value| value.try_into().ok())
    }

    /// All of them, in the kernel's order.
    pub fn iter(&self) -> impl Iterator<Item = &Counter> {
        self.counters.iter()
    }

    fn add(&mut self, group: &str, name: &str, value: &str) {
        let Ok(value) = value.parse() else { return };
        if self.counters.len() < COUNTERS_MAX {
            self.counters.push(Counter { group: group.into(), name: name.into(), value });
        }
    }

    fn add_pairs(&mut self, text: &[u8]) {
        for line in lines(text) {
            let Some((group, rest)) = line.split_once(':') else { continue };
            let mut words = rest.split_ascii_whitespace();
            while let (Some(name), Some(value)) = (words.next(), words.next()) {
                self.add(group, name, value);
            }
        }
    }

    fn add_two_lines(&mut self, text: &[u8]) {
        let mut lines = lines(text);
        while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
            let (Some((group, names)), Some((same, values))) = (names.split_once(':'), values.split_once(':')) else {
                continue;
            };
            if group != same {
                continue;
            }
            for (name, value) in names.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
                self.add(group, name, value);
            }
        }
    }

    fn add_single(&mut self, text: &[u8]) {
        for line in lines(text) {
            let mut words = line.split_ascii_whitespace();
            if let (Some(name), Some(value)) = (words.next(), words.next()) {
                self.add("", name, value);
            }
        }
    }
}

// Lines that are text; the kernel writes no others.
fn lines(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|&b| b == b'\n').filter_map(|line| std::str::from_utf8(line).ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;
    use testkit::netns::Lab;

    #[test]
    fn texts_of_the_kernel() {
        let mut counters = Counters::default();
        counters.add_pairs(b"sockets: used 20\nTCP: inuse 1 orphan 0 tw 54 alloc 7 mem 3\nFRAG: inuse 0 memory\nbad\n");
        assert_eq!(counters.count("sockets", "used"), Some(20));
        assert_eq!(counters.count("TCP", "tw"), Some(54));
        assert_eq!(counters.get("FRAG", "memory"), None);
        counters
            .add_two_lines(b"Tcp: RtoAlgorithm MaxConn\nTcp: 1 -1\nIp: A\nUdp: 1\nUdp: X\nUdp: 18446744073709551615\n");
        assert_eq!(counters.get("Tcp", "MaxConn"), Some(-1));
        assert_eq!(counters.count("Tcp", "MaxConn"), None);
        assert_eq!(counters.get("Ip", "A"), None);
        assert_eq!(counters.count("Udp", "X"), Some(u64::MAX));
        counters.add_single(b"Ip6InReceives                   \t115\nIp6Odd x\n");
        assert_eq!(counters.count("", "Ip6InReceives"), Some(115));
        assert_eq!(counters.iter().filter(|counter| counter.group.is_empty()).count(), 1);
    }

    #[test]
    fn root_sockets_of_another_namespace() {
        testkit::require_root!();
        let lab = Lab::new("counters");
        lab.listen_tcp(7);
        let netns = NetNs::open_path(&lab.path()).unwrap();
        let tmp = tempfile::tempdir().unwrap();
        let tape = tmp.path().join("tape");
        let host = Host::live().recording(&tape).unwrap();
        let sockets = Counters::read_sockets(&host, netns.inode(), Some(&netns)).unwrap();
        let protocols = Counters::read_protocols(&host, netns.inode(), Some(&netns)).unwrap();
        host.finish().unwrap();
        let inuse = sockets.count("TCP", "inuse").unwrap() + sockets.count("TCP6", "inuse").unwrap_or(0);
        assert_eq!(inuse, 7);
        assert_eq!(protocols.count("Tcp", "CurrEstab"), Some(0));
        assert!(protocols.count("TcpExt", "SyncookiesSent").is_some());
        let replay = Host::replaying(&tape).unwrap();
        let again = Counters::read_protocols(&replay, netns.inode(), None).unwrap();
        assert_eq!(again.counters, protocols.counters);
    }

    proptest! {
        #[test]
        fn any_text(text in "([A-Z]{0,2}:?( [a-z0-9-]{0,3}){0,4}\n){0,6}") {
            let mut counters = Counters::default();
            counters.add_pairs(text.as_bytes());
            counters.add_two_lines(text.as_bytes());
            counters.add_single(text.as_bytes());
            prop_assert!(counters.iter().all(|counter| text.contains(&*counter.name)));
        }
    }
}
