//! `llc` and its frame types (IEEE 802.2).

use super::{Condition, Generated, Generator, HeaderPlace};
use crate::link::LinkType;
use crate::value::Size;

/// Supervisory frames: the value of the field after the service access points.
const SUPERVISORY: &[(&str, u32)] = &[("rr", 0x01), ("rnr", 0x05), ("rej", 0x09)];
const SUPERVISORY_MASK: u32 = 0x0f;
/// Unnumbered frames.
const UNNUMBERED: &[(&str, u32)] = &[
    ("ui", 0x03),
    ("ua", 0x63),
    ("disc", 0x43),
    ("dm", 0x0f),
    ("sabme", 0x6f),
    ("test", 0xe3),
    ("xid", 0xaf),
    ("frmr", 0x87),
];
const UNNUMBERED_MASK: u32 = 0xef;

impl Generator<'_> {
    pub(super) fn llc(&mut self, name: Option<&str>) -> Generated {
        let find = |types: &[(&str, u32)], name: &str| {
            types.iter().find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, number)| *number)
        };
        // Number, mask, and whether the field must differ.
        let control = match name {
            None => None,
            Some(name) if name.eq_ignore_ascii_case("i") => Some((0, 1)),
            Some(name) if name.eq_ignore_ascii_case("s") => Some((1, 3)),
            Some(name) if name.eq_ignore_ascii_case("u") => Some((3, 3)),
            Some(name) => {
                let supervisory = find(SUPERVISORY, name).map(|number| (number, SUPERVISORY_MASK));
                let found = supervisory.or_else(|| find(UNNUMBERED, name).map(|number| (number, UNNUMBERED_MASK)));
                Some(found.ok_or_else(|| format!("unknown LLC type name \"{name}\""))?)
            }
        };
        if self.link != LinkType::Ethernet {
            return Err(format!("'llc' not supported for {}", self.link));
        }
        // IPX may follow immediately after the length; it is excluded.
        let is_ipx = self.test_equal(HeaderPlace::Payload, 0, Size::Half, 0xffff);
        let mut parts = vec![self.has_llc(), is_ipx.negate()];
        if let Some((number, mask)) = control {
            parts.push(self.test_masked(HeaderPlace::Payload, 2, Size::Byte, number, mask));
        }
        Ok(Condition::All(parts))
    }
}
