//! TCP (RFC 9293).

use super::bytes::{Printed, be16, be32, behind, u8_at};
use super::line::Line;
use super::network::{Network, TCP};
use super::sequences::{Base, Ends};
use super::{checksum, ports, tcp_options};

const HEADER_BYTES: usize = 20;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
const URG: u8 = 0x20;
const FLAGS: [(u8, u8); 8] =
    [(FIN, b'F'), (SYN, b'S'), (RST, b'R'), (0x08, b'P'), (ACK, b'.'), (URG, b'U'), (0x40, b'E'), (0x80, b'W')];

/// Prints a segment of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "tcp";
    let (Ok(sport), Ok(dport)) = (be16(bytes, 0), be16(bytes, 2)) else {
        packet.put_addresses(line)?;
        line.byte(b':');
        line.cut();
        return Ok(());
    };
    packet.put_ends(line, TCP, sport, dport)?;
    line.put(": ");
    if bytes.len() < HEADER_BYTES {
        line.cut();
        return Ok(());
    }
    let header = usize::from(u8_at(bytes, 12)? >> 4) * 4;
    if header < HEADER_BYTES {
        line.put(" tcp ");
        line.dec((length as u32).wrapping_sub(header as u32));
        line.put(" [bad hdr length ");
        line.len(header);
        line.put(" - too short, < 20]");
        return Ok(());
    }
    if line.options.quiet > 0 {
        line.put("tcp ");
        line.dec((length as u32).wrapping_sub(header as u32));
        if header > length {
            put_too_long(line, header, length);
        }
        return Ok(());
    }
    let flags = u8_at(bytes, 13)?;
    put_flags(line, flags);
    let (seq, ack) = (be32(bytes, 4)?, be32(bytes, 8)?);
    let base = if !line.options.absolute_sequence && flags & ACK != 0 {
        let ends = Ends::new(packet.source()?, packet.dest()?, sport, dport);
        line.sequences.base(ends, flags & SYN != 0, seq, ack)
    } else {
        Base::default()
    };
    if header > length {
        put_too_long(line, header, length);
        return Ok(());
    }
    let payload = length - header;
    put_numbers(line, packet, bytes, Numbers { flags, base, seq, ack, length, payload })?;
    if header > HEADER_BYTES
        && !tcp_options::print(
            line,
            tcp_options::Segment { flags, base, is_whole: bytes.len() >= length },
            behind(bytes, HEADER_BYTES),
            header - HEADER_BYTES,
        )
    {
        return Ok(());
    }
    line.put(", length ");
    line.len(payload);
    if payload == 0 {
        return Ok(());
    }
    put_payload(line, flags, (sport, dport), behind(bytes, header), payload)
}

fn put_too_long(line: &mut Line<'_>, header: usize, length: usize) {
    line.put(" [bad hdr length ");
    line.len(header);
    line.put(" - too long, > ");
    line.len(length);
    line.byte(b']');
}

#[inline]
fn put_flags(line: &mut Line<'_>, flags: u8) {
    line.put("Flags [");
    if flags == 0 {
        line.put("none");
    }
    for (bit, letter) in FLAGS {
        if flags & bit != 0 {
            line.byte(letter);
        }
    }
    line.byte(b']');
}

struct Numbers {
    flags: u8,
    base: Base,
    seq: u32,
    ack: u32,
    /// Length of the segment.
    length: usize,
    /// Length of its payload.
    payload: usize,
}

/// Prints checksum, sequence numbers, window, urgent pointer.
#[inline]
fn put_numbers(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], numbers: Numbers) -> Printed {
    if line.verbose() > 0 && !line.options.no_checksums && !packet.fragmented {
        put_checksum(line, packet, bytes, numbers.length)?;
    }
    let flags = numbers.flags;
    if line.verbose() > 1 || numbers.payload > 0 || flags & (SYN | FIN | RST) != 0 {
        let seq = numbers.seq.wrapping_sub(numbers.base.sequence);
        line.item(", seq ", seq);
        if numbers.payload > 0 {
            line.item(":", seq.wrapping_add(numbers.payload as u32));
        }
    }
    if flags & ACK != 0 {
        line.item(", ack ", numbers.ack.wrapping_sub(numbers.base.acknowledgement));
    }
    line.item(", win ", be16(bytes, 14)?);
    if flags & URG != 0 {
        line.item(", urg ", be16(bytes, 18)?);
    }
    Ok(())
}

fn put_checksum(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    let Some(sum) = packet.sum(TCP, bytes, length) else { return Ok(()) };
    let found = be16(bytes, 16)?;
    line.put(", cksum 0x");
    line.hex_padded(found, 4);
    if checksum::is_right(sum) {
        line.put(" (correct)");
    } else {
        line.put(" (incorrect -> 0x");
        line.hex_padded(checksum::should_be(found, sum), 4);
        line.byte(b')');
    }
    Ok(())
}

fn put_payload(line: &mut Line<'_>, flags: u8, (sport, dport): (u16, u16), bytes: &[u8], length: usize) -> Printed {
    if flags & RST != 0 && line.verbose() > 0 {
        return put_reason(line, bytes, length);
    }
    let printer = match line.options.packet_type {
        Some(kind) => ports::tcp_of_type(kind),
        None => ports::tcp(sport, dport, bytes),
    };
    match printer {
        Some(print) => print(line, bytes, length),
        None => Ok(()),
    }
}

/// Prints the reason in a reset, if there is one (RFC 1122, 4.2.2.12).
fn put_reason(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    let whole = length <= bytes.len();
    line.put(if whole { " [RST" } else { " [!RST" });
    let shown = if length > 30 {
        line.byte(b'+');
        30
    } else {
        length
    };
    line.byte(b' ');
    line.safe_text(bytes.get(..shown).unwrap_or(bytes));
    line.byte(b']');
    Ok(())
}
