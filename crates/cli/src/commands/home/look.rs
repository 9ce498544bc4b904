//! Takes one look at the host: its readings and their order.

use super::HomeProvider;
use engine::OneRound;
use lookups::asked;
use lookups::enrich::Enrichment;
use lookups::pillars;
use lookups::session::Session;
use probes::forgive_missing;
use probes::home::{ObjectRows, add_findings, add_samples, losses_of};
use record::rows::HomeScreen;
use record::{Accounting, LookupId, Lookups, SourceError, SourceFault};
use std::time::Duration;
use sys::Host;
use tables::SourceProvider;

/// The time from the start of a look to the second reading of the counters. Time spent before the first reading is
/// subtracted, so that a look takes as long on a busy host. The work after the second reading (mostly names of kernel
/// functions) should take at most 0.3 s, or the user waits too long.
pub(super) const WINDOW: Duration = Duration::from_millis(900);

/// Minimum time between the two readings.
const WINDOW_MIN: Duration = Duration::from_millis(500);

/// Lookups of owners, names and interfaces.
const LOOKUPS: [LookupId; 4] = [LookupId::Owners, LookupId::Containers, LookupId::Netns, LookupId::Ifaces];

/// Reads everything that the screen shows. If a part fails, it is empty and `unseen` has a message.
///
/// Drops, flows and counters cover the same second: each is read once at the start of the look, and again at its end.
pub(super) fn look(provider: &HomeProvider, session: &Session) -> (HomeScreen, Accounting) {
    let begun_ns = sys::clock::monotonic_ns();
    let (mut unseen, mut first) = (Unseen::default(), Accounting::default());
    let by_program = open_drops(provider, session, &mut unseen);
    let wanted = asked::lookups(session.host(), provider.flows.demand(), LOOKUPS.to_vec(), &mut unseen.part);
    unseen.close("owners");
    let is_first = provider.is_first.replace(false);
    // The second readings will have the same errors and report them.
    let before = Enrichment::read(session, &wanted, if is_first { &mut first } else { &mut unseen.part });
    if is_first {
        provider.flow_reader.remember(session, before.lookups(), &provider.flows);
        provider.watch.shorten(window(session.host(), begun_ns));
    }
    let samples = provider.watch.samples(session, &before.lookups(), &mut unseen.part).unwrap_or_else(|error| {
        unseen.failed(&error);
        Vec::new()
    });
    forgive_missing(&mut unseen.part);
    unseen.close("counters");
    let after = is_first.then(|| Enrichment::read(session, &wanted, &mut unseen.part));
    unseen.close("owners");
    let mut screen = of_host(session.host());
    let lookups = after.as_ref().unwrap_or(&before).lookups();
    let tables = Tables { provider, session, lookups };
    tables.read_sockets(&mut screen, &mut unseen);
    tables.read_flows(&mut screen, &mut unseen);
    if !by_program || !tables.read_drops(&mut screen, &mut unseen) {
        (screen.drops, screen.drops_via) = (losses_of(&samples, &lookups), "counters");
    }
    add_samples(&samples, &lookups, &mut screen);
    add_findings(&samples, &lookups, &mut screen);
    let stats = unseen.finish(&mut screen);
    (screen, stats)
}

/// The time left for the window; None in a replay.
fn window(host: &Host, begun_ns: u64) -> Option<Duration> {
    let gone = Duration::from_nanos(sys::clock::monotonic_ns().saturating_sub(begun_ns));
    (!host.is_replay()).then(|| WINDOW.saturating_sub(gone).max(WINDOW_MIN))
}

/// The host's name, kernel and uptime.
fn of_host(host: &Host) -> HomeScreen {
    let (mut name, mut uptime) = (Vec::new(), Vec::new());
    // The screen is usable without them.
    let _ = host.read_file("/proc/sys/kernel/hostname", &mut name);
    let _ = host.read_file("/proc/uptime", &mut uptime);
    let seconds = String::from_utf8_lossy(&uptime).split('.').next().and_then(|text| text.parse().ok());
    let kernel = host.kernel();
    HomeScreen {
        time_ns: host.now().since_1970_ns(),
        host: name.trim_ascii().to_vec(),
        kernel: format!("{} {}", kernel.release, kernel.machine),
        uptime_s: seconds,
        ..HomeScreen::default()
    }
}

/// Saves the data that the screen needs in addition to tables.
pub(super) fn save(session: &Session, _: &mut Accounting) -> u64 {
    of_host(session.host());
    0
}

/// Starts counting drops; false if no BPF program can.
fn open_drops(provider: &HomeProvider, session: &Session, unseen: &mut Unseen) -> bool {
    let opened = provider.watch.open_drops(session);
    opened.map_err(|error| unseen.causes_of_drops(&error.into(), session.host())).is_ok()
}

/// Reads the tables of other commands.
struct Tables<'t> {
    provider: &'t HomeProvider,
    session: &'t Session,
    lookups: Lookups<'t>,
}

impl Tables<'_> {
    /// Sockets by protocol and state.
    fn read_sockets(&self, screen: &mut HomeScreen, unseen: &mut Unseen) {
        let mut sockets = ObjectRows::new(HomeScreen::SOCKETS);
        let read = pillars::with_sockets(self.session, None, &|_| true, |source| {
            let stop = || self.session.interrupted();
            self.provider.sockets.run(&mut OneRound::new(source, &self.lookups, &stop), &mut sockets)
        });
        unseen.add("sockets", read.map(|run| run.stats));
        screen.sockets = sockets.rows;
    }

    /// The flows with the most traffic since the previous reading.
    fn read_flows(&self, screen: &mut HomeScreen, unseen: &mut Unseen) {
        let mut flows = ObjectRows::new(HomeScreen::FLOWS);
        let reader = &self.provider.flow_reader;
        let read = reader.with_source(self.session, self.lookups, &mut unseen.part, |source| {
            let stop = || self.session.interrupted();
            self.provider.flows.run(&mut OneRound::new(source, &self.lookups, &stop), &mut flows)
        });
        let stats = read.map(|run| run.stats);
        screen.flows_total = stats.as_ref().map_or(0, |stats| stats.emitted + stats.cut);
        unseen.add("flows", stats);
        screen.flows = flows.rows;
    }

    /// Drops counted by the BPF program; false if it cannot be read.
    fn read_drops(&self, screen: &mut HomeScreen, unseen: &mut Unseen) -> bool {
        let source = self.provider.watch.same_drops(self.session);
        let mut drops = ObjectRows::new(HomeScreen::DROPS);
        let stop = || self.session.interrupted();
        match self.provider.drops.run(&mut OneRound::new(&source, &self.lookups, &stop), &mut drops) {
            Ok(run) => {
                unseen.add::<SourceError>("drops", Ok(run.stats));
                (screen.drops, screen.drops_via) = (drops.rows, "bpf");
                return true;
            }
            Err(engine::RunError::Source(error)) => unseen.causes_of_drops(&error, self.session.host()),
            Err(error) => unseen.add("drops", Err(error)),
        }
        false
    }
}

/// Missing data of the screen, by part.
#[derive(Default)]
struct Unseen {
    /// The row counts of the current part.
    part: Accounting,
    texts: Vec<String>,
    /// Notes for the screen only, which do not mean that data is missing.
    notes: Vec<String>,
    /// True if the screen lacks data that was available.
    is_partial: bool,
    via: Vec<&'static str>,
}

impl Unseen {
    /// Ends a part: its reasons count only if data is missing; others become notes.
    fn close(&mut self, name: &str) {
        let part = std::mem::take(&mut self.part);
        self.via.extend(part.via.iter().filter(|via| !self.via.contains(via)).copied().collect::<Vec<_>>());
        if !part.is_partial() {
            return;
        }
        self.is_partial = true;
        for line in runtime::messages::footer_lines(&part) {
            let line = if line.starts_with(name) { line } else { format!("{name}: {line}") };
            if !self.texts.contains(&line) {
                self.texts.push(line);
            }
        }
    }

    /// Adds the result of a part.
    fn add<E: std::fmt::Display>(&mut self, name: &str, read: Result<Accounting, E>) {
        match read {
            Ok(stats) => self.part.add(&stats),
            Err(error) => self.failed(&error),
        }
        self.close(name);
    }

    /// Notes a part that could not be read at all.
    fn failed(&mut self, error: &dyn std::fmt::Display) {
        self.part.incomplete(1, error.to_string());
    }

    /// Notes that drops come from counters only. If a privilege is missing, other users would see more, so the screen
    /// is partial; without BPF, or in a recording without drops, nothing more is available.
    fn causes_of_drops(&mut self, error: &SourceError, host: &Host) {
        let text = format!("causes of drops are not available: {}; drop counters are shown", error.cause);
        if error.fault == SourceFault::Unsupported || host.is_replay() {
            return self.notes.push(text);
        }
        self.is_partial = true;
        self.texts.push(text);
    }

    /// Puts the messages on the screen; returns the row counts of the look.
    fn finish(self, screen: &mut HomeScreen) -> Accounting {
        let mut stats = Accounting { incomplete: self.is_partial, via: self.via, ..Accounting::default() };
        if self.is_partial {
            self.texts.iter().for_each(|text| stats.add_reason(1, text.clone()));
        }
        screen.unseen = [self.texts, self.notes].concat();
        stats
    }
}
