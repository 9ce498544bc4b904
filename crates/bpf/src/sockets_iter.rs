//! TCP sockets via the kernel's iterator, for kernels that cannot run the walk.
//!
//! The rows have the layout of [`crate::sockets_walk`] and include listeners; they cover the calling thread's
//! namespace. The kernel locks every socket while it is read, so a row costs three times as much as in the walk. Needs
//! Linux 5.10, BTF, CAP_BPF and CAP_PERFMON. Start reading at [`TcpIterator::read`].
use sys::{Blocks, Errno, Host, SysError};

use crate::sockets_walk::WantedSockets;
use crate::{BpfError, IterRows, Link, LoadSpec, LoadedObject, load};

static OBJECT: &[u8] = include_bytes!("../objects/sockets_iter.o");

/// Size of a block's head, before the first row.
const HEAD_BYTES: usize = 32;
/// Twice the amount that the kernel delivers at once (`bpf_iter`'s buffer in kernel/bpf/bpf_iter.c has eight pages).
const READ_BYTES: usize = 64 << 10;
/// `struct pass`: ten words and the batch.
const WORDS: usize = 10;
const BATCH: usize = 4096;

/// The loaded program. It can be used for any number of readings.
#[derive(Debug)]
pub struct TcpIterator {
    loaded: LoadedObject,
    link: Link,
    parts: u32,
}

impl TcpIterator {
    /// Loads and attaches the program so that it writes these parts of a row (`enum` in the program). Costs some
    /// milliseconds.
    ///
    /// `secret` obscures values that would otherwise be kernel addresses.
    pub fn load(host: &Host, parts: u32, secret: [u64; 2]) -> Result<TcpIterator, BpfError> {
        let [add, times] = secret;
        let constants: &[(&str, &[u8])] = &[
            ("parts", &parts.to_ne_bytes()),
            ("salt_add", &add.to_ne_bytes()),
            ("salt_times", &(times | 1).to_ne_bytes()),
        ];
        let loaded = load(host, &LoadSpec { object: OBJECT, programs: &["sockets_iter"], constants, entries: &[] })?;
        let link = loaded.program("sockets_iter")?.attach()?;
        Ok(TcpIterator { loaded, link, parts })
    }

    /// True if its rows have these parts.
    pub fn covers(&self, parts: u32) -> bool {
        self.parts & parts == parts
    }

    /// Starts reading the sockets of the calling thread's namespace; the namespaces in `wanted` are ignored. Begin the
    /// next reading only when this one is finished: they share the program's memory.
    pub fn read(&self, wanted: WantedSockets) -> Result<IteratorReading, BpfError> {
        self.loaded.map("pass")?.put(&0u32.to_ne_bytes(), &pass_bytes(&wanted))?;
        Ok(IteratorReading { rows: self.link.iterate()?, block: vec![0; HEAD_BYTES + READ_BYTES].into(), begun: false })
    }
}

/// `struct pass` before its first call.
fn pass_bytes(wanted: &WantedSockets) -> Vec<u8> {
    let [sport, sport_mask, dport, dport_mask] = wanted.ports();
    let words: [u32; WORDS] = [wanted.states, wanted.families(), sport, sport_mask, dport, dport_mask, 0, 0, 0, 0];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.resize(WORDS * 4 + BATCH, 0);
    bytes
}

/// A reading in progress.
#[derive(Debug)]
pub struct IteratorReading {
    rows: IterRows,
    /// The head that came with the first rows, followed by the latest data.
    block: Box<[u8]>,
    begun: bool,
}

impl IteratorReading {
    // Reads the next data, after the head if that has been read already.
    fn fill(&mut self) -> Result<usize, SysError> {
        let at = if self.begun { HEAD_BYTES } else { 0 };
        let into = self.block.get_mut(at..).unwrap_or_default();
        let got = self.rows.read(into).map_err(|error| match error {
            BpfError::Io(error) => error,
            other => SysError::new("read", "the iterator over TCP sockets", other.errno().unwrap_or(Errno::INVAL)),
        })?;
        self.begun = true;
        Ok(if got == 0 { 0 } else { at + got })
    }
}

impl Blocks for IteratorReading {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        let filled = self.fill()?;
        Ok(if filled == 0 { None } else { self.block.get(..filled) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn root_every_block_has_the_head_and_whole_rows() {
        testkit::require_root!();
        let _held: Vec<TcpListener> = (0..1500).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let backend = TcpIterator::load(&Host::live(), 0, [3, 5]).unwrap();
        assert!(backend.covers(0) && !backend.covers(1));
        for _ in 0..2 {
            let mut reading = backend.read(WantedSockets { states: 1 << 10, v6: false, ..WantedSockets::ALL }).unwrap();
            let (mut blocks, mut rows, mut head) = (0, 0, Vec::new());
            while let Some(block) = reading.next().unwrap() {
                blocks += 1;
                if head.is_empty() {
                    head = block[..HEAD_BYTES].to_vec();
                }
                assert_eq!(&block[..HEAD_BYTES], head);
                // A base and two addresses.
                assert_eq!((block.len() - HEAD_BYTES) % 32, 0);
                rows += (block.len() - HEAD_BYTES) / 32;
            }
            assert!(rows >= 1500 && blocks > 1, "{rows} rows in {blocks} blocks");
        }
        let nothing = WantedSockets { states: 0, ..WantedSockets::ALL };
        assert!(backend.read(nothing).unwrap().next().unwrap().is_none());
    }
}
