//! The record of a live connection: it opened, or it closed.

use super::{Direction, Endpoint};
use crate::{Addr, Comm, Field, Key, Kind, LookupId, Proto, Show, State, Table, Value};

/// The table of connections as they open and close (`sockets --follow`).
#[derive(Clone, Copy, Debug)]
pub enum SocketEvents {}

impl Table for SocketEvents {
    type Row<'b> = SocketEvent;
    const NAME: &'static str = "sockets --follow";
    const FIELDS: &'static [Field<SocketEvents>] = FIELDS;
}

/// What happened to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// It was established.
    Open,
    /// It ended.
    Close,
}

impl EventKind {
    /// The words of the field `event`.
    pub const NAMES: &'static [&'static str] = &["open", "close"];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Open => "open",
            EventKind::Close => "close",
        }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Both sides said that they were done.
    Fin,
    /// The peer broke it off (RST).
    Reset,
    /// We broke it off: closed with unread data, with a linger time of 0, or never accepted.
    Abort,
    /// The peer did not answer any more.
    Timeout,
    /// Somebody had the kernel destroy it (`ss -K`).
    Killed,
    /// The network said that the peer cannot be reached, or another error.
    Error,
}

impl Reason {
    /// The words of the field `reason`.
    pub const NAMES: &'static [&'static str] = &["fin", "reset", "abort", "timeout", "killed", "error"];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Fin => "fin",
            Reason::Reset => "reset",
            Reason::Abort => "abort",
            Reason::Timeout => "timeout",
            Reason::Killed => "killed",
            Reason::Error => "error",
        }
    }
}

/// Who holds a connection, as the kernel noted it when a process was at work on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    /// Process id in the pid namespace of netwren itself.
    pub pid: u32,
    /// Process name.
    pub process: Comm,
    /// cgroup v2 id; `None` where the door does not tell.
    pub cgroup_id: Option<u64>,
}

/// One opening or closing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketEvent {
    /// What happened.
    pub kind: EventKind,
    /// When, in ns since 1970.
    pub time_ns: u64,
    /// How long the connection lasted; `None` while it is open and where its beginning was not seen.
    pub duration_us: Option<u64>,
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// TCP.
    pub proto: Proto,
    /// 2 AF_INET, 10 AF_INET6 (also for dual-stack sockets).
    pub family: u8,
    /// Who opened it.
    pub direction: Direction,
    /// Our end.
    pub local: Endpoint,
    /// The other end.
    pub peer: Endpoint,
    /// Who holds it.
    pub holder: Option<Holder>,
    /// User id of the holder, or of the socket where the door knows no holder.
    pub uid: Option<u32>,
    /// Bytes received so far; `None` where the door does not tell, as for the rest.
    pub bytes_in: Option<u64>,
    /// Bytes sent so far, retransmitted ones included.
    pub bytes_out: Option<u64>,
    /// Smoothed round-trip time.
    pub rtt_us: Option<u32>,
    /// Segments retransmitted.
    pub retrans_total: Option<u32>,
    /// Segments received.
    pub segs_in: Option<u32>,
    /// Segments sent.
    pub segs_out: Option<u32>,
    /// The state it is in after opening, or was in before it closed.
    pub state: State,
    /// How it ended; `None` for an opening and where nothing tells.
    pub reason: Option<Reason>,
    /// The socket's number that is never used twice; 0 if unknown.
    pub cookie: u64,
}

impl SocketEvent {
    /// A row with nothing known: doors start from it and fill in.
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

fn holder<'r>(row: &'r SocketEvent, part: impl FnOnce(&'r Holder) -> Value<'r>) -> Value<'r> {
    row.holder.as_ref().map_or(Value::Null, part)
}

fn cgroup_id(row: &SocketEvent) -> Option<u64> {
    row.holder.and_then(|h| h.cgroup_id)
}

/// The key under which containers, pods and units of a cgroup are found.
fn group_key(row: &SocketEvent) -> Key {
    cgroup_id(row).map_or(Key::None, |id| Key::Pair(id, 0))
}

fn pid_key(row: &SocketEvent) -> Key {
    row.holder.map_or(Key::None, |h| Key::Id(h.pid.into()))
}

const FIELDS: &[Field<SocketEvents>] = &[
    F::own("event", Kind::Name(EventKind::NAMES), |row| Value::Name(row.kind.name()))
        .doc("open (the connection is established) or close.")
        .show(Show::Default),
    F::own("time", Kind::Time, |row| Value::Time(row.time_ns))
        .doc(
            "When it happened. A filter takes 10:30 (local time today), -5m (relative to now, in a replay to its \
             start), 2026-11-22T10:30:00Z.",
        )
        .show(Show::Default),
    F::own("duration_us", Kind::DurationUs, |row| Value::number(row.duration_us))
        .doc("How long the connection lasted; null while it is open, and if it was older than this program.")
        .show(Show::Default),
    F::joined("netns", Kind::Text, LookupId::Netns, |row| Key::Id(row.netns_id))
        .doc("Name of the network namespace; its number where it has none.")
        .show(Show::Wide),
    F::own("netns_id", Kind::Id, |row| Value::U64(row.netns_id)).doc("Inode of the network namespace."),
    F::own("proto", Kind::Name(Proto::NAMES), |row| Value::Name(row.proto.name())).doc("Protocol.").show(Show::Wide),
    F::own("family", Kind::Name(&["inet", "inet6"]), |row| match row.family {
        10 => Value::Name("inet6"),
        _ => Value::Name("inet"),
    })
    .doc("Address family; inet6 also for dual-stack sockets whose addresses are shown as IPv4.")
    .show(Show::Wide),
    F::own("direction", Kind::Name(Direction::NAMES), |row| Value::Name(row.direction.name()))
        .doc("Who opened the connection: in (the peer), out (we), unknown (older than this program).")
        .show(Show::Default),
    F::own("local_addr", Kind::Addr, |row| addr(row.local.addr))
        .doc("Our address; IPv4-mapped ones as IPv4.")
        .show(Show::Default),
    F::own("local_port", Kind::Port, |row| Value::U64(row.local.port.into())).doc("Our port.").show(Show::Default),
    F::own("peer_addr", Kind::Addr, |row| addr(row.peer.addr)).doc("The other end's address.").show(Show::Default),
    F::own("peer_port", Kind::Port, |row| Value::U64(row.peer.port.into()))
        .doc("The other end's port.")
        .show(Show::Default),
    F::own("process", Kind::Text, |row| holder(row, |h| Value::Bytes(h.process.as_bytes())))
        .doc("Name of the process that connected or accepted; at the close, of the one that let go of it last.")
        .show(Show::Default),
    F::own("pid", Kind::Id, |row| holder(row, |h| Value::U64(h.pid.into()))).doc("That process.").show(Show::Default),
    F::joined("cmdline", Kind::Text, LookupId::Cmdlines, pid_key)
        .doc("Command line of that process, if it still ran when it was looked at."),
    F::joined("container_pid", Kind::Id, LookupId::ContainerPids, pid_key)
        .doc("The pid that it has in its innermost pid namespace; null in the host's."),
    F::own("uid", Kind::Id, |row| Value::number(row.uid)).doc("User id that the process runs as.").show(Show::Wide),
    F::joined("user", Kind::Text, LookupId::Users, |row| row.uid.map_or(Key::None, |u| Key::Id(u.into())))
        .doc("User that the process runs as.")
        .show(Show::Wide),
    F::joined("container", Kind::Text, LookupId::Containers, group_key)
        .doc("Container of the process (docker, podman, containerd, LXC): its name, else the start of its id."),
    F::joined("pod", Kind::Text, LookupId::Pods, group_key)
        .doc("Kubernetes pod of the process as namespace/name; its uid where the name is unknown."),
    F::joined("unit", Kind::Text, LookupId::Units, group_key).doc("Innermost systemd unit of the process."),
    F::joined("cgroup", Kind::Text, LookupId::Cgroups, |row| cgroup_id(row).map_or(Key::None, Key::Id))
        .doc("Path of the process's cgroup (v2)."),
    F::own("cgroup_id", Kind::Id, |row| Value::number(cgroup_id(row))).doc("Number of that cgroup."),
    F::own("bytes_in", Kind::Bytes, |row| Value::number(row.bytes_in))
        .kernel("bytes_received")
        .doc("Bytes received so far.")
        .show(Show::Default),
    F::own("bytes_out", Kind::Bytes, |row| Value::number(row.bytes_out))
        .kernel("bytes_sent")
        .doc("Bytes sent so far, retransmitted ones included.")
        .show(Show::Default),
    F::own("rtt_us", Kind::DurationUs, |row| Value::number(row.rtt_us))
        .kernel("srtt_us")
        .doc("Smoothed round-trip time.")
        .show(Show::Wide),
    F::own("retrans_total", Kind::Count, |row| Value::number(row.retrans_total))
        .kernel("total_retrans")
        .doc("Segments retransmitted.")
        .show(Show::Wide),
    F::own("segs_in", Kind::Count, |row| Value::number(row.segs_in))
        .kernel("segs_in")
        .doc("Segments received.")
        .show(Show::Wide),
    F::own("segs_out", Kind::Count, |row| Value::number(row.segs_out))
        .kernel("segs_out")
        .doc("Segments sent, acknowledgements included.")
        .show(Show::Wide),
    F::own("state", Kind::Name(State::NAMES), |row| Value::Name(row.state.name(row.proto)))
        .doc("The state after opening; the one that the close ended.")
        .show(Show::Wide),
    F::own("reason", Kind::Name(Reason::NAMES), |row| row.reason.map_or(Value::Null, |r| Value::Name(r.name())))
        .doc(
            "How it ended: fin (both were done), reset (by the peer), abort (reset by us: unread data, no linger, \
             never accepted), timeout, killed (ss -K), error.",
        )
        .show(Show::Wide),
    F::own("cookie", Kind::Id, |row| if row.cookie == 0 { Value::Null } else { Value::U64(row.cookie) })
        .kernel("sk_cookie")
        .doc("Number of the socket that is never used twice: the same at both events, and in `netwren sockets`.")
        .show(Show::Wide),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lookups;

    fn cell<'r>(row: &'r SocketEvent, name: &str) -> Option<Value<'r>> {
        FIELDS.iter().find(|f| f.name == name).map(|f| f.cell(row, &Lookups::none()))
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
