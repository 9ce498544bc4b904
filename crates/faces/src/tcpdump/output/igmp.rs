//! IGMP (RFC 1112, 2236, 3376).

use super::bytes::{Printed, array, be16, behind, part, u8_at};
use super::checksum;
use super::line::Line;
use super::pieces::put;

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "igmp";
    if line.options.quiet > 0 {
        line.put("igmp");
        return Ok(());
    }
    match u8_at(bytes, 0)? {
        0x11 => {
            line.put("igmp query");
            if length >= 12 {
                put_query3(line, bytes, length)?;
            } else {
                put_query(line, bytes)?;
            }
        }
        0x12 => {
            let group = array(bytes, 4)?;
            line.put("igmp v1 report ");
            line.v4(group);
            put_extra(line, length);
        }
        0x16 => {
            let group = array(bytes, 4)?;
            line.put("igmp v2 report ");
            line.v4(group);
        }
        0x22 => {
            line.put("igmp v3 report");
            put_report3(line, bytes, length)?;
        }
        0x17 => {
            let group = array(bytes, 4)?;
            line.put("igmp leave ");
            line.v4(group);
        }
        kind => line.item("igmp-", kind),
    }
    put_checksum(line, bytes, length)
}

fn put_extra(line: &mut Line<'_>, length: usize) {
    if length != 8 {
        line.put(" [len ");
        line.len(length);
        line.byte(b']');
    }
}

fn put_query(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    match u8_at(bytes, 1)? {
        0 => line.put(" v1"),
        100 => line.put(" v2"),
        tenths => {
            line.put(" v2 [max resp time ");
            line.dec(tenths);
            line.byte(b']');
        }
    }
    let group: [u8; 4] = array(bytes, 4)?;
    if group != [0; 4] {
        line.put(" [gaddr ");
        line.v4(group);
        line.byte(b']');
    }
    Ok(())
}

/// Prints tenths of a second below a minute, whole units from a minute on.
fn put_tenths(line: &mut Line<'_>, tenths: u32) {
    if tenths < 600 {
        put!(line, tenths / 10, ".", tenths % 10, "s");
        return;
    }
    let seconds = tenths / 10;
    for (unit, name) in [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")] {
        if unit > 0 {
            put!(line, unit, name);
        }
    }
}

fn put_query3(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.put(" v3");
    if length % 4 != 0 {
        line.item(" [invalid len ", length as u64);
        line.byte(b']');
        return Ok(());
    }
    let code = u32::from(u8_at(bytes, 1)?);
    let tenths = if code < 128 { code } else { ((code & 0xf) | 0x10) << ((code >> 4 & 7) + 3) };
    if tenths != 100 {
        line.put(" [max resp time ");
        put_tenths(line, tenths);
        line.byte(b']');
    }
    let group: [u8; 4] = array(bytes, 4)?;
    if group == [0; 4] {
        return Ok(());
    }
    line.put(" [gaddr ");
    line.v4(group);
    let sources = usize::from(be16(bytes, 10)?);
    if sources > 0 {
        if 12 + sources * 4 > length {
            line.put(" [invalid number of sources]");
        } else if line.verbose() > 1 {
            line.put(" {");
            for nth in 0..sources {
                let source = array(bytes, 12 + nth * 4)?;
                line.byte(b' ');
                line.v4(source);
            }
            line.put(" }");
        } else {
            line.item(", ", sources as u64);
            line.put(" source(s)");
        }
    }
    line.byte(b']');
    Ok(())
}

fn put_report3(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    if length < 16 {
        line.put(" [invalid len ");
        line.len(length);
        line.byte(b']');
        return Ok(());
    }
    let records = be16(bytes, 6)?;
    line.item(", ", records);
    line.put(" group record(s)");
    if line.verbose() == 0 {
        return Ok(());
    }
    let mut at = 8;
    for _ in 0..records {
        if at + 8 > length {
            line.put(" [invalid number of groups]");
            return Ok(());
        }
        part(bytes, at, 8)?;
        line.put(" [gaddr ");
        line.v4(array(bytes, at + 4)?);
        line.put(match u8_at(bytes, at)? {
            1 => " is_in",
            2 => " is_ex",
            3 => " to_in",
            4 => " to_ex",
            5 => " allow",
            6 => " block",
            _ => "  [v3-report-#",
        });
        let kind = u8_at(bytes, at)?;
        if !(1..=6).contains(&kind) {
            line.dec(kind);
            line.byte(b']');
        }
        let sources = usize::from(be16(bytes, at + 2)?);
        if at + 8 + sources * 4 > length {
            line.item(" [invalid number of sources ", sources as u64);
            line.put("]");
            return Ok(());
        }
        put_sources(line, behind(bytes, at + 8), sources)?;
        line.byte(b']');
        at += 8 + sources * 4;
    }
    Ok(())
}

fn put_sources(line: &mut Line<'_>, bytes: &[u8], sources: usize) -> Printed {
    if line.verbose() > 1 {
        line.put(" {");
        for nth in 0..sources {
            let source = array(bytes, nth * 4)?;
            line.byte(b' ');
            line.v4(source);
        }
        line.put(" }");
    } else {
        line.item(", ", sources as u64);
        line.put(" source(s)");
    }
    Ok(())
}

fn put_checksum(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    if line.verbose() == 0 || line.options.no_checksums {
        return Ok(());
    }
    let Ok(message) = part(bytes, 0, length) else { return Ok(()) };
    let sum = checksum::sum(&[message]);
    if !checksum::is_right(sum) {
        line.put(" bad igmp cksum ");
        line.hex(be16(message, 2)?);
        line.byte(b'!');
    }
    Ok(())
}
