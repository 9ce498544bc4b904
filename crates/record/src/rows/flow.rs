//! The record of a host-to-host flow: connections that share their hosts, their service and their direction.

use super::{Change, RowDiff};
use crate::{Addr, Field, Key, Kind, LookupId, Owner, Proto, Scope, Show, State, Table, Value};

/// The table of flows.
#[derive(Clone, Copy, Debug)]
pub enum Flows {}

impl Table for Flows {
    type Row<'b> = Flow<'b>;
    const NAME: &'static str = "flows";
    const FIELDS: &'static [Field<Flows>] = FIELDS;
}

/// Who opened the connections.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// The peer did: we are the service (passive open).
    In,
    /// We did (active open).
    Out,
    /// Nothing tells.
    Unknown,
}

impl Direction {
    /// The words of the field `direction`.
    pub const NAMES: &'static [&'static str] = &["in", "out", "unknown"];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::Unknown => "unknown",
        }
    }
}

/// How many connections of a flow are in each state; indexed by the kernel's number 0–13.
pub type FlowStates = [u32; 14];

/// One flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow<'b> {
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// Inode of the network namespace that the other end is in, if it is one of this host; else 0.
    pub peer_netns_id: u64,
    /// TCP or UDP.
    pub proto: Proto,
    /// Who opened it.
    pub direction: Direction,
    /// True if the direction was guessed from port numbers alone, because listeners could not be read or both ends
    /// contradict each other.
    pub guessed: bool,
    /// Our address, unmapped.
    pub local_addr: Addr,
    /// Our port; `None` where it is folded.
    pub local_port: Option<u16>,
    /// The other host's address, unmapped.
    pub peer_addr: Addr,
    /// The other host's port; `None` where it is folded.
    pub peer_port: Option<u16>,
    /// Connections in the flow.
    pub connections: u64,
    /// Connections by state.
    pub states: &'b FlowStates,
    /// Holders with distinct process names, ascending by pid; at most a bounded number.
    pub owners: &'b [Owner],
    /// The same of the other end, if it is on this host in another namespace.
    pub peer_owners: &'b [Owner],
    /// Bytes received; `None` unless asked for.
    pub bytes_in: Option<u64>,
    /// Bytes sent; `None` unless asked for.
    pub bytes_out: Option<u64>,
    /// Segments retransmitted; `None` unless asked for.
    pub retrans_total: Option<u64>,
    /// Bytes waiting in the receive queues.
    pub recv_q: u64,
    /// Bytes waiting in the send queues.
    pub send_q: u64,
    /// Bytes received per second over the connections that were there in the round before; only with `--watch`.
    pub bytes_in_per_s: Option<u64>,
    /// The same for bytes sent.
    pub bytes_out_per_s: Option<u64>,
    /// Round-trip times; `None` unless asked for and known of at least one connection.
    pub rtt: Option<FlowRtt>,
    /// What is known of the round before; only in rows of `--watch`.
    pub diff: Option<&'b RowDiff>,
}

/// Round-trip times of a flow's connections, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowRtt {
    /// Smallest one that any of the connections has seen; `None` where the kernel does not report it.
    pub min_us: Option<u32>,
    /// Mean of the connections' smoothed times, each connection counted once.
    pub avg_us: u32,
    /// Largest of the connections' smoothed times.
    pub max_us: u32,
}

impl Flow<'_> {
    /// `need` bit of the fields that take `tcp_info` of every socket.
    pub const NEED_TCP_INFO: u64 = super::need::TCP_INFO;
    /// `need` bit of the fields that take the rates of every socket.
    pub const NEED_RATES: u64 = super::need::COUNTERS;
    /// `need` bit of the fields that take the round-trip times of every socket.
    pub const NEED_RTT: u64 = 1 << 62;
    /// `need` bit of the fields that take the owners of every socket.
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

// What surrounds a flow's first owner.
fn by_pid(row: &Flow<'_>) -> Key {
    row.owners.first().map_or(Key::None, |owner| Key::Id(owner.pid.into()))
}

macro_rules! state_field {
    ($name:literal, $state:expr) => {
        F::own($name, Kind::Count, |row| Value::U64(row.states[$state.0 as usize].into())).doc(concat!(
            "Connections in state ",
            $name,
            "."
        ))
    };
}

const FIELDS: &[Field<Flows>] = &[
    F::joined("netns", Kind::Text, LookupId::Netns, |row| Key::Id(row.netns_id))
        .doc("Name of the network namespace; its number where it has none.")
        .show(Show::Wide),
    F::own("netns_id", Kind::Id, |row| Value::U64(row.netns_id)).doc("Inode of the network namespace."),
    F::own("proto", Kind::Name(Proto::NAMES), |row| Value::Name(row.proto.name())).doc("Protocol.").show(Show::Default),
    F::own("direction", Kind::Name(Direction::NAMES), direction)
        .doc(
            "Who opened the connections: in (the peer), out (we), unknown. A guess has a question mark in text and CSV; \
             filters and JSON take the plain word, see guessed.",
        )
        .show(Show::Default),
    F::own("guessed", Kind::Bool, |row| Value::Bool(row.guessed))
        .doc(
            "True if the direction is a guess from the port numbers: the listeners could not be read, or both ends are \
             on this host and neither of them, or each, has a listener.",
        )
        .show(Show::Wide),
    F::own("local_addr", Kind::Addr, |row| Value::Addr(row.local_addr)).doc("Our address.").show(Show::Default),
    F::own("local_port", Kind::Port, |row| Value::number(row.local_port))
        .doc("Our port; null where many are folded into one flow.")
        .show(Show::Default),
    F::own("peer_addr", Kind::Addr, |row| Value::Addr(row.peer_addr))
        .doc("The other host's address.")
        .show(Show::Default),
    F::own("peer_port", Kind::Port, |row| Value::number(row.peer_port))
        .doc("The other host's port; null where many are folded into one flow.")
        .show(Show::Default),
    F::own("peer_scope", Kind::Name(Scope::NAMES), |row| Value::Name(row.peer_addr.scope().name()))
        .doc("How far the peer's address reaches.")
        .show(Show::Wide),
    F::own("connections", Kind::Count, |row| Value::U64(row.connections))
        .doc("Connections in the flow.")
        .show(Show::Default),
    state_field!("established", State::ESTABLISHED).show(Show::Wide),
    state_field!("fin_wait1", State::FIN_WAIT1).show(Show::Wide),
    state_field!("fin_wait2", State::FIN_WAIT2).show(Show::Wide),
    state_field!("time_wait", State::TIME_WAIT).show(Show::Wide),
    state_field!("close_wait", State::CLOSE_WAIT).show(Show::Wide),
    state_field!("last_ack", State::LAST_ACK).show(Show::Wide),
    state_field!("closing", State::CLOSING).show(Show::Wide),
    state_field!("syn_sent", State::SYN_SENT).show(Show::Wide),
    state_field!("syn_recv", State::SYN_RECV).show(Show::Wide),
    state_field!("close", State::CLOSE).show(Show::Wide),
    F::own("recv_q", Kind::Bytes, |row| Value::U64(row.recv_q))
        .doc("Bytes received that the programs have not read, all connections.")
        .show(Show::Wide),
    F::own("send_q", Kind::Bytes, |row| Value::U64(row.send_q))
        .doc("Bytes written that the peer has not acknowledged, all connections.")
        .show(Show::Wide),
    F::own("bytes_in", Kind::Bytes, |row| Value::number(row.bytes_in))
        .needs(Flow::NEED_TCP_INFO)
        .kernel("tcpi_bytes_received")
        .doc("Bytes received over the connections that are open now."),
    F::own("bytes_out", Kind::Bytes, |row| Value::number(row.bytes_out))
        .needs(Flow::NEED_TCP_INFO)
        .kernel("tcpi_bytes_sent")
        .doc("Bytes sent over the connections that are open now."),
    F::own("retrans_total", Kind::Count, |row| Value::number(row.retrans_total))
        .needs(Flow::NEED_TCP_INFO)
        .kernel("tcpi_total_retrans")
        .doc("Segments retransmitted on the connections that are open now."),
    F::own("min_rtt_us", Kind::DurationUs, |row| Value::number(row.rtt.and_then(|rtt| rtt.min_us)))
        .needs(Flow::NEED_RTT)
        .kernel("tcpi_min_rtt")
        .doc("Smallest round-trip time that any of the connections has seen."),
    F::own("avg_rtt_us", Kind::DurationUs, |row| Value::number(row.rtt.map(|rtt| rtt.avg_us)))
        .needs(Flow::NEED_RTT)
        .kernel("tcpi_rtt")
        .doc("Mean of the connections' smoothed round-trip times."),
    F::own("max_rtt_us", Kind::DurationUs, |row| Value::number(row.rtt.map(|rtt| rtt.max_us)))
        .needs(Flow::NEED_RTT)
        .kernel("tcpi_rtt")
        .doc("Largest of the connections' smoothed round-trip times."),
    F::own("change", Kind::Name(Change::NAMES), |row| RowDiff::change(row.diff)).doc(
        "With --watch: new, kept or gone since the round before; null in the first. Where it is not asked for, what is \
         gone is not shown.",
    ),
    F::own("bytes_in_per_s", Kind::Bytes, |row| Value::number(row.bytes_in_per_s))
        .needs(Flow::NEED_RATES)
        .doc("With --watch: bytes received per second over the connections that were there in the round before."),
    F::own("bytes_out_per_s", Kind::Bytes, |row| Value::number(row.bytes_out_per_s))
        .needs(Flow::NEED_RATES)
        .doc("With --watch: bytes sent per second over the connections that were there in the round before."),
    F::own("process", Kind::Text, |row| owner_value(row.owners, |o| Value::Bytes(o.process.as_bytes())))
        .needs(Flow::NEED_OWNERS)
        .doc("Name of the process that holds the connections, the first one of several.")
        .show(Show::Default),
    F::own("pid", Kind::Id, |row| owner_value(row.owners, |o| Value::U64(o.pid.into())))
        .needs(Flow::NEED_OWNERS)
        .doc("Process that holds the connections, the first one of several.")
        .show(Show::Default),
    F::own("owners", Kind::Owners, |row| if row.owners.is_empty() { Value::Null } else { Value::Owners(row.owners) })
        .needs(Flow::NEED_OWNERS)
        .doc("Holders with different process names: pid, process, fd.")
        .show(Show::Wide),
    F::joined("peer_netns", Kind::Text, LookupId::Netns, |row| peer_netns(row).map_or(Key::None, Key::Id)).doc(
        "With --all-netns, the network namespace that the other end is in, if it is one of this host: both ends are \
         then one flow, seen by the end that opened it.",
    ),
    F::own("peer_netns_id", Kind::Id, |row| Value::number(peer_netns(row))).doc("Inode of that network namespace."),
    F::own("peer_process", Kind::Text, |row| owner_value(row.peer_owners, |o| Value::Bytes(o.process.as_bytes())))
        .needs(Flow::NEED_OWNERS)
        .doc("With --all-netns, the name of the process that holds the other end, the first one of several."),
    F::own("peer_pid", Kind::Id, |row| owner_value(row.peer_owners, |o| Value::U64(o.pid.into())))
        .needs(Flow::NEED_OWNERS)
        .doc("With --all-netns, the process that holds the other end, the first one of several."),
    F::own("peer_owners", Kind::Owners, |row| {
        if row.peer_owners.is_empty() { Value::Null } else { Value::Owners(row.peer_owners) }
    })
    .needs(Flow::NEED_OWNERS)
    .doc("With --all-netns, the holders of the other end: pid, process, fd."),
    F::joined("cmdline", Kind::Text, LookupId::Cmdlines, by_pid)
        .needs(Flow::NEED_OWNERS)
        .doc("Command line of the first holder, its words joined by blanks."),
    F::joined("container", Kind::Text, LookupId::Containers, by_pid)
        .needs(Flow::NEED_OWNERS)
        .doc("Container of the first holder: its name, else the start of its id."),
    F::joined("pod", Kind::Text, LookupId::Pods, by_pid)
        .needs(Flow::NEED_OWNERS)
        .doc("Kubernetes pod of the first holder as namespace/name; its uid where the name is unknown."),
    F::joined("unit", Kind::Text, LookupId::Units, by_pid)
        .needs(Flow::NEED_OWNERS)
        .doc("Innermost systemd unit of the first holder."),
];

fn peer_netns(row: &Flow<'_>) -> Option<u64> {
    (row.peer_netns_id != 0).then_some(row.peer_netns_id)
}
