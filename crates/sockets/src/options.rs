//! What a source of sockets reads.
use record::Proto;

use crate::choose::Via;
use crate::pushdown::Families;

/// What a [`crate::SocketSource`] reads.
#[derive(Debug, Clone)]
pub struct Options {
    /// The backend; `None` chooses.
    pub via: Option<Via>,
    /// Inode of the network namespace that is read: it goes into every row and names the recording's streams.
    pub netns_id: u64,
    /// The tables in the order in which their rows shall come, as far as the filter does not rule them out.
    pub order: Vec<Proto>,
    /// Those of them that are read only if the filter speaks of protocols, or of fields that they alone have.
    pub if_named: &'static [Proto],
    /// The user named no table: of the tables that this kernel lacks, only TCP, UDP and unix sockets are reported.
    pub quiet: bool,
    /// What the kernel sends twice is handed out twice, as the old tools show it: netlink sockets of groups.
    pub as_sent: bool,
    /// Address families of TCP and UDP.
    pub families: Families,
    /// TCP sockets from which the walk pays; `None` is what was measured.
    pub walk_from: Option<u64>,
    /// The state mask for SCTP, DCCP, vsock and TIPC sockets as an old tool asks for it; what the kernel makes of it is
    /// shown.
    pub states: Option<u32>,
}

impl Options {
    /// Every table, both families, any backend. MPTCP, UDP-Lite and netlink sockets are read if the filter names them:
    /// for the first the kernel crosses the whole host's table of tokens (2.5 ms for not one socket, where all the rest
    /// takes
    /// 0.7), the second are hardly ever used, and the third are many and of little interest. SCTP, DCCP, vsock, TIPC
    /// and AF_XDP sockets are read on the same condition: asking for them makes the kernel load their modules
    /// (docs/adr/0009).
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

    /// Only this table.
    pub fn only(proto: Proto, netns_id: u64) -> Options {
        Options { order: vec![proto], if_named: &[], ..Options::new(netns_id) }
    }
}
