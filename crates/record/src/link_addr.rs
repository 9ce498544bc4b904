//! A link-local IPv6 address together with its interface: `fe80::2%eth0`.

use crate::Addr;

/// The first half of a link-local address: fe80::/64 (RFC 4291, 2.5.6).
const PREFIX: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
/// The longest name of an interface: IFNAMSIZ without its NUL (include/uapi/linux/if.h).
const NAME_MAX: usize = 15;

/// A link-local IPv6 address and the interface whose link it belongs to. The same address on another interface is
/// another host.
///
/// 23 bytes without a lifetime, so that a [`Value`](crate::Value) stays at 24.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkAddr {
    /// The second half of the address.
    id: [u8; 8],
    /// The name, filled up with NUL.
    iface: [u8; NAME_MAX],
}

impl LinkAddr {
    /// Returns `None` if `addr` is not in fe80::/64, or if the kernel gives no interface such a name.
    pub fn new(addr: Addr, iface: &[u8]) -> Option<LinkAddr> {
        let Addr::V6(octets) = addr else { return None };
        let id = octets.strip_prefix(&PREFIX)?.try_into().ok()?;
        if iface.is_empty() || iface.contains(&0) {
            return None;
        }
        let mut name = [0; NAME_MAX];
        name.get_mut(..iface.len())?.copy_from_slice(iface);
        Some(LinkAddr { id, iface: name })
    }

    /// The address without the interface.
    pub fn addr(self) -> Addr {
        let mut octets = [0; 16];
        octets.iter_mut().zip(PREFIX.iter().chain(&self.id)).for_each(|(to, from)| *to = *from);
        Addr::V6(octets)
    }

    /// The name of the interface, or its number in digits where the name is unknown. Hostile until escaped.
    pub fn iface(&self) -> &[u8] {
        let len = self.iface.iter().position(|byte| *byte == 0).unwrap_or(NAME_MAX);
        self.iface.get(..len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_and_its_interface_come_back() {
        let addr = |text: &str| text.parse::<Addr>().unwrap();
        for name in ["e", "eth0", "fifteen-letters"] {
            let link = LinkAddr::new(addr("fe80::a:2"), name.as_bytes()).unwrap();
            assert_eq!((link.addr(), link.iface()), (addr("fe80::a:2"), name.as_bytes()));
        }
        let of = |text: &str, name: &[u8]| LinkAddr::new(addr(text), name);
        assert_ne!(of("fe80::2", b"eth0"), of("fe80::2", b"eth1"));
        assert_ne!(of("fe80::2", b"eth0"), of("fe80::3", b"eth0"));
        for (text, name) in [
            ("fe80::2", &b""[..]),
            ("fe80::2", b"sixteen-letters-"),
            ("fe80::2", b"a\0b"),
            ("fe80:0:0:1::2", b"eth0"),
            ("2001:db8::2", b"eth0"),
            ("169.254.0.2", b"eth0"),
        ] {
            assert_eq!(of(text, name), None, "{text} {name:?}");
        }
    }
}
