//! The option of multipath TCP (RFC 8684, RFC 6824).

use super::bytes::{Cut, Printed, array, be16, be32, be64, behind, part, u8_at};
use super::line::{Host4, Host6, Line};
use super::pieces::{Hex, HexBytes, put, put_last, when};
use record::rows::tcp_flag::{ACK, SYN};

/// Prints an option that was captured completely, beginning with its type; fails if it has the wrong length.
pub(super) fn print(line: &mut Line<'_>, tcp_flags: u8, option: &[u8]) -> Printed {
    let subtype = u8_at(option, 2)?;
    line.protocol = "mptcp";
    put!(line, " ", option.len(), " ");
    match subtype >> 4 {
        0 => capable(line, tcp_flags, subtype & 15, option),
        1 => join(line, tcp_flags, option),
        2 => data(line, tcp_flags, option),
        3 => add_address(line, subtype & 15, option),
        4 => remove_address(line, option),
        5 => priority(line, option),
        6 => {
            put!(line, "fail");
            exactly(option, &[12])?;
            put_last!(line, " seq ", be64(option, 4)?)
        }
        7 => {
            put!(line, "fast-close");
            exactly(option, &[12])?;
            put_last!(line, " key 0x", Hex(be64(option, 4)?))
        }
        _ => put_last!(line, "unknown"),
    }
}

fn exactly(option: &[u8], lens: &[usize]) -> Printed {
    if lens.contains(&option.len()) { Ok(()) } else { Err(Cut) }
}

fn capable(line: &mut Line<'_>, tcp_flags: u8, version: u8, option: &[u8]) -> Printed {
    put!(line, "capable");
    match (tcp_flags & SYN != 0, tcp_flags & ACK != 0) {
        (true, _) => exactly(option, &[4, 12])?,
        (false, true) => exactly(option, &[20, 22])?,
        (false, false) => return Err(Cut),
    }
    if version > 1 {
        return put_last!(line, " Unknown Version (", version, ")");
    }
    put!(line, " v", version);
    if u8_at(option, 3)? & 0x80 != 0 {
        put!(line, " csum");
    }
    if option.len() >= 12 {
        put!(line, " {0x", Hex(be64(option, 4)?));
        if option.len() >= 20 {
            put!(line, ",0x", Hex(be64(option, 12)?));
        }
        put!(line, "}");
    }
    Ok(())
}

fn join(line: &mut Line<'_>, tcp_flags: u8, option: &[u8]) -> Printed {
    put!(line, "join");
    let len = option.len();
    match (tcp_flags & SYN != 0, tcp_flags & ACK != 0) {
        (true, false) => exactly(option, &[12])?,
        (true, true) => exactly(option, &[12, 16, 24])?,
        (false, true) => exactly(option, &[24])?,
        (false, false) => return Err(Cut),
    }
    if len != 24 {
        put!(line, when(u8_at(option, 2)? & 1 != 0, " backup"), " id ", u8_at(option, 3)?);
    }
    match len {
        12 => put!(line, " token 0x", Hex(be32(option, 4)?), " nonce 0x", Hex(be32(option, 8)?)),
        16 => put!(line, " hmac 0x", Hex(be64(option, 4)?), " nonce 0x", Hex(be32(option, 12)?)),
        _ => put!(line, " hmac 0x", HexBytes(part(option, 4, 20)?)),
    }
    Ok(())
}

/// Prints the acknowledgement and sequence numbers of data.
fn data(line: &mut Line<'_>, tcp_flags: u8, option: &[u8]) -> Printed {
    put!(line, "dss");
    let flags = u8_at(option, 3)?;
    if tcp_flags & SYN != 0 {
        return Err(Cut);
    }
    put!(line, when(flags & 0x10 != 0, " fin"));
    let mut rest = behind(option, 4);
    if flags & 1 != 0 {
        put!(line, " ack ");
        rest = put_number(line, rest, flags & 2 != 0)?;
    }
    if flags & 4 != 0 {
        put!(line, " seq ");
        rest = put_number(line, rest, flags & 8 != 0)?;
        put!(line, " subseq ", be32(rest, 0)?);
        rest = behind(rest, 4);
        put!(line, " len ", be16(rest, 0)?);
        rest = behind(rest, 2);
        if !rest.is_empty() {
            put!(line, " csum 0x", Hex(be16(rest, 0)?));
            rest = behind(rest, 2);
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(Cut) }
}

/// Appends a number of eight or four bytes; returns the bytes after it.
fn put_number<'r>(line: &mut Line<'_>, rest: &'r [u8], is_long: bool) -> Printed<&'r [u8]> {
    if is_long {
        put!(line, be64(rest, 0)?);
        return Ok(behind(rest, 8));
    }
    put!(line, be32(rest, 0)?);
    Ok(behind(rest, 4))
}

/// Prints an address. `kind` is the version of the address in version 0 of the protocol, and whether this is an echo
/// in version 1.
fn add_address(line: &mut Line<'_>, kind: u8, option: &[u8]) -> Printed {
    put!(line, "add-addr");
    exactly(option, &[8, 10, 16, 18, 20, 22, 28, 30])?;
    match kind {
        0 => put!(line, " v1"),
        1 => put!(line, " v1-echo"),
        4 | 6 => put!(line, " v0-ip", kind),
        _ => put!(line, " [bad version/echo]"),
    }
    put!(line, " id ", u8_at(option, 3)?);
    let (is_long, port, code) = match option.len() {
        8 => (false, false, false),
        10 => (false, true, false),
        16 => (false, false, true),
        18 => (false, true, true),
        20 => (true, false, false),
        22 => (true, true, false),
        28 => (true, false, true),
        _ => (true, true, true),
    };
    let mut rest = behind(option, 4);
    if is_long {
        put!(line, " ", Host6(array(rest, 0)?));
    } else {
        put!(line, " ", Host4(array(rest, 0)?));
    }
    rest = behind(rest, if is_long { 16 } else { 4 });
    if port {
        put!(line, ":", be16(rest, 0)?);
        rest = behind(rest, 2);
    }
    if code {
        put!(line, " hmac 0x", Hex(be64(rest, 0)?));
    }
    Ok(())
}

fn remove_address(line: &mut Line<'_>, option: &[u8]) -> Printed {
    put!(line, "rem-addr");
    let ids = behind(option, 3);
    u8_at(ids, 0)?;
    put!(line, " id");
    for id in ids {
        put!(line, " ", *id);
    }
    Ok(())
}

fn priority(line: &mut Line<'_>, option: &[u8]) -> Printed {
    put!(line, "prio");
    exactly(option, &[3, 4])?;
    put!(line, if u8_at(option, 2)? & 1 != 0 { " backup" } else { " non-backup" });
    if option.len() == 4 {
        put!(line, " id ", u8_at(option, 3)?);
    }
    Ok(())
}
