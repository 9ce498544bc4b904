//! Describes a packet in words: a line for people, as short as possible.
//!
//! Text of the packet (DNS names) is made printable. There is one file per protocol.
mod arp;
mod dns;
mod icmp;
mod quic;
mod tcp;
mod tls;

use record::rows::{CapturedPacket, PacketHeaders, Transport, ip_proto};
use record::text::{put_hex, put_u64};

/// Maximum size of a description: a few DNS names.
///
/// Bound: bytes of the text about a packet. Beyond: the rest of the text is left out. By: any sender of packets.
pub const INFO_BYTES_MAX: usize = 8 << 10;

/// Appends the description of `row`, without its addresses and ports.
pub fn put_info(row: &CapturedPacket<'_>, out: &mut Vec<u8>) {
    match (&row.packet, &row.arp) {
        (Some(packet), _) => put_packet(packet, out),
        (_, Some(arp)) => arp::put(arp, out),
        _ => put_frame(row, out),
    }
    if row.is_cut() && is_cut_short(row) {
        put_word(out, b"[cut]");
    }
}

/// True if the next header to describe was not captured.
fn is_cut_short(row: &CapturedPacket<'_>) -> bool {
    match &row.packet {
        None => row.arp.is_none(),
        Some(packet) => {
            let is_later = packet.fragment.is_some_and(|fragment| fragment.offset > 0);
            let has_more = matches!(packet.proto, ip_proto::TCP | ip_proto::UDP | ip_proto::ICMP | ip_proto::ICMPV6);
            let is_short = match packet.transport {
                Transport::Other => true,
                // Only the ports of the header were captured.
                Transport::Ports { .. } => packet.proto == ip_proto::TCP,
                _ => false,
            };
            is_short && has_more && !is_later
        }
    }
}

fn put_packet(packet: &PacketHeaders<'_>, out: &mut Vec<u8>) {
    if let Some(fragment) = packet.fragment {
        out.extend_from_slice(b"fragment id ");
        put_u64(out, packet.id.into());
        put_number(out, b"offset", fragment.offset.into());
        if fragment.more {
            put_word(out, b"more");
        }
    }
    match &packet.transport {
        Transport::Tcp(header) => tcp::put(packet, header, out),
        Transport::Ports { sport, dport } if packet.proto == ip_proto::UDP => put_udp(packet, [*sport, *dport], out),
        Transport::Icmp(header) => icmp::put(packet, header, out),
        _ => {
            if packet.proto != ip_proto::TCP && packet.proto != ip_proto::UDP {
                put_number(out, b"ip protocol", packet.proto.into());
            }
            put_number(out, b"len", u64::from(payload_bytes(packet)));
        }
    }
}

/// Bytes after the network header, according to that header.
fn payload_bytes(packet: &PacketHeaders<'_>) -> u32 {
    match u32::try_from(packet.header.len()) {
        // Super-packets beyond 64 KiB have 0 there.
        Ok(header) if packet.length > header => packet.length - header,
        _ => packet.payload.len() as u32,
    }
}

/// Ports of DNS and multicast DNS.
const DNS: [u16; 2] = [53, 5353];

fn put_udp(packet: &PacketHeaders<'_>, ports: [u16; 2], out: &mut Vec<u8>) {
    const HEADER: usize = 8;
    let data = packet.payload.get(HEADER..).unwrap_or_default();
    let is_dns = ports.iter().any(|port| DNS.contains(port)) && packet.fragment.is_none();
    if !(is_dns && dns::put(data, out)) {
        if packet.fragment.is_none() {
            quic::put(data, ports, out);
        }
        put_number(out, b"len", u64::from(payload_bytes(packet)).saturating_sub(HEADER as u64));
    }
}

/// Describes a frame that is not an IP packet.
fn put_frame(row: &CapturedPacket<'_>, out: &mut Vec<u8>) {
    match row.link.ether_type {
        0 if row.link.payload.is_empty() => {
            match row.link_type.0 {
                105 | 127 => out.extend_from_slice(b"802.11"),
                189 | 220 | 249 => out.extend_from_slice(b"usb"),
                239 => out.extend_from_slice(b"nflog"),
                number => {
                    out.extend_from_slice(b"link type ");
                    put_u64(out, number.into());
                }
            }
            return put_number(out, b"len", row.len.into());
        }
        0..1536 => out.extend_from_slice(b"802.3"),
        kind => {
            out.extend_from_slice(b"ethertype 0x");
            put_hex(out, kind.into());
        }
    }
    put_number(out, b"len", row.link.payload.len() as u64);
}

/// Appends a word, with a space before it unless it is the first.
fn put_word(out: &mut Vec<u8>, word: &[u8]) {
    if !out.is_empty() {
        out.push(b' ');
    }
    out.extend_from_slice(word);
}

/// Appends `word 5`.
fn put_number(out: &mut Vec<u8>, word: &[u8], number: u64) {
    put_word(out, word);
    out.push(b' ');
    put_u64(out, number);
}

#[cfg(test)]
mod tests;
