//! Options of neighbour discovery with `-v`, one per line.

use super::super::bytes::{Cut, Printed, array, at_most, be16, be32, behind, part, u8_at};
use super::super::dns::put_name_from;
use super::super::dump::put_hex_lines;
use super::super::line::{Host6, Line};
use super::super::pieces::{Flags, Mac, names, put};

/// Prints the options of a message of `length` bytes that begin at `from`.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], from: usize, length: usize) -> Printed {
    if line.verbose() == 0 {
        return Ok(());
    }
    let mut at = from;
    while at < bytes.len() {
        let eights = u8_at(bytes, at + 1)?;
        if at >= length {
            return Ok(());
        }
        let (kind, len) = (u8_at(bytes, at)?, usize::from(eights) * 8);
        if len == 0 {
            return Err(Cut);
        }
        part(bytes, at, len)?;
        put!(line, "\n\t  ", name(kind).unwrap_or("unknown"), " option (", kind, "), length ", len, " (", eights);
        put!(line, "): ");
        let option = NeighbourOption { bytes, from, at, len };
        if name(kind).is_none() && line.verbose() < 2 {
            put_hex_lines(line.out, "\n\t  ", part(bytes, at + 2, len - 2)?, false);
            return Ok(());
        }
        option.put(line, kind)?;
        if line.verbose() > 1 {
            put_hex_lines(line.out, "\n\t    ", part(bytes, at + 2, len - 2)?, false);
        }
        at += len;
    }
    Ok(())
}

names! {
    fn name(u8):
        1 => "source link-address", 2 => "destination link-address", 3 => "prefix info", 4 => "redirected header",
        5 => "mtu", 7 => "advertisement interval", 8 => "homeagent information", 24 => "route info", 25 => "rdnss",
        31 => "dnssl",
}

/// Returns the word for the preference of a router.
pub(super) fn preference(flags: u8) -> &'static str {
    match flags >> 3 & 3 {
        0 => "medium",
        1 => "high",
        2 => "rsv",
        _ => "low",
    }
}

/// An option within the packet; the tool also reads bytes after its end.
struct NeighbourOption<'o> {
    bytes: &'o [u8],
    /// The offset of the first option, from which the pointers of names count.
    from: usize,
    at: usize,
    len: usize,
}

impl NeighbourOption<'_> {
    fn put(&self, line: &mut Line<'_>, kind: u8) -> Printed {
        let bytes = behind(self.bytes, self.at);
        match kind {
            1 | 2 => put!(line, Mac(part(bytes, 2, self.len - 2)?)),
            3 => put_prefix(line, bytes, self.len)?,
            // Like in the tool, the bytes begin at the first option.
            4 => put_hex_lines(line.out, "\n\t    ", at_most(behind(self.bytes, self.from), self.len), false),
            5 => put!(line, " ", be32(bytes, 4)?, if self.len == 8 { "" } else { "bad option length" }),
            7 => put!(line, " ", be32(bytes, 4)?, "ms"),
            8 => put!(line, " preference ", be16(bytes, 4)?, ", lifetime ", be16(bytes, 6)?),
            24 => put_route(line, bytes, self.len)?,
            25 => {
                put!(line, " lifetime ", be32(bytes, 4)?, "s,");
                for nth in 0..(self.len - 8) / 16 {
                    put!(line, " addr: ", Host6(array(bytes, 8 + nth * 16)?));
                }
            }
            31 => self.put_domains(line)?,
            _ => {}
        }
        Ok(())
    }

    fn put_domains(&self, line: &mut Line<'_>) -> Printed {
        put!(line, " lifetime ", be32(self.bytes, self.at + 4)?, "s, domain(s):");
        let (mut at, end) = (self.at + 8, self.at + self.len);
        while at < end && u8_at(self.bytes, at)? != 0 {
            put!(line, " ");
            at = put_name_from(line, self.bytes, self.from, at)?;
        }
        Ok(())
    }
}

const PREFIX_FLAGS: [(u32, &str); 3] = [(0x80, "onlink"), (0x40, "auto"), (0x20, "router")];

fn put_prefix(line: &mut Line<'_>, bytes: &[u8], len: usize) -> Printed {
    let ([bits, flags], valid, address) = (array(bytes, 2)?, be32(bytes, 4)?, array(bytes, 16)?);
    put!(line, Host6(address), "/", bits, if len == 32 { "" } else { "badlen" }, ", Flags [");
    put!(line, Flags(&PREFIX_FLAGS, "none", ", ", flags), "], valid time ");
    put_lifetime(line, valid);
    let preferred = be32(bytes, 8)?;
    put!(line, ", pref. time ");
    put_lifetime(line, preferred);
    Ok(())
}

/// Prints a route (RFC 4191).
fn put_route(line: &mut Line<'_>, bytes: &[u8], len: usize) -> Printed {
    let ([bits, flags], lifetime) = (array(bytes, 2)?, be32(bytes, 4)?);
    let mut address = [0; 16];
    let given = match len {
        8 | 16 | 24 => part(bytes, 8, len - 8)?,
        _ => return Err(Cut),
    };
    for (to, from) in address.iter_mut().zip(given) {
        *to = *from;
    }
    put!(line, " ", Host6(address), "/", bits, ", pref=", preference(flags), ", lifetime=");
    put_lifetime(line, lifetime);
    Ok(())
}

fn put_lifetime(line: &mut Line<'_>, seconds: u32) {
    match seconds {
        u32::MAX => put!(line, "infinity"),
        _ => put!(line, seconds, "s"),
    }
}
