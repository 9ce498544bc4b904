//! Rows as syslog messages, in the new format (RFC 5424) and the old one (RFC 3164).
//!
//! The writers take cells and append bytes to the caller's buffer. They know no connection and no file;
//! [`frame_octets`] and [`frame_line`] mark the end of a message in a stream (RFC 6587), and a datagram needs neither.
//! For any row, a message is one line of valid UTF-8 without control bytes, and can be read back without loss. Start
//! reading at [`Rfc5424`].

mod frame;
mod fuzz;
mod pairs;
mod priority;
mod rfc3164;
mod rfc5424;
mod words;

pub use frame::{frame_line, frame_octets};
pub use fuzz::fuzz_syslog_formats;
pub use priority::Priority;
pub use rfc3164::Rfc3164;
pub use rfc5424::{Rfc5424, SEQUENCE_ID_MAX};

use record::Value;

/// Program name in every message.
const APP_NAME: &str = "netwren";

/// The sender of messages.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'o> {
    /// Name of this host. Bytes that are not allowed there become `?`; an empty name is written as `-`.
    pub hostname: &'o str,
    /// Process ID of this process.
    pub pid: u32,
    /// Facility and severity.
    pub priority: Priority,
}

/// A row to send.
#[derive(Clone, Copy, Debug)]
pub struct Message<'m> {
    /// Time of the event, in ns since 1970.
    pub time_ns: u64,
    /// Number of the message, starting at 1. In messages it has 31 bits and continues with 1 after the maximum.
    pub sequence_id: u64,
    /// Type of the message, for example the hook of log records: one of our own words. An empty one is written as `-`.
    pub msgid: &'static str,
    /// The row's cells in the order of the columns.
    pub cells: &'m [Value<'m>],
    /// The text for people; `None` writes the cells as `key=value`. A newline at its end is omitted.
    pub text: Option<&'m [u8]>,
}
