//! The field table of sockets: what stands here is a column, a filter word, a JSON key and a line of the schema.

use super::family_extras_fields::{OPTIONS, RARE, RINGS};
use super::family_fields::{FAMILIES, SCTP, XDP_STATS};
use super::socket_diff::ROUNDS;
use super::tcp_info::MEMBERS;
use super::{Endpoint, Socket, Sockets, UnixType, need};
use crate::{Field, Key, Kind, LookupId, Owner, Proto, Show, State, Timer, Value};

type F = Field<Sockets>;

fn end_addr<'r>(row: &Socket<'_>, end: &Endpoint) -> Value<'r> {
    if !row.is_inet() || (end.is_none() && row.peer == *end) {
        return Value::Null;
    }
    Value::Addr(end.addr.unmapped())
}

// What ss calls a port that nobody asked for. The kernel names a unix socket by a zero and five digits.
fn autobound(row: &Socket<'_>) -> Key {
    match row.unix.as_ref() {
        Some(unix) => Key::Id(matches!(unix.path.unwrap_or_default(), [] | [0, _, _, _, _, _]).into()),
        None if row.is_inet() => Key::Pair(row.netns_id, row.local.port.into()),
        None => Key::None,
    }
}

// A raw socket has a protocol where others have ports.
fn end_port<'r>(row: &Socket<'_>, end: &Endpoint) -> Value<'r> {
    if end.port == 0 || row.proto == Proto::Raw { Value::Null } else { Value::U64(end.port.into()) }
}

fn queue<'r>(row: &Socket<'_>, of_listener: bool, n: Option<u32>) -> Value<'r> {
    // /proc/net/unix tells of no queue: then there is no limit either.
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

fn nonzero<'r>(n: u64) -> Value<'r> {
    if n == 0 { Value::Null } else { Value::U64(n) }
}

fn owners_key(row: &Socket<'_>) -> Key {
    if row.inode == 0 { Key::None } else { Key::Id(row.inode.into()) }
}

// A socket that nobody holds any more was still made in a cgroup.
fn group_key(row: &Socket<'_>) -> Key {
    row.cgroup_id.map_or(Key::None, |id| Key::Pair(id, 0))
}

fn no_key(_: &Socket<'_>) -> Key {
    Key::None
}

fn by_pid(_: Key, owner: &Owner) -> Key {
    Key::Id(owner.pid.into())
}

// Which thread's table: inode and pid side by side, and the descriptor.
fn by_descriptor(socket: Key, owner: &Owner) -> Key {
    match socket {
        Key::Id(inode) => Key::Pair(inode << 32 | u64::from(owner.pid), owner.fd),
        _ => Key::None,
    }
}

fn iface_key(row: &Socket<'_>) -> Key {
    if row.ifindex == 0 { Key::None } else { Key::Pair(row.netns_id, row.ifindex) }
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

const FLAT: &[Field<Sockets>] = &[
    F::joined("netns", Kind::Text, LookupId::Netns, |row| Key::Id(row.netns_id))
        .doc("Name of the network namespace; its number where it has none.")
        .show(Show::Wide),
    F::own("netns_id", Kind::Id, |row| nonzero(row.netns_id)).doc("Inode of the network namespace."),
    F::own("proto", Kind::Name(Proto::NAMES), |row| Value::Name(row.proto.name())).doc("Protocol.").show(Show::Default),
    F::own("family", Kind::Name(FAMILY_NAMES), |row| family_name(row.family))
        .kernel("idiag_family")
        .doc("Address family; inet6 also for dual-stack sockets whose addresses are shown as IPv4.")
        .show(Show::Wide),
    F::own("state", Kind::Name(State::NAMES), |row| Value::Name(row.state.name(row.proto)))
        .kernel("idiag_state")
        .doc("State, in the kernel's words.")
        .show(Show::Default),
    F::own("recv_q", Kind::Bytes, |row| queue(row, false, Some(row.rqueue)))
        .needs(need::QUEUES)
        .kernel("idiag_rqueue")
        .doc("Bytes received that the program has not read.")
        .show(Show::Default),
    F::own("send_q", Kind::Bytes, |row| queue(row, false, row.wqueue))
        .needs(need::QUEUES)
        .kernel("idiag_wqueue")
        .doc("Bytes written that the peer has not acknowledged.")
        .show(Show::Default),
    F::own("accept_q", Kind::Count, |row| queue(row, true, Some(row.rqueue)))
        .needs(need::QUEUES)
        .kernel("idiag_rqueue")
        .doc("Connections of a listener that wait for accept.")
        .show(Show::Wide),
    F::own("accept_q_max", Kind::Count, |row| queue(row, true, row.wqueue))
        .needs(need::QUEUES | need::ACCEPT_MAX)
        .kernel("idiag_wqueue")
        .doc("Backlog limit of a listener.")
        .show(Show::Wide),
    F::own("local_addr", Kind::Addr, |row| end_addr(row, &row.local))
        .kernel("idiag_src")
        .doc("Our address; IPv4-mapped ones as IPv4.")
        .show(Show::Default),
    F::own("local_port", Kind::Port, |row| end_port(row, &row.local))
        .kernel("idiag_sport")
        .doc("Our port.")
        .show(Show::Default),
    F::joined("autobound", Kind::Bool, LookupId::LocalPorts, autobound)
        .needs(need::AUTOBOUND | need::UNIX_NAME)
        .kernel("ip_local_port_range")
        .doc(
            "True if the local port lies in the range that the kernel chooses from; of a unix socket, if it has no name of \
             its own. In a filter the kernel is asked as well whether it chose the port, as ss does.",
        ),
    F::own("peer_addr", Kind::Addr, |row| if row.peer.is_none() { Value::Null } else { end_addr(row, &row.peer) })
        .kernel("idiag_dst")
        .doc("The other end's address; null while not connected.")
        .show(Show::Default),
    F::own("peer_port", Kind::Port, |row| end_port(row, &row.peer))
        .kernel("idiag_dport")
        .doc("The other end's port.")
        .show(Show::Default),
    F::joined("iface", Kind::Text, LookupId::Ifaces, iface_key)
        .needs(need::IFACE_MARK)
        .kernel("idiag_if")
        .doc("Interface that the socket is bound to.")
        .show(Show::Wide),
    F::own("ifindex", Kind::Id, |row| nonzero(row.ifindex.into()))
        .needs(need::IFACE_MARK)
        .kernel("idiag_if")
        .doc("Number of that interface."),
    F::own("mark", Kind::Hex, |row| nonzero(row.mark.unwrap_or(0).into()))
        .needs(need::IFACE_MARK | need::MARK)
        .kernel("INET_DIAG_MARK")
        .doc("Firewall mark of the socket (needs CAP_NET_ADMIN); null for none.")
        .show(Show::Wide),
    F::own("path", Kind::Text, |row| Value::text(row.unix.and_then(|u| u.path)))
        .needs(need::UNIX_NAME)
        .kernel("UNIX_DIAG_NAME")
        .doc("Name of a unix socket; an abstract one starts with a NUL byte.")
        .show(Show::Wide),
    F::own("unix_type", Kind::Name(UnixType::NAMES), |row| {
        row.unix.map_or(Value::Null, |u| Value::Name(u.kind.name()))
    })
    .kernel("udiag_type")
    .doc("Type of a unix socket.")
    .show(Show::Wide),
    F::own("peer_inode", Kind::Id, |row| Value::number(row.unix.and_then(|u| u.peer_inode)))
        .needs(need::UNIX_PEER)
        .kernel("UNIX_DIAG_PEER")
        .doc("Inode of the unix socket at the other end.")
        .show(Show::Wide),
    F::own("uid", Kind::Id, |row| Value::number(row.uid))
        .needs(need::UID)
        .kernel("idiag_uid")
        .doc("User id that the socket belongs to.")
        .show(Show::Wide),
    F::joined("user", Kind::Text, LookupId::Users, |row| row.uid.map_or(Key::None, |u| Key::Id(u.into())))
        .needs(need::UID)
        .doc("User that the socket belongs to.")
        .show(Show::Wide),
    F::own("inode", Kind::Id, |row| nonzero(row.inode.into()))
        .needs(need::INODE)
        .kernel("idiag_inode")
        .doc("Inode of the socket; null for time-wait and orphans.")
        .show(Show::Wide),
    F::own("cookie", Kind::Id, |row| nonzero(row.cookie))
        .needs(need::COOKIE)
        .kernel("idiag_cookie")
        .doc("Number of the socket that is never used twice.")
        .show(Show::Wide),
    F::own("timer", Kind::Name(Timer::NAMES), |row| {
        if row.timer.0 == 0 { Value::Null } else { Value::Name(row.timer.name()) }
    })
    .needs(need::TIMER)
    .kernel("idiag_timer")
    .doc("The timer that runs.")
    .show(Show::Wide),
    F::own(
        "timer_ms",
        Kind::DurationMs,
        |row| {
            if row.timer.0 == 0 { Value::Null } else { Value::U64(row.timer_ms.into()) }
        },
    )
    .needs(need::TIMER)
    .kernel("idiag_expires")
    .doc("Time until the timer ends.")
    .show(Show::Wide),
    F::own(
        "timer_retransmits",
        Kind::Count,
        |row| {
            if row.is_inet() { Value::U64(row.retrans.into()) } else { Value::Null }
        },
    )
    .needs(need::TIMER)
    .kernel("idiag_retrans")
    .doc(
        "Unanswered retransmissions or probes of the running timer; those of the whole connection are `retrans_total`.",
    )
    .show(Show::Wide),
    F::owners("process", Kind::Text, owners_key, Some(|o| Value::Bytes(o.process.as_bytes())))
        .needs(need::INODE)
        .doc("Name of the process that holds the socket, the first one of several.")
        .show(Show::Default),
    F::owners("pid", Kind::Id, owners_key, Some(|o| Value::U64(o.pid.into())))
        .needs(need::INODE)
        .doc("Process that holds the socket, the first one of several.")
        .show(Show::Default),
    F::owners("fd", Kind::Id, owners_key, Some(|o| Value::U64(o.fd.into())))
        .needs(need::INODE)
        .doc("File descriptor of the socket in that process.")
        .show(Show::Wide),
    F::owners("owners", Kind::Owners, owners_key, None)
        .needs(need::INODE)
        .doc("Every holder of the socket: pid, process, fd.")
        .show(Show::Wide),
    F::owners_joined("tid", Kind::Id, LookupId::Owners, owners_key, by_descriptor, no_key).needs(need::INODE).doc(
        "Thread whose descriptor that is; differs from the process only for a thread with descriptors of its own, \
             which only BPF sees.",
    ),
    F::owners_joined("cmdline", Kind::Text, LookupId::Cmdlines, owners_key, by_pid, no_key)
        .needs(need::INODE)
        .doc("Command line of that process, its words joined by blanks."),
    F::owners_joined("container", Kind::Text, LookupId::Containers, owners_key, by_pid, group_key)
        .needs(need::INODE | need::CGROUP)
        .doc("Container of that process (docker, podman, containerd, LXC): its name, else the start of its id."),
    F::owners_joined("pod", Kind::Text, LookupId::Pods, owners_key, by_pid, group_key)
        .needs(need::INODE | need::CGROUP)
        .doc("Kubernetes pod of that process as namespace/name; its uid where the name is unknown."),
    F::owners_joined("unit", Kind::Text, LookupId::Units, owners_key, by_pid, group_key)
        .needs(need::INODE | need::CGROUP)
        .doc("Innermost systemd unit of that process."),
    F::owners_joined("container_pid", Kind::Id, LookupId::ContainerPids, owners_key, by_pid, no_key)
        .needs(need::INODE)
        .doc("Number of that process in its own pid namespace; null where that is ours."),
    F::owners_joined("context", Kind::Text, LookupId::Contexts, owners_key, by_pid, no_key)
        .needs(need::INODE)
        .doc("Security context (SELinux, AppArmor) of that process; null where no policy is loaded."),
    F::joined("cgroup", Kind::Text, LookupId::Cgroups, |row| row.cgroup_id.map_or(Key::None, Key::Id))
        .needs(need::CGROUP)
        .kernel("INET_DIAG_CGROUP_ID")
        .doc("Path of the cgroup (v2) that the socket was made in."),
    F::own("cgroup_id", Kind::Id, |row| Value::number(row.cgroup_id))
        .needs(need::CGROUP)
        .kernel("INET_DIAG_CGROUP_ID")
        .doc("Number of that cgroup."),
    F::own("v6only", Kind::Bool, |row| row.v6only.map_or(Value::Null, Value::Bool))
        .needs(need::V6ONLY)
        .kernel("INET_DIAG_SKV6ONLY")
        .doc("True if an IPv6 socket takes no IPv4."),
    F::own("shutdown", Kind::Name(&["none", "recv", "send", "both"]), |row| match row.shutdown.map(|s| s & 3) {
        None => Value::Null,
        Some(0) => Value::Name("none"),
        Some(1) => Value::Name("recv"),
        Some(2) => Value::Name("send"),
        Some(_) => Value::Name("both"),
    })
    .needs(need::SHUTDOWN)
    .kernel("INET_DIAG_SHUTDOWN")
    .doc("Directions that were shut down."),
    F::own("congestion", Kind::Text, |row| Value::text(row.cong))
        .needs(need::CONG)
        .kernel("INET_DIAG_CONG")
        .doc("Congestion control."),
    F::own("tos", Kind::Hex, |row| Value::number(row.tos))
        .needs(need::TOS)
        .kernel("INET_DIAG_TOS")
        .doc("Type of service."),
    F::own("tclass", Kind::Hex, |row| Value::number(row.tclass))
        .needs(need::TOS)
        .kernel("INET_DIAG_TCLASS")
        .doc("Traffic class (IPv6)."),
    F::own("class_id", Kind::Id, |row| Value::number(row.class_id))
        .needs(need::TOS)
        .kernel("INET_DIAG_CLASS_ID")
        .doc("net_cls class id or socket priority."),
    F::own("rmem_alloc", Kind::Bytes, |row| skmem(row, 0))
        .needs(need::SKMEM)
        .kernel("SK_MEMINFO_RMEM_ALLOC")
        .doc("Memory of received packets."),
    F::own("rcvbuf", Kind::Bytes, |row| skmem(row, 1))
        .needs(need::SKMEM)
        .kernel("SK_MEMINFO_RCVBUF")
        .doc("Receive buffer limit."),
    F::own("wmem_alloc", Kind::Bytes, |row| skmem(row, 2))
        .needs(need::SKMEM)
        .kernel("SK_MEMINFO_WMEM_ALLOC")
        .doc("Memory of packets handed to the lower layers."),
    F::own("sndbuf", Kind::Bytes, |row| skmem(row, 3))
        .needs(need::SKMEM)
        .kernel("SK_MEMINFO_SNDBUF")
        .doc("Send buffer limit."),
    F::own("fwd_alloc", Kind::Bytes, |row| skmem(row, 4))
        .needs(need::SKMEM)
        .kernel("SK_MEMINFO_FWD_ALLOC")
        .doc("Memory reserved ahead."),
    F::own("wmem_queued", Kind::Bytes, |row| skmem(row, 5))
        .needs(need::SKMEM)
        .kernel("SK_MEMINFO_WMEM_QUEUED")
        .doc("Memory of the send queue."),
    F::own("optmem", Kind::Bytes, |row| skmem(row, 6))
        .needs(need::SKMEM)
        .kernel("SK_MEMINFO_OPTMEM")
        .doc("Memory of socket options."),
    F::own("backlog_bytes", Kind::Bytes, |row| skmem(row, 7))
        .needs(need::SKMEM)
        .kernel("SK_MEMINFO_BACKLOG")
        .doc("Memory of packets that wait while the socket is locked."),
    F::own("socket_drops", Kind::Count, drops)
        .needs(need::SKMEM)
        .kernel("SK_MEMINFO_DROPS")
        .doc("Packets dropped at this socket."),
];

/// The parts in the order of the schema: the ordinary fields, the members of `tcp_info`, what few sockets have.
const PARTS: [&[Field<Sockets>]; 9] = [FLAT, MEMBERS, OPTIONS, RARE, RINGS, FAMILIES, SCTP, XDP_STATS, ROUNDS];

const COUNT: usize = {
    let (mut count, mut part) = (0, 0);
    while part < PARTS.len() {
        count += PARTS[part].len();
        part += 1;
    }
    count
};

/// All of them.
pub(super) const FIELDS: &[Field<Sockets>] = &joined();

const fn joined() -> [Field<Sockets>; COUNT] {
    let mut all = [const { F::own("", Kind::Count, |_| Value::Null) }; COUNT];
    let (mut part, mut i, mut to) = (0, 0, 0);
    while part < PARTS.len() {
        if i == PARTS[part].len() {
            (part, i) = (part + 1, 0);
            continue;
        }
        let from = &PARTS[part][i];
        all[to] = Field {
            name: from.name,
            kind: from.kind,
            doc: from.doc,
            kernel: from.kernel,
            show: from.show,
            need: from.need,
            get: from.get,
        };
        (i, to) = (i + 1, to + 1);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_has_no_byte_queues() {
        let row = Socket { state: State::LISTEN, rqueue: 3, wqueue: Some(128), ..Socket::EMPTY };
        let cell = |name| {
            let field = FIELDS.iter().find(|f| f.name == name);
            field.map(|f| f.cell(&row, &crate::Lookups::none()))
        };
        assert_eq!(cell("recv_q"), Some(Value::Null));
        assert_eq!(cell("accept_q"), Some(Value::U64(3)));
        assert_eq!(cell("accept_q_max"), Some(Value::U64(128)));
        assert_eq!(cell("peer_addr"), Some(Value::Null));
    }
}
