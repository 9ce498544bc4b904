//! Rows as syslog messages, the new form (RFC 5424) and the old one (RFC 3164).
//!
//! Cells in, bytes out into the caller's buffer. Knows no connection and no file; [`frame_octets`] and
//! [`frame_line`] say where a message ends in a stream (RFC 6587), and a datagram needs neither. Whatever stands in a
//! row, a message is one line of valid UTF-8 without control bytes, and reads back as it was. Start reading at
//! [`Rfc5424`].

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

/// Name of the program in every message.
const APP_NAME: &str = "netwren";

/// Who sends.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'o> {
    /// Name of this host. Bytes that a message cannot have there become `?`; without any it is `-`.
    pub hostname: &'o str,
    /// Number of this process.
    pub pid: u32,
    /// Facility and severity.
    pub priority: Priority,
}

/// One row, to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Message<'m> {
    /// When it happened, in ns since 1970.
    pub time_ns: u64,
    /// Number of the message, from 1 on. In messages it has 31 bits and goes on from 1 after the last.
    pub sequence_id: u64,
    /// Kind of the message, the hook of log records say: one of our own words. `-` if it is empty.
    pub msgid: &'static str,
    /// The row's cells in the order of the columns.
    pub cells: &'m [Value<'m>],
    /// The text for people; `None` writes the cells as `key=value`. A line's end at its end is left out.
    pub text: Option<&'m [u8]>,
}
