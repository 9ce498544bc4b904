//! A packet as it comes to the printer.

use record::rows::LinkType;

/// One packet as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct CapturedBytes<'f> {
    /// The kind of header that the bytes begin with.
    pub link_type: LinkType,
    /// The captured bytes.
    pub bytes: &'f [u8],
    /// Bytes that the packet had.
    pub len: u32,
    /// When, in ns since 1970.
    pub time_ns: u64,
}
