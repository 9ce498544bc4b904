//! Connections that opened or closed.

use super::{Direction, Endpoint, Flow};
use crate::named_enum::named_enum;
use crate::table::{fields, stored_once};
use crate::{Addr, Comm, Field, Key, Link, LookupId, Proto, RowLink, Show, State, Table, Value};

/// The table of opened and closed connections (`sockets --follow`).
#[derive(Clone, Copy, Debug)]
pub enum SocketEvents {}

impl Table for SocketEvents {
    type Row<'b> = SocketEvent;
    const NAME: &'static str = "sockets --follow";
    const FIELDS: &'static [Field<SocketEvents>] = stored_once!(F, FIELDS);
}

named_enum! {
    /// The kind of event.
    pub enum EventKind {
        /// The connection was established.
        Open => "open",
        /// The connection ended.
        Close => "close",
    }
}

named_enum! {
    /// How a connection ended.
    pub enum CloseReason {
        /// The connection was closed by both sides.
        Fin => "fin",
        /// The peer aborted it (RST).
        Reset => "reset",
        /// The local side aborted it: closed with unread data, with a linger time of 0, or never accepted.
        Abort => "abort",
        /// The peer stopped responding.
        Timeout => "timeout",
        /// A process had the kernel destroy it (`ss -K`).
        Killed => "killed",
        /// The network reported that the peer is unreachable, or another error occurred.
        Error => "error",
    }
}

/// The owner of a connection, as the kernel recorded it while a process was using the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    /// Process id in netwren's own pid namespace.
    pub pid: u32,
    /// Process name.
    pub process: Comm,
    /// Start time in units of 2^20 ns since boot, the lowest 32 bits; 0 if unknown.
    pub started: u32,
    /// cgroup v2 id; `None` if the backend does not report it.
    pub cgroup_id: Option<u64>,
}

/// A connection that opened or closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketEvent {
    /// The kind of event.
    pub kind: EventKind,
    /// Time of the event, in ns since 1970.
    pub time_ns: u64,
    /// Lifetime of the connection; `None` while it is open, and if its start was not observed.
    pub duration_us: Option<u64>,
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// TCP.
    pub proto: Proto,
    /// 2 AF_INET, 10 AF_INET6 (also for dual-stack sockets).
    pub family: u8,
    /// The end that opened it.
    pub direction: Direction,
    /// The local end.
    pub local: Endpoint,
    /// The peer.
    pub peer: Endpoint,
    /// Number of the interface that the socket is bound to; 0 is none.
    pub ifindex: u32,
    /// Its owner.
    pub holder: Option<Holder>,
    /// User id of the owner, or of the socket if the backend does not report an owner.
    pub uid: Option<u32>,
    /// Bytes received so far; `None` if the backend does not report it, as in the following fields.
    pub bytes_in: Option<u64>,
    /// Bytes sent so far, including retransmitted bytes.
    pub bytes_out: Option<u64>,
    /// Smoothed round-trip time.
    pub rtt_us: Option<u32>,
    /// Segments retransmitted.
    pub retrans_total: Option<u32>,
    /// Segments received.
    pub segs_in: Option<u32>,
    /// Segments sent.
    pub segs_out: Option<u32>,
    /// The state after opening, or before closing.
    pub state: State,
    /// How it ended; `None` for an opening, and if unknown.
    pub reason: Option<CloseReason>,
    /// The socket's cookie, which is never reused; 0 if unknown.
    pub cookie: u64,
}

impl SocketEvent {
    /// A row with all values unset: backends start from it and fill in their values.
    pub const EMPTY: SocketEvent = SocketEvent {
        kind: EventKind::Open,
        time_ns: 0,
        duration_us: None,
        netns_id: 0,
        proto: Proto::Tcp,
        family: 2,
        direction: Direction::Unknown,
        local: Endpoint::NONE,
        peer: Endpoint::NONE,
        ifindex: 0,
        holder: None,
        uid: None,
        bytes_in: None,
        bytes_out: None,
        rtt_us: None,
        retrans_total: None,
        segs_in: None,
        segs_out: None,
        state: State::ESTABLISHED,
        reason: None,
        cookie: 0,
    };
}

type F = Field<SocketEvents>;

fn addr<'r>(addr: Addr) -> Value<'r> {
    Value::Addr(addr.unmapped())
}

/// A socket with a link-local address is bound to the interface of the link.
const LINK: Link<SocketEvents> = Link {
    of: |row| RowLink::index(row.netns_id, row.ifindex),
    names: &["iface"],
    numbers: &["ifindex"],
    in_rows: true,
};

fn iface_key(row: &SocketEvent) -> Key {
    if row.ifindex == 0 { Key::None } else { Key::Pair(row.netns_id, row.ifindex) }
}

fn owner_value<'r>(row: &'r SocketEvent, part: impl FnOnce(&'r Holder) -> Value<'r>) -> Value<'r> {
    row.holder.as_ref().map_or(Value::Null, part)
}

fn cgroup_id(row: &SocketEvent) -> Option<u64> {
    row.holder.and_then(|h| h.cgroup_id)
}

/// The key for containers, pods and units of a cgroup.
fn group_key(row: &SocketEvent) -> Key {
    cgroup_id(row).map_or(Key::None, |id| Key::Pair(id, 0))
}

/// The key of a process. Its pid may have been reused since then, but not with the same start time.
fn pid_key(row: &SocketEvent) -> Key {
    row.holder.map_or(Key::None, |holder| match holder.started {
        0 => Key::Id(holder.pid.into()),
        started => Key::Pair(holder.pid.into(), started),
    })
}

const FIELDS: &[F] = fields! { F:
    /// Event: open (the connection was established) or close.
    event: Name(EventKind::NAMES) = own(|row| Value::Name(row.kind.name())), show Show::Default;
    /// Time of the event. A filter accepts 10:30 (local time today), -5m (relative to now; in a replay, to its start)
    /// and 2026-11-22T10:30:00Z.
    time: Time = own(|row| Value::Time(row.time_ns)), show Show::Default;
    /// Duration of the connection; null while it is open, and if it began before netwren did.
    duration_us: DurationUs = own(|row| Value::number(row.duration_us)), show Show::Default;
    /// Name of the network namespace, or its inode number if it is unnamed.
    netns: Text = joined(LookupId::Netns, |row| Key::Id(row.netns_id)), show Show::Wide;
    /// Inode of the network namespace.
    netns_id: Id = own(|row| Value::U64(row.netns_id));
    /// Protocol.
    proto: Name(Proto::NAMES) = own(|row| Value::Name(row.proto.name())), show Show::Wide;
    /// Address family; inet6 also for dual-stack sockets whose addresses are shown as IPv4.
    family: Name(&["inet", "inet6"]) = own(|row| match row.family {
        10 => Value::Name("inet6"),
        _ => Value::Name("inet"),
    }), show Show::Wide;
    /// Who opened the connection: in (the peer), out (this host) or unknown (it began before netwren did).
    direction: Name(Direction::NAMES) = own(|row| Value::Name(row.direction.name())), show Show::Default;
    /// Local address; an IPv4-mapped address is shown as IPv4.
    local_addr: Addr = own(|row| addr(row.local.addr)), show Show::Default, link &LINK;
    /// Local port.
    local_port: Port = own(|row| Value::U64(row.local.port.into())), show Show::Default;
    /// Peer's address.
    peer_addr: Addr = own(|row| addr(row.peer.addr)), show Show::Default, link &LINK;
    /// Peer's port.
    peer_port: Port = own(|row| Value::U64(row.peer.port.into())), show Show::Default;
    /// Interface or VRF that the socket is bound to.
    iface: Text = joined(LookupId::Ifaces, iface_key), kernel "skc_bound_dev_if", show Show::Wide;
    /// Index of that interface.
    ifindex: Id = own(|row| Value::number((row.ifindex != 0).then_some(row.ifindex))), kernel "skc_bound_dev_if",
        zero_is_null true;
    /// Name of the process that connected or accepted; in a close event, of the last process to close the socket.
    process: Text = own(|row| owner_value(row, |h| Value::Bytes(h.process.as_bytes()))),
        needs Flow::NEED_OWNERS, show Show::Default;
    /// That process.
    pid: Id = own(|row| owner_value(row, |h| Value::U64(h.pid.into()))), needs Flow::NEED_OWNERS, show Show::Default;
    /// Command line of that process, if it was still running when netwren read it.
    cmdline: Text = joined(LookupId::Cmdlines, pid_key);
    /// PID of that process in its innermost PID namespace; null if that is the host's.
    container_pid: Id = joined(LookupId::ContainerPids, pid_key);
    /// User ID of the process.
    uid: Id = own(|row| Value::number(row.uid)), show Show::Wide;
    /// User name of the process.
    user: Text = joined(LookupId::Users, |row| row.uid.map_or(Key::None, |u| Key::Id(u.into()))), show Show::Wide;
    /// Container of the process (docker, podman, containerd, LXC): its name, or the start of its ID.
    container: Text = joined(LookupId::Containers, group_key);
    /// Kubernetes pod of the process as namespace/name; its UID if the name is unknown.
    pod: Text = joined(LookupId::Pods, group_key);
    /// Innermost systemd unit of the process.
    unit: Text = joined(LookupId::Units, group_key);
    /// Path of the process's cgroup (v2).
    cgroup: Text = joined(LookupId::Cgroups, |row| cgroup_id(row).map_or(Key::None, Key::Id));
    /// ID of that cgroup.
    cgroup_id: Id = own(|row| Value::number(cgroup_id(row)));
    /// Bytes received so far.
    bytes_in: Bytes = own(|row| Value::number(row.bytes_in)), kernel "bytes_received", show Show::Default;
    /// Bytes sent so far, retransmitted ones included.
    bytes_out: Bytes = own(|row| Value::number(row.bytes_out)), kernel "bytes_sent", show Show::Default;
    /// Smoothed round-trip time.
    rtt_us: DurationUs = own(|row| Value::number(row.rtt_us)), kernel "srtt_us", show Show::Wide;
    /// Segments retransmitted.
    retrans_total: Count = own(|row| Value::number(row.retrans_total)), kernel "total_retrans", show Show::Wide;
    /// Segments received.
    segs_in: Count = own(|row| Value::number(row.segs_in)), kernel "segs_in", show Show::Wide;
    /// Segments sent, acknowledgements included.
    segs_out: Count = own(|row| Value::number(row.segs_out)), kernel "segs_out", show Show::Wide;
    /// State after the open event, or before the close event.
    state: Name(State::NAMES) = own(|row| Value::Name(row.state.name(row.proto))), show Show::Wide;
    /// How the connection ended: fin (both sides closed it), reset (by the peer), abort (reset by this host: unread
    /// data, no linger, never accepted), timeout, killed (ss -K) or error.
    reason: Name(CloseReason::NAMES) =
        own(|row| row.reason.map_or(Value::Null, |r| Value::Name(r.name()))), show Show::Wide;
    /// Socket cookie, a number that the kernel never reuses: the same in both events and in `netwren sockets`.
    cookie: Id = own(|row| if row.cookie == 0 { Value::Null } else { Value::U64(row.cookie) }),
        kernel "sk_cookie", show Show::Wide;
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lookups;

    fn cell<'r>(row: &'r SocketEvent, name: &str) -> Option<Value<'r>> {
        FIELDS.iter().find(|f| f.name == name).map(|f| f.cell(row, &Lookups::empty()))
    }

    #[test]
    fn the_event_comes_first() {
        assert_eq!(FIELDS[..3].iter().map(|f| f.name).collect::<Vec<_>>(), ["event", "time", "duration_us"]);
    }

    #[test]
    fn unknown_is_null_and_mapped_addresses_are_ipv4() {
        let mapped = Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1]);
        let local = Endpoint { addr: mapped, port: 80 };
        let row = SocketEvent { family: 10, local, ..SocketEvent::EMPTY };
        assert_eq!(cell(&row, "local_addr"), Some(Value::Addr(Addr::V4([10, 0, 0, 1]))));
        assert_eq!(cell(&row, "family"), Some(Value::Name("inet6")));
        for name in ["duration_us", "pid", "process", "uid", "bytes_in", "rtt_us", "reason", "cookie", "cgroup_id"] {
            assert_eq!(cell(&row, name), Some(Value::Null), "{name}");
        }
    }
}
