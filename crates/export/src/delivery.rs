//! Delivery of an output's messages.
//!
//! Each output has a thread ([`run`]) that opens the receiver, waits for it and handles its faults. While all goes
//! well that thread sleeps: the thread that hands messages over also delivers them.

use crate::backoff::Backoff;
use crate::in_flight::InFlight;
use crate::notices::Notices;
use crate::status::Status;
use crate::{Batch, DirectDelivery, Ledger, Store, TakenPart, Transport};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How often the transport is asked for confirmations while nothing is sent.
const CONFIRM_EVERY: Duration = Duration::from_millis(20);
/// Batches are joined up to this many bytes ([`Transport::gathering`]), and not waited for beyond.
///
/// Bound: bytes of messages that are joined for one request, in addition to the queue. Beyond: they go into the next
/// request. By: any sender of packets that a rule logs.
const GATHERED_BYTES: usize = 4 << 20;
/// How often an idle connection is checked, so that a vanished receiver is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// State shared by the output's thread and the thread that hands messages over. Lock `delivery` before `state`.
pub(crate) struct OutputShared {
    /// Held by the thread that delivers: the output's own, or the one that hands messages over.
    delivery: Mutex<Delivery>,
    state: Mutex<OutputState>,
    /// Wakes the output's thread: there is work.
    pub(crate) work: Condvar,
    /// Wakes the thread that hands messages over: the store has room.
    pub(crate) room: Condvar,
}

pub(crate) struct OutputState {
    pub(crate) store: Box<dyn Store>,
    pub(crate) ledger: Ledger,
    /// Messages with lower numbers are being delivered, or were delivered.
    pub(crate) held: u64,
    pub(crate) is_open: bool,
    pub(crate) last_error: Option<String>,
    pub(crate) failures: u64,
    /// The latest time at which the thread ends; `None` while the output is in use.
    pub(crate) deadline: Option<Instant>,
    pub(crate) reopen: bool,
    /// Delivery was left to the output's thread, which must not go to sleep now.
    pub(crate) is_left: bool,
    /// True if the batch that was handed over last was delivered at once.
    pub(crate) is_prompt: bool,
    /// A thread waits for [`OutputShared::room`]. To notify without a waiter would cost a system call.
    pub(crate) is_waited_for: bool,
}

impl OutputShared {
    pub(crate) fn new(delivery: Delivery, state: OutputState) -> OutputShared {
        let (delivery, state) = (Mutex::new(delivery), Mutex::new(state));
        OutputShared { delivery, state, work: Condvar::new(), room: Condvar::new() }
    }

    /// Locks the state. Poisoning is ignored: a count changes in one step, so a panic of the other thread leaves it
    /// intact.
    pub(crate) fn lock(&self) -> MutexGuard<'_, OutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread delivers.
    fn delivery(&self) -> MutexGuard<'_, Delivery> {
        self.delivery.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers the messages that wait, unless the output's thread is delivering or the receiver cannot take any at
    /// once. Returns true if all were handed over, so that the thread need not wake up.
    pub(crate) fn deliver_at_once(&self, allowed: DirectDelivery) -> bool {
        match self.delivery.try_lock() {
            Ok(mut delivery) => delivery.deliver_at_once(self, allowed),
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => false,
        }
    }
}

impl OutputState {
    /// The state of an output whose thread has not started, with the messages in `store` and the counts of earlier
    /// runs.
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

    /// Returns the output's counts and faults.
    pub(crate) fn status(&self) -> Status {
        Status {
            ledger: self.ledger,
            waiting_bytes: self.store.bytes(),
            is_open: self.is_open,
            last_error: self.last_error.clone(),
            failures: self.failures,
            store_trouble: self.store.fault_text(),
        }
    }

    /// Counts the messages that the store has dropped, and passes the counts to the store to keep.
    pub(crate) fn pass_counts(&mut self) {
        let dropped = self.store.take_drops();
        self.ledger.dropped.add(&dropped);
        let ledger = self.ledger;
        if let Err(error) = self.store.checkpoint(&ledger) {
            self.last_error = Some(format!("cannot store counts: {error}"));
        }
    }
}

/// The batch that is being handed to the transport.
struct CurrentBatch {
    batch: Arc<Batch>,
    /// Number of its bytes that the transport has taken.
    at: usize,
}

/// The state of delivery: the transport, and how far it has come.
pub(crate) struct Delivery {
    transport: Box<dyn Transport>,
    is_open: bool,
    in_flight: InFlight,
    current: Option<CurrentBatch>,
    /// Number of the first message after the current batch.
    next: u64,
    backoff: Backoff,
    /// An error of the thread that hands messages over. The output's thread closes the transport and waits.
    fault: Option<io::Error>,
    /// After a fault: the earliest time of the next attempt.
    resume: Option<Instant>,
    /// Messages that can never be sent and are not counted yet.
    refused: u64,
    /// When the receiver was last checked.
    looked: Option<Instant>,
    /// [`Store::delivered_bytes_max`].
    delivered_bytes_max: u64,
    /// When batches were last joined.
    gathered_at: Option<Instant>,
}

/// The next step of an output's thread.
enum NextStep {
    /// Opens the receiver, writes, asks for confirmations.
    Work,
    /// Sleeps for this long, unless there is work before.
    Wait(Duration),
    /// Attempts nothing for this long, even if there is work.
    Pause(Duration),
    End,
}

/// The time since messages were last handed over.
struct IdleTime {
    /// [`Store::end`] at the last check.
    end: u64,
    since: Instant,
    /// [`Store::end`] when memory was last given back; `None` if it never was.
    trimmed_at: Option<u64>,
}

/// Messages after which memory is worth giving back: that takes as long as some thousand messages.
const BURST: u64 = 10_000;

/// The main loop of an output's thread.
pub(crate) fn run(shared: &OutputShared, mut notices: Notices) {
    let mut calm = IdleTime { end: 0, since: Instant::now(), trimmed_at: None };
    loop {
        notices.check(|| shared.status_of_run());
        let mut delivery = shared.delivery();
        match delivery.step(shared) {
            NextStep::End => return delivery.end(shared),
            NextStep::Wait(duration) => {
                drop(delivery);
                shared.sleep(duration);
                shared.delivery().check_or_close(shared);
                if shared.should_trim(&mut calm) {
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
                Err(error) => delivery.close_failed(shared, &error),
            },
        }
    }
}

impl OutputShared {
    /// Returns the status while the run lasts, and `None` from its end on: the final report has the rest.
    fn status_of_run(&self) -> Option<Status> {
        let state = self.lock();
        state.deadline.is_none().then(|| state.status())
    }

    /// Sleeps until there is work, at most for `duration`.
    fn sleep(&self, duration: Duration) {
        let mut state = self.lock();
        let is_left = std::mem::take(&mut state.is_left);
        if state.deadline.is_none() && !state.reopen && !is_left && state.store.end() == state.held {
            let _ = self.work.wait_timeout(state, duration);
        }
    }

    /// Frees the store's spare batches. Returns true if the process should give back memory that a burst or the start
    /// has left: no messages were handed over for some time.
    fn should_trim(&self, calm: &mut IdleTime) -> bool {
        let mut state = self.lock();
        let end = state.store.end();
        if calm.end != end {
            (calm.end, calm.since) = (end, Instant::now());
            return false;
        }
        let is_worn = calm.trimmed_at.is_none_or(|then| end.saturating_sub(then) >= BURST);
        let is_worn = calm.since.elapsed() >= CHECK_INTERVAL && (state.store.free_spares() | is_worn);
        if is_worn {
            calm.trimmed_at = Some(end);
        }
        is_worn
    }

    /// Waits even if there is work, unless the deadline has passed.
    fn pause(&self, duration: Duration) {
        let state = self.lock();
        if state.deadline.is_none_or(|deadline| deadline > Instant::now()) {
            let _ = self.work.wait_timeout(state, duration);
        }
    }
}

impl Delivery {
    /// Delivers messages from number `next` on via `transport`, which is still closed.
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
            gathered_at: None,
        }
    }

    /// Closes the transport and releases the delivered messages, as the thread ends.
    fn end(&mut self, shared: &OutputShared) {
        self.transport.close();
        self.is_open = false;
        // A later run must not resend messages that the receiver has.
        let (first, _) = self.in_flight.end_connection(0);
        let mut state = shared.lock();
        let released = state.store.release(first.unwrap_or(self.next));
        state.pass_counts();
        if let Err(error) = released {
            state.last_error = Some(error.to_string());
        }
    }

    /// Takes the next batch, if one waits, and returns the next step.
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
            if let Some(left) = self.left_of_gathering(&state) {
                return NextStep::Pause(left);
            }
            match state.store.get(self.next) {
                Ok(Some(batch)) => {
                    let batch = self.gather(&mut *state.store, batch);
                    self.take(&mut state, batch);
                }
                Ok(None) => {
                    // The store may have dropped the last messages; the numbers of new ones follow theirs.
                    self.next = state.store.end();
                    state.held = self.next;
                }
                Err(error) => {
                    state.last_error = Some(format!("cannot read stored messages: {error}"));
                    is_unreadable = true;
                }
            }
        }
        state.pass_counts();
        let unconfirmed = self.in_flight.unconfirmed_bytes() > 0;
        let is_done = self.current.is_none() && !unconfirmed;
        match state.deadline {
            Some(deadline) if is_done || deadline <= Instant::now() => NextStep::End,
            // A store that outlives the program keeps the messages of an absent receiver.
            Some(_) if state.store.is_persistent() && !self.is_open && state.failures > 0 => NextStep::End,
            _ if self.current.is_some() || unconfirmed => NextStep::Work,
            // Try to read again later.
            _ if is_unreadable => NextStep::Pause(CHECK_INTERVAL),
            // Open before there is a message to deliver, so that a fault of the receiver shows at once.
            None if !self.is_open => NextStep::Work,
            _ => NextStep::Wait(CHECK_INTERVAL),
        }
    }

    /// Returns how long to pause after a fault, or `None` if the pause is over. At most 50 ms, because the run may
    /// end.
    fn left_of_pause(&mut self, state: &OutputState) -> Option<Duration> {
        let left = self.resume?.saturating_duration_since(Instant::now());
        let is_over = state.deadline.is_some_and(|deadline| deadline <= Instant::now());
        if left.is_zero() || is_over {
            self.resume = None;
            return None;
        }
        Some(left.min(Duration::from_millis(50)))
    }

    /// Returns how long to wait for more messages; `None` if those that wait are to be sent, or none wait. At most 50
    /// ms, because the run may end.
    fn left_of_gathering(&self, state: &OutputState) -> Option<Duration> {
        let every = self.transport.gathering()?.every;
        let waits = self.is_open && state.deadline.is_none() && self.next < state.store.end();
        // A small store must not fill up while it waits.
        let is_enough = state.store.bytes() >= self.delivered_bytes_max.min(GATHERED_BYTES as u64);
        let left = every.saturating_sub(self.gathered_at.filter(|_| waits && !is_enough)?.elapsed());
        (!left.is_zero()).then_some(left.min(Duration::from_millis(50)))
    }

    /// Joins a batch with those after it, if the transport asks for that. A fault of the store shows at the next one.
    fn gather(&mut self, store: &mut dyn Store, mut all: Arc<Batch>) -> Arc<Batch> {
        let Some(gathering) = self.transport.gathering() else { return all };
        self.gathered_at = Some(Instant::now());
        while all.bytes().len() < GATHERED_BYTES || all.end() < gathering.together {
            // Without the dropped messages, the numbers of those after them would be wrong.
            let more = store.get(all.end()).ok().flatten().filter(|more| more.first_number() == all.end());
            let Some(more) = more else { break };
            Arc::make_mut(&mut all).join(&more);
        }
        all
    }

    fn take(&mut self, state: &mut OutputState, batch: Arc<Batch>) {
        // An earlier connection delivered the messages before `next`.
        let skipped = usize::try_from(self.next.saturating_sub(batch.first_number())).unwrap_or(0);
        let at = batch.start_of(skipped);
        self.next = batch.end();
        state.held = self.next;
        self.in_flight.begin(&batch, skipped);
        self.current = Some(CurrentBatch { batch, at });
    }

    /// See [`OutputShared::deliver_at_once`].
    fn deliver_at_once(&mut self, shared: &OutputShared, allowed: DirectDelivery) -> bool {
        let is_free = self.current.is_none() && self.fault.is_none() && self.resume.is_none();
        if !self.is_open || !is_free || self.transport.direct_delivery() > allowed {
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
            let outcome = self.send(shared, true).and_then(|()| self.take_confirmations(shared));
            if let Err(error) = outcome {
                self.fault = Some(error);
                return false;
            }
            if self.current.is_some() {
                return false;
            }
        }
    }

    /// Checks now and then whether the receiver is still there, and reads what it sends. Checks more often while
    /// messages are unconfirmed: confirmations arrive together with the receiver's data, and if that data finds no
    /// room, the kernel drops both (`tcp_data_queue` in net/ipv4/tcp_input.c).
    fn check_if_due(&mut self) -> io::Result<()> {
        let every = if self.in_flight.unconfirmed_bytes() > 0 { CONFIRM_EVERY } else { CHECK_INTERVAL };
        // The kernel reports a reset once. After that, the connection looks as if the receiver had closed it in order.
        if self.fault.is_some() {
            return Ok(());
        }
        if !self.is_open || self.looked.is_some_and(|looked| looked.elapsed() < every) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        self.transport.check()
    }

    fn check_or_close(&mut self, shared: &OutputShared) {
        if let Err(error) = self.check_if_due() {
            self.close_failed(shared, &error);
        }
    }

    /// Frees the memory of messages that the receiver has certainly read.
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
            // Messages sent now are already counted as undelivered.
            if state.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(());
            }
        }
        self.send(shared, false)?;
        self.take_confirmations(shared)?;
        self.check_if_due()
    }

    /// True if everything was sent but not all of it is confirmed.
    fn waits_for_confirmation(&self) -> bool {
        self.current.is_none() && self.in_flight.unconfirmed_bytes() > 0
    }

    /// Hands messages of the current batch to the transport.
    fn send(&mut self, shared: &OutputShared, at_once: bool) -> io::Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        if let Some(note) = self.transport.prepare(&current.batch, current.at)? {
            let mut state = shared.lock();
            let ledger = state.ledger;
            state.store.keep_note(note, &ledger);
        }
        let taken: TakenPart = match at_once {
            true => self.transport.send_without_waiting(&current.batch, current.at)?,
            false => self.transport.send(&current.batch, current.at)?,
        };
        current.at += taken.bytes;
        self.in_flight.add_sent(taken.bytes);
        self.refused += taken.refused;
        if taken.refused > 0 {
            let complaint = self.transport.take_refusal_reason();
            let mut state = shared.lock();
            state.last_error = complaint.or(state.last_error.take());
        }
        if taken.repeated > 0 {
            shared.lock().ledger.resent += taken.repeated;
        }
        if current.at >= current.batch.bytes().len() {
            self.current = None;
            shared.lock().store.note_sent(self.next);
        }
        Ok(())
    }

    /// Counts the messages that the receiver has confirmed, and releases those that will never be sent again.
    fn take_confirmations(&mut self, shared: &OutputShared) -> io::Result<()> {
        let unconfirmed = self.transport.unconfirmed_bytes()?;
        let newly = self.in_flight.confirm(unconfirmed);
        let needed_no_more = self.in_flight.release_final(self.transport.unread_max().min(self.delivered_bytes_max));
        if newly == 0 && needed_no_more.is_none() {
            return Ok(());
        }
        self.backoff.reset();
        // Messages that can never be sent were skipped, and are among the confirmed ones now.
        let refused = std::mem::take(&mut self.refused).min(newly);
        let mut state = shared.lock();
        state.ledger.delivered += newly - refused;
        state.ledger.dropped.refused += refused;
        if newly > 0 && !state.is_open {
            (state.is_open, state.last_error) = (true, None);
        }
        if let Some(number) = needed_no_more {
            state.store.release(number)?;
            state.pass_counts();
            if std::mem::take(&mut state.is_waited_for) {
                shared.room.notify_one();
            }
        }
        Ok(())
    }

    /// Closes a failed connection. Messages that the receiver may not have are sent again once it is back.
    fn close_failed(&mut self, shared: &OutputShared, error: &io::Error) {
        // Count the messages acknowledged until now.
        let confirmed = self.transport.unconfirmed_bytes().map_or(0, |bytes| self.in_flight.confirm(bytes));
        let unread = self.transport.unread_after(error).min(self.delivered_bytes_max);
        self.transport.close();
        self.is_open = false;
        self.fault = None;
        let (again, doubtful) = self.in_flight.end_connection(unread);
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
