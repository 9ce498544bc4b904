//! Files as zstd (RFC 8878), for the processes that pack what was moved away, and what is being written.

use ruzstd::decoding::FrameDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::{self, Read, Write};

/// Bytes that are packed at once, as one frame each. zstd(1) and all other readers take consecutive frames as one
/// file.
const PIECE_BYTES: usize = 4 << 20;
/// Bytes of a block at most.
const BLOCK_BYTES: usize = 128 << 10;

/// Packs `from` into `to`; returns the number of bytes read. Each piece is unpacked again and compared before it is
/// written, because the original is deleted afterwards; a piece that does not come out the same is stored
/// uncompressed. Packs about 100 MB/s and uses about 16 MiB of memory.
///
/// The encoder is young and may panic: call it in a separate process.
pub fn pack(mut from: impl Read, mut to: impl Write) -> io::Result<u64> {
    let (mut piece, mut back, mut total) = (Vec::with_capacity(PIECE_BYTES), Vec::new(), 0);
    loop {
        piece.clear();
        (&mut from).take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if piece.is_empty() && total > 0 {
            return to.flush().map(|()| total);
        }
        total += piece.len() as u64;
        to.write_all(&frame_of(&piece, &mut back))?;
        if piece.is_empty() {
            return to.flush().map(|()| total);
        }
    }
}

/// The frame of a piece, after it was unpacked and compared by way of `back`.
///
/// The encoder is young and may panic: call it in a process of its own.
pub fn frame_of(piece: &[u8], back: &mut Vec<u8>) -> Vec<u8> {
    let mut frame = compress_to_vec(piece, CompressionLevel::Fastest);
    if !is_same(&frame, piece, back) {
        frame.clear();
        put_stored(piece, &mut frame);
    }
    frame
}

/// Appends a frame that holds `piece` as it is: a header with its length, then raw blocks (RFC 8878, 3.1.1).
pub fn put_stored(piece: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd]);
    // A single segment, and eight bytes for its length; neither a checksum nor a dictionary.
    out.push(0b1110_0000);
    out.extend_from_slice(&(piece.len() as u64).to_le_bytes());
    let mut blocks = piece.chunks(BLOCK_BYTES).peekable();
    loop {
        let block = blocks.next().unwrap_or_default();
        let is_last = blocks.peek().is_none();
        let header = (block.len() as u32) << 3 | u32::from(is_last);
        out.extend(header.to_le_bytes().iter().take(3));
        out.extend_from_slice(block);
        if is_last {
            return;
        }
    }
}

/// True if `frame` unpacks to `piece`; `back` is scratch memory.
fn is_same(frame: &[u8], piece: &[u8], back: &mut Vec<u8>) -> bool {
    // One more byte of room reveals a result that is too long.
    back.resize(piece.len() + 1, 0);
    let unpacked = FrameDecoder::new().decode_all(frame, back);
    unpacked.is_ok_and(|bytes| back.get(..bytes) == Some(piece))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut to = Vec::new();
        assert_eq!(pack(bytes, &mut to).unwrap(), bytes.len() as u64);
        to
    }

    fn unpacked(frames: &[u8], bytes: usize) -> Vec<u8> {
        let mut back = vec![0; bytes + 1];
        let got = FrameDecoder::new().decode_all(frames, &mut back).unwrap();
        back.truncate(got);
        back
    }

    #[test]
    fn what_is_packed_comes_out_the_same() {
        let lines: Vec<u8> =
            (0..150_000).flat_map(|n| format!("{n}: a packet from 10.0.{}.1\n", n % 9).into_bytes()).collect();
        assert!(lines.len() > PIECE_BYTES);
        let frames = packed(&lines);
        assert!(frames.len() < lines.len() / 3, "{} of {}", frames.len(), lines.len());
        assert_eq!(unpacked(&frames, lines.len()), lines);
        for bytes in [&b""[..], b"x", &[0; 70_000]] {
            assert_eq!(unpacked(&packed(bytes), bytes.len()), bytes);
        }
    }

    #[test]
    fn what_cannot_be_packed_is_stored() {
        let noise: Vec<u8> =
            (0..200_000_u64).flat_map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()).collect();
        assert_eq!(unpacked(&packed(&noise), noise.len()), noise);
    }

    #[test]
    fn a_stored_frame_is_a_frame() {
        for bytes in [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES] {
            let piece: Vec<u8> = (0..bytes).map(|n| n as u8).collect();
            let mut frame = Vec::new();
            put_stored(&piece, &mut frame);
            assert_eq!(unpacked(&frame, bytes), piece, "{bytes}");
            assert!(frame.len() < bytes + 40);
        }
    }

    #[test]
    fn a_full_disk_is_an_error() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(pack(&b"x"[..], Full).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
