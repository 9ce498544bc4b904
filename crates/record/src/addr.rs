//! IP addresses and prefixes as values: 17 bytes, `Copy`, ordered, never resolved.

use crate::named_enum::named_enum;
use std::cmp::Ordering;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IPv4 or IPv6 address in network byte order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Addr {
    /// Four octets.
    V4([u8; 4]),
    /// Sixteen octets.
    V6([u8; 16]),
}

/// IPv4 before IPv6, then by number. (The derived order is the same, and calls memcmp for each comparison.)
impl Ord for Addr {
    fn cmp(&self, other: &Addr) -> Ordering {
        match (self, other) {
            (Addr::V4(one), Addr::V4(other)) => u32::from_be_bytes(*one).cmp(&u32::from_be_bytes(*other)),
            (Addr::V6(one), Addr::V6(other)) => u128::from_be_bytes(*one).cmp(&u128::from_be_bytes(*other)),
            (Addr::V4(_), Addr::V6(_)) => Ordering::Less,
            (Addr::V6(_), Addr::V4(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Addr {
    fn partial_cmp(&self, other: &Addr) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

named_enum! {
    /// How far an address reaches.
    pub enum Scope {
        /// Routed on the internet.
        Public => "public",
        /// RFC 1918, RFC 6598, RFC 4193 and other addresses that stay inside a site.
        Private => "private",
        /// This host.
        Loopback => "loopback",
        /// This link (169.254.0.0/16, fe80::/10, multicast and broadcast of the link).
        Link => "link",
    }
}

/// The IPv4 wildcard.
impl Default for Addr {
    fn default() -> Addr {
        Addr::ANY4
    }
}

impl Addr {
    /// The names of the address families.
    pub(crate) const FAMILIES: &'static [&'static str] = &["inet", "inet6"];

    /// The name of the address family.
    pub(crate) fn family(self) -> &'static str {
        if self.bits() == 32 { "inet" } else { "inet6" }
    }

    /// The IPv4 wildcard.
    pub const ANY4: Addr = Addr::V4([0; 4]);
    /// The IPv6 wildcard.
    pub const ANY6: Addr = Addr::V6([0; 16]);

    /// Returns an IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) as IPv4, and any other address unchanged.
    pub fn unmapped(self) -> Addr {
        match self {
            Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]) => Addr::V4([a, b, c, d]),
            other => other,
        }
    }

    /// True for `0.0.0.0` and `::`.
    pub fn is_unspecified(self) -> bool {
        match self {
            Addr::V4(o) => o == [0; 4],
            Addr::V6(o) => o == [0; 16],
        }
    }

    /// True for 127.0.0.0/8, `::1` and IPv4-mapped addresses in 127.0.0.0/8.
    pub fn is_loopback(self) -> bool {
        match self.unmapped() {
            Addr::V4(o) => o[0] == 127,
            Addr::V6(o) => o == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        }
    }

    /// True for fe80::/10: such an address is meaningful only together with an interface.
    pub fn is_link_local_v6(self) -> bool {
        matches!(self, Addr::V6([0xfe, b, ..]) if b & 0xc0 == 0x80)
    }

    /// True for 224.0.0.0/4 and ff00::/8.
    pub fn is_multicast(self) -> bool {
        match self {
            Addr::V4(o) => o[0] & 0xf0 == 0xe0,
            Addr::V6(o) => o[0] == 0xff,
        }
    }

    /// How far the address reaches.
    pub fn scope(self) -> Scope {
        if self.is_loopback() {
            return Scope::Loopback;
        }
        match self.unmapped() {
            Addr::V4(o) => scope_v4(o),
            Addr::V6(o) => scope_v6(o),
        }
    }

    /// The octets.
    pub fn octets(&self) -> &[u8] {
        match self {
            Addr::V4(o) => o,
            Addr::V6(o) => o,
        }
    }

    /// Length of the address in bits: 32 or 128.
    pub fn bits(self) -> u8 {
        match self {
            Addr::V4(_) => 32,
            Addr::V6(_) => 128,
        }
    }
}

fn scope_v4(o: [u8; 4]) -> Scope {
    match o {
        [169, 254, ..] | [224, 0, 0, _] | [255, 255, 255, 255] => Scope::Link,
        [10, ..] | [192, 168, ..] | [0, ..] | [239, ..] => Scope::Private,
        [172, b, ..] if (16..32).contains(&b) => Scope::Private,
        [100, b, ..] if (64..128).contains(&b) => Scope::Private,
        _ => Scope::Public,
    }
}

fn scope_v6(o: [u8; 16]) -> Scope {
    match o {
        [0xfe, b, ..] if b & 0xc0 == 0x80 => Scope::Link,
        [0xff, b, ..] if b & 0x0f <= 2 => Scope::Link,
        [0xff, b, ..] if b & 0x0f < 0x0e => Scope::Private,
        [a, ..] if a & 0xfe == 0xfc => Scope::Private,
        _ if o == [0; 16] => Scope::Private,
        _ => Scope::Public,
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Addr::V4(o) => Ipv4Addr::from(o).fmt(f),
            Addr::V6(o) => Ipv6Addr::from(o).fmt(f),
        }
    }
}

impl FromStr for Addr {
    type Err = std::net::AddrParseError;

    fn from_str(s: &str) -> Result<Addr, Self::Err> {
        s.parse::<std::net::IpAddr>().map(|ip| match ip {
            std::net::IpAddr::V4(a) => Addr::V4(a.octets()),
            std::net::IpAddr::V6(a) => Addr::V6(a.octets()),
        })
    }
}

/// An address with a prefix length: `10.0.0.0/8`. Bits after the prefix are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    addr: Addr,
    len: u8,
}

impl Prefix {
    /// The prefix of `len` bits that contains `addr`; `None` if `len` exceeds the address length.
    pub fn new(addr: Addr, len: u8) -> Option<Prefix> {
        if len > addr.bits() {
            return None;
        }
        let cut = |octets: &mut [u8]| {
            for (i, o) in octets.iter_mut().enumerate() {
                let kept = (len as usize).saturating_sub(i * 8).min(8);
                *o &= (0xff00u16 >> kept) as u8;
            }
        };
        let mut addr = addr;
        match &mut addr {
            Addr::V4(o) => cut(o),
            Addr::V6(o) => cut(o),
        }
        Some(Prefix { addr, len })
    }

    /// The prefix that contains only this address.
    pub fn host(addr: Addr) -> Prefix {
        Prefix { addr, len: addr.bits() }
    }

    /// First address of the prefix.
    pub fn addr(&self) -> Addr {
        self.addr
    }

    /// Length in bits.
    pub fn len(&self) -> u8 {
        self.len
    }

    /// True for a prefix of length 0, which contains every address of its family.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if `addr` is in the prefix. An IPv4-mapped address is in the IPv4 prefixes of its IPv4 address.
    pub fn contains(&self, addr: Addr) -> bool {
        let addr = if matches!(self.addr, Addr::V4(_)) { addr.unmapped() } else { addr };
        match (self.addr, addr) {
            (Addr::V4(p), Addr::V4(a)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.len)).unwrap_or(0);
                u32::from_be_bytes(p) == u32::from_be_bytes(a) & mask
            }
            (Addr::V6(p), Addr::V6(a)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.len)).unwrap_or(0);
                u128::from_be_bytes(p) == u128::from_be_bytes(a) & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Prefix {
    type Err = ();

    /// Parses `10.0.0.0/8`, `10.1.2.3` (a host) or `fe80::/10`.
    fn from_str(s: &str) -> Result<Prefix, ()> {
        let Some((addr, len)) = s.split_once('/') else {
            return s.parse().map(Prefix::host).map_err(|_| ());
        };
        Prefix::new(addr.parse().map_err(|_| ())?, len.parse().map_err(|_| ())?).ok_or(())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.len == self.addr.bits() {
            return self.addr.fmt(f);
        }
        write!(f, "{}/{}", self.addr, self.len)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_in_the_order_of_their_bytes() {
        let words =
            ["0.0.0.1", "9.255.0.0", "10.0.0.0", "255.0.0.1", "::", "::1", "::ffff:10.0.0.0", "fe80::2", "ff02::1"];
        let addrs: Vec<Addr> = words.iter().map(|word| word.parse().unwrap()).collect();
        assert!(addrs.is_sorted());
        for (one, other) in addrs.iter().zip(&addrs[1..]) {
            assert!(one < other && one.cmp(one).is_eq(), "{one} {other}");
        }
    }

    #[test]
    fn prefix_holds_its_addresses() {
        for (prefix, addr, holds) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "11.0.0.1", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "::1", true),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("fe80::/10", "fe80::1", true),
            ("fe80::/10", "fec0::1", false),
            ("192.0.2.7", "192.0.2.7", true),
        ] {
            assert_eq!(prefix.parse::<Prefix>().unwrap().contains(addr.parse().unwrap()), holds, "{addr} in {prefix}");
        }
        assert!("10.0.0.0/33".parse::<Prefix>().is_err());
        assert_eq!("10.1.2.3/8".parse::<Prefix>().unwrap().to_string(), "10.0.0.0/8");
    }

    #[test]
    fn scopes() {
        for (addr, scope) in [
            ("8.8.8.8", "public"),
            ("172.16.0.1", "private"),
            ("172.32.0.1", "public"),
            ("100.64.0.1", "private"),
            ("127.9.9.9", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("169.254.1.1", "link"),
            ("fe80::1", "link"),
            ("fd00::1", "private"),
            ("2001:db8::1", "public"),
            ("::1", "loopback"),
        ] {
            assert_eq!(addr.parse::<Addr>().unwrap().scope().name(), scope, "{addr}");
        }
    }
}
