//! BOOTP and DHCP (RFC 951, RFC 2131): a request's sender, and how long the message is. What `-v` adds is not told.

use super::bytes::{Printed, array, u8_at};
use super::line::Line;
use super::pieces::{HexWide, put};

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ETHERNET: u8 = 1;
/// Where the client's hardware address stands.
const ADDRESS: usize = 28;
const ADDRESS_BYTES: usize = 6;

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "bootp";
    line.or_cut(|line| put_message(line, bytes, length));
    Ok(())
}

fn put_message(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    let operation = u8_at(bytes, 0)?;
    put!(line, "BOOTP/DHCP, ");
    match operation {
        REQUEST => put!(line, "Request"),
        REPLY => put!(line, "Reply"),
        _ => put!(line, "unknown (0x", HexWide(operation.into(), 2), ")"),
    }
    let (kind, len) = (u8_at(bytes, 1)?, usize::from(u8_at(bytes, 2)?));
    if (kind, len, operation) == (ETHERNET, ADDRESS_BYTES, REQUEST) {
        let address: [u8; ADDRESS_BYTES] = array(bytes, ADDRESS)?;
        put!(line, " from ");
        line.ethernet(&address);
    }
    put!(line, ", length ", length);
    Ok(())
}
