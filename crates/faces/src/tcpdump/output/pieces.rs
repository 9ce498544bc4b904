//! Pieces of a line, written together: `put!(line, "length ", length)`.

use record::text::{put_hex, put_u64, put_v4, put_v6};

/// A piece of a line.
pub(super) trait Put {
    fn put(&self, out: &mut Vec<u8>);
}

impl Put for &str {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

macro_rules! decimal {
    ($($kind:ty),*) => {$(
        impl Put for $kind {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                put_u64(out, *self as u64);
            }
        }
    )*};
}
decimal!(u8, u16, u32, u64, usize);

/// A number in hexadecimal, without `0x`.
pub(super) struct Hex(pub(super) u64);
/// A number in hexadecimal, and the number of digits to which it is padded with zeros.
pub(super) struct HexWide(pub(super) u64, pub(super) u32);
pub(super) struct HexBytes<'a>(pub(super) &'a [u8]);
pub(super) struct V4(pub(super) [u8; 4]);
pub(super) struct V6(pub(super) [u8; 16]);
/// A signed number in decimal.
pub(super) struct Signed(pub(super) i64);
/// Bytes of text from outside, escaped like in the tool: `^A`, `M-a`.
pub(super) struct Shown<'a>(pub(super) &'a [u8]);

impl Put for Hex {
    fn put(&self, out: &mut Vec<u8>) {
        put_hex(out, self.0);
    }
}

impl Put for HexWide {
    fn put(&self, out: &mut Vec<u8>) {
        let used = 16 - self.0.leading_zeros() / 4;
        (used.max(1)..self.1).for_each(|_| out.push(b'0'));
        put_hex(out, self.0);
    }
}

impl Put for HexBytes<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|&byte| HexWide(byte.into(), 2).put(out));
    }
}

impl Put for V4 {
    fn put(&self, out: &mut Vec<u8>) {
        put_v4(out, self.0);
    }
}

impl Put for V6 {
    fn put(&self, out: &mut Vec<u8>) {
        put_v6(out, self.0);
    }
}

impl Put for Signed {
    fn put(&self, out: &mut Vec<u8>) {
        record::text::put_i64(out, self.0);
    }
}

impl Put for Shown<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|&byte| put_shown(out, byte));
    }
}

fn put_shown(out: &mut Vec<u8>, byte: u8) {
    let low = byte & 0x7f;
    if low != byte {
        out.extend_from_slice(b"M-");
    }
    match low {
        b' '..=b'~' => out.push(low),
        _ => out.extend_from_slice(&[b'^', low ^ 0x40]),
    }
}

/// Pieces in a row.
macro_rules! row {
    ($($name:ident $n:tt),+) => {
        impl<$($name: Put),+> Put for ($($name,)+) {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                $( self.$n.put(out); )+
            }
        }
    };
}
row!(A 0);
row!(A 0, B 1);
row!(A 0, B 1, C 2);
row!(A 0, B 1, C 2, D 3);
row!(A 0, B 1, C 2, D 3, E 4);
row!(A 0, B 1, C 2, D 3, E 4, F 5);
row!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
row!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
row!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
row!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);

/// Appends each piece: `put!(out, "length ", length)`. All are read before the first is written: if the bytes end in
/// any of them, no piece is printed.
macro_rules! put {
    ($out:expr, $($piece:expr),+ $(,)?) => { $crate::tcpdump::output::pieces::Put::put(&($($piece,)+), $out.out) };
}
pub(super) use put;

/// Returns the word of a number in a table.
pub(super) fn word_of<K: PartialEq + Copy>(table: &[(K, &'static str)], key: K) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == key).map(|(_, word)| *word)
}
