//! IPv6 (RFC 8200).

use super::bytes::{Cut, Printed, at_most, be16, be32, behind, u8_at};
use super::ipv6_extensions::Jumbo;
use super::line::Line;
use super::network::{Network, prints_addresses};
use super::pieces::{HexWide, put, put_last, when};
use super::{ip_proto, ipv6_extensions as extensions};
use packet::read_network_into;
use record::rows::PacketHeaders;

const HEADER_BYTES: usize = 40;
const HOP_BY_HOP: u8 = 0;

/// Prints a packet of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "ip6";
    if bytes.len() < HEADER_BYTES {
        return line.end_cut();
    }
    put!(line, when(!line.options.link_header, "IP6 "));
    if length < HEADER_BYTES {
        return put_last!(line, "truncated-ip6 ", length);
    }
    let version = u8_at(bytes, 0)? >> 4;
    if version != 6 {
        return put_last!(line, "version error: ", version, " != 6");
    }
    let payload = usize::from(be16(bytes, 4)?);
    // 0 means a jumbogram, whose length is in an option after the header.
    let (total, jumbo) = match payload {
        0 if u8_at(bytes, 6)? == HOP_BY_HOP => (length, Jumbo::Missing),
        payload => (payload + HEADER_BYTES, Jumbo::Needless),
    };
    put_missing(line, length, total);
    let mut ip = None;
    read_network_into(bytes, &mut ip);
    let ip = ip.as_ref().ok_or(Cut)?;
    if line.verbose() > 0 {
        put_details(line, bytes, ip)?;
    }
    let packet = Network { ip, bytes: at_most(bytes, total), fragmented: false, again: print };
    put_chain(line, packet, total, jumbo)
}

fn put_details(line: &mut Line<'_>, bytes: &[u8], ip: &PacketHeaders<'_>) -> Printed {
    let flow = be32(bytes, 0)?;
    put!(line, "(");
    if ip.tos != 0 {
        put!(line, "class 0x", HexWide(ip.tos, 2), ", ");
    }
    if flow & 0x000f_ffff != 0 {
        put!(line, "flowlabel 0x", HexWide(flow & 0x000f_ffff, 5), ", ");
    }
    let name = ip_proto::name(ip.proto).unwrap_or("unknown");
    put!(line, "hlim ", ip.ttl, ", next-header ", name, " (", ip.proto, ") payload length: ", be16(bytes, 4)?, ") ");
    Ok(())
}

/// Prints extension headers, and the protocol after them.
fn put_chain(line: &mut Line<'_>, mut packet: Network<'_>, total: usize, mut jumbo: Jumbo) -> Printed {
    let (bytes, mut next, mut at) = (packet.bytes, packet.ip.proto, HEADER_BYTES);
    if !prints_addresses(next) {
        packet.put_addresses(line);
        put!(line, ": ");
    }
    // A header is examined if the beginning of the previous one was captured.
    let (mut before, mut hop_by_hop) = (0, false);
    while before < bytes.len() {
        let header = behind(bytes, at);
        let bytes_of_header = match next {
            HOP_BY_HOP if before > 0 => {
                let what = if hop_by_hop { "was already found" } else { "don't follow the IPv6 header" };
                return put_last!(line, "[The Hop-by-Hop Options header ", what, "] (invalid)");
            }
            HOP_BY_HOP => {
                hop_by_hop = true;
                let found = extensions::hop_by_hop(line, header, &mut jumbo)?;
                if matches!(jumbo, Jumbo::Missing) {
                    return put_last!(line, "[No valid Jumbo Payload Hop-by-Hop option found] (invalid)");
                }
                found
            }
            60 => extensions::destination(line, header)?,
            43 => extensions::routing(line, header)?,
            44 => {
                packet.fragmented = true;
                extensions::fragment(line, header, total - at)?
            }
            _ => return put_payload(line, &packet, next, header, (total, at), jumbo),
        };
        let Some(bytes_of_header) = bytes_of_header else { return Ok(()) };
        next = u8_at(header, 0)?;
        before = at;
        at += bytes_of_header;
        if at > total {
            return end_in_headers(line);
        }
    }
    Ok(())
}

/// Prints the protocol after the headers, which end at `at`.
fn put_payload(
    line: &mut Line<'_>,
    packet: &Network<'_>,
    proto: u8,
    bytes: &[u8],
    (mut total, at): (usize, usize),
    jumbo: Jumbo,
) -> Printed {
    if let Jumbo::Found(payload) = jumbo {
        put_missing(line, total, payload as usize + HEADER_BYTES);
        total = payload as usize + HEADER_BYTES;
    }
    // The length in the option may end within the headers.
    match total.checked_sub(at) {
        Some(left) => ip_proto::print(line, packet, proto, at_most(bytes, left), left),
        None => end_in_headers(line),
    }
}

/// Ends the line of a packet whose headers are longer than its length.
fn end_in_headers(line: &mut Line<'_>) -> Printed {
    line.protocol = "ip6";
    line.end_cut()
}

/// Prints how many bytes are missing from a packet whose header has the length `total`.
fn put_missing(line: &mut Line<'_>, length: usize, total: usize) {
    if length < total {
        put!(line, "truncated-ip6 - ", total - length, " bytes missing!");
    }
}
