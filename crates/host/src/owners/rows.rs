//! Decodes the blocks that the BPF program writes: a task, then its sockets, in units of 8 bytes.
//!
//! `bpf/c/owners_files.bpf.c` defines the layout. A block holds complete rows, but the sockets of a task may continue
//! in the next block.
use record::Comm;

use super::process::{FdTable, Process};

const UNIT: usize = 8;

/// Start of rows other than sockets: 0 instead of the inode, then one of these.
const TASK: u32 = 3;
const END: u32 = 2;
const END_IN_FLIGHT: u32 = 4;
/// Marks the descriptor of an io_uring.
const IO_URING: u32 = 1 << 31;
/// A [`TASK`] that ends after the name, in recordings of 1.x.
const NAMED_TASK: u32 = 1;

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// A task, whose file table has the sockets after it.
    Task(FdTable),
    /// A socket in the table of the last task.
    Socket { inode: u32, fd: u32 },
    /// An io_uring in the table of the task before.
    IoUring { fd: u32 },
    /// The end of a pass: the number of files, and true if descriptors are in flight over unix sockets.
    End { files: u64, in_flight: bool },
}

/// Decodes a block; `Err` contains the offset of the malformed row.
pub(super) fn rows(block: &[u8]) -> impl Iterator<Item = Result<Row, usize>> {
    let mut rest = block;
    let mut broken = false;
    std::iter::from_fn(move || {
        if broken || rest.is_empty() {
            return None;
        }
        let at = block.len() - rest.len();
        let row = row(&mut rest).ok_or(at);
        broken = row.is_err();
        Some(row)
    })
}

#[inline]
fn row(rest: &mut &[u8]) -> Option<Row> {
    let (inode, kind) = unit(rest)?;
    match (inode, kind) {
        (0, TASK) => task(rest),
        (0, NAMED_TASK) => named_task(rest).map(Row::Task),
        (0, END | END_IN_FLIGHT) => {
            let (low, high) = unit(rest)?;
            Some(Row::End { files: u64::from(high) << 32 | u64::from(low), in_flight: kind == END_IN_FLIGHT })
        }
        (0, _) => None,
        (_, fd) if fd & IO_URING != 0 => Some(Row::IoUring { fd: fd & !IO_URING }),
        (inode, fd) => Some(Row::Socket { inode, fd }),
    }
}

fn task(rest: &mut &[u8]) -> Option<Row> {
    let table = named_task(rest)?;
    let (started, after) = rest.split_first_chunk()?;
    *rest = after;
    let (parent, waits) = unit(rest)?;
    let process = Process { started_ns: u64::from_le_bytes(*started), parent, only_waits: waits != 0 };
    Some(Row::Task(FdTable { process, ..table }))
}

fn named_task(rest: &mut &[u8]) -> Option<FdTable> {
    let (tid, pid) = unit(rest)?;
    let (name, after) = rest.split_first_chunk::<{ 2 * UNIT }>()?;
    *rest = after;
    Some(FdTable { pid, tid, comm: Comm::new(name), process: Process::default() })
}

#[inline]
fn unit(rest: &mut &[u8]) -> Option<(u32, u32)> {
    let (unit, after) = rest.split_first_chunk::<UNIT>()?;
    *rest = after;
    let both = u64::from_le_bytes(*unit);
    // Truncated on purpose to the two halves.
    Some((both as u32, (both >> 32) as u32))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn put(block: &mut Vec<u8>, row: &Row) {
        let mut units = |numbers: &[u32]| numbers.iter().for_each(|n| block.extend_from_slice(&n.to_le_bytes()));
        match *row {
            Row::Socket { inode, fd } => units(&[inode, fd]),
            Row::IoUring { fd } => units(&[1, 1 << 31 | fd]),
            Row::End { files, in_flight } => {
                units(&[0, if in_flight { 4 } else { 2 }, files as u32, (files >> 32) as u32]);
            }
            Row::Task(FdTable { pid, tid, comm, process }) => {
                let is_old = process == Process::default();
                units(&[0, if is_old { 1 } else { 3 }, tid, pid]);
                let mut name = comm.as_bytes().to_vec();
                name.resize(16, 0);
                block.extend_from_slice(&name);
                if !is_old {
                    block.extend_from_slice(&process.started_ns.to_le_bytes());
                    block.extend_from_slice(&process.parent.to_le_bytes());
                    block.extend_from_slice(&u32::from(process.only_waits).to_le_bytes());
                }
            }
        }
    }

    fn any_row() -> impl Strategy<Value = Row> {
        prop_oneof![
            (1u32.., 0u32..1 << 31).prop_map(|(inode, fd)| Row::Socket { inode, fd }),
            (0u32..1 << 31).prop_map(|fd| Row::IoUring { fd }),
            any::<(u64, bool)>().prop_map(|(files, in_flight)| Row::End { files, in_flight }),
            (any::<u32>(), any::<u32>(), prop::collection::vec(1u8.., 0..16), any::<(u64, u32, bool)>()).prop_map(
                |(tid, pid, name, (started_ns, parent, only_waits))| {
                    let process = Process { started_ns, parent, only_waits };
                    Row::Task(FdTable { pid, tid, comm: Comm::new(&name), process })
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(written in prop::collection::vec(any_row(), 0..30)) {
            let mut block = Vec::new();
            written.iter().for_each(|row| put(&mut block, row));
            let read: Vec<Row> = rows(&block).map(Result::unwrap).collect();
            prop_assert_eq!(&read, &written);
            for cut in 1..block.len() {
                let last = rows(&block[..cut]).last().unwrap();
                prop_assert!(last.is_ok() || last.unwrap_err() < cut);
            }
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(prop_oneof![0u8..5, any::<u8>()], 0..200)) {
            prop_assert!(rows(&bytes).count() <= bytes.len() / UNIT + 1);
        }
    }
}
