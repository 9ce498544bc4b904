//! The walk of the kernel's connection-tracking table: which entries in, blocks of rows out.
//!
//! The program (`c/conntrack_walk.bpf.c`) follows the hash chains as plain memory and writes rows into a region that is
//! mapped here; a call walks a stretch of buckets, and what it wrote is one block. What a row looks like is known to
//! the program and to whoever reads the blocks (`conntrack::bpf_rows`), not here. Needs Linux 6.9 (`may_goto`), BTF,
//! CAP_BPF and CAP_PERFMON, and a readable /proc/net/nf_conntrack. Start reading at [`Walk::read`].
//!
//! How the table is found, and how a change of its size is noticed, is in `conntrack_table.rs`.
mod context;
mod rows;
mod share;
mod walking;
mod wanted;

use std::cell::Cell;

use sys::Host;
use sys::bpf::Mapped;

use crate::conntrack_table::MODULE;
use crate::{BpfError, KernelTypes, Loaded, Spec, load_with};
pub use walking::Walking;
pub use wanted::{TupleIs, Wanted};

static OBJECT: &[u8] = include_bytes!("../objects/conntrack_walk.o");

/// The loaded program and its memory. Stays good for as many readings as one likes.
#[derive(Debug)]
pub struct Walk {
    loaded: Loaded,
    regions: Mapped,
    parts: u32,
    conditions: u32,
    whole: Cell<Option<Counts>>,
}

impl Walk {
    /// Loads the program, to write these parts of a row (`enum` in the program) and to know the conditions of `wanted`.
    /// Costs some milliseconds.
    pub fn load(host: &Host, parts: u32, wanted: &Wanted) -> Result<Walk, BpfError> {
        let conditions = wanted.conditions();
        let constants: &[(&str, &[u8])] = &[("parts", &parts.to_ne_bytes()), ("conditions", &conditions.to_ne_bytes())];
        let types = KernelTypes::read(host)?.with_module(host, MODULE)?;
        let spec = Spec { object: OBJECT, programs: &["walk_conntrack"], constants, entries: &[] };
        let loaded = load_with(&types, &spec)?;
        let regions = loaded.map("out")?.mapped()?;
        Ok(Walk { loaded, regions, parts, conditions, whole: Cell::new(None) })
    }

    /// True if it can do what a walk loaded with these arguments could.
    pub fn covers(&self, parts: u32, wanted: &Wanted) -> bool {
        self.parts & parts == parts && self.conditions & wanted.conditions() == wanted.conditions()
    }

    /// What the latest reading met, once it had got to the table's end and if the table's size had stayed as it was: else
    /// chains of two tables are mixed in it.
    pub fn whole(&self) -> Option<Counts> {
        self.whole.get()
    }

    /// Begins to read the table. Each block is what one call of the program wrote, at most 256 KiB.
    ///
    /// Entries are those of the namespace that the calling thread is in now, wherever it is while the blocks come.
    /// The blocks end in an error if the table was made smaller while it was read and by so much that it cannot be said
    /// which rows are out (EAGAIN), if it will not keep still (EAGAIN), or if its chains are too long (ENOSPC).
    /// Fails if /proc/net/nf_conntrack cannot be read. Collects what has expired at the table's beginning, as every
    /// reading of that file does: up to the first entry of one's own.
    pub fn read(&self, host: &Host, wanted: Wanted) -> Result<Walking<'_>, BpfError> {
        Walking::begin(self, host, wanted)
    }
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
