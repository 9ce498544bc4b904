//! Numbers in the byte order of a file, and the options of pcapng's blocks.

/// Reads numbers in the byte order of a file.
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

    /// The order in which `magic` is this number.
    pub(super) fn of_magic(magic: [u8; 4], number: u32) -> Option<Order> {
        let is_big_endian = u32::from_be_bytes(magic) == number;
        (is_big_endian || u32::from_le_bytes(magic) == number).then_some(Order { is_big_endian })
    }

    pub(super) fn is_big_endian(self) -> bool {
        self.is_big_endian
    }
}

/// Codes and values of a block's options, as far as they are whole.
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
