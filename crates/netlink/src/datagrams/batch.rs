//! Batches of datagrams: the receiving thread sends them to the thread that makes rows, and recordings store them.
//!
//! A batch is a header of counts followed by a frame for each datagram, which says where and when it was received.
//! Numbers are in the machine's byte order.
use crate::decode::DecodeError;
use crate::prefix::{i32_at, u32_at, u64_at};

/// The counts at the beginning of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchHeader {
    /// Number of messages that the kernel has dropped so far because the receive buffer was full.
    pub lost: u64,
    /// How often the kernel reported lost messages (ENOBUFS) without counting one, because it could not allocate one.
    pub alloc_failures: u64,
    /// Size of a receive buffer in bytes, as the kernel accounts for it.
    pub buffer_bytes: u64,
    /// Number of namespaces that were found, and subscribed to, only after the start.
    pub late: u64,
    /// Number of namespaces that could not be subscribed to.
    pub unreachable: u64,
    /// Number of subscribed sockets.
    pub sockets: u64,
}

/// Size of the header in bytes.
pub const BATCH_HEADER: usize = 6 * 8;
/// Size of a frame before its messages, in bytes.
pub const FRAME: usize = 24;

/// Used instead of an inode if the namespace is unknown.
pub const UNKNOWN_NETNS: u64 = 0;
/// Used instead of an inode if another socket receives the same messages.
pub const DUPLICATE: u64 = u64::MAX;

impl BatchHeader {
    /// The header as bytes.
    pub fn bytes(&self) -> [u8; BATCH_HEADER] {
        let BatchHeader { lost, alloc_failures, buffer_bytes, late, unreachable, sockets } = *self;
        let mut bytes = [0; BATCH_HEADER];
        for (place, number) in
            bytes.chunks_exact_mut(8).zip([lost, alloc_failures, buffer_bytes, late, unreachable, sockets])
        {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// Reads the header at the beginning of a batch; `None` if the batch is too short.
    pub fn parse(block: &[u8]) -> Option<BatchHeader> {
        let number = |index: usize| u64_at(block, index * 8);
        Some(BatchHeader {
            lost: number(0)?,
            alloc_failures: number(1)?,
            buffer_bytes: number(2)?,
            late: number(3)?,
            unreachable: number(4)?,
            sockets: number(5)?,
        })
    }
}

/// A datagram: one or more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramFrame<'b> {
    /// Inode of the namespace that sent it, [`UNKNOWN_NETNS`] or [`DUPLICATE`].
    pub netns_id: u64,
    /// When it was received, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// The nsid of that namespace in the socket's namespace; `None` if they are the same.
    pub nsid: Option<i32>,
    /// The messages.
    pub bytes: &'b [u8],
}

/// Used instead of an nsid for the socket's own namespace. (The kernel's nsids are never negative.)
const OWN_NETNS: i32 = -1;

impl DatagramFrame<'_> {
    /// Replaces the inode in the frame that begins at `place`.
    pub fn put_netns_id(place: &mut [u8], netns_id: u64) {
        if let Some(place) = place.get_mut(..8) {
            place.copy_from_slice(&netns_id.to_ne_bytes());
        }
    }

    /// Writes the first [`FRAME`] bytes of a frame to `place`; its messages of `bytes` bytes follow.
    pub fn put(place: &mut [u8], netns_id: u64, wall_ns: u64, nsid: Option<i32>, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (nsid, parts) = (nsid.unwrap_or(OWN_NETNS), place.split_at_mut_checked(16));
        let Some((first, second)) = parts else { return };
        for (place, number) in first.chunks_exact_mut(8).zip([netns_id, wall_ns]) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        for (place, number) in second.chunks_exact_mut(4).zip([nsid.to_ne_bytes(), bytes.to_ne_bytes()]) {
            place.copy_from_slice(&number);
        }
    }
}

/// The frames of a batch, in order. The first one that exceeds the batch is returned as an error and ends the
/// iteration.
#[derive(Debug, Clone)]
pub struct DatagramFrames<'b> {
    rest: &'b [u8],
}

impl<'b> DatagramFrames<'b> {
    /// The frames that follow the header of `block`.
    pub fn new(block: &'b [u8]) -> DatagramFrames<'b> {
        DatagramFrames { rest: block.get(BATCH_HEADER..).unwrap_or_default() }
    }
}

impl<'b> Iterator for DatagramFrames<'b> {
    type Item = Result<DatagramFrame<'b>, DecodeError>;

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
        Some(Ok(DatagramFrame {
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
        let head = BatchHeader { lost: 1, alloc_failures: 2, buffer_bytes: 3, late: 4, unreachable: 5, sockets: 6 };
        let mut block = head.bytes().to_vec();
        for (netns_id, nsid, bytes) in [(7, None, &b"abcd"[..]), (8, Some(0), b""), (9, Some(77), b"xy")] {
            let at = block.len();
            block.resize(at + FRAME, 0);
            DatagramFrame::put(&mut block[at..], netns_id, 1000 + netns_id, nsid, bytes.len());
            block.extend(bytes);
        }
        assert_eq!(BatchHeader::parse(&block), Some(head));
        let frames: Vec<DatagramFrame<'_>> = DatagramFrames::new(&block).map(Result::unwrap).collect();
        let told: Vec<_> = frames.iter().map(|f| (f.netns_id, f.wall_ns, f.nsid, f.bytes)).collect();
        assert_eq!(told, [(7, 1007, None, &b"abcd"[..]), (8, 1008, Some(0), b""), (9, 1009, Some(77), b"xy")]);
    }

    #[test]
    fn cut_blocks_end_with_an_error() {
        assert_eq!(BatchHeader::parse(&[0; BATCH_HEADER - 1]), None);
        let mut block = BatchHeader::default().bytes().to_vec();
        block.extend([0; FRAME]);
        block[BATCH_HEADER + 20..BATCH_HEADER + 24].copy_from_slice(&u32::MAX.to_ne_bytes());
        let all: Vec<_> = DatagramFrames::new(&block).collect();
        assert!(matches!(all[..], [Err(DecodeError::Short { .. })]), "{all:?}");
        assert!(matches!(DatagramFrames::new(&block[..BATCH_HEADER + 5]).next(), Some(Err(_))));
    }
}
