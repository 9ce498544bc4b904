//! The table of a reading, and whether it was resized during the reading.
use sys::{Errno, Host, SysError};

use super::context::Context;
use super::wanted::WantedEntries;
use super::{CtWalk, NAME};
use crate::conntrack_table::{CtTable, CtTableFile, CtVariables};
use crate::{BpfError, Program};

/// Number of chains that are followed concurrently, and of entries that are written concurrently, to keep the memory
/// busy.
pub(super) const CONCURRENCY: [u32; 2] = [40, 128];
/// Maximum number of consecutive searches for a table that a resize may invalidate.
const SEARCHES_MAX: u32 = 100;
/// Number of consecutive searches that find the same table but none of the variables.
const STRANGE_MAX: u32 = 3;
// The result of a call, `ended` of `struct walk`.
const NO_TABLE: u32 = 1;
/// Chains changed so often that the call made no progress.
pub(super) const CONTENDED: u32 = 4;
/// The kernel's types do not have the layout that the program needs, or the memory found is not a table.
const UNKNOWN_LAYOUT: u32 = 5;

/// The table, and how to notice that it was replaced.
#[derive(Debug)]
pub(super) struct WatchedTable<'w> {
    walk: &'w CtWalk,
    wanted: WantedEntries,
    reader: CtTableFile,
    /// They show whether the table was resized, more cheaply than reading the file again; `None` if they cannot be
    /// read.
    variables: Option<CtVariables>,
    variables_at: u64,
    /// The variables' hash while the table is `table`; 0 if unknown.
    digest: u64,
    pub(super) table: CtTable,
    /// The namespace in which the calling thread started the reading, as the program identifies it.
    net: u64,
    /// True if rows were handed out since the table was last found.
    pub(super) is_unproved: bool,
}

impl<'w> WatchedTable<'w> {
    /// Finds the table. Every call of the program writes to a region, also if it only searches.
    pub(super) fn find(
        walk: &'w CtWalk,
        host: &Host,
        wanted: WantedEntries,
        region: u32,
    ) -> Result<WatchedTable<'w>, BpfError> {
        let (reader, variables) = (CtTableFile::open(host)?, CtVariables::open(host));
        let (table, variables_at, digest, net, is_unproved) = (CtTable::default(), 0, 0, 0, false);
        let mut watched =
            WatchedTable { walk, wanted, reader, variables, variables_at, digest, table, net, is_unproved };
        watched.table = watched.search(region)?;
        Ok(watched)
    }

    /// The context of a call for these buckets.
    pub(super) fn context(&self, [start, end, region]: [u32; 3], at_once: [u32; 2]) -> Context {
        let mut context = Context::new(&self.wanted, [start, end, region, self.reader.number()], at_once, self.net);
        context.put(Context::VARIABLES, &self.variables_at.to_ne_bytes());
        context
    }

    /// Calls the program.
    pub(super) fn run(&self, context: Context) -> Result<Context, SysError> {
        run_with(self.walk.loaded.program(NAME).map_err(failed_for)?, context)
    }

    /// Finds the current table; waits for a resize that is in progress.
    fn search(&mut self, region: u32) -> Result<CtTable, SysError> {
        let (mut before, mut strange) = (CtTable::default(), 0);
        for _ in 0..SEARCHES_MAX {
            self.reader.refresh()?;
            let mut context = self.context([0, 0, region], CONCURRENCY);
            // Makes the program search for the variables as well.
            let number = self.variables.as_ref().map_or(0, CtVariables::number);
            context.put(Context::SIZE_FD, &number.to_ne_bytes());
            let found = self.run(context)?;
            let (table, digest) = (found.table(), found.word(Context::DIGEST));
            (self.net, self.variables_at) = (found.word(Context::NET), found.word(Context::VARIABLES));
            let waited = self.variables_at != 0 && self.variables.as_ref().is_some_and(CtVariables::wait);
            if waited && self.run(self.context([0, 0, region], CONCURRENCY))?.word(Context::DIGEST) == digest {
                self.digest = digest;
                return Ok(table);
            }
            // The table has not moved, and no variable contains its address: this kernel stores them elsewhere.
            let is_strange = self.variables_at == 0 && before == table;
            (before, strange) = (table, if is_strange { strange + 1 } else { 0 });
            if strange == STRANGE_MAX {
                self.forget_variables();
            }
            if self.variables.is_none() {
                return Ok(table);
            }
        }
        Err(walk_error(Errno::AGAIN))
    }

    pub(super) fn forget_variables(&mut self) {
        (self.variables, self.variables_at, self.digest) = (None, 0, 0);
    }

    /// Checks whether the table stayed the same until the end of that call; returns the current table if not. If this
    /// cannot be checked now, it stays unproved.
    pub(super) fn check(&mut self, context: &Context, region: u32) -> Result<Option<CtTable>, SysError> {
        let knew = self.digest != 0;
        if knew && context.word(Context::DIGEST) == self.digest {
            return Ok(None);
        }
        let is_last = context.get(Context::NEXT) >= self.table.buckets;
        if !knew && context.get(Context::ENDED) != CONTENDED && !is_last && !self.reader.is_due() {
            self.is_unproved = true;
            return Ok(None);
        }
        let found = self.search(region)?;
        // Also if size and address are the same as before: in the meantime it was a different table.
        if knew || found != self.table {
            return Ok(Some(found));
        }
        self.is_unproved = false;
        Ok(None)
    }
}

/// Calls a program.
pub(super) fn run_with(program: &Program, mut context: Context) -> Result<Context, SysError> {
    program.run(&mut context.0).map_err(failed_for)?;
    match context.get(Context::ENDED) {
        NO_TABLE => Err(walk_error(Errno::NOENT)),
        UNKNOWN_LAYOUT => Err(walk_error(Errno::NOSYS)),
        _ => Ok(context),
    }
}

pub(super) fn failed_for(error: BpfError) -> SysError {
    walk_error(error.errno().unwrap_or(Errno::INVAL))
}

pub(super) fn walk_error(errno: Errno) -> SysError {
    SysError::new("bpf_prog_run", "the walk of the connection-tracking table", errno)
}
