//! Extensions of errors (RFC 4884): labels of MPLS (RFC 4950), interfaces (RFC 5837).

use super::super::bytes::{Printed, array, at_most, be16, be32, behind, part, u8_at};
use super::super::checksum;
use super::super::dump::put_hex_lines;
use super::super::line::Line;
use super::super::pieces::{HexWide, put, put_last, when};

/// The offset of the extensions, which follow 128 bytes of the quoted packet.
const FROM: usize = 136;
const HEADER_BYTES: usize = 4;
const OBJECT_BYTES: usize = 4;
const VERSION: u8 = 2;
const MPLS: u8 = 1;

/// Prints the extensions of a message of `length` bytes, if it has any.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    if length <= FROM {
        return Ok(());
    }
    part(bytes, FROM, HEADER_BYTES + 1)?;
    let size = length - FROM;
    let sum = part(bytes, FROM, size).ok().map(|all| checksum::sum(&[all]) == checksum::RIGHT);
    // If the message does not contain the length of the quoted packet, there are extensions only if the checksum is
    // correct.
    if u8_at(bytes, 5)? == 0 && sum == Some(false) {
        return Ok(());
    }
    let version = u8_at(bytes, FROM)? >> 4;
    put!(line, "\n\tICMP Multi-Part extension v", version);
    if version != VERSION {
        return put_last!(line, " packet not supported");
    }
    if let Some(is_right) = sum {
        let found = be16(bytes, FROM + 2)?;
        put!(line, ", checksum 0x", HexWide(found, 4), if is_right { " (correct)" } else { " (incorrect)" });
        put!(line, ", length ", size);
    }
    put_objects(line, behind(bytes, FROM + HEADER_BYTES), size.saturating_sub(HEADER_BYTES))
}

fn put_objects(line: &mut Line<'_>, bytes: &[u8], size: usize) -> Printed {
    let (mut bytes, mut left) = (bytes, size);
    while left > OBJECT_BYTES {
        let [high, low, class, kind] = array(bytes, 0)?;
        let len = usize::from(u16::from_be_bytes([high, low]));
        let name = match class {
            MPLS => "MPLS Stack Entry",
            2 => "Interface Identification",
            _ => "unknown",
        };
        put!(line, "\n\t  ", name, " Object (", class, "), Class-Type: ", kind, ", length ", len);
        (bytes, left) = (behind(bytes, OBJECT_BYTES), left - OBJECT_BYTES);
        let Some(len) = len.checked_sub(OBJECT_BYTES).filter(|_| class != 0) else { return Ok(()) };
        if (class, kind) == (MPLS, 1) {
            let entry = be32(bytes, 0)?;
            put!(line, "\n\t    label ", entry >> 12, ", tc ", entry >> 9 & 7, when(entry & 0x100 != 0, ", [S]"));
            put!(line, ", ttl ", entry & 0xff);
        } else {
            put_hex_lines(line.out, "\n\t    ", at_most(bytes, len), false);
        }
        if left < len {
            return Ok(());
        }
        (bytes, left) = (behind(bytes, len), left - len);
    }
    Ok(())
}
