//! Netlink attributes: (length, kind, payload) in a row, padded to four bytes.
use std::fmt;

use crate::prefix;

/// `struct nlattr` (include/uapi/linux/netlink.h): len u16 (including this head), type u16.
const HEADER_BYTES: usize = 4;

/// `NLA_TYPE_MASK`: the two upper bits mean "nested" and "network byte order" and are not part of the kind.
const KIND_MASK: u16 = 0x3fff;

/// `NLA_ALIGN`.
pub(crate) const fn aligned(length: usize) -> usize {
    (length + 3) & !3
}

/// An attribute whose length is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttrError {
    /// Its kind; 0 if even its head is missing.
    pub attr: u16,
    /// Number of bytes that it claims or that its reader needs.
    pub claims: usize,
    /// Number of bytes available.
    pub has: usize,
}

impl fmt::Display for AttrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attribute {} claims {} bytes, {} are present", self.attr, self.claims, self.has)
    }
}

impl std::error::Error for AttrError {}

/// An attribute; borrows the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr<'m> {
    /// Its kind, as the family defines it; flag bits are masked.
    pub kind: u16,
    /// Its contents without head and padding.
    pub payload: &'m [u8],
}

macro_rules! readers {
    ($($(#[$doc:meta])* $name:ident: $number:ty, $at:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&self) -> Result<$number, AttrError> {
            prefix::$at(self.payload, 0).ok_or(self.short_error(size_of::<$number>()))
        }
    )*};
}

impl<'m> Attr<'m> {
    readers! {
        /// The payload's first byte.
        u8: u8, u8_at;
        /// The payload's first two bytes, in the machine's byte order.
        u16: u16, u16_at;
        /// The payload's first four bytes, in the machine's byte order.
        u32: u32, u32_at;
        /// The payload's first eight bytes, in the machine's byte order.
        u64: u64, u64_at;
        /// The payload's first four bytes, signed, in the machine's byte order.
        i32: i32, i32_at;
        /// The payload's first two bytes, in network byte order.
        be16: u16, be16_at;
        /// The payload's first four bytes, in network byte order.
        be32: u32, be32_at;
        /// The payload's first eight bytes, in network byte order.
        be64: u64, be64_at;
    }

    /// The payload's first `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&self) -> Result<[u8; N], AttrError> {
        prefix::array_at(self.payload, 0).ok_or(self.short_error(N))
    }

    /// A reference to the payload's first `N` bytes, which avoids copying long ones.
    #[inline]
    pub fn chunk<const N: usize>(&self) -> Result<&'m [u8; N], AttrError> {
        self.payload.first_chunk().ok_or(self.short_error(N))
    }

    /// The payload up to its first NUL: a C string in any encoding.
    #[inline]
    pub fn c_str(&self) -> &'m [u8] {
        // The kernel's texts end with their NUL; eight bytes are checked at a time.
        let (chunks, mut at) = (self.payload.chunks_exact(8), 0);
        for chunk in chunks.filter_map(|chunk| chunk.first_chunk()) {
            let word = u64::from_le_bytes(*chunk);
            // The lowest of these bits belongs to the first zero byte.
            let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
            if zeros != 0 {
                at += (zeros.trailing_zeros() / 8) as usize;
                return self.payload.get(..at).unwrap_or_default();
            }
            at += 8;
        }
        let rest = self.payload.get(at..).unwrap_or_default();
        at += rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        self.payload.get(..at).unwrap_or_default()
    }

    /// The nested attributes.
    #[inline]
    pub fn nested(&self) -> Attrs<'m> {
        Attrs::new(self.payload)
    }

    fn short_error(&self, claims: usize) -> AttrError {
        AttrError { attr: self.kind, claims, has: self.payload.len() }
    }
}

/// The attributes in a part of a message, in order. The first invalid one is returned as an error and ends the
/// iteration.
#[derive(Debug, Clone)]
pub struct Attrs<'m> {
    rest: &'m [u8],
}

impl<'m> Attrs<'m> {
    /// Starts at the first attribute's head.
    #[inline]
    pub fn new(bytes: &'m [u8]) -> Attrs<'m> {
        Attrs { rest: bytes }
    }

    fn end_with_error(&mut self, attr: u16, claims: usize) -> Option<Result<Attr<'m>, AttrError>> {
        let has = self.rest.len();
        self.rest = &[];
        Some(Err(AttrError { attr, claims, has }))
    }
}

impl<'m> Iterator for Attrs<'m> {
    type Item = Result<Attr<'m>, AttrError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(([l0, l1, k0, k1], _)) = self.rest.split_first_chunk::<HEADER_BYTES>() else {
            return self.end_with_error(0, HEADER_BYTES);
        };
        let length = usize::from(u16::from_ne_bytes([*l0, *l1]));
        let kind = u16::from_ne_bytes([*k0, *k1]) & KIND_MASK;
        // A length below the size of the head would make no progress.
        let Some(payload) = self.rest.get(HEADER_BYTES..length) else {
            return self.end_with_error(kind, length);
        };
        // The last one's padding may be missing.
        self.rest = self.rest.get(aligned(length)..).unwrap_or_default();
        Some(Ok(Attr { kind, payload }))
    }
}

impl std::iter::FusedIterator for Attrs<'_> {}

/// Reads bytes as attributes, nested up to eight levels, with every reader. For the fuzzer: it must neither panic nor
/// loop forever. Returns the number of attributes.
pub fn fuzz_attrs(data: &[u8]) -> usize {
    walk(Attrs::new(data), 8)
}

fn walk(attrs: Attrs<'_>, deep: usize) -> usize {
    let mut count = 0;
    for attr in attrs {
        let Ok(attr) = attr else { break };
        assert!(attr.kind <= KIND_MASK);
        let _ = (attr.u8(), attr.u16(), attr.u32(), attr.u64(), attr.i32());
        let _ = (attr.be16(), attr.be32(), attr.be64(), attr.array::<16>(), attr.c_str());
        count += 1;
        if deep > 0 {
            count += walk(attr.nested(), deep - 1);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn attr(length: u16, kind: u16, rest: &[u8]) -> Vec<u8> {
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), rest].concat()
    }

    #[test]
    fn flag_bits_are_no_part_of_the_kind() {
        let bytes = attr(5, 0xc003, &[9]);
        let all: Vec<_> = Attrs::new(&bytes).collect();
        assert_eq!(all, [Ok(Attr { kind: 3, payload: &[9] })], "and the last padding may be missing");
    }

    #[test]
    fn lengths_that_do_not_fit() {
        let error = |bytes: &[u8]| {
            let mut attrs = Attrs::new(bytes);
            let error = attrs.next().unwrap().unwrap_err();
            assert_eq!(attrs.next(), None, "nothing behind an error");
            error
        };
        assert_eq!(error(&attr(9, 3, &[1, 2, 3, 4])), AttrError { attr: 3, claims: 9, has: 8 });
        assert_eq!(error(&attr(3, 3, &[])), AttrError { attr: 3, claims: 3, has: 4 });
        assert_eq!(error(&attr(0, 3, &[])), AttrError { attr: 3, claims: 0, has: 4 });
        assert_eq!(error(&[1, 2]), AttrError { attr: 0, claims: 4, has: 2 });
    }

    #[test]
    fn longer_is_a_prefix_shorter_is_an_error() {
        let attr = Attr { kind: 8, payload: &[0, 1, 2, 3, 4, 5] };
        assert_eq!((attr.be16(), attr.be32(), attr.u8()), (Ok(1), Ok(0x0001_0203), Ok(0)));
        assert_eq!(attr.u16(), Ok(u16::from_ne_bytes([0, 1])));
        assert_eq!(attr.u64(), Err(AttrError { attr: 8, claims: 8, has: 6 }));
        assert_eq!(attr.array::<2>(), Ok([0, 1]));
        assert_eq!(attr.u64().unwrap_err().to_string(), "attribute 8 claims 8 bytes, 6 are present");
    }

    #[test]
    fn strings_end_at_their_nul() {
        assert_eq!(Attr { kind: 1, payload: b"cubic\0\0" }.c_str(), b"cubic");
        assert_eq!(Attr { kind: 1, payload: b"cubic" }.c_str(), b"cubic");
        assert_eq!(Attr { kind: 1, payload: b"" }.c_str(), b"");
    }
}
