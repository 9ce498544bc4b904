//! The field table of sockets. Each entry of the table defines a column, a filter word, a JSON key and a line of the
//! schema.

use super::family_extras_fields::{OPTIONS, RARE, RINGS};
use super::family_fields::{FAMILIES, SCTP, XDP_STATS};
use super::socket_diff::ROUNDS;
use super::tcp_info_fields::MEMBERS;
use super::{Endpoint, Socket, Sockets, UnixType, need};
use crate::table::{fields, stored_once};
use crate::{
    Addr, Field, HoldingKind, Key, Link, LookupId, Owner, Proto, RowLink, Show, State, Table, Timer, Value,
    concat_fields,
};

type F = Field<Sockets>;

impl Table for Sockets {
    type Row<'b> = Socket<'b>;
    const NAME: &'static str = "sockets";
    const FIELDS: &'static [F] = stored_once!(F, FIELDS);
}

fn end_addr<'r>(row: &Socket<'_>, end: &Endpoint) -> Value<'r> {
    if !row.is_inet() || (end.is_unset() && row.peer == *end) {
        return Value::Null;
    }
    Value::Addr(end.addr.unmapped())
}

// The key for whether a port was chosen automatically, in the sense of ss. The kernel names an autobound unix socket
// with a zero and five digits.
fn autobound(row: &Socket<'_>) -> Key {
    match row.unix.as_ref() {
        Some(unix) => Key::Id(matches!(unix.path.unwrap_or_default(), [] | [0, _, _, _, _, _]).into()),
        None if row.is_inet() => Key::Pair(row.netns_id, row.local.port.into()),
        None => Key::None,
    }
}

// A raw socket has a protocol number instead of a port.
fn end_port<'r>(row: &Socket<'_>, end: &Endpoint) -> Value<'r> {
    if end.port == 0 || row.proto == Proto::Raw { Value::Null } else { Value::U64(end.port.into()) }
}

fn queue<'r>(row: &Socket<'_>, of_listener: bool, n: Option<u32>) -> Value<'r> {
    // /proc/net/unix contains no queues, and therefore no limit.
    let unknown = !row.is_inet() && row.wqueue.is_none();
    if row.is_listener() == of_listener && !unknown { Value::number(n) } else { Value::Null }
}

fn skmem<'r>(row: &Socket<'_>, index: usize) -> Value<'r> {
    Value::number(row.skmem.and_then(|m| m.get(index)))
}

fn drops<'r>(row: &Socket<'_>) -> Value<'r> {
    let of_netlink = || row.extras?.netlink?.drops;
    Value::number(row.skmem.and_then(|m| m.get(8)).or_else(of_netlink))
}

fn nonzero_value<'r>(n: u64) -> Value<'r> {
    if n == 0 { Value::Null } else { Value::U64(n) }
}

fn owners_key(row: &Socket<'_>) -> Key {
    if row.inode == 0 { Key::None } else { Key::Id(row.inode.into()) }
}

// A socket without owners still belongs to the cgroup in which it was created.
fn group_key(row: &Socket<'_>) -> Key {
    row.cgroup_id.map_or(Key::None, |id| Key::Pair(id, 0))
}

fn no_key(_: &Socket<'_>) -> Key {
    Key::None
}

fn by_pid(_: Key, owner: &Owner) -> Key {
    Key::Id(owner.pid.into())
}

// The key of the thread that owns a descriptor: inode and pid in one number, and the descriptor.
fn by_descriptor(socket: Key, owner: &Owner) -> Key {
    match socket {
        Key::Id(inode) => Key::Pair(inode << 32 | u64::from(owner.pid), owner.fd),
        _ => Key::None,
    }
}

/// A socket with a link-local address is bound to the interface of the link.
const LINK: Link<Sockets> = Link {
    of: |row| RowLink::index(row.netns_id, row.ifindex),
    names: &["iface"],
    numbers: &["ifindex"],
    in_rows: true,
};

fn iface_key(row: &Socket<'_>) -> Key {
    if row.ifindex == 0 { Key::None } else { Key::Pair(row.netns_id, row.ifindex) }
}

// A socket at an address of its own takes what comes to that address, whatever the option says.
fn v6only<'r>(row: &Socket<'_>) -> Value<'r> {
    let is_wildcard = row.local.addr == Addr::ANY6 && row.local.port != 0 && row.peer.port == 0;
    let counts = is_wildcard && row.proto != Proto::Raw;
    row.v6only.filter(|_| counts).map_or(Value::Null, Value::Bool)
}

const FAMILY_NAMES: &[&str] = &["inet", "inet6", "unix", "packet", "netlink", "tipc", "vsock", "xdp"];

fn family_name<'r>(family: u8) -> Value<'r> {
    match family {
        2 => Value::Name("inet"),
        10 => Value::Name("inet6"),
        1 => Value::Name("unix"),
        16 => Value::Name("netlink"),
        17 => Value::Name("packet"),
        30 => Value::Name("tipc"),
        40 => Value::Name("vsock"),
        44 => Value::Name("xdp"),
        _ => Value::Null,
    }
}

const FLAT: &[F] = fields! { F:
    /// Name of the network namespace, or its inode number if it is unnamed.
    netns: Text = joined(LookupId::Netns, |row| Key::Id(row.netns_id)), show Show::Wide;
    /// Inode of the network namespace.
    netns_id: Id = own(|row| nonzero_value(row.netns_id));
    /// Protocol.
    proto: Name(Proto::NAMES) = own(|row| Value::Name(row.proto.name())), show Show::Default;
    /// Address family; inet6 also for dual-stack sockets whose addresses are shown as IPv4.
    family: Name(FAMILY_NAMES) = own(|row| family_name(row.family)), kernel "idiag_family", show Show::Wide;
    /// State, as the kernel names it.
    state: Name(State::NAMES) = own(|row| Value::Name(row.state.name(row.proto))),
        kernel "idiag_state", show Show::Default;
    /// Bytes received that the program has not read yet.
    recv_q: Bytes = own(|row| queue(row, false, Some(row.rqueue))),
        kernel "idiag_rqueue", needs need::QUEUES, show Show::Default;
    /// Bytes sent or queued that the peer has not acknowledged yet.
    send_q: Bytes = own(|row| queue(row, false, row.wqueue)),
        kernel "idiag_wqueue", needs need::QUEUES, show Show::Default;
    /// Connections in a listener's accept queue, waiting for accept().
    accept_q: Count = own(|row| queue(row, true, Some(row.rqueue))),
        kernel "idiag_rqueue", needs need::QUEUES, show Show::Wide;
    /// Limit of a listener's accept queue (backlog).
    accept_q_max: Count = own(|row| queue(row, true, row.wqueue)),
        kernel "idiag_wqueue", needs need::QUEUES | need::ACCEPT_MAX, show Show::Wide;
    /// Local address; an IPv4-mapped address is shown as IPv4.
    local_addr: Addr = own(|row| end_addr(row, &row.local)), kernel "idiag_src", show Show::Default, link &LINK;
    /// Local port.
    local_port: Port = own(|row| end_port(row, &row.local)), kernel "idiag_sport", show Show::Default;
    /// True if the local port is in the range from which the kernel chooses ports; for a unix socket, true if the
    /// program gave it no name. A filter on this field also asks the kernel whether it chose the port, as ss does.
    autobound: Bool = joined(LookupId::LocalPorts, autobound),
        kernel "ip_local_port_range", needs need::AUTOBOUND | need::UNIX_NAME;
    /// Peer's address; null if not connected.
    peer_addr: Addr = own(|row| if row.peer.is_unset() { Value::Null } else { end_addr(row, &row.peer) }),
        kernel "idiag_dst", show Show::Default, link &LINK;
    /// Peer's port.
    peer_port: Port = own(|row| end_port(row, &row.peer)), kernel "idiag_dport", show Show::Default;
    /// Interface or VRF that the socket is bound to.
    iface: Text = joined(LookupId::Ifaces, iface_key), kernel "idiag_if", needs need::IFACE_MARK, show Show::Unusual;
    /// For a socket at `::` without peer: true if it accepts only IPv6, false if it accepts IPv4 as well (`*` in ss).
    v6only: Bool = own(v6only), kernel "INET_DIAG_SKV6ONLY", needs need::V6ONLY, show Show::Unusual;
    /// Index of that interface.
    ifindex: Id = own(|row| nonzero_value(row.ifindex.into())), kernel "idiag_if", needs need::IFACE_MARK,
        zero_is_null true;
    /// Firewall mark of the socket (needs CAP_NET_ADMIN); null if it is 0.
    mark: Hex = own(|row| nonzero_value(row.mark.unwrap_or(0).into())),
        kernel "INET_DIAG_MARK", needs need::IFACE_MARK | need::MARK, show Show::Wide, zero_is_null true;
    /// Path of a unix socket; an abstract name starts with a NUL byte.
    path: Text = own(|row| Value::text(row.unix.and_then(|u| u.path))),
        kernel "UNIX_DIAG_NAME", needs need::UNIX_NAME, show Show::Wide;
    /// Type of a unix socket.
    unix_type: Name(UnixType::NAMES) = own(|row| {
        row.unix.map_or(Value::Null, |u| Value::Name(u.kind.name()))
    }), kernel "udiag_type", show Show::Wide;
    /// Inode of the peer's unix socket.
    peer_inode: Id = own(|row| Value::number(row.unix.and_then(|u| u.peer_inode))),
        kernel "UNIX_DIAG_PEER", needs need::UNIX_PEER, show Show::Wide;
    /// User ID of the socket's owner.
    uid: Id = own(|row| Value::number(row.uid)), kernel "idiag_uid", needs need::UID, show Show::Wide;
    /// User name of the socket's owner.
    user: Text = joined(LookupId::Users, |row| row.uid.map_or(Key::None, |u| Key::Id(u.into()))),
        needs need::UID, show Show::Wide;
    /// Inode of the socket; null for time-wait sockets and orphans.
    inode: Id = own(|row| nonzero_value(row.inode.into())),
        kernel "idiag_inode", needs need::INODE, show Show::Wide, zero_is_null true;
    /// Socket cookie, a number that the kernel never reuses.
    cookie: Id = own(|row| nonzero_value(row.cookie)),
        kernel "idiag_cookie", needs need::COOKIE, show Show::Wide, zero_is_null true;
    /// The running timer.
    timer: Name(Timer::NAMES) = own(|row| {
        if row.timer.0 == 0 { Value::Null } else { Value::Name(row.timer.name()) }
    }), kernel "idiag_timer", needs need::TIMER, show Show::Wide;
    /// Time until the timer expires.
    timer_ms: DurationMs = own(|row| {
            if row.timer.0 == 0 { Value::Null } else { Value::U64(row.timer_ms.into()) }
        }), kernel "idiag_expires", needs need::TIMER, show Show::Wide;
    /// Unanswered retransmissions or probes of the running timer; `retrans_total` counts the whole connection.
    timer_retransmits: Count = own(|row| {
            if row.is_inet() { Value::U64(row.retrans.into()) } else { Value::Null }
        }), kernel "idiag_retrans", needs need::TIMER, show Show::Wide;
    /// Name of the process that owns the socket. If several do, the oldest that does not merely pass it on; text adds
    /// the number of the others (`nginx +3`), and a filter matches any of them.
    process: Text = owners(owners_key, Some(|o| Value::Bytes(o.process.as_bytes()))),
        needs need::INODE, show Show::Default;
    /// PID of the process in `process`.
    pid: Id = owners(owners_key, Some(|o| Value::U64(o.pid.into()))), needs need::INODE, show Show::Default;
    /// That process's file descriptor for the socket; null if the process owns the socket without one (see `held_in`).
    fd: Id = owners(owners_key, Some(|o| Value::number(o.descriptor()))), needs need::INODE, show Show::Wide;
    /// How that process owns the socket: through a descriptor, as a file registered with an io_uring, or in flight, in
    /// a message that a unix socket of the process has not delivered yet (SCM_RIGHTS).
    held_in: Name(HoldingKind::NAMES) =
        owners(owners_key, Some(|o| Value::Name(o.holding().name()))), needs need::INODE;
    /// All processes that own the socket: PID, name, file descriptor and start time (ms since boot).
    owners: Owners = owners(owners_key, None), needs need::INODE, show Show::Wide;
    /// Thread that owns the descriptor; differs from `pid` only if the thread has its own descriptor table.
    tid: Id = owners_joined(LookupId::Owners, owners_key, by_descriptor, no_key), needs need::INODE;
    /// Command line of that process, its arguments separated by spaces.
    cmdline: Text = owners_joined(LookupId::Cmdlines, owners_key, by_pid, no_key), needs need::INODE;
    /// Container of that process (docker, podman, containerd, LXC): its name, or the start of its ID.
    container: Text = owners_joined(LookupId::Containers, owners_key, by_pid, group_key),
        needs need::INODE | need::CGROUP;
    /// Kubernetes pod of that process as namespace/name; its UID if the name is unknown.
    pod: Text = owners_joined(LookupId::Pods, owners_key, by_pid, group_key), needs need::INODE | need::CGROUP;
    /// Innermost systemd unit of that process.
    unit: Text = owners_joined(LookupId::Units, owners_key, by_pid, group_key), needs need::INODE | need::CGROUP;
    /// PID of that process in its own PID namespace; null if it shares netwren's.
    container_pid: Id = owners_joined(LookupId::ContainerPids, owners_key, by_pid, no_key), needs need::INODE;
    /// Security context (SELinux, AppArmor) of that process; null if no policy is loaded.
    context: Text = owners_joined(LookupId::Contexts, owners_key, by_pid, no_key), needs need::INODE;
    /// Path of the cgroup (v2) in which the socket was created.
    cgroup: Text = joined(LookupId::Cgroups, |row| row.cgroup_id.map_or(Key::None, Key::Id)),
        kernel "INET_DIAG_CGROUP_ID", needs need::CGROUP;
    /// ID of that cgroup.
    cgroup_id: Id = own(|row| Value::number(row.cgroup_id)), kernel "INET_DIAG_CGROUP_ID", needs need::CGROUP;
    /// Directions that were shut down: none, recv, send or both.
    shutdown: Name(&["none", "recv", "send", "both"]) = own(|row| match row.shutdown.map(|s| s & 3) {
        None => Value::Null,
        Some(0) => Value::Name("none"),
        Some(1) => Value::Name("recv"),
        Some(2) => Value::Name("send"),
        Some(_) => Value::Name("both"),
    }), kernel "INET_DIAG_SHUTDOWN", needs need::SHUTDOWN;
    /// Congestion control.
    congestion: Text = own(|row| Value::text(row.cong)), kernel "INET_DIAG_CONG", needs need::CONG;
    /// Type of service.
    tos: Hex = own(|row| Value::number(row.tos)), kernel "INET_DIAG_TOS", needs need::TOS;
    /// Traffic class (IPv6).
    tclass: Hex = own(|row| Value::number(row.tclass)), kernel "INET_DIAG_TCLASS", needs need::TOS;
    /// net_cls class id or socket priority.
    class_id: Id = own(|row| Value::number(row.class_id)), kernel "INET_DIAG_CLASS_ID", needs need::TOS;
    /// Memory used by received packets.
    rmem_alloc: Bytes = own(|row| skmem(row, 0)), kernel "SK_MEMINFO_RMEM_ALLOC", needs need::SKMEM;
    /// Receive buffer limit.
    rcvbuf: Bytes = own(|row| skmem(row, 1)), kernel "SK_MEMINFO_RCVBUF", needs need::SKMEM;
    /// Memory used by packets that were handed to the lower layers.
    wmem_alloc: Bytes = own(|row| skmem(row, 2)), kernel "SK_MEMINFO_WMEM_ALLOC", needs need::SKMEM;
    /// Send buffer limit.
    sndbuf: Bytes = own(|row| skmem(row, 3)), kernel "SK_MEMINFO_SNDBUF", needs need::SKMEM;
    /// Memory reserved ahead.
    fwd_alloc: Bytes = own(|row| skmem(row, 4)), kernel "SK_MEMINFO_FWD_ALLOC", needs need::SKMEM;
    /// Memory used by the send queue.
    wmem_queued: Bytes = own(|row| skmem(row, 5)), kernel "SK_MEMINFO_WMEM_QUEUED", needs need::SKMEM;
    /// Memory used by socket options.
    optmem: Bytes = own(|row| skmem(row, 6)), kernel "SK_MEMINFO_OPTMEM", needs need::SKMEM;
    /// Memory used by packets that wait until the socket is unlocked.
    backlog_bytes: Bytes = own(|row| skmem(row, 7)), kernel "SK_MEMINFO_BACKLOG", needs need::SKMEM;
    /// Packets dropped at this socket.
    socket_drops: Count = own(drops), kernel "SK_MEMINFO_DROPS", needs need::SKMEM;
};

/// The parts in the order of the schema: the ordinary fields, the members of `tcp_info`, and fields of rarer sockets.
const PARTS: [&[Field<Sockets>]; 9] = [FLAT, MEMBERS, OPTIONS, RARE, RINGS, FAMILIES, SCTP, XDP_STATS, ROUNDS];

const COUNT: usize = {
    let (mut count, mut part) = (0, 0);
    while part < PARTS.len() {
        count += PARTS[part].len();
        part += 1;
    }
    count
};

/// Every field.
const FIELDS: &[F] = &concat_fields::<_, COUNT>(&PARTS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_has_no_byte_queues() {
        let row = Socket { state: State::LISTEN, rqueue: 3, wqueue: Some(128), ..Socket::EMPTY };
        let cell = |name| {
            let field = FIELDS.iter().find(|f| f.name == name);
            field.map(|f| f.cell(&row, &crate::Lookups::empty()))
        };
        assert_eq!(cell("recv_q"), Some(Value::Null));
        assert_eq!(cell("accept_q"), Some(Value::U64(3)));
        assert_eq!(cell("accept_q_max"), Some(Value::U64(128)));
        assert_eq!(cell("peer_addr"), Some(Value::Null));
    }
}
