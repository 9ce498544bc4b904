//! How a session waits: until a time or a signal, and what is done meanwhile.

use std::cell::RefCell;
use sys::signal::WakeReason;
use sys::{SignalHandlers, SysError, clock};

const SECOND_NS: u64 = 1_000_000_000;

/// The waits of a session.
pub struct Waits {
    /// The signal handlers; the error if they could not be installed. Ctrl-C then ends the run abruptly, and each wait
    /// fails.
    signals: Result<SignalHandlers, SysError>,
    /// See [`Waits::failure`].
    failed: RefCell<Option<SysError>>,
    /// See [`Waits::at_each_turn`].
    each_turn: RefCell<Option<Box<dyn Fn()>>>,
    /// See [`Waits::at_each_second`].
    each_second: RefCell<Option<Box<dyn Fn()>>>,
}

impl Waits {
    /// Installs the signal handlers.
    pub(super) fn begin() -> Waits {
        Waits {
            signals: SignalHandlers::install(),
            failed: RefCell::default(),
            each_turn: RefCell::default(),
            each_second: RefCell::default(),
        }
    }

    /// True once Ctrl-C or a termination signal requested the end.
    pub(super) fn are_ended(&self) -> bool {
        self.signals.as_ref().is_ok_and(|signals| signals.signal_number().is_some())
    }

    /// True if Ctrl-C was pressed to end a part of the run, which then continues.
    pub fn take_interrupt(&self) -> bool {
        self.signals.as_ref().is_ok_and(|signals| signals.take_interrupt())
    }

    /// Calls `turn` repeatedly from now on while the run waits or works, to update a terminal: in
    /// [`super::Session::interrupted`], and in [`Waits::sleep_until`] after the terminal was resized or the process
    /// continued.
    pub fn at_each_turn(&self, turn: Box<dyn Fn()>) {
        self.each_turn.replace(Some(turn));
    }

    /// Calls `tick` from now on in the same places, and once a second in [`Waits::sleep_until`]; `None` ends that.
    pub fn at_each_second(&self, tick: Option<Box<dyn Fn()>>) {
        self.each_second.replace(tick);
    }

    pub(super) fn turn(&self) {
        for turn in [&self.each_turn, &self.each_second] {
            if let Some(turn) = &*turn.borrow() {
                turn();
            }
        }
    }

    /// Sleeps until `deadline_ns` of the monotonic clock. Returns false if the run must end instead: the user
    /// requested it, or the wait failed, which [`Waits::failure`] then returns.
    pub fn sleep_until(&self, deadline_ns: u64) -> bool {
        let signals = match &self.signals {
            Ok(signals) => signals,
            Err(error) => return self.fail(error.clone()),
        };
        let ticks = self.each_second.borrow().is_some();
        loop {
            if ticks {
                // A wait may be one of many short ones.
                self.turn();
            }
            let second_ns = clock::monotonic_ns().saturating_add(SECOND_NS);
            let until_ns = if ticks { second_ns.min(deadline_ns) } else { deadline_ns };
            match signals.wait_until(until_ns) {
                Ok(WakeReason::Deadline) if until_ns == deadline_ns => return true,
                Ok(WakeReason::Deadline) => {}
                Ok(WakeReason::Resized) => self.turn(),
                Ok(WakeReason::Interrupted) => return false,
                Err(error) => return self.fail(error),
            }
        }
    }

    fn fail(&self, error: SysError) -> bool {
        self.failed.replace(Some(error));
        false
    }

    /// A sentence on why the last wait ended before its deadline without a request by the user.
    pub fn failure(&self) -> Option<String> {
        self.failed.borrow().as_ref().map(|error| format!("ended early: {error}"))
    }
}
