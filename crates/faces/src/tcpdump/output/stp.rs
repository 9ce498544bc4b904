//! The spanning tree protocol: IEEE 802.1D, rapid (802.1w), multiple (802.1s).

use super::bytes::{Printed, array, at_most, be16, be32, behind, part, u8_at};
use super::line::Line;
use super::pieces::{Flags, HexBytes, HexWide, Mac, PacketText, put, put_last};

/// Bytes that are read of the shortest message.
const MIN_BYTES: usize = 4;
/// Length of a configuration, without and with the byte at the end of rapid ones.
const CONFIG_BYTES: usize = 35;
const RAPID_BYTES: usize = 36;
const MULTIPLE_BYTES: usize = 102;
/// Length of the version 3 part after its length field, without instances.
const COMMON_BYTES: usize = 64;
const INSTANCE_BYTES: usize = 16;
const NAME_BYTES: usize = 32;
const RAPID: u8 = 2;
#[rustfmt::skip]
const FLAGS: [(u32, &str); 6] = [
    (0x01, "Topology change"), (0x02, "Proposal"), (0x10, "Learn"), (0x20, "Forward"), (0x40, "Agreement"),
    (0x80, "Topology change ACK"),
];

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "stp";
    if length < MIN_BYTES {
        return put_last!(line, " (invalid)");
    }
    if be16(bytes, 0)? != 0 {
        return put_last!(line, "unknown STP version, length ", length);
    }
    let version = u8_at(bytes, 2)?;
    match version {
        0 => put!(line, "STP 802.1d"),
        2 => put!(line, "STP 802.1w"),
        3 => put!(line, "STP 802.1s"),
        4 => put!(line, "STP 802.1aq"),
        _ => return put_last!(line, "STP Unknown STP protocol (0x", HexWide(version, 2), ")"),
    }
    match u8_at(bytes, 3)? {
        0 => {
            put!(line, ", Config");
            if length < CONFIG_BYTES {
                return put_last!(line, " (invalid)");
            }
            put_config(line, bytes, length)
        }
        2 => {
            put!(line, ", Rapid STP");
            put_rapid(line, version, bytes, length)
        }
        0x80 => put_last!(line, ", Topology Change"),
        kind => put_last!(line, ", Unknown BPDU Type (0x", HexWide(kind, 2), ")"),
    }
}

fn put_rapid(line: &mut Line<'_>, version: u8, bytes: &[u8], length: usize) -> Printed {
    if version == RAPID {
        if length >= RAPID_BYTES {
            return put_config(line, bytes, length);
        }
    } else if version > RAPID && length >= MULTIPLE_BYTES && u8_at(bytes, 35)? == 0 {
        let more = usize::from(be16(bytes, RAPID_BYTES)?) + 2;
        if length >= RAPID_BYTES + more {
            return put_multiple(line, bytes, length);
        }
    } else if version < RAPID {
        return Ok(());
    }
    put_last!(line, " (invalid)")
}

fn put_config(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    put_flags(line, ", Flags [", u8_at(bytes, 4)?);
    let port = be16(bytes, 25)?;
    put_bridge(line, ", bridge-id ", bytes, 17)?;
    put!(line, ".", HexWide(port, 4), ", length ", length);
    if line.verbose() == 0 {
        return Ok(());
    }
    put_times(line, bytes)?;
    put_bridge(line, "\n\troot-id ", bytes, 5)?;
    put!(line, ", root-pathcost ", be32(bytes, 13)?);
    if u8_at(bytes, 2)? == RAPID {
        put!(line, ", port-role ", role(u8_at(bytes, 4)?));
    }
    Ok(())
}

fn put_flags(line: &mut Line<'_>, words: &str, flags: u8) {
    put!(line, words, Flags(&FLAGS, "none", ", ", flags), "]");
}

/// Appends `words` and `8000.02:00:00:00:00:01`.
fn put_bridge(line: &mut Line<'_>, words: &str, bytes: &[u8], at: usize) -> Printed {
    let (priority, address): (_, [u8; 6]) = (be16(bytes, at)?, array(bytes, at + 2)?);
    put_last!(line, words, HexWide(priority, 4), ".", Mac(&address))
}

fn put_times(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let times = [be16(bytes, 27)?, be16(bytes, 29)?, be16(bytes, 31)?, be16(bytes, 33)?];
    let words = ["\n\tmessage-age ", "s, max-age ", "s, hello-time ", "s, forwarding-delay "];
    for (word, time) in words.into_iter().zip(times) {
        put!(line, word);
        put_seconds(line, time.into());
    }
    put_last!(line, "s")
}

/// Appends seconds from units of 1/256 s, with two decimal places, rounded to even.
fn put_seconds(line: &mut Line<'_>, time: u32) {
    let (hundredths, rest) = (time * 25 / 64, time * 25 % 64);
    let hundredths = hundredths + u32::from(rest > 32 || rest == 32 && hundredths % 2 == 1);
    put!(line, hundredths / 100, ".", hundredths / 10 % 10, hundredths % 10);
}

/// Returns the role of a port from the flags.
fn role(flags: u8) -> &'static str {
    ["Unknown", "Alternate", "Root", "Designated"][usize::from(flags >> 2 & 3)]
}

fn put_multiple(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    let flags = u8_at(bytes, 4)?;
    put_flags(line, ", CIST Flags [", flags);
    put!(line, ", length ", length);
    if line.verbose() == 0 {
        return Ok(());
    }
    put_bridge_and(line, ("\n\tport-role ", role(flags), ", CIST root-id "), bytes, 5, 13, ", CIST ext-pathcost ")?;
    let port = be16(bytes, 25)?;
    put_bridge(line, "\n\tCIST regional-root-id ", bytes, 17)?;
    put!(line, ", CIST port-id ", HexWide(port, 4), ",");
    put_times(line, bytes)?;
    let more = be16(bytes, RAPID_BYTES)?;
    put!(line, "\n\tv3len ", more, ", MCID Name ");
    put_name(line, behind(bytes, 39))?;
    let (revision, digest) = (be16(bytes, 71)?, part(bytes, 73, 16)?);
    put!(line, ", rev ", revision, ",\n\t\tdigest ", HexBytes(digest), ", ");
    put!(line, "CIST int-root-pathcost ", be32(bytes, 89)?, ",");
    put_bridge(line, "\n\tCIST bridge-id ", bytes, 93)?;
    put!(line, ", ");
    put!(line, "CIST remaining-hops ", u8_at(bytes, 101)?);
    put_instances(line, behind(bytes, MULTIPLE_BYTES), usize::from(more).saturating_sub(COMMON_BYTES))
}

/// Appends a bridge and the cost at offset `cost`, after both have been read.
fn put_bridge_and(
    line: &mut Line<'_>,
    words: (&str, &str, &str),
    bytes: &[u8],
    at: usize,
    cost: usize,
    name: &str,
) -> Printed {
    let cost = be32(bytes, cost)?;
    put!(line, words.0, words.1);
    put_bridge(line, words.2, bytes, at)?;
    put_last!(line, name, cost)
}

/// Appends a name of up to 32 bytes, which is padded with zeros.
fn put_name(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let name = at_most(bytes, NAME_BYTES);
    let len = name.iter().position(|byte| *byte == 0);
    put!(line, PacketText(at_most(name, len.unwrap_or(NAME_BYTES))));
    if len.is_none() {
        part(bytes, 0, NAME_BYTES)?;
    }
    Ok(())
}

fn put_instances(line: &mut Line<'_>, mut bytes: &[u8], mut length: usize) -> Printed {
    while length >= INSTANCE_BYTES {
        let (flags, number) = (u8_at(bytes, 0)?, be16(bytes, 1)?);
        put!(line, "\n\tMSTI ", number & 0xfff);
        put_flags(line, ", Flags [", flags);
        put!(line, ", port-role ", role(flags));
        put_bridge_and(line, ("\n\t\tMSTI regional-root-id", "", " "), bytes, 1, 9, ", pathcost ")?;
        let (bridge, port, hops) = (u8_at(bytes, 13)?, u8_at(bytes, 14)?, u8_at(bytes, 15)?);
        put!(line, "\n\t\tMSTI bridge-prio ", bridge >> 4, ", port-prio ", port >> 4, ", hops ", hops);
        (bytes, length) = (behind(bytes, INSTANCE_BYTES), length - INSTANCE_BYTES);
    }
    Ok(())
}
