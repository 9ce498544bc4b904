//! Delivery of an output's messages, by whichever thread comes to it.
//!
//! Each output has a thread ([`run`]) that opens the receiver, waits for it, and sees what becomes of it. While all
//! goes well it sleeps: who hands messages over delivers them as well.

use crate::backoff::Backoff;
use crate::in_flight::InFlight;
use crate::notices::Notices;
use crate::status::Status;
use crate::{AtOnce, Batch, Ledger, Store, Taken, Transport};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How often confirmations are asked for while nothing is sent.
const CONFIRM_EVERY: Duration = Duration::from_millis(20);
/// How often a connection without messages is looked at: a receiver that went away is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What both threads know. Who delivers takes the lock of `delivery` first, that of `state` behind it.
pub(crate) struct OutputShared {
    /// Held by whoever delivers: the output's own thread, or the one that hands messages over.
    delivery: Mutex<Delivery>,
    state: Mutex<OutputState>,
    /// Something to do for the thread that delivers.
    pub(crate) work: Condvar,
    /// Room for whoever hands messages over.
    pub(crate) room: Condvar,
}

pub(crate) struct OutputState {
    pub(crate) store: Box<dyn Store>,
    pub(crate) ledger: Ledger,
    /// Messages below are being delivered, or were.
    pub(crate) held: u64,
    pub(crate) is_open: bool,
    pub(crate) last_error: Option<String>,
    pub(crate) failures: u64,
    /// When the thread is to end at the latest; `None` while the output is in use.
    pub(crate) deadline: Option<Instant>,
    pub(crate) reopen: bool,
    /// Delivery was left to the thread: it may have been about to sleep.
    pub(crate) is_left: bool,
    /// True if what was handed over last was delivered at once.
    pub(crate) is_prompt: bool,
    /// Somebody waits for [`OutputShared::room`]: to wake nobody is a system call.
    pub(crate) is_waited_for: bool,
}

impl OutputShared {
    pub(crate) fn new(delivery: Delivery, state: OutputState) -> OutputShared {
        let (delivery, state) = (Mutex::new(delivery), Mutex::new(state));
        OutputShared { delivery, state, work: Condvar::new(), room: Condvar::new() }
    }

    /// A panic of the other thread leaves counts that are whole: they are changed in one step each.
    pub(crate) fn lock(&self) -> MutexGuard<'_, OutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else delivers.
    fn delivery(&self) -> MutexGuard<'_, Delivery> {
        self.delivery.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers the messages that wait, unless the output's thread is delivering or the receiver takes none at once.
    /// Returns true if all were handed over: the thread need not wake up.
    pub(crate) fn deliver_at_once(&self, allowed: AtOnce) -> bool {
        match self.delivery.try_lock() {
            Ok(mut delivery) => delivery.deliver_at_once(self, allowed),
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => false,
        }
    }
}

impl OutputState {
    /// The state of an output whose thread has not begun, with what waits in `store` and what was counted before.
    pub(crate) fn new(store: Box<dyn Store>, ledger: Ledger) -> OutputState {
        OutputState {
            held: store.begin(),
            store,
            ledger,
            is_open: false,
            last_error: None,
            failures: 0,
            deadline: None,
            reopen: false,
            is_left: false,
            is_prompt: false,
            is_waited_for: false,
        }
    }

    /// The counts and troubles of the output.
    pub(crate) fn status(&self) -> Status {
        Status {
            ledger: self.ledger,
            waiting_bytes: self.store.bytes(),
            is_open: self.is_open,
            last_error: self.last_error.clone(),
            failures: self.failures,
            store_trouble: self.store.trouble(),
        }
    }

    /// Counts what the store has given up, and gives it the counts to keep.
    pub(crate) fn settle(&mut self) {
        let dropped = self.store.take_drops();
        self.ledger.dropped.add(&dropped);
        let ledger = self.ledger;
        if let Err(error) = self.store.checkpoint(&ledger) {
            self.last_error = Some(format!("cannot keep counts: {error}"));
        }
    }
}

/// The batch that is being handed to the transport.
struct Current {
    batch: Arc<Batch>,
    /// Bytes of it that were taken.
    at: usize,
}

/// What is delivered, and how far.
pub(crate) struct Delivery {
    transport: Box<dyn Transport>,
    is_open: bool,
    in_flight: InFlight,
    current: Option<Current>,
    /// Number of the message behind the current batch.
    next: u64,
    backoff: Backoff,
    /// What went wrong while the messages were handed over: to close and to wait is the thread's.
    fault: Option<io::Error>,
    /// After a fault: nothing is tried before.
    resume: Option<Instant>,
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
    /// Nothing is tried for so long, whatever there is to do.
    Pause(Duration),
    End,
}

/// Since when nothing was handed over.
struct Calm {
    /// How many messages there were when it was looked last.
    end: u64,
    since: Instant,
    /// Messages when memory was last given back; `None` if it never was.
    trimmed_at: Option<u64>,
}

/// After so many messages it is worth it to give memory back: it takes as long as some thousand of them.
const BURST: u64 = 10_000;

/// What the thread of an output does.
pub(crate) fn run(shared: &OutputShared, mut notices: Notices) {
    let mut calm = Calm { end: 0, since: Instant::now(), trimmed_at: None };
    loop {
        notices.look(|| shared.status_of_run());
        let mut delivery = shared.delivery();
        match delivery.step(shared) {
            NextStep::End => return delivery.end(shared),
            NextStep::Wait(duration) => {
                drop(delivery);
                shared.sleep(duration);
                shared.delivery().look_now(shared);
                if shared.is_worn(&mut calm) {
                    shared.delivery().shrink(shared);
                    sys::memory::trim();
                    sys::memory::release_program();
                }
            }
            NextStep::Pause(duration) => {
                drop(delivery);
                shared.pause(duration);
            }
            NextStep::Work => match delivery.work(shared) {
                Ok(()) if delivery.waits_for_confirmation() => {
                    drop(delivery);
                    shared.sleep(CONFIRM_EVERY);
                }
                Ok(()) => {}
                Err(error) => delivery.broken(shared, &error),
            },
        }
    }
}

impl OutputShared {
    /// The status while the run lasts. Whoever ends it says what is left then.
    fn status_of_run(&self) -> Option<Status> {
        let state = self.lock();
        state.deadline.is_none().then(|| state.status())
    }

    /// Sleeps until something new is to be done.
    fn sleep(&self, duration: Duration) {
        let mut state = self.lock();
        let is_left = std::mem::take(&mut state.is_left);
        if state.deadline.is_none() && !state.reopen && !is_left && state.store.end() == state.held {
            let _ = self.work.wait_timeout(state, duration);
        }
    }

    /// True if memory is to be given back that a burst or the start has left: nothing was handed over for some time.
    fn is_worn(&self, calm: &mut Calm) -> bool {
        let mut state = self.lock();
        let end = state.store.end();
        if calm.end != end {
            (calm.end, calm.since) = (end, Instant::now());
            return false;
        }
        let is_worn = calm.trimmed_at.is_none_or(|then| end.saturating_sub(then) >= BURST);
        let is_worn = calm.since.elapsed() >= LOOK_EVERY && (state.store.free_spares() | is_worn);
        if is_worn {
            calm.trimmed_at = Some(end);
        }
        is_worn
    }

    /// Waits, whatever there is to do, unless the end has come.
    fn pause(&self, duration: Duration) {
        let state = self.lock();
        if state.deadline.is_none_or(|deadline| deadline > Instant::now()) {
            let _ = self.work.wait_timeout(state, duration);
        }
    }
}

impl Delivery {
    /// Delivers messages from number `next` on by `transport`, which is not open.
    pub(crate) fn new(transport: Box<dyn Transport>, next: u64, delivered_bytes_max: u64) -> Delivery {
        Delivery {
            transport,
            is_open: false,
            in_flight: InFlight::default(),
            current: None,
            next,
            backoff: Backoff::default(),
            fault: None,
            resume: None,
            refused: 0,
            looked: None,
            delivered_bytes_max,
        }
    }

    /// The thread ends.
    fn end(&mut self, shared: &OutputShared) {
        self.transport.close();
        self.is_open = false;
        // Of what the receiver has, nothing is to be sent again by a later run.
        let (first, _) = self.in_flight.rewind(0);
        let mut state = shared.lock();
        let released = state.store.release(first.unwrap_or(self.next));
        state.settle();
        if let Err(error) = released {
            state.last_error = Some(error.to_string());
        }
    }

    /// Takes the next batch, if one waits, and says what is to be done.
    fn step(&mut self, shared: &OutputShared) -> NextStep {
        let mut state = shared.lock();
        if let Some(left) = self.left_of_pause(&state) {
            return NextStep::Pause(left);
        }
        if self.fault.is_some() {
            return NextStep::Work;
        }
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
            // It is tried again later.
            _ if is_unreadable => NextStep::Pause(LOOK_EVERY),
            // Opened before there is something to deliver: what is wrong with a receiver shows at once.
            None if !self.is_open => NextStep::Work,
            _ => NextStep::Wait(LOOK_EVERY),
        }
    }

    /// How long nothing is tried after a fault, if that is not over; at most a short while, because the end may come.
    fn left_of_pause(&mut self, state: &OutputState) -> Option<Duration> {
        let left = self.resume?.saturating_duration_since(Instant::now());
        let is_over = state.deadline.is_some_and(|deadline| deadline <= Instant::now());
        if left.is_zero() || is_over {
            self.resume = None;
            return None;
        }
        Some(left.min(Duration::from_millis(50)))
    }

    fn take(&mut self, state: &mut OutputState, batch: Arc<Batch>) {
        // Messages before `next` were delivered by an earlier connection.
        let skipped = usize::try_from(self.next.saturating_sub(batch.first())).unwrap_or(0);
        let at = batch.start_of(skipped);
        self.next = batch.end();
        state.held = self.next;
        self.in_flight.begin(&batch, skipped);
        self.current = Some(Current { batch, at });
    }

    /// See [`OutputShared::deliver_at_once`].
    fn deliver_at_once(&mut self, shared: &OutputShared, allowed: AtOnce) -> bool {
        let is_free = self.current.is_none() && self.fault.is_none() && self.resume.is_none();
        if !self.is_open || !is_free || self.transport.at_once() > allowed {
            return false;
        }
        loop {
            let mut state = shared.lock();
            if state.reopen || state.deadline.is_some() {
                return false;
            }
            if self.next == state.store.end() {
                return true;
            }
            match state.store.get(self.next) {
                Ok(Some(batch)) => self.take(&mut state, batch),
                Ok(None) | Err(_) => return false,
            }
            drop(state);
            let outcome = self.send(shared, true).and_then(|()| self.confirm(shared));
            if let Err(error) = outcome {
                self.fault = Some(error);
                return false;
            }
            if self.current.is_some() {
                return false;
            }
        }
    }

    /// Looks now and then whether the receiver is still there, and reads what it says. More often while something is
    /// not confirmed: confirmations come with what the receiver says, and where that finds no room the kernel drops
    /// both (`tcp_data_queue` in net/ipv4/tcp_input.c).
    fn look(&mut self) -> io::Result<()> {
        let every = if self.in_flight.unconfirmed() > 0 { CONFIRM_EVERY } else { LOOK_EVERY };
        // The kernel tells of a reset once: who meets the connection after that takes it for one that ended in order.
        if self.fault.is_some() {
            return Ok(());
        }
        if !self.is_open || self.looked.is_some_and(|looked| looked.elapsed() < every) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        self.transport.check()
    }

    fn look_now(&mut self, shared: &OutputShared) {
        if let Err(error) = self.look() {
            self.broken(shared, &error);
        }
    }

    /// Frees the memory of messages that the receiver has surely read.
    fn shrink(&mut self, shared: &OutputShared) {
        let window = self.transport.unread_max().min(self.delivered_bytes_max);
        if let Some(number) = self.in_flight.first_needed(window).filter(|_| self.current.is_none()) {
            shared.lock().store.shrink(number);
        }
    }

    fn work(&mut self, shared: &OutputShared) -> io::Result<()> {
        if let Some(error) = self.fault.take() {
            return Err(error);
        }
        if !self.is_open {
            self.transport.open()?;
            self.is_open = true;
            let mut state = shared.lock();
            if self.transport.is_proven() {
                (state.is_open, state.last_error) = (true, None);
            }
            // What it would send now is counted already as not delivered.
            if state.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(());
            }
        }
        self.send(shared, false)?;
        self.confirm(shared)?;
        self.look()
    }

    /// True if everything was sent and not all of it is confirmed.
    fn waits_for_confirmation(&self) -> bool {
        self.current.is_none() && self.in_flight.unconfirmed() > 0
    }

    /// Hands messages of the current batch to the transport.
    fn send(&mut self, shared: &OutputShared, at_once: bool) -> io::Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let taken: Taken = match at_once {
            true => self.transport.send_at_once(&current.batch, current.at)?,
            false => self.transport.send(&current.batch, current.at)?,
        };
        current.at += taken.bytes;
        self.in_flight.sent(taken.bytes);
        self.refused += taken.refused;
        if taken.refused > 0 {
            let complaint = self.transport.complaint();
            let mut state = shared.lock();
            state.last_error = complaint.or(state.last_error.take());
        }
        if current.at >= current.batch.bytes().len() {
            self.current = None;
            shared.lock().store.let_go(self.next);
        }
        Ok(())
    }

    /// Counts what the receiver has confirmed, and lets go of what cannot be asked for again.
    fn confirm(&mut self, shared: &OutputShared) -> io::Result<()> {
        let unconfirmed = self.transport.unconfirmed()?;
        let newly = self.in_flight.confirm(unconfirmed);
        let needed_no_more = self.in_flight.forget(self.transport.unread_max().min(self.delivered_bytes_max));
        if newly == 0 && needed_no_more.is_none() {
            return Ok(());
        }
        self.backoff.reset();
        // What can never be sent was stepped over, and is among what is confirmed now.
        let refused = std::mem::take(&mut self.refused).min(newly);
        let mut state = shared.lock();
        state.ledger.delivered += newly - refused;
        state.ledger.dropped.refused += refused;
        if newly > 0 && !state.is_open {
            (state.is_open, state.last_error) = (true, None);
        }
        if let Some(number) = needed_no_more {
            state.store.release(number)?;
            state.settle();
            if std::mem::take(&mut state.is_waited_for) {
                shared.room.notify_one();
            }
        }
        Ok(())
    }

    /// The receiver is away: what it may not have goes out again once it is back.
    fn broken(&mut self, shared: &OutputShared, error: &io::Error) {
        // What was acknowledged until now counts.
        let confirmed = self.transport.unconfirmed().map_or(0, |bytes| self.in_flight.confirm(bytes));
        let unread = self.transport.unread_after(error).min(self.delivered_bytes_max);
        self.transport.close();
        self.is_open = false;
        self.fault = None;
        let (again, doubtful) = self.in_flight.rewind(unread);
        self.current = None;
        if let Some(number) = again {
            self.next = number;
        }
        self.resume = Some(Instant::now() + self.backoff.next());
        let mut state = shared.lock();
        state.ledger.delivered = (state.ledger.delivered + confirmed).saturating_sub(doubtful);
        state.ledger.resent += doubtful;
        state.is_open = false;
        state.failures += 1;
        state.last_error = Some(error.to_string());
    }
}
