//! TCP (RFC 9293).

use super::bytes::{Printed, at_most, be16, behind, u8_at};
use super::line::Line;
use super::network::{Network, TCP};
use super::pieces::{HexWide, PacketText, put, put_last, when};
use super::sequences::{Base, Ends};
use super::{checksum, ports, tcp_options};
use packet::read_transport;
use record::rows::tcp_flag::{ACK, FIN, RST, SYN, URG};
use record::rows::{TcpHeader, Transport};

const HEADER_BYTES: usize = 20;
/// The letters of the flags, lowest bit first.
const FLAGS: &[u8; 8] = b"FSRP.UEW";

/// Prints a segment of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "tcp";
    let transport = read_transport(TCP, bytes);
    let Some(ports) = transport.ports() else {
        packet.put_addresses(line);
        put!(line, ":");
        return line.end_cut();
    };
    packet.put_ends(line, TCP, ports);
    let (Transport::Tcp(tcp), Ok(at)) = (transport, u8_at(bytes, 12)) else { return line.end_cut() };
    if bytes.len() < HEADER_BYTES {
        return line.end_cut();
    }
    let header = usize::from(at >> 4) * 4;
    if header < HEADER_BYTES {
        put!(line, " tcp ", (length as u32).wrapping_sub(header as u32), " [bad hdr length ", header);
        return put_last!(line, " - too short, < 20]");
    }
    if line.options.quiet > 0 {
        put!(line, "tcp ", (length as u32).wrapping_sub(header as u32));
    } else {
        put_flags(line, tcp.flags);
    }
    let base = if !line.options.absolute_sequence && tcp.flags & ACK != 0 && line.options.quiet == 0 {
        line.sequences.base(Ends::new(packet.ip.src, packet.ip.dst, ports), &tcp)
    } else {
        Base::default()
    };
    if header > length {
        return put_last!(line, " [bad hdr length ", header, " - too long, > ", length, "]");
    }
    if line.options.quiet > 0 {
        return Ok(());
    }
    let (payload, options) = (length - header, header - HEADER_BYTES);
    put_numbers(line, packet, bytes, &tcp, base, (length, payload))?;
    let segment = tcp_options::Segment { flags: tcp.flags, base, is_whole: bytes.len() >= length };
    if options > 0 && !tcp_options::print(line, segment, behind(bytes, HEADER_BYTES), options) {
        return Ok(());
    }
    put!(line, ", length ", payload);
    if payload == 0 {
        return Ok(());
    }
    put_payload(line, tcp.flags, ports, behind(bytes, header), payload)
}

#[inline]
fn put_flags(line: &mut Line<'_>, flags: u8) {
    put!(line, "Flags [", when(flags == 0, "none"));
    line.out.extend(FLAGS.iter().enumerate().filter(|(bit, _)| flags >> bit & 1 != 0).map(|(_, letter)| letter));
    put!(line, "]");
}

/// Prints checksum, sequence numbers, window, urgent pointer.
#[inline]
fn put_numbers(
    line: &mut Line<'_>,
    packet: &Network<'_>,
    bytes: &[u8],
    tcp: &TcpHeader,
    base: Base,
    (length, payload): (usize, usize),
) -> Printed {
    if line.verbose() > 0 && !line.options.no_checksums && !packet.fragmented {
        put_checksum(line, packet, bytes, length)?;
    }
    if line.verbose() > 1 || payload > 0 || tcp.flags & (SYN | FIN | RST) != 0 {
        let seq = tcp.seq.wrapping_sub(base.sequence);
        put!(line, ", seq ", seq);
        if payload > 0 {
            put!(line, ":", seq.wrapping_add(payload as u32));
        }
    }
    if tcp.flags & ACK != 0 {
        put!(line, ", ack ", tcp.ack.wrapping_sub(base.acknowledgement));
    }
    put!(line, ", win ", tcp.window);
    if tcp.flags & URG != 0 {
        put!(line, ", urg ", be16(bytes, 18)?);
    }
    Ok(())
}

fn put_checksum(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    let Some(sum) = packet.sum(TCP, bytes, length) else { return Ok(()) };
    let found = be16(bytes, 16)?;
    put!(line, ", cksum 0x", HexWide(found, 4));
    match checksum::wrong(sum, bytes, 16)? {
        None => put_last!(line, " (correct)"),
        Some((_, right)) => put_last!(line, " (incorrect -> 0x", HexWide(right, 4), ")"),
    }
}

fn put_payload(line: &mut Line<'_>, flags: u8, ports: (u16, u16), bytes: &[u8], length: usize) -> Printed {
    if flags & RST != 0 && line.verbose() > 0 {
        return put_reason(line, bytes, length);
    }
    let printer = match line.options.packet_type {
        Some(kind) => ports::tcp_of_type(kind),
        None => ports::tcp(ports),
    };
    printer.map_or(Ok(()), |print| print(line, bytes, length))
}

/// Prints the reason in a reset, if there is one (RFC 1122, 4.2.2.12).
fn put_reason(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    let whole = length <= bytes.len();
    let text = at_most(bytes, length.min(30));
    put_last!(line, if whole { " [RST" } else { " [!RST" }, when(length > 30, "+"), " ", PacketText(text), "]")
}
