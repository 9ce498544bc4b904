//! Portions of a hash chain that is too long for a program's region.
//!
//! A chain of a hash table that does not fit is read in several passes, each of which writes the objects of one
//! portion: those whose hashed address has certain bits. An object's address stays the same during its life. So even
//! if other objects come and go between the passes, an object that exists the whole time is written by exactly one of
//! them. A position within the chain would not work: it changes as soon as an object before it is removed.
use sys::Errno;

/// Maximum number of portions of one chain or list, as a power of two; each has some thousand rows. The kernel's loop
/// budget ends a pass over a chain earlier: after eight million objects or a quarter of a second.
///
/// Bound: halvings of a hash chain that is read in portions. Beyond: another interface reads the rest. By: a user with
/// gigabytes of kernel memory.
const BITS_MAX: u32 = 24;

/// The objects whose hash equals `bits` in the bits of `mask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portion {
    bits: u32,
    mask: u32,
}

impl Portion {
    /// Every object.
    pub(crate) const ALL: Portion = Portion { bits: 0, mask: 0 };

    /// Its two halves. ENOSPC if it is too small for that.
    pub(crate) fn split(self) -> Result<[Portion; 2], Errno> {
        let mask = self.mask << 1 | 1;
        let half = |bit| Portion { bits: self.bits | bit, mask };
        if mask >> BITS_MAX == 0 { Ok([half(0), half(mask ^ self.mask)]) } else { Err(Errno::NOSPC) }
    }

    /// Writes it into a program's context.
    pub(crate) fn put(self, context: &mut [u8], at: usize) {
        let words = [self.bits, self.mask].map(u32::to_ne_bytes);
        context.iter_mut().skip(at).zip(words.as_flattened()).for_each(|(place, byte)| *place = *byte);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn halves_are_all_of_it_and_nothing_twice() {
        let mut portions = vec![Portion::ALL];
        for _ in 0..4 {
            portions = portions.into_iter().flat_map(|portion| portion.split().unwrap()).collect();
        }
        assert_eq!(portions.len(), 16);
        for object in 0..1000u32 {
            let hash = object.wrapping_mul(0x9e37_79b9);
            let takes = |portion: &&Portion| (hash ^ portion.bits) & portion.mask == 0;
            assert_eq!(portions.iter().filter(takes).count(), 1);
        }
        let smallest = Portion { bits: 0, mask: (1 << BITS_MAX) - 1 };
        assert_eq!(smallest.split(), Err(Errno::NOSPC));
    }
}
