//! A message of DHCPv6 and its options, each in parentheses. Options may contain options and messages.

use super::super::bytes::{Cut, Printed, array, at_most, be16, be32, behind, part, u8_at};
use super::super::dns::put_name_from;
use super::super::line::{Host6, Line};
use super::super::pieces::{Hex, put, put_last};
use super::{names, values};

/// Messages that contain a message.
const RELAYED: [u8; 2] = [12, 13];
const HEADER_BYTES: usize = 4;
const RELAY_HEADER_BYTES: usize = 34;
/// Most options within each other; deeper ones are not decoded.
///
/// Bound: levels of DHCPv6 options within options (`udp::dhcp6_options_within_options`). Beyond: the line ends as for a
/// truncated message. By: any sender of packets.
const DEPTH_MAX: u8 = 16;
const OPTION_BYTES: usize = 4;

/// Prints a message of `length` bytes.
pub(super) fn put_message(line: &mut Line<'_>, bytes: &[u8], length: usize, depth: u8) -> Printed {
    line.protocol = "dhcp6";
    put!(line, "dhcp6");
    if depth > DEPTH_MAX {
        return Err(Cut);
    }
    let Ok([kind, a, b, c]) = array::<4>(bytes, 0) else { return line.end_cut() };
    match names::message(kind) {
        Some(name) => put!(line, " ", name),
        None => put!(line, " msgtype-", kind),
    }
    if line.verbose() == 0 {
        return Ok(());
    }
    put!(line, " (");
    let end = length.min(bytes.len());
    if RELAYED.contains(&kind) {
        let (link, peer) = (array(bytes, 2)?, array(bytes, 18));
        put!(line, "linkaddr=", Host6(link));
        let peer = peer?;
        put!(line, " peeraddr=", Host6(peer));
        put_options(line, bytes, (RELAY_HEADER_BYTES, end), depth)?;
    } else {
        put!(line, "xid=", Hex(u32::from_be_bytes([0, a, b, c])));
        put_options(line, bytes, (HEADER_BYTES, end), depth)?;
    }
    put_last!(line, ")")
}

/// An option's value within the packet. Names in the value can point past its end.
struct OptionValue<'v> {
    /// The packet.
    bytes: &'v [u8],
    at: usize,
    end: usize,
    depth: u8,
}

impl<'v> OptionValue<'v> {
    fn value(&self) -> &'v [u8] {
        at_most(behind(self.bytes, self.at), self.end - self.at)
    }

    fn len(&self) -> usize {
        self.end - self.at
    }

    /// Prints the options that begin at offset `from` of the value.
    fn put_inner(&self, line: &mut Line<'_>, from: usize) -> Printed {
        put_options(line, self.bytes, (self.at + from, self.end), self.depth + 1)
    }
}

/// Prints the options between two offsets. If they are cut, prints `[|dhcp6]`, and the enclosing option or message
/// continues after it.
fn put_options(line: &mut Line<'_>, bytes: &[u8], (mut at, end): (usize, usize), depth: u8) -> Printed {
    if depth > DEPTH_MAX {
        return Err(Cut);
    }
    while at < end {
        let head = array::<OPTION_BYTES>(bytes, at).ok().filter(|_| at + OPTION_BYTES <= end);
        let Some([high, low, len @ ..]) = head else { return line.end_cut() };
        let (number, len) = (u16::from_be_bytes([high, low]), usize::from(u16::from_be_bytes(len)));
        let value = OptionValue { bytes, at: at + OPTION_BYTES, end: at + OPTION_BYTES + len, depth };
        if value.end > end {
            return line.end_cut();
        }
        put!(line, " (");
        values::put_option_name(line, number);
        if part(bytes, value.at, len).is_err() || !put_value(line, number, &value)? {
            return line.end_cut();
        }
        at = value.end;
    }
    Ok(())
}

/// Returns false if the option is cut.
fn put_value(line: &mut Line<'_>, number: u16, option: &OptionValue<'_>) -> Printed<bool> {
    if !values::is_long_enough(number, option.len()) {
        put!(line, " ?)");
        return Ok(true);
    }
    let value = option.value();
    match number {
        1 | 2 => values::put_identifier(line, value)?,
        3 | 25 => {
            put!(line, " IAID:", be32(value, 0)?, " T1:", be32(value, 4)?, " T2:", be32(value, 8)?);
            option.put_inner(line, 12)?;
        }
        4 => {
            put!(line, " IAID:", be32(value, 0)?);
            option.put_inner(line, 4)?;
        }
        5 => {
            values::put_address(line, value, 0)?;
            put!(line, " pltime:", be32(value, 16)?, " vltime:", be32(value, 20)?);
            option.put_inner(line, 24)?;
        }
        26 => {
            values::put_address(line, value, 9)?;
            put!(line, "/", u8_at(value, 8)?, " pltime:", be32(value, 0)?, " vltime:", be32(value, 4)?);
            option.put_inner(line, 25)?;
        }
        6 | 43 => {
            for nth in 0..value.len() / 2 {
                put!(line, " ");
                values::put_option_name(line, be16(value, nth * 2)?);
            }
        }
        9 => {
            put!(line, " (");
            put_message(
                line,
                at_most(option.bytes, option.end).get(option.at..).ok_or(Cut)?,
                option.len(),
                option.depth + 1,
            )?;
        }
        11 => values::put_authentication(line, value)?,
        21 | 24 => return put_domains(line, option),
        44 => put_query(line, option)?,
        45 => option.put_inner(line, 0)?,
        56 => return put_time_servers(line, option),
        _ => values::put_plain(line, number, value)?,
    }
    put!(line, ")");
    Ok(true)
}

/// Prints domain names; returns false if one is cut.
fn put_domains(line: &mut Line<'_>, option: &OptionValue<'_>) -> Printed<bool> {
    let mut at = option.at;
    while at < option.end {
        put!(line, " ");
        match put_name_from(line, option.bytes, option.end, at) {
            Ok(end) => at = end,
            Err(Cut) => return Ok(false),
        }
    }
    put!(line, ")");
    Ok(true)
}

/// Prints a query for a lease.
fn put_query(line: &mut Line<'_>, option: &OptionValue<'_>) -> Printed {
    let value = option.value();
    match u8_at(value, 0)? {
        1 => put!(line, " by-address"),
        2 => put!(line, " by-clientID"),
        other => put!(line, " type_", other),
    }
    values::put_address(line, value, 1)?;
    option.put_inner(line, 17)
}

/// Prints NTP servers (RFC 5908); returns false if a server is cut.
fn put_time_servers(line: &mut Line<'_>, option: &OptionValue<'_>) -> Printed<bool> {
    let mut at = option.at;
    while at < option.end - 4 {
        let (kind, len) = (be16(option.bytes, at)?, usize::from(be16(option.bytes, at + 2)?));
        at += 4;
        if at + len > option.end {
            return Ok(false);
        }
        put!(line, " subopt:", kind);
        match kind {
            1 | 2 if len == 16 => values::put_address(line, option.bytes, at)?,
            3 => {
                put!(line, " ");
                if put_name_from(line, option.bytes, at + len, at).is_err() {
                    return Ok(false);
                }
            }
            _ => put!(line, " ?"),
        }
        at += len;
    }
    put!(line, ")");
    Ok(true)
}
