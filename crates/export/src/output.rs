//! One receiver of messages: a store, a thread that delivers, and the counts.

use crate::delivery::{Delivery, OutputShared, OutputState, run};
use crate::notices::{Notices, TellNotice};
use crate::status::Status;
use crate::{AtOnce, Batch, Pushed, Store, Transport, WhenFull};
use std::io;
use std::sync::{Arc, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How much longer the end waits for a thread that was told to end.
const GRACE: Duration = Duration::from_millis(500);

/// How an output behaves.
#[derive(Debug, Clone, Copy)]
pub struct OutputOptions {
    /// What is done with new messages while the store is full.
    pub when_full: WhenFull,
    /// How long [`Output::finish`] waits for the receiver to take what waits.
    pub drain: Duration,
}

/// Messages for one receiver.
pub struct Output {
    shared: Arc<OutputShared>,
    when_full: WhenFull,
    drain: Duration,
    /// After a stop request: the instant at which waiting for room ends, shared by all batches.
    give_up: OnceLock<Instant>,
    /// True if nothing else waits while this output is written to.
    is_alone: bool,
    thread: Option<JoinHandle<()>>,
}

impl Output {
    /// Starts the thread, called `name`, that delivers from `store` by `transport`. Opening is the thread's: a receiver
    /// that is away is no error.
    pub fn start(
        name: &str,
        store: Box<dyn Store>,
        transport: Box<dyn Transport>,
        options: OutputOptions,
    ) -> io::Result<Output> {
        Output::start_telling(name, store, transport, options, Box::new(|_| ()))
    }

    /// Starts the thread as [`Output::start`] does, which calls `tell` with what cannot wait for the end of the run.
    pub fn start_telling(
        name: &str,
        store: Box<dyn Store>,
        transport: Box<dyn Transport>,
        options: OutputOptions,
        tell: TellNotice,
    ) -> io::Result<Output> {
        let (ledger, delivered_bytes_max) = (store.ledger(), store.delivered_bytes_max());
        let notices = Notices::new(tell, ledger.dropped);
        let state = OutputState::new(store, ledger);
        let delivery = Delivery::new(transport, state.held, delivered_bytes_max);
        let shared = Arc::new(OutputShared::new(delivery, state));
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || run(&of_thread, notices))?;
        let OutputOptions { when_full, drain } = options;
        Ok(Output { shared, when_full, drain, give_up: OnceLock::new(), is_alone: false, thread: Some(thread) })
    }

    /// Whether nothing else waits while this output is written to: then [`Output::push`] writes to its file by itself.
    pub fn set_alone(&mut self, is_alone: bool) {
        self.is_alone = is_alone;
    }

    /// Hands a batch over, and delivers it if nothing else is to be delivered before and the receiver takes it now:
    /// what lies in the processor's cache is sent, and no thread wakes up. Never waits for the receiver unless told to
    /// ([`WhenFull::Block`]), and then only as long as `stop` is false; writing to a file takes as long as the file
    /// system wants. Returns an empty batch to be filled next, in memory that was used before where there is some.
    pub fn push(&self, batch: Batch, stop: &dyn Fn() -> bool) -> Batch {
        if batch.is_empty() {
            return batch;
        }
        let mut state = self.shared.lock();
        // Where batches go out at once, and none is kept after that, memory is not held for long.
        let is_brief = state.is_prompt && state.store.begin() == state.store.end();
        let (mut batch, mut spare) = if is_brief { (batch, None) } else { batch.compacted() };
        state.ledger.seen += batch.len();
        loop {
            let held = state.held;
            match state.store.push(batch, self.when_full, held) {
                Pushed::Kept { dropped } => {
                    state.ledger.dropped.full += dropped;
                    break;
                }
                Pushed::Full { batch: back, .. } if self.when_full == WhenFull::Block && !self.is_over(stop) => {
                    batch = back;
                    state.is_waited_for = true;
                    let waited = self.shared.room.wait_timeout(state, Duration::from_millis(100));
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Pushed::Full { batch, dropped } => {
                    state.ledger.dropped.full += batch.len() + dropped;
                    spare = Some(batch.emptied());
                    break;
                }
                Pushed::Failed { batch, error } => {
                    state.ledger.dropped.full += batch.len();
                    state.failures += 1;
                    state.last_error = Some(format!("cannot store messages: {error}"));
                    break;
                }
            }
        }
        state.settle();
        drop(state);
        let allowed = if self.is_alone { AtOnce::MayWait } else { AtOnce::WithoutWait };
        let is_prompt = self.shared.deliver_at_once(allowed);
        let mut state = self.shared.lock();
        state.is_prompt = is_prompt;
        if !is_prompt {
            state.is_left = true;
            self.shared.work.notify_one();
        }
        spare.or_else(|| state.store.spare()).unwrap_or_else(Batch::new)
    }

    /// True if whoever waits for room shall give up: once the run is to end, as long as the end may wait.
    fn is_over(&self, stop: &dyn Fn() -> bool) -> bool {
        stop() && *self.give_up.get_or_init(|| Instant::now() + self.drain) <= Instant::now()
    }

    /// Counts records of which no message is made: an earlier one stands for them, or there are too many. `held` are
    /// now kept to stand for others. Where messages survive a kill, so do these counts.
    pub fn note_unsent(&self, folded: u64, limited: u64, held: u64) {
        let mut state = self.shared.lock();
        state.ledger.seen += folded + limited;
        state.ledger.folded += folded;
        state.ledger.limited += limited;
        state.ledger.held = held;
        state.settle();
    }

    /// Has the receiver opened anew before the next message: a file that was rotated, a certificate that was renewed.
    pub fn reopen(&self) {
        self.shared.lock().reopen = true;
        self.shared.work.notify_one();
    }

    /// How it goes.
    pub fn status(&self) -> Status {
        self.shared.lock().status()
    }

    /// Tells how it goes from any thread, also after the output has ended.
    pub fn monitor(&self) -> OutputMonitor {
        OutputMonitor(Arc::clone(&self.shared))
    }

    /// Lets the thread end once everything is delivered, at the latest when [`OutputOptions::drain`] is over: of
    /// several outputs each should be told before the first is waited for. Returns when that is.
    pub fn begin_end(&self) -> Instant {
        let drained = || self.give_up.get().copied().unwrap_or_else(|| Instant::now() + self.drain);
        let deadline = *self.shared.lock().deadline.get_or_insert_with(drained);
        self.shared.work.notify_one();
        deadline
    }

    /// Waits until everything is delivered, at most as long as [`OutputOptions::drain`] says and only as long as
    /// `stop` is false, and ends the thread. What is not delivered by then is dropped and counted, unless the store
    /// keeps it.
    pub fn finish(&mut self, stop: &dyn Fn() -> bool) -> Status {
        let mut deadline = self.begin_end();
        if let Some(thread) = self.thread.take() {
            // One that asks for an address, or connects, takes as long as that takes: it is left alone then.
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
        // Nobody says any more what they stand for: the output was taken out of a run that goes on.
        let held = std::mem::take(&mut state.ledger.held);
        state.ledger.seen += held;
        state.ledger.dropped.end += held;
        if !state.store.is_kept() {
            state.ledger.dropped.end += state.ledger.waiting();
        }
        let ledger = state.ledger;
        if let Err(error) = state.store.sync(&ledger) {
            state.last_error = Some(format!("cannot keep messages: {error}"));
        }
        let dropped = state.store.take_drops();
        state.ledger.dropped.add(&dropped);
        state.status()
    }
}

/// What tells how an output goes.
#[derive(Clone)]
pub struct OutputMonitor(Arc<OutputShared>);

impl OutputMonitor {
    /// How it goes.
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
