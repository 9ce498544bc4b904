//! A reading in progress, and the bookkeeping that avoids losing or repeating rows if the table is resized during it.
use std::collections::HashSet;

use sys::bpf::MappedMemory;
use sys::{Blocks, Errno, Host, SysError};

use super::context::Context;
use super::position::TablePosition;
use super::rows::{HEAD_BYTES, identifying_bytes, rows};
use super::wanted::WantedEntries;
use super::{Counts, CtWalk, NAME};
use crate::conntrack_table::{CtTable, CtTableFile, CtVariables};
use crate::portion::Portion;
use crate::{BpfError, Program};

/// Number of buckets per call if all of them are empty.
const BUCKETS_A_CALL: u32 = 1 << 16;
/// Number of chains that are followed concurrently, and of entries that are written concurrently, to keep the memory
/// busy.
pub(super) const CONCURRENCY: [u32; 2] = [40, 128];
/// The minimum of both, for tables with chains so long that they do not fit otherwise: eight buckets per round, and if
/// even these do not fit, a portion of their entries per pass.
const CONCURRENCY_MIN: [u32; 2] = [1, 1];
/// Number of calls that may end without progress because chains changed a thousand times.
///
/// Bound: calls in a row in which a changing hash chain stops the walk of connection tracking. Beyond: netlink reads
/// the rest. By: clients whose connections come and go on many CPUs.
const CONTENDED_MAX: u32 = 20;
/// Maximum number of consecutive searches for a table that a resize may invalidate.
const SEARCHES_MAX: u32 = 100;
/// Number of consecutive searches that find the same table but none of the variables.
const STRANGE_MAX: u32 = 3;
// The result of a call, `ended` of `struct walk`.
const NO_TABLE: u32 = 1;
/// The block has no space for the next bucket.
const FULL: u32 = 3;
/// Chains changed so often that the call made no progress.
const CONTENDED: u32 = 4;
/// The kernel's types do not have the layout that the program needs, or the memory found is not a table.
const UNKNOWN_LAYOUT: u32 = 5;
/// Blocks shorter than this are not enough to recognize rows that were handed out: they are kept together.
const RECENT_BYTES: usize = 128 << 10;

/// The last block handed out: its first bucket, and the number of buckets of its table.
#[derive(Debug, Clone, Copy)]
struct Newest {
    /// Position in the table where the block begins.
    from: TablePosition,
    region: u32,
    /// Number of bytes in the block.
    filled: usize,
}

/// A reading in progress.
#[derive(Debug)]
pub struct ConntrackReading<'w> {
    walk: &'w CtWalk,
    host: &'w Host,
    wanted: WantedEntries,
    reader: CtTableFile,
    /// They show whether the table was resized, more cheaply than reading the file again; `None` if they cannot be
    /// read.
    variables: Option<CtVariables>,
    variables_at: u64,
    /// The variables' hash while the table is `table`; 0 if unknown.
    digest: u64,
    table: CtTable,
    /// The namespace in which the calling thread started the reading, as the program identifies it.
    net: u64,
    /// The first bucket that has not been handed out.
    next: u32,
    /// Rows before this position may have been handed out if the table was resized: they are in the newest block, or
    /// in `recent`.
    out_until: TablePosition,
    newest: Newest,
    /// The newest block and the rows that followed it, if those were few or the table was resized; otherwise empty.
    recent: Vec<u8>,
    /// The rows of a block that had not been handed out.
    passed: Vec<u8>,
    /// Blocks of chains that were read in portions: they count as handed out and are returned next.
    portions: Vec<Vec<u8>>,
    /// True if rows were handed out since the table was last found.
    unproved: bool,
    at_once: [u32; 2],
    contended: u32,
    counts: Counts,
}

impl<'w> ConntrackReading<'w> {
    pub(super) fn begin(
        walk: &'w CtWalk,
        host: &'w Host,
        wanted: WantedEntries,
    ) -> Result<ConntrackReading<'w>, BpfError> {
        let (reader, variables) = (CtTableFile::open(host)?, CtVariables::open(host));
        walk.whole.set(None);
        let mut walking = ConntrackReading {
            walk,
            host,
            wanted,
            reader,
            variables,
            variables_at: 0,
            digest: 0,
            table: CtTable::default(),
            net: 0,
            next: 0,
            out_until: TablePosition::NOTHING,
            newest: Newest { from: TablePosition::NOTHING, region: 0, filled: 0 },
            recent: Vec::new(),
            passed: Vec::new(),
            portions: Vec::new(),
            unproved: false,
            at_once: CONCURRENCY,
            contended: 0,
            counts: Counts::default(),
        };
        walking.table = walking.find_table()?;
        Ok(walking)
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of buckets of the table.
    pub fn buckets(&self) -> u32 {
        self.table.buckets
    }

    pub(super) fn run(&self, start: u32, end: u32) -> Result<Context, SysError> {
        let program = self.walk.loaded.program(NAME).map_err(failed_for)?;
        self.run_for(program, Portion::ALL, start, end)
    }

    fn run_for(&self, program: &Program, portion: Portion, start: u32, end: u32) -> Result<Context, SysError> {
        let mut context = self.context(start, end);
        portion.put(&mut context.0, Context::PORTION);
        run_with(program, context)
    }

    fn context(&self, start: u32, end: u32) -> Context {
        let (fd, region) = (self.reader.number(), self.newest.region ^ 1);
        let mut context = Context::new(&self.wanted, [start, end, region, fd], self.at_once, self.net);
        context.put(Context::VARIABLES, &self.variables_at.to_ne_bytes());
        context
    }

    /// Finds the current table; waits for a resize that is in progress.
    fn find_table(&mut self) -> Result<CtTable, SysError> {
        let (mut before, mut strange) = (CtTable::default(), 0);
        for _ in 0..SEARCHES_MAX {
            self.reader.refresh()?;
            let found = self.find()?;
            let (table, digest) = (found.table(), found.word(Context::DIGEST));
            (self.net, self.variables_at) = (found.word(Context::NET), found.word(Context::VARIABLES));
            let waited = self.variables_at != 0 && self.variables.as_ref().is_some_and(CtVariables::wait);
            if waited && self.run(0, 0)?.word(Context::DIGEST) == digest {
                self.digest = digest;
                return Ok(table);
            }
            // The table has not moved, and no variable contains its address: this kernel stores them elsewhere.
            let is_strange = self.variables_at == 0 && before == table;
            (before, strange) = (table, if is_strange { strange + 1 } else { 0 });
            if strange == STRANGE_MAX {
                self.without_variables();
            }
            if self.variables.is_none() {
                return Ok(table);
            }
        }
        Err(walk_error(Errno::AGAIN))
    }

    /// Makes the program search for the variables as well.
    fn find(&self) -> Result<Context, SysError> {
        let mut context = self.context(0, 0);
        let number = self.variables.as_ref().map_or(0, CtVariables::number);
        context.put(Context::SIZE_FD, &number.to_ne_bytes());
        run_with(self.walk.loaded.program(NAME).map_err(failed_for)?, context)
    }

    fn without_variables(&mut self) {
        (self.variables, self.variables_at, self.digest) = (None, 0, 0);
    }

    /// Calls the program once. Returns the block that it wrote, if the table is still the same.
    fn call(&mut self, end: u32) -> Result<Option<Newest>, SysError> {
        let context = self.run(self.next, end)?;
        let (next, ended) = (context.get(Context::NEXT), context.get(Context::ENDED));
        let counted = |at| u64::from(context.get(at));
        self.counts.restarts += counted(Context::RESTARTS);
        if let Some(found) = self.check(&context)? {
            self.continue_in(found)?;
            return Ok(None);
        }
        if ended == FULL && next == self.next && self.at_once == CONCURRENCY_MIN {
            self.by_portions()?;
            return Ok(None);
        }
        self.choose_next_call(ended, next)?;
        self.counts.nodes += counted(Context::NODES);
        self.counts.gone += counted(Context::GONE);
        self.counts.longest = self.counts.longest.max(context.get(Context::LONGEST));
        let from = self.completed_position();
        self.next = next;
        let newest = Newest { from, region: self.newest.region ^ 1, filled: context.get(Context::FILLED) as usize };
        Ok(Some(newest).filter(|newest| newest.filled > HEAD_BYTES))
    }

    /// Checks whether the table stayed the same until the end of that call; returns the current table if not. If this
    /// cannot be checked now, it stays unproved.
    fn check(&mut self, context: &Context) -> Result<Option<CtTable>, SysError> {
        let knew = self.digest != 0;
        if knew && context.word(Context::DIGEST) == self.digest {
            return Ok(None);
        }
        let is_last = context.get(Context::NEXT) >= self.table.buckets;
        if !knew && context.get(Context::ENDED) != CONTENDED && !is_last && !self.reader.is_due() {
            self.unproved = true;
            return Ok(None);
        }
        let found = self.find_table()?;
        // Also if size and address are the same as before: in the meantime it was a different table.
        if knew || found != self.table {
            return Ok(Some(found));
        }
        self.unproved = false;
        Ok(None)
    }

    fn completed_position(&self) -> TablePosition {
        TablePosition { bucket: self.next, of: self.table.buckets }
    }

    /// Chooses the parameters of the next call from the result of a call.
    fn choose_next_call(&mut self, ended: u32, next: u32) -> Result<(), SysError> {
        let stands = next == self.next;
        match ended {
            FULL if stands => self.at_once = CONCURRENCY_MIN,
            // Also if the kernel cut the call short (`may_goto` ends it after a quarter of a second).
            _ if stands => self.count_stalled_call()?,
            _ => (self.contended, self.at_once) = (0, CONCURRENCY),
        }
        Ok(())
    }

    /// Counts a call without progress; EAGAIN after too many.
    fn count_stalled_call(&mut self) -> Result<(), SysError> {
        self.contended += 1;
        if self.contended > CONTENDED_MAX { Err(walk_error(Errno::AGAIN)) } else { Ok(()) }
    }

    /// Reads the next eight buckets, whose entries do not fit into the region, in portions. Nothing is handed out
    /// before all portions are complete, so that a reading of a resized table can continue from the same position.
    fn by_portions(&mut self) -> Result<(), SysError> {
        let (start, partly) = (self.next, self.is_partly_out());
        let (program, regions) = self.walk.portion_program(self.host).map_err(failed_for)?;
        let (mut left, mut blocks) = (Vec::from(Portion::ALL.split().map_err(walk_error)?), Vec::new());
        let mut met = Counts::default();
        while let Some(portion) = left.pop() {
            let context = self.run_for(program, portion, start, start.saturating_add(8))?;
            let (next, ended) = (context.get(Context::NEXT), context.get(Context::ENDED));
            self.counts.restarts += u64::from(context.get(Context::RESTARTS));
            if let Some(found) = self.check(&context)? {
                return self.continue_in(found);
            }
            match ended {
                FULL if next == start => left.extend(portion.split().map_err(walk_error)?),
                _ if next == start => {
                    left.push(portion);
                    self.choose_next_call(ended, next)?;
                }
                _ => {
                    // Each pass visits all nodes.
                    met.nodes = context.get(Context::NODES).into();
                    met.longest = met.longest.max(context.get(Context::LONGEST));
                    met.gone += u64::from(context.get(Context::GONE));
                    let filled = context.get(Context::FILLED) as usize;
                    blocks.push(block_of(regions, self.newest.region ^ 1, filled).to_vec());
                }
            }
        }
        self.counts.nodes += met.nodes;
        self.counts.gone += met.gone;
        self.counts.longest = self.counts.longest.max(met.longest);
        self.note_portions(blocks, partly);
        (self.next, self.contended) = (start.saturating_add(8), 0);
        Ok(())
    }

    /// Records blocks as handed out, without the rows that were handed out before.
    fn note_portions(&mut self, blocks: Vec<Vec<u8>>, partly: bool) {
        let mut recent = Vec::new();
        for block in blocks.into_iter().filter(|block| block.len() > HEAD_BYTES) {
            if !partly {
                let rows = if recent.is_empty() { 0 } else { HEAD_BYTES };
                recent.extend_from_slice(block.get(rows..).unwrap_or_default());
                self.portions.push(block);
            } else if self.filter_block(&block) {
                self.portions.push(self.passed.clone());
            }
        }
        if !recent.is_empty() {
            (self.newest.from, self.recent) = (self.completed_position(), recent);
        }
    }

    /// True if rows from the current position may have been handed out.
    fn is_partly_out(&self) -> bool {
        self.completed_position().is_before(self.out_until)
    }

    /// Continues in a larger or smaller table, at the same fraction of it. If that position is within a bucket, or
    /// within a group of eight, rows that were handed out are read again; the newest block identifies them.
    fn continue_in(&mut self, new: CtTable) -> Result<(), SysError> {
        self.counts.resizes += 1;
        if new == self.table && self.count_stalled_call().is_err() {
            // One of the variables changes all the time for some other reason, so they are useless.
            self.without_variables();
            self.contended = 0;
        }
        let done = self.completed_position();
        if self.out_until.is_before(done) {
            self.out_until = done;
        }
        self.keep_newest();
        self.table = new;
        self.next = done.in_table(new.buckets) & !7;
        // Positions further back than the newest block are lost, because unknown rows may be missing.
        let lost = self.completed_position().is_before(self.newest.from) || self.unproved;
        if lost { Err(walk_error(Errno::AGAIN)) } else { Ok(()) }
    }

    fn keep_newest(&mut self) {
        if self.recent.is_empty() {
            self.recent = self.block(self.newest).to_vec();
        }
    }

    /// Records a block as handed out.
    fn handed_out(&mut self, block: Newest) {
        if block.filled >= RECENT_BYTES || self.newest.filled == 0 {
            self.newest = block;
            self.recent.clear();
            return;
        }
        self.keep_newest();
        let mut recent = std::mem::take(&mut self.recent);
        recent.extend_from_slice(self.block(block).get(HEAD_BYTES..).unwrap_or_default());
        // There are enough of these rows: older ones can be discarded.
        if recent.len() > 8 * RECENT_BYTES {
            self.newest.from = block.from;
            recent.clear();
            recent.extend_from_slice(self.block(block));
        }
        self.recent = recent;
        self.newest.region = block.region;
    }

    /// Keeps the rows of a block that have not been handed out; true if there are any.
    fn filter_block(&mut self, block: &[u8]) -> bool {
        let out: HashSet<Vec<u8>> = rows(&self.recent).map(|(row, at)| identifying_bytes(row, at)).collect();
        let mut passed = std::mem::take(&mut self.passed);
        passed.clear();
        passed.extend_from_slice(block.get(..HEAD_BYTES).unwrap_or_default());
        for (row, _) in rows(block).filter(|(row, at)| !out.contains(&identifying_bytes(row, *at))) {
            passed.extend_from_slice(row);
        }
        self.recent.extend_from_slice(passed.get(HEAD_BYTES..).unwrap_or_default());
        self.passed = passed;
        self.passed.len() > HEAD_BYTES
    }

    fn block(&self, newest: Newest) -> &'w [u8] {
        block_of(&self.walk.regions, newest.region, newest.filled)
    }
}

impl Blocks for ConntrackReading<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        loop {
            if let Some(block) = self.portions.pop() {
                self.passed = block;
                return Ok(Some(&self.passed));
            }
            if self.next >= self.table.buckets {
                break;
            }
            let partly = self.is_partly_out();
            let until = self.out_until.in_table(self.table.buckets) + 8;
            let end = if partly { until & !7 } else { self.next.saturating_add(BUCKETS_A_CALL) };
            let Some(newest) = self.call(end)? else { continue };
            if !partly {
                self.handed_out(newest);
                return Ok(Some(self.block(newest)));
            }
            if self.filter_block(self.block(newest)) {
                return Ok(Some(&self.passed));
            }
        }
        self.walk.whole.set(Some(self.counts).filter(|counts| counts.resizes == 0));
        Ok(None)
    }
}

fn run_with(program: &Program, mut context: Context) -> Result<Context, SysError> {
    program.run(&mut context.0).map_err(failed_for)?;
    match context.get(Context::ENDED) {
        NO_TABLE => Err(walk_error(Errno::NOENT)),
        UNKNOWN_LAYOUT => Err(walk_error(Errno::NOSYS)),
        _ => Ok(context),
    }
}

/// The block that a call wrote to a region.
fn block_of(regions: &MappedMemory, region: u32, filled: usize) -> &[u8] {
    let bytes = regions.bytes();
    let size = bytes.len() / 2;
    bytes.get(size * region as usize..).and_then(|region| region.get(..filled)).unwrap_or_default()
}

fn failed_for(error: BpfError) -> SysError {
    walk_error(error.errno().unwrap_or(Errno::INVAL))
}

fn walk_error(errno: Errno) -> SysError {
    SysError::new("bpf_prog_run", "the walk of the connection-tracking table", errno)
}
