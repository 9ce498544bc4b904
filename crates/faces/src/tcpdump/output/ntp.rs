//! NTP (RFC 5905, 9327): `NTPv4, Client, length 48`; with `-v` all fields, and times also as dates in UTC.

use super::bytes::{Printed, be16, be32, part, u8_at};
use super::line::Line;
use super::pieces::{Hex, HexBytes, HexWide, PacketText, Padded, put, word_of};

const HEADER: usize = 48;
const CONTROL_HEADER: usize = 12;
#[rustfmt::skip]
const MODES: [&str; 8] = [
    "unspecified", "symmetric active", "symmetric passive", "Client", "Server", "Broadcast", "Control Message",
    "Reserved",
];
const CONTROL: u8 = 6;
const RESERVED: u8 = 7;
const LEAPS: [&str; 4] = ["", "+1s", "-1s", "clock unsynchronized"];
const STRATA: [(u8, &str); 2] = [(0, "unspecified"), (1, "primary reference")];
const TIMES: [&str; 4] =
    ["Reference Timestamp:  ", "Originator Timestamp: ", "Receive Timestamp:    ", "Transmit Timestamp:   "];
/// Seconds from 1900, where NTP times begin, to 1970.
const TO_1970: i64 = 2_208_988_800;
/// Length of a key number, which a digest of 16 or 20 bytes can follow.
const KEY: usize = 4;

/// Appends a datagram.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "ntp";
    let first = u8_at(bytes, 0)?;
    let mode = first & 7;
    put!(line, "NTPv", first >> 3 & 7, ", ", MODES[usize::from(mode)], ", length ", length);
    if line.verbose() == 0 {
        return Ok(());
    }
    put!(line, "\n\tLeap indicator: ", LEAPS[usize::from(first >> 6)], " (", first & 0xc0, ")");
    match mode {
        CONTROL if length >= CONTROL_HEADER => put_control(line, bytes, length),
        RESERVED => Ok(()),
        CONTROL => {
            put!(line, " (invalid)");
            part(bytes, 0, length).map(|_| ())
        }
        _ if length < HEADER => {
            put!(line, " (invalid)");
            part(bytes, 0, length).map(|_| ())
        }
        _ => put_times(line, bytes, length),
    }
}

fn put_control(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    let bits = u8_at(bytes, 1)?;
    let word = |bit: u8, set: &'static str, clear: &'static str| if bits & bit != 0 { set } else { clear };
    put!(line, ", ", word(0x80, "Response", "Request"), ", ", word(0x40, "Error", "OK"), ", ");
    put!(line, word(0x20, "More", "Last"), ", OpCode=", bits & 0x1f, "\n");
    put!(line, "\tSequence=", be16(bytes, 2)?);
    match be16(bytes, 4)? {
        0 => put!(line, ", Status=0"),
        status => put!(line, ", Status=0x", Hex(status)),
    }
    put!(line, ", Assoc.=", be16(bytes, 6)?);
    put!(line, ", Offset=", be16(bytes, 8)?);
    let count = be16(bytes, 10)?;
    put!(line, ", Count=", count);
    if usize::from(count) > length - CONTROL_HEADER {
        put!(line, " (invalid)");
        part(bytes, 0, length)?;
    } else if count != 0 {
        part(bytes, CONTROL_HEADER, count.into())?;
        put!(line, "\n\tTO-BE-DONE: data not interpreted");
    }
    Ok(())
}

fn put_times(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    let stratum = u8_at(bytes, 1)?;
    let word = word_of(&STRATA, stratum).unwrap_or(if stratum < 16 { "secondary reference" } else { "reserved" });
    put!(line, ", Stratum ", stratum, " (", word, ")");
    put!(line, ", poll ", u8_at(bytes, 2)? as i8);
    put_power(line, u8_at(bytes, 2)? as i8);
    put!(line, ", precision ", u8_at(bytes, 3)? as i8);
    for (word, at) in [("\n\tRoot Delay: ", 4), (", Root dispersion: ", 8)] {
        // Seconds in 16 bits and a fraction in 16 bits.
        let short = be32(bytes, at)?;
        let millionths = (u64::from(short & 0xffff) * 1_000_000) >> 16;
        put!(line, word, short >> 16, ".", Padded(millionths, 6));
    }
    let reference = be32(bytes, 12)?;
    put!(line, ", Reference-ID: ");
    match stratum {
        0 => put!(line, "(unspec)"),
        1 => put!(line, PacketText(&reference.to_be_bytes())),
        _ => put!(line, "0x", HexWide(reference, 8)),
    }
    for (nth, word) in TIMES.into_iter().enumerate() {
        let time = time(bytes, 16 + 8 * nth)?;
        put!(line, "\n\t  ", word);
        put_time(line, time);
    }
    let originator = time(bytes, 24)?;
    for (word, at) in [("Receive Timestamp:  ", 32), ("Transmit Timestamp: ", 40)] {
        put!(line, "\n\t    Originator - ", word);
        put_difference(line, originator, time(bytes, at)?);
    }
    put_key(line, bytes, length)
}

fn put_key(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    let rest = length - HEADER;
    match rest {
        0 => {}
        KEY | 20 | 24 => {
            put!(line, "\n\tKey id: ", be32(bytes, HEADER)?);
            if rest > KEY {
                put!(line, "\n\tAuthentication: ", HexBytes(part(bytes, HEADER + KEY, rest - KEY)?));
            }
        }
        _ => put!(line, "\n\t(", rest, " more bytes after the header)"),
    }
    Ok(())
}

/// Appends an interval, a power of two, like ` (64s)` or ` (1/4s)`.
fn put_power(line: &mut Line<'_>, power: i8) {
    match power {
        0..32 => put!(line, " (", 1u64 << power, "s)"),
        -31..0 => put!(line, " (1/", 1u64 << -power, "s)"),
        _ => {}
    }
}

/// Returns seconds since 1900 and a fraction in 2^-32 seconds.
fn time(bytes: &[u8], at: usize) -> Printed<(u32, u32)> {
    Ok((be32(bytes, at)?, be32(bytes, at + 4)?))
}

fn put_time(line: &mut Line<'_>, time: (u32, u32)) {
    put_seconds(line, time);
    if time.0 != 0 {
        put!(line, " (");
        record::text::put_seconds(line.out, i64::from(time.0) - TO_1970);
        put!(line, ")");
    }
}

fn put_seconds(line: &mut Line<'_>, (seconds, fraction): (u32, u32)) {
    put!(line, seconds, ".", Padded((u64::from(fraction) * 1_000_000_000) >> 32, 9));
}

fn put_difference(line: &mut Line<'_>, from: (u32, u32), to: (u32, u32)) {
    if from == (0, 0) {
        return put_time(line, to);
    }
    let whole = |(seconds, fraction): (u32, u32)| u64::from(seconds) << 32 | u64::from(fraction);
    let (from, to) = (whole(from), whole(to));
    put!(line, if to > from { "+" } else { "-" });
    let apart = from.abs_diff(to);
    put_seconds(line, ((apart >> 32) as u32, apart as u32));
}
