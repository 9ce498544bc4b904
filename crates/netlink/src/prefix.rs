//! Reads numbers at fixed offsets of a kernel struct that may be longer or shorter than the one we know.
//!
//! An offset beyond the end gives `None`: an older kernel did not have that member, which is not the same as zero.
//! Offsets are those in the C struct. Reading has no cost beyond a bounds check and never panics.

macro_rules! readers {
    ($($(#[$doc:meta])* $name:ident: $number:ty, $from:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(bytes: &[u8], offset: usize) -> Option<$number> {
            let end = offset.checked_add(size_of::<$number>())?;
            Some(<$number>::$from(bytes.get(offset..end)?.try_into().ok()?))
        }
    )*};
}

readers! {
    /// A byte.
    u8_at: u8, from_ne_bytes;
    /// A number in the machine's byte order.
    u16_at: u16, from_ne_bytes;
    /// A number in the machine's byte order.
    u32_at: u32, from_ne_bytes;
    /// A number in the machine's byte order.
    u64_at: u64, from_ne_bytes;
    /// A signed number in the machine's byte order.
    i32_at: i32, from_ne_bytes;
    /// A number in network byte order (ports).
    be16_at: u16, from_be_bytes;
    /// A number in network byte order.
    be32_at: u32, from_be_bytes;
    /// A number in network byte order.
    be64_at: u64, from_be_bytes;
}

/// `N` bytes.
#[inline]
pub fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_and_beyond() {
        let bytes = [1, 2, 3, 4, 5];
        assert_eq!(u8_at(&bytes, 4), Some(5));
        assert_eq!(be16_at(&bytes, 3), Some(0x0405));
        assert_eq!(be16_at(&bytes, 4), None);
        assert_eq!(u32_at(&bytes, 1), Some(u32::from_ne_bytes([2, 3, 4, 5])));
        assert_eq!(u64_at(&bytes, 0), None);
        assert_eq!(u32_at(&bytes, usize::MAX), None);
        assert_eq!(array_at::<2>(&bytes, 1), Some([2, 3]));
        assert_eq!(array_at::<2>(&bytes, usize::MAX), None);
    }
}
