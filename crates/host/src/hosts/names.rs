//! The names found, as a lookup for one table.
use record::{Addr, Key, Lookup, Value};

use crate::HostError;
use crate::texts::Texts;

/// Address → host name, as known at one moment.
#[derive(Debug, Default)]
pub struct HostNames {
    names: Texts<Addr>,
}

impl HostNames {
    /// The name of an address, not escaped: treat it as hostile.
    pub fn name(&self, addr: Addr) -> Option<&[u8]> {
        self.names.get(addr.unmapped())
    }

    /// True if no address has a name.
    pub fn is_empty(&self) -> bool {
        self.names.len() == 0
    }

    /// Decodes names written by [`put`].
    pub(super) fn parse(text: Vec<u8>) -> Result<HostNames, HostError> {
        let mut names = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (addr, length, start) = head(&text, at).ok_or(HostError::Garbled { what: "names of addresses", at })?;
            at = start + usize::from(length);
            if at > text.len() {
                return Err(HostError::Garbled { what: "names of addresses", at: start });
            }
            // A value in a recording is at most 64 MiB long.
            names.push((addr, start as u32, at as u32));
        }
        Ok(HostNames { names: Texts::new(text, names) })
    }
}

impl Lookup for HostNames {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Addr(addr) => Value::text(self.name(addr)),
            _ => Value::Null,
        }
    }
}

/// Appends: length of the address (4 or 16) u8, address, length of the name u8, name.
pub(super) fn put(into: &mut Vec<u8>, addr: Addr, name: &[u8]) {
    let Ok(length) = u8::try_from(name.len()) else { return };
    into.push(addr.bits() / 8);
    into.extend_from_slice(addr.octets());
    into.push(length);
    into.extend_from_slice(name);
}

// Address, length of its name, and start of the name.
fn head(text: &[u8], at: usize) -> Option<(Addr, u8, usize)> {
    let rest = text.get(at + 1..)?;
    let (addr, size) = match *text.get(at)? {
        4 => (Addr::V4(*rest.first_chunk()?), 4),
        16 => (Addr::V6(*rest.first_chunk()?), 16),
        _ => return None,
    };
    Some((addr, *rest.get(size)?, at + 1 + size + 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_found(
            names in prop::collection::btree_map(any::<[u8; 4]>(), prop::collection::vec(any::<u8>(), 0..40), 0..20),
            other: [u8; 16],
        ) {
            let mut text = Vec::new();
            put(&mut text, Addr::V6(other), b"six");
            names.iter().for_each(|(addr, name)| put(&mut text, Addr::V4(*addr), name));
            let parsed = HostNames::parse(text.clone()).unwrap();
            for (addr, name) in &names {
                prop_assert_eq!(parsed.name(Addr::V4(*addr)), Some(&name[..]));
                prop_assert_eq!(parsed.value(Key::Addr(Addr::V4(*addr))), Value::Bytes(name));
            }
            prop_assert!(Addr::V6(other).unmapped() != Addr::V6(other) || parsed.name(Addr::V6(other)) == Some(b"six"));
            for cut in 0..text.len() {
                let _ = HostNames::parse(text[..cut].to_vec());
            }
        }

        #[test]
        fn any_bytes(text in prop::collection::vec(prop_oneof![Just(4u8), Just(16), Just(0), any::<u8>()], 0..100)) {
            if let Ok(names) = HostNames::parse(text) {
                for addr in names.names.keys() {
                    prop_assert!(names.name(addr).is_some() || addr.unmapped() != addr);
                }
            }
        }
    }
}
