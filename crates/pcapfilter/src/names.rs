//! Names in expressions: hosts, networks, ports, protocols, Ethernet addresses. The caller of the compiler resolves
//! them.

use std::net::IpAddr;

/// Resolves names. Called only for names that occur in an expression.
pub trait NameSource {
    /// Returns the addresses of a host.
    fn host(&self, name: &str) -> Vec<IpAddr>;
    /// Returns a network's number like `getnetbyname`: 10 for 10.0.0.0.
    fn network(&self, name: &str) -> Option<u32>;
    /// Returns the Ethernet address of a host.
    fn ethernet(&self, name: &str) -> Option<[u8; 6]>;
    /// Returns the port of a service over `protocol` (`tcp` or `udp`).
    fn port(&self, name: &str, protocol: &str) -> Option<u16>;
    /// Returns the number of an IP protocol.
    fn protocol(&self, name: &str) -> Option<u8>;
}

/// Names from the text of /etc/services, /etc/protocols, /etc/networks, /etc/ethers and /etc/hosts; any may be empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct NameFiles<'a> {
    /// `http 80/tcp www`
    pub services: &'a str,
    /// `tcp 6 TCP`
    pub protocols: &'a str,
    /// `loopback 127.0.0.0`
    pub networks: &'a str,
    /// `00:11:22:33:44:55 printer`
    pub ethers: &'a str,
    /// `127.0.0.1 localhost`
    pub hosts: &'a str,
}

/// Returns the words of each line, without comments.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split('#').next().unwrap_or_default().split_ascii_whitespace().collect())
}

/// Returns the second word of a line that has `name` as its first word or after its second.
fn value<'a>(text: &'a str, name: &str, accepts: impl Fn(&str) -> bool) -> Option<&'a str> {
    let mut values = lines(text).filter_map(|words| match words.as_slice() {
        [first, value, aliases @ ..] if *first == name || aliases.contains(&name) => Some(*value),
        _ => None,
    });
    values.find(|value| accepts(value))
}

impl NameSource for NameFiles<'_> {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        let has = |names: &[&str]| names.iter().any(|one| one.eq_ignore_ascii_case(name));
        let address = |words: Vec<&str>| match words.as_slice() {
            [address, names @ ..] if has(names) => address.parse().ok(),
            _ => None,
        };
        lines(self.hosts).filter_map(address).collect()
    }

    fn network(&self, name: &str) -> Option<u32> {
        let text = value(self.networks, name, |_| true)?;
        let parts = text.split('.').map(|part| part.parse::<u8>().ok()).collect::<Option<Vec<_>>>()?;
        let number = parts.iter().take(4).fold(0_u32, |number, part| number << 8 | u32::from(*part));
        // Like inet_network, which does not drop zeros at the end if they are written.
        Some(number)
    }

    fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        let text = lines(self.ethers).find_map(|words| match words.as_slice() {
            [address, host] if host.eq_ignore_ascii_case(name) => Some(*address),
            _ => None,
        })?;
        let bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect::<Option<Vec<_>>>()?;
        bytes.try_into().ok()
    }

    fn port(&self, name: &str, protocol: &str) -> Option<u16> {
        let of = |value: &str| value.split_once('/').is_some_and(|(_, one)| one == protocol);
        value(self.services, name, of)?.split_once('/')?.0.parse().ok()
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        value(self.protocols, name, |_| true)?.parse().ok()
    }
}
