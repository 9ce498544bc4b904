//! UDP (RFC 768).

use super::bytes::{Printed, be16, behind};
use super::line::Line;
use super::network::{Network, UDP};
use super::{checksum, ports};

const HEADER_BYTES: usize = 8;

/// Prints a datagram of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "udp";
    let (Ok(sport), Ok(dport)) = (be16(bytes, 0), be16(bytes, 2)) else {
        if packet.proto()? == UDP {
            packet.put_addresses(line)?;
            line.put(": ");
        }
        line.cut();
        return Ok(());
    };
    packet.put_ends(line, UDP, sport, dport)?;
    line.put(": ");
    if length < HEADER_BYTES {
        line.put("truncated-udp ");
        line.len(length);
        return Ok(());
    }
    let Ok(said) = be16(bytes, 4) else {
        line.cut();
        return Ok(());
    };
    let mut said = usize::from(said);
    // A jumbogram's length does not fit in the field.
    if said == 0 && length > 0xffff {
        said = length;
    }
    if said < HEADER_BYTES {
        line.put("truncated-udplength ");
        line.len(said);
        return Ok(());
    }
    if bytes.len() < HEADER_BYTES {
        line.cut();
        return Ok(());
    }
    let (said, rest) = (said - HEADER_BYTES, length - HEADER_BYTES);
    let rest = rest.min(said);
    // Bytes after the datagram's length are also read.
    let payload = behind(bytes, HEADER_BYTES);
    if let Some(kind) = line.options.packet_type {
        return ports::udp_of_type(kind)(line, payload, rest);
    }
    let sums = line.verbose() > 1 || line.verbose() > 0 && packet.version == 6;
    if sums && !line.options.no_checksums && !packet.fragmented {
        put_checksum(line, packet, bytes, rest)?;
    }
    if line.options.quiet == 0 {
        if let Some(print) = ports::udp(sport, dport, payload) {
            return print(line, payload, rest);
        }
    }
    if said > rest && !packet.fragmented {
        line.put("UDP, bad length ");
        line.len(said);
        line.put(" > ");
        line.len(rest);
    } else {
        line.put("UDP, length ");
        line.len(said);
    }
    Ok(())
}

fn put_checksum(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], rest: usize) -> Printed {
    let found = be16(bytes, 6)?;
    if found == 0 && packet.version == 4 {
        line.put("[no cksum] ");
    } else if let Some(sum) = packet.sum(UDP, bytes, rest + HEADER_BYTES) {
        if checksum::is_right(sum) {
            line.put("[udp sum ok] ");
        } else {
            line.put("[bad udp cksum 0x");
            line.hex_padded(found, 4);
            line.put(" -> 0x");
            line.hex_padded(checksum::should_be(found, sum), 4);
            line.put("!] ");
        }
    }
    Ok(())
}
