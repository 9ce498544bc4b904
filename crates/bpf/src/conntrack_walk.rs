//! The walk of the kernel's conntrack table: takes a description of the wanted entries and produces blocks of rows.
//!
//! The program (`c/conntrack_walk.bpf.c`) follows the hash chains as plain memory and writes rows into a region that
//! is mapped here. A call walks a range of buckets, and the rows that it writes are one block. This crate does not
//! know the layout of a row; the program and the reader of the blocks (`conntrack::backends::bpf::rows`) do. Needs
//! Linux 6.9 (`may_goto`), BTF, CAP_BPF and CAP_PERFMON, and a readable /proc/net/nf_conntrack. Start reading at
//! [`CtWalk::read`].
//!
//! `conntrack_table.rs` finds the table and detects resizes.
mod context;
mod handed_out;
mod position;
mod rows;
mod table;
mod walking;
mod wanted;

use std::cell::{Cell, OnceCell};

use sys::bpf::MappedMemory;
use sys::{Errno, Host, SysError};

use crate::conntrack_table::MODULE;
use crate::{BpfError, KernelTypes, LoadSpec, LoadedObject, Program, load_with};
pub use walking::ConntrackReading;
pub use wanted::{TupleCondition, WantedEntries};

/// The program, and the variant that reads a portion of the entries.
const NAME: &str = "walk_conntrack";
const PORTION: &str = "walk_portion";

static OBJECT: &[u8] = include_bytes!("../objects/conntrack_walk.o");

/// The loaded program and its memory. It can be used for any number of readings.
#[derive(Debug)]
pub struct CtWalk {
    loaded: LoadedObject,
    regions: MappedMemory,
    parts: u32,
    conditions: u32,
    whole: Cell<Option<Counts>>,
    /// The variant for a portion of the entries at a time, loaded when a reading first needs it.
    portioned: OnceCell<(LoadedObject, MappedMemory)>,
}

impl CtWalk {
    /// Loads the program so that it can write these parts of a row (`enum` in the program) and evaluate the conditions
    /// of `wanted`. Costs some milliseconds.
    pub fn load(host: &Host, parts: u32, wanted: &WantedEntries) -> Result<CtWalk, BpfError> {
        let conditions = wanted.conditions();
        let (loaded, regions) = load_program(host, NAME, parts, conditions)?;
        Ok(CtWalk { loaded, regions, parts, conditions, whole: Cell::new(None), portioned: OnceCell::new() })
    }

    /// The program that reads one portion at a time, and its memory.
    fn portion_program(&self, host: &Host) -> Result<(&Program, &MappedMemory), BpfError> {
        if self.portioned.get().is_none() {
            let loaded = load_program(host, PORTION, self.parts, self.conditions)?;
            // It is not set yet, as checked above.
            let _ = self.portioned.set(loaded);
        }
        let missing = || BpfError::Io(SysError::new("bpf_prog_load", "the walk in portions", Errno::NOENT));
        let (loaded, regions) = self.portioned.get().ok_or_else(missing)?;
        Ok((loaded.program(PORTION)?, regions))
    }

    /// True if this walk can do everything that a walk loaded with these arguments could.
    pub fn covers(&self, parts: u32, wanted: &WantedEntries) -> bool {
        self.parts & parts == parts && self.conditions & wanted.conditions() == wanted.conditions()
    }

    /// The counts of the latest reading, once it has reached the table's end and if the table was not resized:
    /// otherwise it mixes chains of two tables.
    pub fn complete_counts(&self) -> Option<Counts> {
        self.whole.get()
    }

    /// Starts reading the table. Each block contains the rows written by one call of the program, at most 256 KiB.
    ///
    /// The entries are those of the calling thread's current namespace, even if the thread changes its namespace while
    /// it reads the blocks. The blocks end with an error (EAGAIN) if the table shrank so much during the reading that
    /// it is unknown which rows have been handed out, or if its chains keep changing. Chains that do not fit are read
    /// in portions. Fails if /proc/net/nf_conntrack cannot be read. Like every read of that file, it collects expired
    /// entries at the beginning of the table, up to the first entry of the reader's namespace.
    pub fn read<'w>(&'w self, host: &'w Host, wanted: WantedEntries) -> Result<ConntrackReading<'w>, BpfError> {
        ConntrackReading::begin(self, host, wanted)
    }
}

fn load_program(
    host: &Host,
    name: &str,
    parts: u32,
    conditions: u32,
) -> Result<(LoadedObject, MappedMemory), BpfError> {
    let constants: &[(&str, &[u8])] = &[("parts", &parts.to_ne_bytes()), ("conditions", &conditions.to_ne_bytes())];
    let types = KernelTypes::read(host)?.with_module(host, MODULE)?;
    let spec = LoadSpec { object: OBJECT, programs: &[name], constants, entries: &[] };
    let loaded = load_with(&types, &spec)?;
    let regions = loaded.map("out")?.map_memory()?;
    Ok((loaded, regions))
}

/// Statistics of a reading other than its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of chain nodes, each counted once. Every entry has two, including entries that were not wanted.
    pub nodes: u64,
    /// Number of nodes in the longest chain, over all namespaces and both directions, as the kernel counts them when
    /// it refuses an entry because of a long chain.
    pub longest: u32,
    /// Number of rounds that were read again because a chain had changed.
    pub restarts: u64,
    /// Number of entries that disappeared while their row was being written.
    pub gone: u64,
    /// Number of resizes of the table.
    pub resizes: u64,
}

#[cfg(test)]
mod tests;
