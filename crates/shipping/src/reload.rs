//! Starts and ends outputs during a run (SIGHUP with a configuration file).

use super::pending_batch::PendingBatch;
use super::{Shipment, Shipper, notes};
use crate::ShipRequest;
use export::{Address, Ledger, OutputMonitor, OutputReport, Status, Target};
use record::Columns;
use runtime::messages::print_message;
use runtime::run_state::RunState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// The outputs as seen by other threads.
#[derive(Clone, Default)]
pub(super) struct Monitors(Arc<Mutex<Vec<Monitored>>>);

/// One output: its target, its monitor, and the counts of earlier runs.
pub(super) type Monitored = (String, OutputMonitor, Option<Ledger>);

impl Monitors {
    /// Locks the list.
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Monitored>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the outputs; `part` is the agent's part to which they belong, or empty.
    pub(super) fn reports(&self, part: &'static str) -> Vec<OutputReport> {
        let report = |(target, monitor, at_start): &Monitored| OutputReport {
            part,
            target: target.clone(),
            status: monitor.status(),
            at_start: *at_start,
        };
        self.lock().iter().map(report).collect()
    }
}

/// An output that ended before the run did.
pub(super) struct EndedOutput {
    pub(super) target: Target,
    pub(super) status: Status,
    pub(super) at_start: Option<Ledger>,
}

/// Outputs that end during the run: those still ending, and those that have ended.
#[derive(Default)]
pub(super) struct Endings {
    threads: Vec<JoinHandle<EndedOutput>>,
    ended: Vec<EndedOutput>,
}

impl Endings {
    /// Lets the output deliver its queue and end, in a separate thread.
    fn begin<T: super::Shipped>(&mut self, shipper: Shipper<T>) {
        if let Some((count, words)) = shipper.left_out() {
            print_message(&format!("{count} {words}"));
        }
        let Shipper { target, pending: PendingBatch { mut output, .. }, at_start, .. } = shipper;
        output.begin_end();
        let finish = move || EndedOutput { status: output.finish(&|| false), target, at_start };
        match thread::Builder::new().name("netwren-end".to_owned()).spawn(finish) {
            Ok(thread) => self.threads.push(thread),
            // The output was dropped with the closure, which waited for its end.
            Err(error) => print_message(&format!("the counts of an output that ended are missing: {error}")),
        }
    }

    /// Waits for all outputs that are ending.
    fn wait(&mut self) {
        self.ended.extend(self.threads.drain(..).filter_map(|thread| thread.join().ok()));
    }

    /// Waits for all outputs that are ending; returns all that have ended.
    pub(super) fn take(&mut self) -> Vec<EndedOutput> {
        self.wait();
        std::mem::take(&mut self.ended)
    }
}

impl<T: super::Shipped> Shipment<T> {
    /// Ends outputs that are missing from `new` and starts those that are only there; others continue. An output with
    /// changed settings is restarted, and for some seconds at most, rows wait in the receive buffers. Reports outputs
    /// that cannot start.
    pub fn reload(&mut self, new: &ShipRequest, columns: &Columns, run: &Arc<RunState>) {
        let columns = if self.gate.is_some() { &super::gate::columns(columns) } else { columns };
        let stays = |shipper: &Shipper<T>| {
            let is_named = new.targets.contains(&shipper.target);
            is_named && is_alike(&shipper.target, &self.settings, new)
        };
        let (kept, mut gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.outputs).into_iter().partition(stays);
        self.outputs = kept;
        // Targets with the same text share a spool, even if one has a new password.
        let is_named = |shown: &String| new.targets.iter().any(|target| target.to_string() == *shown);
        let is_changed = gone.iter().map(|shipper| shipper.target.to_string()).any(|shown| is_named(&shown));
        let names: Vec<String> = gone.iter().map(|shipper| shipper.target.to_string()).collect();
        gone.iter_mut().for_each(|shipper| shipper.pending.push());
        gone.into_iter().for_each(|shipper| self.endings.begin(shipper));
        if is_changed {
            // Otherwise two outputs would write to the same spool or file.
            self.endings.wait();
        }
        let mut begun = Vec::new();
        for target in &new.targets {
            if self.outputs.iter().any(|shipper| shipper.target == *target) {
                continue;
            }
            match Shipper::start(T::NAME, target, None, new, columns, run) {
                Ok(shipper) => {
                    begun.push(target.to_string());
                    self.outputs.push(shipper);
                }
                Err(error) => print_message(&format!("not shipping to {target}: {error}")),
            }
        }
        self.settings = new.clone();
        self.watch();
        for (word, names) in [("ended", names), ("begun", begun)].into_iter().filter(|(_, names)| !names.is_empty()) {
            print_message(&format!("configuration reloaded: {word}: {}", names.join(", ")));
        }
    }

    /// Publishes the current outputs to other threads, and tells each output whether it is the only one.
    pub(super) fn watch(&mut self) {
        let is_alone = self.outputs.len() == 1;
        self.outputs.iter_mut().for_each(|shipper| shipper.pending.output.set_alone(is_alone));
        let monitored =
            |shipper: &Shipper<T>| (shipper.target.to_string(), shipper.pending.output.new_monitor(), shipper.at_start);
        *self.monitors.lock() = self.outputs.iter().map(monitored).collect();
    }

    /// Returns a function that makes a line with the counts of all outputs.
    pub fn status_line(&self) -> impl Fn() -> String + Send + 'static {
        let monitors = self.monitors.clone();
        move || notes::status_line(monitors.lock().iter().map(|(_, monitor, _)| monitor.status()))
    }
}

/// True if both settings mean the same for the output to `target`.
fn is_alike(target: &Target, old: &ShipRequest, new: &ShipRequest) -> bool {
    let is_file = matches!(target.address, Address::File(_));
    let is_tls = target.may_use_tls();
    (old.when_full, old.queue_max, &old.spool) == (new.when_full, new.queue_max, &new.spool)
        && (!is_file || old.rotation == new.rotation)
        && (!is_tls || old.tls == new.tls)
}
