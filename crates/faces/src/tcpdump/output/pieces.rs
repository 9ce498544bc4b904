//! The pieces of tcpdump's lines: those of all faces, and text from packets.

pub(super) use crate::pieces::{
    Hex, HexBytes, HexWide, LineBuffer, Padded, Put, Written, list, names, put, when, word_of, written,
};

/// Bytes of text from outside, escaped like in the tool: `^A`, `M-a`.
pub(super) struct PacketText<'a>(pub(super) &'a [u8]);
/// Bytes in the format of link-layer addresses: `02:00:00:00:00:01`.
pub(super) struct Mac<'a>(pub(super) &'a [u8]);
/// The names of the flags that are set: table, the text if no flag is set, the text between names, flags.
pub(super) struct Flags<'a, N>(pub(super) &'a [(u32, &'a str)], pub(super) &'a str, pub(super) &'a str, pub(super) N);

impl<P: LineBuffer> Put<P> for PacketText<'_> {
    fn put(&self, line: &mut P) {
        self.0.iter().for_each(|&byte| put_shown(line.buffer(), byte));
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

impl<P: LineBuffer> Put<P> for Mac<'_> {
    fn put(&self, line: &mut P) {
        for (nth, byte) in self.0.iter().enumerate() {
            put!(line, when(nth > 0, ":"), HexWide(*byte, 2));
        }
    }
}

impl<P: LineBuffer, N: Into<u32> + Copy> Put<P> for Flags<'_, N> {
    fn put(&self, line: &mut P) {
        let Flags(names, none, between, flags) = *self;
        let flags = flags.into();
        let mut before = "";
        for (_, name) in names.iter().filter(|(bit, _)| flags & bit == *bit) {
            put!(line, std::mem::replace(&mut before, between), *name);
        }
        put!(line, when(names.iter().all(|(bit, _)| flags & bit != *bit), none));
    }
}

/// Appends the last pieces of a printer: `return put_last!(line, " (invalid)")`.
macro_rules! put_last {
    ($line:expr, $($piece:expr),+ $(,)?) => {{
        $crate::pieces::put!($line, $($piece),+);
        Ok(())
    }};
}
pub(super) use put_last;
