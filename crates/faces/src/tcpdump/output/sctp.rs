//! SCTP (RFC 9260): a sequence of chunks.

use super::bytes::{Printed, array, be16, be32, behind, part, u8_at};
use super::line::{Host, Line};
use super::network::Network;
use super::pieces::{Flags, Hex, names, put, put_last, when};
use super::undecoded::default_print;

const HEADER_BYTES: usize = 12;
/// Length of a chunk's type, flags and length.
const CHUNK_BYTES: usize = 4;
const DATA: u8 = 0;
/// Length of the fields between a chunk's length and its data.
const DATA_BYTES: usize = 12;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const SACK: u8 = 3;

/// Prints a packet of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, packet: &Network<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "sctp";
    if length < HEADER_BYTES {
        return put_last!(line, "truncated-sctp - ", HEADER_BYTES - length, " bytes missing!");
    }
    if part(bytes, 0, HEADER_BYTES).is_err() {
        return line.end_cut();
    }
    // The addresses are also printed after extension headers.
    put!(line, Host(packet.ip.src), ".", be16(bytes, 0)?, " > ", Host(packet.ip.dst), ".", be16(bytes, 2)?, ": sctp");
    if put_chunks(line, behind(bytes, HEADER_BYTES), length - HEADER_BYTES).is_err() {
        line.cut();
    }
    Ok(())
}

/// One chunk, without the bytes after it.
struct Chunk<'c> {
    kind: u8,
    flags: u8,
    /// The bytes after type, flags and length, without padding.
    bytes: &'c [u8],
}

fn put_chunks(line: &mut Line<'_>, mut bytes: &[u8], mut length: usize) -> Printed {
    let mut count = 0_usize;
    let in_lines = line.verbose() > 1;
    while length > 0 {
        count += 1;
        let between = match count {
            _ if in_lines => "\n\t",
            1 => " (",
            _ => ", (",
        };
        if length < CHUNK_BYTES {
            return put_last!(line, between, count, ") [chunk descriptor cut off at end of packet]");
        }
        part(bytes, 0, CHUNK_BYTES)?;
        let len = usize::from(be16(bytes, 2)?);
        if len < CHUNK_BYTES {
            return put_last!(line, between, count, ") [Bad chunk length ", len, ", < size of chunk descriptor]");
        }
        let chunk =
            Chunk { kind: u8_at(bytes, 0)?, flags: u8_at(bytes, 1)?, bytes: behind(part(bytes, 0, len)?, CHUNK_BYTES) };
        put!(line, between, count, ") [");
        match name(chunk.kind) {
            Some(name) => put!(line, name, "] "),
            None => put!(line, "Unknown chunk type: 0x", Hex(chunk.kind), "] "),
        }
        if !put_chunk(line, &chunk)? {
            return Ok(());
        }
        let padded = len.next_multiple_of(4);
        part(bytes, 0, padded)?;
        (bytes, length) = (behind(bytes, padded), length.saturating_sub(padded));
    }
    Ok(())
}

names! {
    fn name(u8):
        DATA => "DATA", INIT => "INIT", INIT_ACK => "INIT ACK", SACK => "SACK", 4 => "HB REQ", 5 => "HB ACK",
        6 => "ABORT", 7 => "SHUTDOWN", 8 => "SHUTDOWN ACK", 9 => "OP ERR", 10 => "COOKIE ECHO", 11 => "COOKIE ACK",
        12 => "ECN ECHO", 13 => "ECN CWR", 14 => "SHUTDOWN COMPLETE", 0xc0 => "FOR CUM TSN", 0xc1 => "REL CTRL",
        0xc2 => "REL CTRL ACK",
}

/// Prints a chunk; returns false if printing must stop.
fn put_chunk(line: &mut Line<'_>, chunk: &Chunk<'_>) -> Printed<bool> {
    let bytes = chunk.bytes;
    let least = match chunk.kind {
        DATA | SACK => 12,
        INIT | INIT_ACK => 16,
        _ => 0,
    };
    if chunk.kind == DATA {
        put!(line, Flags(&[(4, "(U)"), (2, "(B)"), (1, "(E)")], "", "", chunk.flags), when(chunk.flags & 7 != 0, " "));
    }
    if bytes.len() < least {
        put!(line, "bogus chunk length ", bytes.len() + CHUNK_BYTES, "]");
        return Ok(false);
    }
    match chunk.kind {
        DATA => {
            put!(line, "[TSN: ", be32(bytes, 0)?, "] [SID: ", be16(bytes, 4)?, "] ");
            put!(line, "[SSEQ ", be16(bytes, 6)?, "] [PPID 0x", Hex(be32(bytes, 8)?), "] ");
            if bytes.len() == DATA_BYTES {
                put!(line, "bogus chunk length ", DATA_BYTES + CHUNK_BYTES, "]");
                return Ok(false);
            }
            if line.verbose() > 1 {
                put!(line, "[Payload:");
                default_print(line, behind(bytes, DATA_BYTES));
                put!(line, "]");
            }
        }
        INIT | INIT_ACK => {
            put!(line, "[init tag: ", be32(bytes, 0)?, "] [rwnd: ", be32(bytes, 4)?, "] ");
            put!(line, "[OS: ", be16(bytes, 8)?, "] [MIS: ", be16(bytes, 10)?, "] ");
            put!(line, "[init TSN: ", be32(bytes, 12)?, "] ");
        }
        SACK => return put_acknowledgement(line, bytes),
        _ => {}
    }
    Ok(true)
}

fn put_acknowledgement(line: &mut Line<'_>, bytes: &[u8]) -> Printed<bool> {
    let base = be32(bytes, 0)?;
    let (gaps, duplicates) = (be16(bytes, 8)?, be16(bytes, 10)?);
    put!(line, "[cum ack ", base, "] [a_rwnd ", be32(bytes, 4)?, "] [#gap acks ", gaps, "] [#dup tsns ", duplicates);
    put!(line, "] ");
    let mut rest = behind(bytes, 12);
    for nth in 1..=gaps {
        let Ok([a, b, c, d]) = array(rest, 0) else { return put_short(line, bytes, rest) };
        let [start, end] = [[a, b], [c, d]].map(|offset| base.wrapping_add(u16::from_be_bytes(offset).into()));
        put!(line, "\n\t\t[gap ack block #", nth, ": start = ", start, ", end = ", end, "] ");
        rest = behind(rest, 4);
    }
    for nth in 1..=duplicates {
        let Ok(number) = be32(rest, 0) else { return put_short(line, bytes, rest) };
        put!(line, "\n\t\t[dup TSN #", nth, ": ", number, "] ");
        rest = behind(rest, 4);
    }
    Ok(true)
}

/// Handles a chunk that ends before all entries that it counts. Prints an error if it ends within an entry.
fn put_short(line: &mut Line<'_>, bytes: &[u8], rest: &[u8]) -> Printed<bool> {
    if !rest.is_empty() {
        put!(line, "bogus chunk length ", bytes.len() + CHUNK_BYTES, "]");
    }
    Ok(rest.is_empty())
}
