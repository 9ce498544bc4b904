//! Node information (RFC 4620): names and addresses of a host, which the host itself sends on request.

use super::super::bytes::{Printed, array, be16, be32, behind, part, u8_at};
use super::super::line::{Host4, Host6, Line};
use super::super::pieces::{Flags, PacketText, put, put_last, when};

const QUERY: u8 = 139;
const HEADER_BYTES: usize = 16;
/// Types of queries.
const NOTHING: u16 = 0;
const TYPES: u16 = 1;
const NAME: u16 = 2;
const ADDRESSES: u16 = 3;
/// Types of addresses; the last bit means that the list is not complete.
const KINDS: [(u32, &str); 7] =
    [(0x40, "a"), (0x20, "G"), (0x10, "S"), (0x08, "L"), (0x04, "C"), (0x02, "A"), (0x01, "T")];

/// Prints a query, or a reply of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, kind: u8, bytes: &[u8], length: usize) -> Printed {
    if kind == QUERY && bytes.len() == 12 {
        return put_last!(line, " who-are-you request");
    }
    if kind == QUERY {
        put!(line, " node information query");
    }
    if kind != QUERY && length > bytes.len() || bytes.len() < HEADER_BYTES {
        return line.end_cut();
    }
    if kind == QUERY {
        put_query(line, bytes)?
    } else {
        put_reply(line, bytes)?
    }
    put_last!(line, ")")
}

fn put_query(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let (code, asked, flags) = (u8_at(bytes, 1)?, be16(bytes, 4)?, be16(bytes, 6)?);
    put!(line, " (");
    match asked {
        NOTHING => put!(line, "noop"),
        TYPES => put_types(line, flags),
        NAME => put!(line, "DNS name"),
        ADDRESSES => {
            put!(line, "node addresses");
            // The bit for an incomplete list does not occur in queries.
            put_kinds(line, flags, KINDS.get(..6).unwrap_or_default());
        }
        _ => put!(line, "unknown"),
    }
    let (is_bare, verbose) = (bytes.len() == HEADER_BYTES, line.verbose() > 0);
    if matches!(asked, NOTHING | TYPES) {
        return put_last!(line, if !is_bare && verbose { ", invalid len" } else { "" });
    }
    if is_bare {
        return put_last!(line, ", 03 draft");
    }
    let subject = behind(bytes, HEADER_BYTES);
    match (code, subject.len()) {
        (0, 16) => {
            put!(line, ", subject=");
            put!(line, Host6(array(subject, 0)?));
        }
        (2, 4) => {
            put!(line, ", subject=");
            put!(line, Host4(array(subject, 0)?));
        }
        (0, 17..) | (2, 5..) => put!(line, if verbose { ", invalid subject len" } else { "" }),
        (0 | 2, _) => {}
        (1, _) => {
            put!(line, ", subject=DNS name");
            put_name(line, subject)?;
        }
        _ => put!(line, ", unknown subject"),
    }
    Ok(())
}

fn put_reply(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let (code, asked, flags) = (u8_at(bytes, 1)?, be16(bytes, 4)?, be16(bytes, 6)?);
    let verbose = line.verbose() > 0;
    let invalid = if verbose && bytes.len() != HEADER_BYTES { ", invalid length" } else { "" };
    put!(line, " node information reply (");
    match code {
        0 => put!(line, if verbose { "success, " } else { "" }),
        1 => put!(line, "refused", invalid),
        2 => put!(line, "unknown", invalid),
        _ => {}
    }
    if code != 0 {
        return Ok(());
    }
    match asked {
        NOTHING => put!(line, "noop", invalid),
        TYPES => put_types(line, flags),
        NAME => {
            put!(line, "DNS name");
            put_name(line, behind(bytes, HEADER_BYTES + 4))?;
            if flags & 1 != 0 {
                put!(line, " [TTL=", be32(bytes, HEADER_BYTES)?, "]");
            }
        }
        ADDRESSES => {
            put!(line, "node addresses");
            for one in behind(bytes, HEADER_BYTES).chunks_exact(20) {
                let (seconds, address) = (be32(one, 0)?, array(one, 4)?);
                put!(line, " ", Host6(address), "(", seconds, ")");
            }
            put_kinds(line, flags, &KINDS);
        }
        _ => put!(line, "unknown"),
    }
    Ok(())
}

fn put_types(line: &mut Line<'_>, flags: u16) {
    put!(line, "supported qtypes");
    if flags != 0 {
        put!(line, if flags & 1 != 0 { " [C]" } else { " []" });
    }
}

fn put_kinds(line: &mut Line<'_>, flags: u16, kinds: &[(u32, &str)]) {
    if flags != 0 {
        put!(line, " [", Flags(kinds, "", "", flags), "]");
    }
}

/// Prints a name that extends to the end of the message: in one piece, like in an old draft, or in labels.
fn put_name(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let len = usize::from(u8_at(bytes, 0)?);
    if len == bytes.len() - 1 {
        return put_last!(line, when(line.verbose() > 0, ", 03 draft"), ", \"", PacketText(behind(bytes, 1)), "\"");
    }
    put!(line, ", \"");
    let mut rest = bytes;
    while let Some((&len, more)) = rest.split_first() {
        let len = usize::from(len);
        if len == 0 {
            // A second zero means that the name is not fully qualified.
            put!(
                line,
                if more.is_empty() {
                    "."
                } else if more == [0] {
                    ""
                } else {
                    "???"
                }
            );
            break;
        }
        let Ok(label) = part(more, 0, len) else {
            put!(line, "???");
            break;
        };
        put!(line, PacketText(label));
        rest = behind(more, len);
        if rest.len() > 1 && rest.first() != Some(&0) {
            put!(line, ".");
        }
    }
    put_last!(line, "\"")
}
