//! Extension headers of IPv6 (RFC 8200, RFC 8754).

use super::bytes::{Cut, Printed, array, be16, be32, behind, part, u8_at};
use super::line::{Host6, Line};
use super::pieces::{Hex, HexWide, put, when};

/// Types of options.
const PAD_ONE: u8 = 0;
const PAD: u8 = 1;
const ROUTER_ALERT: u8 = 5;
const JUMBO: u8 = 0xc2;
const HOME: u8 = 0xc9;

/// The length of a jumbogram, which is in the options before all other headers.
#[derive(Clone, Copy)]
pub(super) enum Jumbo {
    /// The length is in the header.
    Needless,
    /// The length must be in an option, which has not been found yet.
    Missing,
    /// Length of the payload, from the option.
    Found(u32),
}

/// Prints hop-by-hop options; returns the length of the header. Returns `None` if they are broken, and then nothing
/// more is printed.
pub(super) fn hop_by_hop(line: &mut Line<'_>, bytes: &[u8], jumbo: &mut Jumbo) -> Printed<Option<usize>> {
    line.protocol = "hbhopt";
    options(line, "HBH ", bytes, Some(jumbo))
}

/// Prints destination options; returns the same as `hop_by_hop`.
pub(super) fn destination(line: &mut Line<'_>, bytes: &[u8]) -> Printed<Option<usize>> {
    line.protocol = "dstopt";
    options(line, "DSTOPT ", bytes, None)
}

fn options(line: &mut Line<'_>, name: &str, bytes: &[u8], jumbo: Option<&mut Jumbo>) -> Printed<Option<usize>> {
    let len = (usize::from(u8_at(bytes, 1)?) + 1) * 8;
    let Ok(header) = part(bytes, 0, len) else {
        line.cut();
        return Ok(None);
    };
    put!(line, name);
    // Destination options are read, and printed, with `-v` only.
    let walked = jumbo.is_some() || line.verbose() > 0;
    if walked && put_options(line, behind(header, 2), jumbo).is_err() {
        line.cut();
        return Ok(None);
    }
    put!(line, when(line.verbose() > 0, " "));
    Ok(Some(len))
}

/// Prints options with `-v` only, but errors in them always.
fn put_options(line: &mut Line<'_>, mut bytes: &[u8], mut jumbo: Option<&mut Jumbo>) -> Printed {
    let (is_verbose, mut jumbo_seen) = (line.verbose() > 0, false);
    while let Some(&kind) = bytes.first() {
        if kind == PAD_ONE {
            put!(line, when(is_verbose, "(pad1)"));
            bytes = behind(bytes, 1);
            continue;
        }
        let len = usize::from(u8_at(bytes, 1)?);
        let option = part(bytes, 0, len + 2)?;
        match kind {
            PAD => put!(line, if is_verbose { "(padn)" } else { "" }),
            ROUTER_ALERT => {
                check_len(line, "rtalert", bytes, len, 2)?;
                if is_verbose {
                    put!(line, "(rtalert: 0x", HexWide(be16(option, 2)?, 4), ") ");
                }
            }
            JUMBO => {
                check_len(line, "jumbo", bytes, len, 4)?;
                let wrong = note_jumbo(be32(option, 2)?, jumbo.as_deref_mut(), &mut jumbo_seen);
                if is_verbose {
                    put!(line, "(jumbo: ", be32(option, 2)?, wrong, ") ");
                }
            }
            HOME => {
                check_len(line, "homeaddr", bytes, len.min(16), 16)?;
                if is_verbose {
                    put!(line, "(homeaddr: ", Host6(array(option, 2)?), ")");
                }
            }
            _ if is_verbose => put!(line, "(opt_type 0x", HexWide(kind, 2), ": len=", len, ")"),
            _ => {}
        }
        bytes = behind(bytes, len + 2);
    }
    Ok(())
}

/// Records a jumbogram's length; returns text about what is wrong with it.
fn note_jumbo(length: u32, jumbo: Option<&mut Jumbo>, seen: &mut bool) -> &'static str {
    let Some(jumbo) = jumbo else { return " - not a hop-by-hop option" };
    if std::mem::replace(seen, true) {
        return " - already seen";
    }
    match jumbo {
        Jumbo::Needless => " - payload len != 0",
        _ if length < 0x1_0000 => " - < 65536",
        _ => {
            *jumbo = Jumbo::Found(length);
            ""
        }
    }
}

/// Prints text and fails if an option does not have the length of its type.
fn check_len(line: &mut Line<'_>, name: &str, bytes: &[u8], len: usize, right: usize) -> Printed {
    if bytes.len() < right + 2 {
        put!(line, "(", name, ": trunc)");
        return Err(Cut);
    }
    if len != right {
        put!(line, "(", name, ": invalid len ", len, ")");
        return Err(Cut);
    }
    Ok(())
}

/// Prints a routing header; returns its length. Returns `None` if it is broken, and then nothing more is printed.
pub(super) fn routing(line: &mut Line<'_>, bytes: &[u8]) -> Printed<Option<usize>> {
    u8_at(bytes, 0)?;
    line.protocol = "rt6";
    put!(line, "RT6");
    let len = u8_at(bytes, 1)?;
    put!(line, " (len=", len);
    let kind = u8_at(bytes, 2)?;
    put!(line, ", type=", kind, when(kind == 0, " [Deprecated]"));
    put!(line, ", segleft=", u8_at(bytes, 3)?);
    let is_verbose = line.verbose() > 0;
    match kind {
        0 | 2 => {
            let reserved = be32(bytes, 4)?;
            if reserved != 0 || is_verbose {
                put!(line, ", rsv=0x", Hex(reserved));
            }
        }
        4 => {
            put!(line, ", last-entry=", u8_at(bytes, 4)?);
            let flags = u8_at(bytes, 5)?;
            if flags != 0 || is_verbose {
                put!(line, ", flags=0x", Hex(flags));
            }
            put!(line, ", tag=", Hex(be16(bytes, 6)?));
        }
        _ => {
            put!(line, " (unknown type) (invalid)");
            return Ok(None);
        }
    }
    if len % 2 != 0 {
        put!(line, " (invalid length ", len, ") (invalid)");
        return Ok(None);
    }
    for nth in 0..usize::from(len) / 2 {
        put!(line, ", [", nth, "]", Host6(array(bytes, 8 + nth * 16)?));
    }
    put!(line, ") ");
    Ok(Some((usize::from(len) + 1) * 8))
}

/// Prints a fragment header; returns its length. Returns `None` if it is not the first fragment or nothing after it was
/// captured, and then nothing more is printed. `left` is the length of the packet from this header on.
pub(super) fn fragment(line: &mut Line<'_>, bytes: &[u8], left: usize) -> Printed<Option<usize>> {
    line.protocol = "frag6";
    let offset = be16(bytes, 2)?;
    let id = if line.verbose() > 0 { Some(be32(bytes, 4)?) } else { None };
    put!(line, "frag (");
    if let Some(id) = id {
        put!(line, "0x", HexWide(id, 8), ":");
    }
    put!(line, offset & 0xfff8, "|", left.saturating_sub(8), ")");
    if offset & 0xfff8 != 0 {
        return Ok(None);
    }
    put!(line, " ");
    if bytes.len() <= 8 {
        return Ok(None);
    }
    Ok(Some(8))
}
