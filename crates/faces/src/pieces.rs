//! Pieces of a line, written together: `put!(out, "length ", length)`.

use record::{Addr, text};

/// A destination of pieces.
pub(crate) trait LineBuffer {
    /// Appends our own text.
    fn text(&mut self, text: &str);
    /// Appends a number in decimal.
    fn decimal(&mut self, number: u64);
    /// Appends an address.
    fn addr(&mut self, addr: Addr);
    /// Returns the buffer, for all other pieces.
    fn buffer(&mut self) -> &mut Vec<u8>;
}

impl LineBuffer for Vec<u8> {
    #[inline]
    fn text(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn decimal(&mut self, number: u64) {
        text::put_u64(self, number);
    }

    #[inline]
    fn addr(&mut self, addr: Addr) {
        text::put_addr(self, addr);
    }

    #[inline]
    fn buffer(&mut self) -> &mut Vec<u8> {
        self
    }
}

/// A piece of a line.
pub(crate) trait Put<P: ?Sized> {
    fn put(&self, line: &mut P);
}

impl<P: LineBuffer> Put<P> for &str {
    #[inline]
    fn put(&self, line: &mut P) {
        line.text(self);
    }
}

impl<P: LineBuffer> Put<P> for Addr {
    #[inline]
    fn put(&self, line: &mut P) {
        line.addr(*self);
    }
}

macro_rules! decimal {
    ($($kind:ty),*) => {$(
        impl<P: LineBuffer> Put<P> for $kind {
            #[inline]
            fn put(&self, line: &mut P) {
                line.decimal(*self as u64);
            }
        }
    )*};
}
decimal!(u8, u16, u32, u64, usize);

macro_rules! signed {
    ($($kind:ty),*) => {$(
        impl<P: LineBuffer> Put<P> for $kind {
            #[inline]
            fn put(&self, line: &mut P) {
                text::put_i64(line.buffer(), (*self).into());
            }
        }
    )*};
}
signed!(i8, i16, i32, i64);

/// A number in hexadecimal, without `0x`.
pub(crate) struct Hex<N>(pub(crate) N);
/// A number in hexadecimal, and the number of digits to which it is padded with zeros.
pub(crate) struct HexWide<N>(pub(crate) N, pub(crate) u32);
/// A number in decimal, and the number of digits to which it is padded with zeros.
pub(crate) struct Padded<N>(pub(crate) N, pub(crate) usize);
/// A piece, and the number of columns to which it is padded on the right, like printf's `%-*s`.
pub(crate) struct Left<A>(pub(crate) A, pub(crate) usize);
/// A number, and the number of columns to which it is padded on the left, like printf's `%*d`.
pub(crate) struct Right<N>(pub(crate) N, pub(crate) usize);
/// The text that a function writes.
pub(crate) struct Written<F>(F);
/// Bytes in hexadecimal without separators.
pub(crate) struct HexBytes<'a>(pub(crate) &'a [u8]);
/// Text from outside, and whether it is printed raw; otherwise bytes that could forge a line or control a terminal
/// become `?`.
pub(crate) struct Outside<'a>(pub(crate) &'a [u8], pub(crate) bool);

impl<P: LineBuffer, N: Into<u64> + Copy> Put<P> for Hex<N> {
    #[inline]
    fn put(&self, line: &mut P) {
        text::put_hex(line.buffer(), self.0.into());
    }
}

impl<P: LineBuffer, N: Into<u64> + Copy> Put<P> for HexWide<N> {
    fn put(&self, line: &mut P) {
        let (number, out): (u64, _) = (self.0.into(), line.buffer());
        let digits = 16 - number.leading_zeros() / 4;
        (digits.max(1)..self.1).for_each(|_| out.push(b'0'));
        text::put_hex(out, number);
    }
}

impl<P: LineBuffer, N: Into<u64> + Copy> Put<P> for Padded<N> {
    fn put(&self, line: &mut P) {
        let number = self.0.into();
        (text::u64_len(number)..self.1).for_each(|_| line.text("0"));
        line.decimal(number);
    }
}

impl<P: LineBuffer, A: Put<P>> Put<P> for Left<A> {
    #[inline]
    fn put(&self, line: &mut P) {
        let end = line.buffer().len() + self.1;
        self.0.put(line);
        let out = line.buffer();
        if out.len() < end {
            out.resize(end, b' ');
        }
    }
}

impl<P: LineBuffer> Put<P> for Right<u64> {
    #[inline]
    fn put(&self, line: &mut P) {
        let out = line.buffer();
        out.resize(out.len() + self.1.saturating_sub(text::u64_len(self.0)), b' ');
        line.decimal(self.0);
    }
}

impl<P: LineBuffer> Put<P> for Right<i32> {
    fn put(&self, line: &mut P) {
        let (out, number) = (line.buffer(), u64::from(self.0.unsigned_abs()));
        let len = text::u64_len(number) + usize::from(self.0 < 0);
        out.resize(out.len() + self.1.saturating_sub(len), b' ');
        text::put_i64(out, self.0.into());
    }
}

/// Returns what `write` writes as a piece.
pub(crate) fn written<F: Fn(&mut Vec<u8>)>(write: F) -> Written<F> {
    Written(write)
}

impl<P: LineBuffer, F: Fn(&mut Vec<u8>)> Put<P> for Written<F> {
    #[inline]
    fn put(&self, line: &mut P) {
        self.0(line.buffer());
    }
}

impl<P: LineBuffer, A: Put<P>> Put<P> for Option<A> {
    #[inline]
    fn put(&self, line: &mut P) {
        if let Some(piece) = self {
            piece.put(line);
        }
    }
}

/// The first piece if it is there, otherwise the second: a name, or a number without a name.
impl<P: LineBuffer, A: Put<P>, B: Put<P>> Put<P> for Result<A, B> {
    #[inline]
    fn put(&self, line: &mut P) {
        match self {
            Ok(piece) => piece.put(line),
            Err(piece) => piece.put(line),
        }
    }
}

impl<P: LineBuffer> Put<P> for HexBytes<'_> {
    fn put(&self, line: &mut P) {
        self.0.iter().for_each(|&byte| HexWide(byte, 2).put(line));
    }
}

impl<P: LineBuffer> Put<P> for Outside<'_> {
    #[inline]
    fn put(&self, line: &mut P) {
        text::put_face(line.buffer(), self.0, self.1);
    }
}

impl<P: ?Sized> Put<P> for () {
    #[inline]
    fn put(&self, _: &mut P) {}
}

/// A piece, and the pieces after it.
impl<P: ?Sized, A: Put<P>, B: Put<P>> Put<P> for (A, B) {
    #[inline]
    fn put(&self, line: &mut P) {
        self.0.put(line);
        self.1.put(line);
    }
}

/// Returns the text if the condition holds, otherwise none.
pub(crate) fn when(condition: bool, text: &str) -> &str {
    if condition { text } else { "" }
}

/// Appends each piece: `put!(out, "length ", length)`. All are read before the first is written: if the bytes of a
/// packet end in any of them, no piece is printed.
macro_rules! put {
    ($line:expr, $($piece:expr),+ $(,)?) => {
        $crate::pieces::Put::put(&$crate::pieces::list!($($piece),+), &mut *$line)
    };
}
pub(crate) use put;

macro_rules! list {
    () => { () };
    ($first:expr $(, $rest:expr)*) => { ($first, $crate::pieces::list!($($rest),*)) };
}
pub(crate) use list;

/// Makes a function that returns the name of a number, with several names a line:
/// `names! { fn name(u8): 1 => "icmp", 6 => "tcp" }`.
macro_rules! names {
    ($(#[$doc:meta])* $vis:vis fn $function:ident($kind:ty): $($number:pat => $name:literal),+ $(,)?) => {
        $(#[$doc])*
        $vis fn $function(number: $kind) -> Option<&'static str> {
            Some(match number {
                $($number => $name,)+
                _ => return None,
            })
        }
    };
}
pub(crate) use names;

/// Returns the word of a number in a table.
pub(crate) fn word_of<K: PartialEq + Copy>(table: &[(K, &'static str)], key: K) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == key).map(|(_, word)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_printf_fills_them() {
        let mut out = Vec::new();
        put!(&mut out, Right(42_u64, 5), Right(1234_u64, 3), Right(-42_i32, 5), Right(i32::MIN, 2));
        put!(&mut out, Left(-1_i64, 4), Left(123_u8, 2), Padded(7_u8, 2), Padded(123_u8, 2), HexWide(10_u8, 2));
        assert_eq!(String::from_utf8_lossy(&out), "   421234  -42-2147483648-1  123071230a");
    }
}
