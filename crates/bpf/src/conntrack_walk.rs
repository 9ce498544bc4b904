//! The walk of the kernel's connection-tracking table: which entries in, blocks of rows out.
//!
//! The program (`c/conntrack_walk.bpf.c`) follows the hash chains as plain memory and writes rows into a region that is
//! mapped here; a call walks a stretch of buckets, and what it wrote is one block. What a row looks like is known to
//! the program and to whoever reads the blocks (`conntrack::backends::bpf::rows`), not here. Needs Linux 6.9
//! (`may_goto`), BTF, CAP_BPF and CAP_PERFMON, and a readable /proc/net/nf_conntrack. Start reading at
//! [`CtWalk::read`].
//!
//! How the table is found, and how a change of its size is noticed, is in `conntrack_table.rs`.
mod context;
mod position;
mod rows;
mod walking;
mod wanted;

use std::cell::{Cell, OnceCell};

use sys::bpf::Mapped;
use sys::{Errno, Host, SysError};

use crate::conntrack_table::MODULE;
use crate::{BpfError, KernelTypes, Loaded, Program, Spec, load_with};
pub use walking::Walking;
pub use wanted::{TupleIs, WantedEntries};

/// The program, and the one that reads a portion of the entries.
const NAME: &str = "walk_conntrack";
const PORTION: &str = "walk_portion";

static OBJECT: &[u8] = include_bytes!("../objects/conntrack_walk.o");

/// The loaded program and its memory. Stays good for as many readings as one likes.
#[derive(Debug)]
pub struct CtWalk {
    loaded: Loaded,
    regions: Mapped,
    parts: u32,
    conditions: u32,
    whole: Cell<Option<Counts>>,
    /// The same for a portion of the entries at a time: loaded when a reading needs it first.
    portioned: OnceCell<(Loaded, Mapped)>,
}

impl CtWalk {
    /// Loads the program, to write these parts of a row (`enum` in the program) and to know the conditions of `wanted`.
    /// Costs some milliseconds.
    pub fn load(host: &Host, parts: u32, wanted: &WantedEntries) -> Result<CtWalk, BpfError> {
        let conditions = wanted.conditions();
        let (loaded, regions) = load_program(host, NAME, parts, conditions)?;
        Ok(CtWalk { loaded, regions, parts, conditions, whole: Cell::new(None), portioned: OnceCell::new() })
    }

    /// The program that reads a portion at a time, and its memory.
    fn portioned(&self, host: &Host) -> Result<(&Program, &Mapped), BpfError> {
        if self.portioned.get().is_none() {
            let loaded = load_program(host, PORTION, self.parts, self.conditions)?;
            // Nobody else has set it meanwhile.
            let _ = self.portioned.set(loaded);
        }
        let missing = || BpfError::Io(SysError::new("bpf_prog_load", "the walk in portions", Errno::NOENT));
        let (loaded, regions) = self.portioned.get().ok_or_else(missing)?;
        Ok((loaded.program(PORTION)?, regions))
    }

    /// True if it can do what a walk loaded with these arguments could.
    pub fn covers(&self, parts: u32, wanted: &WantedEntries) -> bool {
        self.parts & parts == parts && self.conditions & wanted.conditions() == wanted.conditions()
    }

    /// What the latest reading met, once it had got to the table's end and if the table's size had stayed as it was:
    /// else chains of two tables are mixed in it.
    pub fn whole(&self) -> Option<Counts> {
        self.whole.get()
    }

    /// Begins to read the table. Each block is what one call of the program wrote, at most 256 KiB.
    ///
    /// Entries are those of the namespace that the calling thread is in now, wherever it is while the blocks come.
    /// The blocks end in an error if the table was made smaller while it was read and by so much that it cannot be said
    /// which rows are out (EAGAIN), or if it will not keep still (EAGAIN). Chains that do not fit are read in portions.
    /// Fails if /proc/net/nf_conntrack cannot be read. Collects what has expired at the table's beginning, as every
    /// reading of that file does: up to the first entry of one's own.
    pub fn read<'w>(&'w self, host: &'w Host, wanted: WantedEntries) -> Result<Walking<'w>, BpfError> {
        Walking::begin(self, host, wanted)
    }
}

fn load_program(host: &Host, name: &str, parts: u32, conditions: u32) -> Result<(Loaded, Mapped), BpfError> {
    let constants: &[(&str, &[u8])] = &[("parts", &parts.to_ne_bytes()), ("conditions", &conditions.to_ne_bytes())];
    let types = KernelTypes::read(host)?.with_module(host, MODULE)?;
    let spec = Spec { object: OBJECT, programs: &[name], constants, entries: &[] };
    let loaded = load_with(&types, &spec)?;
    let regions = loaded.map("out")?.mapped()?;
    Ok((loaded, regions))
}

/// What a reading met beside rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Nodes of the chains, each counted once: every entry has two, also those that were not wanted.
    pub nodes: u64,
    /// Nodes of the longest chain: of all namespaces and both directions, as the kernel counts them when it refuses an
    /// entry because of a long chain.
    pub longest: u32,
    /// Turns that were read again because a chain had changed meanwhile.
    pub restarts: u64,
    /// Entries that went while their row was made.
    pub gone: u64,
    /// Changes of the table's size.
    pub resizes: u64,
}

#[cfg(test)]
mod tests;
