//! ICMPv6 (RFC 4443), neighbour discovery (RFC 4861), MLD (RFC 2710, 3810).

mod listeners;
mod nodes;
mod options;
mod quoted;
mod renumbering;

use super::bytes::{Printed, array, at_most, be16, be32, behind, part, u8_at};
use super::checksum;
use super::line::{Host6, Line};
use super::network::{ICMPV6, Network};
use super::pieces::{Flags, HexWide, list, names, put, put_last, when};

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const HOME_REPLY: u8 = 145;
const MOBILE_ADVERTISEMENT: u8 = 147;

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "icmp6";
    if length == 0 {
        return put_last!(line, "ICMP6, length 0 (invalid)");
    }
    if line.verbose() > 0 && !packet.fragmented {
        put_checksum(line, packet, bytes, length)?;
    }
    let kind = u8_at(bytes, 0)?;
    put!(line, "ICMP6, ", kind_name(kind).ok_or(list!("unknown icmp6 type (", kind, ")")));
    if line.verbose() > 0 && matches!(kind, 133..=137 | HOME_REPLY | MOBILE_ADVERTISEMENT) {
        put!(line, ", length ", length);
    }
    let code = u8_at(bytes, 1)?;
    let is_undecoded = kind_name(kind).is_none() || kind >= 200;
    if is_undecoded {
        put!(line, ", length ", length);
    }
    if is_undecoded || kind == 1 && code > 4 {
        if !is_undecoded {
            put!(line, ", unknown unreach code (", code, ")");
        }
        if line.verbose() < 2 {
            super::dump::put_hex_lines(line.out, "\n\t", at_most(bytes, length), false);
        }
        return Ok(());
    }
    put_body(line, kind, code, bytes, length)?;
    if line.verbose() == 0 {
        put!(line, ", length ", length);
    }
    Ok(())
}

names! {
    fn kind_name(u8):
        1 => "destination unreachable", 2 => "packet too big", 3 => "time exceeded in-transit",
        4 => "parameter problem", 128 => "echo request", 129 => "echo reply", 130 => "multicast listener query",
        131 => "multicast listener report", 132 => "multicast listener done", 133 => "router solicitation",
        134 => "router advertisement", 135 => "neighbor solicitation", 136 => "neighbor advertisement",
        137 => "redirect", 138 => "router renumbering", 139 => "who-are-you request", 140 => "who-are-you reply",
        141 => "inverse neighbor solicitation", 142 => "inverse neighbor advertisement",
        143 => "multicast listener report v2", 144 => "ha discovery request", 145 => "ha discovery reply",
        146 => "mobile router solicitation", 147 => "mobile router advertisement", 200 => "mtrace response",
        201 => "mtrace message",
}

fn put_checksum(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    let Some(sum) = packet.sum(ICMPV6, bytes, length) else { return Ok(()) };
    match checksum::wrong(sum, bytes, 2)? {
        None => put_last!(line, "[icmp6 sum ok] "),
        Some((found, right)) => {
            put_last!(line, "[bad icmp6 cksum 0x", HexWide(found, 4), " -> 0x", HexWide(right, 4), "!] ")
        }
    }
}

fn put_body(line: &mut Line<'_>, kind: u8, code: u8, bytes: &[u8], length: usize) -> Printed {
    match kind {
        1 => quoted::put_unreachable(line, code, behind(bytes, 8))?,
        2 => put!(line, ", mtu ", be32(bytes, 4)?),
        3 if code == 0 => put!(line, " for ", Host6(array(bytes, 8 + 24)?)),
        3 if code == 1 => put!(line, " (reassembly)"),
        3 => put!(line, ", unknown code (", code, ")"),
        4 => put_parameter(line, code, bytes)?,
        128 | 129 => put!(line, ", id ", be16(bytes, 4)?, ", seq ", be16(bytes, 6)?),
        130..=132 | 143 => listeners::print(line, kind, bytes, length)?,
        ROUTER_SOLICITATION => options::print(line, bytes, 8, length)?,
        ROUTER_ADVERTISEMENT => put_router(line, bytes, length)?,
        135 | 136 => {
            put!(line, if kind == 135 { ", who has " } else { ", tgt is " }, Host6(array(bytes, 8)?));
            if kind == 136 && line.verbose() > 0 {
                let flags = be32(bytes, 4)?;
                put!(line, ", Flags [", Flags(&ADVERTISEMENT_FLAGS, "none", ", ", flags), "]");
            }
            options::print(line, bytes, 24, length)?;
        }
        137 => {
            let (target, dest) = (array(bytes, 8), array(bytes, 24)?);
            put!(line, ", ", Host6(dest));
            let target = target?;
            put!(line, " to ", Host6(target));
            options::print(line, bytes, 40, length)?;
        }
        138 => renumbering::print(line, bytes)?,
        139 | 140 => nodes::print(line, kind, bytes, length)?,
        144 | 146 => put!(line, ", id 0x", HexWide(be16(bytes, 4)?, 4)),
        HOME_REPLY => put_home_agents(line, bytes, length)?,
        MOBILE_ADVERTISEMENT => put_mobile(line, bytes, length)?,
        _ => {}
    }
    Ok(())
}

const ADVERTISEMENT_FLAGS: [(u32, &str); 3] =
    [(0x8000_0000, "router"), (0x4000_0000, "solicited"), (0x2000_0000, "override")];

fn put_parameter(line: &mut Line<'_>, code: u8, bytes: &[u8]) -> Printed {
    // The quoted header must have been captured.
    part(bytes, 8, 40)?;
    let what = match code {
        0 => ", erroneous - octet ",
        1 => ", next header - octet ",
        2 => ", option - octet ",
        3 => ", incomplete header chain - octet ",
        _ => return put_last!(line, ", code-#", code),
    };
    put_last!(line, what, be32(bytes, 4)?)
}

const ROUTER_FLAGS: [(u32, &str); 4] =
    [(0x80, "managed"), (0x40, "other stateful"), (0x20, "home agent"), (0x02, "ipv6 only")];

/// Prints a router advertisement, with `-v`.
fn put_router(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    if line.verbose() == 0 {
        return Ok(());
    }
    let ([hops, flags], lifetime) = (array(bytes, 4)?, be16(bytes, 6)?);
    let (reachable, retransmit) = (be32(bytes, 8)?, be32(bytes, 12)?);
    put!(line, "\n\thop limit ", hops, ", Flags [", Flags(&ROUTER_FLAGS, "none", ", ", flags), "], pref ");
    put!(line, options::preference(flags), ", router lifetime ", lifetime, "s, reachable time ", reachable);
    put!(line, "ms, retrans timer ", retransmit, "ms");
    options::print(line, bytes, 16, length)
}

/// Prints home agents of mobile hosts (RFC 6275), with `-v`.
fn put_home_agents(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    if line.verbose() == 0 {
        return Ok(());
    }
    put!(line, ", id 0x", HexWide(be16(bytes, 4)?, 4));
    for at in (8..length).step_by(16) {
        put!(line, ", ", Host6(array(bytes, at)?));
    }
    Ok(())
}

/// Prints prefixes of mobile hosts (RFC 6275), with `-v`.
fn put_mobile(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    if line.verbose() == 0 {
        return Ok(());
    }
    put!(line, ", id 0x", HexWide(be16(bytes, 4)?, 4));
    let flags = be16(bytes, 6)?;
    put!(line, when(flags & 0xc000 != 0, " "), when(flags & 0x8000 != 0, "M"), when(flags & 0x4000 != 0, "O"));
    options::print(line, bytes, 8, length)
}
