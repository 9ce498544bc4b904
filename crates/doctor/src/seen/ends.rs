//! The ends of a socket: its owner on this host, and the peer.

use record::Addr;
use record::rows::{Endpoint, Socket};
use std::fmt;

/// Most sockets of each kind, and most destinations, that are recorded.
///
/// Bound: sockets of each kind that `doctor` remembers for a namespace (`sockets::census_is_bounded`). Beyond: further
/// sockets are not checked, counted (exit code 3). This also affects other users; the checks of counters are complete.
/// By: anyone who may make sockets there.
pub const SOCKETS_MAX: usize = 65_536;

/// A host at the other end: the same address is another host on another link, or in another VRF.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerHost {
    /// Its address.
    pub addr: Addr,
    /// The interface that the connection is bound to; empty for none.
    pub iface: String,
}

impl From<Addr> for PeerHost {
    fn from(addr: Addr) -> PeerHost {
        PeerHost { addr, iface: String::new() }
    }
}

impl fmt::Display for PeerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.iface.is_empty() { "" } else { "%" };
        write!(f, "{}{separator}{}", self.addr, self.iface)
    }
}

/// The owner of a socket; by default an unknown one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// `nginx (812)`, or `nginx (812, likely: 4 processes hold it)`; empty if it is unknown.
    pub name: String,
    /// Its process ID.
    pub pid: Option<u32>,
    /// True if other processes also have the socket open. Which of them uses it is then a guess, see
    /// `FindingBuilder::holder`.
    pub is_shared: bool,
}

impl Holder {
    /// False if it is unknown.
    pub(crate) fn is_known(&self) -> bool {
        !self.name.is_empty()
    }

    /// The process itself, for facts that do not depend on other processes that hold the socket: `nginx (812)`.
    pub fn process(&self) -> String {
        match self.name.rsplit_once(", likely: ").filter(|_| self.is_shared) {
            Some((process, _)) => format!("{process})"),
            None => self.name.clone(),
        }
    }
}

/// The name, or `a program` if it is unknown.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_known() { &self.name } else { "a program" })
    }
}

/// Returns the owner of a socket.
pub type NameOwner<'n> = dyn FnMut() -> Holder + 'n;

/// Addresses and ports of a socket, bound to an interface if `iface` is not empty.
pub(super) fn name(socket: &Socket<'_>, iface: &str) -> String {
    let local = endpoint(&socket.local, iface);
    // As ss writes it, the interface is at our end; a link-local address is never without it.
    let of_peer = if socket.peer.addr.is_link_local_v6() { iface } else { "" };
    match socket.peer.is_unset() {
        true => local,
        false => format!("{local} from {}", endpoint(&socket.peer, of_peer)),
    }
}

fn endpoint(end: &Endpoint, iface: &str) -> String {
    let (host, port) = (PeerHost { addr: end.addr.unmapped(), iface: iface.to_owned() }, end.port);
    match host.addr {
        Addr::V4(_) => format!("{host}:{port}"),
        Addr::V6(_) => format!("[{host}]:{port}"),
    }
}
