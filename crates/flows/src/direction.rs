//! Determines which end opened a connection.

use crate::Listeners;
use record::rows::{Direction, Socket};
use record::{Proto, State};

/// The range of automatically chosen local ports (`net.ipv4.ip_local_port_range`), both bounds included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ephemeral {
    /// First port.
    pub first: u16,
    /// Last port.
    pub last: u16,
}

impl Default for Ephemeral {
    /// The kernel's default: 32768 to 60999.
    fn default() -> Self {
        Ephemeral { first: 32_768, last: 60_999 }
    }
}

impl Ephemeral {
    /// True if the port is in the range.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// The range of each namespace; the kernel's default unless it was set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranges {
    usual: Ephemeral,
    /// Namespaces with another range, ascending.
    others: Vec<(u64, Ephemeral)>,
}

impl From<Ephemeral> for Ranges {
    fn from(usual: Ephemeral) -> Ranges {
        Ranges { usual, others: Vec::new() }
    }
}

impl Ranges {
    /// Sets the range of the namespace whose inode is `netns_id`.
    pub fn set(&mut self, netns_id: u64, range: Ephemeral) {
        let at = self.others.binary_search_by_key(&netns_id, |other| other.0);
        match (at, range == self.usual) {
            (Ok(at), true) => drop(self.others.remove(at)),
            (Ok(at), false) => self.others[at].1 = range,
            (Err(at), false) => self.others.insert(at, (netns_id, range)),
            (Err(_), true) => {}
        }
    }

    /// Returns the range of a namespace.
    #[inline]
    pub fn of(&self, netns_id: u64) -> Ephemeral {
        // Very few hosts have a second range.
        if self.others.is_empty() {
            return self.usual;
        }
        let found = self.others.binary_search_by_key(&netns_id, |other| other.0);
        found.ok().and_then(|at| self.others.get(at)).map_or(self.usual, |other| other.1)
    }
}

/// A direction and its certainty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Which end opened the connection.
    pub direction: Direction,
    /// True if only the port numbers suggest it.
    pub guessed: bool,
}

impl Verdict {
    const IN: Verdict = Verdict { direction: Direction::In, guessed: false };
    const OUT: Verdict = Verdict { direction: Direction::Out, guessed: false };
}

/// Determines which end opened the connection of `row`.
///
/// A handshake that is under way decides first. Then the listeners of the row's namespace decide: if a listener covers
/// the socket's local address and port, the socket was accepted, otherwise it connected from here. Ports decide nothing
/// as long as all listeners are known, because a client may have any local port. The verdict is a guess from the ports
/// (`by_ports`) in two cases: the listeners of this protocol could not be read completely; or both ends are on this
/// host and contradict each other, because the listener has closed since, or because both ports have one.
///
/// A connection from a remote client whose listener has closed since is taken for an outgoing one: no kernel interface
/// distinguishes the two.
#[inline]
pub fn direction(row: &Socket<'_>, listeners: &Listeners, ephemeral: Ephemeral) -> Verdict {
    if let Some(certain) = handshake(row) {
        return certain;
    }
    let accepted = listeners.of(row).is_some();
    // If the peer is on this host, it confirms or contradicts the verdict.
    let confirmed = match is_this_host(row) {
        true => accepted != peer_listens(row, listeners),
        false => accepted || listeners.are_complete(row.proto),
    };
    match (confirmed, accepted) {
        (true, true) => Verdict::IN,
        (true, false) => Verdict::OUT,
        (false, _) => by_ports(row.local.port, row.peer.port, ephemeral),
    }
}

/// During a handshake the state shows which end sent the SYN. (Simultaneous opens are ignored.)
#[inline]
fn handshake(row: &Socket<'_>) -> Option<Verdict> {
    if row.proto != Proto::Tcp {
        return None;
    }
    match row.state {
        State::SYN_SENT => Some(Verdict::OUT),
        State::SYN_RECV | State::NEW_SYN_RECV => Some(Verdict::IN),
        _ => None,
    }
}

/// Guesses from the port numbers alone: the end with an ephemeral port is the client; if both ends have one, or
/// neither, the lower port is taken for the service; equal ports give no direction.
pub(crate) fn by_ports(ours: u16, theirs: u16, ephemeral: Ephemeral) -> Verdict {
    let direction = match (ephemeral.contains(ours), ephemeral.contains(theirs)) {
        (true, false) => Direction::Out,
        (false, true) => Direction::In,
        _ if ours < theirs => Direction::In,
        _ if ours > theirs => Direction::Out,
        _ => Direction::Unknown,
    };
    Verdict { direction, guessed: direction != Direction::Unknown }
}

/// True if a listener of this namespace covers the peer's address and port.
fn peer_listens(row: &Socket<'_>, listeners: &Listeners) -> bool {
    let peer = row.peer.addr.unmapped();
    listeners.covering(row.netns_id, row.proto, peer, row.peer.port, row.ifindex).is_some()
}

/// True if both ends are certainly in this namespace, so its listeners also decide about the peer.
fn is_this_host(row: &Socket<'_>) -> bool {
    row.peer.addr.is_loopback() || row.peer.addr == row.local.addr
}

/// The direction according to lstf 0.7.2, for `--bug-compatible`: passive if a listener bound to `0.0.0.0`, `127.0.0.1`
/// or `::` has the local port, regardless of the local address; else active.
pub fn direction_of_lstf(row: &Socket<'_>, listeners: &Listeners) -> Verdict {
    if listeners.lstf_knows(row.local.port) { Verdict::IN } else { Verdict::OUT }
}
