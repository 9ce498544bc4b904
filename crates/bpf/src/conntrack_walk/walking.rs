//! A reading under way, with what it takes to lose no row and repeat none when the table's size changes meanwhile.
use std::collections::HashSet;

use sys::bpf::Mapped;
use sys::{Blocks, Errno, Host, SysError};

use super::context::Context;
use super::position::TablePosition;
use super::rows::{HEAD, rows, telling};
use super::wanted::WantedEntries;
use super::{Counts, CtWalk, NAME};
use crate::conntrack_table::{CtTable, CtTableFile, CtVariables};
use crate::portion::Portion;
use crate::{BpfError, Program};

/// Buckets a call, should all be empty.
const BUCKETS_A_CALL: u32 = 1 << 16;
/// Chains that are followed at once, and entries that are written at once: what keeps the memory busy.
pub(super) const AT_ONCE: [u32; 2] = [40, 128];
/// The least of both, for tables whose chains are so long that they do not fit otherwise: eight buckets a turn, and if
/// not even these fit, a portion of their entries a pass.
const FEW_AT_ONCE: [u32; 2] = [1, 1];
/// Calls that may end without a step forward because chains changed a thousand times meanwhile.
const CONTENDED_MAX: u32 = 20;
/// Looks for the table that a resize may spoil, one after the other.
const LOOKS_MAX: u32 = 100;
/// Looks in a row that show the same table and none of the variables.
const STRANGE_MAX: u32 = 3;
// How a call ended, `ended` of `struct walk`.
const NO_TABLE: u32 = 1;
/// The block has no room for the next bucket.
const FULL: u32 = 3;
/// Chains changed so often that no step forward was made.
const CONTENDED: u32 = 4;
/// The kernel's types are not laid out as the program needs them, or what was found is no table.
const STRANGE: u32 = 5;
/// Blocks that are shorter than this are not enough to know again what is out: they are kept together.
const RECENT_BYTES: usize = 128 << 10;

/// The block that was handed out last, from which bucket on, of a table of how many.
#[derive(Debug, Clone, Copy)]
struct Newest {
    /// Where in the table the block begins.
    from: TablePosition,
    region: u32,
    /// Bytes of rows in the block.
    filled: usize,
}

/// A reading under way.
#[derive(Debug)]
pub struct Walking<'w> {
    walk: &'w CtWalk,
    host: &'w Host,
    wanted: WantedEntries,
    reader: CtTableFile,
    /// Tell whether the table was resized, more cheaply than reading the file again; `None` where they cannot be read.
    variables: Option<CtVariables>,
    variables_at: u64,
    /// The variables' hash while the table is `table`; 0: not known.
    digest: u64,
    table: CtTable,
    /// The namespace that the calling thread was in at the beginning, as the program knows it.
    net: u64,
    /// All buckets before this one are out.
    next: u32,
    /// Rows up to here may be out, if the table's size changed: they are in the newest block, or in `recent`.
    out_until: TablePosition,
    newest: Newest,
    /// What followed the newest block since, if it was little or the table's size changed: that block, and the rows.
    recent: Vec<u8>,
    /// What of a block was not out.
    passed: Vec<u8>,
    /// Blocks of chains that were read in portions: they count as handed out, and are next.
    portions: Vec<Vec<u8>>,
    /// True if something was handed out since the table was looked for.
    unproved: bool,
    at_once: [u32; 2],
    contended: u32,
    counts: Counts,
}

impl<'w> Walking<'w> {
    pub(super) fn begin(walk: &'w CtWalk, host: &'w Host, wanted: WantedEntries) -> Result<Walking<'w>, BpfError> {
        let (reader, variables) = (CtTableFile::open(host)?, CtVariables::open(host));
        walk.whole.set(None);
        let mut walking = Walking {
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
            at_once: AT_ONCE,
            contended: 0,
            counts: Counts::default(),
        };
        walking.table = walking.look()?;
        Ok(walking)
    }

    /// What was met so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Buckets of the table.
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

    /// Where the table is now; a change of its size that is under way is waited for.
    fn look(&mut self) -> Result<CtTable, SysError> {
        let (mut before, mut strange) = (CtTable::default(), 0);
        for _ in 0..LOOKS_MAX {
            self.reader.look()?;
            let found = self.find()?;
            let (table, digest) = (found.table(), found.word(Context::DIGEST));
            (self.net, self.variables_at) = (found.word(Context::NET), found.word(Context::VARIABLES));
            let waited = self.variables_at != 0 && self.variables.as_ref().is_some_and(CtVariables::wait);
            if waited && self.run(0, 0)?.word(Context::DIGEST) == digest {
                self.digest = digest;
                return Ok(table);
            }
            // The table is where it was, and no variable has its address: they are elsewhere in this kernel.
            let is_strange = self.variables_at == 0 && before == table;
            (before, strange) = (table, if is_strange { strange + 1 } else { 0 });
            if strange == STRANGE_MAX {
                self.without_variables();
            }
            if self.variables.is_none() {
                return Ok(table);
            }
        }
        Err(failed(Errno::AGAIN))
    }

    /// Has the program look for the variables, too.
    fn find(&self) -> Result<Context, SysError> {
        let mut context = self.context(0, 0);
        let number = self.variables.as_ref().map_or(0, CtVariables::number);
        context.put(Context::SIZE_FD, &number.to_ne_bytes());
        run_with(self.walk.loaded.program(NAME).map_err(failed_for)?, context)
    }

    fn without_variables(&mut self) {
        (self.variables, self.variables_at, self.digest) = (None, 0, 0);
    }

    /// One call of the program. What it wrote, if the table is still the one it was.
    fn call(&mut self, end: u32) -> Result<Option<Newest>, SysError> {
        let context = self.run(self.next, end)?;
        let (next, ended) = (context.get(Context::NEXT), context.get(Context::ENDED));
        let counted = |at| u64::from(context.get(at));
        self.counts.restarts += counted(Context::RESTARTS);
        if let Some(found) = self.check(&context)? {
            self.resized(found)?;
            return Ok(None);
        }
        if ended == FULL && next == self.next && self.at_once == FEW_AT_ONCE {
            self.by_portions()?;
            return Ok(None);
        }
        self.judge(ended, next)?;
        self.counts.nodes += counted(Context::NODES);
        self.counts.gone += counted(Context::GONE);
        self.counts.longest = self.counts.longest.max(context.get(Context::LONGEST));
        let from = self.done();
        self.next = next;
        let newest = Newest { from, region: self.newest.region ^ 1, filled: context.get(Context::FILLED) as usize };
        Ok(Some(newest).filter(|newest| newest.filled > HEAD))
    }

    /// Whether the table was the same until the end of that call; where it is now, if not. What cannot be said now
    /// stays unproved.
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
        let found = self.look()?;
        // Also if it has the size and the address that it had: it was another one meanwhile.
        if knew || found != self.table {
            return Ok(Some(found));
        }
        self.unproved = false;
        Ok(None)
    }

    fn done(&self) -> TablePosition {
        TablePosition { bucket: self.next, of: self.table.buckets }
    }

    /// What a call's end means for the next.
    fn judge(&mut self, ended: u32, next: u32) -> Result<(), SysError> {
        let stands = next == self.next;
        match ended {
            FULL if stands => self.at_once = FEW_AT_ONCE,
            // Also when the kernel had enough of it (`may_goto` ends a call after a quarter of a second).
            _ if stands => self.stay()?,
            _ => (self.contended, self.at_once) = (0, AT_ONCE),
        }
        Ok(())
    }

    /// Counts a call without a step forward; EAGAIN after too many.
    fn stay(&mut self) -> Result<(), SysError> {
        self.contended += 1;
        if self.contended > CONTENDED_MAX { Err(failed(Errno::AGAIN)) } else { Ok(()) }
    }

    /// The next eight buckets, whose entries do not fit into the region: portions of them, until all are read. Nothing
    /// is handed out before, so that a table whose size changes meanwhile is read on from where it was.
    fn by_portions(&mut self) -> Result<(), SysError> {
        let (start, partly) = (self.next, self.is_partly_out());
        let (program, regions) = self.walk.portioned(self.host).map_err(failed_for)?;
        let (mut left, mut blocks) = (Vec::from(Portion::ALL.halves().map_err(failed)?), Vec::new());
        let mut met = Counts::default();
        while let Some(portion) = left.pop() {
            let context = self.run_for(program, portion, start, start.saturating_add(8))?;
            let (next, ended) = (context.get(Context::NEXT), context.get(Context::ENDED));
            self.counts.restarts += u64::from(context.get(Context::RESTARTS));
            if let Some(found) = self.check(&context)? {
                return self.resized(found);
            }
            match ended {
                FULL if next == start => left.extend(portion.halves().map_err(failed)?),
                _ if next == start => {
                    left.push(portion);
                    self.judge(ended, next)?;
                }
                _ => {
                    // Each pass meets all nodes.
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

    /// Notes blocks as handed out, but for rows that are out already.
    fn note_portions(&mut self, blocks: Vec<Vec<u8>>, partly: bool) {
        let mut recent = Vec::new();
        for block in blocks.into_iter().filter(|block| block.len() > HEAD) {
            if !partly {
                let rows = if recent.is_empty() { 0 } else { HEAD };
                recent.extend_from_slice(block.get(rows..).unwrap_or_default());
                self.portions.push(block);
            } else if self.pass(&block) {
                self.portions.push(self.passed.clone());
            }
        }
        if !recent.is_empty() {
            (self.newest.from, self.recent) = (self.done(), recent);
        }
    }

    /// Whether rows from here on may be out.
    fn is_partly_out(&self) -> bool {
        self.done().is_before(self.out_until)
    }

    /// The table was exchanged for a larger or smaller one: the rest begins at the same share of it. Where that is
    /// within a bucket, or within eight, rows come again that are out, and are known by the newest block.
    fn resized(&mut self, new: CtTable) -> Result<(), SysError> {
        self.counts.resizes += 1;
        if new == self.table && self.stay().is_err() {
            // Something else changes among the variables, all the time: they are no help.
            self.without_variables();
            self.contended = 0;
        }
        let done = self.done();
        if self.out_until.is_before(done) {
            self.out_until = done;
        }
        self.keep_newest();
        self.table = new;
        self.next = done.in_table(new.buckets) & !7;
        // Not as far back as that, or who knows what was missed.
        let lost = self.done().is_before(self.newest.from) || self.unproved;
        if lost { Err(failed(Errno::AGAIN)) } else { Ok(()) }
    }

    fn keep_newest(&mut self) {
        if self.recent.is_empty() {
            self.recent = self.block(self.newest).to_vec();
        }
    }

    /// Notes a block as handed out.
    fn handed_out(&mut self, block: Newest) {
        if block.filled >= RECENT_BYTES || self.newest.filled == 0 {
            self.newest = block;
            self.recent.clear();
            return;
        }
        self.keep_newest();
        let mut recent = std::mem::take(&mut self.recent);
        recent.extend_from_slice(self.block(block).get(HEAD..).unwrap_or_default());
        // Enough of the like: what was before may be forgotten.
        if recent.len() > 8 * RECENT_BYTES {
            self.newest.from = block.from;
            recent.clear();
            recent.extend_from_slice(self.block(block));
        }
        self.recent = recent;
        self.newest.region = block.region;
    }

    /// Keeps what of a block is not out; true if there is any.
    fn pass(&mut self, block: &[u8]) -> bool {
        let out: HashSet<Vec<u8>> = rows(&self.recent).map(|(row, at)| telling(row, at)).collect();
        let mut passed = std::mem::take(&mut self.passed);
        passed.clear();
        passed.extend_from_slice(block.get(..HEAD).unwrap_or_default());
        for (row, _) in rows(block).filter(|(row, at)| !out.contains(&telling(row, *at))) {
            passed.extend_from_slice(row);
        }
        self.recent.extend_from_slice(passed.get(HEAD..).unwrap_or_default());
        self.passed = passed;
        self.passed.len() > HEAD
    }

    fn block(&self, newest: Newest) -> &'w [u8] {
        block_of(&self.walk.regions, newest.region, newest.filled)
    }
}

impl Blocks for Walking<'_> {
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
            if self.pass(self.block(newest)) {
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
        NO_TABLE => Err(failed(Errno::NOENT)),
        STRANGE => Err(failed(Errno::NOSYS)),
        _ => Ok(context),
    }
}

/// What a call wrote to a region.
fn block_of(regions: &Mapped, region: u32, filled: usize) -> &[u8] {
    let bytes = regions.bytes();
    let size = bytes.len() / 2;
    bytes.get(size * region as usize..).and_then(|region| region.get(..filled)).unwrap_or_default()
}

fn failed_for(error: BpfError) -> SysError {
    failed(error.errno().unwrap_or(Errno::INVAL))
}

fn failed(errno: Errno) -> SysError {
    SysError::new("bpf_prog_run", "the walk of the connection-tracking table", errno)
}
