//! The interfaces through which events are read: BPF if only new entries of one namespace are wanted, or netlink.
use record::rows::{NatEvents, StatCounter, nat_event_need, nat_need};
use record::{Accounting, BackendLacks, Demand, Offer, SourceError, SourceFault};
use sys::{Errno, Host, Missing, Modules, SysError, Trial};

use crate::events::bpf::blocks::BpfEvents;
use crate::events::netlink::messages::NetlinkEvents;
use crate::events::netlink::subscribe::{SubscribeOptions, groups};
use crate::events::options::{EventsVia, FollowNat};
use crate::events::pushdown::{WantedEvents, pushed_parts};

/// Names the stream in messages to the user.
pub(crate) const WHAT: &str = "events of connection tracking";
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

/// The entries that the BPF program does not see.
const NOT_BY_BPF: &str = "BPF reports entries created by packets, not by processes (conntrack -I, conntrackd): --via \
                          netlink reports both";

/// The footnote for entries that the kernel refused after BPF had reported them.
const REFUSED_ENTRY: &str = "an entry was rejected after BPF had reported it, and its packet dropped \
                             (`insert_failed`: no free source port, or its hash chain is too long)";

/// An opened interface.
pub(crate) enum EventBackend<'h> {
    Netlink {
        events: Box<NetlinkEvents<'h>>,
        /// Why BPF is not used although it would be the better backend.
        not_bpf: Option<String>,
    },
    Bpf {
        events: Box<BpfEvents<'h>>,
        /// The namespace's `insert_failed` counter at the start: BPF reports entries before they are inserted.
        refused_before: Option<u64>,
        /// True if the user asked for BPF.
        is_forced: bool,
    },
}

impl EventBackend<'_> {
    /// Number of events so far, including malformed ones.
    pub(crate) fn received(&self) -> u64 {
        match self {
            EventBackend::Netlink { events, .. } => events.received_messages(),
            EventBackend::Bpf { events, .. } => events.received_events(),
        }
    }

    /// Number of events that the kernel dropped so far.
    pub(crate) fn lost(&self) -> u64 {
        match self {
            EventBackend::Netlink { events, .. } => events.lost_messages(),
            EventBackend::Bpf { events, .. } => events.lost_events(),
        }
    }

    pub(crate) fn close(&mut self) -> Accounting {
        match self {
            EventBackend::Netlink { events, .. } => events.close(),
            EventBackend::Bpf { events, .. } => events.close(),
        }
    }

    pub(crate) fn offer(&self, demand: &Demand<NatEvents>) -> Offer {
        let every = [(BPF, LACKS_BPF), (NETLINK, 0)].map(|(backend, lacks)| BackendLacks { backend, lacks });
        let (backend, lacks, backends, line) = match self {
            EventBackend::Bpf { is_forced, .. } => (
                BPF,
                LACKS_BPF,
                if *is_forced { every.to_vec() } else { Vec::new() },
                format!("new entries via BPF, reported by the packet that creates the entry; {NOT_BY_BPF}"),
            ),
            EventBackend::Netlink { not_bpf, .. } => {
                let why = not_bpf.as_ref().map_or(String::new(), |why| format!("; not via BPF: {why}"));
                (NETLINK, 0, Vec::new(), format!("events via netlink: the kernel's ctnetlink multicast groups{why}"))
            }
        };
        Offer { backend, pushdown: pushed_parts(demand), lacks, backends, explain: vec![line] }
    }

    /// Adds what the backend does not report at the end of a run.
    pub(crate) fn add_notes(&self, netns_id: u64, stats: &mut Accounting) {
        let EventBackend::Bpf { refused_before, .. } = self else { return };
        stats.add_reason(0, NOT_BY_BPF);
        let more = refused_before.and_then(|before| insert_failed(netns_id)?.checked_sub(before));
        if let Some(more) = more.filter(|more| *more > 0) {
            stats.add_reason(more, REFUSED_ENTRY);
        }
    }
}

/// `insert_failed` of the calling thread's namespace.
fn insert_failed(netns_id: u64) -> Option<u64> {
    let read = crate::stats::read(&Host::live(), netns_id, 0, None).ok()?;
    read.sum().get(StatCounter::InsertFailed)
}

/// Name of the BPF backend's stream in a recording.
fn key(netns_id: u64) -> String {
    format!("conntrack/new@{netns_id}")
}

/// Opens the BPF backend if it was requested or is the better one. The inner error is the reason if it could have been
/// used but does not open.
pub(crate) fn open_bpf_if_better<'h>(
    host: &'h Host,
    follow: &FollowNat<'h>,
    wanted: WantedEvents,
    need: u64,
) -> Result<Result<EventBackend<'h>, Option<String>>, SourceError> {
    let can = wanted.only_new() && follow.find.is_none();
    let asked = follow.via == Some(EventsVia::Bpf);
    let is_better = can && need & LACKS_BPF == 0 && follow.resync.is_none();
    let may = if host.is_replay() { host.contains(&key(follow.netns_id)) } else { asked || is_better };
    if !may || follow.via == Some(EventsVia::Netlink) {
        return Ok(Err(None));
    }
    if !host.is_replay() && !can {
        return Err(unsupported_error(ONLY_NEW.into()));
    }
    match open_bpf(host, follow.netns_id, follow.buffer_bytes, follow.stop) {
        Ok(events) => Ok(Ok(EventBackend::Bpf {
            events: Box::new(events),
            refused_before: if host.is_replay() { None } else { insert_failed(follow.netns_id) },
            is_forced: asked && !host.is_replay(),
        })),
        Err(cause) if asked => Err(unsupported_error(cause)),
        Err(cause) => Ok(Err(Some(cause.to_string()))),
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

/// Tries how events can be received here, for `netwren support`. Loads, attaches and removes the BPF program, which
/// takes some milliseconds.
pub fn try_events(host: &Host, modules: &Modules<'_>) -> Trial {
    if let Some(why) = crate::trial::reason_not_to_ask(modules) {
        return Trial::new_missing(Missing::Module, why);
    }
    let listen =
        SubscribeOptions { groups: groups::ALL, buffer_bytes: PROBED_BYTES, netns_id: 0, find: None, stop: &|| true };
    if let Err(error) = NetlinkEvents::open(host, listen) {
        return Trial::new_refused(Some(error.errno), error.to_string());
    }
    match open_bpf(host, 0, PROBED_BYTES, &|| true) {
        Ok(_) => Trial::new_working("via netlink; new entries also via BPF"),
        Err(why) => Trial::new_working(format!("via netlink; new entries not via BPF: {why}")),
    }
}

/// Buffer size of a trial, which reads nothing.
const PROBED_BYTES: u32 = 4096;
