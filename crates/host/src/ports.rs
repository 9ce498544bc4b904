//! Ports that the kernel assigns to sockets that do not request one.
use record::{Key, Lookup, Value};
use sys::{Host, NetNs};

use crate::HostError;
use crate::inside::read_inside;

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// The local port range of a namespace, without the ports reserved in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPorts {
    first: u16,
    last: u16,
    /// First and last port of each reserved range, in the kernel's order (ascending).
    reserved: Vec<(u16, u16)>,
}

impl Default for LocalPorts {
    /// The kernel's default, 32768 to 60999, without reserved ports.
    fn default() -> LocalPorts {
        LocalPorts { first: 32_768, last: 60_999, reserved: Vec::new() }
    }
}

impl LocalPorts {
    /// Reads the sysctls of the namespace with inode `netns`: of `inside`, or of the calling thread's.
    ///
    /// Needs no privilege, except to enter another namespace. If the reserved ports are unreadable, none are assumed.
    pub fn read(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<LocalPorts, HostError> {
        let mut text = Vec::new();
        read_inside(host, RANGE, netns, inside, &mut text)?;
        let (first, last) = parse_range(&text).ok_or(HostError::Garbled { what: "local port range", at: 0 })?;
        let reserved = match read_inside(host, RESERVED, netns, inside, &mut text) {
            Ok(()) => parse_reserved(&text),
            Err(_) => Vec::new(),
        };
        Ok(LocalPorts { first, last, reserved })
    }

    /// First and last port of the range.
    pub fn range(&self) -> (u16, u16) {
        (self.first, self.last)
    }

    /// True if the kernel may have chosen this port.
    pub fn is_local(&self, port: u16) -> bool {
        let inside = (self.first..=self.last).contains(&port);
        inside && !self.reserved.iter().any(|&(first, last)| (first..=last).contains(&port))
    }
}

/// The ranges of several namespaces.
#[derive(Debug, Default)]
pub struct PortRanges {
    ranges: Vec<(u64, LocalPorts)>,
}

impl PortRanges {
    /// Adds the range of the namespace with inode `netns`.
    pub fn add(&mut self, netns: u64, ports: LocalPorts) {
        self.ranges.push((netns, ports));
        self.ranges.sort_by_key(|(netns, _)| *netns);
    }
}

impl Lookup for PortRanges {
    /// For (netns, port) whether the port is in the range; null for an unknown namespace. For an id whether it is 1.
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Pair(netns, port) => {
                let found = self.ranges.binary_search_by_key(&netns, |(netns, _)| *netns);
                let range = found.ok().and_then(|at| self.ranges.get(at)).map(|(_, ports)| ports.range());
                range.map_or(Value::Null, |(low, high)| Value::Bool((u32::from(low)..=high.into()).contains(&port)))
            }
            Key::Id(word) => Value::Bool(word == 1),
            _ => Value::Null,
        }
    }
}

// Parses `32768\t60999\n`.
fn parse_range(text: &[u8]) -> Option<(u16, u16)> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

// Parses `8080,9000-9010\n`; malformed parts are left out.
fn parse_reserved(text: &[u8]) -> Vec<(u16, u16)> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let run = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    text.trim().split(',').filter_map(run).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;
    use testkit::netns::Lab;

    #[test]
    fn texts_of_the_kernel() {
        assert_eq!(parse_range(b"32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(parse_range(b"0 70000"), None);
        assert_eq!(parse_range(b"1"), None);
        assert_eq!(parse_reserved(b"\n"), []);
        assert_eq!(parse_reserved(b"8080,9000-9010,x,1-70000\n"), [(8080, 8080), (9000, 9010)]);
        let ports = LocalPorts { reserved: vec![(40_000, 40_010)], ..LocalPorts::default() };
        for (port, local) in [(32_767, false), (32_768, true), (60_999, true), (61_000, false), (40_005, false)] {
            assert_eq!(ports.is_local(port), local, "{port}");
        }
    }

    #[test]
    fn root_each_namespace_has_its_own() {
        testkit::require_root!();
        let lab = Lab::new("ports");
        lab.output("sh", &["-c", "echo 2000 2999 > /proc/sys/net/ipv4/ip_local_port_range"]);
        lab.output("sh", &["-c", "echo 2100-2199,2500 > /proc/sys/net/ipv4/ip_local_reserved_ports"]);
        let netns = NetNs::open_path(&lab.path()).unwrap();
        let ports = LocalPorts::read(&Host::live(), netns.inode(), Some(&netns)).unwrap();
        assert_eq!(ports, LocalPorts { first: 2000, last: 2999, reserved: vec![(2100, 2199), (2500, 2500)] });
        let ours = LocalPorts::read(&Host::live(), 0, None).unwrap();
        assert_ne!(ours, ports);
        let within = lab.run_inside(|| LocalPorts::read(&Host::live(), 0, None).unwrap());
        assert_eq!(within, ports);
    }

    proptest! {
        #[test]
        fn any_text(text in "[0-9, \\n-]{0,40}") {
            let _ = parse_range(text.as_bytes());
            let runs = parse_reserved(text.as_bytes());
            prop_assert!(runs.len() <= text.split(',').count());
        }
    }
}
