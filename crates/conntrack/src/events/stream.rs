//! The rows of `nat events`.
use std::cell::Cell;
use std::ops::ControlFlow;

use netlink::DumpError;
use record::rows::{NatEvent, NatEventKind, NatEvents};
use record::{Accounting, Demand, Each, Next, Offer, SourceError, SourceFault, Stream, StreamState, Table};
use sys::{Errno, FoundNetns, Host, SysError, clock};

use crate::backends::netlink::dump::dump_entries;
use crate::events::backend::{EventBackend, WHAT, open_bpf_if_better};
use crate::events::netlink::messages::{NetlinkEvents, event_ns};
use crate::events::netlink::nsid::FindNamespaces;
use crate::events::netlink::subscribe::{SubscribeOptions, groups};
use crate::events::options::FollowNat;
use crate::events::pushdown::WantedEvents;
use crate::events::start_times::{self, StartTimes};
use crate::kernel_filter::KernelFilter;
use crate::sizes::Size;
use crate::table::{CtTable, NetnsRef};

/// Minimum number of events between two dumps: dumps without a pause would leave no time for events.
///
/// Bound: events between two dumps of `--resync`. Beyond: the next dump waits for 100 ms without events, or for the
/// end; nothing is lost. By: clients with many connections.
const BETWEEN_DUMPS: u64 = 10_000;

/// The stream of events from now on.
pub struct NatEventStream<'h> {
    host: &'h Host,
    backend: EventBackend<'h>,
    netns_id: u64,
    wanted: WantedEvents,
    start_times: Option<StartTimes>,
    always_new: bool,
    resync: Option<Resync>,
    settings: Settings,
    /// Numbers of rows by [`NatEventKind`].
    counts: [u64; 4],
    /// Number of received events that are not wanted.
    unwanted: u64,
    notes: Accounting,
}

/// Maximum number of dumps of one table if it changes or is resized during each. After that entries may be missing,
/// which is reported.
///
/// Bound: dumps of a table that changes during each of them. Beyond: the table counts as incomplete (exit code 3). By:
/// clients with many connections; root, by resizing.
const PASSES: u32 = 4;

/// How a dump of the live entries ended.
enum LiveDumpEnd {
    Whole,
    /// Entries may have been skipped.
    Changed,
    /// The consumer wants no more rows.
    Stopped,
    Failed(DumpError),
}

struct Resync {
    find: FindNamespaces,
    /// Number of losses that a dump has made up for.
    answered: u64,
    told_before: u64,
}

/// Sysctls of the namespace, `net.netfilter.nf_conntrack_…`; `None` if they could not be read.
#[derive(Debug, Clone, Copy, Default)]
struct Settings {
    events: Option<u64>,
    timestamp: Option<u64>,
    acct: Option<u64>,
    count: Option<u64>,
}

impl Settings {
    fn read(host: &Host) -> Settings {
        let mut text = Vec::new();
        let mut number = |name: &str| {
            host.read_file(&format!("/proc/sys/net/netfilter/nf_conntrack_{name}"), &mut text).ok()?;
            std::str::from_utf8(&text).ok()?.trim().parse().ok()
        };
        Settings {
            events: number("events"),
            timestamp: number("timestamp"),
            acct: number("acct"),
            count: number("count"),
        }
    }
}

impl<'h> NatEventStream<'h> {
    /// Starts to follow the events that `demand` asks for: those after the return are reported.
    pub fn open(
        host: &'h Host,
        demand: &Demand<NatEvents>,
        follow: FollowNat<'h>,
    ) -> Result<NatEventStream<'h>, SourceError> {
        let wanted = WantedEvents::from_demand(demand);
        let notes = note_requested_kinds(host, wanted);
        let settings = Settings::read(host);
        let bpf = open_bpf_if_better(host, &follow, wanted, demand.need)?;
        let FollowNat { buffer_bytes, netns_id, find, resync, always_new, stop, .. } = follow;
        let ends = wanted.contains(NatEventKind::Destroy);
        let timed = (demand.wants("duration_us") || demand.wants("start")) && ends;
        let open_netlink = |not_bpf| {
            let remembers = find.is_none() && settings.timestamp == Some(1);
            let begins = if (timed && !remembers) || (always_new && ends) { groups::NEW } else { 0 };
            let groups = wanted.groups() | begins;
            let listen = SubscribeOptions { groups, buffer_bytes, netns_id, find, stop };
            let events = Box::new(NetlinkEvents::open(host, listen).map_err(|error| error_of(&error))?);
            Ok(EventBackend::Netlink { events, not_bpf })
        };
        Ok(NatEventStream {
            host,
            backend: bpf.or_else(open_netlink)?,
            netns_id,
            wanted,
            start_times: timed.then(StartTimes::default),
            always_new,
            resync: resync.map(|find| Resync { find, answered: 0, told_before: 0 }),
            settings,
            counts: [0; 4],
            unwanted: 0,
            notes,
        })
    }

    /// A warning for the user at the start; `None` if all is well.
    pub fn caveat(&self) -> Option<String> {
        (self.settings.events == Some(0) && matches!(self.backend, EventBackend::Netlink { .. })).then(|| {
            "this namespace reports no events: net.netfilter.nf_conntrack_events is 0 (1 or 2 enables them for new \
             entries)"
                .to_owned()
        })
    }

    /// Why BPF does not report new entries, although it could have.
    pub fn bpf_refusal(&self) -> Option<&str> {
        let EventBackend::Netlink { not_bpf, .. } = &self.backend else { return None };
        not_bpf.as_deref()
    }

    /// True if events of this kind pass the filter.
    pub fn shows_kind(&self, kind: NatEventKind) -> bool {
        self.wanted.contains(kind)
    }

    fn next_netlink(&mut self, each: &mut Each<'_, NatEvents>) -> Result<StreamState, SysError> {
        let EventBackend::Netlink { events, .. } = &mut self.backend else { return Ok(StreamState::Ended) };
        let (counts, wanted) = (&mut self.counts, self.wanted);
        let (start_times, unwanted, always_new) = (&mut self.start_times, &mut self.unwanted, self.always_new);
        events.next_entries(&mut |told, entry| {
            let happened_ns = event_ns(told).unwrap_or(told.received_ns);
            let mut duration_us = None;
            if let Some(start_times) = start_times {
                match told.kind {
                    NatEventKind::New => start_times.begin(entry, happened_ns),
                    NatEventKind::Destroy => duration_us = start_times.end(entry, happened_ns),
                    _ => {}
                }
            }
            // New entries may be received only for their start time, or for the caller.
            if wanted.contains(told.kind) {
                counts[told.kind as usize] += 1;
            } else {
                *unwanted += 1;
                if told.kind != NatEventKind::New || !always_new {
                    return Next::More;
                }
            }
            each(&NatEvent { kind: told.kind, time_ns: happened_ns, duration_us, portid: told.portid, entry })
        })
    }

    fn next_bpf(&mut self, each: &mut Each<'_, NatEvents>) -> Result<StreamState, SysError> {
        let EventBackend::Bpf { events, .. } = &mut self.backend else { return Ok(StreamState::Ended) };
        let (counts, unwanted) = (&mut self.counts, &mut self.unwanted);
        let wanted = self.wanted.contains(NatEventKind::New);
        events.next(&mut |happened_ns, entry| {
            // A recording holds the events that were requested when it was made.
            if !wanted {
                *unwanted += 1;
                return Next::More;
            }
            counts[NatEventKind::New as usize] += 1;
            each(&NatEvent { kind: NatEventKind::New, time_ns: happened_ns, duration_us: None, portid: 0, entry })
        })
    }

    /// Dumps the live entries, if events were lost since the last dump. `is_quiet`: no event waits, or the stream
    /// ended.
    ///
    /// A loss during a dump appears in a later block and triggers the next dump, so no loss follows the last dump.
    fn resync(&mut self, is_quiet: bool, each: &mut Each<'_, NatEvents>) {
        let lost = self.backend.lost();
        let told = self.counts.iter().sum::<u64>();
        let Some(resync) = &mut self.resync else { return };
        let is_soon = resync.told_before != 0 && told < resync.told_before + BETWEEN_DUMPS;
        if lost == resync.answered || (is_soon && !is_quiet) || !self.wanted.contains(NatEventKind::Live) {
            return;
        }
        (resync.answered, resync.told_before) = (lost, told.max(1));
        let own = self.netns_id;
        let found = if self.host.is_replay() { Vec::new() } else { (resync.find)() };
        let alone = [FoundNetns::current(own)];
        let places = if found.is_empty() { &alone[..] } else { &found };
        for place in places {
            let netns = if place.netns_id == own { None } else { place.netns() };
            if netns.is_none() && place.netns_id != own {
                // The namespace was removed together with its entries.
                continue;
            }
            let place = NetnsRef { netns: netns.as_ref(), netns_id: place.netns_id };
            for pass in 1..=PASSES {
                match self.dump_live_entries(place, each) {
                    LiveDumpEnd::Whole | LiveDumpEnd::Stopped => break,
                    LiveDumpEnd::Changed if pass < PASSES => {}
                    LiveDumpEnd::Changed => {
                        self.notes.incomplete(1, "a table changed while it was dumped: current entries may be missing");
                    }
                    LiveDumpEnd::Failed(error) => {
                        self.notes.incomplete(1, format!("dumps after events were lost: {error}"));
                        break;
                    }
                }
            }
        }
    }

    /// One pass over one namespace's table; its rows have the event `live`.
    fn dump_live_entries(&mut self, place: NetnsRef<'_>, each: &mut Each<'_, NatEvents>) -> LiveDumpEnd {
        let counts = &mut self.counts;
        let now_ns = clock::wall_ns();
        let buckets = || Size::of_buckets(self.host, place).read();
        let before = buckets();
        let found = &mut self.notes.seen;
        let dumped = dump_entries(self.host, place, CtTable::Conntrack, &KernelFilter::default(), "", |entry, _| {
            *found += 1;
            counts[NatEventKind::Live as usize] += 1;
            match each(&NatEvent { kind: NatEventKind::Live, time_ns: now_ns, duration_us: None, portid: 0, entry }) {
                Next::More => ControlFlow::Continue(()),
                Next::Stop => ControlFlow::Break(()),
            }
        });
        match dumped {
            Ok(dumped) => {
                self.notes.seen += dumped.malformed;
                self.notes.failed += dumped.malformed;
                self.notes.unknown_attrs += dumped.unknown_attrs;
                match (dumped.end.stopped, dumped.end.interrupted || buckets() != before) {
                    (true, _) => LiveDumpEnd::Stopped,
                    (false, true) => LiveDumpEnd::Changed,
                    (false, false) => LiveDumpEnd::Whole,
                }
            }
            Err(error) => LiveDumpEnd::Failed(error),
        }
    }

    fn add_notes(&self, stats: &mut Accounting) {
        let Settings { events, acct, count, .. } = self.settings;
        let by_netlink = matches!(self.backend, EventBackend::Netlink { .. });
        let before = count.filter(|count| by_netlink && *count > 0 && events == Some(2) && !self.wanted.only_new());
        if let Some(before) = before {
            let text = "entries already existed: the kernel reports no events of entries created while no program \
                        listened (net.netfilter.nf_conntrack_events is 2)";
            stats.add_reason(before, text);
        }
        let [new, update, destroy, live] = self.counts;
        if destroy > 0 && acct == Some(0) {
            stats.add_reason(0, "bytes and packets are not counted here (net.netfilter.nf_conntrack_acct is 0)");
        }
        if let Some(start_times) = self.start_times.as_ref().filter(|start_times| start_times.unremembered > 0) {
            let text = format!("entries after the first {} have no duration", start_times::MAX);
            stats.incomplete(start_times.unremembered, text);
        }
        self.backend.add_notes(self.netns_id, stats);
        if self.resync.is_some() && !self.wanted.contains(NatEventKind::Live) {
            stats.add_reason(0, "--resync shows no rows: the filter excludes the event live");
        }
        let dumped = if live > 0 { format!(", {live} found by dumps") } else { String::new() };
        stats.add_reason(0, format!("{new} new entries, {update} updates, {destroy} destroyed{dumped}"));
    }
}

impl Stream<NatEvents> for NatEventStream<'_> {
    fn offer(&self, demand: &Demand<NatEvents>) -> Offer {
        self.backend.offer(demand)
    }

    fn next(&mut self, _: &Demand<NatEvents>, each: &mut Each<'_, NatEvents>) -> Result<StreamState, SourceError> {
        let stopped = Cell::new(false);
        let mut each = |row: &NatEvent<'_>| {
            let next = each(row);
            stopped.set(stopped.get() || next == Next::Stop);
            next
        };
        let before = self.backend.received();
        let tide = match self.backend {
            EventBackend::Netlink { .. } => self.next_netlink(&mut each),
            EventBackend::Bpf { .. } => self.next_bpf(&mut each),
        };
        let tide = tide.map_err(|error| error_of(&error))?;
        if !stopped.get() {
            // An empty block means that a burst is over.
            self.resync(tide == StreamState::Ended || self.backend.received() == before, &mut each);
        }
        Ok(tide)
    }

    fn close(&mut self) -> Accounting {
        let mut stats = self.backend.close();
        stats.add(&self.notes);
        // Events received only for their start time or for the caller are not rows.
        stats.seen -= self.unwanted;
        self.add_notes(&mut stats);
        stats
    }
}

/// Live, notes in the recording which events are requested; in a replay, reports wanted events that were not recorded.
fn note_requested_kinds(host: &Host, wanted: WantedEvents) -> Accounting {
    const KINDS: [NatEventKind; 3] = [NatEventKind::New, NatEventKind::Update, NatEventKind::Destroy];
    let names = || KINDS.into_iter().filter(|kind| wanted.contains(*kind)).map(NatEventKind::name);
    host.note_requested(NatEvents::NAME, &mut names());
    let missing: Vec<&str> = names().filter(|name| host.was_requested(NatEvents::NAME, name) == Some(false)).collect();
    let mut notes = Accounting::default();
    if !missing.is_empty() {
        notes.unanswered = true;
        let (words, list) = (missing.join(" and "), missing.join(","));
        let text = format!(
            "the recording holds no {words} events: the run did not listen to them \
             (`netwren nat events --event {list} --record FILE` does)"
        );
        notes.add_reason(0, text);
    }
    notes
}

fn error_of(error: &SysError) -> SourceError {
    let fault = if error.errno.is_denied() { SourceFault::Denied } else { SourceFault::Io };
    if error.errno == Errno::NOT_RECORDED {
        return SourceError { what: WHAT, fault: SourceFault::Unsupported, cause: NOT_RECORDED.into() };
    }
    SourceError { what: WHAT, fault, cause: Box::new(error.clone()) }
}

const NOT_RECORDED: &str = "not in the recording (`netwren nat events --record FILE` records them)";
