//! Compressed files: gzip and zstd are recognised by their first bytes.

use std::io::{self, Chain, Cursor, Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A reader with its first bytes put back.
type Whole = Chain<Cursor<Vec<u8>>, Box<dyn Read>>;

/// Appends `bytes` as a gzip member. Consecutive members form one stream.
pub fn put_gzip(bytes: &[u8], out: &mut Vec<u8>) {
    let mut encoder = GzEncoder::new(out, Compression::fast());
    // Writing to a vector cannot fail.
    let _ = encoder.write_all(bytes).and_then(|()| encoder.try_finish());
}

/// The compression format of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Packing {
    Gzip,
    Zstd,
}

/// Returns the unpacked bytes of `reader`, and whether it was compressed (gzip, zstd). Reads four bytes.
pub fn unpacked(reader: Box<dyn Read>) -> io::Result<(Box<dyn Read>, bool)> {
    unpack(reader).map(|(reader, packing)| (reader, packing.is_some()))
}

/// Returns the unpacked bytes of `reader` and its compression format. Reads four bytes.
pub(super) fn unpack(mut reader: Box<dyn Read>) -> io::Result<(Box<dyn Read>, Option<Packing>)> {
    let mut magic = Vec::with_capacity(4);
    while magic.len() < 4 {
        let mut byte = [0; 4];
        let room = byte.get_mut(magic.len()..).unwrap_or_default();
        match reader.read(room) {
            Ok(0) => break,
            Ok(count) => magic.extend(room.iter().take(count)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let (is_gzip, is_zstd) = (magic.starts_with(&GZIP), magic.starts_with(&ZSTD));
    let whole: Whole = Cursor::new(magic).chain(reader);
    if is_gzip {
        return Ok((Box::new(MultiGzDecoder::new(whole)), Some(Packing::Gzip)));
    }
    if is_zstd {
        return Ok((Box::new(ZstdFrames(Some(Frame::Begin(whole)))), Some(Packing::Zstd)));
    }
    Ok((Box::new(whole), None))
}

/// Consecutive zstd frames.
struct ZstdFrames(Option<Frame>);

enum Frame {
    Begin(Whole),
    Open(Box<StreamingDecoder<Whole, FrameDecoder>>),
}

impl Read for ZstdFrames {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.take() {
                None => return Ok(0),
                Some(Frame::Begin(mut rest)) => {
                    let mut first = [0];
                    if rest.read(&mut first)? == 0 {
                        return Ok(0);
                    }
                    let (mut head, rest) = rest.into_inner();
                    let mut unread = first.to_vec();
                    head.read_to_end(&mut unread)?;
                    let opened = StreamingDecoder::new(Cursor::new(unread).chain(rest)).map_err(io::Error::other)?;
                    self.0 = Some(Frame::Open(Box::new(opened)));
                }
                Some(Frame::Open(mut frame)) => {
                    let count = frame.read(room)?;
                    if count > 0 || room.is_empty() {
                        self.0 = Some(Frame::Open(frame));
                        return Ok(count);
                    }
                    self.0 = Some(Frame::Begin(frame.into_inner()));
                }
            }
        }
    }
}
