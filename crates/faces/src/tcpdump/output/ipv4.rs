//! IPv4 (RFC 791).

use super::bytes::{Cut, Printed, at_most, be16, behind, part, u8_at};
use super::line::Line;
use super::network::{Network, prints_addresses};
use super::pieces::{Flags, Hex, put, put_last, when};
use super::{checksum, ip_proto, ipv4_options};
use packet::read_network_into;

const HEADER_BYTES: usize = 20;
/// Bits for more fragments and do not fragment, and the bit without a name.
const FLAGS: [(u32, &str); 3] = [(0x2000, "+"), (0x4000, "DF"), (0x8000, "rsvd")];

/// Prints a packet of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "ip";
    let version = u8_at(bytes, 0)? >> 4;
    if version != 4 {
        return put_last!(line, "IP", version, when(version == 6, ", wrong link-layer encapsulation"), " (invalid)");
    }
    put!(line, when(!line.options.link_header, "IP "));
    if bytes.len() < HEADER_BYTES {
        return line.end_cut();
    }
    if length < HEADER_BYTES {
        return put_last!(line, "truncated-ip ", length);
    }
    let header = usize::from(u8_at(bytes, 0)? & 15) * 4;
    if header < HEADER_BYTES {
        return put_last!(line, "bad-hlen ", header);
    }
    let total = usize::from(be16(bytes, 2)?);
    if length < total {
        put!(line, "truncated-ip - ", total - length, " bytes missing! ");
    }
    if total < header {
        return put_last!(line, "bad-len ", total);
    }
    body(line, at_most(bytes, total), header, total)
}

fn body(line: &mut Line<'_>, bytes: &[u8], header: usize, total: usize) -> Printed {
    let mut ip = None;
    read_network_into(bytes, &mut ip);
    let ip = ip.as_ref().ok_or(Cut)?;
    let fragmented = ip.fragment.is_some_and(|fragment| fragment.more);
    let packet = Network { ip, bytes, fragmented, again: print };
    if line.verbose() > 0 && !put_details(line, &packet, header)? {
        return Ok(());
    }
    if ip.fragment.is_some_and(|fragment| fragment.offset != 0) {
        if line.options.quiet <= 1 {
            packet.put_addresses(line);
            put!(line, ":");
            line.ip_protocol(ip.proto);
        }
        return Ok(());
    }
    if !prints_addresses(ip.proto) {
        packet.put_addresses(line);
        put!(line, ": ");
    }
    if bytes.len() < header {
        put!(line, " [remaining caplen(", bytes.len(), ") < header length(", header, ")]");
        return line.end_cut();
    }
    ip_proto::print(line, &packet, ip.proto, ip.payload, total - header)
}

/// Prints the additional text of `-v`; returns false if the options are cut, and then nothing more is printed.
fn put_details(line: &mut Line<'_>, packet: &Network<'_>, header: usize) -> Printed<bool> {
    let (ip, bytes) = (packet.ip, packet.bytes);
    put!(line, "(tos 0x", Hex(ip.tos), ["", ",ECT(1)", ",ECT(0)", ",CE"][usize::from(ip.tos & 3)]);
    if ip.ttl > 0 {
        put!(line, ", ttl ", ip.ttl);
    }
    put!(line, ", id ", ip.id, ", offset ", ip.fragment.map_or(0, |fragment| fragment.offset), ", flags [");
    put!(
        line,
        Flags(&FLAGS, "none", ", ", be16(bytes, 6)?),
        "], proto ",
        ip_proto::name(ip.proto).unwrap_or("unknown")
    );
    put!(line, " (", ip.proto, "), length ", ip.length);
    let mut whole = true;
    if header > HEADER_BYTES {
        put!(line, ", options (");
        whole = ipv4_options::print(line, behind(bytes, HEADER_BYTES), header - HEADER_BYTES)?;
        put!(line, when(!whole, " [truncated-option]"), ")");
    }
    if !line.options.no_checksums {
        put_checksum(line, bytes, header)?;
    }
    put!(line, ")\n    ");
    if !whole {
        packet.put_addresses(line);
        put!(line, ": ");
        line.cut();
    }
    Ok(whole)
}

fn put_checksum(line: &mut Line<'_>, bytes: &[u8], header: usize) -> Printed {
    let Ok(header) = part(bytes, 0, header) else { return Ok(()) };
    if let Some((found, right)) = checksum::wrong(checksum::sum(&[header]), header, 10)? {
        put!(line, ", bad cksum ", Hex(found), " (->", Hex(right), ")!");
    }
    Ok(())
}
