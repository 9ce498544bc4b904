//! An output: a store, a thread that delivers from it to one receiver, and the counts.

use crate::delivery::{Delivery, OutputShared, OutputState, run};
use crate::notices::{NoticeHandler, Notices};
use crate::status::Status;
use crate::{Batch, DirectDelivery, PushOutcome, Store, Transport, WhenFull};
use std::io;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How much longer the end waits for the thread after its deadline.
///
/// Bound: at the end, in addition to `--drain`, for the thread of an output. Beyond: the thread is abandoned. By: a
/// receiver.
const GRACE: Duration = Duration::from_millis(500);

/// The options of an output.
#[derive(Debug, Clone, Copy)]
pub struct OutputOptions {
    /// What to do with new messages while the store is full.
    pub when_full: WhenFull,
    /// How long [`Output::finish`] waits for the receiver to take the waiting messages.
    pub drain: Duration,
}

/// Messages for one receiver.
pub struct Output {
    shared: Arc<OutputShared>,
    when_full: WhenFull,
    drain: Duration,
    /// After a stop request: the time at which all batches stop waiting for room.
    give_up: OnceLock<Instant>,
    /// True if no other work waits while this output is written to.
    is_alone: bool,
    thread: Option<JoinHandle<()>>,
}

impl Output {
    /// Starts the thread, called `name`, which delivers from `store` via `transport`. The thread opens the transport,
    /// so an absent receiver is not an error here.
    pub fn start(
        name: &str,
        store: Box<dyn Store>,
        transport: Box<dyn Transport>,
        options: OutputOptions,
    ) -> io::Result<Output> {
        Output::start_telling(name, store, transport, options, Box::new(|_| ()))
    }

    /// Starts the thread like [`Output::start`]; the thread passes urgent notices to `tell`.
    pub fn start_telling(
        name: &str,
        mut store: Box<dyn Store>,
        mut transport: Box<dyn Transport>,
        options: OutputOptions,
        tell: NoticeHandler,
    ) -> io::Result<Output> {
        // Messages that an earlier run sent without an answer are sent together again: none may be dropped.
        let together = store.note().and_then(|note| transport.resume(note));
        if let Some(together) = &together {
            store.release(together.start)?;
        }
        let (ledger, delivered_bytes_max) = (store.ledger(), store.delivered_bytes_max());
        let notices = Notices::new(tell, ledger.dropped);
        let mut state = OutputState::new(store, ledger);
        let delivery = Delivery::new(transport, state.held, delivered_bytes_max);
        state.held = together.map_or(state.held, |together| together.end.max(state.held).min(state.store.end()));
        let shared = Arc::new(OutputShared::new(delivery, state));
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || run(&of_thread, notices))?;
        let OutputOptions { when_full, drain } = options;
        Ok(Output { shared, when_full, drain, give_up: OnceLock::new(), is_alone: false, thread: Some(thread) })
    }

    /// Sets whether no other work waits while this output is written to. If so, [`Output::push`] itself writes to the
    /// file.
    pub fn set_alone(&mut self, is_alone: bool) {
        self.is_alone = is_alone;
    }

    /// Hands a batch over, and delivers it if no earlier messages wait and the receiver takes it now: the data is
    /// still in the processor's cache, and no thread needs to wake up. Waits for the receiver only with
    /// [`WhenFull::Block`] and while `stop` is false; a write to a file takes as long as the file system needs.
    /// Returns an empty batch to fill next, in reused memory if there is some.
    pub fn push(&self, batch: Batch, stop: &dyn Fn() -> bool) -> Batch {
        if batch.is_empty() {
            return batch;
        }
        let mut state = self.shared.lock();
        // If batches are delivered at once and none is kept after that, memory is held only briefly.
        let is_brief = state.is_prompt && state.store.begin() == state.store.end();
        let (mut batch, mut spare) = if is_brief { (batch, None) } else { batch.compact() };
        state.ledger.seen += batch.len();
        loop {
            let held = state.held;
            match state.store.push(batch, self.when_full, held) {
                PushOutcome::Kept { dropped } => {
                    state.ledger.dropped.full += dropped;
                    break;
                }
                PushOutcome::Full { batch: back, .. } if self.when_full == WhenFull::Block && !self.is_over(stop) => {
                    batch = back;
                    state.is_waited_for = true;
                    let waited = self.shared.room.wait_timeout(state, Duration::from_millis(100));
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                PushOutcome::Full { batch, dropped } => {
                    state.ledger.dropped.full += batch.len() + dropped;
                    spare = Some(batch.clear());
                    break;
                }
            }
        }
        state.pass_counts();
        drop(state);
        let mut state = self.deliver_or_leave();
        spare.or_else(|| state.store.take_spare()).unwrap_or_else(Batch::new)
    }

    /// Delivers the queue on this thread if that is allowed and quick; otherwise the output's thread does.
    fn deliver_or_leave(&self) -> MutexGuard<'_, OutputState> {
        let allowed = if self.is_alone { DirectDelivery::MayWait } else { DirectDelivery::WithoutWait };
        let is_prompt = self.shared.deliver_at_once(allowed);
        let mut state = self.shared.lock();
        state.is_prompt = is_prompt;
        if !is_prompt {
            state.is_left = true;
            self.shared.work.notify_one();
        }
        state
    }

    /// True if the wait for room must end: the run is stopping, and the drain time has passed.
    fn is_over(&self, stop: &dyn Fn() -> bool) -> bool {
        stop() && *self.give_up.get_or_init(|| Instant::now() + self.drain) <= Instant::now()
    }

    /// Counts records that become no message: an earlier one stands for them, or they are above the rate. `held`
    /// records are now kept to stand for others. If messages survive a kill, these counts do as well.
    pub fn note_unsent(&self, folded: u64, limited: u64, held: u64) {
        let mut state = self.shared.lock();
        state.ledger.seen += folded + limited;
        state.ledger.folded += folded;
        state.ledger.limited += limited;
        state.ledger.held = held;
        state.pass_counts();
    }

    /// Reopens the receiver before the next message, for example after a file was rotated or a certificate renewed.
    pub fn reopen(&self) {
        self.shared.lock().reopen = true;
        self.shared.work.notify_one();
    }

    /// Returns the counts and faults.
    pub fn status(&self) -> Status {
        self.shared.lock().status()
    }

    /// Returns a handle that reads the status from any thread, even after the output has ended.
    pub fn new_monitor(&self) -> OutputMonitor {
        OutputMonitor(Arc::clone(&self.shared))
    }

    /// Asks the thread to end once everything is delivered, or after [`OutputOptions::drain`]. With several outputs,
    /// call this on each before waiting for the first. Returns the deadline.
    pub fn begin_end(&self) -> Instant {
        let drained = || self.give_up.get().copied().unwrap_or_else(|| Instant::now() + self.drain);
        let deadline = *self.shared.lock().deadline.get_or_insert_with(drained);
        self.shared.work.notify_one();
        deadline
    }

    /// Waits until everything is delivered, at most for [`OutputOptions::drain`] and only while `stop` is false, and
    /// ends the thread. Messages still undelivered are dropped and counted, unless the store keeps them.
    pub fn finish(&mut self, stop: &dyn Fn() -> bool) -> Status {
        let mut deadline = self.begin_end();
        if let Some(thread) = self.thread.take() {
            // A thread that resolves an address or connects cannot be interrupted: leave it alone after the deadline.
            while !thread.is_finished() && Instant::now() < deadline + GRACE {
                if stop() && Instant::now() < deadline {
                    deadline = Instant::now();
                    self.shared.lock().deadline = Some(deadline);
                    self.shared.work.notify_one();
                }
                thread::park_timeout(Duration::from_millis(5));
            }
        }
        let mut state = self.shared.lock();
        // If this output leaves a run that goes on, the held records will never be sent: count them as dropped.
        let held = std::mem::take(&mut state.ledger.held);
        state.ledger.seen += held;
        state.ledger.dropped.end += held;
        if !state.store.is_persistent() {
            state.ledger.dropped.end += state.ledger.waiting_records();
        }
        let ledger = state.ledger;
        if let Err(error) = state.store.sync(&ledger) {
            state.last_error = Some(format!("cannot store messages: {error}"));
        }
        let dropped = state.store.take_drops();
        state.ledger.dropped.add(&dropped);
        state.status()
    }
}

/// A handle that reads the status of an output.
#[derive(Clone)]
pub struct OutputMonitor(Arc<OutputShared>);

impl OutputMonitor {
    /// Returns the counts and faults.
    pub fn status(&self) -> Status {
        self.0.lock().status()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.finish(&|| true);
        }
    }
}
