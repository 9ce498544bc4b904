//! The tables as they are read one by one, and their names on the tape.
use record::Proto;

use crate::choose::Via;
use crate::inet_diag::{AF_INET, AF_INET6};
use crate::unix_diag::AF_UNIX;

/// One dump or one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// Both families of TCP in one dump.
    Tcp,
    Tcp4,
    Tcp6,
    Udp4,
    Udp6,
    Unix,
}

/// The tables of a protocol, one by one.
pub(crate) fn tables_of(proto: Proto) -> &'static [Table] {
    match proto {
        Proto::Tcp => &[Table::Tcp4, Table::Tcp6],
        Proto::Udp => &[Table::Udp4, Table::Udp6],
        Proto::Unix => &[Table::Unix],
    }
}

impl Table {
    /// The words of messages.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Table::Tcp => "TCP sockets",
            Table::Tcp4 => "TCP sockets (IPv4)",
            Table::Tcp6 => "TCP sockets (IPv6)",
            Table::Udp4 => "UDP sockets (IPv4)",
            Table::Udp6 => "UDP sockets (IPv6)",
            Table::Unix => "unix sockets",
        }
    }

    pub(crate) fn proto(self) -> Proto {
        match self {
            Table::Tcp | Table::Tcp4 | Table::Tcp6 => Proto::Tcp,
            Table::Udp4 | Table::Udp6 => Proto::Udp,
            Table::Unix => Proto::Unix,
        }
    }

    /// The address family; 0 for both.
    pub(crate) fn family(self) -> u8 {
        match self {
            Table::Tcp => 0,
            Table::Tcp4 | Table::Udp4 => AF_INET,
            Table::Tcp6 | Table::Udp6 => AF_INET6,
            Table::Unix => AF_UNIX,
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
        }
    }

    /// The file below /proc/thread-self/net.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Table::Tcp | Table::Tcp4 => "tcp",
            Table::Udp4 => "udp",
            other => other.word(),
        }
    }
}

/// Name of the table's stream on the tape.
pub(crate) fn key(table: Table, via: Via, netns_id: u64) -> String {
    format!("sockets/{}/{}@{netns_id}", table.word(), via.name())
}

/// The stream of a dump that was asked for again, without the filter that the kernel had refused.
pub(crate) fn unfiltered_key(table: Table, netns_id: u64) -> String {
    format!("sockets/{}/netlink-unfiltered@{netns_id}", table.word())
}

/// The stream of the listeners that stand beside a walk of the connections.
pub(crate) fn listeners_key(table: Table, netns_id: u64) -> String {
    format!("sockets/{}/netlink-listen@{netns_id}", table.word())
}

/// True if a key is one of ours in this namespace.
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
        let mut keys: Vec<String> = [Table::Tcp, Table::Tcp4, Table::Tcp6, Table::Udp4, Table::Udp6, Table::Unix]
            .iter()
            .flat_map(|table| [key(*table, Via::Netlink, 7), key(*table, Via::Proc, 7), unfiltered_key(*table, 7)])
            .collect();
        assert!(keys.iter().all(|key| is_ours(key, 7) && !is_ours(key, 8)));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 18);
    }
}
