//! UDP (RFC 768).

use super::bytes::{Printed, be16, behind};
use super::line::Line;
use super::network::{Network, UDP};
use super::pieces::{HexWide, put, put_last};
use super::{checksum, ports};
use packet::read_transport;

const HEADER_BYTES: usize = 8;

/// Prints a datagram of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "udp";
    let Some(ports) = read_transport(UDP, bytes).ports() else {
        if packet.ip.proto == UDP {
            packet.put_addresses(line);
            put!(line, ": ");
        }
        return line.end_cut();
    };
    packet.put_ends(line, UDP, ports);
    if length < HEADER_BYTES {
        return put_last!(line, "truncated-udp ", length);
    }
    let claimed_len = match be16(bytes, 4) {
        Err(_) => return line.end_cut(),
        // A jumbogram's length does not fit in the field.
        Ok(0) if length > 0xffff => length,
        Ok(claimed_len) => claimed_len.into(),
    };
    if claimed_len < HEADER_BYTES {
        return put_last!(line, "truncated-udplength ", claimed_len);
    }
    if bytes.len() < HEADER_BYTES {
        return line.end_cut();
    }
    let (claimed_len, rest) = (claimed_len - HEADER_BYTES, length - HEADER_BYTES);
    let rest = rest.min(claimed_len);
    // Bytes after the datagram's length are also read.
    let payload = behind(bytes, HEADER_BYTES);
    if let Some(kind) = line.options.packet_type {
        return ports::udp_of_type(kind)(line, payload, rest);
    }
    let sums = line.verbose() > 1 || line.verbose() > 0 && packet.is_v6();
    if sums && !line.options.no_checksums && !packet.fragmented {
        put_checksum(line, packet, bytes, rest)?;
    }
    if let Some(print) = ports::udp(ports).filter(|_| line.options.quiet == 0) {
        return print(line, payload, rest);
    }
    match claimed_len > rest && !packet.fragmented {
        true => put_last!(line, "UDP, bad length ", claimed_len, " > ", rest),
        false => put_last!(line, "UDP, length ", claimed_len),
    }
}

fn put_checksum(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], rest: usize) -> Printed {
    if be16(bytes, 6)? == 0 && !packet.is_v6() {
        return put_last!(line, "[no cksum] ");
    }
    let Some(sum) = packet.sum(UDP, bytes, rest + HEADER_BYTES) else { return Ok(()) };
    match checksum::wrong(sum, bytes, 6)? {
        None => put_last!(line, "[udp sum ok] "),
        Some((found, right)) => {
            put_last!(line, "[bad udp cksum 0x", HexWide(found, 4), " -> 0x", HexWide(right, 4), "!] ")
        }
    }
}
