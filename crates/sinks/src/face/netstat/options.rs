//! What the switches of netstat ask for, and names that are in no lookup.

use record::Proto;
use record::rows::Socket;

/// Which sockets are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Show {
    /// Those that are connected: without a switch.
    Connected,
    /// Those that wait for somebody (`-l`).
    Listening,
    /// All (`-a`).
    All,
}

impl Show {
    /// True if netstat lists `row`: TCP goes by the peer's port, UDP by the peer's address, unix by its flags.
    ///
    /// `bound_inactive` is not in the files that netstat reads.
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

    pub(super) fn words(self) -> &'static [u8] {
        match self {
            Show::All => b"(servers and established)",
            Show::Listening => b"(only servers)",
            Show::Connected => b"(w/o servers)",
        }
    }
}

/// The layout that the switches ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketLayout {
    /// The block of TCP, UDP, UDP-Lite and raw sockets is there.
    pub internet: bool,
    /// The block of unix sockets is there.
    pub unix: bool,
    /// The block of multicast groups is there (`-g`).
    pub groups: bool,
    /// Which sockets the headings speak of; the rows given are printed whatever they are.
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
    /// Nothing is cut even under `bug_compatible` (`-W`).
    pub wide: bool,
    /// The old bytes: long addresses cut without a mark, paths cut at a blank, control bytes as they are.
    pub bug_compatible: bool,
}

/// Names that are in no lookup.
#[derive(Clone, Copy)]
pub struct Names<'n> {
    /// The service of a port (/etc/services).
    pub service: &'n dyn Fn(Proto, u16) -> Option<&'n [u8]>,
    /// Appends the first word of a process's command line, up to its NUL; false if it cannot be read. Asked once a
    /// printed socket: whoever answers remembers.
    pub argv0: &'n dyn Fn(u32, &mut Vec<u8>) -> bool,
}
