//! Records: name, class, time to live, type and, for the types that the tool knows, data.

use super::super::bytes::{Cut, Printed, array, be16, be32, part, u8_at};
use super::super::line::Line;
use super::super::pieces::{put, put_last};
use super::name::{put_characters, put_name, skip_name};
use super::words::{put_class, put_type};
use super::{DnsMessage, edns};
use record::Addr;

const A: u16 = 1;
const NS: u16 = 2;
const CNAME: u16 = 5;
const SOA: u16 = 6;
const PTR: u16 = 12;
const MX: u16 = 15;
const TXT: u16 = 16;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const A6: u16 = 38;
const DNAME: u16 = 39;
const OPT: u16 = 41;
const UNSPECA: u16 = 104;
const TSIG: u16 = 250;
const URI: u16 = 256;

/// Data of a record: their offset, and their end according to the record.
#[derive(Clone, Copy)]
struct Data<'a> {
    message: DnsMessage<'a>,
    at: usize,
    end: usize,
}

/// Appends a record; returns the offset of the next.
pub(super) fn put_record(line: &mut Line<'_>, message: DnsMessage<'_>, at: usize) -> Printed<usize> {
    let bytes = message.bytes;
    let at = if line.verbose() > 0 {
        put!(line, " ");
        put_name(line, bytes, at)?
    } else {
        match skip_name(bytes, at) {
            Ok(at) => at,
            // Nothing of the record can be printed; the caller prints that records are missing.
            Err(Cut) => return Ok(bytes.len()),
        }
    };
    if part(bytes, at, 10).is_err() {
        return Ok(bytes.len());
    }
    let (kind, class) = (be16(bytes, at)?, be16(bytes, at + 2)?);
    let plain = if message.is_multicast { class & 0x7fff } else { class };
    if kind != OPT {
        put_class(line, plain);
    }
    if message.is_multicast && class & 0x8000 != 0 {
        put!(line, " (Cache flush)");
    }
    if kind != OPT && line.verbose() > 2 {
        put!(line, " [");
        put_duration(line, be32(bytes, at + 4)?);
        put!(line, "]");
    }
    let end = at + 10 + usize::from(be16(bytes, at + 8)?);
    put!(line, " ");
    put_type(line, kind);
    if end > bytes.len() {
        return Err(Cut);
    }
    let data = Data { message, at: at + 10, end };
    match kind {
        OPT => edns::put(line, bytes, plain, be16(bytes, at + 6)?, data.at, data.end)?,
        _ => put_data(line, kind, data)?,
    }
    Ok(end)
}

fn put_data(line: &mut Line<'_>, kind: u16, data: Data<'_>) -> Printed {
    let Data { message: DnsMessage { bytes, .. }, at, end } = data;
    match kind {
        A => put!(line, " ", Addr::V4(array(bytes, at)?)),
        AAAA => put!(line, " ", Addr::V6(array(bytes, at)?)),
        NS | CNAME | PTR | DNAME => {
            put!(line, " ");
            put_name(line, bytes, at)?;
        }
        SOA if line.verbose() > 0 => put_start(line, data)?,
        MX => {
            put!(line, " ");
            put_name(line, bytes, at + 2)?;
            put!(line, " ", be16(bytes, at)?);
        }
        TXT => put_texts(line, data)?,
        SRV => {
            put!(line, " ");
            put_name(line, bytes, at + 6)?;
            put!(line, ":", be16(bytes, at + 4)?, " ", be16(bytes, at)?, " ", be16(bytes, at + 2)?);
        }
        A6 => put_a6(line, data)?,
        UNSPECA => put_characters(line, bytes, at, end - at)?,
        TSIG if line.verbose() > 0 => put_signature(line, data)?,
        URI => {
            put!(line, " ", be16(bytes, at)?, " ", be16(bytes, at + 2)?, " ");
            put_characters(line, bytes, at + 4, (end - at).checked_sub(4).unwrap_or(usize::MAX))?;
        }
        _ => {}
    }
    Ok(())
}

fn put_start(line: &mut Line<'_>, data: Data<'_>) -> Printed {
    let bytes = data.message.bytes;
    put!(line, " ");
    let at = put_name(line, bytes, data.at)?;
    put!(line, " ");
    let at = put_name(line, bytes, at)?;
    part(bytes, at, 20)?;
    for n in 0..5 {
        put!(line, " ", be32(bytes, at + 4 * n)?);
    }
    Ok(())
}

fn put_texts(line: &mut Line<'_>, data: Data<'_>) -> Printed {
    let mut at = data.at;
    while at < data.end {
        put!(line, " \"");
        let length = usize::from(u8_at(data.message.bytes, at)?);
        put_characters(line, data.message.bytes, at + 1, length)?;
        put!(line, "\"");
        at += 1 + length;
    }
    Ok(())
}

/// Appends an A6 record (RFC 2874): the last bits of an address, and the name that has the first bits.
fn put_a6(line: &mut Line<'_>, data: Data<'_>) -> Printed {
    let bytes = data.message.bytes;
    let prefix = u8_at(bytes, data.at)?;
    if prefix > 128 {
        return put_last!(line, " ", prefix, "(bad plen)");
    }
    if prefix < 128 {
        let skipped = usize::from(prefix) / 8;
        let mut address = [0; 16];
        let tail = address.get_mut(skipped..).unwrap_or_default();
        tail.copy_from_slice(part(bytes, data.at + 1, 16 - skipped)?);
        put!(line, " ", prefix, " ", Addr::V6(address));
    }
    if prefix > 0 {
        put!(line, " ");
        put_name(line, bytes, data.at + 1 + 16 - usize::from(prefix) / 8)?;
    }
    Ok(())
}

fn put_signature(line: &mut Line<'_>, data: Data<'_>) -> Printed {
    let bytes = data.message.bytes;
    put!(line, " ");
    let at = put_name(line, bytes, data.at)? + 6;
    let digest = usize::from(be16(bytes, at + 2)?);
    put!(line, " fudge=", be16(bytes, at)?, " maclen=", digest);
    let at = at + 4 + digest;
    for (n, word) in [" origid=", " error=", " otherlen="].into_iter().enumerate() {
        put!(line, word, be16(bytes, at + 2 * n)?);
    }
    Ok(())
}

/// Appends seconds in the format `1w2d3h4m5s`; years have 365 days.
pub(super) fn put_duration(line: &mut Line<'_>, seconds: u32) {
    const UNITS: [(u32, &str); 6] =
        [(31_536_000, "y"), (604_800, "w"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    if seconds == 0 {
        put!(line, "0s");
    }
    let mut left = seconds;
    for (unit, word) in UNITS {
        if left >= unit {
            put!(line, left / unit, word);
            left %= unit;
        }
    }
}
