//! The parts of records that are in use.
use std::sync::atomic::{AtomicBool, AtomicU32};

/// Optional parts of records that are in use. A stream leaves the others out, which saves a tenth of its own work. They
/// may change while the stream is read.
#[derive(Debug, Default)]
pub struct WantedParts {
    /// Number of bytes to copy of each packet.
    pub copy_bytes: AtomicU32,
    /// The headers of packets, decoded ([`packet`](record::rows::LogRecord::packet)).
    pub headers: AtomicBool,
    /// The interfaces, and the header and address of the link layer.
    pub link: AtomicBool,
}
