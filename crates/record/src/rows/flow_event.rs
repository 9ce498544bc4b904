//! Changes of a flow during an interval: connections that opened or closed.

use super::Direction;
use crate::table::{fields, stored_once};
use crate::{Addr, Field, Key, Link, LookupId, Proto, RowLink, Scope, Show, Table, Value};

/// The table of changes of flows (`flows --follow`).
#[derive(Clone, Copy, Debug)]
pub enum FlowEvents {}

impl Table for FlowEvents {
    type Row<'b> = FlowEvent;
    const NAME: &'static str = "flows --follow";
    const FIELDS: &'static [Field<FlowEvents>] = stored_once!(F, FIELDS);
}

/// One flow in one interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowEvent {
    /// The end of the interval, in ns since 1970.
    pub time_ns: u64,
    /// Length of the interval.
    pub interval_us: u64,
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// TCP.
    pub proto: Proto,
    /// 2 AF_INET, 10 AF_INET6 (also for dual-stack sockets), 0 in a row of folded flows of both families.
    pub family: u8,
    /// The end that opened the connections.
    pub direction: Direction,
    /// Local address; `None` in a row of folded flows.
    pub local_addr: Option<Addr>,
    /// Local port, if it is the service's.
    pub local_port: Option<u16>,
    /// Peer address; `None` in a row of folded flows.
    pub peer_addr: Option<Addr>,
    /// Peer port, if it is the service's.
    pub peer_port: Option<u16>,
    /// Number of the interface that the connections are bound to; 0 is none, or a row of folded flows.
    pub ifindex: u32,
    /// The user whose remaining flows are folded into this row; `None` in the row of a single flow.
    pub folded_uid: Option<u32>,
    /// Number of connections that opened.
    pub opened: u64,
    /// Number of connections that closed.
    pub closed: u64,
    /// Bytes that the closed connections received during their life; `None` if unknown, as in the following fields.
    pub bytes_in: Option<u64>,
    /// Bytes that the closed connections sent.
    pub bytes_out: Option<u64>,
    /// Segments that the closed connections retransmitted.
    pub retrans_total: Option<u64>,
    /// Sum of the lifetimes of the closed connections.
    pub lasted_us: u64,
}

impl FlowEvent {
    /// Mean duration of the closed connections.
    fn duration_us(&self) -> Option<u64> {
        self.lasted_us.checked_div(self.closed).filter(|_| self.lasted_us > 0)
    }
}

fn addr(addr: Option<Addr>) -> Value<'static> {
    addr.map_or(Value::Null, |addr| Value::Addr(addr.unmapped()))
}

/// Connections with a link-local address are bound to the interface of the link.
const LINK: Link<FlowEvents> = Link {
    of: |row| RowLink::index(row.netns_id, row.ifindex),
    names: &["iface"],
    numbers: &["ifindex"],
    in_rows: true,
};

fn iface_key(row: &FlowEvent) -> Key {
    if row.ifindex == 0 { Key::None } else { Key::Pair(row.netns_id, row.ifindex) }
}

type F = Field<FlowEvents>;

const FIELDS: &[F] = fields! { F:
    /// End of the interval. A filter accepts 10:30 (local time today), -5m (relative to now; in a replay, to its start)
    /// and 2026-11-22T10:30:00Z.
    time: Time = own(|row| Value::Time(row.time_ns)), show Show::Default;
    /// Length of the interval.
    interval_us: DurationUs = own(|row| Value::U64(row.interval_us));
    /// Name of the network namespace, or its inode number if it is unnamed.
    netns: Text = joined(LookupId::Netns, |row| Key::Id(row.netns_id)), show Show::Wide;
    /// Inode of the network namespace.
    netns_id: Id = own(|row| Value::U64(row.netns_id));
    /// Protocol.
    proto: Name(Proto::NAMES) = own(|row| Value::Name(row.proto.name())), show Show::Wide;
    /// Address family; inet6 also for dual-stack sockets whose addresses are shown as IPv4.
    family: Name(&["inet", "inet6"]) = own(|row| match row.family {
        2 => Value::Name("inet"),
        10 => Value::Name("inet6"),
        _ => Value::Null,
    }), show Show::Wide;
    /// Who opened the connections: in (the peer), out (this host) or unknown (they began before netwren did).
    direction: Name(Direction::NAMES) = own(|row| Value::Name(row.direction.name())), show Show::Default;
    /// Local address; null in a row of folded flows.
    local_addr: Addr = own(|row| addr(row.local_addr)), show Show::Default, link &LINK;
    /// Local port if the peers connect to it; null if several ports are folded into one flow.
    local_port: Port = own(|row| Value::number(row.local_port)), show Show::Default;
    /// Peer's address; null in a row of folded flows.
    peer_addr: Addr = own(|row| addr(row.peer_addr)), show Show::Default, link &LINK;
    /// Peer's port if this host connects to it; null if several ports are folded into one flow.
    peer_port: Port = own(|row| Value::number(row.peer_port)), show Show::Default;
    /// Interface or VRF that the connections are bound to; connections bound to a different one are a different flow.
    iface: Text = joined(LookupId::Ifaces, iface_key), kernel "skc_bound_dev_if", show Show::Wide;
    /// Index of that interface.
    ifindex: Id = own(|row| Value::number((row.ifindex != 0).then_some(row.ifindex))), kernel "skc_bound_dev_if",
        zero_is_null true;
    /// Scope of the peer's address: public, private, loopback or link.
    peer_scope: Name(Scope::NAMES) = own(|row| {
        row.peer_addr.map_or(Value::Null, |addr| Value::Name(addr.scope().name()))
    }), show Show::Wide;
    /// User whose flows beyond its share of the table are folded into this row; null in other rows.
    folded_uid: Id = own(|row| Value::number(row.folded_uid));
    /// Connections that opened in the interval.
    opened: Count = own(|row| Value::U64(row.opened)), show Show::Default;
    /// Connections that closed in the interval.
    closed: Count = own(|row| Value::U64(row.closed)), show Show::Default;
    /// Bytes that the closed connections received over their lifetime.
    bytes_in: Bytes = own(|row| Value::number(row.bytes_in)), kernel "bytes_received", show Show::Default;
    /// Bytes that the closed connections sent over their lifetime.
    bytes_out: Bytes = own(|row| Value::number(row.bytes_out)), kernel "bytes_sent", show Show::Default;
    /// Segments that the closed connections retransmitted over their lifetime.
    retrans_total: Count = own(|row| Value::number(row.retrans_total)), kernel "total_retrans", show Show::Default;
    /// Average duration of the closed connections.
    avg_duration_us: DurationUs = own(|row| Value::number(row.duration_us())), show Show::Default;
};
