//! Gathers the samples for checks: two readings of counters and sockets, and settings.

use super::super::counters::CounterProvider;
use super::super::saved;
use super::super::source_provider::SourceProvider;
use super::descriptors;
use super::surroundings::{self, DropWatch};
use crate::commands::lacks::note;
use ::drops::DropCounter;
use doctor::checks::{Holder, SETTINGS, SOCKETS_MAX, Sample, SocketCensus};
use lookups::lazy_ifaces::NumberedIfaces;
use lookups::pillars;
use lookups::session::Session;
use record::rows::{KernelCounters, Socket, Sockets};
use record::{Accounting, Demand, Get, Key, Lookup, Lookups, Next, Schema, SourceError, Table, Value, field_index};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use sys::{Errno, Host, fs};

/// The kernel's default range of local ports, used if the setting cannot be read.
const PORTS: (u16, u16) = (32_768, 60_999);

/// Fields of sockets that checks need.
const OF_SOCKETS: &[&str] = &[
    "proto",
    "state",
    "local_addr",
    "local_port",
    "peer_addr",
    "peer_port",
    "recv_q",
    "accept_q",
    "accept_q_max",
    "rcvbuf",
    "socket_drops",
    "cookie",
    "inode",
    "timer",
    "timer_retransmits",
    "send_q",
    "bytes_acked",
    "late_ms",
    "netlink_protocol",
    "portid",
];

/// Sockets by the inode of their namespace.
type Censuses = BTreeMap<u64, SocketCensus>;

/// Settings of a namespace.
type NetnsSettings = Vec<(&'static str, Vec<i64>)>;

/// Observes the host in rounds.
pub(in crate::commands) struct Watch {
    counters: CounterProvider,
    drops: DropWatch,
    /// Sockets of the previous round.
    before: RefCell<Option<Censuses>>,
    /// A time just before the owners of the round were read, in ns of CLOCK_BOOTTIME.
    seen_ns: Cell<u64>,
}

impl Watch {
    /// Makes a watch that reads counters through this provider.
    pub(in crate::commands) fn new(counters: CounterProvider) -> Watch {
        Watch {
            drops: DropWatch::new(counters.is_once()),
            counters,
            before: RefCell::default(),
            seen_ns: Cell::new(sys::clock::boottime_ns()),
        }
    }

    /// The drop counter, see [`DropWatch::counter`].
    pub(in crate::commands) fn drop_counter(&self) -> &RefCell<Option<DropCounter>> {
        self.drops.counter()
    }

    /// True if the host is read once, without `--watch`.
    pub(in crate::commands) fn is_once(&self) -> bool {
        self.counters.is_once()
    }

    /// Sets the time between the two readings of the first round; `None` for the time in the request.
    pub(in crate::commands) fn shorten(&self, window: Option<Duration>) {
        self.counters.set_window(window);
    }

    /// Takes two readings of each namespace and of the host. Takes as long as the window.
    pub(in crate::commands) fn samples(
        &self,
        session: &Session,
        lookups: &Lookups<'_>,
        stats: &mut Accounting,
    ) -> Result<Vec<Sample>, SourceError> {
        let mut settings: BTreeMap<u64, NetnsSettings> = BTreeMap::new();
        let mut unread = BTreeSet::new();
        session.in_each_namespace(&mut |netns_id| match read_settings(session.host(), netns_id, stats) {
            Some(read) => drop(settings.insert(netns_id, read)),
            None => drop(unread.insert(netns_id)),
        });
        if settings.is_empty() && !unread.is_empty() {
            unread.clear();
            stats.unanswered = true;
            stats.add_reason(0, "the recording holds no settings (`netwren record FILE` records everything)");
        }
        note_unread(unread.len(), stats);
        let look = surroundings::first_look(session, &unread, true, stats);
        self.drops.begin(session, stats);
        let ports = |netns_id: u64| settings.get(&netns_id).and_then(port_range).unwrap_or(PORTS);
        let kept = self.before.take();
        // The second reading will have the same errors and report them.
        let before = kept.unwrap_or_else(|| read_sockets(session, lookups, &ports, &mut Accounting::default()));
        let mut samples = self.counters(session, lookups, stats)?;
        samples.retain(|netns_id, _| netns_id.is_none_or(|netns_id| !unread.contains(&netns_id)));
        if samples.is_empty() {
            stats.incomplete = true;
            return Ok(Vec::new());
        }
        self.drops.read(session, &mut samples, stats);
        let after = read_sockets(session, lookups, &ports, stats);
        let seen_ns = if session.host().is_replay() { u64::MAX } else { self.seen_ns.get() };
        let mut old = before;
        let mut new = Censuses::new();
        for (netns_id, census) in after {
            // For comparison in the next round.
            new.insert(netns_id, census.clone());
            let Some(sample) = samples.get_mut(&Some(netns_id)) else { continue };
            sample.descriptors = descriptors::read(session.host(), &census.listeners, seen_ns, stats);
            (sample.before, sample.after) = (old.remove(&netns_id).unwrap_or_default(), census);
        }
        self.before.replace(Some(new));
        self.seen_ns.set(sys::clock::boottime_ns());
        add_settings(&mut samples, &settings);
        surroundings::add(session, &mut samples, &look, stats);
        Ok(samples.into_values().collect())
    }

    /// Takes two readings of the counters.
    fn counters(
        &self,
        session: &Session,
        lookups: &Lookups<'_>,
        stats: &mut Accounting,
    ) -> Result<BTreeMap<Option<u64>, Sample>, SourceError> {
        let mut samples: BTreeMap<Option<u64>, Sample> = BTreeMap::new();
        let demand = saved::every_field::<KernelCounters>(0);
        let mut notes = Accounting::default();
        let read = self.counters.with_source(session, *lookups, &mut notes, |source| {
            source.run(&demand, &mut |row| {
                let sample = samples.entry(row.netns_id);
                sample.or_insert_with(|| Sample::new(row.netns_id)).add_counter(row);
                Next::More
            })
        })?;
        note(stats, &notes);
        note(stats, &read);
        Ok(samples)
    }
}

/// Adds settings to the samples. The host's sample gets settings from the first namespace that has them.
fn add_settings(samples: &mut BTreeMap<Option<u64>, Sample>, settings: &BTreeMap<u64, NetnsSettings>) {
    for (netns_id, all) in settings {
        for (name, numbers) in all {
            for id in [Some(*netns_id), None] {
                if let Some(sample) = samples.get_mut(&id).filter(|sample| sample.setting(name, 0).is_none()) {
                    sample.add_setting(name, numbers.clone());
                }
            }
        }
    }
}

/// The start of a watch in ns since 1970, which is also recorded.
pub(super) fn begun_ns(host: &Host) -> u64 {
    let (now_ns, mut bytes) = (host.now().since_1970_ns(), Vec::new());
    let read = host.bytes("doctor/begun", "", &mut bytes, |into| {
        into.extend_from_slice(&now_ns.to_le_bytes());
        Ok(())
    });
    // If it is missing, the time of the round is close enough.
    read.ok().and_then(|()| bytes.as_slice().try_into().ok()).map_or(now_ns, u64::from_le_bytes)
}

/// Saves the data that checks need in addition to tables.
pub(super) fn save(session: &Session, stats: &mut Accounting) -> u64 {
    begun_ns(session.host());
    session.in_each_namespace(&mut |netns_id| drop(read_settings(session.host(), netns_id, stats)));
    surroundings::save(session, stats);
    0
}

/// Adds a note with the number of namespaces that could not be entered when the recording was made.
fn note_unread(count: usize, stats: &mut Accounting) {
    if count > 0 {
        stats.unanswered = true;
        let text = "a network namespace is not checked: it was removed, or could not be entered, during the recording";
        stats.add_reason(count as u64, text);
    }
}

/// Reads the settings of the calling thread's namespace. Some settings exist only in the first namespace. Returns
/// `None` if a recording holds no settings.
fn read_settings(host: &Host, netns_id: u64, stats: &mut Accounting) -> Option<NetnsSettings> {
    let (mut found, mut text, mut missing) = (NetnsSettings::new(), Vec::new(), 0);
    for name in SETTINGS {
        let path = format!("/proc/sys/net/{name}");
        let read = host
            .bytes(&format!("{path}@{netns_id}"), "", &mut text, |into| fs::read_file(&host.real_path(&path), into));
        match read {
            Ok(()) => {
                let words = String::from_utf8_lossy(&text);
                found.push((name, words.split_whitespace().filter_map(|word| word.parse().ok()).collect()));
            }
            Err(error) if error.errno == Errno::NOENT => {}
            Err(error) if error.errno == Errno::NOT_RECORDED => missing += 1,
            Err(error) => {
                stats.incomplete(1, error.to_string());
            }
        }
    }
    // A recording of an earlier version lacks newer settings.
    (missing < SETTINGS.len()).then_some(found)
}

fn port_range(settings: &NetnsSettings) -> Option<(u16, u16)> {
    let (_, numbers) = settings.iter().find(|(name, _)| *name == "ipv4/ip_local_port_range")?;
    let [first, last] = numbers.as_slice() else { return None };
    Some((u16::try_from(*first).ok()?, u16::try_from(*last).ok()?))
}

/// Reads the TCP, UDP, netlink and packet sockets in one pass.
fn read_sockets(
    session: &Session,
    lookups: &Lookups<'_>,
    ports: &dyn Fn(u64) -> (u16, u16),
    stats: &mut Accounting,
) -> Censuses {
    let mut all = Censuses::new();
    let fields: Vec<usize> = OF_SOCKETS.iter().filter_map(|name| field_index::<Sockets>(name)).collect();
    let filter =
        engine::filter::conjuncts(Schema::of::<Sockets>(), "proto in (tcp, udp, netlink, packet)").unwrap_or_default();
    let (demand, ifaces) = (Demand::new(&fields, filter), NumberedIfaces::new(session));
    let read = pillars::with_sockets(session, None, &|_| true, |sockets| {
        sockets.run(&demand, &mut |socket| {
            let census = all.entry(socket.netns_id).or_default();
            let iface = bound_to(socket, &ifaces);
            census.add(socket, ports(socket.netns_id), &iface, &mut || owner(socket, lookups));
            Next::More
        })
    });
    match read {
        Ok(read) => note(stats, &read),
        Err(error) => {
            stats.incomplete(1, format!("sockets are not checked: {error}"));
        }
    }
    let over: u64 = all.values().map(|census| census.over).sum();
    if over > 0 {
        let text = format!("sockets with queues, and destinations, after the first {SOCKETS_MAX} are not checked");
        stats.incomplete(over, text);
    }
    all
}

/// The interface that a socket is bound to; empty for none.
fn bound_to<'a>(socket: &Socket<'_>, ifaces: &'a NumberedIfaces<'_>) -> Cow<'a, str> {
    match (socket.ifindex != 0).then(|| ifaces.value(Key::Pair(socket.netns_id, socket.ifindex))) {
        Some(Value::Bytes(name)) => String::from_utf8_lossy(name),
        _ => Cow::Borrowed(""),
    }
}

/// The process that owns a socket, as `nginx (812)`, and its pid.
fn owner(socket: &Socket<'_>, lookups: &Lookups<'_>) -> Holder {
    let cell = |name| {
        let field = field_index::<Sockets>(name).and_then(|at| Sockets::FIELDS.get(at));
        field.map_or(Value::Null, |field| match field.get {
            Get::Owners { .. } => field.get.cell(socket, lookups),
            _ => Value::Null,
        })
    };
    let Value::U64(pid) = cell("pid") else { return Holder::default() };
    let (process, likely, is_shared) = match cell("process") {
        Value::Bytes(process) => (process, String::new(), false),
        Value::FirstOf(process, others) => {
            (process, format!(", likely: {} processes hold it", u64::from(others) + 1), true)
        }
        _ => return Holder::default(),
    };
    let name = format!("{} ({pid}{likely})", String::from_utf8_lossy(process));
    Holder { name, pid: u32::try_from(pid).ok(), is_shared }
}
