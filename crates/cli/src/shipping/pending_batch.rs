//! The messages that an output has not been given yet.

use crate::service::RunState;
use export::{Batch, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The memory of a batch that had so many bytes is given back once no such batch came for some time.
const WORN_BYTES: usize = 64 << 10;
const CALM: Duration = Duration::from_millis(500);

/// A batch that is being filled, and the output that it is for.
pub(crate) struct PendingBatch {
    pub(super) batch: Batch,
    pub(super) output: Output,
    /// When a batch with much of its memory in use was last handed over; `None` if none was since memory was given
    /// back.
    worn_at: Option<Instant>,
    /// Rows of which no message is made, not counted yet.
    pub(super) folded: u64,
    pub(super) limited: u64,
    /// Rows that are kept to stand for others, and how many of them the output knows of.
    pub(super) held: u64,
    told_held: u64,
    run: Arc<RunState>,
}

impl PendingBatch {
    /// An empty batch for `output`.
    pub(super) fn new(output: Output, run: &Arc<RunState>) -> PendingBatch {
        let (batch, run) = (Batch::new(), Arc::clone(run));
        PendingBatch { batch, output, worn_at: None, folded: 0, limited: 0, held: 0, told_held: 0, run }
    }

    /// Ends the message that was appended to the batch, which is of this class. Hands a full batch over.
    #[inline]
    pub(super) fn end_message(&mut self, class: u16) {
        self.batch.set_class(class);
        self.batch.end_message();
        if self.batch.is_full() {
            self.push();
        }
    }

    /// Hands the messages over, and counts the rows of which none is made.
    pub(super) fn push(&mut self) {
        if !self.batch.is_empty() {
            let full = std::mem::take(&mut self.batch);
            if full.bytes().len() >= WORN_BYTES {
                self.worn_at = Some(Instant::now());
            }
            let is_over = || {
                self.run.wait_turn();
                sys::signal::is_requested() || self.run.is_handing_over()
            };
            self.batch = self.output.push(full, &is_over);
        } else if self.worn_at.is_some_and(|worn| worn.elapsed() >= CALM) {
            self.worn_at = None;
            self.batch = Batch::default();
            sys::memory::trim();
            self.batch = Batch::new();
        }
        if self.folded + self.limited > 0 || self.held != self.told_held {
            let (folded, limited) = (std::mem::take(&mut self.folded), std::mem::take(&mut self.limited));
            self.output.note_unsent(folded, limited, self.held);
            self.told_held = self.held;
        }
    }
}
