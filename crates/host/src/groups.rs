//! Multicast memberships of interfaces, from /proc/net/igmp and igmp6.
//!
//! rtnetlink's messages about groups (IPv6, and IPv4 since 6.15) do not contain the number of members.
use record::Addr;
use record::rows::Membership;
use sys::{Host, NetNs, SysError};

use crate::inside::read_inside;
use crate::words::{hex_u32, hex16, words};

const IGMP: &str = "/proc/thread-self/net/igmp";
const IGMP6: &str = "/proc/thread-self/net/igmp6";

/// The memberships of a namespace, in the order of the kernel's files.
#[derive(Debug, Default)]
pub struct Groups {
    four: Vec<u8>,
    six: Vec<u8>,
}

impl Groups {
    /// Reads the IPv4 memberships of the namespace with inode `netns`: of `inside`, or of the calling thread's.
    pub fn read4(&mut self, host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<(), SysError> {
        read_inside(host, IGMP, netns, inside, &mut self.four)
    }

    /// Reads the IPv6 memberships in the same way.
    pub fn read6(&mut self, host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<(), SysError> {
        read_inside(host, IGMP6, netns, inside, &mut self.six)
    }

    /// The memberships, IPv4 first. Malformed lines are left out.
    pub fn iter(&self) -> impl Iterator<Item = Membership<'_>> {
        let mut iface: &[u8] = b"";
        let four = self.four.split(|&b| b == b'\n').skip(1).filter_map(move |line| {
            if line.starts_with(b"\t") {
                return member4(line, iface);
            }
            // A long name touches the colon; names never contain one.
            let name = words(line).nth(1).unwrap_or_default();
            iface = name.strip_suffix(b":").unwrap_or(name);
            None
        });
        four.chain(self.six.split(|&b| b == b'\n').filter_map(member6))
    }
}

// `⇥⇥⇥⇥010000E0     1 0:00000000⇥⇥0`: the group as a number in the machine's order, members.
fn member4<'a>(line: &[u8], iface: &'a [u8]) -> Option<Membership<'a>> {
    let mut words = words(line);
    let group = hex_u32(words.next()?)?.to_ne_bytes();
    Some(Membership { iface, users: decimal(words.next()?)?, group: Addr::V4(group) })
}

// `2    eth0            ff020000000000000000000000000001     1 0000000C 0`
fn member6(line: &[u8]) -> Option<Membership<'_>> {
    let mut words = words(line);
    let _index = words.next()?;
    let (iface, group) = (words.next()?, hex16(words.next()?)?);
    Some(Membership { iface, users: decimal(words.next()?)?, group: Addr::V6(group) })
}

fn decimal(word: &[u8]) -> Option<i32> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Parses any bytes as both files. For the fuzzer: it must neither panic nor loop forever.
pub fn fuzz_groups(data: &[u8]) {
    let groups = Groups { four: data.into(), six: data.into() };
    assert!(groups.iter().count() <= 2 * data.len());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_files() {
        let four = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
                    1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
                    4\tabcdefghijklmno:     1      V3\n\t\t\t\t0A0000EF    12 0:00000000\t\t0\n\t\t\t\tX 1\n";
        let six = "1    lo              ff020000000000000000000000000001     1 0000000C 0\nodd\n";
        let groups = Groups { four: four.into(), six: six.into() };
        let all: Vec<String> =
            groups.iter().map(|m| format!("{} {} {}", String::from_utf8_lossy(m.iface), m.users, m.group)).collect();
        let swapped = cfg!(target_endian = "little");
        assert!(swapped, "the first file is written for this machine");
        assert_eq!(all, ["lo 1 224.0.0.1", "abcdefghijklmno 12 239.0.0.10", "lo 1 ff02::1"]);
    }

    #[test]
    fn loopback_listens_to_all_hosts() {
        let host = Host::live();
        let mut groups = Groups::default();
        groups.read4(&host, 1, None).unwrap();
        assert!(groups.iter().any(|m| m.iface == b"lo" && m.group == Addr::V4([224, 0, 0, 1])));
    }

    proptest! {
        #[test]
        fn any_text(text in "([\t0-9A-F ]{0,20}[a-z]{0,4}[: ]{0,3}[0-9a-f]{0,33}\n){0,6}") {
            fuzz_groups(text.as_bytes());
        }
    }
}
