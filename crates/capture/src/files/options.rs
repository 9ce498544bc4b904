//! Numbers in the byte order of a file, and the options of pcapng blocks.

use super::blocks;

/// The byte order of a file, or of a pcapng section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    is_big_endian: bool,
}

impl Order {
    pub(super) const LITTLE: Order = Order { is_big_endian: false };

    #[inline]
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    pub(super) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
        Some(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// The byte order in which `magic` is this number.
    pub(super) fn of_magic(magic: [u8; 4], number: u32) -> Option<Order> {
        let is_big_endian = u32::from_be_bytes(magic) == number;
        (is_big_endian || u32::from_le_bytes(magic) == number).then_some(Order { is_big_endian })
    }

    pub(super) fn is_big_endian(self) -> bool {
        self.is_big_endian
    }
}

/// Codes and values of a block's options, up to the first incomplete one.
pub(super) struct BlockOptions<'b> {
    rest: &'b [u8],
    read: Order,
}

impl<'b> BlockOptions<'b> {
    pub(super) fn new(bytes: &'b [u8], read: Order) -> BlockOptions<'b> {
        BlockOptions { rest: bytes, read }
    }
}

impl<'b> Iterator for BlockOptions<'b> {
    type Item = (u16, &'b [u8]);

    fn next(&mut self) -> Option<(u16, &'b [u8])> {
        let (code, length) = (self.read.u16(self.rest, 0)?, usize::from(self.read.u16(self.rest, 2)?));
        let value = self.rest.get(4..4 + length).filter(|_| code != 0)?;
        self.rest = self.rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    }
}

/// Custom options; their value starts with a private enterprise number.
const CUSTOM: [u16; 4] = [2988, 2989, 19372, 19373];

/// The options of a block, as the bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions<'f> {
    bytes: &'f [u8],
    read: Order,
}

impl<'f> FileOptions<'f> {
    /// An empty list of options.
    pub(super) const NONE: FileOptions<'static> = FileOptions { bytes: &[], read: Order::LITTLE };

    /// The options of an interface with time stamps in ns.
    pub(super) const NANOSECONDS: FileOptions<'static> =
        FileOptions { bytes: &[9, 0, 1, 0, 9, 0, 0, 0], read: Order::LITTLE };

    pub(super) fn new(bytes: &'f [u8], read: Order) -> FileOptions<'f> {
        FileOptions { bytes, read }
    }

    /// True if the block has no options.
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// True if the block has an option with this code.
    pub fn has(self, code: u16) -> bool {
        self.each().any(|(each, _)| each == code)
    }

    /// Code and value of each option, in the order of the file.
    pub fn each(self) -> impl Iterator<Item = (u16, &'f [u8])> {
        BlockOptions::new(self.bytes, self.read)
    }

    /// Appends the options with numbers in little-endian order, without the end-of-options marker. `kind` is the type
    /// of the block, which determines the values that are numbers.
    pub fn put_little_endian(self, kind: u32, out: &mut Vec<u8>) {
        for (code, value) in self.each() {
            out.extend_from_slice(&code.to_le_bytes());
            // The length was read as 16 bits.
            out.extend_from_slice(&(value.len() as u16).to_le_bytes());
            match number_bytes(kind, code) {
                _ if !self.read.is_big_endian => out.extend_from_slice(value),
                _ if CUSTOM.contains(&code) => {
                    let (enterprise, rest) = value.split_at(value.len().min(4));
                    out.extend(enterprise.iter().rev());
                    out.extend_from_slice(rest);
                }
                1 => out.extend_from_slice(value),
                bytes => value.chunks(bytes).for_each(|number| out.extend(number.iter().rev())),
            }
            out.extend_from_slice([0; 3].get(..value.len().wrapping_neg() % 4).unwrap_or_default());
        }
    }
}

/// Size of each number in the value of an option; 1 for text, addresses and unknown options.
fn number_bytes(kind: u32, code: u16) -> usize {
    match (kind, code) {
        // if_speed, if_tsoffset, if_txspeed, if_rxspeed
        (blocks::INTERFACE, 8 | 14 | 16 | 17) => 8,
        // if_tzone
        (blocks::INTERFACE, 10) => 4,
        // epb_flags, epb_queue
        (blocks::PACKET, 2 | 6) => 4,
        // epb_dropcount, epb_packetid
        (blocks::PACKET, 4 | 5) => 8,
        // isb_starttime, isb_endtime: each in two halves.
        (blocks::STATISTICS, 2 | 3) => 4,
        (blocks::STATISTICS, 4..=8) => 8,
        _ => 1,
    }
}
