//! Reports the state of the run to the service manager (sd_notify(3)).
use crate::messages::print_message;
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

/// The thread that reports. Ends when dropped.
pub struct Notifier {
    run: Arc<RunState>,
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Notifier {
    /// Reports that the run is ready, and its state from now on; returns None without a service manager. `status`
    /// makes a line of counts.
    pub fn start(run: &Arc<RunState>, status: impl Fn() -> String + Send + 'static) -> Option<Notifier> {
        run.manager()?;
        send(run, &format!("READY=1\nSTATUS={}\n", status()));
        let is_ending = Arc::new(AtomicBool::new(false));
        let reporter = Reporter {
            run: Arc::clone(run),
            is_ending: Arc::clone(&is_ending),
            hangups: 0,
            is_reloading: false,
            told: (status(), Instant::now()),
            alive: (run.turns(), Instant::now()),
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
        send(&self.run, "STOPPING=1\nSTATUS=delivers the queued rows, then exits\n");
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.is_ending.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// The thread's state.
struct Reporter {
    run: Arc<RunState>,
    is_ending: Arc<AtomicBool>,
    hangups: u64,
    /// True from a hangup until it is fully handled.
    is_reloading: bool,
    /// The last status, and the time of its report.
    told: (String, Instant),
    /// The turns of both threads at the last sign of life, and its time.
    alive: ((u64, Option<u64>), Instant),
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
        if self.is_reloading && self.run.has_reloaded(self.hangups) {
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

    /// Sends a sign of life if both threads have made turns since the last one. Otherwise the service manager restarts
    /// the run.
    fn send_watchdog(&mut self) {
        let (now, before) = (self.run.turns(), self.alive.0);
        if now.0 != before.0 && (now.1.is_none() || now.1 != before.1) {
            send(&self.run, "WATCHDOG=1\n");
            self.alive = (now, Instant::now());
        }
    }
}

/// A failed report does not stop the run; the service manager will notice.
fn send(run: &RunState, text: &str) {
    if let Some(manager) = run.manager() {
        let _ = manager.send(text, &[]);
    }
}
