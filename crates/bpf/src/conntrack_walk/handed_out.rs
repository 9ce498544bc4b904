//! The rows that a reading has handed out: if the table is resized, none of them is repeated and no other is lost.
use std::collections::HashSet;

use sys::bpf::MappedMemory;

use super::position::TablePosition;
use super::rows::{HEAD_BYTES, identifying_bytes, rows};

/// Blocks shorter than this are not enough to recognize rows that were handed out: they are kept together.
const RECENT_BYTES: usize = 128 << 10;

/// A block that a call wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenBlock {
    /// Position in the table where the block begins.
    pub(super) from: TablePosition,
    pub(super) region: u32,
    /// Number of bytes in the block.
    pub(super) filled: usize,
}

/// The latest rows that were handed out.
#[derive(Debug)]
pub(super) struct HandedOut<'w> {
    regions: &'w MappedMemory,
    /// Rows before this position may have been handed out if the table was resized: they are in the newest block, or
    /// in `recent`.
    until: TablePosition,
    newest: WrittenBlock,
    /// The newest block and the rows that followed it, if those were few or the table was resized; otherwise empty.
    recent: Vec<u8>,
}

impl<'w> HandedOut<'w> {
    pub(super) fn nothing(regions: &'w MappedMemory) -> HandedOut<'w> {
        let newest = WrittenBlock { from: TablePosition::NOTHING, region: 0, filled: 0 };
        HandedOut { regions, until: TablePosition::NOTHING, newest, recent: Vec::new() }
    }

    /// The region that the next call may write to: the other one has the newest block.
    pub(super) fn free_region(&self) -> u32 {
        self.newest.region ^ 1
    }

    /// The bytes of a block.
    pub(super) fn block(&self, block: WrittenBlock) -> &'w [u8] {
        block_of(self.regions, block.region, block.filled)
    }

    /// The end of the rows that may have been handed out, if it is after `position`.
    pub(super) fn end_after(&self, position: TablePosition) -> Option<TablePosition> {
        position.is_before(self.until).then_some(self.until)
    }

    fn keep_newest(&mut self) {
        if self.recent.is_empty() {
            self.recent = self.block(self.newest).to_vec();
        }
    }

    /// Records a block as handed out, and returns it.
    pub(super) fn add(&mut self, block: WrittenBlock) -> &'w [u8] {
        let bytes = self.block(block);
        if block.filled >= RECENT_BYTES || self.newest.filled == 0 {
            self.newest = block;
            self.recent.clear();
            return bytes;
        }
        self.keep_newest();
        self.recent.extend_from_slice(bytes.get(HEAD_BYTES..).unwrap_or_default());
        // There are enough of these rows: older ones can be discarded.
        if self.recent.len() > 8 * RECENT_BYTES {
            self.newest.from = block.from;
            self.recent.clear();
            self.recent.extend_from_slice(bytes);
        }
        self.newest.region = block.region;
        bytes
    }

    /// Records the blocks of a chain that was read in portions, which begins at `from`.
    pub(super) fn add_portions(&mut self, from: TablePosition, blocks: &[Vec<u8>]) {
        let Some((first, others)) = blocks.split_first() else { return };
        self.newest.from = from;
        self.recent.clone_from(first);
        others.iter().for_each(|block| self.recent.extend_from_slice(block.get(HEAD_BYTES..).unwrap_or_default()));
    }

    /// Records the rows of a block that have not been handed out, and stores them in `new`; true if there are any.
    pub(super) fn add_new_rows(&mut self, block: &[u8], new: &mut Vec<u8>) -> bool {
        let out: HashSet<Vec<u8>> = rows(&self.recent).map(|(row, at)| identifying_bytes(row, at)).collect();
        new.clear();
        new.extend_from_slice(block.get(..HEAD_BYTES).unwrap_or_default());
        for (row, _) in rows(block).filter(|(row, at)| !out.contains(&identifying_bytes(row, *at))) {
            new.extend_from_slice(row);
        }
        self.recent.extend_from_slice(new.get(HEAD_BYTES..).unwrap_or_default());
        new.len() > HEAD_BYTES
    }

    /// Prepares for another table: everything before `done` was handed out. Returns where the known rows begin: rows
    /// further back are unknown.
    pub(super) fn begin_resized(&mut self, done: TablePosition) -> TablePosition {
        if self.until.is_before(done) {
            self.until = done;
        }
        self.keep_newest();
        self.newest.from
    }
}

/// The block that a call wrote to a region.
pub(super) fn block_of(regions: &MappedMemory, region: u32, filled: usize) -> &[u8] {
    let bytes = regions.bytes();
    let size = bytes.len() / 2;
    bytes.get(size * region as usize..).and_then(|region| region.get(..filled)).unwrap_or_default()
}
