//! A reading in progress.
use sys::{Blocks, Errno, Host, SysError};

use super::context::Context;
use super::handed_out::{HandedOut, WrittenBlock, block_of};
use super::position::TablePosition;
use super::rows::HEAD_BYTES;
use super::table::{CONCURRENCY, WatchedTable, failed_for, run_with, walk_error};
use super::wanted::WantedEntries;
use super::{Counts, CtWalk};
use crate::BpfError;
use crate::conntrack_table::CtTable;
use crate::portion::Portion;

/// Number of buckets per call if all of them are empty.
const BUCKETS_A_CALL: u32 = 1 << 16;
/// The minimum of [`CONCURRENCY`], for tables whose long chains do not fit otherwise: eight buckets per round, and if
/// even these do not fit, a portion of their entries per pass.
const CONCURRENCY_MIN: [u32; 2] = [1, 1];
/// Number of calls that may end without progress because chains changed a thousand times.
///
/// Bound: calls in a row in which a changing hash chain stops the walk of connection tracking. Beyond: netlink reads
/// the rest. By: clients whose connections come and go on many CPUs.
const CONTENDED_MAX: u32 = 20;
/// The result of a call, `ended` of `struct walk`: the block has no space for the next bucket.
const FULL: u32 = 3;

/// A reading in progress.
#[derive(Debug)]
pub struct ConntrackReading<'w> {
    walk: &'w CtWalk,
    host: &'w Host,
    watched: WatchedTable<'w>,
    out: HandedOut<'w>,
    /// The first bucket that has not been handed out.
    next: u32,
    /// The rows of a block that had not been handed out.
    passed: Vec<u8>,
    /// Blocks of chains that were read in portions: they count as handed out and are returned next.
    portions: Vec<Vec<u8>>,
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
        let out = HandedOut::nothing(&walk.regions);
        walk.whole.set(None);
        Ok(ConntrackReading {
            walk,
            host,
            watched: WatchedTable::find(walk, host, wanted, out.free_region())?,
            out,
            next: 0,
            passed: Vec::new(),
            portions: Vec::new(),
            at_once: CONCURRENCY,
            contended: 0,
            counts: Counts::default(),
        })
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of buckets of the table.
    pub fn buckets(&self) -> u32 {
        self.watched.table.buckets
    }

    pub(super) fn run(&self, start: u32, end: u32) -> Result<Context, SysError> {
        self.watched.run(self.context(start, end))
    }

    fn context(&self, start: u32, end: u32) -> Context {
        self.watched.context([start, end, self.out.free_region()], self.at_once)
    }

    /// Calls the program once. Returns the block that it wrote, if the table is still the same.
    fn call(&mut self, end: u32) -> Result<Option<WrittenBlock>, SysError> {
        let context = self.run(self.next, end)?;
        let (next, ended) = (context.get(Context::NEXT), context.get(Context::ENDED));
        let counted = |at| u64::from(context.get(at));
        self.counts.restarts += counted(Context::RESTARTS);
        if let Some(found) = self.watched.check(&context, self.out.free_region())? {
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
        let (region, filled) = (self.out.free_region(), context.get(Context::FILLED) as usize);
        Ok((filled > HEAD_BYTES).then_some(WrittenBlock { from, region, filled }))
    }

    fn completed_position(&self) -> TablePosition {
        TablePosition { bucket: self.next, of: self.watched.table.buckets }
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
        let start = self.next;
        let (program, regions) = self.walk.portion_program(self.host).map_err(failed_for)?;
        let (mut left, mut blocks) = (Vec::from(Portion::ALL.split().map_err(walk_error)?), Vec::new());
        let mut met = Counts::default();
        while let Some(portion) = left.pop() {
            let mut context = self.context(start, start.saturating_add(8));
            portion.put(&mut context.0, Context::PORTION);
            let context = run_with(program, context)?;
            let (next, ended) = (context.get(Context::NEXT), context.get(Context::ENDED));
            self.counts.restarts += u64::from(context.get(Context::RESTARTS));
            if let Some(found) = self.watched.check(&context, self.out.free_region())? {
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
                    blocks.push(block_of(regions, self.out.free_region(), filled).to_vec());
                }
            }
        }
        self.counts.nodes += met.nodes;
        self.counts.gone += met.gone;
        self.counts.longest = self.counts.longest.max(met.longest);
        self.note_portions(blocks);
        (self.next, self.contended) = (start.saturating_add(8), 0);
        Ok(())
    }

    /// Records blocks as handed out, without the rows that were handed out before.
    fn note_portions(&mut self, mut blocks: Vec<Vec<u8>>) {
        blocks.retain(|block| block.len() > HEAD_BYTES);
        let from = self.completed_position();
        if self.out.end_after(from).is_none() {
            self.out.add_portions(from, &blocks);
            self.portions.append(&mut blocks);
        }
        for block in blocks {
            let mut new = Vec::new();
            if self.out.add_new_rows(&block, &mut new) {
                self.portions.push(new);
            }
        }
    }

    /// Continues in a larger or smaller table, at the same fraction of it. If that position is within a bucket, or
    /// within a group of eight, rows that were handed out are read again; the newest block identifies them.
    fn continue_in(&mut self, new: CtTable) -> Result<(), SysError> {
        self.counts.resizes += 1;
        if new == self.watched.table && self.count_stalled_call().is_err() {
            // One of the variables changes all the time for some other reason, so they are useless.
            self.watched.forget_variables();
            self.contended = 0;
        }
        let done = self.completed_position();
        let known = self.out.begin_resized(done);
        self.watched.table = new;
        self.next = done.in_table(new.buckets) & !7;
        // Positions further back than the newest block are lost, because unknown rows may be missing.
        let lost = self.completed_position().is_before(known) || self.watched.is_unproved;
        if lost { Err(walk_error(Errno::AGAIN)) } else { Ok(()) }
    }
}

impl Blocks for ConntrackReading<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        loop {
            if let Some(block) = self.portions.pop() {
                self.passed = block;
                return Ok(Some(&self.passed));
            }
            let buckets = self.watched.table.buckets;
            if self.next >= buckets {
                break;
            }
            let out_until = self.out.end_after(self.completed_position());
            let end = match out_until {
                Some(until) => (until.in_table(buckets) + 8) & !7,
                None => self.next.saturating_add(BUCKETS_A_CALL),
            };
            let Some(block) = self.call(end)? else { continue };
            if out_until.is_none() {
                return Ok(Some(self.out.add(block)));
            }
            let bytes = self.out.block(block);
            if self.out.add_new_rows(bytes, &mut self.passed) {
                return Ok(Some(&self.passed));
            }
        }
        self.walk.whole.set(Some(self.counts).filter(|counts| counts.resizes == 0));
        Ok(None)
    }
}
