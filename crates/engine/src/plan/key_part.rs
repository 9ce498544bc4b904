//! The part of a field that forms a group key: its whole value, the address without the port, or the address's
//! network.

use crate::words;
use record::{FieldInfo, Kind, Prefix, Value};

/// The part of a field that forms a group key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyPart {
    /// The unchanged value.
    Whole,
    /// The address of an endpoint, without its port.
    Addr,
    /// The network of an address, with these prefix lengths.
    Prefix(PrefixLengths),
}

/// Prefix lengths in bits for each address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PrefixLengths {
    v4: u8,
    v6: u8,
}

impl KeyPart {
    /// Error message for any other prefix lengths.
    pub(super) const LENGTHS: &'static str =
        "a network is FIELD/BITS, or FIELD/BITS/BITS for IPv4 and IPv6, with at most 32 and 128 bits";

    /// Splits a name of `--by` into a word and the prefix lengths after it: `peer/24`, `peer/24/64`. A single length
    /// applies to both families; IPv4 addresses stay whole if it is greater than 32. Returns `None` for invalid
    /// lengths.
    pub(super) fn split(name: &str) -> Option<(&str, Option<PrefixLengths>)> {
        let Some((word, lengths)) = name.split_once('/') else { return Some((name, None)) };
        let bits = |text: &str, most: u8| text.parse().ok().filter(|bits: &u8| *bits <= most);
        let lengths = match lengths.split_once('/') {
            Some((v4, v6)) => PrefixLengths { v4: bits(v4, 32)?, v6: bits(v6, 128)? },
            None => {
                let v6 = bits(lengths, 128)?;
                PrefixLengths { v4: v6.min(32), v6 }
            }
        };
        Some((word, Some(lengths)))
    }

    /// Returns the part of `field` that forms the key. The error explains why the field cannot be a key.
    pub(super) fn of_field(field: &FieldInfo, prefix: Option<PrefixLengths>) -> Result<KeyPart, &'static str> {
        match (field.kind, prefix) {
            (Kind::Addr | Kind::Endpoint, Some(lengths)) => Ok(KeyPart::Prefix(lengths)),
            (_, Some(_)) => Err("only an address can be grouped by network"),
            (Kind::Owners, None) => Err("a list of owners cannot be grouped; use `process` or `pid`"),
            (kind, None) if kind.is_list() => Err("a list cannot be grouped"),
            (Kind::Endpoint, None) if words::CLIENTS.contains(&field.name) => Ok(KeyPart::Addr),
            (_, None) => Ok(KeyPart::Whole),
        }
    }

    /// Returns the key part of a cell.
    #[inline]
    pub(crate) fn take_from<'r>(self, cell: Value<'r>) -> Value<'r> {
        match (self, cell) {
            (KeyPart::Addr, Value::Endpoint(addr, _)) => Value::Addr(addr),
            (KeyPart::Prefix(lengths), Value::Addr(addr) | Value::Endpoint(addr, _)) => {
                let bits = if addr.bits() == 32 { lengths.v4 } else { lengths.v6 };
                Prefix::new(addr, bits).map_or(Value::Addr(addr), |net| Value::Prefix(net.addr(), net.len()))
            }
            // A network of link-local addresses is one for all links.
            (KeyPart::Prefix(lengths), Value::LinkAddr(link)) if lengths.v6 < 128 => {
                self.take_from(Value::Addr(link.addr()))
            }
            (_, cell) => cell,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::Addr;

    #[test]
    fn lengths_are_of_both_families_or_of_each() {
        let of = |name: &str, addr: &str| {
            let (_, prefix) = KeyPart::split(name)?;
            let addr: Addr = addr.parse().unwrap();
            match prefix.map_or(KeyPart::Whole, KeyPart::Prefix).take_from(Value::Addr(addr)) {
                Value::Prefix(addr, len) => Some(format!("{addr}/{len}")),
                Value::Addr(addr) => Some(addr.to_string()),
                _ => None,
            }
        };
        for (name, v4, v6) in [
            ("peer", "10.1.2.3", "2001:db8:1:2::3"),
            ("peer/24", "10.1.2.0/24", "2001:d00::/24"),
            ("peer/64", "10.1.2.3/32", "2001:db8:1:2::/64"),
            ("peer/8/48", "10.0.0.0/8", "2001:db8:1::/48"),
            ("peer/0", "0.0.0.0/0", "::/0"),
        ] {
            assert_eq!(of(name, "10.1.2.3").as_deref(), Some(v4), "{name}");
            assert_eq!(of(name, "2001:db8:1:2::3").as_deref(), Some(v6), "{name}");
        }
        for name in ["peer/", "peer/129", "peer/33/64", "peer/-1", "peer/24/64/1", "peer/x"] {
            assert_eq!(KeyPart::split(name), None, "{name}");
        }
    }
}
