//! Packets of several files, one file after the other.

use super::error::FileError;
use super::reader::{PacketFile, SkippedRecords, UnreadFile};
use super::stream::FilePackets;
use record::rows::CapturedPackets;
use record::{Accounting, Demand, Each, Offer, SourceError, Stream, StreamState};
use std::collections::VecDeque;

/// The packets of several files. Files that cannot be opened or are not packet files are skipped and reported.
pub struct FilesInTurn<'f, 'h> {
    file: FilePackets<'h>,
    others: VecDeque<Result<UnreadFile, FileError>>,
    packets: &'f dyn Fn(PacketFile) -> FilePackets<'h>,
    stop: &'f dyn Fn() -> bool,
    /// Counts of the previous files.
    stats: Accounting,
}

impl<'f, 'h> FilesInTurn<'f, 'h> {
    /// The packets of `file`, then of `others`, which `packets` makes rows of. `stop` returns true to end the run.
    pub fn new(
        file: PacketFile,
        others: VecDeque<Result<UnreadFile, FileError>>,
        packets: &'f dyn Fn(PacketFile) -> FilePackets<'h>,
        stop: &'f dyn Fn() -> bool,
    ) -> FilesInTurn<'f, 'h> {
        FilesInTurn { file: packets(file), others, packets, stop, stats: Accounting::default() }
    }

    /// The number of packets with comments in the current file, and the records that were skipped there.
    pub fn left_out(&self) -> (u64, SkippedRecords) {
        self.file.left_out()
    }

    /// Opens the next file; false if there are no more.
    fn open_next(&mut self) -> bool {
        while let Some(opened) = self.others.pop_front() {
            match opened.and_then(UnreadFile::read) {
                Ok(file) => {
                    let before = std::mem::replace(&mut self.file, (self.packets)(file)).close();
                    self.stats.add(&before);
                    return true;
                }
                Err(error) => {
                    self.stats.incomplete(0, error.to_string());
                }
            }
        }
        false
    }
}

impl Stream<CapturedPackets> for FilesInTurn<'_, '_> {
    fn offer(&self, demand: &Demand<CapturedPackets>) -> Offer {
        let mut offer = self.file.offer(demand);
        if !self.others.is_empty() {
            offer.explain.push(format!("then packets of {} more files", self.others.len()));
        }
        offer
    }

    fn next(
        &mut self,
        demand: &Demand<CapturedPackets>,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Result<StreamState, SourceError> {
        match self.file.next(demand, each)? {
            StreamState::Ended if !(self.stop)() && self.open_next() => Ok(StreamState::Open),
            state => Ok(state),
        }
    }

    fn close(&mut self) -> Accounting {
        let mut stats = std::mem::take(&mut self.stats);
        stats.add(&self.file.close());
        stats
    }
}
