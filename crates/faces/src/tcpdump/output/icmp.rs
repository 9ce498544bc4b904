//! ICMP (RFC 792, 950, 1256).

mod extensions;

use super::bytes::{Cut, Printed, array, at_most, be16, be32, behind, part, u8_at};
use super::checksum;
use super::line::{DEPTH_MAX, Line};
use super::network::{Network, TCP, UDP};

const UNREACHABLE: u8 = 3;
const REDIRECT: u8 = 5;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER: u8 = 12;

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "icmp";
    // The addresses and ports in the message are read before anything is printed.
    let start = line.out.len();
    line.put("ICMP ");
    if let Err(cut) = put_message(line, bytes) {
        line.out.truncate(start);
        let _ = cut;
        line.cut();
        return Ok(());
    }
    line.put(", length ");
    line.len(length);
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
    let sum = checksum::sum(&[message]);
    if !checksum::is_right(sum) {
        let found = be16(message, 2)?;
        line.put(" (wrong icmp cksum ");
        line.hex(found);
        line.put(" (->");
        line.hex(checksum::should_be(found, sum));
        line.put(")!)");
    }
    Ok(())
}

/// Prints the packet that an error is about, on its own line.
fn put_quoted(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8]) -> Printed {
    if line.depth >= DEPTH_MAX {
        return Ok(());
    }
    line.depth += 1;
    line.put("\n\t");
    // The quoted packet has the length in its header: what the router omitted is not reported as missing.
    let quoted = behind(bytes, 8);
    let total = usize::from(be16(quoted, 2)?);
    (packet.again)(line, at_most(quoted, total), total)
}

fn put_message(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let (kind, code) = (u8_at(bytes, 0)?, u8_at(bytes, 1)?);
    match kind {
        0 | 8 => {
            let (id, seq) = (be16(bytes, 4)?, be16(bytes, 6)?);
            line.put(if kind == 8 { "echo request, id " } else { "echo reply, id " });
            line.dec(id);
            line.item(", seq ", seq);
        }
        UNREACHABLE => return put_unreachable(line, code, bytes),
        4 => line.put("source quench"),
        REDIRECT => return put_redirect(line, code, bytes),
        9 => return put_advertisement(line, bytes),
        10 => line.put("router solicitation"),
        TIME_EXCEEDED if bytes.len() < 28 => return Err(Cut),
        TIME_EXCEEDED => match code {
            0 => line.put("time exceeded in-transit"),
            1 => line.put("ip reassembly time exceeded"),
            code => line.item("time exceeded-#", code),
        },
        PARAMETER if code == 0 => line.item("parameter problem - octet ", u8_at(bytes, 4)?),
        PARAMETER => line.item("parameter problem - code ", code),
        17 => line.put("address mask request"),
        18 => {
            line.put("address mask is 0x");
            line.hex_padded(be32(bytes, 8)?, 8);
        }
        13 => {
            line.item("time stamp query id ", be16(bytes, 4)?);
            line.item(" seq ", be16(bytes, 6)?);
        }
        14 => return put_times(line, bytes),
        kind => match kind_name(kind) {
            Some(name) => line.put(name),
            None => line.item("type-#", kind),
        },
    }
    Ok(())
}

fn kind_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        15 => "information request",
        16 => "information reply",
        _ => return None,
    })
}

fn put_unreachable(line: &mut Line<'_>, code: u8, bytes: &[u8]) -> Printed {
    let quoted = behind(bytes, 8);
    let dest: [u8; 4] = array(quoted, 16)?;
    let with = |line: &mut Line<'_>, before: &str, behind: &str| {
        line.put(before);
        line.v4(dest);
        line.put(behind);
    };
    match code {
        0 => with(line, "net ", " unreachable"),
        1 => with(line, "host ", " unreachable"),
        2 => {
            let proto = u8_at(quoted, 9)?;
            with(line, "", " protocol ");
            line.dec(proto);
            line.put(" unreachable");
        }
        3 => return put_port_unreachable(line, quoted, dest),
        4 => {
            let mtu = be16(bytes, 6)?;
            with(line, "", " unreachable - need to frag");
            if mtu != 0 {
                line.item(" (mtu ", mtu);
                line.byte(b')');
            }
        }
        5 => with(line, "", " unreachable - source route failed"),
        6 => with(line, "net ", " unreachable - unknown"),
        7 => with(line, "host ", " unreachable - unknown"),
        8 => with(line, "", " unreachable - source host isolated"),
        9 => with(line, "net ", " unreachable - admin prohibited"),
        10 => with(line, "host ", " unreachable - admin prohibited"),
        11 => with(line, "net ", " unreachable - tos prohibited"),
        12 => with(line, "host ", " unreachable - tos prohibited"),
        13 => with(line, "host ", " unreachable - admin prohibited filter"),
        14 => with(line, "host ", " unreachable - host precedence violation"),
        15 => with(line, "host ", " unreachable - precedence cutoff"),
        code => {
            with(line, "", " unreachable - #");
            line.dec(code);
        }
    }
    Ok(())
}

fn put_port_unreachable(line: &mut Line<'_>, quoted: &[u8], dest: [u8; 4]) -> Printed {
    let header = usize::from(u8_at(quoted, 0)? & 15) * 4;
    let (proto, port) = (u8_at(quoted, 9)?, be16(quoted, header + 2)?);
    line.v4(dest);
    match proto {
        TCP | UDP => {
            line.put(if proto == TCP { " tcp port " } else { " udp port " });
            line.port(proto, port);
        }
        proto => {
            line.item(" protocol ", proto);
            line.item(" port ", port);
        }
    }
    line.put(" unreachable");
    Ok(())
}

fn put_redirect(line: &mut Line<'_>, code: u8, bytes: &[u8]) -> Printed {
    let (gateway, dest) = (array(bytes, 4)?, array(bytes, 24)?);
    let what = match code {
        0 => "redirect ",
        1 => "redirect ",
        2 => "redirect-tos ",
        3 => "redirect-tos ",
        _ => "redirect-#",
    };
    line.put(what);
    if code > 3 {
        line.dec(code);
        line.byte(b' ');
    }
    line.v4(dest);
    line.put(match code {
        0 | 2 => " to net ",
        1 | 3 => " to host ",
        _ => " to ",
    });
    line.v4(gateway);
    Ok(())
}

fn put_advertisement(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    line.put("router advertisement lifetime ");
    let lifetime = be16(bytes, 6)?;
    match lifetime {
        0..60 => line.dec(lifetime),
        60..3600 => {
            line.dec(lifetime / 60);
            line.byte(b':');
            put_two(line, lifetime % 60);
        }
        _ => {
            line.dec(lifetime / 3600);
            line.byte(b':');
            put_two(line, lifetime % 3600 / 60);
            line.byte(b':');
            put_two(line, lifetime % 60);
        }
    }
    let (count, size) = (u8_at(bytes, 4)?, u8_at(bytes, 5)?);
    line.item(" ", count);
    line.byte(b':');
    if size != 2 {
        line.item(" [size ", size);
        line.byte(b']');
        return Ok(());
    }
    for nth in 0..usize::from(count) {
        line.put(" {");
        line.v4(array(bytes, 8 + nth * 8)?);
        line.item(" ", be32(bytes, 12 + nth * 8)?);
        line.byte(b'}');
    }
    Ok(())
}

fn put_times(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    part(bytes, 0, 20)?;
    line.item("time stamp reply id ", be16(bytes, 4)?);
    line.item(" seq ", be16(bytes, 6)?);
    for (at, word) in [(8, ": org "), (12, ", recv "), (16, ", xmit ")] {
        line.put(word);
        put_time_of_day(line, be32(bytes, at)?);
    }
    Ok(())
}

/// Prints milliseconds since midnight.
fn put_time_of_day(line: &mut Line<'_>, ms: u32) {
    let seconds = ms / 1000;
    for (nth, part) in [seconds / 3600, seconds / 60 % 60, seconds % 60].into_iter().enumerate() {
        if nth > 0 {
            line.byte(b':');
        }
        put_two(line, part as u16);
    }
    line.byte(b'.');
    let rest = ms % 1000;
    for unit in [100, 10, 1] {
        line.dec(rest / unit % 10);
    }
}

fn put_two(line: &mut Line<'_>, n: u16) {
    if n < 10 {
        line.byte(b'0');
    }
    line.dec(n);
}
