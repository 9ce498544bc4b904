//! The pace of TCP connections: what they waited for, and what they found out about their path.

use record::State;
use record::rows::{Socket, TcpInfo};
use std::collections::{BTreeMap, BTreeSet};

use super::ends::{Holder, NameOwner, PeerHost, SOCKETS_MAX, name};

/// Shortest round trip of a long path, in microseconds: on shorter ones even a small buffer is fast.
pub(crate) const LONG_US: u32 = 5_000;

/// A path MTU below this, in bytes, is far smaller than tunnels and DSL make it (at least 1280).
pub(crate) const SMALL_PATH: u32 = 1_000;

/// A maximum segment size below this, in bytes, is smaller than any that hosts announce by themselves (536).
pub(crate) const SMALL_MSS: u32 = 400;

/// A connection without data for longer than this is idle, in milliseconds.
const ACTIVE_MS: u32 = 5_000;

/// Fewest data segments of a recorded connection, unless TCP_CORK holds something back.
const SEGMENTS_MIN: u64 = 10;

/// Shortest wait of an exchange that may be a delayed acknowledgement, in microseconds (TCP_DELACK_MIN is 40 ms).
pub(crate) const DELAYED_US: u64 = 30_000;

/// Longest delay of an acknowledgement, in microseconds (TCP_DELACK_MAX, and other systems).
pub(crate) const DELAY_MAX_US: u64 = 300_000;

/// Shortest time after which the kernel sends what TCP_CORK holds back (200 ms), less the part without data.
pub(crate) const CORK_US: u64 = 150_000;

/// `TCPI_OPT_ECN`, include/uapi/linux/tcp.h.
const ECN: u8 = 8;

/// Facts about the pace of connections. Bounded by [`SOCKETS_MAX`] each.
#[derive(Debug, Default, Clone)]
pub struct PaceCensus {
    /// Connections that something may slow down, by their identity.
    pub transfers: BTreeMap<u64, Transfer>,
    /// Peers whose path MTU is far below the usual ones.
    pub small_paths: BTreeMap<PeerHost, SmallPath>,
    /// Peers with tiny segments on a path that allows larger ones.
    pub small_segments: BTreeMap<PeerHost, SmallSegments>,
    /// Connections whose first SYN has not been answered yet, by peer and port.
    pub opening: BTreeMap<(PeerHost, u16), u32>,
    /// Peers with a connection that uses ECN.
    pub ecn_peers: BTreeSet<PeerHost>,
}

/// A peer with a small path MTU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SmallPath {
    /// The smallest path MTU of its connections, in bytes.
    pub mtu: u32,
    /// Number of its connections.
    pub connections: u32,
}

/// A peer with tiny segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SmallSegments {
    /// The maximum segment size of one of its connections, in bytes.
    pub mss: u32,
    /// The path MTU of that connection, in bytes.
    pub mtu: u32,
    /// True if this host announced it, false if the peer did.
    pub is_own: bool,
    /// Data segments that the connection has sent, or received if this host announced it.
    pub segments: u32,
    /// Number of its connections.
    pub connections: u32,
}

impl SmallSegments {
    fn of(info: &TcpInfo<'_>) -> Option<SmallSegments> {
        let mtu = info.pmtu().filter(|mtu| *mtu >= SMALL_PATH)?;
        let is_small = |mss: &u32| (1..SMALL_MSS).contains(mss);
        let one = |mss, is_own, segments| SmallSegments { mss, mtu, is_own, segments, connections: 0 };
        let is_some = |segments: &u32| u64::from(*segments) >= SEGMENTS_MIN;
        // The kernel sends at most half of the peer's window at once: a small window is not a small MSS.
        let has_room = info.snd_wnd().is_none_or(|window| window > 4 * SMALL_MSS);
        let sent = info.snd_mss().filter(is_small).filter(|_| has_room).zip(info.data_segs_out().filter(is_some));
        let received = || info.advmss().filter(is_small).zip(info.data_segs_in().filter(is_some));
        let sent = sent.map(|(mss, segments)| one(mss, false, segments));
        sent.or_else(|| received().map(|(mss, segments)| one(mss, true, segments)))
    }
}

/// A connection that something may slow down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Its addresses and ports.
    pub name: String,
    /// The peer.
    pub peer: PeerHost,
    /// Its owner.
    pub owner: Holder,
    /// Its totals.
    pub account: Account,
    /// True if Nagle's algorithm holds back a small segment until an acknowledgement arrives: neither window allows
    /// no more.
    pub is_held: bool,
    /// True if a small segment waits although nothing is in flight: TCP_CORK and MSG_MORE hold it back for 200 ms.
    pub is_corked: bool,
    /// Smallest round-trip time, in microseconds.
    pub min_rtt_us: u32,
    /// Smoothed round-trip time, in microseconds.
    pub rtt_us: u32,
    /// Largest segment, in bytes.
    pub mss: u32,
    /// The peer's receive window, in bytes, and its scale.
    pub peer_window: (u32, u8),
    /// The own receive window, in bytes.
    pub own_window: u32,
    /// Unread bytes.
    pub unread: u32,
    /// Send buffer, in bytes with the kernel's overhead.
    pub sndbuf: u32,
    /// Receive buffer, in bytes with the kernel's overhead.
    pub rcvbuf: u32,
}

/// The kernel's totals of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Time with data in flight, in microseconds.
    pub busy_us: u64,
    /// Part of it in which the peer's receive window was the limit.
    pub rwnd_limited_us: u64,
    /// Part of it in which the send buffer was the limit.
    pub sndbuf_limited_us: u64,
    /// Bytes acknowledged by the peer.
    pub acked: u64,
    /// Bytes received.
    pub received: u64,
    /// Data segments sent.
    pub sent_segments: u64,
    /// Data segments received.
    pub received_segments: u64,
    /// Acknowledgements sent without data.
    pub pure_acks: u64,
    /// Segments retransmitted.
    pub retransmitted: u64,
    /// Segments that the peer received twice.
    pub duplicates: u64,
    /// Times that a segment overtook others.
    pub overtaken: u64,
}

impl Account {
    fn of(info: &TcpInfo<'_>) -> Option<Account> {
        let sent = info.data_segs_out()?;
        Some(Account {
            busy_us: info.busy_us()?,
            rwnd_limited_us: info.rwnd_limited_us()?,
            sndbuf_limited_us: info.sndbuf_limited_us()?,
            acked: info.bytes_acked()?,
            received: info.bytes_received()?,
            sent_segments: sent.into(),
            received_segments: info.data_segs_in()?.into(),
            pure_acks: info.segs_out()?.saturating_sub(sent).into(),
            retransmitted: info.total_retrans()?.into(),
            duplicates: info.dsack_dups().unwrap_or(0).into(),
            overtaken: info.reord_seen().unwrap_or(0).into(),
        })
    }

    /// Returns the growth since an earlier reading.
    pub(crate) fn since(&self, before: &Account) -> Account {
        let grown = |of: fn(&Account) -> u64| of(self).saturating_sub(of(before));
        Account {
            busy_us: grown(|one| one.busy_us),
            rwnd_limited_us: grown(|one| one.rwnd_limited_us),
            sndbuf_limited_us: grown(|one| one.sndbuf_limited_us),
            acked: grown(|one| one.acked),
            received: grown(|one| one.received),
            sent_segments: grown(|one| one.sent_segments),
            received_segments: grown(|one| one.received_segments),
            pure_acks: grown(|one| one.pure_acks),
            retransmitted: grown(|one| one.retransmitted),
            duplicates: grown(|one| one.duplicates),
            overtaken: grown(|one| one.overtaken),
        }
    }

    /// True if it sent about two small segments per answer and then waited as long as for a delayed acknowledgement.
    pub(crate) fn waits_for_acks(&self, mss: u32) -> bool {
        let (sent, answers) = (self.sent_segments, self.received_segments);
        let is_small = self.acked < sent.saturating_mul(u64::from(mss) / 2);
        is_in_parts(sent, answers) && is_small && self.busy_us >= answers.saturating_mul(DELAYED_US)
    }

    /// True if it waited for each answer as long as for the timer of TCP_CORK.
    pub(crate) fn waits_for_timer(&self) -> bool {
        let (sent, answers) = (self.sent_segments, self.received_segments);
        let us = self.busy_us / answers.max(1);
        (CORK_US..=DELAY_MAX_US).contains(&us) && sent <= answers.saturating_mul(4)
    }

    /// True if it received about two small segments per answer, and acknowledged each part before the answer.
    pub(crate) fn is_sent_parts(&self, mss: u32) -> bool {
        let (parts, answers) = (self.received_segments, self.sent_segments);
        let is_small = self.received < parts.saturating_mul(u64::from(mss) / 2);
        is_in_parts(parts, answers) && is_small && self.pure_acks.saturating_mul(2) >= answers.saturating_mul(3)
    }
}

/// True if there are 1.5 to 4 segments per answer.
fn is_in_parts(segments: u64, answers: u64) -> bool {
    let (least, most) = (answers.saturating_mul(3) / 2, answers.saturating_mul(4));
    answers > 0 && (least..=most).contains(&segments)
}

impl PaceCensus {
    /// Counts a connection. `owner` is called only for connections that are recorded.
    pub(super) fn add(&mut self, socket: &Socket<'_>, peer: &PeerHost, owner: &mut NameOwner<'_>, over: &mut u64) {
        if peer.addr.is_loopback() || socket.peer.is_unset() {
            return;
        }
        if socket.state == State::SYN_SENT && socket.retrans == 0 {
            let key = (peer.clone(), socket.peer.port);
            return add_to(&mut self.opening, key, over, |count| *count += 1);
        }
        let is_open = matches!(socket.state, State::ESTABLISHED | State::CLOSE_WAIT | State::FIN_WAIT1);
        let Some(info) = socket.tcp_info.filter(|_| is_open) else { return };
        if let Some(mtu) = info.pmtu().filter(|mtu| (1..SMALL_PATH).contains(mtu)) {
            add_to(&mut self.small_paths, peer.clone(), over, |path: &mut SmallPath| {
                path.mtu = if path.connections == 0 { mtu } else { path.mtu.min(mtu) };
                path.connections += 1;
            });
        }
        if let Some(small) = SmallSegments::of(&info) {
            add_to(&mut self.small_segments, peer.clone(), over, |one: &mut SmallSegments| {
                let segments = one.segments.max(small.segments);
                *one = SmallSegments { connections: one.connections + 1, segments, ..small };
            });
        }
        if info.options().is_some_and(|options| options & ECN != 0) && self.ecn_peers.len() < SOCKETS_MAX {
            self.ecn_peers.insert(peer.clone());
        }
        self.add_transfer(socket, &info, peer, owner, over);
    }

    fn add_transfer(
        &mut self,
        socket: &Socket<'_>,
        info: &TcpInfo<'_>,
        peer: &PeerHost,
        owner: &mut NameOwner<'_>,
        over: &mut u64,
    ) {
        let Some(account) = Account::of(info).filter(|_| socket.identity() != 0 && is_active(info)) else { return };
        let mut one = Transfer::of(socket, info, peer, account);
        if !one.is_telling() {
            return;
        }
        if self.transfers.len() >= SOCKETS_MAX {
            *over += 1;
            return;
        }
        (one.name, one.owner) = (name(socket, &peer.iface), owner());
        self.transfers.insert(socket.identity(), one);
    }
}

/// True if the connection sent or received data a short time ago.
fn is_active(info: &TcpInfo<'_>) -> bool {
    let is_recent = |ms: Option<u32>| ms.is_some_and(|ms| ms < ACTIVE_MS);
    is_recent(info.last_data_sent_ms()) || is_recent(info.last_data_recv_ms())
}

impl Transfer {
    /// The numbers of a connection; its name and owner are added if it is recorded.
    fn of(socket: &Socket<'_>, info: &TcpInfo<'_>, peer: &PeerHost, account: Account) -> Transfer {
        let (unacked, mss) = (info.unacked().unwrap_or(0), info.snd_mss().unwrap_or(0));
        let (notsent, window) = (info.notsent_bytes().unwrap_or(0), info.snd_wnd().unwrap_or(0));
        let is_room = (u64::from(unacked) + 1) * u64::from(mss) <= window.into();
        let is_small = (1..mss).contains(&notsent) && is_room;
        let memory = |at| socket.skmem.and_then(|skmem| skmem.get(at)).unwrap_or(0);
        Transfer {
            name: String::new(),
            peer: peer.clone(),
            owner: Holder::default(),
            account,
            is_held: is_small && unacked > 0 && unacked < info.snd_cwnd().unwrap_or(0),
            is_corked: is_small && unacked == 0,
            min_rtt_us: info.min_rtt_us().filter(|us| *us != u32::MAX).unwrap_or(0),
            rtt_us: info.rtt_us().unwrap_or(0),
            mss,
            peer_window: (window, info.snd_wscale().unwrap_or(0)),
            // Before Linux 6.2 the kernel sends only the window's limit.
            own_window: info.rcv_wnd().or(info.rcv_ssthresh()).unwrap_or(0),
            unread: socket.rqueue,
            sndbuf: memory(3),
            rcvbuf: memory(1),
        }
    }

    /// True if a check may have something to say about it.
    fn is_telling(&self) -> bool {
        let Account { busy_us, rwnd_limited_us, sndbuf_limited_us, .. } = self.account;
        let is_limited = (rwnd_limited_us + sndbuf_limited_us) * 20 >= busy_us.max(1);
        let is_received = self.account.received > 64 << 10 && self.account.received > self.account.acked;
        let is_odd = (self.account.duplicates + self.account.overtaken) * 100 >= self.account.sent_segments.max(1);
        let is_long = self.min_rtt_us >= LONG_US;
        let is_in_parts = self.account.waits_for_acks(self.mss) || self.account.is_sent_parts(self.mss);
        // At any moment, TCP_CORK may hold nothing back. If it does, the number of segments does not matter: without
        // this reading, the next one would also count the time before the option was set.
        let is_timer = self.account.waits_for_timer();
        let has_data = self.account.sent_segments.max(self.account.received_segments) >= SEGMENTS_MIN;
        self.is_corked || has_data && (is_odd || is_long && (is_limited || is_received) || is_in_parts || is_timer)
    }
}

fn add_to<K: Ord, V: Default>(all: &mut BTreeMap<K, V>, key: K, over: &mut u64, change: impl FnOnce(&mut V)) {
    if all.len() < SOCKETS_MAX || all.contains_key(&key) {
        change(all.entry(key).or_default());
    } else {
        *over += 1;
    }
}

#[cfg(test)]
impl Transfer {
    /// A connection of `client (7)` with a round trip of 40 ms.
    pub(crate) fn example() -> Transfer {
        Transfer {
            name: "192.0.2.1:40000 from 192.0.2.9:80".into(),
            peer: record::Addr::V4([192, 0, 2, 9]).into(),
            owner: Holder { name: "client (7)".into(), pid: Some(7), is_shared: false },
            account: Account::default(),
            is_held: false,
            is_corked: false,
            min_rtt_us: 40_000,
            rtt_us: 41_000,
            mss: 1448,
            peer_window: (65_536, 7),
            own_window: 65_536,
            unread: 0,
            sndbuf: 32_768,
            rcvbuf: 131_072,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between the answer and the next request, nothing is held back.
    #[test]
    fn a_connection_with_tcp_cork_is_recorded_at_any_moment() {
        let (sent_segments, received_segments) = (14, 14);
        let account = Account { busy_us: 2_950_000, sent_segments, received_segments, ..Account::default() };
        let one = Transfer { account, min_rtt_us: 50, ..Transfer::example() };
        assert!(!one.is_corked && one.is_telling());
        let fast = Account { busy_us: 900_000, ..account };
        assert!(!Transfer { account: fast, ..one.clone() }.is_telling());
        let first = Account { sent_segments: 3, received_segments: 3, ..fast };
        assert!(Transfer { account: first, is_corked: true, ..one }.is_telling());
    }
}
