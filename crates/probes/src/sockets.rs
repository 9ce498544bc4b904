//! TCP, UDP, netlink and packet sockets, read in one pass at the beginning and one at the end of the window.

use doctor::seen::{Holder, SOCKETS_MAX, SocketCensus};
use lookups::lazy_ifaces::NumberedIfaces;
use lookups::pillars;
use record::rows::{Socket, Sockets, need};
use record::{Accounting, Demand, Get, Key, Lookup, Lookups, Next, Proto, Schema, Table, Value, Via, field_index};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use sys::Host;

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
];

/// One reading of the sockets.
#[derive(Debug, Clone, Default)]
pub(crate) struct SocketReading {
    /// The facts of each namespace, by its inode.
    censuses: BTreeMap<u64, SocketCensus>,
    identities: IdentityKinds,
    /// True if the BPF walk was interrupted, and netlink was not to read the rest.
    is_torn: bool,
}

/// The kind of number that identifies TCP sockets in a reading. A user who opens and closes sockets fast enough can
/// stop the BPF walk, and netlink reads the rest. The walk of one namespace leaves listeners to netlink.
#[derive(Debug, Clone, Copy, Default)]
struct IdentityKinds {
    connections: IdentityKind,
    listeners: IdentityKind,
}

#[derive(Debug, Clone, Copy, Default)]
struct IdentityKind {
    cookies: bool,
    hashes: bool,
}

impl IdentityKinds {
    fn add(&mut self, socket: &Socket<'_>) {
        if socket.proto == Proto::Tcp {
            let kind = if socket.is_listener() { &mut self.listeners } else { &mut self.connections };
            kind.cookies |= socket.cookie != 0;
            kind.hashes |= socket.address_hash != 0;
        }
    }

    /// The interface of the reading: the next one uses it too, even if there are more or fewer sockets by then.
    fn interface(self) -> Option<Via> {
        match self.connections {
            IdentityKind { hashes: true, .. } => Some(Via::Bpf),
            IdentityKind { cookies: true, .. } => Some(Via::Netlink),
            _ => None,
        }
    }

    /// True if netlink read the sockets that an interrupted walk left out.
    fn are_mixed(self) -> bool {
        !self.agree(self)
    }

    /// True if a socket has the same identity in both readings.
    fn agree(self, other: IdentityKinds) -> bool {
        self.listeners.agrees(other.listeners) && self.connections.agrees(other.connections)
    }
}

impl IdentityKind {
    fn agrees(self, other: IdentityKind) -> bool {
        !(self.cookies || other.cookies) || !(self.hashes || other.hashes)
    }
}

/// Counts sockets.
pub(crate) struct SocketReader<'w> {
    /// The second reading of the previous round.
    last: &'w RefCell<Option<SocketReading>>,
    before: SocketReading,
}

impl<'w> SocketReader<'w> {
    pub(crate) fn new(last: &'w RefCell<Option<SocketReading>>) -> SocketReader<'w> {
        SocketReader { last, before: SocketReading::default() }
    }
}

impl ProbeReader for SocketReader<'_> {
    fn begin(&mut self, round: &Round<'_>, _: &mut Accounting) {
        // The second reading will have the same errors and report them.
        self.before = self.last.take().unwrap_or_else(|| read(round, None, &mut Accounting::default()));
        if self.before.identities.are_mixed() {
            self.before = read(round, Some(Via::Netlink), &mut Accounting::default());
        }
    }

    fn end(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let after = read(round, self.before.identities.interface(), stats);
        let is_comparable = !after.is_torn && after.identities.agree(self.before.identities);
        if is_comparable {
            for (netns_id, census) in &after.censuses {
                let Some(sample) = samples.get_mut(&Some(*netns_id)) else { continue };
                let before = self.before.censuses.remove(netns_id).unwrap_or_default();
                (sample.before, sample.after) = (before, census.clone());
            }
        } else {
            let text = "sockets are not checked: they changed too fast to be read twice via BPF, and netlink numbers \
                        them differently; run it again";
            stats.incomplete(1, text);
        }
        self.last.replace(Some(after).filter(|_| is_comparable));
    }
}

/// The fields that checks need. The BPF walk has all of them: a dump of each namespace would cross the whole table.
fn demand(host: &Host) -> Demand<Sockets> {
    // A recording of an earlier version lacks newer fields.
    let is_held = |name: &&&str| host.was_requested(Sockets::NAME, name) != Some(false);
    let fields: Vec<usize> = FIELDS.iter().filter(is_held).filter_map(|name| field_index::<Sockets>(name)).collect();
    // No check uses sockets that are bound, but neither listen nor have a peer.
    let filter = "proto in (tcp, udp, netlink, packet) and (proto != tcp or state != bound_inactive)";
    let filter = engine::filter::conjuncts(Schema::from_table::<Sockets>(), filter).unwrap_or_default();
    let mut demand = Demand::new(&fields, filter);
    demand.need |= need::IDENTITY;
    demand
}

/// Reads the sockets of the session's namespaces, TCP via this interface.
fn read(round: &Round<'_>, via: Option<Via>, stats: &mut Accounting) -> SocketReading {
    let (mut all, mut identities) = (BTreeMap::<u64, SocketCensus>::new(), IdentityKinds::default());
    let (demand, ifaces) = (demand(round.session.host()), NumberedIfaces::new(round.session));
    let read = pillars::with_sockets(round.session, via, &|_| true, |sockets| {
        sockets.run(&demand, &mut |socket| {
            identities.add(socket);
            let census = all.entry(socket.netns_id).or_default();
            let (ports, iface) = (round.settings.local_ports(socket.netns_id), bound_iface(socket, &ifaces));
            census.add(socket, ports, &iface, &mut || find_holder(socket, round.lookups));
            Next::More
        })
    });
    let is_torn = via == Some(Via::Bpf) && read.as_ref().map_or(true, Accounting::lacks_rows_of_namespaces);
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
    SocketReading { censuses: all, identities, is_torn }
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

#[cfg(test)]
mod tests {
    use super::*;
    use record::State;

    #[test]
    fn readings_by_different_interfaces_are_not_compared() {
        let kinds = |sockets: &[Socket<'_>]| {
            let mut kinds = IdentityKinds::default();
            sockets.iter().for_each(|socket| kinds.add(socket));
            kinds
        };
        let cookie = Socket { cookie: 7, ..Socket::EMPTY };
        let hash = Socket { address_hash: 9, ..Socket::EMPTY };
        let udp = Socket { proto: Proto::Udp, ..cookie };
        let listener = Socket { state: State::LISTEN, ..cookie };
        let [netlink, walk, broken, neither] =
            [kinds(&[cookie, udp]), kinds(&[hash, udp]), kinds(&[hash, cookie]), kinds(&[udp])];
        // One namespace, and all.
        let [one, all] = [kinds(&[hash, listener]), kinds(&[hash, Socket { cookie: 0, address_hash: 5, ..listener }])];
        let interfaces = [netlink, walk, broken, neither, one].map(IdentityKinds::interface);
        let [by_netlink, by_walk] = [Some(Via::Netlink), Some(Via::Bpf)];
        assert_eq!(interfaces, [by_netlink, by_walk, by_walk, None, by_walk]);
        assert_eq!(
            [netlink, walk, broken, neither, one].map(IdentityKinds::are_mixed),
            [false, false, true, false, false]
        );
        for (one, other, agree) in [
            (netlink, netlink, true),
            (walk, walk, true),
            (walk, neither, true),
            (neither, netlink, true),
            (netlink, walk, false),
            (walk, broken, false),
            (broken, broken, false),
            (broken, neither, false),
            (one, one, true),
            (all, all, true),
            (one, all, false),
            (one, netlink, false),
        ] {
            assert_eq!((one.agree(other), other.agree(one)), (agree, agree), "{one:?} {other:?}");
        }
    }
}
