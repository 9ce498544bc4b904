//! Packets that are longer than a slot: the ring contains their beginning, and the whole packet is queued on the
//! socket (`PACKET_COPY_THRESH`, net/packet/af_packet.c `tpacket_rcv`).
use std::collections::VecDeque;

use super::frame::TAG_BYTES;
use crate::errno::Errno;
use crate::fd::Fd;
use crate::syscall::call;

/// Maximum number of packets that were read before their slots. Several processors write concurrently, so the order on
/// the socket can differ from the order of the slots, by one packet per processor.
///
/// Bound: whole packets that netwren reads before it reaches their slots in the ring. Beyond: packets are cut and
/// counted (exit code 3; `packet_ring::root_whole_packets_beyond_the_room_are_cut`). By: a sender of long packets that
/// arrive faster than they are read.
const EARLY_MAX: usize = 64;

/// Reads the packets that are queued on a socket.
#[derive(Debug)]
pub(super) struct WholePackets {
    /// Maximum number of bytes captured per packet.
    snaplen: usize,
    /// Free space for a VLAN tag, followed by the packet being read.
    buffer: Vec<u8>,
    /// Packets whose slots come later, each with its length.
    early: VecDeque<(usize, Box<[u8]>)>,
}

impl WholePackets {
    pub(super) fn new(snaplen: usize) -> WholePackets {
        WholePackets { snaplen, buffer: vec![0; TAG_BYTES + snaplen], early: VecDeque::new() }
    }

    /// The whole packet of a slot, after [`TAG_BYTES`] of free space: `len` bytes long, starting with `beginning`. One
    /// system call. `None` if the kernel had no room for it.
    #[cold]
    pub(super) fn take(&mut self, fd: &Fd, len: usize, beginning: &[u8]) -> Option<&mut [u8]> {
        if let Some(at) = self.early.iter().position(|(early, bytes)| *early == len && bytes.starts_with(beginning)) {
            let (_, bytes) = self.early.remove(at)?;
            self.buffer.get_mut(TAG_BYTES..TAG_BYTES + bytes.len())?.copy_from_slice(&bytes);
            return self.buffer.get_mut(..TAG_BYTES + bytes.len());
        }
        for _ in 0..EARLY_MAX {
            let (read, bytes) = self.read(fd)?;
            if read == len && bytes.starts_with(beginning) {
                let end = TAG_BYTES + bytes.len();
                return self.buffer.get_mut(..end);
            }
            let early = (read, Box::from(bytes));
            self.store(early);
        }
        None
    }

    /// Saves queued packets although their slots have not arrived, so that they do not end every wait.
    pub(super) fn keep_early(&mut self, fd: &Fd) {
        for _ in 0..EARLY_MAX {
            let Some((len, bytes)) = self.read(fd) else { return };
            let early = (len, Box::from(bytes));
            self.store(early);
        }
    }

    fn store(&mut self, early: (usize, Box<[u8]>)) {
        if self.early.len() >= EARLY_MAX {
            self.early.pop_front();
        }
        self.early.push_back(early);
    }

    /// The next queued packet: its length, and its captured bytes.
    fn read(&mut self, fd: &Fd) -> Option<(usize, &[u8])> {
        let place = self.buffer.get_mut(TAG_BYTES..)?;
        let (start, room, flags) = (place.as_mut_ptr().cast(), place.len(), libc::MSG_DONTWAIT | libc::MSG_TRUNC);
        loop {
            // SAFETY: the kernel writes at most `room` bytes to `place`, which is borrowed until it returns.
            match call("recv", || unsafe { libc::recv(fd.raw(), start, room, flags) as i64 }) {
                Ok(len) => {
                    let len = usize::try_from(len).ok()?;
                    return Some((len, self.buffer.get(TAG_BYTES..TAG_BYTES + len.min(self.snaplen))?));
                }
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}
