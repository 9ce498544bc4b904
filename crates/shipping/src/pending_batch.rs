//! Collects messages until they are handed to an output.

use export::{Batch, Output};
use runtime::run_state::RunState;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Memory is freed after a batch of at least this many bytes, once no such batch was pushed for [`CALM`].
const WORN_BYTES: usize = 64 << 10;
const CALM: Duration = Duration::from_millis(500);

/// A batch that is being filled, and its output.
pub struct PendingBatch {
    pub(super) batch: Batch,
    pub(super) output: Output,
    /// When a batch that used much of its memory was last handed over; `None` if that has not happened since memory
    /// was freed.
    worn_at: Option<Instant>,
    /// Number of rows without a message, not yet counted.
    pub(super) folded: u64,
    pub(super) limited: u64,
    /// Number of rows kept to stand for others, and the number last reported to the output.
    pub(super) held: u64,
    told_held: u64,
    /// Rows for which the format has no place.
    pub(super) left_out: u64,
    run: Arc<RunState>,
}

impl PendingBatch {
    /// Makes an empty batch for `output`.
    pub(super) fn new(output: Output, run: &Arc<RunState>) -> PendingBatch {
        let (batch, run) = (Batch::new(), Arc::clone(run));
        PendingBatch { batch, output, worn_at: None, folded: 0, limited: 0, held: 0, told_held: 0, left_out: 0, run }
    }

    /// Ends the current message and assigns it to `class`. Hands over a full batch.
    #[inline]
    pub(super) fn end_message(&mut self, class: u16) {
        self.batch.set_class(class);
        self.batch.end_message();
        if self.batch.is_full() {
            self.push();
        }
    }

    /// Hands over the messages, and counts the rows without a message.
    pub(super) fn push(&mut self) {
        if !self.batch.is_empty() {
            let full = std::mem::take(&mut self.batch);
            if full.bytes().len() >= WORN_BYTES {
                self.worn_at = Some(Instant::now());
            }
            let is_over = || {
                self.run.count_waiting_turn();
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
