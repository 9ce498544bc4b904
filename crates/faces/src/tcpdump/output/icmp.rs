//! ICMP (RFC 792, 950, 1256).

mod extensions;

use super::bytes::{Cut, Printed, array, at_most, be16, be32, behind, part, u8_at};
use super::checksum;
use super::line::{DEPTH_MAX, Host4, Line, Port};
use super::network::{Network, TCP, UDP};
use super::pieces::{Hex, HexWide, Padded, list, put, put_last};

const UNREACHABLE: u8 = 3;
const REDIRECT: u8 = 5;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER: u8 = 12;

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "icmp";
    // The addresses and ports in the message are read before anything is printed.
    let start = line.out.len();
    put!(line, "ICMP ");
    if put_message(line, bytes).is_err() {
        line.out.truncate(start);
        return line.end_cut();
    }
    put!(line, ", length ", length);
    let kind = u8_at(bytes, 0)?;
    if line.verbose() > 0 && !packet.fragmented && !line.options.no_checksums {
        put_checksum(line, bytes, length)?;
    }
    if line.verbose() > 0 && matches!(kind, UNREACHABLE | 4 | REDIRECT | TIME_EXCEEDED | PARAMETER) {
        put_quoted(line, packet, bytes)?;
        line.protocol = "icmp";
    }
    if line.verbose() > 0 && matches!(kind, UNREACHABLE | TIME_EXCEEDED | PARAMETER) {
        extensions::print(line, bytes, length)?;
    }
    Ok(())
}

fn put_checksum(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    let Ok(message) = part(bytes, 0, length) else { return Ok(()) };
    if let Some((found, right)) = checksum::wrong(checksum::sum(&[message]), message, 2)? {
        put!(line, " (wrong icmp cksum ", Hex(found), " (->", Hex(right), ")!)");
    }
    Ok(())
}

/// Prints the packet that an error is about, on its own line.
fn put_quoted(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8]) -> Printed {
    if line.depth >= DEPTH_MAX {
        return Ok(());
    }
    line.depth += 1;
    put!(line, "\n\t");
    // The quoted packet has the length in its header: what the router omitted is not reported as missing.
    let quoted = behind(bytes, 8);
    let total = usize::from(be16(quoted, 2)?);
    (packet.again)(line, at_most(quoted, total), total)
}

fn put_message(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let (kind, code) = (u8_at(bytes, 0)?, u8_at(bytes, 1)?);
    let id_and_seq =
        || -> Printed<_> { Ok(list!(be16(bytes, 4)?, if kind < 13 { ", seq " } else { " seq " }, be16(bytes, 6)?)) };
    match kind {
        0 => put!(line, "echo reply, id ", id_and_seq()?),
        8 => put!(line, "echo request, id ", id_and_seq()?),
        UNREACHABLE => return put_unreachable(line, code, bytes),
        4 => put!(line, "source quench"),
        REDIRECT => return put_redirect(line, code, bytes),
        9 => return put_advertisement(line, bytes),
        10 => put!(line, "router solicitation"),
        TIME_EXCEEDED if bytes.len() < 28 => return Err(Cut),
        TIME_EXCEEDED => match code {
            0 => put!(line, "time exceeded in-transit"),
            1 => put!(line, "ip reassembly time exceeded"),
            code => put!(line, "time exceeded-#", code),
        },
        PARAMETER if code == 0 => put!(line, "parameter problem - octet ", u8_at(bytes, 4)?),
        PARAMETER => put!(line, "parameter problem - code ", code),
        13 => put!(line, "time stamp query id ", id_and_seq()?),
        14 => {
            put!(line, "time stamp reply id ", id_and_seq()?);
            for (at, word) in [(8, ": org "), (12, ", recv "), (16, ", xmit ")] {
                put_time_of_day(line, word, be32(bytes, at)?);
            }
        }
        15 => put!(line, "information request"),
        16 => put!(line, "information reply"),
        17 => put!(line, "address mask request"),
        18 => put!(line, "address mask is 0x", HexWide(be32(bytes, 8)?, 8)),
        kind => put!(line, "type-#", kind),
    }
    Ok(())
}

/// The words before and after the destination by the code.
#[rustfmt::skip]
const UNREACHABLES: [(&str, &str); 16] = [
    ("net ", ""), ("host ", ""), ("", " protocol "), ("", ""), ("", " - need to frag"), ("", " - source route failed"),
    ("net ", " - unknown"), ("host ", " - unknown"), ("", " - source host isolated"), ("net ", " - admin prohibited"),
    ("host ", " - admin prohibited"), ("net ", " - tos prohibited"), ("host ", " - tos prohibited"),
    ("host ", " - admin prohibited filter"), ("host ", " - host precedence violation"),
    ("host ", " - precedence cutoff"),
];

fn put_unreachable(line: &mut Line<'_>, code: u8, bytes: &[u8]) -> Printed {
    let quoted = behind(bytes, 8);
    let dest = Host4(array(quoted, 16)?);
    let Some((before, after)) = UNREACHABLES.get(usize::from(code)) else {
        return put_last!(line, dest, " unreachable - #", code);
    };
    match code {
        2 => put!(line, dest, *after, u8_at(quoted, 9)?, " unreachable"),
        3 => {
            let header = usize::from(u8_at(quoted, 0)? & 15) * 4;
            let (proto, port) = (u8_at(quoted, 9)?, be16(quoted, header + 2)?);
            match proto {
                TCP => put!(line, dest, " tcp port ", Port(proto, port), " unreachable"),
                UDP => put!(line, dest, " udp port ", Port(proto, port), " unreachable"),
                proto => put!(line, dest, " protocol ", proto, " port ", port, " unreachable"),
            }
        }
        _ => put!(line, *before, dest, " unreachable", *after),
    }
    match be16(bytes, 6)? {
        mtu if code == 4 && mtu != 0 => put_last!(line, " (mtu ", mtu, ")"),
        _ => Ok(()),
    }
}

fn put_redirect(line: &mut Line<'_>, code: u8, bytes: &[u8]) -> Printed {
    let (gateway, dest) = (Host4(array(bytes, 4)?), Host4(array(bytes, 24)?));
    match code {
        0 => put_last!(line, "redirect ", dest, " to net ", gateway),
        1 => put_last!(line, "redirect ", dest, " to host ", gateway),
        2 => put_last!(line, "redirect-tos ", dest, " to net ", gateway),
        3 => put_last!(line, "redirect-tos ", dest, " to host ", gateway),
        _ => put_last!(line, "redirect-#", code, " ", dest, " to ", gateway),
    }
}

fn put_advertisement(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    put!(line, "router advertisement lifetime ");
    match be16(bytes, 6)? {
        seconds @ 0..60 => put!(line, seconds),
        seconds @ 60..3600 => put!(line, seconds / 60, ":", Padded(seconds % 60, 2)),
        seconds => put!(line, seconds / 3600, ":", Padded(seconds % 3600 / 60, 2), ":", Padded(seconds % 60, 2)),
    }
    let (count, size) = (u8_at(bytes, 4)?, u8_at(bytes, 5)?);
    put!(line, " ", count, ":");
    if size != 2 {
        return put_last!(line, " [size ", size, "]");
    }
    for at in (8..8 + usize::from(count) * 8).step_by(8) {
        put!(line, " {", Host4(array(bytes, at)?), " ", be32(bytes, at + 4)?, "}");
    }
    Ok(())
}

/// Prints milliseconds since midnight.
fn put_time_of_day(line: &mut Line<'_>, word: &str, ms: u32) {
    let seconds = ms / 1000;
    put!(line, word, Padded(seconds / 3600, 2), ":", Padded(seconds / 60 % 60, 2), ":", Padded(seconds % 60, 2));
    put!(line, ".", Padded(ms % 1000, 3));
}
