//! The iterator over all open files as a stream of blocks.
use std::cell::OnceCell;

use bpf::{BpfError, IterRows, OwnersFiles};
use sys::{Blocks, Host, SysError};

/// The kernel collects at most 32 KiB before it delivers them (PAGE_SIZE << 3 in kernel/bpf/bpf_iter.c).
const BLOCK_BYTES: usize = 64 << 10;

/// The program, loaded on first use. If loading fails once, it is not tried again.
#[derive(Default)]
pub(super) struct BpfBackend {
    loaded: OnceCell<Result<OwnersFiles, BpfError>>,
    /// The program for sockets in flight, which few hosts need.
    in_flight: OnceCell<Result<OwnersFiles, BpfError>>,
}

impl BpfBackend {
    /// Loads the program that reports which files keep namespaces alive.
    pub(super) fn by_netns(host: &Host) -> BpfBackend {
        BpfBackend { loaded: OnceCell::from(OwnersFiles::load_by_netns(host)), ..BpfBackend::default() }
    }

    /// Starts a pass.
    pub(super) fn open<'a>(&'a self, host: &Host) -> Result<Box<dyn Blocks + 'a>, SysError> {
        pass(self.loaded.get_or_init(|| OwnersFiles::load(host)))
    }

    /// Begins a pass over the messages that unix sockets have not delivered yet.
    pub(super) fn open_in_flight<'a>(&'a self, host: &Host) -> Result<Box<dyn Blocks + 'a>, SysError> {
        pass(self.in_flight.get_or_init(|| OwnersFiles::load_in_flight(host)))
    }
}

fn pass(loaded: &Result<OwnersFiles, BpfError>) -> Result<Box<dyn Blocks + '_>, SysError> {
    let rows = loaded.as_ref().map_err(failed)?.begin_pass().map_err(|error| failed(&error))?;
    Ok(Box::new(OwnersPass { rows, block: vec![0; BLOCK_BYTES] }))
}

fn failed(error: &BpfError) -> SysError {
    error.to_sys("owners via BPF")
}

struct OwnersPass {
    rows: IterRows,
    block: Vec<u8>,
}

impl Blocks for OwnersPass {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        let got = self.rows.read(&mut self.block).map_err(|error| failed(&error))?;
        Ok(if got == 0 { None } else { self.block.get(..got) })
    }
}
