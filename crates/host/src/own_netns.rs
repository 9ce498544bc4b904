//! The calling thread's network namespace.
use record::text::put_u64;
use sys::{Host, netns};

use crate::HostError;

/// Inode of the calling thread's network namespace; in a replay the recorded run's.
pub fn current(host: &Host) -> Result<u64, HostError> {
    let mut text = Vec::new();
    host.bytes("netns", "", &mut text, |into| {
        put_u64(into, netns::current_inode()?);
        Ok(())
    })?;
    parse_inode(&text)
}

/// Parses an inode of a recording: decimal digits.
pub(crate) fn parse_inode(text: &[u8]) -> Result<u64, HostError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or(HostError::Garbled { what: "inode of a network namespace", at: 0 })
}
