//! IPv4 options (RFC 791, RFC 2113), shown with `-v`.

use super::bytes::{Cut, Printed, array, be16, be32, part, u8_at};
use super::line::Line;

const END: u8 = 0;
const NOP: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;
const SECURITY: u8 = 130;
const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;
const ROUTER_ALERT: u8 = 148;

/// Prints `length` bytes of options; false if an option claims more than there is.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed<bool> {
    let (mut at, mut first) = (0, true);
    while at < length {
        if !std::mem::take(&mut first) {
            line.byte(b',');
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
        if at + 1 >= length {
            return Ok(false);
        }
        let len = usize::from(u8_at(bytes, at + 1)?);
        if len < 2 {
            line.item(" [bad length ", len as u64);
            line.byte(b']');
            break;
        }
        if len > length - at {
            return Ok(false);
        }
        let Ok(option) = part(bytes, at, len) else { return Ok(false) };
        put_value(line, kind, option)?;
        at += len;
    }
    Ok(true)
}

fn put_name(line: &mut Line<'_>, kind: u8) {
    line.put(match kind {
        END => "EOL",
        NOP => "NOP",
        RECORD_ROUTE => "RR",
        TIMESTAMP => "timestamp",
        SECURITY => "security",
        LOOSE_ROUTE => "LSRR",
        STRICT_ROUTE => "SSRR",
        ROUTER_ALERT => "RA",
        _ => return line.item("unknown ", kind),
    });
}

fn put_value(line: &mut Line<'_>, kind: u8, option: &[u8]) -> Printed {
    match kind {
        TIMESTAMP => put_times(line, option),
        RECORD_ROUTE | LOOSE_ROUTE | STRICT_ROUTE => put_route(line, option),
        ROUTER_ALERT => {
            if option.len() < 4 {
                line.put("{truncated}");
            } else if be16(option, 2)? != 0 {
                line.item(" value ", be16(option, 2)?);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn put_route(line: &mut Line<'_>, option: &[u8]) -> Printed {
    if option.len() < 3 {
        line.item(" [bad length ", option.len() as u64);
        line.byte(b']');
        return Ok(());
    }
    if (option.len() + 1) & 3 != 0 {
        line.item(" [bad length ", option.len() as u64);
        line.byte(b']');
    }
    let pointer = usize::from(u8_at(option, 2)?);
    let next = pointer.wrapping_sub(1);
    if next < 3 || (next + 1) & 3 != 0 {
        line.item(" [bad ptr ", pointer as u64);
        line.byte(b']');
    }
    let mut between = "";
    for at in (3..option.len()).step_by(4) {
        line.put(if between.is_empty() { " " } else { between });
        line.v4(array(option, at)?);
        between = ", ";
    }
    Ok(())
}

fn put_times(line: &mut Line<'_>, option: &[u8]) -> Printed {
    if option.len() < 4 {
        line.item("[bad length ", option.len() as u64);
        line.byte(b']');
        return Ok(());
    }
    line.put(" TS{");
    let kind = u8_at(option, 3)?;
    let size = if kind & 15 == 0 { 4 } else { 8 };
    line.put(match kind & 15 {
        0 => "TSONLY",
        1 => "TS+ADDR",
        3 => "PRESPEC",
        _ => "[bad ts type]",
    });
    let next = usize::from(u8_at(option, 2)?).wrapping_sub(1);
    for at in (4..option.len()).step_by(size) {
        if at == next {
            line.put(" ^ ");
        }
        if at + size > option.len() {
            return Err(Cut);
        }
        if at != next {
            line.byte(b' ');
        }
        line.dec(be32(option, at + size - 4)?);
        line.byte(b'@');
        if size == 8 {
            line.v4(array(option, at)?);
        }
    }
    if kind >> 4 > 0 {
        line.item(" [", kind >> 4);
        line.put(" hops not recorded]} ");
    } else {
        line.byte(b'}');
    }
    Ok(())
}
