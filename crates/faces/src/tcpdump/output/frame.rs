//! A packet, as the printer receives it.

use record::FarTime;
use record::rows::LinkType;

/// One packet as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct CapturedBytes<'f> {
    /// The type of the header at the beginning of the bytes.
    pub link_type: LinkType,
    /// The captured bytes.
    pub bytes: &'f [u8],
    /// Length of the packet on the wire.
    pub len: u32,
    /// When, in ns since 1970; the nearest to `far` if that is set.
    pub time_ns: u64,
    /// The time, if it is before 1970 or after 2554.
    pub far: Option<FarTime>,
}
