//! Describes TCP headers: flags, numbers, and the options of a SYN.

use super::{payload_bytes, put_number, put_word, tls};
use crate::bytes::{array, be16};
use record::rows::tcp_flag::{ACK, NAMES, SYN};
use record::rows::{PacketHeaders, TcpHeader};

/// `syn,ack seq 1 ack 2 win 64240 len 0 mss 1460`
pub(super) fn put(packet: &PacketHeaders<'_>, tcp: &TcpHeader, out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b' ');
    }
    let start = out.len();
    for (_, word) in NAMES.iter().enumerate().filter(|(bit, _)| tcp.flags >> bit & 1 != 0) {
        if out.len() > start {
            out.push(b',');
        }
        out.extend_from_slice(word.as_bytes());
    }
    if out.len() == start {
        out.extend_from_slice(b"none");
    }
    put_number(out, b"seq", tcp.seq.into());
    if tcp.flags & ACK != 0 {
        put_number(out, b"ack", tcp.ack.into());
    }
    put_number(out, b"win", tcp.window.into());
    let header = packet.payload.get(12).map_or(0, |byte| u32::from(byte >> 4) * 4);
    put_number(out, b"len", payload_bytes(packet).saturating_sub(header).into());
    if tcp.flags & SYN != 0 {
        put_options(packet.payload.get(20..header as usize).unwrap_or_default(), out);
    }
    if packet.fragment.is_none() {
        tls::put(packet.payload.get(header as usize..).unwrap_or_default(), out);
    }
}

/// Appends the options of a SYN (RFC 9293, 7323, 2018).
fn put_options(mut rest: &[u8], out: &mut Vec<u8>) {
    // Each option has at least one byte, and a header has at most 40.
    while let Some(&kind) = rest.first() {
        let length = match kind {
            0 => return,
            1 => 1,
            _ => rest.get(1).map_or(0, |length| usize::from(*length)),
        };
        if length == 0 || kind > 1 && length < 2 {
            return;
        }
        match (kind, length) {
            (2, 4) => put_number(out, b"mss", be16(rest, 2).unwrap_or(0).into()),
            (3, 3) => put_number(out, b"wscale", array::<1>(rest, 2).map_or(0, |[shift]| shift.into())),
            (4, 2) => put_word(out, b"sackok"),
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
}
