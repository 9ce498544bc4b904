//! IPv4 (RFC 791).

use super::bytes::{Printed, at_most, be16, behind, part, u8_at};
use super::line::Line;
use super::network::{Network, prints_addresses};
use super::{checksum, ip_proto, ipv4_options};

const HEADER_BYTES: usize = 20;
/// Bits for more fragments and do not fragment, the bit without a name; then the offset.
const FLAGS: [(u32, &str); 3] = [(0x2000, "+"), (0x4000, "DF"), (0x8000, "rsvd")];
const OFFSET: u16 = 0x1fff;

/// Prints a packet of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "ip";
    let version = u8_at(bytes, 0)? >> 4;
    if version != 4 {
        line.item("IP", version);
        if version == 6 {
            line.put(", wrong link-layer encapsulation");
        }
        line.invalid();
        return Ok(());
    }
    if !line.options.link_header {
        line.put("IP ");
    }
    if bytes.len() < HEADER_BYTES {
        line.cut();
        return Ok(());
    }
    if length < HEADER_BYTES {
        line.put("truncated-ip ");
        line.len(length);
        return Ok(());
    }
    let header = usize::from(u8_at(bytes, 0)? & 15) * 4;
    if header < HEADER_BYTES {
        line.put("bad-hlen ");
        line.len(header);
        return Ok(());
    }
    let total = usize::from(be16(bytes, 2)?);
    if length < total {
        line.put("truncated-ip - ");
        line.len(total - length);
        line.put(" bytes missing! ");
    }
    if total < header {
        line.put("bad-len ");
        line.len(total);
        return Ok(());
    }
    body(line, at_most(bytes, total), header, total)
}

fn body(line: &mut Line<'_>, bytes: &[u8], header: usize, total: usize) -> Printed {
    let offset = be16(bytes, 6)?;
    if line.verbose() > 0 && !put_details(line, bytes, header)? {
        return Ok(());
    }
    let packet =
        Network { header: bytes, version: 4, fragmented: offset & 0x2000 != 0, again: print, ttl: u8_at(bytes, 8)? };
    let proto = u8_at(bytes, 9)?;
    if offset & OFFSET != 0 {
        if line.options.quiet > 1 {
            return Ok(());
        }
        packet.put_addresses(line)?;
        line.byte(b':');
        line.ip_protocol(proto);
        return Ok(());
    }
    if !prints_addresses(proto) {
        packet.put_addresses(line)?;
        line.put(": ");
    }
    if bytes.len() < header {
        line.put(" [remaining caplen(");
        line.len(bytes.len());
        line.put(") < header length(");
        line.len(header);
        line.put(")]");
        line.cut();
        return Ok(());
    }
    ip_proto::print(line, &packet, proto, behind(bytes, header), total - header)
}

/// Prints the additional text of `-v`; returns false if the options are cut, and then nothing more is printed.
fn put_details(line: &mut Line<'_>, bytes: &[u8], header: usize) -> Printed<bool> {
    let (tos, ttl, offset, proto) = (u8_at(bytes, 1)?, u8_at(bytes, 8)?, be16(bytes, 6)?, u8_at(bytes, 9)?);
    line.put("(tos 0x");
    line.hex(tos);
    line.put(["", ",ECT(1)", ",ECT(0)", ",CE"][usize::from(tos & 3)]);
    if ttl > 0 {
        line.item(", ttl ", ttl);
    }
    line.item(", id ", be16(bytes, 4)?);
    line.item(", offset ", (offset & OFFSET) * 8);
    line.put(", flags [");
    line.flags(&FLAGS, "none", ", ", offset.into());
    line.put("], proto ");
    line.put(ip_proto::name(proto).unwrap_or("unknown"));
    line.item(" (", proto);
    line.item("), length ", be16(bytes, 2)?);
    let mut whole = true;
    if header > HEADER_BYTES {
        line.put(", options (");
        whole = ipv4_options::print(line, behind(bytes, HEADER_BYTES), header - HEADER_BYTES)?;
        if !whole {
            line.put(" [truncated-option]");
        }
        line.byte(b')');
    }
    if !line.options.no_checksums {
        put_checksum(line, bytes, header)?;
    }
    line.put(")\n    ");
    if !whole {
        let packet = Network { header: bytes, version: 4, fragmented: false, again: print, ttl };
        packet.put_addresses(line)?;
        line.put(": ");
        line.cut();
    }
    Ok(whole)
}

fn put_checksum(line: &mut Line<'_>, bytes: &[u8], header: usize) -> Printed {
    let Ok(header) = part(bytes, 0, header) else { return Ok(()) };
    let sum = checksum::sum(&[header]);
    if !checksum::is_right(sum) {
        let found = be16(header, 10)?;
        line.put(", bad cksum ");
        line.hex(found);
        line.put(" (->");
        line.hex(checksum::should_be(found, sum));
        line.put(")!");
    }
    Ok(())
}
