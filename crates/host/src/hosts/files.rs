//! Reads /etc/hosts and /etc/resolv.conf.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use record::Addr;
use sys::Host;

use super::NAME_MAX;

/// Maximum number of name servers used, as in resolv.conf(5).
const SERVERS_MAX: usize = 3;

const PORT: u16 = 53;

const LOCALHOST: Addr = Addr::V4([127, 0, 0, 1]);
const LOCALHOST6: Addr = Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

/// Address and first name of each line of a hosts file; malformed lines are skipped. The line of `::1` also applies to
/// 127.0.0.1, as in gethostbyaddr(3).
pub(super) fn hosts_entries(text: &[u8]) -> impl Iterator<Item = (Addr, &[u8])> {
    let entry = |line| {
        let mut words = words(line, b"#");
        let addr: Addr = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        let name = words.next().filter(|name| name.len() <= NAME_MAX)?;
        let also = Some(LOCALHOST).filter(|_| addr == LOCALHOST6);
        Some([Some(addr.unmapped()), also].into_iter().flatten().map(move |addr| (addr, name)))
    };
    text.split(|&b| b == b'\n').filter_map(entry).flatten()
}

/// The name servers of this host: the ones in resolv.conf, or the one on this machine (resolv.conf(5)).
pub(super) fn name_servers(host: &Host) -> Vec<SocketAddr> {
    let mut text = Vec::new();
    // A missing file counts as empty.
    let _ = host.read_file("/etc/resolv.conf", &mut text);
    let mut servers: Vec<SocketAddr> = text.split(|&b| b == b'\n').filter_map(|line| server(host, line)).collect();
    servers.truncate(SERVERS_MAX);
    if servers.is_empty() {
        servers.push((Ipv4Addr::LOCALHOST, PORT).into());
    }
    servers
}

// Parses `nameserver ADDRESS`; link-local IPv6 addresses have `%INTERFACE`.
fn server(host: &Host, line: &[u8]) -> Option<SocketAddr> {
    let mut words = words(line, b"#;");
    if words.next()? != b"nameserver" {
        return None;
    }
    let addr = std::str::from_utf8(words.next()?).ok()?;
    let Some((addr, zone)) = addr.split_once('%') else {
        return Some((addr.parse::<IpAddr>().ok()?, PORT).into());
    };
    let addr: Ipv6Addr = addr.parse().ok()?;
    let zone = zone.parse().ok().or_else(|| interface_index(host, zone))?;
    Some(SocketAddrV6::new(addr, PORT, 0, zone).into())
}

fn interface_index(host: &Host, name: &str) -> Option<u32> {
    if name.contains('/') || name.starts_with('.') {
        return None;
    }
    let mut text = Vec::new();
    host.read_file(&format!("/sys/class/net/{name}/ifindex"), &mut text).ok()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

// The words of a line up to a comment.
fn words<'l>(line: &'l [u8], comments: &[u8]) -> impl Iterator<Item = &'l [u8]> {
    let end = line.iter().position(|b| comments.contains(b)).unwrap_or(line.len());
    let line = line.get(..end).unwrap_or_default();
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn host(resolv: Option<&str>) -> (tempfile::TempDir, Host) {
        let tmp = tempfile::tempdir().unwrap();
        if let Some(text) = resolv {
            std::fs::write(tmp.path().join("resolv.conf"), text).unwrap();
        }
        let host = Host::with_roots("/proc".into(), "/sys".into(), tmp.path().into());
        (tmp, host)
    }

    #[test]
    fn hosts_with_odd_lines() {
        let long = format!("10.0.0.9 {}\n10.0.0.8 {}\n", "n".repeat(255), "n".repeat(256));
        let text = format!(
            "127.0.0.1\tlocalhost loop # x\n\n# 10.0.0.1 no\n::1 ip6\n ::ffff:10.0.0.2   mapped\r\n10.0.0.3\n10.0.0.4 \
             #c\n\
             300.0.0.1 no\nname 10.0.0.5\n10.0.0.6 \x1b[31m\n{long}"
        );
        let entries: Vec<(String, Vec<u8>)> =
            hosts_entries(text.as_bytes()).map(|(addr, name)| (addr.to_string(), name.to_vec())).collect();
        let expected = [
            ("127.0.0.1", "localhost".to_owned()),
            ("::1", "ip6".into()),
            ("127.0.0.1", "ip6".into()),
            ("10.0.0.2", "mapped".into()),
            ("10.0.0.6", "\x1b[31m".into()),
            ("10.0.0.9", "n".repeat(255)),
        ];
        let expected: Vec<_> = expected.map(|(addr, name)| (addr.to_owned(), name.into_bytes())).into();
        assert_eq!(entries, expected);
    }

    #[test]
    fn name_servers_by_resolv_conf() {
        let text = "# c\nsearch example.org\nnameserver 192.0.2.1\nnameserver bad\n nameserver\t2001:db8::1 # c\n\
                    nameserver fe80::1%lo\nnameserver 192.0.2.2\n";
        let (_tmp, host) = self::host(Some(text));
        let servers: Vec<String> = name_servers(&host).iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1%1]:53"]);
        for text in [None, Some(""), Some("nameserver fe80::1%nosuch\nnameserver fe80::1%../x\nnameserver")] {
            let (_tmp, host) = self::host(text);
            assert_eq!(name_servers(&host), ["127.0.0.1:53".parse().unwrap()]);
        }
    }

    proptest! {
        #[test]
        fn any_line(line in prop::collection::vec(prop_oneof![Just(b' '), Just(b'#'), Just(b'1'), Just(b'.'),
            any::<u8>()], 0..60)) {
            for (_, name) in hosts_entries(&line) {
                prop_assert!(!name.is_empty() && name.len() <= NAME_MAX && !name.contains(&b'\n'));
            }
            let (_tmp, host) = host(None);
            let _ = server(&host, &[b"nameserver ", &line[..]].concat());
        }
    }
}
