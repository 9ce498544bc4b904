//! DHCPv6 (RFC 8415): the type of the message; with `-v` its options.

mod message;
mod names;
mod values;
use super::bytes::Printed;
use super::line::Line;

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.or_cut(|line| message::put_message(line, bytes, length, 0));
    Ok(())
}
