//! Listeners of multicast (RFC 2710, 3810).

use super::super::bytes::{Printed, array, be16, u8_at};
use super::super::igmp::RECORDS;
use super::super::line::{Host6, Line};
use super::super::pieces::{put, put_last, when};

const QUERY: u8 = 130;
const REPORT2: u8 = 143;
/// Length of a message of the first version.
const QUERY1_BYTES: usize = 24;
/// Length of a record of a report, without its sources.
const RECORD_BYTES: usize = 20;

/// Prints the part of a message after its type.
pub(super) fn print(line: &mut Line<'_>, kind: u8, bytes: &[u8], length: usize) -> Printed {
    match (kind, length) {
        (REPORT2, _) => put_report2(line, bytes, length),
        (QUERY, QUERY2_BYTES..) => put_query2(line, bytes, length),
        (QUERY, length) if length != QUERY1_BYTES => put_last!(line, " unknown-version (len ", length, ") "),
        _ => {
            // If the message is cut, only its type is printed.
            if let (Ok(delay), Ok(group)) = (be16(bytes, 4), array(bytes, 8)) {
                put!(line, "max resp delay: ", delay, " addr: ", Host6(group));
            }
            Ok(())
        }
    }
}

/// Length of a query of MLD 2, without its sources.
const QUERY2_BYTES: usize = 28;

fn put_query2(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    put!(line, " v2");
    be16(bytes, 4)?;
    if line.verbose() > 0 {
        let code = u32::from(be16(bytes, 4)?);
        let delay = if code < 32768 { code } else { ((code & 0xfff) | 0x1000) << ((code >> 12 & 7) + 3) };
        put!(line, " [max resp delay=", delay, "]");
    }
    put!(line, " [gaddr ", Host6(array(bytes, 8)?));
    if line.verbose() > 0 {
        let flags = u8_at(bytes, 24)?;
        put!(line, when(flags & 8 != 0, " sflag"));
        if flags & 7 != 0 {
            put!(line, " robustness=", flags & 7);
        }
        let interval = u32::from(u8_at(bytes, 25)?);
        let interval = if interval < 128 { interval } else { ((interval & 15) | 16) << ((interval >> 4 & 7) + 3) };
        put!(line, " qqi=", interval);
    }
    let sources = usize::from(be16(bytes, 26)?);
    if sources > 0 && QUERY2_BYTES + sources * 16 > length {
        put!(line, " [invalid number of sources]");
    } else if sources > 0 && line.verbose() > 1 {
        put!(line, " {");
        for nth in 0..sources {
            put!(line, " ", Host6(array(bytes, QUERY2_BYTES + nth * 16)?));
        }
        put!(line, " }");
    } else if sources > 0 {
        put!(line, ", ", sources, " source(s)");
    }
    put_last!(line, "]")
}

fn put_report2(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    if length < 8 {
        return put_last!(line, " [invalid len ", length, "]");
    }
    let records = be16(bytes, 6)?;
    put!(line, ", ", records, " group record(s)");
    if line.verbose() == 0 {
        return Ok(());
    }
    let mut at = 8;
    for _ in 0..records {
        if length < at + RECORD_BYTES {
            return put_last!(line, " [invalid number of groups]");
        }
        put!(line, " [gaddr ", Host6(array(bytes, at + 4)?));
        let kind = u8_at(bytes, at)?;
        match usize::from(kind).checked_sub(1).and_then(|nth| RECORDS.get(nth)) {
            Some(name) => put!(line, " ", *name),
            None => put!(line, "  [v2-report-#", kind, "]"),
        }
        let sources = usize::from(be16(bytes, at + 2)?);
        let end = at + RECORD_BYTES + sources * 16;
        if length < end {
            return put_last!(line, " [invalid number of sources ", sources, "]");
        }
        if line.verbose() == 1 {
            put!(line, ", ", sources, " source(s)]");
        } else {
            put!(line, " {");
            for nth in 0..sources {
                put!(line, " ", Host6(array(bytes, at + RECORD_BYTES + nth * 16)?));
            }
            put!(line, " }]");
        }
        at = end;
    }
    Ok(())
}
