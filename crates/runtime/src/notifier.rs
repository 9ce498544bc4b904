//! Reports the state of the run to the service manager (sd_notify(3)).
use crate::messages::print_message;
use crate::run_group::{GroupedRun, RunGroup, Turns};
use crate::run_state::RunState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use sys::service::watchdog;

/// Interval between checks for signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between reports of counts.
const STATUS_EVERY: Duration = Duration::from_secs(2);

/// Reports a run, or all parts of an agent, until it is dropped.
pub struct Notifier {
    run: Arc<RunState>,
    is_ending: Arc<AtomicBool>,
    /// `None` for a part of an agent, which the agent reports.
    thread: Option<JoinHandle<()>>,
}

impl Notifier {
    /// Reports that the run is ready, and its state from now on; returns None without a service manager. `status`
    /// makes a line of counts.
    pub fn start(run: &Arc<RunState>, status: impl Fn() -> String + Send + 'static) -> Option<Notifier> {
        run.manager()?;
        if let Some(part) = run.part() {
            part.set_run(Some(Arc::clone(run) as Arc<dyn GroupedRun>));
            return Some(Notifier { run: Arc::clone(run), is_ending: Arc::default(), thread: None });
        }
        let only: Arc<dyn GroupedRun> = Arc::clone(run) as _;
        Notifier::report(run, move || vec![Arc::clone(&only)], status)
    }

    /// [`Notifier::start`] for an agent, whose own run is `run`.
    pub fn start_group(
        run: &Arc<RunState>,
        group: &RunGroup,
        status: impl Fn() -> String + Send + 'static,
    ) -> Option<Notifier> {
        run.manager()?;
        let group = group.clone();
        Notifier::report(run, move || group.runs(), status)
    }

    fn report(
        run: &Arc<RunState>,
        runs: impl Fn() -> Vec<Arc<dyn GroupedRun>> + Send + 'static,
        status: impl Fn() -> String + Send + 'static,
    ) -> Option<Notifier> {
        send(run, &format!("READY=1\nSTATUS={}\n", status()));
        let is_ending = Arc::new(AtomicBool::new(false));
        let reporter = Reporter {
            run: Arc::clone(run),
            is_ending: Arc::clone(&is_ending),
            hangups: 0,
            is_reloading: false,
            told: (status(), Instant::now()),
            alive: (Vec::new(), Instant::now()),
            runs: Box::new(runs),
            status: Box::new(status),
        };
        let thread = thread::Builder::new().name("netwren-notify".to_owned()).spawn(move || reporter.run());
        let thread = thread
            .map_err(|error| print_message(&format!("the service manager can no longer be notified: {error}")))
            .ok();
        Some(Notifier { run: Arc::clone(run), is_ending, thread })
    }

    /// Reports that the run is ending, while it delivers its queues.
    pub fn report_stopping(&self) {
        self.is_ending.store(true, Relaxed);
        match self.run.part() {
            Some(part) => part.set_run(None),
            None => send(&self.run, "STOPPING=1\nSTATUS=delivers the queued rows, then exits\n"),
        }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.is_ending.store(true, Relaxed);
        if let Some(part) = self.run.part() {
            part.set_run(None);
        }
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// A run, and its turns at the last sign of life.
type AliveRun = (Arc<dyn GroupedRun>, Turns);

/// The thread's state.
struct Reporter {
    run: Arc<RunState>,
    is_ending: Arc<AtomicBool>,
    hangups: u64,
    /// True from a hangup until it is fully handled.
    is_reloading: bool,
    /// The last status, and the time of its report.
    told: (String, Instant),
    /// The runs at the last sign of life, and its time.
    alive: (Vec<AliveRun>, Instant),
    /// The runs that must be alive.
    runs: Box<dyn Fn() -> Vec<Arc<dyn GroupedRun>> + Send>,
    status: Box<dyn Fn() -> String + Send>,
}

impl Reporter {
    fn run(mut self) {
        let half = watchdog().map(|period| period / 2);
        let pause = half.map_or(CHECK_INTERVAL, |half| half.min(CHECK_INTERVAL));
        while !self.is_ending.load(Relaxed) {
            thread::park_timeout(pause);
            self.report_reload();
            self.send_status();
            if half.is_some_and(|half| self.alive.1.elapsed() >= half.saturating_sub(pause)) {
                self.send_watchdog();
            }
        }
    }

    /// SIGHUP: files are reopened with the next message, and a configuration file is reloaded.
    fn report_reload(&mut self) {
        let hangups = sys::signal::hangup_count();
        if hangups != self.hangups {
            self.hangups = hangups;
            let now_us = sys::clock::monotonic_ns() / 1000;
            send(&self.run, &format!("RELOADING=1\nMONOTONIC_USEC={now_us}\n"));
            self.is_reloading = true;
        }
        if self.is_reloading && (self.runs)().iter().all(|run| run.has_reloaded(self.hangups)) {
            self.is_reloading = false;
            send(&self.run, "READY=1\n");
        }
    }

    fn send_status(&mut self) {
        if self.told.1.elapsed() < STATUS_EVERY {
            return;
        }
        let status = (self.status)();
        if status != self.told.0 {
            send(&self.run, &format!("STATUS={status}\n"));
        }
        self.told = (status, Instant::now());
    }

    /// Sends a sign of life if the threads of each run have made turns since the last one. Otherwise the service
    /// manager restarts the program.
    fn send_watchdog(&mut self) {
        let now: Vec<AliveRun> = (self.runs)().into_iter().map(with_turns).collect();
        let is_alive = |(run, turns): &AliveRun| {
            let before = self.alive.0.iter().find(|(other, _)| std::ptr::addr_eq(Arc::as_ptr(run), Arc::as_ptr(other)));
            before.is_none_or(|(_, before)| turns.0 != before.0 && (turns.1.is_none() || turns.1 != before.1))
        };
        if now.iter().all(is_alive) {
            send(&self.run, "WATCHDOG=1\n");
            self.alive = (now, Instant::now());
        }
    }
}

fn with_turns(run: Arc<dyn GroupedRun>) -> AliveRun {
    let turns = run.turns();
    (run, turns)
}

/// A failed report does not stop the run; the service manager will notice.
fn send(run: &RunState, text: &str) {
    if let Some(manager) = run.manager() {
        let _ = manager.send(text, &[]);
    }
}
