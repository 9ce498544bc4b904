//! Which door a table is read through. Pure: facts in, a door and the reason out.
//!
//! A door that lacks a demanded field is out; among the rest the cheapest wins. Netlink beats /proc from the first
//! socket on (ten sockets: 0.4 ms against 9.4 ms, because /proc crosses every empty bucket twice), so size does not
//! matter between these two. The third door, a BPF walk of the hash table, will: it belongs in [`choose`], for TCP
//! from some 40 000 sockets (`/proc/net/sockstat` tells for one read), with CAP_BPF and CAP_PERFMON, on kernels that
//! have BTF.
use record::Proto;
use record::rows::need;

/// A kernel interface to read sockets through (`--via`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// sock_diag.
    Netlink,
    /// The files of /proc/net.
    Proc,
}

impl Via {
    /// The word of the command line and of [`record::Offer::door`].
    pub fn name(self) -> &'static str {
        match self {
            Via::Netlink => "netlink",
            Via::Proc => "proc",
        }
    }
}

/// `need` bits that only unix sockets can have.
const UNIX_ONLY: u64 = need::UNIX_NAME | need::UNIX_PEER | need::UNIX_VFS | need::UNIX_REFS | need::UNIX_ICONS;

/// `need` bits that /proc/net/tcp, udp, udplite, raw and their IPv6 brothers have no answer for.
pub const PROC_LACKS_INET: u64 = need::TCP_INFO
    | need::CONG
    | need::CONG_INFO
    | need::SKMEM
    | need::TOS
    | need::CGROUP
    | need::SOCKOPT
    | need::COOKIE
    | need::IFACE_MARK
    | need::ACCEPT_MAX
    | need::SHUTDOWN
    | need::ULP
    | need::STORAGES;

/// `need` bits that /proc/net/packet has no answer for: of rings, fanout and memberships it tells nothing.
pub const PROC_LACKS_PACKET: u64 = need::SKMEM | need::COOKIE | need::PACKET | need::FILTER;

/// `need` bits that /proc/net/netlink has no answer for.
pub const PROC_LACKS_NETLINK: u64 = need::SKMEM | need::COOKIE;

/// `need` bits that /proc/net/unix has no answer for.
pub const PROC_LACKS_UNIX: u64 = need::SKMEM
    | need::COOKIE
    | need::ACCEPT_MAX
    | need::SHUTDOWN
    | need::UNIX_PEER
    | need::UNIX_QUEUES
    | need::UNIX_VFS
    | need::UNIX_UID
    | need::UNIX_ICONS;

/// `need` bits that unix_diag has no answer for.
pub const NETLINK_LACKS_UNIX: u64 = need::UNIX_REFS;

/// What the choice depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) proto: Proto,
    /// The demanded `need` bits.
    pub(crate) need: u64,
    /// What the user wants.
    pub(crate) via: Option<Via>,
    /// In a replay: whether the recording holds this table by netlink, by /proc.
    pub(crate) recorded: Option<(bool, bool)>,
}

/// The door and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) via: Via,
    pub(crate) why: &'static str,
    /// Demanded bits that this door has no answer for.
    pub(crate) lacks: u64,
}

pub(crate) fn choose(facts: &Facts) -> Choice {
    let (via, why) = match facts {
        Facts { recorded: Some((true, _)), .. } => (Via::Netlink, "the recording has it"),
        Facts { recorded: Some((false, _)), .. } => (Via::Proc, "the recording has it"),
        Facts { via: Some(via), .. } => (*via, "as asked"),
        Facts { proto: Proto::Unix, need, .. } if need & need::UNIX_REFS != 0 => {
            (Via::Proc, "the only one with reference counts")
        }
        _ => (Via::Netlink, "the cheapest"),
    };
    Choice { via, why, lacks: lacks(via, facts.proto) & facts.need }
}

fn lacks(via: Via, proto: Proto) -> u64 {
    match (via, proto) {
        (Via::Netlink, Proto::Unix) => NETLINK_LACKS_UNIX,
        (Via::Netlink, _) => 0,
        (Via::Proc, Proto::Unix) => PROC_LACKS_UNIX,
        (Via::Proc, Proto::Packet) => PROC_LACKS_PACKET,
        (Via::Proc, Proto::Netlink) => PROC_LACKS_NETLINK,
        (Via::Proc, _) => PROC_LACKS_INET & !UNIX_ONLY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(proto: Proto, need: u64, via: Option<Via>, recorded: Option<(bool, bool)>) -> (Via, u64) {
        let choice = choose(&Facts { proto, need, via, recorded });
        assert!(!choice.why.is_empty());
        (choice.via, choice.lacks)
    }

    #[test]
    fn the_whole_table() {
        use Via::{Netlink, Proc};
        for proto in Proto::ALL {
            assert_eq!(of(proto, 0, None, None), (Netlink, 0));
            assert_eq!(of(proto, 0, Some(Proc), None), (Proc, 0));
            assert_eq!(of(proto, need::COOKIE, Some(Proc), None), (Proc, need::COOKIE));
            assert_eq!(of(proto, need::COOKIE, Some(Netlink), None), (Netlink, 0));
            // A replay has no choice.
            assert_eq!(of(proto, need::COOKIE, Some(Netlink), Some((false, true))), (Proc, need::COOKIE));
            assert_eq!(of(proto, 0, Some(Proc), Some((true, true))), (Netlink, 0));
        }
        assert_eq!(of(Proto::Unix, need::UNIX_REFS, None, None), (Proc, 0));
        assert_eq!(of(Proto::Unix, need::UNIX_REFS | need::UNIX_UID, None, None), (Proc, need::UNIX_UID));
        assert_eq!(of(Proto::Unix, need::UNIX_REFS, Some(Netlink), None), (Netlink, need::UNIX_REFS));
        // The bits of one table do not move another.
        assert_eq!(of(Proto::Tcp, need::UNIX_REFS | need::UNIX_PEER, None, None), (Netlink, 0));
        assert_eq!(of(Proto::Udp, need::UNIX_PEER, Some(Proc), None), (Proc, 0));
    }
}
