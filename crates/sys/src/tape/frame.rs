//! Encoding and decoding of frames.
use crc32fast::Hasher;

pub(crate) const MAGIC: &[u8; 12] = b"NETWREN-TAPE";
/// The version that is written. Version 2 added PART, without which a reader would mistake the last part of a block
/// for the whole block, and ASKED.
pub(crate) const VERSION: u16 = 2;
/// The oldest version that can be read.
pub(crate) const VERSION_MIN: u16 = 1;
/// Size of magic and version.
pub(crate) const FILE_HEAD: usize = MAGIC.len() + 2;
/// Size of kind, stream and length.
pub(crate) const FRAME_HEAD: usize = 9;
/// Size of the checksum at the end.
pub(crate) const FRAME_TAIL: usize = 4;
/// Maximum payload size. Kernel blocks are 32 KiB and files are split into pieces of 1 MiB; the bound prevents a
/// corrupt length from being trusted. A larger block (a burst of events) is written as several frames.
///
/// Bound: bytes of a frame of a recording. Beyond: a longer block becomes several frames. By: a local user with many
/// sockets.
pub(crate) const PAYLOAD_MAX: usize = 4 << 20;
/// Maximum size of a block with all its parts: beyond it the recording stops, and a replay reports a corrupt file.
/// Sources produce blocks of 1 MiB, and blocks with the contents of a BPF ring (at most 16 MiB) plus what arrived
/// while it was being emptied.
///
/// Bound: bytes of a block of a recording. Beyond: the recording ends with exit code 3; a replay refuses a file with a
/// longer block. By: a local user with many sockets; the author of the file.
pub(crate) const BLOCK_MAX: usize = 64 << 20;
/// Longer texts (keys, notes) are truncated.
pub(crate) const TEXT_MAX: usize = u16::MAX as usize;

/// The type of a frame; the format is described in the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    Header = 1,
    Open = 2,
    Block = 3,
    End = 4,
    Stopped = 5,
    Error = 6,
    Refused = 7,
    Round = 8,
    Trailer = 9,
    Part = 10,
    Asked = 11,
}

impl FrameKind {
    pub(crate) fn from_number(number: u8) -> Option<FrameKind> {
        const ALL: [FrameKind; 11] = [
            FrameKind::Header,
            FrameKind::Open,
            FrameKind::Block,
            FrameKind::End,
            FrameKind::Stopped,
            FrameKind::Error,
            FrameKind::Refused,
            FrameKind::Round,
            FrameKind::Trailer,
            FrameKind::Part,
            FrameKind::Asked,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// True for frames that contain bytes of a stream: their payload is not inspected before it is replayed.
    pub(crate) fn is_data(self) -> bool {
        matches!(self, FrameKind::Block | FrameKind::Part)
    }
}

/// The first nine bytes of a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameHead {
    /// Not a [`FrameKind`], because unknown ones are skipped.
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) length: u32,
}

impl FrameHead {
    pub(crate) fn bytes(self) -> [u8; FRAME_HEAD] {
        let mut bytes = [0; FRAME_HEAD];
        bytes[0] = self.kind;
        bytes[1..5].copy_from_slice(&self.stream.to_le_bytes());
        bytes[5..9].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8; FRAME_HEAD]) -> FrameHead {
        let [kind, s0, s1, s2, s3, l0, l1, l2, l3] = *bytes;
        FrameHead { kind, stream: u32::from_le_bytes([s0, s1, s2, s3]), length: u32::from_le_bytes([l0, l1, l2, l3]) }
    }
}

/// The checksum of head and payload, as stored after them.
pub(crate) fn sum(head: &[u8; FRAME_HEAD], payload: &[u8]) -> [u8; FRAME_TAIL] {
    let mut crc = Hasher::new();
    crc.update(head);
    crc.update(payload);
    crc.finalize().to_le_bytes()
}

/// Appends a text: length, bytes.
pub(crate) fn put_text(into: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes().get(..TEXT_MAX).unwrap_or(text.as_bytes());
    into.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    into.extend_from_slice(bytes);
}

/// Splits a payload into its parts; every step checks the length.
#[derive(Debug)]
pub(crate) struct Parts<'p>(pub(crate) &'p [u8]);

impl<'p> Parts<'p> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'p [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// A text; invalid UTF-8 (for example from truncation inside a character) is replaced.
    pub(crate) fn text(&mut self) -> Option<Box<str>> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        Some(String::from_utf8_lossy(self.bytes(length)?).into())
    }
}
