//! Sends TCP connections as they are established and closed, and UDP sockets as they send, as messages.

use super::message::{SocketChange, SocketOwner, put_change, word_fields};
use super::outbox::{EventsOf, Outbox};
use crate::followed::follow_rows;
use crate::session::{Session, SessionTarget};
use engine::{Disposition, Plan, PlanRequest, RowSink};
use record::rows::{EventKind, Socket, SocketEvent, SocketEvents};
use record::{Lookups, Owner, Proto, RowCells, Stream, Value, Via, field_index};
use sockets::{Follow, LiveConnections, UdpSenders};
use std::cell::Cell;
use sys::clock;

/// Follows events until the reader of the messages closes its end; returns at once if BPF is unavailable. Calls
/// `begun` once all later events will be seen. `need`: bits of `capture_need`.
pub(super) fn follow(all_netns: bool, need: u64, events: EventsOf, messages: &Outbox, begun: &dyn Fn()) {
    let target = SessionTarget { all_netns, ..SessionTarget::default() };
    let (Ok(session), Some(plan)) = (Session::open(target), plan(need)) else { return };
    // Called before each look at the ring: events up to the previous look have been sent.
    let looked_ns = Cell::new(0);
    let look = || {
        messages.note_sent(events, looked_ns.replace(clock::monotonic_ns()));
        false
    };
    let follow = Follow {
        via: Some(Via::Bpf),
        netns_id: session.netns_id(),
        all_netns,
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
    match events {
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

/// A plan with a cell for each word about the owner, constant for words that are not needed.
fn plan(need: u64) -> Option<Plan<SocketEvents>> {
    // A numeric field replaces an unneeded word, because its cell is not text.
    let column = |field: Option<usize>| field.or_else(|| field_index::<SocketEvents>("netns_id"));
    let columns: Option<Vec<usize>> = word_fields::<SocketEvents>(need).into_iter().map(column).collect();
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
        let cells = cells.all_cells();
        let word = |at: usize| if let Some(Value::Bytes(word)) = cells.get(at) { *word } else { &[] };
        let words = [word(0), word(1), word(2), word(3), word(4)];
        let socket = Socket {
            netns_id: row.netns_id,
            proto: row.proto,
            state: row.state,
            local: row.local,
            peer: row.peer,
            ifindex: row.ifindex,
            uid: row.uid,
            ..Socket::EMPTY
        };
        let change = match (row.proto, row.kind) {
            (Proto::Udp, _) => SocketChange::Sends,
            (_, EventKind::Open) => SocketChange::Opened,
            (_, EventKind::Close) => SocketChange::Closed,
        };
        put_change(&mut self.out, change, row.time_ns, &socket, &SocketOwner { owners: owner.as_slice(), words });
        Disposition::Emitted
    }

    fn flush(&mut self) {
        if !self.out.is_empty() {
            self.has_ended = !self.messages.send(&mut self.out);
        }
    }
}
