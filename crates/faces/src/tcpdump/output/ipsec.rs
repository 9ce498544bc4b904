//! IPsec: encapsulating security payload (RFC 4303) and authentication header (RFC 4302). Nothing is deciphered.

use super::bytes::{Printed, be16, be32, u8_at};
use super::line::Line;
use super::pieces::{Hex, HexWide, put, put_last};

const ESP_BYTES: usize = 8;
const AH_BYTES: usize = 12;

/// Prints an encapsulated packet of `length` bytes.
pub(super) fn esp(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "esp";
    if bytes.len() <= ESP_BYTES {
        return line.end_cut();
    }
    let (spi, sequence) = (be32(bytes, 0)?, be32(bytes, 4)?);
    put_last!(line, "ESP(spi=0x", HexWide(spi, 8), ",seq=0x", Hex(sequence), "), length ", length)
}

/// Prints an authentication header; returns the protocol after it and its length, if it is whole.
pub(super) fn ah(line: &mut Line<'_>, bytes: &[u8]) -> Printed<Option<(u8, usize)>> {
    line.protocol = "ah";
    let next = u8_at(bytes, 0)?;
    put!(line, "AH");
    let words = usize::from(u8_at(bytes, 1)?);
    let header = (words + 2) * 4;
    put!(line, "(");
    if line.verbose() > 0 {
        put!(line, "length=", words, "(", header, "-bytes),");
    }
    match be16(bytes, 2)? {
        0 => {}
        reserved => put!(line, "reserved=0x", Hex(reserved), "[MustBeZero],"),
    }
    put!(line, "spi=0x", HexWide(be32(bytes, 4)?, 8), ",");
    put!(line, "seq=0x", Hex(be32(bytes, 8)?), ",icv=0x");
    for at in AH_BYTES..header {
        let Ok(byte) = u8_at(bytes, at) else {
            line.cut();
            return Ok(None);
        };
        put!(line, HexWide(byte, 2));
    }
    put!(line, "): ");
    Ok(Some((next, header)))
}

/// Prints a compressed packet (RFC 3173).
pub(super) fn compressed(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    line.protocol = "ipcomp";
    if bytes.len() < 4 {
        return line.end_cut();
    }
    put_last!(line, "IPComp(cpi=0x", HexWide(be16(bytes, 2)?, 4), ")")
}
