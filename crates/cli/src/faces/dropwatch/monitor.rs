//! Lines that dropwatch prints while it monitors.

use super::LOOK;
use crate::messages::{footer, say};
use crate::session::Session;
use ::drops::{DropCounter, DropOptions, DropScope, DropSource, Symbols};
use record::rows::Drops;
use record::{Accounting, Demand, Next, Source, field_index};
use sinks::face::dropwatch::{DropsAt, put_drops};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

/// The kernel gathers drops for as long before it tells of them.
const ROUND_NS: u64 = 1_000_000_000;

/// End of monitoring.
pub(super) enum MonitoringEnd {
    /// By the limit, or by a line.
    Stopped,
    /// By Ctrl-C, `exit`, or because nobody reads the output.
    Interrupted,
}

/// Drops that are being counted.
pub(super) struct Monitor<'s> {
    session: &'s Session,
    counter: RefCell<Option<DropCounter>>,
    symbols: Symbols,
    with_names: bool,
    stats: Accounting,
}

impl<'s> Monitor<'s> {
    /// Counts drops of every namespace from here on.
    pub(super) fn open(session: &'s Session, with_names: bool) -> Result<Monitor<'s>, String> {
        let counter = DropCounter::open(session.host(), DropScope::AllNetns, None);
        let counter = counter.map_err(|error| format!("Failed activation request, error: {error}"))?;
        let counter = RefCell::new(Some(counter));
        Ok(Monitor { session, counter, symbols: Symbols::default(), with_names, stats: Accounting::default() })
    }

    /// Prints what was dropped each second.
    pub(super) fn run(&mut self, limit: u64, lines: &Receiver<String>) -> Result<MonitoringEnd, String> {
        let mut shown = 0;
        let begin_ns = sys::clock::monotonic_ns();
        let ended = (1..).find_map(|round: u64| {
            let asked = self.wait(begin_ns.saturating_add(round.saturating_mul(ROUND_NS)), lines);
            let mut text = Vec::new();
            match self.put_round(limit, &mut shown, &mut text) {
                Err(error) => return Some(Err(error)),
                Ok(true) => {
                    text.extend_from_slice(b"Alert limit reached, deactivating!\n");
                    text.extend_from_slice(b"Deactivation requested, turning off monitoring\nGot a stop message\n");
                }
                Ok(false) if asked.is_some() => {
                    text.extend_from_slice(b"Waiting for deactivation ack...\nGot a stop message\n");
                }
                Ok(false) => {}
            }
            let is_over = limit > 0 && shown >= limit;
            match sys::Out::stdout().write_all(&text) {
                Ok(()) if is_over => Some(Ok(MonitoringEnd::Stopped)),
                Ok(()) => asked.map(Ok),
                Err(_) => Some(Ok(MonitoringEnd::Interrupted)),
            }
        });
        footer(&std::mem::take(&mut self.stats));
        ended.unwrap_or(Ok(MonitoringEnd::Stopped))
    }

    /// Waits for the end of a round; how monitoring shall end, if it was asked for before.
    fn wait(&mut self, end_ns: u64, lines: &Receiver<String>) -> Option<MonitoringEnd> {
        loop {
            if let Some(Err(error)) = self.counter.borrow_mut().as_mut().map(DropCounter::drain) {
                say(&format!("dropwatch: {error}"));
                return Some(MonitoringEnd::Interrupted);
            }
            // At the end of input monitoring goes on, as in the tool, which reads none meanwhile.
            match lines.try_recv().as_deref().map(str::trim) {
                Ok("stop") => return Some(MonitoringEnd::Stopped),
                Ok("exit") => return Some(MonitoringEnd::Interrupted),
                _ => {}
            }
            let now = sys::clock::monotonic_ns();
            if now >= end_ns {
                return None;
            }
            let look_ns = u64::try_from(LOOK.as_nanos()).unwrap_or(u64::MAX);
            if !self.session.sleep_until(end_ns.min(now.saturating_add(look_ns))) {
                return Some(MonitoringEnd::Interrupted);
            }
        }
    }

    /// Appends the lines of a round; true once there were as many as the limit.
    fn put_round(&mut self, limit: u64, shown: &mut u64, text: &mut Vec<u8>) -> Result<bool, String> {
        let host = self.session.host();
        let source = DropSource::new(host, DropOptions { scope: DropScope::AllNetns, all: true }, &self.counter);
        let fields: Vec<usize> =
            ["count", "place_address"].iter().filter_map(|name| field_index::<Drops>(name)).collect();
        let mut places: BTreeMap<u64, u64> = BTreeMap::new();
        let read = source.run(&Demand::new(&fields, Vec::new()), &mut |row| {
            *places.entry(row.place_address).or_default() += row.count;
            Next::More
        });
        self.stats.add(&read.map_err(|error| error.to_string())?);
        if self.with_names {
            self.symbols.find(host, places.keys().copied());
        }
        for (&address, &count) in &places {
            put_drops(text, &DropsAt { count, address, place: self.symbols.place(address) });
            *shown += 1;
            if limit > 0 && *shown >= limit {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
