//! DECnet addresses, in short and long headers, with and without padding.

use super::hosts::join_directions;
use super::{Condition, Generated, Generator, HeaderPlace};
use crate::numbers::ethertype;
use crate::value::Size;
use crate::words::Dir;

impl Generator<'_> {
    pub(super) fn decnet(&mut self, address: u32, dir: Dir) -> Generated {
        join_directions(dir, &mut |is_source| {
            let (short, long) = if is_source { (3, 15) } else { (1, 7) };
            let link = self.link_type(ethertype::DECNET)?;
            // The fields are little-endian.
            let address = u32::from((address as u16).swap_bytes());
            let forms = [
                (Size::Byte, 0x02, 0x07, 2 + short),
                (Size::Half, 0x8102, 0xff07, 3 + short),
                (Size::Byte, 0x06, 0x07, 2 + long),
                (Size::Half, 0x8106, 0xff07, 3 + long),
            ];
            let form = |(size, flags, mask, offset)| {
                let is_form = self.test_masked(HeaderPlace::Network, 2, size, flags, mask);
                Condition::All(vec![is_form, self.test_equal(HeaderPlace::Network, offset, Size::Half, address)])
            };
            Ok(Condition::All(vec![link, Condition::Any(forms.map(form).into())]))
        })
    }
}

/// Parses `1.13`: area and node. None for any other text.
pub(super) fn address(text: &str) -> Option<u32> {
    let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
    let (area, node) = (parts.next()??, parts.next()??);
    Some(area.wrapping_shl(10) & 0xfc00 | node & 0x3ff)
}
