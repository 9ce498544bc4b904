//! Renumbering of routers (RFC 2894): prefixes and their replacements.

use super::super::bytes::{Printed, array, be16, be32, behind, part, u8_at};
use super::super::line::Line;
use super::super::pieces::{Flags, Hex, put, put_last, when};
use record::Addr;

const HEADER_BYTES: usize = 16;
const MATCH_BYTES: usize = 24;
const USE_BYTES: usize = 32;
const COMMAND: u8 = 0;
const FLAGS: [(u32, &str); 5] = [(0x80, "T"), (0x40, "R"), (0x20, "A"), (0x10, "S"), (0x08, "P")];

/// Prints a message. If it is cut, its length follows `[|icmp6]`.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    if bytes.len() < HEADER_BYTES {
        return line.end_cut();
    }
    let code = u8_at(bytes, 1)?;
    match code {
        COMMAND => put!(line, ", command"),
        1 => put!(line, ", result"),
        255 => put!(line, ", sequence number reset"),
        _ => put!(line, ", code-#", code),
    }
    put!(line, ", seq=", be32(bytes, 4)?);
    if line.verbose() > 0 {
        let ([segment, flags], delay, reserved) = (array(bytes, 8)?, be16(bytes, 10)?, be32(bytes, 12)?);
        put!(line, "[");
        if flags != 0 {
            put!(line, Flags(&FLAGS, "", "", flags), ",");
        }
        put!(line, "seg=", segment, ",maxdelay=", delay);
        if reserved != 0 {
            put!(line, "rsvd=0x", Hex(reserved));
        }
        put!(line, "]");
    }
    if code == COMMAND && put_command(line, behind(bytes, HEADER_BYTES)).is_err() {
        line.cut();
    }
    Ok(())
}

fn put_command(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let found = part(bytes, 0, MATCH_BYTES)?;
    let [code, len, ordinal, bits, least, most] = array(found, 0)?;
    put!(line, if line.verbose() > 1 { "\n\t" } else { " " }, "match(");
    match code {
        1 => put!(line, "add"),
        2 => put!(line, "change"),
        3 => put!(line, "setglobal"),
        _ => put!(line, "#", code),
    }
    if line.verbose() > 0 {
        put!(line, ",ord=", ordinal, ",min=", least, ",max=", most);
    }
    put!(line, ",", Addr::V6(array(found, 8)?), "/", bits, ")");
    let uses = usize::from(len).checked_sub(3).filter(|words| words % 4 == 0).ok_or(super::super::bytes::Cut)? / 4;
    for nth in 0..uses {
        put_use(line, part(bytes, MATCH_BYTES + nth * USE_BYTES, USE_BYTES)?)?;
    }
    Ok(())
}

fn put_use(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let [new, kept, mask, advertised] = array(bytes, 0)?;
    put!(line, if line.verbose() > 1 { "\n\t" } else { " " }, "use(");
    let flags = u8_at(bytes, 12)?;
    if flags != 0 {
        put!(line, when(flags & 0x80 != 0, "V"), when(flags & 0x40 != 0, "P"), ",");
    }
    if line.verbose() > 0 {
        put!(line, "mask=0x", Hex(mask), ",raflags=0x", Hex(advertised), ",");
        for (name, seconds) in [("vltime=", be32(bytes, 4)?), ("pltime=", be32(bytes, 8)?)] {
            match seconds {
                u32::MAX => put!(line, name, "infty,"),
                _ => put!(line, name, seconds, ","),
            }
        }
    }
    put_last!(line, Addr::V6(array(bytes, 16)?), "/", new, "/", kept, ")")
}
