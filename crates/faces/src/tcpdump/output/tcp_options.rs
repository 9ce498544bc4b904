//! TCP options (RFC 9293, 7323, 2018, 2385, 5482, 7413).

use super::bytes::{Cut, be16, be32, behind, part, u8_at};
use super::line::Line;
use super::mptcp;
use super::pieces::{Hex, HexBytes, HexWide, LineBuffer, put, put_last, when};
use super::sequences::Base;

/// The parameters for printing options.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    /// The flags of the segment.
    pub(super) flags: u8,
    /// The number that SACK blocks are relative to.
    pub(super) base: Base,
    /// True if the whole segment was captured.
    pub(super) is_whole: bool,
}

const END: u8 = 0;
const NOP: u8 = 1;
const SACK: u8 = 5;
const MULTIPATH: u8 = 30;
/// The magic number of TCP Fast Open in the experimental option.
const FAST_OPEN_MAGIC: u16 = 0xf989;

/// The reason why options are not printed to their end.
enum OptionError {
    /// An option claims more bytes than there are.
    Bad,
    /// The packet was cut before an option.
    Cut,
    /// The packet was cut in the value of an option.
    CutValue,
}

impl From<Cut> for OptionError {
    fn from(_: Cut) -> OptionError {
        OptionError::Cut
    }
}

/// Prints `length` bytes of options; returns false if printing must stop.
#[inline]
pub(super) fn print(line: &mut Line<'_>, segment: Segment, bytes: &[u8], length: usize) -> bool {
    put!(line, ", options [");
    let mut printed = 0;
    match put_all(line, segment, bytes, length, &mut printed) {
        Ok(()) => {
            put!(line, "]");
            true
        }
        Err(OptionError::Bad) => {
            put!(line, "[bad opt]", when(printed > 0, "]"));
            false
        }
        Err(OptionError::Cut) => {
            line.cut();
            false
        }
        Err(OptionError::CutValue) => {
            line.cut();
            if printed > 0 {
                put!(line, ">");
            }
            false
        }
    }
}

#[inline]
fn put_all(
    line: &mut Line<'_>,
    segment: Segment,
    bytes: &[u8],
    length: usize,
    printed: &mut u32,
) -> Result<(), OptionError> {
    let mut at = 0;
    while at < length {
        if *printed > 0 {
            put!(line, ",");
        }
        let kind = u8_at(bytes, at)?;
        let (len, head) = if kind <= NOP { (1, 1) } else { (usize::from(u8_at(bytes, at + 1)?), 2) };
        if kind > NOP && (len < 2 || len > length - at) {
            return Err(OptionError::Bad);
        }
        put_name(line, kind);
        let value = OptionValue {
            option: behind(bytes, at),
            bytes: behind(bytes, at + head),
            len: len - head,
            room: length - at - head,
        };
        let read = put_value(line, segment, kind, &value)?;
        if read + head != len {
            put!(line, "[len ", len, "]");
        }
        at += head + read;
        *printed += 1;
        if kind == END {
            break;
        }
    }
    Ok(())
}

/// The value of an option.
struct OptionValue<'v> {
    /// The captured bytes from the option's type on.
    option: &'v [u8],
    /// The captured bytes from the value on.
    bytes: &'v [u8],
    /// Length of the value, from the option.
    len: usize,
    /// Number of bytes up to the end of the header.
    room: usize,
}

impl<'v> OptionValue<'v> {
    /// Returns the first `len` bytes of the value.
    fn need(&self, len: usize) -> Result<&'v [u8], OptionError> {
        if len > self.room {
            return Err(OptionError::Bad);
        }
        part(self.bytes, 0, len).map_err(|Cut| OptionError::CutValue)
    }

    /// Returns the option with its type and length.
    fn option(&self) -> Result<&'v [u8], OptionError> {
        part(self.option, 0, self.len + 2).map_err(|Cut| OptionError::CutValue)
    }

    fn whole(&self) -> Result<&'v [u8], OptionError> {
        self.need(self.len)
    }
}

#[inline]
fn put_name(line: &mut Line<'_>, kind: u8) {
    line.text(match kind {
        END => "eol",
        NOP => "nop",
        2 => "mss",
        3 => "wscale",
        4 => "sackOK",
        5 => "sack",
        6 => "echo",
        7 => "echoreply",
        8 => "TS",
        11 => "cc",
        12 => "ccnew",
        // The tool does not print the name of this option.
        13 => "",
        19 => "md5",
        20 => "scps",
        28 => "uto",
        29 => "tcp-ao",
        MULTIPATH => "mptcp",
        34 => "tfo",
        254 => "exp",
        _ => return put!(line, "unknown-", kind),
    });
}

/// Prints the value of an option; returns the length it should have.
#[inline]
fn put_value(line: &mut Line<'_>, segment: Segment, kind: u8, value: &OptionValue<'_>) -> Result<usize, OptionError> {
    match kind {
        END | NOP | 4 => Ok(0),
        2 => {
            put!(line, " ", be16(value.need(2)?, 0)?);
            Ok(2)
        }
        3 => {
            put!(line, " ", u8_at(value.need(1)?, 0)?);
            Ok(1)
        }
        SACK => put_sack(line, segment, value),
        6 | 7 | 11..=13 => {
            put!(line, " ", be32(value.need(4)?, 0)?);
            Ok(4)
        }
        8 => {
            let times = value.need(8)?;
            put!(line, " val ", be32(times, 0)?);
            put!(line, " ecr ", be32(times, 4)?);
            Ok(8)
        }
        19 => {
            let digest = value.need(16)?;
            line.text(match segment.is_whole {
                true => " shared secret not supplied with -M, can't check - ",
                false => " snaplen too short, can't check - ",
            });
            put!(line, HexBytes(digest));
            Ok(16)
        }
        20 => {
            let scps = value.need(2)?;
            put!(line, " cap ");
            put!(line, HexWide(u8_at(scps, 0)?, 2));
            put!(line, " id ", u8_at(scps, 1)?);
            Ok(2)
        }
        MULTIPATH => {
            value.whole()?;
            mptcp::print(line, segment.flags, value.option()?).map_err(|Cut| OptionError::Bad)?;
            Ok(value.len)
        }
        28 => put_user_timeout(line, value),
        _ => put_rare(line, kind, value),
    }
}

#[cold]
fn put_rare(line: &mut Line<'_>, kind: u8, value: &OptionValue<'_>) -> Result<usize, OptionError> {
    match kind {
        34 => {
            let cookie = value.whole()?;
            put!(line, " ");
            put_fast_open(line, cookie, false);
        }
        29 => put_authentication(line, value)?,
        254 => put_experiment(line, value.whole()?)?,
        _ => {
            for at in 0..value.len {
                put!(line, when(at == 0, " 0x"));
                let byte = u8_at(value.need(at + 1)?, at)?;
                put!(line, HexWide(byte, 2));
            }
        }
    }
    Ok(value.len)
}

fn put_sack(line: &mut Line<'_>, segment: Segment, value: &OptionValue<'_>) -> Result<usize, OptionError> {
    if value.len % 8 != 0 {
        put!(line, " invalid sack");
        return Ok(value.len);
    }
    put!(line, " ", (value.len / 8), " ");
    for at in (0..value.len).step_by(8) {
        let block = value.need(at + 8)?;
        let base = segment.base.sacked;
        put!(line, "{", be32(block, at)?.wrapping_sub(base));
        put!(line, ":", be32(block, at + 4)?.wrapping_sub(base), "}");
    }
    Ok(value.len)
}

/// Prints a user timeout (RFC 5482): if the highest bit is set, the rest is in minutes.
fn put_user_timeout(line: &mut Line<'_>, value: &OptionValue<'_>) -> Result<usize, OptionError> {
    let timeout = be16(value.need(2)?, 0)?;
    put!(line, " 0x", Hex(timeout));
    let seconds = u32::from(timeout >> 1) * if timeout & 1 != 0 { 60 } else { 1 };
    put!(line, " ", seconds);
    Ok(2)
}

/// Prints an authentication option (RFC 5925): the numbers of two keys, and the code.
fn put_authentication(line: &mut Line<'_>, value: &OptionValue<'_>) -> Result<(), OptionError> {
    if value.len < 2 {
        return put_last!(line, " (invalid)");
    }
    put!(line, " keyid ", u8_at(value.need(1)?, 0)?);
    put!(line, " rnextkeyid ", u8_at(value.need(2)?, 1)?);
    if value.len > 2 {
        put!(line, " mac 0x");
        for at in 2..value.len {
            let byte = u8_at(value.need(at + 1)?, at)?;
            put!(line, HexWide(byte, 2));
        }
    }
    Ok(())
}

fn put_experiment(line: &mut Line<'_>, option: &[u8]) -> Result<(), OptionError> {
    if option.len() < 2 {
        return Err(OptionError::Bad);
    }
    put!(line, "-");
    match be16(option, 0)? {
        FAST_OPEN_MAGIC => put_fast_open(line, behind(option, 2), true),
        magic => put!(line, HexWide(magic, 4)),
    }
    Ok(())
}

fn put_fast_open(line: &mut Line<'_>, cookie: &[u8], is_experiment: bool) {
    if is_experiment {
        put!(line, "tfo");
    }
    if cookie.is_empty() {
        put!(line, " cookiereq");
    } else if cookie.len() % 2 != 0 || !(4..=16).contains(&cookie.len()) {
        put!(line, " (invalid)");
    } else {
        put!(line, " cookie ", HexBytes(cookie));
    }
}
