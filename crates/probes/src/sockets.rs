//! TCP, UDP, netlink and packet sockets, read in one pass at the beginning and one at the end of the window.

use doctor::seen::{Holder, SOCKETS_MAX, SocketCensus};
use lookups::lazy_ifaces::NumberedIfaces;
use lookups::pillars;
use record::rows::{Socket, Sockets};
use record::{Accounting, Demand, Get, Key, Lookup, Lookups, Next, Schema, Table, Value, field_index};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::counter_window::Samples;
use crate::probe::{ProbeReader, Round};

/// Fields of sockets that checks need.
const FIELDS: &[&str] = &[
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
    "wmem_alloc",
    "sndbuf",
    "socket_drops",
    "cookie",
    "inode",
    "timer",
    "timer_ms",
    "timer_retransmits",
    "send_q",
    "bytes_acked",
    "bytes_in",
    "bytes_out",
    "last_data_sent_ms",
    "last_data_recv_ms",
    "last_ack_recv_ms",
    "unacked",
    "notsent_bytes",
    "late_ms",
    "netlink_protocol",
    "portid",
    "busy_us",
    "sndbuf",
];

/// Sockets by the inode of their namespace.
pub(crate) type Censuses = BTreeMap<u64, SocketCensus>;

/// Counts sockets.
pub(crate) struct SocketReader<'w> {
    /// The second reading of the previous round.
    last: &'w RefCell<Option<Censuses>>,
    before: Censuses,
}

impl<'w> SocketReader<'w> {
    pub(crate) fn new(last: &'w RefCell<Option<Censuses>>) -> SocketReader<'w> {
        SocketReader { last, before: Censuses::new() }
    }
}

impl ProbeReader for SocketReader<'_> {
    fn begin(&mut self, round: &Round<'_>, _: &mut Accounting) {
        // The second reading will have the same errors and report them.
        self.before = self.last.take().unwrap_or_else(|| read(round, &mut Accounting::default()));
    }

    fn end(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let after = read(round, stats);
        for (netns_id, census) in &after {
            let Some(sample) = samples.get_mut(&Some(*netns_id)) else { continue };
            (sample.before, sample.after) = (self.before.remove(netns_id).unwrap_or_default(), census.clone());
        }
        self.last.replace(Some(after));
    }
}

/// Reads the sockets of the session's namespaces.
fn read(round: &Round<'_>, stats: &mut Accounting) -> Censuses {
    let mut all = Censuses::new();
    // A recording of an earlier version lacks newer fields.
    let is_held = |name: &&&str| round.session.host().was_requested(Sockets::NAME, name) != Some(false);
    let fields: Vec<usize> = FIELDS.iter().filter(is_held).filter_map(|name| field_index::<Sockets>(name)).collect();
    let filter = engine::filter::conjuncts(Schema::from_table::<Sockets>(), "proto in (tcp, udp, netlink, packet)")
        .unwrap_or_default();
    let (demand, ifaces) = (Demand::new(&fields, filter), NumberedIfaces::new(round.session));
    let read = pillars::with_sockets(round.session, None, &|_| true, |sockets| {
        sockets.run(&demand, &mut |socket| {
            let census = all.entry(socket.netns_id).or_default();
            let (ports, iface) = (round.settings.local_ports(socket.netns_id), bound_iface(socket, &ifaces));
            census.add(socket, ports, &iface, &mut || find_holder(socket, round.lookups));
            Next::More
        })
    });
    match read {
        Ok(read) => stats.add_gaps(&read),
        Err(error) => {
            stats.incomplete(1, format!("sockets are not checked: {error}"));
        }
    }
    let over: u64 = all.values().map(|census| census.over.saturating_add(census.waiting.over)).sum();
    if over > 0 {
        let text = format!("sockets with queues, and destinations, after the first {SOCKETS_MAX} are not checked");
        stats.incomplete(over, text);
    }
    all
}

/// The interface that a socket is bound to; empty for none.
fn bound_iface<'a>(socket: &Socket<'_>, ifaces: &'a NumberedIfaces<'_>) -> Cow<'a, str> {
    match (socket.ifindex != 0).then(|| ifaces.value(Key::Pair(socket.netns_id, socket.ifindex))) {
        Some(Value::Bytes(name)) => String::from_utf8_lossy(name),
        _ => Cow::Borrowed(""),
    }
}

/// The process that owns a socket.
pub(crate) fn find_holder(socket: &Socket<'_>, lookups: &Lookups<'_>) -> Holder {
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
