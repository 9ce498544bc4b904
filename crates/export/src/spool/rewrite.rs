//! Rewriting a file without some of its messages. The remaining ones are joined into large batches and numbered
//! consecutively from the first one; numbers after them become a gap.

use super::frame::{self, Head};
use super::segment::{self, Segment, SegmentOrigin};
use crate::Batch;
use crate::classes::ClassBytes;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Size in bytes of the batches in a rewritten file.
const BATCH_BYTES: usize = 256 << 10;

/// For each class, how many bytes of messages in a file stay first, and how many bytes are removed after them.
#[derive(Debug)]
pub(super) struct RemovalPlan {
    by_class: HashMap<u16, (u64, u64)>,
    /// Bytes to remove.
    pub(super) bytes: u64,
    /// True if messages of every class in the file are removed.
    pub(super) is_of_all: bool,
}

impl RemovalPlan {
    /// Computes what classes with an `excess` give up in a file with `classes`: their oldest or their newest messages
    /// there.
    pub(super) fn new(classes: &ClassBytes, excess: &HashMap<u16, u64>, newest: bool) -> RemovalPlan {
        let mut plan = RemovalPlan { by_class: HashMap::new(), bytes: 0, is_of_all: false };
        let mut known = 0;
        for (class, bytes) in classes.iter() {
            let Some(excess) = excess.get(&class) else { continue };
            let goes = bytes.min(*excess);
            plan.by_class.insert(class, (if newest { bytes - goes } else { 0 }, goes));
            plan.bytes += goes;
            known += bytes;
        }
        plan.is_of_all = known == classes.total();
        plan
    }

    /// Returns true if the next message of the class, which has `bytes` bytes, is removed.
    fn take_message(&mut self, class: u16, bytes: usize) -> bool {
        let Some((stays, goes)) = self.by_class.get_mut(&class) else { return false };
        let bytes = bytes as u64;
        if *stays >= bytes {
            *stays -= bytes;
            // Empty messages stay here, even if others are removed.
            return false;
        }
        // A message across the border is removed, so at least one goes.
        *stays = 0;
        let takes = *goes > 0;
        *goes = goes.saturating_sub(bytes);
        takes
    }
}

/// A file that is being written.
pub(super) struct Rewriter {
    file: File,
    segment: Segment,
    pending: Batch,
    /// When the messages in `pending` were stored: the stamps of its first and of its last batch.
    stamps: (u64, u64),
    /// Batches stored at least this far apart, in ns, are not joined: a joined batch expires with its newest message.
    apart_max: u64,
    head: Vec<u8>,
    /// Ranges of message numbers in the file.
    kept: Vec<(u64, u64)>,
    /// Number of removed messages.
    gone: u64,
}

/// A file that was rewritten.
pub(super) struct RewrittenFile {
    pub(super) file: File,
    pub(super) segment: Segment,
    pub(super) kept: Vec<(u64, u64)>,
    pub(super) gone: u64,
}

impl Rewriter {
    /// Begins a file that covers the messages `first..until`.
    pub(super) fn new(file: File, first: u64, until: u64, apart_max: u64) -> io::Result<Rewriter> {
        file.write_all_at(&segment::header(first, SegmentOrigin::Rewritten { until }), 0)?;
        Ok(Rewriter {
            file,
            segment: Segment::new(first, 0),
            pending: Batch::default(),
            stamps: (0, 0),
            apart_max,
            head: Vec::new(),
            kept: Vec::new(),
            gone: 0,
        })
    }

    /// Adds the remaining messages of a batch from another file.
    pub(super) fn add(&mut self, head: &Head, batch: &Batch, plan: Option<&mut RemovalPlan>) -> io::Result<()> {
        let is_far = head.stamp.saturating_sub(self.stamps.0) >= self.apart_max;
        if is_far || self.pending.bytes().len() >= BATCH_BYTES {
            self.flush()?;
        }
        if self.pending.is_empty() {
            self.stamps.0 = head.stamp;
        }
        self.stamps.1 = head.stamp;
        let Some(plan) = plan else {
            batch.runs_by_class().for_each(|(class, messages)| self.append_run(batch, class, messages));
            return Ok(());
        };
        for (class, messages) in batch.runs_by_class() {
            if !plan.by_class.contains_key(&class) {
                self.append_run(batch, class, messages);
                continue;
            }
            for at in messages {
                if plan.take_message(class, batch.message(at).map_or(0, <[u8]>::len)) {
                    self.gone += 1;
                } else {
                    self.append_run(batch, class, at..at + 1);
                }
            }
        }
        Ok(())
    }

    fn append_run(&mut self, batch: &Batch, class: u16, messages: std::ops::Range<usize>) {
        if self.pending.is_empty() {
            self.pending.number_from(batch.first_number() + messages.start as u64);
        }
        self.pending.append(batch, class, messages);
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (batch, stamp) = (std::mem::take(&mut self.pending), self.stamps.1);
        frame::encode(&batch, stamp, &mut self.head);
        frame::write_completely(&self.file, [&self.head, batch.bytes()], self.segment.len)?;
        let size = (self.head.len() + batch.bytes().len()) as u64;
        self.segment.note_batch(&batch, stamp, size);
        self.kept.push((batch.first_number(), batch.end()));
        self.pending = batch.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<RewrittenFile> {
        self.flush()?;
        Ok(RewrittenFile { file: self.file, segment: self.segment, kept: self.kept, gone: self.gone })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_gives_its_oldest_messages_or_its_newest() {
        let mut classes = ClassBytes::default();
        [(1, 50), (2, 20)].into_iter().for_each(|(class, bytes)| classes.add(class, bytes));
        let excess = HashMap::from([(1, 30)]);
        let goes = |newest| {
            let mut plan = RemovalPlan::new(&classes, &excess, newest);
            assert_eq!((plan.bytes, plan.is_of_all, plan.take_message(2, 20)), (30, false, false));
            [1; 5].map(|class| plan.take_message(class, 10))
        };
        assert_eq!(goes(false), [true, true, true, false, false]);
        assert_eq!(goes(true), [false, false, true, true, true]);
        let excess = HashMap::from([(1, 1)]);
        for newest in [false, true] {
            let mut plan = RemovalPlan::new(&classes, &excess, newest);
            let gone = [1; 5].map(|class| plan.take_message(class, 10)).iter().filter(|goes| **goes).count();
            assert_eq!(gone, 1, "less than a message is a message");
        }
    }
}
