//! Blocks of messages on their way from the reader's thread to the rows, and onto a recording.
//!
//! A block is a head of numbers and then frames: one for each datagram, with where and when it was heard. Numbers are in
//! the machine's byte order.
use netlink::DecodeError;
use netlink::prefix::{i32_at, u32_at, u64_at};

/// What stands before the frames of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Messages that the kernel dropped because nobody had taken those before, so far.
    pub(super) lost: u64,
    /// Times that the kernel said that messages are missing without having counted any: it could not make one.
    pub(super) unmade: u64,
    /// Size of a receive buffer in bytes, as the kernel reckons.
    pub(super) room: u64,
    /// Namespaces that were found while we listened, and listened to only from then on.
    pub(super) late: u64,
    /// Namespaces that could not be listened to.
    pub(super) closed: u64,
    /// Sockets that listen.
    pub(super) sockets: u64,
}

/// Bytes of a head.
pub(super) const HEAD: usize = 6 * 8;
/// Bytes before a frame's messages.
pub(super) const FRAME: usize = 24;

/// In place of an inode: a namespace that nobody knows.
pub(super) const STRANGE: u64 = 0;
/// In place of an inode: what is in the frame is also heard by another socket.
pub(super) const DOUBLED: u64 = u64::MAX;

impl Head {
    /// Its bytes.
    pub(super) fn bytes(&self) -> [u8; HEAD] {
        let Head { lost, unmade, room, late, closed, sockets } = *self;
        let mut bytes = [0; HEAD];
        for (place, number) in bytes.chunks_exact_mut(8).zip([lost, unmade, room, late, closed, sockets]) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    pub(super) fn parse(block: &[u8]) -> Option<Head> {
        let number = |index: usize| u64_at(block, index * 8);
        Some(Head {
            lost: number(0)?,
            unmade: number(1)?,
            room: number(2)?,
            late: number(3)?,
            closed: number(4)?,
            sockets: number(5)?,
        })
    }
}

/// A datagram: one or more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'b> {
    /// Inode of the namespace it is about, [`STRANGE`] or [`DOUBLED`].
    pub(super) netns_id: u64,
    /// When it was received, ns since 1970.
    pub(super) wall_ns: u64,
    /// The number that the listening namespace has for that namespace; `None` if it is the same.
    pub(super) nsid: Option<i32>,
    /// The messages.
    pub(super) bytes: &'b [u8],
}

/// In place of a namespace's number: its own. (The kernel's numbers are never negative.)
const OWN: i32 = -1;

impl Frame<'_> {
    /// Writes the inode into a frame's head that is there already.
    pub(super) fn put_home(place: &mut [u8], netns_id: u64) {
        if let Some(place) = place.get_mut(..8) {
            place.copy_from_slice(&netns_id.to_ne_bytes());
        }
    }

    /// Writes a frame's head into `place` (FRAME bytes), for messages of `bytes` bytes behind it.
    pub(super) fn put(place: &mut [u8], netns_id: u64, wall_ns: u64, nsid: Option<i32>, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (nsid, parts) = (nsid.unwrap_or(OWN), place.split_at_mut_checked(16));
        let Some((first, second)) = parts else { return };
        for (place, number) in first.chunks_exact_mut(8).zip([netns_id, wall_ns]) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        for (place, number) in second.chunks_exact_mut(4).zip([nsid.to_ne_bytes(), bytes.to_ne_bytes()]) {
            place.copy_from_slice(&number);
        }
    }
}

/// The frames of a block, in order. The first that does not fit is an error and the end.
#[derive(Debug, Clone)]
pub(super) struct Frames<'b> {
    rest: &'b [u8],
}

impl<'b> Frames<'b> {
    /// Those behind the head of `block`.
    pub(super) fn of(block: &'b [u8]) -> Frames<'b> {
        Frames { rest: block.get(HEAD..).unwrap_or_default() }
    }
}

impl<'b> Iterator for Frames<'b> {
    type Item = Result<Frame<'b>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let rest = std::mem::take(&mut self.rest);
        let claims = u32_at(rest, 20).unwrap_or(0) as usize;
        let Some(bytes) = rest.get(FRAME..FRAME + claims) else {
            return Some(Err(DecodeError::Short { what: "frame", claims: FRAME + claims, has: rest.len() }));
        };
        self.rest = rest.get(FRAME + claims..).unwrap_or_default();
        Some(Ok(Frame {
            netns_id: u64_at(rest, 0).unwrap_or(0),
            wall_ns: u64_at(rest, 8).unwrap_or(0),
            nsid: i32_at(rest, 16).filter(|nsid| *nsid >= 0),
            bytes,
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_put_is_read() {
        let head = Head { lost: 1, unmade: 2, room: 3, late: 4, closed: 5, sockets: 6 };
        let mut block = head.bytes().to_vec();
        for (netns_id, nsid, bytes) in [(7, None, &b"abcd"[..]), (8, Some(0), b""), (9, Some(77), b"xy")] {
            let at = block.len();
            block.resize(at + FRAME, 0);
            Frame::put(&mut block[at..], netns_id, 1000 + netns_id, nsid, bytes.len());
            block.extend(bytes);
        }
        assert_eq!(Head::parse(&block), Some(head));
        let frames: Vec<Frame<'_>> = Frames::of(&block).map(Result::unwrap).collect();
        let told: Vec<_> = frames.iter().map(|f| (f.netns_id, f.wall_ns, f.nsid, f.bytes)).collect();
        assert_eq!(told, [(7, 1007, None, &b"abcd"[..]), (8, 1008, Some(0), b""), (9, 1009, Some(77), b"xy")]);
    }

    #[test]
    fn cut_blocks_end_with_an_error() {
        assert_eq!(Head::parse(&[0; HEAD - 1]), None);
        let mut block = Head::default().bytes().to_vec();
        block.extend([0; FRAME]);
        block[HEAD + 20..HEAD + 24].copy_from_slice(&u32::MAX.to_ne_bytes());
        let all: Vec<_> = Frames::of(&block).collect();
        assert!(matches!(all[..], [Err(DecodeError::Short { .. })]), "{all:?}");
        assert!(matches!(Frames::of(&block[..HEAD + 5]).next(), Some(Err(_))));
    }
}
