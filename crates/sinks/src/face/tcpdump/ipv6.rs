//! IPv6 (RFC 8200).

use super::bytes::{Printed, at_most, be16, be32, behind, u8_at};
use super::line::Line;
use super::network::{Network, prints_addresses};
use super::{ip_proto, ipv6_extensions as extensions};

const HEADER_BYTES: usize = 40;

/// Prints a packet of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "ip6";
    if bytes.len() < HEADER_BYTES {
        line.cut();
        return Ok(());
    }
    if !line.options.link_header {
        line.put("IP6 ");
    }
    if length < HEADER_BYTES {
        line.put("truncated-ip6 ");
        line.len(length);
        return Ok(());
    }
    let version = u8_at(bytes, 0)? >> 4;
    if version != 6 {
        line.item("version error: ", version);
        line.put(" != 6");
        return Ok(());
    }
    let said = usize::from(be16(bytes, 4)?);
    // 0: a jumbogram, whose length stands in an option behind the header.
    let total = if said == 0 && u8_at(bytes, 6)? == 0 { length } else { said + HEADER_BYTES };
    if length < total {
        line.put("truncated-ip6 - ");
        line.len(total - length);
        line.put(" bytes missing!");
    }
    if line.verbose() > 0 {
        put_details(line, bytes)?;
    }
    put_chain(line, at_most(bytes, total), total)
}

fn put_details(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let flow = be32(bytes, 0)?;
    line.byte(b'(');
    if flow & 0x0ff0_0000 != 0 {
        line.put("class 0x");
        line.hex_padded(flow >> 20 & 0xff, 2);
        line.put(", ");
    }
    if flow & 0x000f_ffff != 0 {
        line.put("flowlabel 0x");
        line.hex_padded(flow & 0x000f_ffff, 5);
        line.put(", ");
    }
    let next = u8_at(bytes, 6)?;
    line.item("hlim ", u8_at(bytes, 7)?);
    line.put(", next-header ");
    line.put(ip_proto::name(next).unwrap_or("unknown"));
    line.item(" (", next);
    line.item(") payload length: ", be16(bytes, 4)?);
    line.put(") ");
    Ok(())
}

/// Extension headers, and what they lead to.
fn put_chain(line: &mut Line<'_>, bytes: &[u8], total: usize) -> Printed {
    let mut packet = Network { header: bytes, version: 6, fragmented: false, again: print, ttl: u8_at(bytes, 7)? };
    let (mut next, mut at) = (u8_at(bytes, 6)?, HEADER_BYTES);
    if !prints_addresses(next) {
        packet.put_addresses(line)?;
        line.put(": ");
    }
    // A header is looked at if the one before it was captured from its beginning.
    let mut before = 0;
    while before < bytes.len() {
        let header = behind(bytes, at);
        let bytes_of_header = match next {
            0 => extensions::options(line, "HBH ", header)?,
            60 => extensions::options(line, "DSTOPT ", header)?,
            43 => extensions::routing(line, header)?,
            44 => {
                packet.fragmented = true;
                match extensions::fragment(line, header, total - at)? {
                    Some(bytes_of_header) => bytes_of_header,
                    None => return Ok(()),
                }
            }
            _ => return ip_proto::print(line, &packet, next, header, total - at),
        };
        next = u8_at(header, 0)?;
        before = at;
        at += bytes_of_header;
        if at > total {
            line.protocol = "ip6";
            line.cut();
            return Ok(());
        }
    }
    Ok(())
}
