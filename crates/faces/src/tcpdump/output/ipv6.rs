//! IPv6 (RFC 8200).

use super::bytes::{Printed, at_most, be16, be32, behind, u8_at};
use super::ipv6_extensions::Jumbo;
use super::line::Line;
use super::network::{Network, prints_addresses};
use super::{ip_proto, ipv6_extensions as extensions};

const HEADER_BYTES: usize = 40;
const HOP_BY_HOP: u8 = 0;

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
    // 0 means a jumbogram, whose length is in an option after the header.
    let (total, jumbo) = match said {
        0 if u8_at(bytes, 6)? == HOP_BY_HOP => (length, Jumbo::Missing),
        said => (said + HEADER_BYTES, Jumbo::Needless),
    };
    put_missing(line, length, total);
    if line.verbose() > 0 {
        put_details(line, bytes)?;
    }
    put_chain(line, at_most(bytes, total), total, jumbo)
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

/// Prints extension headers, and the protocol after them.
fn put_chain(line: &mut Line<'_>, bytes: &[u8], total: usize, mut jumbo: Jumbo) -> Printed {
    let mut packet = Network { header: bytes, version: 6, fragmented: false, again: print, ttl: u8_at(bytes, 7)? };
    let (mut next, mut at) = (u8_at(bytes, 6)?, HEADER_BYTES);
    if !prints_addresses(next) {
        packet.put_addresses(line)?;
        line.put(": ");
    }
    // A header is examined if the beginning of the previous one was captured.
    let (mut before, mut hop_by_hop) = (0, false);
    while before < bytes.len() {
        let header = behind(bytes, at);
        let bytes_of_header = match next {
            HOP_BY_HOP if before > 0 => {
                line.put(match hop_by_hop {
                    true => "[The Hop-by-Hop Options header was already found]",
                    false => "[The Hop-by-Hop Options header don't follow the IPv6 header]",
                });
                line.invalid();
                return Ok(());
            }
            HOP_BY_HOP => {
                hop_by_hop = true;
                let found = extensions::hop_by_hop(line, header, &mut jumbo)?;
                if matches!(jumbo, Jumbo::Missing) {
                    line.put("[No valid Jumbo Payload Hop-by-Hop option found]");
                    line.invalid();
                    return Ok(());
                }
                found
            }
            60 => extensions::destination(line, header)?,
            43 => extensions::routing(line, header)?,
            44 => {
                packet.fragmented = true;
                extensions::fragment(line, header, total - at)?
            }
            _ => {
                let mut total = total;
                if let Jumbo::Found(payload) = jumbo {
                    put_missing(line, total, payload as usize + HEADER_BYTES);
                    total = payload as usize + HEADER_BYTES;
                }
                return ip_proto::print(line, &packet, next, header, total - at);
            }
        };
        let Some(bytes_of_header) = bytes_of_header else { return Ok(()) };
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

/// Prints how many bytes are missing from a packet whose header has the length `said`.
fn put_missing(line: &mut Line<'_>, length: usize, said: usize) {
    if length < said {
        line.put("truncated-ip6 - ");
        line.len(said - length);
        line.put(" bytes missing!");
    }
}
