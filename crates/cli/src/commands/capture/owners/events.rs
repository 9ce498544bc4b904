//! Sends TCP connections as they are established and closed, and UDP sockets as they send, as messages.

use super::message::{MessageWriter, SocketWords, ToldEvent};
use super::options::OwnerOptions;
use super::outbox::{EventsOf, Outbox};
use crate::commands::follow::follow_rows;
use engine::{Disposition, Plan, PlanRequest, RowSink};
use lookups::session::{Session, SessionTarget};
use record::rows::{EventKind, Socket, SocketEvent, SocketEvents, capture_need};
use record::{Lookups, Owner, Proto, RowCells, Stream, Value, Via, field_index};
use sockets::{Follow, LiveConnections, UdpSenders};
use std::cell::Cell;
use sys::clock;

/// Words about the owner, in the order of [`SocketWords::words`].
const WORDS: [&str; 5] = ["user", "container", "pod", "unit", "cmdline"];

/// Follows events until the reader of the messages closes its end; returns at once if BPF is unavailable. Calls
/// `begun` once all later events will be seen.
pub(super) fn follow(options: OwnerOptions, of: EventsOf, messages: &Outbox, begun: &dyn Fn()) {
    let target = SessionTarget { all_netns: options.all_netns, ..SessionTarget::default() };
    let (Ok(session), Some(plan)) = (Session::open(target), plan(options.need)) else { return };
    // Called before each look at the ring: events up to the previous look have been sent.
    let looked_ns = Cell::new(0);
    let look = || {
        messages.note_sent(of, looked_ns.replace(clock::monotonic_ns()));
        false
    };
    let follow = Follow {
        via: Some(Via::Bpf),
        netns_id: session.netns_id(),
        all_netns: options.all_netns,
        // Other programs may want to attach to the root cgroup during the capture.
        hooks: false,
        stop: &look,
    };
    let mut sink = EventSink { messages, out: Vec::new(), has_ended: false };
    let mut read = |stream: &mut dyn Stream<SocketEvents>| {
        begun();
        // Events missing at its end are found by readings.
        let _ = follow_rows(&session, &plan, stream, &mut sink);
    };
    match of {
        EventsOf::Connections => {
            if let Ok(mut connections) = LiveConnections::open(session.host(), follow) {
                read(&mut connections);
            }
        }
        EventsOf::Senders => {
            if let Ok(mut senders) = UdpSenders::open(session.host(), follow) {
                read(&mut senders);
            }
        }
    }
}

/// A plan with a cell for each of [`WORDS`], constant for words that are not needed.
fn plan(need: u64) -> Option<Plan<SocketEvents>> {
    let is_wanted = |name: &str| match name {
        "user" => true,
        "cmdline" => need & capture_need::CMDLINES == capture_need::CMDLINES,
        _ => need & capture_need::PLACES == capture_need::PLACES,
    };
    // A numeric field replaces an unneeded word, because its cell is not text.
    let of = |name| field_index::<SocketEvents>(if is_wanted(name) { name } else { "netns_id" });
    let columns: Option<Vec<usize>> = WORDS.into_iter().map(of).collect();
    Plan::new(PlanRequest { columns: columns?, ..PlanRequest::default() }).ok()
}

/// A sink that writes events as messages.
struct EventSink<'m> {
    messages: &'m Outbox,
    out: Vec<u8>,
    has_ended: bool,
}

impl RowSink<SocketEvents> for EventSink<'_> {
    fn row(&mut self, row: &SocketEvent, cells: &mut dyn RowCells, _: &Lookups<'_>) -> Disposition {
        if self.has_ended {
            return Disposition::Closed;
        }
        let owner = row.holder.map(|holder| Owner { pid: holder.pid, fd: 0, process: holder.process, started: 0 });
        let cells = cells.all();
        let word = |at: usize| if let Some(Value::Bytes(word)) = cells.get(at) { *word } else { &[] };
        let words = SocketWords {
            uid: row.uid,
            owners: owner.as_slice(),
            words: [word(0), word(1), word(2), word(3), word(4)],
        };
        let ends = Socket {
            netns_id: row.netns_id,
            proto: row.proto,
            state: row.state,
            local: row.local,
            peer: row.peer,
            ifindex: row.ifindex,
            ..Socket::EMPTY
        };
        let what = match (row.proto, row.kind) {
            (Proto::Udp, _) => ToldEvent::Sends,
            (_, EventKind::Open) => ToldEvent::Opened,
            (_, EventKind::Close) => ToldEvent::Closed,
        };
        MessageWriter(&mut self.out).event(what, row.time_ns, &ends, &words);
        Disposition::Emitted
    }

    fn flush(&mut self) {
        if !self.out.is_empty() {
            self.has_ended = !self.messages.send(&mut self.out);
        }
    }
}
