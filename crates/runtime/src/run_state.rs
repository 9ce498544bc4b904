//! State shared by the threads of a run: their signs of life, and requests to end.
use crate::messages::print_message;
use crate::run_group::{GroupedRun, Part, Turns};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use sys::SysError;
use sys::netns::OriginThread;
use sys::service::Manager;

/// State shared by the threads of a run.
#[derive(Debug, Default)]
pub struct RunState {
    /// The service manager, if there is one.
    manager: Option<Manager>,
    /// The part of an agent that the run belongs to.
    part: Option<Part>,
    /// The thread that stays in the network namespace where netwren was started, if the run entered another namespace.
    origin: OnceLock<OriginThread>,
    /// Turns of the thread that makes messages: several per second even without rows.
    maker_turns: AtomicU64,
    /// Turns of the receiving thread; `None` if it does not count them.
    reader_turns: Mutex<Option<Arc<AtomicU64>>>,
    /// True if groups stay bound when the run ends.
    keep_bound: Arc<AtomicBool>,
    /// Number of records that the kernel could not deliver so far; empty if the number is known only at the end.
    lost_in_kernel: OnceLock<Arc<AtomicU64>>,
    /// True if this run has sockets to hand over.
    can_hand_over: AtomicBool,
    /// True once a successor has requested them.
    is_handing_over: AtomicBool,
    /// True if a hangup reloads the configuration.
    is_reloading: AtomicBool,
    /// Number of hangups handled by a reload.
    reloads: AtomicU64,
    /// The successor that gets the sockets; open until the process ends.
    successor: Mutex<Option<UnixStream>>,
}

impl RunState {
    /// Creates the state of a new run, with the service manager from the environment. Call this before entering another
    /// network namespace, because an abstract `NOTIFY_SOCKET` belongs to the first namespace.
    pub fn begin() -> Arc<RunState> {
        RunState::begin_part(None)
    }

    /// [`RunState::begin`] for a part of an agent.
    pub fn begin_part(part: Option<Part>) -> Arc<RunState> {
        let manager = Manager::of_environment().unwrap_or_else(|error| {
            print_message(&format!("the service manager is not notified: {error}"));
            None
        });
        Arc::new(RunState { manager, part, ..RunState::default() })
    }

    /// Makes [`RunState::at_origin`] use the calling thread's network namespace from now on.
    pub fn keep_origin(&self) -> Result<(), SysError> {
        let thread = OriginThread::start()?;
        let _ = self.origin.set(thread);
        Ok(())
    }

    /// Runs `job` in the network namespace where netwren was started, and waits for it. Outputs and programs named by
    /// the user belong to that namespace; only reading happens in the namespace that the run entered.
    pub fn at_origin<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, SysError> {
        match self.origin.get() {
            Some(origin) => origin.run(job),
            None => Ok(job()),
        }
    }

    /// The service manager.
    pub fn manager(&self) -> Option<&Manager> {
        self.manager.as_ref()
    }

    /// The part of an agent that the run belongs to.
    pub fn part(&self) -> Option<&Part> {
        self.part.as_ref()
    }

    /// Counts a turn of the thread that makes messages. Costs one atomic addition.
    pub fn count_turn(&self) {
        self.maker_turns.fetch_add(1, Relaxed);
    }

    /// Counts a turn while the thread that makes messages waits for a receiver, as `--when-full block` requires. The
    /// receiving thread may in turn wait for it, so both count as alive.
    pub fn count_waiting_turn(&self) {
        self.count_turn();
        let turns = self.reader_turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.iter().for_each(|turns| _ = turns.fetch_add(1, Relaxed));
    }

    /// The turn counter for the receiving thread.
    pub fn count_reader(&self) -> Arc<AtomicU64> {
        let mut turns = self.reader_turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.get_or_insert_default())
    }

    /// The counter for records that the kernel could not deliver.
    pub fn count_lost(&self) -> Arc<AtomicU64> {
        Arc::clone(self.lost_in_kernel.get_or_init(Arc::default))
    }

    /// Number of records that the kernel could not deliver so far, if it is known during the run.
    pub fn lost_in_kernel(&self) -> Option<u64> {
        self.lost_in_kernel.get().map(|lost| lost.load(Relaxed))
    }

    /// Requires [`RunState::note_reload`] for each hangup from now on.
    pub fn expect_reloads(&self) {
        self.is_reloading.store(true, Relaxed);
    }

    /// Notes that the configuration was reloaded for this many hangups.
    pub fn note_reload(&self, hangups: u64) {
        self.reloads.store(hangups, Relaxed);
    }

    /// True if turns of the receiving thread must be counted.
    pub fn counts_turns(&self) -> bool {
        self.manager.is_some() || self.is_reloading.load(Relaxed)
    }

    /// Whether groups stay bound when the run ends.
    pub fn keep_bound(&self) -> &Arc<AtomicBool> {
        &self.keep_bound
    }

    /// Allows [`RunState::hand_over_to`] from now on.
    pub fn allow_hand_over(&self) {
        self.can_hand_over.store(true, Relaxed);
    }

    /// Ends the run, which then hands its sockets over to `successor`. Returns `successor` as the error if there is
    /// nothing to hand over, or if another process gets the sockets.
    pub fn hand_over_to(&self, successor: UnixStream) -> Result<(), UnixStream> {
        let mut place = self.successor.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.can_hand_over.load(Relaxed) || place.is_some() {
            return Err(successor);
        }
        *place = Some(successor);
        self.keep_bound.store(true, Relaxed);
        self.is_handing_over.store(true, Relaxed);
        Ok(())
    }

    /// True once the run must end because a successor takes its sockets.
    pub fn is_handing_over(&self) -> bool {
        self.is_handing_over.load(Relaxed)
    }

    /// Calls `then` with the successor, if one has requested the sockets.
    pub fn with_successor(&self, then: impl FnOnce(&UnixStream)) {
        let successor = self.successor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(successor) = &*successor {
            then(successor);
        }
    }
}

impl GroupedRun for RunState {
    fn turns(&self) -> Turns {
        let reader = self.reader_turns.lock().unwrap_or_else(PoisonError::into_inner);
        (self.maker_turns.load(Relaxed), reader.as_ref().map(|turns| turns.load(Relaxed)))
    }

    fn has_reloaded(&self, hangups: u64) -> bool {
        !self.is_reloading.load(Relaxed) || self.reloads.load(Relaxed) >= hangups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_threads_are_alive_while_a_receiver_is_waited_for() {
        let run = RunState::default();
        assert_eq!(run.turns(), (0, None));
        run.count_waiting_turn();
        assert_eq!(run.turns(), (1, None));
        let reader = run.count_reader();
        run.count_waiting_turn();
        assert_eq!((run.turns(), reader.load(Relaxed)), ((2, Some(1)), 1));
    }
}
