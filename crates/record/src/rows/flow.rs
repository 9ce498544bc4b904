//! Flows between two hosts: connections that share their hosts, their service and their direction.

use super::{Change, RowDiff};
use crate::named_enum::named_enum;
use crate::table::{fields, stored_once};
use crate::{Addr, Field, Key, Link, LookupId, Owner, Proto, RowLink, Scope, Show, State, Table, Value};

/// The table of flows.
#[derive(Clone, Copy, Debug)]
pub enum Flows {}

impl Table for Flows {
    type Row<'b> = Flow<'b>;
    const NAME: &'static str = "flows";
    const FIELDS: &'static [Field<Flows>] = stored_once!(F, FIELDS);
}

named_enum! {
    /// The end that opened the connections.
    pub enum Direction {
        /// The peer: the service is on the local host (passive open).
        In => "in",
        /// The local host (active open).
        Out => "out",
        /// It cannot be determined.
        Unknown => "unknown",
    }
}

/// Number of a flow's connections in each state, indexed by the kernel's numbers 0–13.
pub type FlowStates = [u32; 14];

/// One flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow<'b> {
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// Inode of the peer's network namespace, if the peer is on this host; otherwise 0.
    pub peer_netns_id: u64,
    /// TCP or UDP.
    pub proto: Proto,
    /// The end that opened it.
    pub direction: Direction,
    /// True if the direction was guessed from port numbers alone, because listeners could not be read or the two ends
    /// contradict each other.
    pub guessed: bool,
    /// Local address, unmapped.
    pub local_addr: Addr,
    /// Local port; `None` if folded.
    pub local_port: Option<u16>,
    /// Peer address, unmapped.
    pub peer_addr: Addr,
    /// Peer port; `None` if folded.
    pub peer_port: Option<u16>,
    /// Number of the interface that the connections are bound to; 0 is none.
    pub ifindex: u32,
    /// Number of connections in the flow.
    pub connections: u64,
    /// Number of connections by state.
    pub states: &'b FlowStates,
    /// Owners with distinct process names, ascending by pid; their number is bounded.
    pub owners: &'b [Owner],
    /// Owners of the other end, if it is on this host in another namespace.
    pub peer_owners: &'b [Owner],
    /// Bytes received; `None` unless requested.
    pub bytes_in: Option<u64>,
    /// Bytes sent; `None` unless requested.
    pub bytes_out: Option<u64>,
    /// Segments retransmitted; `None` unless requested.
    pub retrans_total: Option<u64>,
    /// Bytes waiting in the receive queues.
    pub recv_q: u64,
    /// Bytes waiting in the send queues.
    pub send_q: u64,
    /// Bytes received per second, summed over the connections that existed in the previous round; only with `--watch`.
    pub bytes_in_per_s: Option<u64>,
    /// Bytes sent per second, likewise.
    pub bytes_out_per_s: Option<u64>,
    /// Round-trip times; `None` unless requested and known for at least one connection.
    pub rtt: Option<FlowRtt>,
    /// The comparison with the previous round; only in rows of `--watch`.
    pub diff: Option<&'b RowDiff>,
}

/// Round-trip times of a flow's connections, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowRtt {
    /// The smallest time that any of the connections has seen; `None` if the kernel does not report it.
    pub min_us: Option<u32>,
    /// Mean of the connections' smoothed times; each connection has the same weight.
    pub avg_us: u32,
    /// Largest of the connections' smoothed times.
    pub max_us: u32,
}

impl Flow<'_> {
    /// A flow without connections, with all values unset.
    pub const EMPTY: Flow<'static> = Flow {
        netns_id: 0,
        peer_netns_id: 0,
        proto: Proto::Tcp,
        direction: Direction::Unknown,
        guessed: false,
        local_addr: Addr::ANY4,
        local_port: None,
        peer_addr: Addr::ANY4,
        peer_port: None,
        ifindex: 0,
        connections: 0,
        states: &[0; 14],
        owners: &[],
        peer_owners: &[],
        bytes_in: None,
        bytes_out: None,
        retrans_total: None,
        recv_q: 0,
        send_q: 0,
        bytes_in_per_s: None,
        bytes_out_per_s: None,
        rtt: None,
        diff: None,
    };
    /// `need` bit of the fields that require `tcp_info` of every socket.
    pub const NEED_TCP_INFO: u64 = super::need::TCP_INFO;
    /// `need` bit of the fields that require the interface of every socket.
    pub const NEED_IFACE: u64 = super::need::IFACE_MARK;
    /// `need` bit of the fields that require the rates of every socket.
    pub const NEED_RATES: u64 = super::need::COUNTERS;
    /// `need` bit of the fields that require the round-trip times of every socket.
    pub const NEED_RTT: u64 = 1 << 62;
    /// `need` bit of the fields that require the owners of every socket.
    pub const NEED_OWNERS: u64 = 1 << 63;
}

type F = Field<Flows>;

fn owner_value<'r>(owners: &'r [Owner], part: fn(&'r Owner) -> Value<'r>) -> Value<'r> {
    owners.first().map_or(Value::Null, part)
}

fn direction<'r>(row: &'r Flow<'_>) -> Value<'r> {
    let word = row.direction.name();
    if row.guessed { Value::Guess(word) } else { Value::Name(word) }
}

/// Connections with a link-local address are bound to the interface of the link.
const LINK: Link<Flows> = Link {
    of: |row| RowLink::index(row.netns_id, row.ifindex),
    names: &["iface"],
    numbers: &["ifindex"],
    in_rows: true,
};

fn iface_key(row: &Flow<'_>) -> Key {
    if row.ifindex == 0 { Key::None } else { Key::Pair(row.netns_id, row.ifindex) }
}

// The key of lookups about a flow's first owner.
fn by_pid(row: &Flow<'_>) -> Key {
    row.owners.first().map_or(Key::None, |owner| Key::Id(owner.pid.into()))
}

fn in_state<'r>(row: &Flow<'_>, state: State) -> Value<'r> {
    Value::U64(row.states[state.0 as usize].into())
}

const FIELDS: &[F] = fields! { F:
    /// Name of the network namespace, or its inode number if it is unnamed.
    netns: Text = joined(LookupId::Netns, |row| Key::Id(row.netns_id)), show Show::Wide;
    /// Inode of the network namespace.
    netns_id: Id = own(|row| Value::U64(row.netns_id));
    /// Protocol.
    proto: Name(Proto::NAMES) = own(|row| Value::Name(row.proto.name())), show Show::Default;
    /// Who opened the connections: in (the peer), out (this host) or unknown. Text and CSV add a question mark to a
    /// guess; filters and JSON use the plain word, see `guessed`.
    direction: Name(Direction::NAMES) = own(direction), show Show::Default;
    /// True if the direction was guessed from the port numbers: the listeners could not be read, or both ends are on
    /// this host and either both or neither have a listener.
    guessed: Bool = own(|row| Value::Bool(row.guessed)), show Show::Wide;
    /// Local address.
    local_addr: Addr = own(|row| Value::Addr(row.local_addr)), show Show::Default, link &LINK;
    /// Local port; null if several ports are folded into one flow.
    local_port: Port = own(|row| Value::number(row.local_port)), show Show::Default;
    /// Peer's address.
    peer_addr: Addr = own(|row| Value::Addr(row.peer_addr)), show Show::Default, link &LINK;
    /// Peer's port; null if several ports are folded into one flow.
    peer_port: Port = own(|row| Value::number(row.peer_port)), show Show::Default;
    /// Interface or VRF that the connections are bound to; connections bound to a different one are a different flow.
    iface: Text = joined(LookupId::Ifaces, iface_key), kernel "idiag_if", needs Flow::NEED_IFACE,
        show Show::Unusual;
    /// Index of that interface.
    ifindex: Id = own(|row| Value::number((row.ifindex != 0).then_some(row.ifindex))), kernel "idiag_if",
        needs Flow::NEED_IFACE, zero_is_null true;
    /// Scope of the peer's address: public, private, loopback or link.
    peer_scope: Name(Scope::NAMES) = own(|row| Value::Name(row.peer_addr.scope().name())), show Show::Wide;
    /// Connections in the flow.
    connections: Count = own(|row| Value::U64(row.connections)), show Show::Default;
    /// Connections in state established.
    established: Count = own(|row| in_state(row, State::ESTABLISHED)), show Show::Wide;
    /// Connections in state fin_wait1.
    fin_wait1: Count = own(|row| in_state(row, State::FIN_WAIT1)), show Show::Wide;
    /// Connections in state fin_wait2.
    fin_wait2: Count = own(|row| in_state(row, State::FIN_WAIT2)), show Show::Wide;
    /// Connections in state time_wait.
    time_wait: Count = own(|row| in_state(row, State::TIME_WAIT)), show Show::Wide;
    /// Connections in state close_wait.
    close_wait: Count = own(|row| in_state(row, State::CLOSE_WAIT)), show Show::Wide;
    /// Connections in state last_ack.
    last_ack: Count = own(|row| in_state(row, State::LAST_ACK)), show Show::Wide;
    /// Connections in state closing.
    closing: Count = own(|row| in_state(row, State::CLOSING)), show Show::Wide;
    /// Connections in state syn_sent.
    syn_sent: Count = own(|row| in_state(row, State::SYN_SENT)), show Show::Wide;
    /// Connections in state syn_recv.
    syn_recv: Count = own(|row| in_state(row, State::SYN_RECV)), show Show::Wide;
    /// Connections in state close.
    close: Count = own(|row| in_state(row, State::CLOSE)), show Show::Wide;
    /// Bytes received that the programs have not read yet, over all connections.
    recv_q: Bytes = own(|row| Value::U64(row.recv_q)), show Show::Wide;
    /// Bytes sent or queued that the peer has not acknowledged yet, over all connections.
    send_q: Bytes = own(|row| Value::U64(row.send_q)), show Show::Wide;
    /// Bytes received on the connections that are open now.
    bytes_in: Bytes = own(|row| Value::number(row.bytes_in)), kernel "tcpi_bytes_received", needs Flow::NEED_TCP_INFO;
    /// Bytes sent on the connections that are open now.
    bytes_out: Bytes = own(|row| Value::number(row.bytes_out)), kernel "tcpi_bytes_sent", needs Flow::NEED_TCP_INFO;
    /// Segments retransmitted on the connections that are open now.
    retrans_total: Count = own(|row| Value::number(row.retrans_total)),
        kernel "tcpi_total_retrans", needs Flow::NEED_TCP_INFO;
    /// Smallest round-trip time measured on any of the connections.
    min_rtt_us: DurationUs = own(|row| Value::number(row.rtt.and_then(|rtt| rtt.min_us))),
        kernel "tcpi_min_rtt", needs Flow::NEED_RTT;
    /// Mean of the connections' smoothed round-trip times.
    avg_rtt_us: DurationUs = own(|row| Value::number(row.rtt.map(|rtt| rtt.avg_us))),
        kernel "tcpi_rtt", needs Flow::NEED_RTT;
    /// Largest of the connections' smoothed round-trip times.
    max_rtt_us: DurationUs = own(|row| Value::number(row.rtt.map(|rtt| rtt.max_us))),
        kernel "tcpi_rtt", needs Flow::NEED_RTT;
    /// With --watch: new, kept or gone since the previous round; null in the first round. Rows that are gone are shown
    /// only if this column is.
    change: Name(Change::NAMES) = own(|row| RowDiff::change(row.diff));
    /// With --watch: bytes received per second on the connections that existed in the previous round.
    bytes_in_per_s: Bytes = own(|row| Value::number(row.bytes_in_per_s)), needs Flow::NEED_RATES;
    /// With --watch: bytes sent per second on the connections that existed in the previous round.
    bytes_out_per_s: Bytes = own(|row| Value::number(row.bytes_out_per_s)), needs Flow::NEED_RATES;
    /// With --watch: bytes received and sent per second; the table is sorted by it.
    bytes_per_s: Bytes = own(|row| {
        Value::number(row.bytes_in_per_s.zip(row.bytes_out_per_s).map(|(received, sent)| received.saturating_add(sent)))
    }), needs Flow::NEED_RATES;
    /// Name of the process that owns the connections (the first of several).
    process: Text = own(|row| owner_value(row.owners, |o| Value::Bytes(o.process.as_bytes()))),
        needs Flow::NEED_OWNERS, show Show::Default;
    /// PID of the process that owns the connections (the first of several).
    pid: Id = own(|row| owner_value(row.owners, |o| Value::U64(o.pid.into()))),
        needs Flow::NEED_OWNERS, show Show::Default;
    /// Owners with different process names: PID, name, file descriptor and start time (ms since boot).
    owners: Owners = own(|row| if row.owners.is_empty() { Value::Null } else { Value::Owners(row.owners) }),
        needs Flow::NEED_OWNERS, show Show::Wide;
    /// With --all-netns, the peer's network namespace, if it is on this host: both ends are then one flow, from the
    /// side that opened it.
    peer_netns: Text = joined(LookupId::Netns, |row| peer_netns(row).map_or(Key::None, Key::Id));
    /// Inode of that network namespace.
    peer_netns_id: Id = own(|row| Value::number(peer_netns(row)));
    /// With --all-netns, the name of the process that owns the peer's end (the first of several).
    peer_process: Text = own(|row| owner_value(row.peer_owners, |o| Value::Bytes(o.process.as_bytes()))),
        needs Flow::NEED_OWNERS;
    /// With --all-netns, the PID of the process that owns the peer's end (the first of several).
    peer_pid: Id = own(|row| owner_value(row.peer_owners, |o| Value::U64(o.pid.into()))), needs Flow::NEED_OWNERS;
    /// With --all-netns, the owners of the peer's end: PID, name, file descriptor and start time (ms since boot).
    peer_owners: Owners = own(|row| {
        if row.peer_owners.is_empty() { Value::Null } else { Value::Owners(row.peer_owners) }
    }), needs Flow::NEED_OWNERS;
    /// Command line of the first owner, its arguments separated by spaces.
    cmdline: Text = joined(LookupId::Cmdlines, by_pid), needs Flow::NEED_OWNERS;
    /// Container of the first owner: its name, or the start of its ID.
    container: Text = joined(LookupId::Containers, by_pid), needs Flow::NEED_OWNERS;
    /// Kubernetes pod of the first owner as namespace/name; its UID if the name is unknown.
    pod: Text = joined(LookupId::Pods, by_pid), needs Flow::NEED_OWNERS;
    /// Innermost systemd unit of the first owner.
    unit: Text = joined(LookupId::Units, by_pid), needs Flow::NEED_OWNERS;
};

fn peer_netns(row: &Flow<'_>) -> Option<u64> {
    (row.peer_netns_id != 0).then_some(row.peer_netns_id)
}
