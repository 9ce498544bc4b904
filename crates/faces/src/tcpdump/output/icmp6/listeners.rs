//! Listeners of multicast (RFC 2710, 3810).

use super::super::bytes::{Printed, array, be16, u8_at};
use super::super::igmp::Membership;
use super::super::line::{Host, Host6, Line};
use super::super::pieces::{put, put_last, when};
use record::Addr;

const QUERY: u8 = 130;
const REPORT2: u8 = 143;
/// Length of a message of the first version.
const QUERY1_BYTES: usize = 24;
const MLD: Membership = Membership {
    address_bytes: 16,
    address: |bytes, at| array(bytes, at).map(|address| Host(Addr::V6(address))),
    report: "v2",
    report_bytes: 8,
};

/// Prints the part of a message after its type.
pub(super) fn print(line: &mut Line<'_>, kind: u8, bytes: &[u8], length: usize) -> Printed {
    match (kind, length) {
        (REPORT2, _) => MLD.put_report(line, bytes, length),
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
    MLD.put_query_end(line, bytes, QUERY2_BYTES, length)
}
