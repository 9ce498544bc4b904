//! IGMP (RFC 1112, 2236, 3376).

use super::bytes::{Printed, array, be16, behind, part, u8_at};
use super::checksum;
use super::line::{Host, Host4, Line};
use super::pieces::{Hex, list, put, put_last};
use record::Addr;

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "igmp";
    if line.options.quiet > 0 {
        return put_last!(line, "igmp");
    }
    match u8_at(bytes, 0)? {
        0x11 => {
            put!(line, "igmp query");
            if length >= 12 { put_query3(line, bytes, length)? } else { put_query(line, bytes)? }
        }
        0x12 => {
            put!(line, "igmp v1 report ", Host4(array(bytes, 4)?));
            if length != 8 {
                put!(line, " [len ", length, "]");
            }
        }
        0x16 => put!(line, "igmp v2 report ", Host4(array(bytes, 4)?)),
        0x22 => {
            put!(line, "igmp v3 report");
            IGMP.put_report(line, bytes, length)?;
        }
        0x17 => put!(line, "igmp leave ", Host4(array(bytes, 4)?)),
        kind => put!(line, "igmp-", kind),
    }
    put_checksum(line, bytes, length)
}

fn put_query(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    match u8_at(bytes, 1)? {
        0 => put!(line, " v1"),
        100 => put!(line, " v2"),
        tenths => put!(line, " v2 [max resp time ", tenths, "]"),
    }
    let group: [u8; 4] = array(bytes, 4)?;
    if group != [0; 4] {
        put!(line, " [gaddr ", Host4(group), "]");
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
    put!(line, " v3");
    if length % 4 != 0 {
        return put_last!(line, " [invalid len ", length, "]");
    }
    let code = u32::from(u8_at(bytes, 1)?);
    let tenths = if code < 128 { code } else { ((code & 0xf) | 0x10) << ((code >> 4 & 7) + 3) };
    if tenths != 100 {
        put!(line, " [max resp time ");
        put_tenths(line, tenths);
        put!(line, "]");
    }
    let group: [u8; 4] = array(bytes, 4)?;
    if group == [0; 4] {
        return Ok(());
    }
    put!(line, " [gaddr ", Host4(group));
    IGMP.put_query_end(line, bytes, 12, length)
}

/// The types of records from 1 on.
const RECORDS: [&str; 6] = ["is_in", "is_ex", "to_in", "to_ex", "allow", "block"];

/// IGMP or MLD, which have the same records with addresses of other lengths.
pub(super) struct Membership {
    /// Length of an address.
    pub(super) address_bytes: usize,
    /// Reads the address at an offset.
    pub(super) address: fn(&[u8], usize) -> Printed<Host>,
    /// The version of a report, for records of unknown types.
    pub(super) report: &'static str,
    /// Length of the shortest report.
    pub(super) report_bytes: usize,
}

const IGMP: Membership = Membership {
    address_bytes: 4,
    address: |bytes, at| array(bytes, at).map(|address| Host(Addr::V4(address))),
    report: "v3",
    report_bytes: 16,
};

impl Membership {
    /// Prints the records of a report.
    pub(super) fn put_report(&self, line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
        if length < self.report_bytes {
            return put_last!(line, " [invalid len ", length, "]");
        }
        let records = be16(bytes, 6)?;
        put!(line, ", ", records, " group record(s)");
        if line.verbose() == 0 {
            return Ok(());
        }
        let mut at = 8;
        for _ in 0..records {
            let start = at + 4 + self.address_bytes;
            if length < start {
                return put_last!(line, " [invalid number of groups]");
            }
            put!(line, " [gaddr ", (self.address)(bytes, at + 4)?);
            let kind = u8_at(bytes, at)?;
            let name = usize::from(kind).checked_sub(1).and_then(|nth| RECORDS.get(nth));
            let unknown = list!("  [", self.report, "-report-#", kind, "]");
            put!(line, name.map(|name| (" ", *name)).ok_or(unknown));
            let sources = usize::from(be16(bytes, at + 2)?);
            let end = start + sources * self.address_bytes;
            if length < end {
                return put_last!(line, " [invalid number of sources ", sources, "]");
            }
            self.put_sources(line, behind(bytes, start), sources)?;
            put!(line, "]");
            at = end;
        }
        Ok(())
    }

    /// Prints the sources of a query, which begin at `start`, and the end of its group.
    pub(super) fn put_query_end(&self, line: &mut Line<'_>, bytes: &[u8], start: usize, length: usize) -> Printed {
        let sources = usize::from(be16(bytes, start - 2)?);
        if sources > 0 && start + sources * self.address_bytes > length {
            put!(line, " [invalid number of sources]");
        } else if sources > 0 {
            self.put_sources(line, behind(bytes, start), sources)?;
        }
        put_last!(line, "]")
    }

    fn put_sources(&self, line: &mut Line<'_>, bytes: &[u8], sources: usize) -> Printed {
        if line.verbose() <= 1 {
            return put_last!(line, ", ", sources, " source(s)");
        }
        put!(line, " {");
        for nth in 0..sources {
            put!(line, " ", (self.address)(bytes, nth * self.address_bytes)?);
        }
        put_last!(line, " }")
    }
}

fn put_checksum(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    if line.verbose() == 0 || line.options.no_checksums {
        return Ok(());
    }
    let Ok(message) = part(bytes, 0, length) else { return Ok(()) };
    let sum = checksum::sum(&[message]);
    if sum != checksum::RIGHT {
        put!(line, " bad igmp cksum ");
        put!(line, Hex(be16(message, 2)?), "!");
    }
    Ok(())
}
