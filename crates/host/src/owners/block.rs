//! Format of the blocks with socket owners: from /proc to the index, and in a recording.
//!
//! ```text
//! block   = record*                        numbers little endian; PROCESS of one pid may come several times
//! PROCESS = 1u8  pid u32  comm_len u8  comm  count u32  (fd u32, inode u64)[count]
//!           inode 0: no socket, but an io_uring
//! THREAD  = 3u8  tid u32  and the rest of a PROCESS: a thread of this process has this table of its own
//! TOTALS  = 2u8  processes u32  unreadable u32  vanished u32  fds u64  hidden u8  errno i32
//! ```
use record::Comm;
use sys::Errno;

const PROCESS: u8 = 1;
const TOTALS: u8 = 2;
const THREAD: u8 = 3;

/// Size of one (fd, inode) in bytes.
const HELD: usize = 12;

/// Size of `count`, which follows `comm`.
const COUNT: usize = 4;

/// Counts of the walk through /proc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) processes: u32,
    pub(super) unreadable: u32,
    pub(super) vanished: u32,
    pub(super) fds: u64,
    pub(super) hidden: bool,
    /// Why the first unreadable process could not be read.
    pub(super) refusal: Option<Errno>,
}

/// One part of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BlockPart<'b> {
    /// Sockets in the descriptor table of this thread; `tid` equals `pid` for the process's table.
    Table {
        pid: u32,
        tid: u32,
        comm: Comm,
        held: HeldSockets<'b>,
    },
    Totals(Totals),
}

/// The sockets of a process: (fd, inode). An inode of 0 means that the file is an io_uring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HeldSockets<'b>(&'b [u8]);

impl Iterator for HeldSockets<'_> {
    type Item = (u32, u64);

    fn next(&mut self) -> Option<(u32, u64)> {
        let mut rest = Parts { bytes: self.0 };
        let held = (rest.u32()?, rest.u64()?);
        self.0 = rest.bytes;
        Some(held)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len() / HELD, Some(self.0.len() / HELD))
    }
}

/// Starts a PROCESS, or a THREAD if `tid` is not `pid`; returns the offset of its count, for [`put_held`].
pub(super) fn put_table(block: &mut Vec<u8>, pid: u32, tid: u32, comm: Comm) -> usize {
    let name = comm.as_bytes();
    if tid == pid {
        block.push(PROCESS);
    } else {
        block.push(THREAD);
        block.extend_from_slice(&tid.to_le_bytes());
    }
    block.extend_from_slice(&pid.to_le_bytes());
    // A comm has at most 15 bytes.
    block.push(name.len() as u8);
    block.extend_from_slice(name);
    block.extend_from_slice(&0u32.to_le_bytes());
    block.len() - COUNT
}

/// Adds a socket to the table whose count is at offset `count_at`; the table must be the last record of the block.
pub(super) fn put_held(block: &mut Vec<u8>, count_at: usize, fd: u32, inode: u64) {
    block.extend_from_slice(&fd.to_le_bytes());
    block.extend_from_slice(&inode.to_le_bytes());
    let count = block.len().saturating_sub(count_at + COUNT) / HELD;
    if let Some(place) = block.get_mut(count_at..count_at + COUNT) {
        place.copy_from_slice(&(count as u32).to_le_bytes());
    }
}

/// Adds the TOTALS.
pub(super) fn put_totals(block: &mut Vec<u8>, totals: &Totals) {
    block.push(TOTALS);
    for n in [totals.processes, totals.unreadable, totals.vanished] {
        block.extend_from_slice(&n.to_le_bytes());
    }
    block.extend_from_slice(&totals.fds.to_le_bytes());
    block.push(u8::from(totals.hidden));
    block.extend_from_slice(&totals.refusal.map_or(0, |errno| errno.0).to_le_bytes());
}

/// Decodes a block; `Err` contains the offset of the malformed part.
pub(super) fn parts(block: &[u8]) -> impl Iterator<Item = Result<BlockPart<'_>, usize>> {
    let mut rest = Parts { bytes: block };
    let mut broken = false;
    std::iter::from_fn(move || {
        if broken || rest.bytes.is_empty() {
            return None;
        }
        let at = block.len() - rest.bytes.len();
        let part = rest.part().ok_or(at);
        broken = part.is_err();
        Some(part)
    })
}

struct Parts<'b> {
    bytes: &'b [u8],
}

impl<'b> Parts<'b> {
    fn part(&mut self) -> Option<BlockPart<'b>> {
        match self.array::<1>()? {
            [PROCESS] => self.table(None),
            [THREAD] => {
                let tid = self.u32()?;
                self.table(Some(tid))
            }
            [TOTALS] => self.totals().map(BlockPart::Totals),
            _ => None,
        }
    }

    fn table(&mut self, tid: Option<u32>) -> Option<BlockPart<'b>> {
        let pid = self.u32()?;
        let [name] = self.array()?;
        let comm = Comm::new(self.take(name.into())?);
        let count = self.u32()? as usize;
        let held = HeldSockets(self.take(count.checked_mul(HELD)?)?);
        Some(BlockPart::Table { pid, tid: tid.unwrap_or(pid), comm, held })
    }

    fn totals(&mut self) -> Option<Totals> {
        let (processes, unreadable, vanished) = (self.u32()?, self.u32()?, self.u32()?);
        let fds = self.u64()?;
        let [hidden] = self.array()?;
        let errno = i32::from_le_bytes(self.array()?);
        let refusal = (errno != 0).then_some(Errno(errno));
        Some(Totals { processes, unreadable, vanished, fds, hidden: hidden != 0, refusal })
    }

    fn take(&mut self, n: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            processes in prop::collection::vec(
                (
                    (any::<u32>(), any::<u32>()),
                    prop::collection::vec(1u8.., 0..15),
                    prop::collection::vec(any::<(u32, u64)>(), 0..20),
                ),
                0..10,
            ),
            counts: (u32, u32, u32, u64, bool),
        ) {
            let mut block = Vec::new();
            for ((pid, tid), name, held) in &processes {
                let at = put_table(&mut block, *pid, *tid, Comm::new(name));
                held.iter().for_each(|(fd, inode)| put_held(&mut block, at, *fd, *inode));
            }
            let (processes_seen, unreadable, vanished, fds, hidden) = counts;
            let totals = Totals {
                processes: processes_seen, unreadable, vanished, fds, hidden, refusal: hidden.then_some(Errno::ACCES),
            };
            put_totals(&mut block, &totals);
            let mut read = parts(&block);
            for (task, name, held) in &processes {
                let Some(Ok(BlockPart::Table { pid, tid, comm, held: h })) = read.next() else { panic!("a table") };
                prop_assert_eq!(((pid, tid), comm.as_bytes()), (*task, name.as_slice()));
                prop_assert_eq!(&h.collect::<Vec<_>>(), held);
            }
            prop_assert_eq!(read.next(), Some(Ok(BlockPart::Totals(totals))));
            prop_assert_eq!(read.next(), None);
            // A block cut anywhere is decoded up to the cut, which is an error with its offset, never a panic.
            for cut in 1..block.len() {
                let last = parts(&block[..cut]).last().unwrap();
                prop_assert!(last.is_ok() || last.unwrap_err() < cut);
            }
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(prop_oneof![Just(1u8), Just(2), Just(3), Just(0), any::<u8>()],
            0..200)) {
            let read: Vec<_> = parts(&bytes).collect();
            prop_assert!(read.len() <= bytes.len());
            prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
        }
    }
}
