//! The rows of `nat events`: via BPF if only new entries of one namespace are wanted, otherwise via netlink.
use std::cell::Cell;
use std::ops::ControlFlow;

use netlink::DumpError;
use record::rows::{NatEvent, NatEventKind, NatEvents, StatCounter, nat_event_need, nat_need};
use record::{
    Accounting, BackendLacks, Demand, Each, Next, Offer, SourceError, SourceFault, Stream, StreamState, Table,
};
use sys::{Errno, FoundNetns, Host, Missing, Modules, ProbeResult, SysError, clock};

use crate::backends::netlink::dump::dump_entries;
use crate::events::bpf::blocks::BpfEvents;
use crate::events::netlink::messages::{NetlinkEvents, event_ns};
use crate::events::netlink::nsid::{FindNamespaces, OtherNetnsOptions};
use crate::events::netlink::subscribe::{SubscribeOptions, groups};
use crate::events::pushdown::{WantedEvents, pushed_parts};
use crate::events::start_times::{self, StartTimes};
use crate::kernel_filter::KernelFilter;
use crate::sizes::Size;
use crate::table::{CtTable, NetnsRef};

/// Names the stream in messages to the user.
const WHAT: &str = "events of connection tracking";
const BPF: &str = "bpf";
const NETLINK: &str = "netlink";

/// `need` bits that the BPF program cannot provide when it sees the packet that creates an entry.
const LACKS_BPF: u64 = nat_event_need::MESSAGE
    | nat_need::LABELS
    | nat_need::HELPER
    | nat_need::MASTER
    | nat_need::SECCTX
    | nat_need::ID
    | nat_need::USES;

/// Minimum number of events between two dumps: dumps without a pause would leave no time for events.
///
/// Bound: events between two dumps of `--resync`. Beyond: the next dump waits for 100 ms without events, or for the
/// end; nothing is lost. By: clients with many connections.
const BETWEEN_DUMPS: u64 = 10_000;

/// The interface through which events are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsVia {
    /// Multicast messages of ctnetlink.
    Netlink,
    /// A BPF program that sees packets: new entries only.
    Bpf,
}

/// Options of a [`NatEventStream`].
pub struct FollowNat<'h> {
    /// The backend; with `None` the stream chooses.
    pub via: Option<EventsVia>,
    /// Size of the buffer for unread events, in bytes.
    pub buffer_bytes: u32,
    /// Inode of the calling thread's namespace.
    pub netns_id: u64,
    /// Finds the other namespaces, if all are followed.
    pub find: Option<OtherNetnsOptions>,
    /// Finds the namespaces to dump after events were lost; the calling thread's namespace needs no handle.
    pub resync: Option<FindNamespaces>,
    /// Also hands out the new events of entries whose end is shown, for a caller that needs both. New events that the
    /// filter excludes ([`NatEventStream::shows_kind`]) count as not received, and the caller must leave them out.
    pub always_new: bool,
    /// Returns true to end the run. Called some twenty times per second.
    pub stop: &'h dyn Fn() -> bool,
}

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
    counts: Counts,
    /// Number of received events that are not wanted.
    unwanted: u64,
    notes: Accounting,
    /// Why BPF is not used although it would be the better backend.
    shut: Option<String>,
    /// True if the user asked for BPF.
    forced_bpf: bool,
    /// The namespace's `insert_failed` counter at the start, if BPF reports entries before they are inserted.
    refused_before: Option<u64>,
}

enum EventBackend<'h> {
    Netlink(Box<NetlinkEvents<'h>>),
    Bpf(Box<BpfEvents<'h>>),
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

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    new: u64,
    update: u64,
    destroy: u64,
    live: u64,
}

impl Counts {
    fn add_event(&mut self, what: NatEventKind) {
        *match what {
            NatEventKind::New => &mut self.new,
            NatEventKind::Update => &mut self.update,
            NatEventKind::Destroy => &mut self.destroy,
            NatEventKind::Live => &mut self.live,
        } += 1;
    }

    fn total(self) -> u64 {
        self.new + self.update + self.destroy + self.live
    }
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
        let (packets, shut) = open_bpf_if_better(host, &follow, wanted, demand.need & LACKS_BPF != 0)?;
        let forced_bpf = follow.via == Some(EventsVia::Bpf) && !host.is_replay();
        let FollowNat { buffer_bytes, netns_id, find, resync, always_new, stop, .. } = follow;
        let everywhere = find.is_some();
        let ends = wanted.contains(NatEventKind::Destroy);
        let timed = (demand.wants("duration_us") || demand.wants("start")) && ends;
        let refused_before = packets.as_ref().filter(|_| !host.is_replay()).and_then(|_| insert_failed(netns_id));
        let backend = match packets {
            Some(packets) => EventBackend::Bpf(Box::new(packets)),
            None => {
                let remembers = !everywhere && settings.timestamp == Some(1);
                let begins = if (timed && !remembers) || (always_new && ends) { groups::NEW } else { 0 };
                let groups = wanted.groups() | begins;
                let listen = SubscribeOptions { groups, buffer_bytes, netns_id, find, stop };
                EventBackend::Netlink(Box::new(NetlinkEvents::open(host, listen).map_err(|error| error_of(&error))?))
            }
        };
        Ok(NatEventStream {
            host,
            backend,
            netns_id,
            wanted,
            start_times: timed.then(StartTimes::default),
            always_new,
            resync: resync.map(|find| Resync { find, answered: 0, told_before: 0 }),
            settings,
            counts: Counts::default(),
            unwanted: 0,
            notes,
            shut,
            forced_bpf,
            refused_before,
        })
    }

    /// A warning for the user at the start; `None` if all is well.
    pub fn caveat(&self) -> Option<String> {
        (self.settings.events == Some(0) && matches!(self.backend, EventBackend::Netlink(_))).then(|| {
            "this namespace reports no events: net.netfilter.nf_conntrack_events is 0 (1 or 2 enables them for new \
             entries)"
                .to_owned()
        })
    }

    /// Why BPF does not report new entries, although it could have.
    pub fn bpf_refusal(&self) -> Option<&str> {
        self.shut.as_deref()
    }

    /// True if events of this kind pass the filter.
    pub fn shows_kind(&self, kind: NatEventKind) -> bool {
        self.wanted.contains(kind)
    }

    fn next_netlink(&mut self, each: &mut Each<'_, NatEvents>) -> Result<StreamState, SysError> {
        let EventBackend::Netlink(events) = &mut self.backend else { return Ok(StreamState::Ended) };
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
                counts.add_event(told.kind);
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
        let EventBackend::Bpf(packets) = &mut self.backend else { return Ok(StreamState::Ended) };
        let (counts, unwanted) = (&mut self.counts, &mut self.unwanted);
        let wanted = self.wanted.contains(NatEventKind::New);
        packets.next(&mut |happened_ns, entry| {
            // A recording holds the events that were requested when it was made.
            if !wanted {
                *unwanted += 1;
                return Next::More;
            }
            counts.add_event(NatEventKind::New);
            each(&NatEvent { kind: NatEventKind::New, time_ns: happened_ns, duration_us: None, portid: 0, entry })
        })
    }

    fn received(&self) -> u64 {
        match &self.backend {
            EventBackend::Netlink(events) => events.received_messages(),
            EventBackend::Bpf(packets) => packets.received_events(),
        }
    }

    /// Dumps the live entries, if events were lost since the last dump. `is_quiet`: no event waits, or the stream
    /// ended.
    ///
    /// A loss during a dump appears in a later block and triggers the next dump, so no loss follows the last dump.
    fn resync(&mut self, is_quiet: bool, each: &mut Each<'_, NatEvents>) {
        let lost = match &self.backend {
            EventBackend::Netlink(events) => events.lost_messages(),
            EventBackend::Bpf(packets) => packets.lost_events(),
        };
        let told = self.counts.total();
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
            counts.add_event(NatEventKind::Live);
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
        let by_netlink = matches!(self.backend, EventBackend::Netlink(_));
        let before = count.filter(|count| by_netlink && *count > 0 && events == Some(2) && !self.wanted.only_new());
        if let Some(before) = before {
            let text = "entries already existed: the kernel reports no events of entries created while no program \
                        listened (net.netfilter.nf_conntrack_events is 2)";
            stats.add_reason(before, text);
        }
        if self.counts.destroy > 0 && acct == Some(0) {
            stats.add_reason(0, "bytes and packets are not counted here (net.netfilter.nf_conntrack_acct is 0)");
        }
        if let Some(start_times) = self.start_times.as_ref().filter(|start_times| start_times.unremembered > 0) {
            let text = format!("entries after the first {} have no duration", start_times::MAX);
            stats.incomplete(start_times.unremembered, text);
        }
        if !by_netlink {
            stats.add_reason(0, NOT_BY_BPF);
            let before = self.refused_before;
            let more = before.and_then(|before| insert_failed(self.netns_id)?.checked_sub(before));
            if let Some(more) = more.filter(|more| *more > 0) {
                stats.add_reason(more, REFUSED_ENTRY);
            }
        }
        if self.resync.is_some() && !self.wanted.contains(NatEventKind::Live) {
            stats.add_reason(0, "--resync shows no rows: the filter excludes the event live");
        }
        let Counts { new, update, destroy, live } = self.counts;
        let dumped = if live > 0 { format!(", {live} found by dumps") } else { String::new() };
        stats.add_reason(0, format!("{new} new entries, {update} updates, {destroy} destroyed{dumped}"));
    }
}

impl Stream<NatEvents> for NatEventStream<'_> {
    fn offer(&self, demand: &Demand<NatEvents>) -> Offer {
        let (backend, lacks, line) = match self.backend {
            EventBackend::Bpf(_) => (
                BPF,
                LACKS_BPF,
                format!("new entries via BPF, reported by the packet that creates the entry; {NOT_BY_BPF}"),
            ),
            EventBackend::Netlink(_) => {
                let why = self.shut.as_ref().map_or(String::new(), |why| format!("; not via BPF: {why}"));
                (NETLINK, 0, format!("events via netlink: the kernel's ctnetlink multicast groups{why}"))
            }
        };
        let backends = [(BPF, LACKS_BPF), (NETLINK, 0)].map(|(backend, lacks)| BackendLacks { backend, lacks });
        let backends = if self.forced_bpf { backends.to_vec() } else { Vec::new() };
        Offer { backend, pushed: pushed_parts(demand), lacks, backends, explain: vec![line] }
    }

    fn next(&mut self, _: &Demand<NatEvents>, each: &mut Each<'_, NatEvents>) -> Result<StreamState, SourceError> {
        let stopped = Cell::new(false);
        let mut each = |row: &NatEvent<'_>| {
            let next = each(row);
            stopped.set(stopped.get() || next == Next::Stop);
            next
        };
        let before = self.received();
        let tide = match self.backend {
            EventBackend::Netlink(_) => self.next_netlink(&mut each),
            EventBackend::Bpf(_) => self.next_bpf(&mut each),
        };
        let tide = tide.map_err(|error| error_of(&error))?;
        if !stopped.get() {
            // An empty block means that a burst is over.
            self.resync(tide == StreamState::Ended || self.received() == before, &mut each);
        }
        Ok(tide)
    }

    fn close(&mut self) -> Accounting {
        let mut stats = match &mut self.backend {
            EventBackend::Netlink(events) => events.close(),
            EventBackend::Bpf(packets) => packets.close(),
        };
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

/// The entries that the BPF program does not see.
const NOT_BY_BPF: &str = "BPF reports entries created by packets, not by processes (conntrack -I, conntrackd): --via \
                          netlink reports both";

/// The footnote for entries that the kernel refused after BPF had reported them.
const REFUSED_ENTRY: &str = "an entry was rejected after BPF had reported it, and its packet dropped \
                             (`insert_failed`: no free source port, or its hash chain is too long)";

/// `insert_failed` of the calling thread's namespace.
fn insert_failed(netns_id: u64) -> Option<u64> {
    let read = crate::stats::read(&Host::live(), netns_id, 0, None).ok()?;
    read.sum().get(StatCounter::InsertFailed)
}

/// Name of the BPF backend's stream in a recording.
fn key(netns_id: u64) -> String {
    format!("conntrack/new@{netns_id}")
}

/// Opens the BPF backend if it was requested or is the better one; if it could have been used but does not open,
/// returns the reason.
fn open_bpf_if_better<'h>(
    host: &'h Host,
    follow: &FollowNat<'h>,
    wanted: WantedEvents,
    lacks: bool,
) -> Result<(Option<BpfEvents<'h>>, Option<String>), SourceError> {
    let can = wanted.only_new() && follow.find.is_none();
    let asked = follow.via == Some(EventsVia::Bpf);
    let is_better = can && !lacks && follow.resync.is_none();
    let may = if host.is_replay() { host.contains(&key(follow.netns_id)) } else { asked || is_better };
    if !may || follow.via == Some(EventsVia::Netlink) {
        return Ok((None, None));
    }
    if !host.is_replay() && !can {
        return Err(unsupported_error(ONLY_NEW.into()));
    }
    match open_bpf(host, follow.netns_id, follow.buffer_bytes, follow.stop) {
        Ok(packets) => Ok((Some(packets), None)),
        Err(cause) if asked => Err(unsupported_error(cause)),
        Err(cause) => Ok((None, Some(cause.to_string()))),
    }
}

const ONLY_NEW: &str = "BPF reports new entries of one namespace: use `event = new`";

/// Why the BPF backend did not open.
type OpenError = Box<dyn std::error::Error + Send + Sync>;

#[cfg(feature = "bpf")]
fn open_bpf<'h>(
    host: &'h Host,
    netns_id: u64,
    buffer_bytes: u32,
    stop: &'h dyn Fn() -> bool,
) -> Result<BpfEvents<'h>, OpenError> {
    let packets = if host.is_replay() {
        None
    } else {
        Some(crate::events::bpf::ring::EventRing::open(host, buffer_bytes, stop).map_err(Box::new)?)
    };
    let not_live = || SysError::new("replay", WHAT, Errno::NOT_RECORDED);
    let blocks = host.stream(&key(netns_id), "", || Ok(Box::new(packets.ok_or_else(not_live)?)))?;
    Ok(BpfEvents::new(blocks, netns_id))
}

#[cfg(not(feature = "bpf"))]
fn open_bpf<'h>(host: &'h Host, netns_id: u64, _: u32, _: &'h dyn Fn() -> bool) -> Result<BpfEvents<'h>, OpenError> {
    if !host.is_replay() {
        return Err(sys::WITHOUT_BPF.into());
    }
    let blocks = host.stream(&key(netns_id), "", || Err(SysError::new("replay", WHAT, Errno::NOT_RECORDED)))?;
    Ok(BpfEvents::new(blocks, netns_id))
}

fn unsupported_error(cause: OpenError) -> SourceError {
    SourceError { what: "new conntrack entries via BPF", fault: SourceFault::Unsupported, cause }
}

fn error_of(error: &SysError) -> SourceError {
    let fault = if error.errno.is_denied() { SourceFault::Denied } else { SourceFault::Io };
    if error.errno == Errno::NOT_RECORDED {
        return SourceError { what: WHAT, fault: SourceFault::Unsupported, cause: NOT_RECORDED.into() };
    }
    SourceError { what: WHAT, fault, cause: Box::new(error.clone()) }
}

const NOT_RECORDED: &str = "not in the recording (`netwren nat events --record FILE` records them)";

/// Tries how events can be received here, for `netwren support`. Loads, attaches and removes the BPF program, which
/// takes some milliseconds.
pub fn probe_events(host: &Host, modules: &Modules<'_>) -> ProbeResult {
    if let Some(why) = crate::probe::reason_not_to_ask(modules) {
        return ProbeResult::new_missing(Missing::Module, why);
    }
    let listen =
        SubscribeOptions { groups: groups::ALL, buffer_bytes: PROBED_BYTES, netns_id: 0, find: None, stop: &|| true };
    if let Err(error) = NetlinkEvents::open(host, listen) {
        return ProbeResult::new_refused(Some(error.errno), error.to_string());
    }
    match open_bpf(host, 0, PROBED_BYTES, &|| true) {
        Ok(_) => ProbeResult::new_working("via netlink; new entries also via BPF"),
        Err(why) => ProbeResult::new_working(format!("via netlink; new entries not via BPF: {why}")),
    }
}

/// Buffer size of a probe, which reads nothing.
const PROBED_BYTES: u32 = 4096;
