//! Monitors drops and prints dropwatch's lines.

use super::{DropwatchSettings, LOOK};
use crate::dropwatch::output::{AlertPlace, DropsAt, PacketAlert, put_drops, put_hardware_drops, put_packet};
use ::drops::{DropAlert, DropCounter, DropMonitor, DropOptions, DropOrigins, DropScope, DropSource, Symbols};
use lookups::session::Session;
use record::rows::Drops;
use record::{Accounting, Demand, Next, Source, field_index};
use runtime::local_time::local_time;
use runtime::messages::{footer, print_message};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

/// The kernel collects drops for the same time before it reports them.
const ROUND_NS: u64 = 1_000_000_000;

/// How monitoring ended.
pub(super) enum MonitoringEnd {
    /// By the limit, Ctrl-C or `stop`: the prompt continues.
    Stopped,
    /// By `exit`, another signal or a closed output: the run ends as well.
    Interrupted,
}

/// The source of drops.
enum DropTeller {
    /// Sums, counted at the tracepoint.
    Counter(RefCell<Option<DropCounter>>),
    /// Single packets, from the kernel's drop monitor.
    Monitor(DropMonitor),
}

/// Packets of one round, by location and by trap.
#[derive(Default)]
struct RoundDrops {
    places: BTreeMap<u64, u64>,
    traps: BTreeMap<Box<[u8]>, u64>,
}

impl RoundDrops {
    /// Counts one drop. Memory is bounded by the number of locations and traps in the kernel's code.
    fn add(&mut self, alert: &DropAlert<'_>) {
        match alert.trap {
            None => *self.places.entry(alert.place).or_default() += 1,
            Some((trap, _)) => *self.traps.entry(trap.into()).or_default() += 1,
        }
    }
}

/// A running monitor.
pub(super) struct Monitor<'s> {
    session: &'s Session,
    teller: DropTeller,
    settings: DropwatchSettings,
    symbols: Symbols,
    with_names: bool,
    round: RoundDrops,
    /// Number of lines of drops, or of packets, shown so far.
    shown: u64,
    /// Lines for packets not written yet.
    text: Vec<u8>,
    stats: Accounting,
}

impl<'s> Monitor<'s> {
    /// Starts to monitor the drops of every namespace.
    pub(super) fn open(
        session: &'s Session,
        with_names: bool,
        settings: DropwatchSettings,
    ) -> Result<Monitor<'s>, String> {
        let host = session.host();
        let teller = match settings.origins() {
            DropOrigins::Software if !settings.is_packet => DropCounter::open(host, DropScope::AllNetns, None)
                .map(|counter| DropTeller::Counter(RefCell::new(Some(counter)))),
            // For hardware drops only the trap is shown.
            origins => {
                let bytes = if settings.is_packet { settings.trunc } else { 1 };
                DropMonitor::open(host, origins, bytes, settings.queue).map(DropTeller::Monitor)
            }
        };
        let teller = teller.map_err(|error| format!("Failed activation request, error: {error}"))?;
        let (symbols, round, text, stats) = Default::default();
        Ok(Monitor { session, teller, settings, symbols, with_names, round, shown: 0, text, stats })
    }

    /// Prints drops: packets at once, sums every second.
    pub(super) fn run(&mut self, lines: &Receiver<String>) -> Result<MonitoringEnd, String> {
        let begin_ns = sys::clock::monotonic_ns();
        let ended = (1..).find_map(|round: u64| {
            let asked = self.wait(begin_ns.saturating_add(round.saturating_mul(ROUND_NS)), lines);
            let mut text = Vec::new();
            if let Err(error) = self.put_round(&mut text) {
                return Some(Err(error));
            }
            if self.is_over() {
                text.extend_from_slice(b"Alert limit reached, deactivating!\n");
                text.extend_from_slice(b"Deactivation requested, turning off monitoring\n");
            }
            if self.is_over() || asked.is_some() {
                text.extend_from_slice(b"Got a stop message\n");
            }
            match sys::Out::stdout().write_all(&text) {
                Ok(()) if self.is_over() => Some(Ok(MonitoringEnd::Stopped)),
                Ok(()) => asked.map(Ok),
                Err(_) => Some(Ok(MonitoringEnd::Interrupted)),
            }
        });
        self.count_lost();
        footer(&std::mem::take(&mut self.stats));
        ended.unwrap_or(Ok(MonitoringEnd::Stopped))
    }

    fn is_over(&self) -> bool {
        self.settings.limit > 0 && self.shown >= self.settings.limit
    }

    /// Waits for the end of a round. Returns the reason if monitoring ends before it.
    fn wait(&mut self, end_ns: u64, lines: &Receiver<String>) -> Option<MonitoringEnd> {
        loop {
            if let Err(error) = self.take() {
                print_message(&format!("dropwatch: {error}"));
                return Some(MonitoringEnd::Interrupted);
            }
            // At end of input, monitoring continues as in the tool, which reads no input during monitoring.
            match lines.try_recv().as_deref().map(str::trim) {
                Ok("stop") => return Some(MonitoringEnd::Stopped),
                Ok("exit") => return Some(MonitoringEnd::Interrupted),
                _ => {}
            }
            let now = sys::clock::monotonic_ns();
            if now >= end_ns || self.is_over() {
                return None;
            }
            let look_ns = u64::try_from(LOOK.as_nanos()).unwrap_or(u64::MAX);
            if !self.session.sleep_until(end_ns.min(now.saturating_add(look_ns))) {
                let is_ctrl_c = self.session.waits().take_interrupt();
                return Some(if is_ctrl_c { MonitoringEnd::Stopped } else { MonitoringEnd::Interrupted });
            }
        }
    }

    /// Takes pending drops, and writes single packets.
    fn take(&mut self) -> Result<(), String> {
        let (settings, shown, text, round) = (self.settings, &mut self.shown, &mut self.text, &mut self.round);
        match &mut self.teller {
            DropTeller::Counter(counter) => {
                counter.borrow_mut().as_mut().map_or(Ok(()), DropCounter::drain).map_err(|error| error.to_string())?;
            }
            DropTeller::Monitor(monitor) => {
                let taken = monitor.take(&mut |alert| match settings.is_packet {
                    true if settings.limit > 0 && *shown >= settings.limit => {}
                    true => {
                        *shown += 1;
                        put_packet(text, &packet(alert));
                    }
                    false => round.add(alert),
                });
                taken.map_err(|error| error.to_string())?;
            }
        }
        // Stdout is closed; the end of the round will detect that.
        let _ = sys::Out::stdout().write_all(&std::mem::take(text));
        Ok(())
    }

    /// Adds the sums that the counter collected in a round.
    fn read_counter(&mut self) -> Result<(), String> {
        let DropTeller::Counter(counter) = &self.teller else { return self.take() };
        let options = DropOptions { scope: DropScope::AllNetns, all: true, sums_rounds: false };
        let source = DropSource::new(self.session.host(), options, counter);
        let fields: Vec<usize> =
            ["count", "place_address"].iter().filter_map(|name| field_index::<Drops>(name)).collect();
        let places = &mut self.round.places;
        let read = source.run(&Demand::new(&fields, Vec::new()), &mut |row| {
            *places.entry(row.place_address).or_default() += row.count;
            Next::More
        });
        self.stats.add(&read.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Appends the lines of a round, up to the limit.
    fn put_round(&mut self, text: &mut Vec<u8>) -> Result<(), String> {
        self.read_counter()?;
        let RoundDrops { places, traps } = std::mem::take(&mut self.round);
        if self.with_names {
            self.symbols.find(self.session.host(), places.keys().copied());
        }
        for (&address, &count) in &places {
            if self.is_over() {
                return Ok(());
            }
            put_drops(text, &DropsAt { count, address, place: self.symbols.locate(address) });
            self.shown += 1;
        }
        for (trap, &count) in &traps {
            if self.is_over() {
                return Ok(());
            }
            put_hardware_drops(text, count, trap);
            self.shown += 1;
        }
        Ok(())
    }

    /// Reports the drops that the drop monitor lost.
    fn count_lost(&mut self) {
        let DropTeller::Monitor(monitor) = &self.teller else { return };
        match monitor.lost() {
            Ok(0) => {}
            Ok(lost) => {
                self.stats.lost += lost;
                self.stats.add_reason(lost, "a drop is not shown: they occurred faster than they could be shown");
            }
            Err(error) => {
                self.stats.incomplete(1, error.to_string());
            }
        }
    }
}

/// Converts an alert to the packet that the face prints.
fn packet<'a>(alert: &DropAlert<'a>) -> PacketAlert<'a> {
    const SECOND_NS: u64 = 1_000_000_000;
    let second = i64::try_from(alert.wall_ns / SECOND_NS).unwrap_or(0);
    PacketAlert {
        place: match alert.trap {
            None => AlertPlace::Function(alert.symbol, alert.place),
            Some((trap, group)) => AlertPlace::Trap(trap, group),
        },
        port: (alert.ifindex, alert.iface),
        time: (local_time(second), alert.wall_ns % SECOND_NS),
        ethertype: alert.ethertype,
        lengths: (alert.payload.len(), alert.bytes),
        reason: alert.reason,
    }
}
