//! One receiver of messages: a store, a thread that delivers, and the counts.

use crate::backoff::Backoff;
use crate::in_flight::InFlight;
use crate::{Batch, Ledger, Pushed, Store, Transport, WhenFull};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often confirmations are asked for while nothing is sent.
const CONFIRM_EVERY: Duration = Duration::from_millis(20);
/// How often a connection without messages is looked at: a receiver that went away is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(500);

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

/// What is to be said of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The counts.
    pub ledger: Ledger,
    /// Bytes that wait.
    pub waiting_bytes: u64,
    /// True if the last attempt to open or to write worked.
    pub is_open: bool,
    /// The last fault, if one was there.
    pub last_error: Option<String>,
    /// How often opening or writing has failed.
    pub failures: u64,
    /// What hinders the store just now, if something does.
    pub store_trouble: Option<String>,
}

/// Messages for one receiver.
pub struct Output {
    shared: Arc<OutputShared>,
    when_full: WhenFull,
    drain: Duration,
    thread: Option<JoinHandle<()>>,
}

/// What both threads know.
struct OutputShared {
    state: Mutex<OutputState>,
    /// Something to do for the thread that delivers.
    work: Condvar,
    /// Room for whoever hands messages over.
    room: Condvar,
}

struct OutputState {
    store: Box<dyn Store>,
    ledger: Ledger,
    /// Messages below are being delivered, or were.
    held: u64,
    is_open: bool,
    last_error: Option<String>,
    failures: u64,
    /// When the thread is to end at the latest; `None` while the output is in use.
    deadline: Option<Instant>,
    reopen: bool,
}

impl OutputShared {
    /// A panic of the other thread leaves counts that are whole: they are changed in one step each.
    fn lock(&self) -> MutexGuard<'_, OutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputState {
    /// Counts what the store has given up, and gives it the counts to keep.
    fn settle(&mut self) {
        let dropped = self.store.take_drops();
        self.ledger.dropped.add(&dropped);
        let ledger = self.ledger;
        if let Err(error) = self.store.checkpoint(&ledger) {
            self.last_error = Some(format!("cannot keep counts: {error}"));
        }
    }
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
        let ledger = store.ledger();
        let (held, delivered_bytes_max) = (store.begin(), store.delivered_bytes_max());
        let state = OutputState {
            store,
            ledger,
            held,
            is_open: false,
            last_error: None,
            failures: 0,
            deadline: None,
            reopen: false,
        };
        let shared = Arc::new(OutputShared { state: Mutex::new(state), work: Condvar::new(), room: Condvar::new() });
        let sender = Sender {
            shared: Arc::clone(&shared),
            transport,
            is_open: false,
            in_flight: InFlight::default(),
            current: None,
            next: held,
            backoff: Backoff::default(),
            refused: 0,
            looked: None,
            delivered_bytes_max,
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || sender.run())?;
        Ok(Output { shared, when_full: options.when_full, drain: options.drain, thread: Some(thread) })
    }

    /// Hands a batch over; never waits for the receiver unless told to ([`WhenFull::Block`]), and then only as long as
    /// `stop` is false. Returns an empty batch to be filled next, in memory that was used before where there is some.
    pub fn push(&self, batch: Batch, stop: &dyn Fn() -> bool) -> Batch {
        if batch.is_empty() {
            return batch;
        }
        let (mut batch, mut spare) = batch.compacted();
        let mut state = self.shared.lock();
        state.ledger.seen += batch.len();
        let mut until = None;
        loop {
            let held = state.held;
            match state.store.push(batch, self.when_full, held) {
                Pushed::Kept { dropped } => {
                    state.ledger.dropped.full += dropped;
                    break;
                }
                Pushed::Full { batch: back, .. }
                    if self.when_full == WhenFull::Block && !self.is_over(stop, &mut until) =>
                {
                    batch = back;
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
        let spare = spare.or_else(|| state.store.spare());
        drop(state);
        self.shared.work.notify_one();
        spare.unwrap_or_else(Batch::new)
    }

    /// True if whoever waits for room shall give up: once the run is to end, as long as the end may wait.
    fn is_over(&self, stop: &dyn Fn() -> bool, until: &mut Option<Instant>) -> bool {
        stop() && *until.get_or_insert_with(|| Instant::now() + self.drain) <= Instant::now()
    }

    /// Counts records of which no message is made: an earlier one stands for them, or there are too many.
    pub fn note_unsent(&self, folded: u64, limited: u64) {
        let ledger = &mut self.shared.lock().ledger;
        ledger.seen += folded + limited;
        ledger.folded += folded;
        ledger.limited += limited;
    }

    /// Has the receiver opened anew before the next message: a file that was rotated, a certificate that was renewed.
    pub fn reopen(&self) {
        self.shared.lock().reopen = true;
        self.shared.work.notify_one();
    }

    /// How it goes.
    pub fn status(&self) -> Status {
        status_of(&self.shared.lock())
    }

    /// Tells how it goes from any thread, also after the output has ended.
    pub fn monitor(&self) -> OutputMonitor {
        OutputMonitor(Arc::clone(&self.shared))
    }

    /// Lets the thread end once everything is delivered, at the latest when [`OutputOptions::drain`] is over: of
    /// several outputs each should be told before the first is waited for. Returns when that is.
    pub fn begin_end(&self) -> Instant {
        let deadline = *self.shared.lock().deadline.get_or_insert_with(|| Instant::now() + self.drain);
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
        if !state.store.is_kept() {
            state.ledger.dropped.end += state.ledger.waiting();
        }
        let ledger = state.ledger;
        if let Err(error) = state.store.sync(&ledger) {
            state.last_error = Some(format!("cannot keep messages: {error}"));
        }
        let dropped = state.store.take_drops();
        state.ledger.dropped.add(&dropped);
        status_of(&state)
    }
}

/// What tells how an output goes.
#[derive(Clone)]
pub struct OutputMonitor(Arc<OutputShared>);

impl OutputMonitor {
    /// How it goes.
    pub fn status(&self) -> Status {
        status_of(&self.0.lock())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.finish(&|| true);
        }
    }
}

fn status_of(state: &OutputState) -> Status {
    Status {
        ledger: state.ledger,
        waiting_bytes: state.store.bytes(),
        is_open: state.is_open,
        last_error: state.last_error.clone(),
        failures: state.failures,
        store_trouble: state.store.trouble(),
    }
}

/// The batch that is being handed to the transport.
struct Current {
    batch: Arc<Batch>,
    /// Bytes of it that were taken.
    at: usize,
}

/// The thread that delivers.
struct Sender {
    shared: Arc<OutputShared>,
    transport: Box<dyn Transport>,
    is_open: bool,
    in_flight: InFlight,
    current: Option<Current>,
    /// Number of the message behind the current batch.
    next: u64,
    backoff: Backoff,
    /// Messages that can never be sent, not counted yet.
    refused: u64,
    /// When it was looked whether the receiver is still there.
    looked: Option<Instant>,
    /// [`Store::delivered_bytes_max`].
    delivered_bytes_max: u64,
}

/// What the thread does next.
enum NextStep {
    /// Opens the receiver, writes, asks for confirmations.
    Work,
    /// Nothing to do for now.
    Wait(Duration),
    /// What waits cannot be read now: it is tried again later.
    Unreadable,
    End,
}

impl Sender {
    fn run(mut self) {
        loop {
            match self.step() {
                NextStep::End => break,
                NextStep::Wait(duration) => self.wait(duration),
                NextStep::Unreadable => self.pause(LOOK_EVERY),
                NextStep::Work => {
                    if let Err(error) = self.work() {
                        self.broken(&error);
                    }
                }
            }
        }
        self.transport.close();
        // Of what the receiver has, nothing is to be sent again by a later run.
        let (first, _) = self.in_flight.rewind(0);
        let mut state = self.shared.lock();
        let released = state.store.release(first.unwrap_or(self.next));
        state.settle();
        if let Err(error) = released {
            state.last_error = Some(error.to_string());
        }
    }

    /// Takes the next batch, if one waits, and says what is to be done.
    fn step(&mut self) -> NextStep {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if std::mem::take(&mut state.reopen) && self.is_open {
            self.transport.close();
            self.is_open = false;
        }
        let mut is_unreadable = false;
        if self.current.is_none() {
            match state.store.get(self.next) {
                Ok(Some(batch)) => self.take(&mut state, batch),
                Ok(None) => {
                    // The last ones may have been given up: new ones come behind them.
                    self.next = state.store.end();
                    state.held = self.next;
                }
                Err(error) => {
                    state.last_error = Some(format!("cannot read stored messages: {error}"));
                    is_unreadable = true;
                }
            }
        }
        state.settle();
        let unconfirmed = self.in_flight.unconfirmed() > 0;
        let is_done = self.current.is_none() && !unconfirmed;
        match state.deadline {
            Some(deadline) if is_done || deadline <= Instant::now() => NextStep::End,
            // A store that outlives the program keeps what an absent receiver does not take.
            Some(_) if state.store.is_kept() && !self.is_open && state.failures > 0 => NextStep::End,
            _ if self.current.is_some() || unconfirmed => NextStep::Work,
            _ if is_unreadable => NextStep::Unreadable,
            // Opened before there is something to deliver: what is wrong with a receiver shows at once.
            None if !self.is_open => NextStep::Work,
            _ => NextStep::Wait(LOOK_EVERY),
        }
    }

    fn take(&mut self, state: &mut OutputState, batch: Arc<Batch>) {
        // Messages before `next` were delivered by an earlier connection.
        let skipped = usize::try_from(self.next.saturating_sub(batch.first())).unwrap_or(0);
        let at = batch.start_of(skipped);
        self.next = batch.end();
        state.held = self.next;
        self.in_flight.begin(Arc::clone(&batch), skipped);
        self.current = Some(Current { batch, at });
    }

    fn wait(&mut self, duration: Duration) {
        self.sleep(duration);
        if let Err(error) = self.look() {
            self.broken(&error);
        }
    }

    /// Sleeps until something new is to be done.
    fn sleep(&self, duration: Duration) {
        let state = self.shared.lock();
        if state.deadline.is_none() && !state.reopen && state.store.end() == self.next {
            let _ = self.shared.work.wait_timeout(state, duration);
        }
    }

    /// Waits, whatever there is to do, unless the end has come.
    fn pause(&self, duration: Duration) {
        let state = self.shared.lock();
        if state.deadline.is_none() {
            let _ = self.shared.work.wait_timeout(state, duration);
        }
    }

    /// Looks now and then whether the receiver is still there.
    fn look(&mut self) -> io::Result<()> {
        if !self.is_open || self.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        self.transport.check()
    }

    fn work(&mut self) -> io::Result<()> {
        if !self.is_open {
            self.transport.open()?;
            self.is_open = true;
            let mut state = self.shared.lock();
            (state.is_open, state.last_error) = (true, None);
            // What it would send now is counted already as not delivered.
            if state.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(());
            }
        }
        if let Some(current) = &mut self.current {
            let taken = self.transport.send(&current.batch, current.at)?;
            current.at += taken.bytes;
            self.in_flight.sent(taken.bytes);
            self.refused += taken.refused;
            if taken.refused > 0 {
                let complaint = self.transport.complaint();
                let mut state = self.shared.lock();
                state.last_error = complaint.or(state.last_error.take());
            }
            if current.at >= current.batch.bytes().len() {
                self.current = None;
            }
        } else if self.in_flight.unconfirmed() > 0 {
            self.sleep(CONFIRM_EVERY);
        }
        self.confirm()?;
        self.look()
    }

    /// Counts what the receiver has confirmed, and lets go of what cannot be asked for again.
    fn confirm(&mut self) -> io::Result<()> {
        let unconfirmed = self.transport.unconfirmed()?;
        let newly = self.in_flight.confirm(unconfirmed);
        let needed_no_more = self.in_flight.forget(self.transport.unread_max().min(self.delivered_bytes_max));
        if newly == 0 && needed_no_more.is_none() {
            return Ok(());
        }
        self.backoff.reset();
        // What can never be sent was stepped over, and is among what is confirmed now.
        let refused = std::mem::take(&mut self.refused).min(newly);
        let mut state = self.shared.lock();
        state.ledger.delivered += newly - refused;
        state.ledger.dropped.refused += refused;
        if let Some(number) = needed_no_more {
            state.store.release(number)?;
            state.settle();
            self.shared.room.notify_one();
        }
        Ok(())
    }

    /// The receiver is away: what it may not have goes out again once it is back.
    fn broken(&mut self, error: &io::Error) {
        // What was acknowledged until now counts.
        let confirmed = self.transport.unconfirmed().map_or(0, |bytes| self.in_flight.confirm(bytes));
        let unread = self.transport.unread_after(error).min(self.delivered_bytes_max);
        self.transport.close();
        self.is_open = false;
        let (again, doubtful) = self.in_flight.rewind(unread);
        self.current = None;
        if let Some(number) = again {
            self.next = number;
        }
        let mut state = self.shared.lock();
        state.ledger.delivered = (state.ledger.delivered + confirmed).saturating_sub(doubtful);
        state.ledger.resent += doubtful;
        state.is_open = false;
        state.failures += 1;
        state.last_error = Some(error.to_string());
        let until = Instant::now() + self.backoff.next();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let is_over = state.deadline.is_some_and(|deadline| deadline <= Instant::now());
            if left.is_zero() || is_over {
                return;
            }
            let left = left.min(Duration::from_millis(50));
            state = self.shared.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
