//! VXLAN (RFC 7348): `VXLAN, flags [I] (0x08), vni 42`, and the frame within on its own line.

use super::bytes::{Printed, be24, behind, u8_at};
use super::line::{Inner, Line};
use super::pieces::{HexWide, put, put_last};

const HEADER: usize = 8;
const HAS_VNI: u8 = 0x08;

/// Appends a datagram.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "vxlan";
    put!(line, "VXLAN");
    if length < HEADER {
        return put_last!(line, " (invalid)");
    }
    let flags = u8_at(bytes, 0)?;
    let word = if flags & HAS_VNI != 0 { "I" } else { "invalid" };
    put!(line, ", flags [", word, "] (0x", HexWide(flags, 2), "), ");
    put!(line, "vni ", be24(bytes, 4)?, "\n");
    u8_at(bytes, 7)?;
    line.inner(Inner::Ethernet, behind(bytes, HEADER), length - HEADER).map(|_| ())
}
