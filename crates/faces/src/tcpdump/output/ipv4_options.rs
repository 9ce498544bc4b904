//! IPv4 options (RFC 791, RFC 2113), shown with `-v`.

use super::bytes::{Printed, array, be16, be32, behind, part, u8_at};
use super::line::{Host4, Line};
use super::pieces::{LineBuffer, put, put_last, when};

const END: u8 = 0;
const NOP: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;
const SECURITY: u8 = 130;
const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;
const ROUTER_ALERT: u8 = 148;

/// Prints `length` bytes of options; returns false if an option claims more bytes than there are.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed<bool> {
    let (mut at, mut first) = (0, true);
    while at < length {
        if !std::mem::take(&mut first) {
            put!(line, ",");
        }
        let kind = u8_at(bytes, at)?;
        put_name(line, kind);
        if kind == END {
            break;
        }
        if kind == NOP {
            at += 1;
            continue;
        }
        let len = if at + 1 < length { usize::from(u8_at(bytes, at + 1)?) } else { 0 };
        if len < 2 || len > length - at {
            put!(line, " [bad length ", len, "]");
            break;
        }
        // Like the tool, this reads values that extend past the end of an option.
        if part(bytes, at, len).is_err() || put_value(line, kind, behind(bytes, at), len).is_err() {
            return Ok(false);
        }
        at += len;
    }
    Ok(true)
}

fn put_name(line: &mut Line<'_>, kind: u8) {
    line.text(match kind {
        END => "EOL",
        NOP => "NOP",
        RECORD_ROUTE => "RR",
        TIMESTAMP => "timestamp",
        SECURITY => "security",
        LOOSE_ROUTE => "LSRR",
        STRICT_ROUTE => "SSRR",
        ROUTER_ALERT => "RA",
        _ => return put!(line, "unknown ", kind),
    });
}

fn put_value(line: &mut Line<'_>, kind: u8, option: &[u8], len: usize) -> Printed {
    match kind {
        TIMESTAMP => put_times(line, option, len),
        RECORD_ROUTE | LOOSE_ROUTE | STRICT_ROUTE => put_route(line, option, len),
        ROUTER_ALERT if len < 4 => put_last!(line, " [bad length ", len, "]"),
        ROUTER_ALERT => {
            let value = be16(option, 2)?;
            if value != 0 {
                put!(line, " value ", value);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn put_route(line: &mut Line<'_>, option: &[u8], len: usize) -> Printed {
    if len < 3 {
        return put_last!(line, " [bad length ", len, "]");
    }
    if (len + 1) & 3 != 0 {
        put!(line, " [bad length ", len, "]");
    }
    let pointer = u8_at(option, 2)?;
    let next = usize::from(pointer).wrapping_sub(1);
    if pointer < 4 || next > len || pointer & 3 != 0 {
        put!(line, " [bad ptr ", pointer, "]");
    }
    for at in (3..len).step_by(4) {
        put!(line, " ", Host4(array(option, at)?), when(next > at, ","));
    }
    Ok(())
}

fn put_times(line: &mut Line<'_>, option: &[u8], len: usize) -> Printed {
    if len < 4 {
        return put_last!(line, "[bad length ", len, "]");
    }
    put!(line, " TS{");
    let (pointer, kind) = (u8_at(option, 2)?, u8_at(option, 3)?);
    let missed = kind >> 4;
    let size = if kind & 15 == 0 { 4 } else { 8 };
    if (len - 4) % size != 0 {
        put!(line, "[bad length ", len, "]");
    }
    let next = usize::from(pointer).wrapping_sub(1);
    if pointer < 5 || next > len || (next - 4) % size != 0 {
        put!(line, "[bad ptr ", pointer, "]");
    }
    match kind & 15 {
        0 => put!(line, "TSONLY"),
        1 => put!(line, "TS+ADDR"),
        3 => put!(line, "PRESPEC"),
        kind => {
            put!(line, "[bad ts type ", kind, "]");
            return put_missed(line, missed);
        }
    }
    let mut at = 4;
    while at < len {
        put!(line, if at == next { " ^ " } else { " " });
        put!(line, be32(option, at + size - 4)?, "@");
        if size == 8 {
            put!(line, Host4(array(option, at)?));
        }
        at += size;
    }
    put!(line, when(at == next, " ^ "));
    put_missed(line, missed)
}

/// Prints the number of hops that were not recorded for lack of space.
fn put_missed(line: &mut Line<'_>, hops: u8) -> Printed {
    if hops > 0 {
        put!(line, " [", hops, " hops not recorded]} ");
    } else {
        put!(line, "}");
    }
    Ok(())
}
