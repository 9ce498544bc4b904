//! The switches of netstat, and names that are not in a lookup.

use record::Proto;
use record::rows::Socket;

/// The sockets to list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Show {
    /// Connected sockets: the default.
    Connected,
    /// Listening sockets (`-l`).
    Listening,
    /// Every socket (`-a`).
    All,
}

impl Show {
    /// True if netstat lists `row`: TCP depends on the peer's port, UDP on the peer's address, unix on its flags.
    ///
    /// Sockets in state `bound_inactive` are not in the files that netstat reads.
    pub fn wants(self, row: &Socket<'_>) -> bool {
        if row.state == record::State::BOUND_INACTIVE {
            return false;
        }
        let connected = match row.proto {
            Proto::Tcp | Proto::Mptcp | Proto::Sctp | Proto::Dccp => row.peer.port != 0,
            Proto::Udp | Proto::UdpLite | Proto::Raw => !row.peer.addr.is_unspecified(),
            Proto::Unix | Proto::Packet | Proto::Netlink | Proto::Vsock | Proto::Tipc | Proto::Xdp => {
                !row.is_listener()
            }
        };
        match self {
            Show::All => true,
            Show::Connected => connected,
            Show::Listening => !connected,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Show::All => "(servers and established)",
            Show::Listening => "(only servers)",
            Show::Connected => "(w/o servers)",
        }
    }
}

/// The layout that the switches request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketLayout {
    /// Print the block of TCP, UDP, UDP-Lite and raw sockets.
    pub internet: bool,
    /// Print the block of unix sockets.
    pub unix: bool,
    /// Print the block of multicast groups (`-g`).
    pub groups: bool,
    /// The sockets that the headings mention; all given rows are printed.
    pub show: Show,
    /// User and inode (`-e`).
    pub extended: bool,
    /// Process and program (`-p`).
    pub programs: bool,
    /// Timers (`-o`).
    pub timers: bool,
    /// Addresses as numbers (`-n`, `--numeric-hosts`).
    pub numeric_hosts: bool,
    /// Ports as numbers (`-n`, `--numeric-ports`).
    pub numeric_ports: bool,
    /// Users as numbers (`-n`, `--numeric-users`).
    pub numeric_users: bool,
    /// Cut nothing, even with `bug_compatible` (`-W`).
    pub wide: bool,
    /// The old bytes: long addresses are cut without a mark, paths are cut at a blank, control bytes are not escaped.
    pub bug_compatible: bool,
}

impl SocketLayout {
    /// `netstat -tan`, without its restriction to TCP.
    pub const PLAIN: SocketLayout = SocketLayout {
        internet: true,
        unix: false,
        groups: false,
        show: Show::All,
        extended: false,
        programs: false,
        timers: false,
        numeric_hosts: true,
        numeric_ports: true,
        numeric_users: true,
        wide: false,
        bug_compatible: false,
    };
}

/// Names that are not in a lookup.
#[derive(Clone, Copy)]
pub struct Names<'n> {
    /// Returns the service name of a port (/etc/services).
    pub service: &'n dyn Fn(Proto, u16) -> Option<&'n [u8]>,
    /// Appends the first word of a process's command line, up to its NUL; returns false if it cannot be read. Called
    /// once for each printed socket: the function itself must cache.
    pub argv0: &'n dyn Fn(u32, &mut Vec<u8>) -> bool,
}
