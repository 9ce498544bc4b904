//! ICMPv6 (RFC 4443), neighbour discovery (RFC 4861), MLD (RFC 2710, 3810).

use super::bytes::{Cut, Printed, array, be16, be32, behind, part, u8_at};
use super::checksum;
use super::line::Line;
use super::network::{ICMP6, Network, TCP, UDP};
use super::pieces::{HexWide, put};

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "icmp6";
    let kind = u8_at(bytes, 0)?;
    if line.verbose() > 0 && !packet.fragmented {
        put_checksum(line, packet, bytes, length)?;
    }
    line.put("ICMP6, ");
    line.put(kind_name(kind).unwrap_or("unknown icmp6 type"));
    if kind_name(kind).is_none() {
        line.item(" (", kind);
        line.byte(b')');
    }
    if line.verbose() > 0 && matches!(kind, 133..=137) {
        line.put(", length ");
        line.len(length);
    }
    put_body(line, packet, kind, bytes, length)?;
    let is_unknown = kind == 1 && u8_at(bytes, 1)? > 4;
    let is_undecoded = kind_name(kind).is_none() || kind >= 200;
    if !is_unknown && (line.verbose() == 0 || is_undecoded) {
        line.put(", length ");
        line.len(length);
    }
    if (is_unknown || is_undecoded) && line.verbose() < 2 {
        super::dump::put_hex_lines(line.out, "\n\t", bytes, false);
    }
    Ok(())
}

fn kind_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        1 => "destination unreachable",
        2 => "packet too big",
        3 => "time exceeded in-transit",
        4 => "parameter problem",
        128 => "echo request",
        129 => "echo reply",
        130 => "multicast listener query",
        131 => "multicast listener report",
        132 => "multicast listener done",
        133 => "router solicitation",
        134 => "router advertisement",
        135 => "neighbor solicitation",
        136 => "neighbor advertisement",
        137 => "redirect",
        138 => "router renumbering",
        141 => "inverse neighbor solicitation",
        142 => "inverse neighbor advertisement",
        143 => "multicast listener report v2",
        144 => "ha discovery request",
        145 => "ha discovery reply",
        146 => "mobile router solicitation",
        147 => "mobile router advertisement",
        200 => "mtrace response",
        201 => "mtrace message",
        _ => return None,
    })
}

fn put_checksum(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    let Some(sum) = packet.sum(ICMP6, bytes, length) else { return Ok(()) };
    if checksum::is_right(sum) {
        line.put("[icmp6 sum ok] ");
    } else {
        let found = be16(bytes, 2)?;
        line.put("[bad icmp6 cksum 0x");
        line.hex_padded(found, 4);
        line.put(" -> 0x");
        line.hex_padded(checksum::should_be(found, sum), 4);
        line.put("!] ");
    }
    Ok(())
}

fn put_body(line: &mut Line<'_>, _: &Network<'_>, kind: u8, bytes: &[u8], length: usize) -> Printed {
    match kind {
        1 => {
            put_unreachable(line, bytes)?;
        }
        2 => {
            line.item(", mtu ", be32(bytes, 4)?);
        }
        3 => match u8_at(bytes, 1)? {
            0 => {
                let dest = array(bytes, 8 + 24)?;
                line.put(" for ");
                line.v6(dest);
            }
            1 => line.put(" (reassembly)"),
            code => {
                line.item(", unknown code (", code);
                line.byte(b')');
            }
        },
        4 => {
            let pointer = be32(bytes, 4)?;
            // The header that it quotes has to be there.
            part(bytes, 8, 40)?;
            match u8_at(bytes, 1)? {
                0 => line.item(", erroneous - octet ", pointer),
                1 => line.item(", next header - octet ", pointer),
                2 => line.item(", option - octet ", pointer),
                3 => line.item(", incomplete header chain - octet ", pointer),
                code => line.item(", code-#", code),
            }
        }
        128 | 129 => {
            let (id, seq) = (be16(bytes, 4)?, be16(bytes, 6)?);
            line.item(", id ", id);
            line.item(", seq ", seq);
        }
        133 | 135..=137 => put_neighbour(line, kind, bytes, length)?,
        143 => line.item(", ", be16(bytes, 6)?),
        130 if length >= QUERY2_BYTES => put_query2(line, bytes, length)?,
        130..=132 => {
            u8_at(bytes, 1)?;
            // Where it is cut, only its kind is told.
            if let (Ok(delay), Ok(group)) = (be16(bytes, 4), array(bytes, 8)) {
                put!(line, "max resp delay: ", delay, " addr: ");
                line.v6(group);
            }
        }
        144 | 146 => put!(line, ", id 0x", HexWide(be16(bytes, 4)?.into(), 4)),
        _ => {}
    }
    if kind == 143 {
        line.put(" group record(s)");
    }
    Ok(())
}

/// Neighbour discovery.
fn put_neighbour(line: &mut Line<'_>, kind: u8, bytes: &[u8], length: usize) -> Printed {
    match kind {
        133 => {
            u8_at(bytes, 1)?;
            put_options(line, bytes, 8, length)?;
        }
        135 => {
            let target = array(bytes, 8)?;
            line.put(", who has ");
            line.v6(target);
            put_options(line, bytes, 24, length)?;
        }
        136 => {
            let target = array(bytes, 8)?;
            line.put(", tgt is ");
            line.v6(target);
            if line.verbose() > 0 {
                line.put(", Flags [");
                line.flags(&ADVERTISEMENT_FLAGS, "none", ", ", be32(bytes, 4)?);
                line.byte(b']');
            }
            put_options(line, bytes, 24, length)?;
        }
        137 => {
            let (target, dest) = (array(bytes, 8)?, array(bytes, 24)?);
            line.put(", ");
            line.v6(dest);
            line.put(" to ");
            line.v6(target);
            put_options(line, bytes, 40, length)?;
        }
        _ => {}
    }
    Ok(())
}

/// A query of MLD 2, without its sources.
const QUERY2_BYTES: usize = 28;

fn put_query2(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    u8_at(bytes, 1)?;
    put!(line, " v2");
    be16(bytes, 4)?;
    if line.verbose() > 0 {
        let code = u32::from(be16(bytes, 4)?);
        let delay = if code < 32768 { code } else { ((code & 0xfff) | 0x1000) << ((code >> 12 & 7) + 3) };
        put!(line, " [max resp delay=", delay, "]");
    }
    let group = array(bytes, 8)?;
    line.put(" [gaddr ");
    line.v6(group);
    if line.verbose() > 0 {
        let flags = u8_at(bytes, 24)?;
        put!(line, if flags & 8 != 0 { " sflag" } else { "" });
        if flags & 7 != 0 {
            put!(line, " robustness=", flags & 7);
        }
        let interval = u32::from(u8_at(bytes, 25)?);
        let interval = if interval < 128 { interval } else { ((interval & 15) | 16) << ((interval >> 4 & 7) + 3) };
        put!(line, " qqi=", interval);
    }
    let sources = usize::from(be16(bytes, 26)?);
    if sources > 0 && QUERY2_BYTES + sources * 16 > length {
        put!(line, " [invalid number of sources]");
    } else if sources > 0 && line.verbose() > 1 {
        put!(line, " {");
        for nth in 0..sources {
            let source = array(bytes, QUERY2_BYTES + nth * 16)?;
            line.byte(b' ');
            line.v6(source);
        }
        put!(line, " }");
    } else if sources > 0 {
        put!(line, ", ", sources, " source(s)");
    }
    put!(line, "]");
    Ok(())
}

const ADVERTISEMENT_FLAGS: [(u32, &str); 3] =
    [(0x8000_0000, "router"), (0x4000_0000, "solicited"), (0x2000_0000, "override")];

/// Options of neighbour discovery, each on a line of its own.
fn put_options(line: &mut Line<'_>, bytes: &[u8], from: usize, length: usize) -> Printed {
    if line.verbose() == 0 {
        return Ok(());
    }
    let mut at = from;
    while at < length && at < bytes.len() {
        let [kind, eights] = array(bytes, at)?;
        if eights == 0 {
            return Err(Cut);
        }
        let len = usize::from(eights) * 8;
        let option = part(bytes, at, len)?;
        line.put("\n\t  ");
        line.put(option_name(kind));
        line.item(" option (", kind);
        line.put("), length ");
        line.len(len);
        line.item(" (", eights);
        line.put("): ");
        match kind {
            1 | 2 => line.mac(behind(option, 2)),
            5 => {
                line.put(" ");
                line.dec(be32(option, 4)?);
            }
            _ => {}
        }
        if line.verbose() > 1 {
            super::dump::put_hex_lines(line.out, "\n\t    ", behind(option, 2), false);
        }
        at += len;
    }
    Ok(())
}

fn option_name(kind: u8) -> &'static str {
    match kind {
        1 => "source link-address",
        2 => "destination link-address",
        3 => "prefix info",
        4 => "redirected header",
        5 => "mtu",
        _ => "unknown",
    }
}

fn put_unreachable(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let quoted = behind(bytes, 8);
    let code = u8_at(bytes, 1)?;
    line.put(match code {
        0 => ", unreachable route",
        1 => ",  unreachable prohibited",
        2 => ", beyond scope",
        3 => ", unreachable address",
        4 => ", unreachable port",
        _ => ", unknown unreach code",
    });
    if code > 4 {
        line.item(" (", code);
        line.byte(b')');
        return Ok(());
    }
    let dest = array(quoted, 24)?;
    match code {
        4 => {
            let port = be16(quoted, 42)?;
            line.put(", ");
            line.v6(dest);
            match u8_at(quoted, 6)? {
                proto @ (TCP | UDP) => {
                    line.put(if proto == TCP { " tcp port " } else { " udp port " });
                    line.port(proto, port);
                }
                proto => {
                    line.item(" protocol ", proto);
                    line.item(" port ", port);
                }
            }
        }
        2 => {
            line.byte(b' ');
            line.v6(dest);
            line.put(", source address ");
            line.v6(array(quoted, 8)?);
        }
        0 | 1 | 3 => {
            line.byte(b' ');
            line.v6(dest);
        }
        _ => {}
    }
    Ok(())
}
