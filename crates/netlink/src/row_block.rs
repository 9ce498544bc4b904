//! Blocks of rows, as our BPF programs write them while walking a kernel table.
//!
//! A block is a header of 32 bytes followed by rows, in the machine's byte order. A row consists of a fixed base, its
//! optional parts and its addresses; its first byte is its length in units of 4 bytes. The header states which parts
//! the rows have, so that a block from a recording can be decoded without further knowledge. Blocks may come from a
//! hostile file: every length is checked. The crate that reads the table knows the meaning of bases and parts.
use crate::DecodeError;
use crate::prefix::{u32_at, u64_at};

/// Size of a header in bytes: magic, parts u32; jiffies, monotonic time in ns u64; two program-specific words u32.
const HEADER: usize = 32;
/// Offset of the first program-specific word.
const OWN_WORD: usize = 24;

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// One bit for each part that the rows of the block have.
    pub parts: u32,
    /// Kernel ticks per second; at least 1.
    pub hz: u32,
    /// A word with a program-specific meaning.
    pub own_word: u32,
}

impl BlockHeader {
    /// Reads the header of a block that begins with `magic` and has no parts except `known_parts`.
    ///
    /// Fails with [`DecodeError::Short`] if the block is something else.
    pub fn parse(block: &[u8], magic: u32, known_parts: u32) -> Result<BlockHeader, DecodeError> {
        let not_a_block = DecodeError::Short { what: "block of the walk", claims: HEADER, has: block.len() };
        let header = block.get(..HEADER).ok_or(not_a_block)?;
        let word = |at| u32_at(header, at).ok_or(not_a_block);
        let wide = |at| u64_at(header, at).ok_or(not_a_block);
        let (parts, own_word) = (word(4)?, word(OWN_WORD)?);
        if word(0)? != magic || parts & !known_parts != 0 {
            return Err(not_a_block);
        }
        let hz = sys::clock::jiffies_per_second(wide(8)?, wide(16)?).max(1);
        Ok(BlockHeader { parts, hz, own_word })
    }

    /// The bytes of a header from a kernel with 250 ticks per second, for tests and the fuzzer.
    pub fn bytes(magic: u32, parts: u32, own_word: u32) -> [u8; HEADER] {
        let (jiffies, monotonic_ns) = ((1u64 << 32) + 700 * 250, 1_000_000_000_000u64);
        let words = [u64::from(magic) | u64::from(parts) << 32, jiffies, monotonic_ns, own_word.into()];
        let mut header = [0; HEADER];
        header.chunks_exact_mut(8).zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_ne_bytes()));
        header
    }

    /// True if every row has this part.
    pub fn has_part(&self, part: u32) -> bool {
        self.parts & part != 0
    }

    /// A number that is equal for two blocks if equal bytes in them mean the same row.
    pub fn layout(&self) -> u64 {
        u64::from(self.parts) << 32 | u64::from(self.hz)
    }
}

/// The offsets of the parts that the rows of a block have.
#[derive(Debug)]
pub struct PartOffsets {
    parts: u32,
    next: usize,
}

impl PartOffsets {
    /// Starts at `first`, the offset of the first part.
    pub fn new(header: &BlockHeader, first: usize) -> PartOffsets {
        PartOffsets { parts: header.parts, next: first }
    }

    /// The offset of a part of `bytes` bytes, `None` if the rows lack it. Call it in the order of the parts in the
    /// row.
    pub fn take_offset(&mut self, part: u32, bytes: usize) -> Option<usize> {
        let offset = (self.parts & part != 0).then_some(self.next)?;
        self.next += bytes;
        Some(offset)
    }

    /// The offset after the parts requested so far.
    pub fn end(&self) -> usize {
        self.next
    }
}

/// The rows of a block, one after another. A row with an invalid length is returned as an error and ends the iteration.
#[derive(Debug, Clone)]
pub struct BlockRows<'b> {
    rest: &'b [u8],
    base: usize,
}

impl<'b> BlockRows<'b> {
    /// The rows after the header of `block`; each has at least `base` bytes.
    pub fn new(block: &'b [u8], base: usize) -> BlockRows<'b> {
        BlockRows { rest: block.get(HEADER..).unwrap_or_default(), base }
    }
}

impl<'b> Iterator for BlockRows<'b> {
    type Item = Result<&'b [u8], DecodeError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let size = usize::from(*self.rest.first()?) * 4;
        let Some((row, rest)) = self.rest.split_at_checked(size).filter(|_| size >= self.base) else {
            let (claims, has) = (size.max(self.base), self.rest.len());
            self.rest = &[];
            return Some(Err(DecodeError::Short { what: "row of the walk", claims, has }));
        };
        self.rest = rest;
        Some(Ok(row))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MAGIC: u32 = 0x316b_776e;

    #[test]
    fn headers_say_what_was_put() {
        let block = BlockHeader::bytes(MAGIC, 5, 7);
        let header = BlockHeader::parse(&block, MAGIC, 7).unwrap();
        assert_eq!(header, BlockHeader { parts: 5, hz: 250, own_word: 7 });
        assert!(header.has_part(4) && !header.has_part(2));
        assert!(BlockHeader::parse(&block, MAGIC, 4).is_err(), "a part that is not known");
        assert!(BlockHeader::parse(&block, MAGIC + 1, 7).is_err());
        assert!(BlockHeader::parse(&block[..HEADER - 1], MAGIC, 7).is_err());
    }

    #[test]
    fn parts_follow_one_another() {
        let mut offsets = PartOffsets::new(&BlockHeader { parts: 0b101, hz: 250, own_word: 0 }, 24);
        assert_eq!([1, 2, 4].map(|part| offsets.take_offset(part, 8)), [Some(24), None, Some(32)]);
        assert_eq!(offsets.end(), 40);
    }

    #[test]
    fn a_length_that_makes_no_sense_ends_the_rows() {
        let mut block = BlockHeader::bytes(MAGIC, 0, 0).to_vec();
        block.extend([2, 0, 0, 0, 1, 1, 1, 1]);
        for odd in [0, 1, 3] {
            let mut block = block.clone();
            block.extend([odd, 0, 0, 0, 2, 2, 2, 2]);
            let mut rows = BlockRows::new(&block, 8);
            assert_eq!(rows.next().unwrap().unwrap(), [2, 0, 0, 0, 1, 1, 1, 1]);
            assert!(matches!(rows.next(), Some(Err(DecodeError::Short { has: 8, .. }))));
            assert!(rows.next().is_none());
        }
    }
}
