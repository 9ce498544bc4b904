//! The bytes of a frame, written and read.
use super::crc::Crc;

pub(crate) const MAGIC: &[u8; 12] = b"NETWREN-TAPE";
/// What is written. Version 2 added PART, without which a reader would take the last part of a block for all of it, and
/// ASKED.
pub(crate) const VERSION: u16 = 2;
/// The oldest that is still read.
pub(crate) const VERSION_MIN: u16 = 1;
/// Magic and version.
pub(crate) const FILE_HEAD: usize = MAGIC.len() + 2;
/// kind, stream, length.
pub(crate) const FRAME_HEAD: usize = 9;
/// The sum at the end.
pub(crate) const FRAME_TAIL: usize = 4;
/// Largest payload. Kernel blocks are 32 KiB and files are cut into pieces of 1 MiB; the bound
/// keeps a garbled length from being believed. A larger block (a burst of events) is written as several frames.
pub(crate) const PAYLOAD_MAX: usize = 4 << 20;
/// Largest block, all its parts together: beyond it the recording stops, and a replay calls the file broken. Sources
/// make blocks of 1 MiB, and of what a BPF ring holds (at most 16 MiB) with what came while it was emptied.
pub(crate) const BLOCK_MAX: usize = 64 << 20;
/// Longer texts (keys, notes) are cut.
pub(crate) const TEXT_MAX: usize = u16::MAX as usize;

/// What a frame holds; the format is drawn in the module's documentation.
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
    pub(crate) fn of(number: u8) -> Option<FrameKind> {
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

    /// True for frames that hold bytes of a stream: their payload is not looked at before it is replayed.
    pub(crate) fn is_data(self) -> bool {
        matches!(self, FrameKind::Block | FrameKind::Part)
    }
}

/// The first nine bytes of a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameHead {
    /// Not yet a [`FrameKind`]: unknown ones are skipped.
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

/// Sum of head and payload, as it stands behind them.
pub(crate) fn sum(head: &[u8; FRAME_HEAD], payload: &[u8]) -> [u8; FRAME_TAIL] {
    let mut crc = Crc::new();
    crc.add(head);
    crc.add(payload);
    crc.sum().to_le_bytes()
}

/// Appends a text: length, bytes.
pub(crate) fn put_text(into: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes().get(..TEXT_MAX).unwrap_or(text.as_bytes());
    into.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    into.extend_from_slice(bytes);
}

/// Takes a payload apart; every step checks its length.
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

    /// A text; what is not UTF-8 in it (a text cut in the middle of a letter) is replaced.
    pub(crate) fn text(&mut self) -> Option<Box<str>> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        Some(String::from_utf8_lossy(self.bytes(length)?).into())
    }
}
