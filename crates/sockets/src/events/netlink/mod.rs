//! Connections without BPF: the kernel's notifications about destroyed sockets, and periodic scans of the table.
//!
//! The two together miss the opening of a connection that is shorter than the time between two scans (its closing is
//! still reported), the exact time of an opening, and the owner of the connection. If the kernel does not permit the
//! notifications, a connection that is missing in the next scan has closed at some time before it.
pub(crate) mod destroyed;

use record::rows::{Direction, Endpoint, EventKind, Socket, SocketEvent, SocketEvents, TcpInfo, need};
use record::{Accounting, Addr, Demand, Each, Next, Proto, Source, SourceError, State, StreamState};
use std::collections::{HashMap, HashSet};
use sys::{Host, Share};

use super::{Follow, error_of};
use crate::Via;
use crate::events::netlink::destroyed::Destroyed;
use crate::options::Options;
use crate::source::SocketSource;

/// Minimum time between two scans.
const SCAN_INTERVAL_MS: u64 = 250;
/// Scans may take one part in this many of the time: a large table is scanned less often.
const SHARE_OF_TIME: u64 = 11;
/// Maximum number of remembered connections, some 100 bytes each; later ones show no opening.
///
/// Bound: connections that `--follow` without BPF remembers. Beyond: later connections show no opening. By: a local
/// user with as many connections.
const KNOWN_MAX: usize = 1 << 20;

/// State of an open connection.
#[derive(Debug, Clone, Copy)]
struct OpenConnection {
    /// Time at which it was first seen; `None` if it existed before the run.
    opened_ns: Option<u64>,
    family: u8,
    direction: Direction,
    local: Endpoint,
    peer: Endpoint,
    ifindex: u32,
    uid: Option<u32>,
    state: State,
    /// Number of the last scan that found it.
    look: u64,
}

/// Connections of one namespace, via sock_diag.
pub(crate) struct NetlinkEvents<'h> {
    host: &'h Host,
    netns_id: u64,
    destroyed: Option<Destroyed<'h>>,
    /// Why closings are not reported.
    deaf: Option<String>,
    known: HashMap<u64, OpenConnection>,
    /// Listening addresses and ports: connections to them are incoming.
    listeners: Listeners,
    looks: u64,
    next_look_ns: u64,
    stats: Accounting,
    rows: u64,
    unseen_openings: u64,
}

impl<'h> NetlinkEvents<'h> {
    pub(crate) fn open(host: &'h Host, follow: &Follow<'h>) -> Result<NetlinkEvents<'h>, SourceError> {
        let listen = |protos| Destroyed::open(host, follow.netns_id, protos, SCAN_INTERVAL_MS, follow.stop);
        let (destroyed, deaf) = match listen(&[Proto::Tcp]) {
            Ok(destroyed) => (destroyed, None),
            Err(error) => (listen(&[]).map_err(error_of)?, Some(error.to_string())),
        };
        let mut polled = NetlinkEvents {
            host,
            netns_id: follow.netns_id,
            destroyed: Some(destroyed),
            deaf,
            known: HashMap::new(),
            listeners: Listeners::default(),
            looks: 0,
            next_look_ns: 0,
            stats: Accounting::default(),
            rows: 0,
            unseen_openings: 0,
        };
        polled.scan_table(0, &mut |_| Next::More)?;
        Ok(polled)
    }

    pub(crate) fn caveat(&self) -> String {
        let closings = match &self.deaf {
            None => String::new(),
            Some(why) => format!("; close events are also found only by polling ({why})"),
        };
        format!(
            "without BPF owners are unknown, the opening of a connection shorter than {SCAN_INTERVAL_MS} ms may be \
             missed, and bytes_in may be one too small: the kernel counts a FIN of the peer as a byte{closings}"
        )
    }

    pub(crate) fn next(&mut self, each: &mut Each<'_, SocketEvents>) -> Result<StreamState, SourceError> {
        let Some(destroyed) = &mut self.destroyed else { return Ok(StreamState::Ended) };
        let mut ended = Vec::new();
        let tide = destroyed.next(&mut |socket| {
            if is_connection(socket) {
                ended.push(ClosedConnection::from_socket(socket));
            }
            Next::More
        });
        let now_ns = destroyed.wall_ns();
        for ended in &ended {
            if self.handle_destroyed(ended, now_ns, each) == Next::Stop {
                return Ok(StreamState::Open);
            }
        }
        let tide = tide.map_err(error_of)?;
        if tide == StreamState::Open && now_ns >= self.next_look_ns {
            self.scan_table(now_ns, each)?;
        }
        Ok(tide)
    }

    /// Time of the last block.
    pub(crate) fn wall_ns(&self) -> u64 {
        self.destroyed.as_ref().map_or(0, Destroyed::wall_ns)
    }

    /// Handles a socket that the kernel reports as destroyed.
    fn handle_destroyed(&mut self, ended: &ClosedConnection, now_ns: u64, each: &mut Each<'_, SocketEvents>) -> Next {
        let known = self.known.remove(&ended.cookie);
        if known.is_none() {
            self.unseen_openings += 1;
        }
        let opened_ns = known.and_then(|known| known.opened_ns);
        let row = SocketEvent {
            kind: EventKind::Close,
            time_ns: now_ns,
            duration_us: opened_ns.map(|opened| now_ns.saturating_sub(opened) / 1000),
            netns_id: self.netns_id,
            family: ended.family,
            direction: known.map_or_else(
                || direction_of(&self.listeners, ended.local, ended.peer, ended.ifindex),
                |known| known.direction,
            ),
            local: ended.local,
            peer: ended.peer,
            ifindex: ended.ifindex,
            uid: known.and_then(|known| known.uid),
            bytes_in: ended.bytes_in(),
            bytes_out: ended.bytes_out,
            rtt_us: ended.rtt_us,
            retrans_total: ended.retrans_total,
            segs_in: ended.segs_in,
            segs_out: ended.segs_out,
            state: known.map_or(State::CLOSE, |known| known.state),
            cookie: ended.cookie,
            ..SocketEvent::EMPTY
        };
        self.rows += 1;
        each(&row)
    }

    /// Reads the table: a new connection has opened; a missing one has closed, if the kernel does not report closings.
    fn scan_table(&mut self, now_ns: u64, each: &mut Each<'_, SocketEvents>) -> Result<(), SourceError> {
        let is_first = self.looks == 0;
        self.looks += 1;
        let source = SocketSource::new(
            self.host,
            Options { via: Some(Via::Netlink), order: vec![Proto::Tcp], ..Options::new(self.netns_id) },
        );
        let mut demand = Demand::new(&[], Vec::new());
        demand.need = need::COOKIE;
        let mut fresh = Vec::new();
        self.listeners.begin_scan();
        let (known, listeners, look) = (&mut self.known, &mut self.listeners, self.looks);
        let mut full = 0;
        let stats = source.run(&demand, &mut |socket| {
            if socket.is_listener() {
                listeners.now.insert((socket.local.addr.unmapped(), socket.local.port, socket.ifindex));
            } else if is_open(socket) {
                if let Some(known) = known.get_mut(&socket.cookie) {
                    (known.look, known.state) = (look, socket.state);
                } else if known.len() < KNOWN_MAX {
                    known.insert(socket.cookie, OpenConnection::from_socket(socket, look));
                    fresh.push(socket.cookie);
                } else {
                    full += 1;
                }
            }
            Next::More
        })?;
        self.stats.incomplete |= stats.incomplete;
        stats.why.into_iter().for_each(|why| self.stats.add_reason(why.count, why.text));
        if full > 0 {
            let text = format!("connections after the first {KNOWN_MAX} were not followed");
            self.stats.incomplete(full, text);
        }
        let pause_ns = Share::pause_ns(SHARE_OF_TIME, self.known.len() as u64 * SCAN_NS_PER_CONNECTION);
        self.next_look_ns = now_ns + pause_ns.max(SCAN_INTERVAL_MS * 1_000_000);
        // Listeners come after connections in some dumps, so only now all of them are known.
        if self.announce(&fresh, now_ns, is_first, each) == Next::More && self.deaf.is_some() {
            self.report_missed_closings(now_ns, each);
        }
        Ok(())
    }

    fn announce(&mut self, fresh: &[u64], now_ns: u64, is_first: bool, each: &mut Each<'_, SocketEvents>) -> Next {
        for cookie in fresh {
            let Some(known) = self.known.get_mut(cookie) else { continue };
            known.direction = direction_of(&self.listeners, known.local, known.peer, known.ifindex);
            if is_first {
                continue;
            }
            known.opened_ns = Some(now_ns);
            self.rows += 1;
            if each(&known.row(EventKind::Open, *cookie, self.netns_id, now_ns)) == Next::Stop {
                return Next::Stop;
            }
        }
        Next::More
    }

    /// Reports closings without notifications: connections that the latest scan did not find.
    fn report_missed_closings(&mut self, now_ns: u64, each: &mut Each<'_, SocketEvents>) {
        let look = self.looks;
        let gone: Vec<(u64, OpenConnection)> = self
            .known
            .iter()
            .filter(|(_, known)| known.look != look)
            .map(|(cookie, known)| (*cookie, *known))
            .collect();
        for (cookie, known) in gone {
            self.known.remove(&cookie);
            self.rows += 1;
            let duration_us = known.opened_ns.map(|opened| now_ns.saturating_sub(opened) / 1000);
            let row = SocketEvent { duration_us, ..known.row(EventKind::Close, cookie, self.netns_id, now_ns) };
            if each(&row) == Next::Stop {
                return;
            }
        }
    }

    pub(crate) fn close(&mut self) -> Accounting {
        let mut stats = std::mem::take(&mut self.stats);
        if let Some(destroyed) = self.destroyed.take() {
            let told = destroyed.close();
            // Its rows count as ours only if they were connections.
            stats.add(&Accounting { seen: 0, ..told });
        }
        stats.add_backend(Via::Netlink.name());
        stats.seen = self.rows + stats.failed;
        if self.unseen_openings > 0 {
            stats.incomplete(self.unseen_openings, "connections whose open event was missed: they were too short");
        }
        if self.deaf.is_some() {
            stats.incomplete = true;
        }
        stats
    }
}

/// Approximate CPU time of a scan per connection.
const SCAN_NS_PER_CONNECTION: u64 = 1000;

/// The last state of a connection.
struct ClosedConnection {
    cookie: u64,
    family: u8,
    local: Endpoint,
    peer: Endpoint,
    ifindex: u32,
    /// Includes the peer's FIN, if the socket received it.
    received: Option<u64>,
    data_segs_in: Option<u32>,
    bytes_out: Option<u64>,
    rtt_us: Option<u32>,
    retrans_total: Option<u32>,
    segs_in: Option<u32>,
    segs_out: Option<u32>,
}

impl ClosedConnection {
    fn from_socket(socket: &Socket<'_>) -> ClosedConnection {
        let info = socket.tcp_info.as_ref();
        ClosedConnection {
            cookie: socket.cookie,
            family: socket.family,
            local: socket.local,
            peer: socket.peer,
            ifindex: socket.ifindex,
            received: info.and_then(TcpInfo::bytes_received),
            data_segs_in: info.and_then(TcpInfo::data_segs_in),
            bytes_out: info.and_then(TcpInfo::bytes_sent),
            rtt_us: info.and_then(TcpInfo::rtt_us),
            retrans_total: info.and_then(TcpInfo::total_retrans),
            segs_in: info.and_then(TcpInfo::segs_in),
            segs_out: info.and_then(TcpInfo::segs_out),
        }
    }

    /// Bytes received, or one fewer.
    ///
    /// `tcpi_bytes_received` follows `rcv_nxt`, so a received FIN counts as one byte (`tcp_queue_rcv` in
    /// net/ipv4/tcp_input.c adds up to `end_seq`, which includes the FIN). One byte is subtracted, so that a FIN is
    /// never shown as data. The result is
    ///
    /// - exact after LAST_ACK, CLOSING and TIME_WAIT, which a socket reaches only by receiving a FIN, and if no segment
    ///   carried data;
    /// - one too small after FIN_WAIT2, because the kernel replaces the socket by a time-wait socket before the FIN
    ///   arrives (`tcp_time_wait(sk, TCP_FIN_WAIT2, …)`), and after a reset before the FIN.
    ///
    /// The message does not distinguish the two cases: the state is already CLOSE and both directions are shut down
    /// (`tcp_done`), `SOCK_DONE` is not exported, a FIN without data does not count in `data_segs_in`, and the number
    /// of unread bytes (`idiag_rqueue`) is 0 both if a FIN was read as the end of the stream and if there was none.
    /// Verified on 6.18 for every end state.
    fn bytes_in(&self) -> Option<u64> {
        let received = self.received?;
        Some(if self.data_segs_in == Some(0) { 0 } else { received.saturating_sub(1) })
    }
}

impl OpenConnection {
    fn from_socket(socket: &Socket<'_>, look: u64) -> OpenConnection {
        OpenConnection {
            opened_ns: None,
            family: socket.family,
            direction: Direction::Unknown,
            local: socket.local,
            peer: socket.peer,
            ifindex: socket.ifindex,
            uid: socket.uid,
            state: socket.state,
            look,
        }
    }

    fn row(&self, kind: EventKind, cookie: u64, netns_id: u64, time_ns: u64) -> SocketEvent {
        SocketEvent {
            kind,
            time_ns,
            netns_id,
            family: self.family,
            direction: self.direction,
            local: self.local,
            peer: self.peer,
            ifindex: self.ifindex,
            uid: self.uid,
            state: self.state,
            cookie,
            ..SocketEvent::EMPTY
        }
    }
}

/// Address, port and interface of a listener; 0 for any interface.
type Listener = (Addr, u16, u32);

/// Addresses of listeners in the last scan and in the one before it: a listener that has closed since then may have
/// accepted a connection that is new. Memory is limited to the listeners of two scans, however many come and go.
#[derive(Debug, Default)]
struct Listeners {
    now: HashSet<Listener>,
    before: HashSet<Listener>,
}

impl Listeners {
    fn begin_scan(&mut self) {
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.clear();
    }

    fn has_listener_for(&self, end: Endpoint, ifindex: u32) -> bool {
        let addr = end.addr.unmapped();
        let any = if matches!(addr, Addr::V4(_)) { &[Addr::ANY4, Addr::ANY6][..] } else { &[Addr::ANY6] };
        let has = |addr: &Addr| {
            let mut keys = [0, ifindex].into_iter().map(|ifindex| (*addr, end.port, ifindex));
            keys.any(|key| self.now.contains(&key) || self.before.contains(&key))
        };
        any.iter().chain([&addr]).any(has)
    }
}

/// A connection to a listener is incoming, any other is outgoing, regardless of the ports. If both ends are on this
/// host and neither has a listener, then the listener closed before it was seen, and the direction is unknown.
fn direction_of(listeners: &Listeners, local: Endpoint, peer: Endpoint, ifindex: u32) -> Direction {
    let here = peer.addr.is_loopback() || peer.addr == local.addr;
    match (listeners.has_listener_for(local, ifindex), here && listeners.has_listener_for(peer, ifindex)) {
        (true, false) => Direction::In,
        (false, true) => Direction::Out,
        (false, false) if !here => Direction::Out,
        _ => Direction::Unknown,
    }
}

/// True for the states between the opening and the closing of a connection, as the BPF backend defines them.
fn is_open(socket: &Socket<'_>) -> bool {
    const OPEN: [State; 6] =
        [State::ESTABLISHED, State::FIN_WAIT1, State::FIN_WAIT2, State::CLOSE_WAIT, State::LAST_ACK, State::CLOSING];
    // Time-wait sockets can also be in FIN_WAIT2, but have no owner.
    OPEN.contains(&socket.state) && socket.cookie != 0 && socket.uid.is_some()
}

/// True for a destroyed socket that was connected. After a failed attempt no round trip has been measured.
fn is_connection(socket: &Socket<'_>) -> bool {
    let Some(info) = &socket.tcp_info else { return false };
    let measured = [info.rtt_us().map(u64::from), info.bytes_acked(), info.bytes_received()];
    socket.proto == Proto::Tcp && socket.peer.port != 0 && measured.iter().flatten().any(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn end(text: &str) -> Endpoint {
        let addr: std::net::SocketAddr = text.parse().unwrap();
        Endpoint { addr: addr.ip().to_string().parse().unwrap(), port: addr.port() }
    }

    #[test]
    fn issue_10_no_fin_is_a_byte() {
        let mut bytes = [0u8; 280];
        let mut ended = |received: u8, data_segs: u8| {
            bytes[128] = received;
            bytes[152] = data_segs;
            let info = Some(TcpInfo::new(&bytes));
            ClosedConnection::from_socket(&Socket { tcp_info: info, ..Socket::EMPTY }).bytes_in()
        };
        assert_eq!(ended(1, 0), Some(0), "nothing but the FIN");
        assert_eq!(ended(0, 0), Some(0));
        assert_eq!(ended(13, 1), Some(12));
        assert_eq!(ClosedConnection::from_socket(&Socket::EMPTY).bytes_in(), None);
    }

    #[test]
    fn issue_10_listeners_tell_the_direction() {
        let set = |ends: &[&str]| ends.iter().map(|text| end(text)).map(|end| (end.addr, end.port, 0)).collect();
        let listeners = Listeners { now: set(&["127.0.0.1:40000", "0.0.0.0:80"]), before: set(&["[::]:443"]) };
        for (local, peer, expected) in [
            ("10.9.1.2:40000", "10.9.1.3:60998", Direction::Out),
            ("10.9.1.2:80", "10.9.1.3:79", Direction::In),
            ("10.9.1.2:443", "10.9.1.3:79", Direction::In),
            ("[2001:db8::1]:80", "[2001:db8::2]:79", Direction::Out),
            ("127.0.0.1:50000", "127.0.0.1:40000", Direction::Out),
            ("127.0.0.1:40000", "127.0.0.1:50000", Direction::In),
            ("127.0.0.1:8081", "127.0.0.1:50000", Direction::Unknown),
        ] {
            assert_eq!(direction_of(&listeners, end(local), end(peer), 0), expected, "{local} {peer}");
        }
        let (local, peer) = (end("[fe80::1]:80"), end("[fe80::2]:40000"));
        let bound = Listeners { now: [(local.addr, 80, 3)].into_iter().collect(), before: HashSet::new() };
        assert_eq!(direction_of(&bound, local, peer, 3), Direction::In);
        assert_eq!(direction_of(&bound, local, peer, 4), Direction::Out, "the listener is on another link");
    }
}
