//! The link layer discovery protocol (IEEE 802.1AB): how long it is, and the system's name. What `-v` adds is not
//! told.

use super::bytes::{Printed, be16, behind, part};
use super::line::Line;
use super::pieces::put;

const HEADER_BYTES: usize = 2;
const END: u16 = 0;
const SYSTEM_NAME: u16 = 5;

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "lldp";
    put!(line, "LLDP, length ", length);
    line.or_cut(|line| put_entries(line, bytes, length));
    Ok(())
}

fn put_entries(line: &mut Line<'_>, mut bytes: &[u8], mut length: usize) -> Printed {
    while length >= HEADER_BYTES {
        let head = be16(bytes, 0)?;
        let (kind, len) = (head >> 9, usize::from(head & 0x1ff));
        (bytes, length) = (behind(bytes, HEADER_BYTES), length - HEADER_BYTES);
        // The end, or an entry that should say something.
        if len == 0 || kind == END {
            return Ok(());
        }
        let entry = part(bytes, 0, len)?;
        if kind == SYSTEM_NAME {
            put!(line, ": ");
            line.safe_text(entry.split(|byte| *byte == 0).next().unwrap_or(entry));
        }
        (bytes, length) = (behind(bytes, len), length.saturating_sub(len));
    }
    Ok(())
}
