//! Options of a socket source.
use record::Proto;

use crate::choose::Via;
use crate::pushdown::Families;

/// Determines what a [`crate::SocketSource`] reads.
#[derive(Debug, Clone)]
pub struct Options {
    /// The backend; `None` chooses automatically.
    pub via: Option<Via>,
    /// Inode of the network namespace that is read. It is part of every row and of the recording's stream names.
    pub netns_id: u64,
    /// Tables in the order in which their rows come, unless the filter excludes them.
    pub order: Vec<Proto>,
    /// Subset of `order` that is read only if the filter mentions protocols, or fields that only these tables have.
    pub if_named: &'static [Proto],
    /// True if the user named no table: of the tables that this kernel lacks, only TCP, UDP and unix sockets are
    /// reported.
    pub quiet: bool,
    /// Hands out rows that the kernel sends twice (netlink sockets with groups) twice, as the old tools show them.
    pub as_sent: bool,
    /// Address families of TCP and UDP sockets.
    pub families: Families,
    /// Number of TCP sockets from which the walk is used; `None` means the measured number.
    pub walk_from: Option<u64>,
    /// State mask for SCTP, DCCP, vsock and TIPC sockets as an old tool sends it; the rows that the kernel returns for
    /// it are shown.
    pub states: Option<u32>,
}

impl Options {
    /// Every table, both families, any backend. MPTCP, UDP-Lite and netlink sockets are read only if the filter names
    /// them: for MPTCP the kernel searches the whole host's table of tokens (2.5 ms even without sockets; all the other
    /// tables take 0.7), UDP-Lite is hardly ever used, and netlink sockets are many and of little interest. SCTP, DCCP,
    /// vsock, TIPC and AF_XDP sockets are read on the same condition, because a request makes the kernel load their
    /// modules (docs/adr/0009).
    pub fn new(netns_id: u64) -> Options {
        let order = vec![
            Proto::Tcp,
            Proto::Mptcp,
            Proto::Udp,
            Proto::UdpLite,
            Proto::Raw,
            Proto::Packet,
            Proto::Unix,
            Proto::Netlink,
            Proto::Sctp,
            Proto::Dccp,
            Proto::Vsock,
            Proto::Tipc,
            Proto::Xdp,
        ];
        let if_named = &[
            Proto::Mptcp,
            Proto::UdpLite,
            Proto::Netlink,
            Proto::Sctp,
            Proto::Dccp,
            Proto::Vsock,
            Proto::Tipc,
            Proto::Xdp,
        ];
        let families = Families::Both;
        Options {
            via: None,
            netns_id,
            order,
            if_named,
            quiet: false,
            as_sent: false,
            families,
            walk_from: None,
            states: None,
        }
    }

    /// Reads only this table.
    pub fn for_table(proto: Proto, netns_id: u64) -> Options {
        Options { order: vec![proto], if_named: &[], ..Options::new(netns_id) }
    }
}
