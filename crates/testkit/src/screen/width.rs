//! Number of columns that a character takes.

/// Ranges of wide characters: East Asian characters and emoji.
const WIDE: [(u32, u32); 12] = [
    (0x1100, 0x115f),
    (0x2e80, 0x303e),
    (0x3041, 0x33ff),
    (0x3400, 0x4dbf),
    (0x4e00, 0x9fff),
    (0xa000, 0xa4cf),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe30, 0xfe6f),
    (0xff00, 0xff60),
    (0x1f300, 0x1faff),
    (0x20000, 0x3fffd),
];
/// Ranges of combining characters: accents, joiners, variation selectors.
const NARROW: [(u32, u32); 6] =
    [(0x0300, 0x036f), (0x0483, 0x0489), (0x1ab0, 0x1aff), (0x200b, 0x200f), (0x20d0, 0x20ff), (0xfe00, 0xfe0f)];

/// Returns 0, 1 or 2.
pub(super) fn width(c: char) -> usize {
    let is_in = |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(c)));
    match c {
        _ if is_in(&NARROW) => 0,
        _ if is_in(&WIDE) => 2,
        _ => 1,
    }
}
