//! The tables that are read one by one, and the names of their streams in recordings.
use record::Proto;

use crate::address_families::{AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_TIPC, AF_UNIX, AF_VSOCK, AF_XDP};
use crate::choose::Via;
use crate::pushdown::TableFilter;
use crate::pushdown::bytecode::Code;

/// A table that is read with one dump or from one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// TCP over IPv4 and IPv6 in one dump.
    Tcp,
    Tcp4,
    Tcp6,
    Udp4,
    Udp6,
    Unix,
    Raw4,
    Raw6,
    UdpLite4,
    UdpLite6,
    Mptcp4,
    Mptcp6,
    Packet,
    Netlink,
    Sctp4,
    Sctp6,
    Dccp4,
    Dccp6,
    Vsock,
    Tipc,
    Xdp,
}

/// Returns the tables of a protocol.
pub(crate) fn tables_of(proto: Proto) -> &'static [Table] {
    match proto {
        Proto::Tcp => &[Table::Tcp4, Table::Tcp6],
        Proto::Udp => &[Table::Udp4, Table::Udp6],
        Proto::Unix => &[Table::Unix],
        Proto::Raw => &[Table::Raw4, Table::Raw6],
        Proto::UdpLite => &[Table::UdpLite4, Table::UdpLite6],
        Proto::Mptcp => &[Table::Mptcp4, Table::Mptcp6],
        Proto::Packet => &[Table::Packet],
        Proto::Netlink => &[Table::Netlink],
        Proto::Sctp => &[Table::Sctp4, Table::Sctp6],
        Proto::Dccp => &[Table::Dccp4, Table::Dccp6],
        Proto::Vsock => &[Table::Vsock],
        Proto::Tipc => &[Table::Tipc],
        Proto::Xdp => &[Table::Xdp],
    }
}

impl Table {
    /// Name of the table in messages.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Table::Tcp => "TCP sockets",
            Table::Tcp4 => "TCP sockets (IPv4)",
            Table::Tcp6 => "TCP sockets (IPv6)",
            Table::Udp4 => "UDP sockets (IPv4)",
            Table::Udp6 => "UDP sockets (IPv6)",
            Table::Unix => "unix sockets",
            Table::Raw4 => "raw sockets (IPv4)",
            Table::Raw6 => "raw sockets (IPv6)",
            Table::UdpLite4 => "UDP-Lite sockets (IPv4)",
            Table::UdpLite6 => "UDP-Lite sockets (IPv6)",
            Table::Mptcp4 => "MPTCP sockets (IPv4)",
            Table::Mptcp6 => "MPTCP sockets (IPv6)",
            Table::Packet => "packet sockets",
            Table::Netlink => "netlink sockets",
            Table::Sctp4 => "SCTP sockets (IPv4)",
            Table::Sctp6 => "SCTP sockets (IPv6)",
            Table::Dccp4 => "DCCP sockets (IPv4)",
            Table::Dccp6 => "DCCP sockets (IPv6)",
            Table::Vsock => "vsock sockets",
            Table::Tipc => "TIPC sockets",
            Table::Xdp => "AF_XDP sockets",
        }
    }

    pub(crate) fn proto(self) -> Proto {
        match self {
            Table::Tcp | Table::Tcp4 | Table::Tcp6 => Proto::Tcp,
            Table::Udp4 | Table::Udp6 => Proto::Udp,
            Table::Unix => Proto::Unix,
            Table::Raw4 | Table::Raw6 => Proto::Raw,
            Table::UdpLite4 | Table::UdpLite6 => Proto::UdpLite,
            Table::Mptcp4 | Table::Mptcp6 => Proto::Mptcp,
            Table::Packet => Proto::Packet,
            Table::Netlink => Proto::Netlink,
            Table::Sctp4 | Table::Sctp6 => Proto::Sctp,
            Table::Dccp4 | Table::Dccp6 => Proto::Dccp,
            Table::Vsock => Proto::Vsock,
            Table::Tipc => Proto::Tipc,
            Table::Xdp => Proto::Xdp,
        }
    }

    /// The address family; 0 for both.
    pub(crate) fn family(self) -> u8 {
        match self {
            Table::Tcp => 0,
            Table::Tcp4 | Table::Udp4 | Table::Raw4 | Table::UdpLite4 | Table::Mptcp4 => AF_INET,
            Table::Tcp6 | Table::Udp6 | Table::Raw6 | Table::UdpLite6 | Table::Mptcp6 => AF_INET6,
            Table::Sctp4 | Table::Dccp4 => AF_INET,
            Table::Sctp6 | Table::Dccp6 => AF_INET6,
            Table::Unix => AF_UNIX,
            Table::Packet => AF_PACKET,
            Table::Netlink => AF_NETLINK,
            Table::Vsock => AF_VSOCK,
            Table::Tipc => AF_TIPC,
            Table::Xdp => AF_XDP,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Table::Tcp => "tcp",
            Table::Tcp4 => "tcp4",
            Table::Tcp6 => "tcp6",
            Table::Udp4 => "udp4",
            Table::Udp6 => "udp6",
            Table::Unix => "unix",
            Table::Raw4 => "raw4",
            Table::Raw6 => "raw6",
            Table::UdpLite4 => "udplite4",
            Table::UdpLite6 => "udplite6",
            Table::Mptcp4 => "mptcp4",
            Table::Mptcp6 => "mptcp6",
            Table::Packet => "packet",
            Table::Netlink => "netlink",
            Table::Sctp4 => "sctp4",
            Table::Sctp6 => "sctp6",
            Table::Dccp4 => "dccp4",
            Table::Dccp6 => "dccp6",
            Table::Vsock => "vsock",
            Table::Tipc => "tipc",
            Table::Xdp => "xdp",
        }
    }

    /// Name of the file below /proc/thread-self/net. MPTCP and the families after `Netlink` have no file: opening the
    /// returned name fails.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Table::Tcp | Table::Tcp4 => "tcp",
            Table::Udp4 => "udp",
            Table::Raw4 => "raw",
            Table::UdpLite4 => "udplite",
            other => other.word(),
        }
    }
}

/// Name of the table's stream in a recording.
pub(crate) fn key(table: Table, via: Via, netns_id: u64) -> String {
    format!("sockets/{}/{}@{netns_id}", table.word(), via.name())
}

/// Name of the stream of a dump that was requested again without the filter, because the kernel had refused it.
pub(crate) fn unfiltered_key(table: Table, netns_id: u64) -> String {
    format!("sockets/{}/netlink-unfiltered@{netns_id}", table.word())
}

/// Name of the stream with the names that help to recognise lines of /proc/net/unix.
pub(crate) fn unix_names_key(netns_id: u64) -> String {
    format!("sockets/unix/netlink-names@{netns_id}")
}

/// Name of the stream of the listeners that complement a walk of the connections.
pub(crate) fn listeners_key(table: Table, netns_id: u64) -> String {
    format!("sockets/{}/netlink-listen@{netns_id}", table.word())
}

/// Name of the stream of a walk of listeners; `netns_id` 0 stands for all namespaces.
pub(crate) fn walked_listeners_key(netns_id: u64) -> String {
    format!("sockets/tcp/bpf-listen@{netns_id}")
}

/// Name of the stream of a walk of a table that several namespaces share; `table` is its index among such tables.
pub(crate) fn shared_key(table: usize) -> String {
    format!("sockets/tcp/bpf-shared-{table}@0")
}

/// Describes the kernel's filter for a recording, because filtered-out sockets are missing in the stream. Without a
/// `program` the kernel got only states, families and ports. Empty if nothing was filtered out.
pub(crate) fn note_of(filter: &TableFilter, program: &[u8]) -> String {
    let words =
        if program.is_empty() { TableFilter { code: Code::True, ..filter.clone() }.words() } else { filter.words() };
    if words.is_empty() { words } else { format!("kernel filter: {words}") }
}

/// True if a key belongs to one of these streams in this namespace.
pub(crate) fn is_ours(key: &str, netns_id: u64) -> bool {
    key.strip_prefix("sockets/")
        .and_then(|rest| rest.rsplit_once('@'))
        .is_some_and(|(_, id)| id.parse() == Ok(netns_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_their_own() {
        let tables = Proto::ALL.iter().flat_map(|proto| tables_of(*proto)).chain(&[Table::Tcp]);
        let mut keys: Vec<String> = tables
            .flat_map(|table| [key(*table, Via::Netlink, 7), key(*table, Via::Proc, 7), unfiltered_key(*table, 7)])
            .collect();
        assert!(keys.iter().all(|key| is_ours(key, 7) && !is_ours(key, 8)));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 3 * 21);
    }
}
