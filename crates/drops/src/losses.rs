//! Losses that the kernel's tracepoint for dropped packets does not see: counted by cards, queues, tables and sockets.
//!
//! Every loss counts once. If packets are counted, only losses invisible to the tracepoint are shown; for a counter
//! with both kinds, the remainder. If packets cannot be counted, all losses are shown.
use std::collections::HashMap;

use record::Proto;
use record::rows::CounterSource::{Conntrack, Driver, Iface, Netstat, Qdisc, Snmp, Snmp6, Softnet, Trap};
use record::rows::{CountedIn, Counter, CounterSource, PacketDrop, Socket, is_numbered};

/// Bound: sockets with drops that `drops` remembers from one reading to the next
/// (`losses::sockets_beyond_the_bound_are_counted`). Beyond: drops of further sockets are not shown, counted (exit code
/// 3). This also affects other users. By: a local user who makes as many sockets and loses packets on each.
pub const LOSING_SOCKETS_MAX: usize = 65_536;

/// A counter that grows by one for each loss.
#[derive(Debug, Clone, Copy)]
pub struct LossCounter {
    /// The kernel interface that provides it.
    pub source: CounterSource,
    /// Its name, with a `#` for the number of a queue.
    pub name: &'static str,
    as_packets: AsPackets,
}

/// Which losses of a counter are also counted as dropped packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AsPackets {
    /// No losses.
    Never,
    /// Losses of virtual interfaces; a card loses a packet before the kernel has it.
    OfVirtual,
    /// Losses with one of these reasons.
    With(&'static [&'static str]),
    /// Losses in functions with one of these prefixes. Only virtual interfaces count this way; a card also counts the
    /// loss in another counter.
    InVirtual(&'static [&'static str]),
    /// All losses.
    Always,
}

const fn of(source: CounterSource, name: &'static str, as_packets: AsPackets) -> LossCounter {
    LossCounter { source, name, as_packets }
}

/// Reasons of packets that a listener dropped.
const AT_LISTENERS: AsPackets = AsPackets::With(&["TCP_LISTEN_OVERFLOW", "TCP_REQQFULLDROP"]);

/// Counters of losses. No loss is in two of them, with three exceptions: packets that a CPU's full queue refuses (also
/// in `rx_dropped`), drops of some interfaces' queueing disciplines, and `insert_failed` (also in `drop`).
pub const LOSSES: &[LossCounter] = &[
    of(Softnet, "dropped", AsPackets::Always),
    of(Iface, "rx_dropped", AsPackets::Always),
    of(Iface, "rx_missed_errors", AsPackets::OfVirtual),
    of(Iface, "rx_fifo_errors", AsPackets::OfVirtual),
    of(Iface, "rx_errors", AsPackets::OfVirtual),
    of(Iface, "tx_errors", AsPackets::OfVirtual),
    of(Iface, "tx_dropped", AsPackets::Always),
    of(Qdisc, "drops", AsPackets::Always),
    // Drivers: only statistics that are certainly losses and not in a counter above, according to the drivers' authors.
    of(Driver, "rx_queue_#_xdp_drops", AsPackets::InVirtual(&["veth_"])),
    of(Driver, "rx_xdp_drop", AsPackets::Never),
    of(Driver, "rx_discards_phy", AsPackets::Never),
    of(Driver, "conntrack_allowance_exceeded", AsPackets::Never),
    of(Driver, "linklocal_allowance_exceeded", AsPackets::Never),
    of(Snmp, "IpInHdrErrors", AsPackets::Always),
    of(Snmp, "IpInAddrErrors", AsPackets::Always),
    of(Snmp, "IpInDiscards", AsPackets::Always),
    of(Snmp, "IpOutDiscards", AsPackets::Always),
    of(Snmp, "IpOutNoRoutes", AsPackets::Always),
    of(Snmp, "IpReasmFails", AsPackets::Always),
    of(Snmp, "UdpInCsumErrors", AsPackets::Always),
    of(Snmp, "UdpNoPorts", AsPackets::Always),
    of(Snmp, "UdpRcvbufErrors", AsPackets::Always),
    of(Snmp, "UdpSndbufErrors", AsPackets::Always),
    of(Snmp, "TcpInCsumErrors", AsPackets::Always),
    of(Snmp6, "Ip6InHdrErrors", AsPackets::Always),
    of(Snmp6, "Ip6InAddrErrors", AsPackets::Always),
    of(Snmp6, "Ip6InDiscards", AsPackets::Always),
    of(Snmp6, "Ip6OutDiscards", AsPackets::Always),
    of(Snmp6, "Ip6OutNoRoutes", AsPackets::Always),
    of(Snmp6, "Udp6NoPorts", AsPackets::Always),
    of(Snmp6, "Udp6RcvbufErrors", AsPackets::Always),
    // A SYN that arrives at a full queue is freed as if it had been accepted.
    of(Netstat, "TcpExtListenDrops", AT_LISTENERS),
    of(Netstat, "TcpExtTCPBacklogDrop", AsPackets::Always),
    of(Netstat, "TcpExtTCPRcvQDrop", AsPackets::Always),
    of(Netstat, "TcpExtTCPOFODrop", AsPackets::Always),
    of(Netstat, "TcpExtIPReversePathFilter", AsPackets::Always),
    of(Netstat, "IpExtInNoRoutes", AsPackets::Always),
    of(Conntrack, "drop", AsPackets::Always),
    of(Conntrack, "insert_failed", AsPackets::Always),
    // This loses an entry, not a packet.
    of(Conntrack, "early_drop", AsPackets::Never),
];

/// Counters of datagrams that the sockets count as well.
const OF_UDP_SOCKETS: &[&str] = &["UdpRcvbufErrors", "Udp6RcvbufErrors", "UdpInCsumErrors"];

/// A kind of sockets that count their own losses.
struct SocketKind {
    name: &'static str,
    meaning: &'static str,
    remedy: &'static str,
    /// Prefixes of the functions in which such a loss may be a dropped packet.
    places: &'static [&'static str],
}

const UDP: SocketKind = SocketKind {
    name: "udp_socket_drops",
    meaning: "datagrams that a socket rejected, nearly always because its receive buffer was full: the program reads \
        too slowly",
    remedy: "SO_RCVBUF, net.core.rmem_max; `netwren sockets 'socket_drops > 0'`",
    places: &[],
};
const PACKET: SocketKind = SocketKind {
    name: "packet_socket_drops",
    meaning: "packets missing from a capture because its ring or buffer was full; the packets themselves were not \
        dropped",
    remedy: "a larger ring, a filter, a faster reader; `netwren capture latency`",
    places: &["tpacket_rcv", "packet_rcv"],
};
const NETLINK: SocketKind = SocketKind {
    name: "netlink_socket_drops",
    meaning: "kernel messages that a program missed because its buffer was full: its view of the kernel is out of date",
    remedy: "a larger SO_RCVBUFFORCE; `netwren sockets 'proto = netlink and socket_drops > 0'`",
    places: &["netlink_"],
};

fn kind_of(socket: &Socket<'_>) -> Option<&'static SocketKind> {
    match socket.proto {
        Proto::Udp => Some(&UDP),
        Proto::Packet => Some(&PACKET),
        Proto::Netlink => Some(&NETLINK),
        _ => None,
    }
}

/// Drops of sockets at one reading, by cookie; sockets without drops are not in it.
#[derive(Debug, Default)]
pub struct SocketDrops {
    drops: HashMap<u64, u32>,
    /// Number of sockets beyond [`LOSING_SOCKETS_MAX`].
    over: u64,
}

impl SocketDrops {
    /// Adds a socket; `before` holds the previous reading. Returns the growth of its drops. A socket without earlier
    /// drops is not remembered: it starts at 0.
    fn add(&mut self, socket: &Socket<'_>, before: Option<&SocketDrops>) -> u32 {
        let of_netlink = || socket.extras?.netlink?.drops;
        let drops = socket.skmem.and_then(|skmem| skmem.get(8)).or_else(of_netlink).unwrap_or(0);
        if drops == 0 || socket.cookie == 0 {
            return 0;
        }
        if self.drops.len() >= LOSING_SOCKETS_MAX && !self.drops.contains_key(&socket.cookie) {
            self.over += 1;
            return 0;
        }
        self.drops.insert(socket.cookie, drops);
        let Some(before) = before else { return 0 };
        match before.drops.get(&socket.cookie) {
            Some(had) => drops.wrapping_sub(*had),
            None if before.over > 0 => 0,
            None => drops,
        }
    }
}

/// A trap of a device: reason and place of a drop by hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TrapOfDevice {
    trap: Box<[u8]>,
    device: Box<[u8]>,
}

/// One loss with its count.
#[derive(Debug, Clone)]
pub struct Loss {
    row: PacketDrop<'static>,
    /// The trap that counted it, if hardware dropped it.
    trap: Option<TrapOfDevice>,
    as_packets: AsPackets,
    is_virtual: bool,
}

impl Loss {
    /// The row.
    pub fn row(&self) -> PacketDrop<'_> {
        match &self.trap {
            Some(of) => PacketDrop { reason: &of.trap, place: &of.device, ..self.row },
            None => self.row,
        }
    }
}

/// Dropped packets of a round that no counter of the round contains, although one counts such losses: by namespace (0
/// if unknown) and name.
#[derive(Debug, Default)]
pub struct PacketsOver(HashMap<(u64, &'static str), u64>);

/// The losses of one round.
#[derive(Debug, Default)]
pub struct Losses {
    all: Vec<Loss>,
    sockets: SocketDrops,
    /// Losses that rows of packets or sockets already contain: by namespace (0 if unknown) and name.
    in_packets: HashMap<(u64, &'static str), u64>,
    window_ns: u64,
}

impl Losses {
    /// True if there were no losses.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Number of sockets whose drops are not remembered, and so not shown.
    pub fn sockets_over(&self) -> u64 {
        self.sockets.over
    }

    /// Takes the socket drops of this reading, for the next one.
    pub fn take_sockets(&mut self) -> SocketDrops {
        std::mem::take(&mut self.sockets)
    }

    /// Takes the packets that no counter of this round contains, because the counters were read before the packets. The
    /// next round's counters contain them.
    pub fn take_packets_over(&mut self) -> PacketsOver {
        PacketsOver(std::mem::take(&mut self.in_packets))
    }

    /// Adds the packets that no counter of the previous round contained.
    pub fn add_packets_over(&mut self, over: PacketsOver) {
        self.in_packets = over.0;
    }

    /// Adds a counter, if it counts losses and grew.
    pub fn add_counter(&mut self, counter: &Counter<'_>) {
        if counter.source == Trap {
            self.add_trap(counter);
            return;
        }
        let is_it = |known: &&LossCounter| known.source == counter.source && is_numbered(known.name, counter.name);
        let Some(known) = LOSSES.iter().find(is_it) else { return };
        self.window_ns = counter.window_ns.unwrap_or(self.window_ns);
        let grown = counter.delta.and_then(|delta| u64::try_from(delta).ok()).unwrap_or(0);
        if grown == 0 || !counter.is_virtual && matches!(known.as_packets, AsPackets::InVirtual(_)) {
            return;
        }
        if counter.source == Driver && self.add_to_queues(known.name, counter, grown) {
            return;
        }
        let row = PacketDrop {
            netns_id: counter.netns_id.unwrap_or(0),
            ifindex: counter.ifindex,
            counted_in: counted_in(counter.source),
            count: grown,
            reason: known.name.as_bytes(),
            meaning: counter.meaning,
            ..PacketDrop::default()
        };
        let (as_packets, is_virtual) = (known.as_packets, counter.is_virtual);
        self.all.push(Loss { row, trap: None, as_packets, is_virtual });
    }

    /// Adds the counts of a trap with which hardware drops: packets that it handed over and packets that it did not. No
    /// tracepoint sees either.
    fn add_trap(&mut self, counter: &Counter<'_>) {
        let ends: [&[u8]; 2] = [b".packets", b".dropped"];
        let Some(trap) = ends.into_iter().find_map(|end| counter.name.strip_suffix(end)) else { return };
        let grown = counter.delta.and_then(|delta| u64::try_from(delta).ok()).unwrap_or(0);
        if grown == 0 || !counter.is_drop_trap {
            return;
        }
        self.window_ns = counter.window_ns.unwrap_or(self.window_ns);
        let netns_id = counter.netns_id.unwrap_or(0);
        let is_it = |loss: &&mut Loss| {
            let known = loss.trap.as_ref().map(|of| (&*of.trap, &*of.device));
            known == Some((trap, counter.object)) && loss.row.netns_id == netns_id
        };
        if let Some(loss) = self.all.last_mut().filter(is_it) {
            loss.row.count = loss.row.count.saturating_add(grown);
            return;
        }
        let row = PacketDrop {
            netns_id,
            counted_in: CountedIn::Trap,
            count: grown,
            meaning: "dropped by hardware: the devlink trap of this name",
            ask: "network",
            remedy: "devlink trap show DEVICE trap NAME; after `action trap`: netwren drops --events --via net-dm",
            ..PacketDrop::default()
        };
        let trap = Some(TrapOfDevice { trap: trap.into(), device: counter.object.into() });
        self.all.push(Loss { row, trap, as_packets: AsPackets::Never, is_virtual: false });
    }

    /// Adds the losses of a further queue to its interface; false if no earlier queue of the interface had losses.
    fn add_to_queues(&mut self, name: &str, counter: &Counter<'_>, grown: u64) -> bool {
        // Statistics of one driver come one after the other.
        let is_it = |loss: &&mut Loss| {
            let row = &loss.row;
            row.counted_in == CountedIn::Driver
                && (row.netns_id, row.ifindex) == (counter.netns_id.unwrap_or(0), counter.ifindex)
                && row.reason == name.as_bytes()
        };
        let found = self.all.last_mut().filter(is_it);
        found.map(|loss| loss.row.count = loss.row.count.saturating_add(grown)).is_some()
    }

    /// Adds a socket, if its drops grew since the previous reading. Without a previous reading it is only remembered.
    pub fn add_socket(&mut self, socket: &Socket<'_>, before: Option<&SocketDrops>) {
        let Some(kind) = kind_of(socket) else { return };
        let grown = self.sockets.add(socket, before);
        if grown == 0 {
            return;
        }
        let row = PacketDrop {
            netns_id: socket.netns_id,
            counted_in: CountedIn::Socket,
            count: grown.into(),
            reason: kind.name.as_bytes(),
            socket_inode: socket.inode,
            uid: socket.uid,
            meaning: kind.meaning,
            ask: "application",
            remedy: kind.remedy,
            ..PacketDrop::default()
        };
        let as_packets = if kind.places.is_empty() { AsPackets::Always } else { AsPackets::Never };
        self.all.push(Loss { row, trap: None, as_packets, is_virtual: false });
    }

    /// Records a row of packets, so that its packets are not shown as another loss.
    pub fn note_packets(&mut self, row: &PacketDrop<'_>) {
        let begins = |place: &&str| row.place.starts_with(place.as_bytes());
        for kind in [&PACKET, &NETLINK] {
            if kind.places.iter().any(begins) {
                *self.in_packets.entry((row.netns_id, kind.name)).or_default() += row.count;
            }
        }
        for known in LOSSES {
            let is_one = match known.as_packets {
                AsPackets::With(reasons) => reasons.iter().any(|reason| reason.as_bytes() == row.reason),
                AsPackets::InVirtual(places) => places.iter().any(begins) || may_be_hidden(row),
                _ => false,
            };
            if is_one {
                *self.in_packets.entry((row.netns_id, known.name)).or_default() += row.count;
            }
        }
    }

    /// Makes the rows, sorted by count in descending order. If packets were counted, only losses that are not among
    /// them.
    pub fn rows(&mut self, are_packets_counted: bool) -> Vec<Loss> {
        if !are_packets_counted {
            self.in_packets.retain(|(_, name), _| *name == UDP.name);
            self.take_out_sockets();
            self.take_out_failed_inserts();
        }
        let mut rows = Vec::new();
        for loss in &self.all {
            let is_packet = match loss.as_packets {
                AsPackets::Always => true,
                AsPackets::OfVirtual => loss.is_virtual,
                AsPackets::Never | AsPackets::With(_) | AsPackets::InVirtual(_) => false,
            };
            if is_packet && are_packets_counted {
                continue;
            }
            let Loss { mut row, trap, as_packets, is_virtual } = loss.clone();
            let name = LOSSES.iter().map(|known| known.name).chain([PACKET.name, NETLINK.name]);
            let name = name.into_iter().find(|name| name.as_bytes() == row.reason).unwrap_or_default();
            for netns_id in [row.netns_id, 0] {
                take(&mut row.count, self.in_packets.get_mut(&(netns_id, name)));
            }
            if row.count > 0 {
                row.per_s = crate::block::rate(row.count, self.window_ns);
                rows.push(Loss { row, trap, as_packets, is_virtual });
            }
        }
        self.in_packets.retain(|_, count| *count > 0);
        rows.sort_by_key(|loss| std::cmp::Reverse(loss.row.count));
        rows
    }

    /// Subtracts the sockets' drops from the UDP counters. Sockets are read after the counters: drops that the counters
    /// do not contain yet are in the next round's.
    fn take_out_sockets(&mut self) {
        let is_udp = |loss: &&Loss| loss.row.reason == UDP.name.as_bytes();
        for loss in self.all.iter().filter(is_udp) {
            *self.in_packets.entry((loss.row.netns_id, UDP.name)).or_default() += loss.row.count;
        }
        for name in OF_UDP_SOCKETS {
            for loss in self.all.iter_mut().filter(|loss| loss.row.reason == name.as_bytes()) {
                take(&mut loss.row.count, self.in_packets.get_mut(&(loss.row.netns_id, UDP.name)));
            }
        }
    }

    /// Subtracts drops with a separate counter from the drops of connection tracking.
    fn take_out_failed_inserts(&mut self) {
        let is =
            |loss: &Loss, name: &str| loss.row.counted_in == CountedIn::Conntrack && loss.row.reason == name.as_bytes();
        let failed = self.all.iter().filter(|loss| is(loss, "insert_failed"));
        let mut failed: HashMap<u64, u64> = failed.map(|loss| (loss.row.netns_id, loss.row.count)).collect();
        for loss in self.all.iter_mut().filter(|loss| is(loss, "drop")) {
            take(&mut loss.row.count, failed.get_mut(&loss.row.netns_id));
        }
    }
}

/// True if the kernel hides the function, and the reason does not rule out a driver.
fn may_be_hidden(row: &PacketDrop<'_>) -> bool {
    row.place.starts_with(b"0x") && [&b""[..], b"NOT_SPECIFIED", b"XDP"].contains(&row.reason)
}

/// Subtracts `from` from `count`, as far as possible, and the same amount from `from` itself.
fn take(count: &mut u64, from: Option<&mut u64>) {
    let Some(from) = from else { return };
    let both = (*count).min(*from);
    *count -= both;
    *from -= both;
}

fn counted_in(source: CounterSource) -> CountedIn {
    let by_name = CountedIn::ALL.into_iter().find(|counted| counted.name() == source.name());
    by_name.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::{CounterKind, SkMem};

    fn counter(source: CounterSource, name: &'static str, delta: i128) -> Counter<'static> {
        Counter {
            netns_id: Some(7),
            source,
            name: name.as_bytes(),
            iface: None,
            ifindex: 3,
            is_virtual: false,
            is_drop_trap: false,
            cpu: None,
            qdisc: None,
            object: b"",
            value: 100,
            delta: Some(delta),
            window_ns: Some(2_000_000_000),
            kind: CounterKind::Counter,
            note: None,
            meaning: "it counts",
        }
    }

    fn names(rows: &[Loss]) -> Vec<(String, u64)> {
        rows.iter().map(|loss| (String::from_utf8_lossy(loss.row().reason).into_owned(), loss.row().count)).collect()
    }

    fn add_socket(losses: &mut Losses, proto: Proto, drops: u32, before: Option<&SocketDrops>) {
        let mut memory = [0; 36];
        memory[32..].copy_from_slice(&drops.to_ne_bytes());
        let socket = Socket { proto, netns_id: 7, cookie: 1 + proto as u64, inode: 50, ..Socket::EMPTY };
        losses.add_socket(&Socket { skmem: Some(SkMem::new(&memory)), ..socket }, before);
    }

    #[test]
    fn losses_that_are_packets_are_not_counted_twice() {
        let mut losses = Losses::default();
        losses.add_counter(&counter(Iface, "rx_missed_errors", 5));
        losses.add_counter(&Counter { is_virtual: true, ..counter(Iface, "rx_errors", 6) });
        losses.add_counter(&counter(Snmp, "UdpNoPorts", 7));
        losses.add_counter(&counter(Conntrack, "early_drop", 8));
        losses.add_counter(&counter(Netstat, "TcpExtListenDrops", 9));
        losses.add_counter(&counter(Netstat, "TcpExtListenDrops", 0));
        losses.add_counter(&counter(Netstat, "TcpExtDelayedACKs", 9));
        losses.note_packets(&PacketDrop {
            netns_id: 7,
            reason: b"TCP_LISTEN_OVERFLOW",
            count: 4,
            ..PacketDrop::default()
        });
        let rows = losses.rows(true);
        let shown = [("early_drop", 8), ("TcpExtListenDrops", 5), ("rx_missed_errors", 5)];
        let shown: Vec<(String, u64)> = shown.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        assert_eq!(names(&rows), [shown[0].clone(), shown[2].clone(), shown[1].clone()]);
        let rows: Vec<PacketDrop<'_>> = rows.iter().map(Loss::row).collect();
        assert!(rows.iter().all(|row| row.meaning == "it counts" && row.netns_id == 7 && row.total == 0));
        assert_eq!((rows[1].ifindex, rows[1].per_s, rows[1].counted_in), (3, 2500, CountedIn::Iface));
    }

    #[test]
    fn without_packets_all_of_them_each_once() {
        let (mut first, mut losses) = (Losses::default(), Losses::default());
        add_socket(&mut first, Proto::Udp, 10, None);
        assert!(first.is_empty());
        let before = first.take_sockets();
        add_socket(&mut losses, Proto::Udp, 14, Some(&before));
        add_socket(&mut losses, Proto::Netlink, 2, Some(&before));
        losses.add_counter(&counter(Snmp, "UdpRcvbufErrors", 6));
        losses.add_counter(&counter(Conntrack, "drop", 5));
        losses.add_counter(&counter(Conntrack, "insert_failed", 5));
        losses.add_counter(&counter(Snmp, "UdpNoPorts", 7));
        losses.note_packets(&PacketDrop { netns_id: 7, reason: b"NO_SOCKET", count: 4, ..PacketDrop::default() });
        let rows = names(&losses.rows(false));
        let expected = [
            ("UdpNoPorts", 7),
            ("insert_failed", 5),
            ("udp_socket_drops", 4),
            ("UdpRcvbufErrors", 2),
            ("netlink_socket_drops", 2),
        ];
        for (name, count) in expected {
            assert!(rows.contains(&(name.to_owned(), count)), "{rows:?}");
        }
        assert_eq!(rows.len(), expected.len());
        // A datagram is dropped after the counters were read and before the sockets are read.
        let (before, mut early) = (losses.take_sockets(), Losses::default());
        add_socket(&mut early, Proto::Udp, 17, Some(&before));
        assert_eq!(names(&early.rows(false)), [("udp_socket_drops".to_owned(), 3)]);
        let mut next = Losses::default();
        next.add_packets_over(early.take_packets_over());
        next.add_counter(&counter(Snmp, "UdpRcvbufErrors", 4));
        assert_eq!(names(&next.rows(false)), [("UdpRcvbufErrors".to_owned(), 1)]);
    }

    #[test]
    fn packets_of_captures_and_messages_count_once() {
        let mut losses = Losses::default();
        let before = SocketDrops::default();
        add_socket(&mut losses, Proto::Packet, 10, Some(&before));
        add_socket(&mut losses, Proto::Netlink, 3, Some(&before));
        losses.note_packets(&PacketDrop { netns_id: 7, place: b"tpacket_rcv", count: 4, ..PacketDrop::default() });
        losses.note_packets(&PacketDrop { place: b"netlink_attachskb", count: 3, ..PacketDrop::default() });
        losses.note_packets(&PacketDrop { netns_id: 8, place: b"packet_rcv", count: 2, ..PacketDrop::default() });
        assert_eq!(names(&losses.rows(true)), [("packet_socket_drops".to_owned(), 6)]);
        let (over, mut next) = (losses.take_packets_over(), Losses::default());
        assert_eq!(over.0, [((8, "packet_socket_drops"), 2)].into(), "its counter was read before it");
        next.add_packets_over(over);
        let before = SocketDrops::default();
        add_socket(&mut next, Proto::Packet, 3, Some(&before));
        next.all.iter_mut().for_each(|loss| loss.row.netns_id = 8);
        assert_eq!(names(&next.rows(true)), [("packet_socket_drops".to_owned(), 1)]);
    }

    #[test]
    fn queues_of_a_driver_are_one_loss_and_packets_of_it_no_second_one() {
        let queue = |number: u32, ifindex: u32, is_virtual: bool, delta: i128| {
            let name = format!("rx_queue_{number}_xdp_drops");
            move |losses: &mut Losses| {
                let of_driver = counter(Driver, "", delta);
                losses.add_counter(&Counter { name: name.as_bytes(), ifindex, is_virtual, ..of_driver });
            }
        };
        let filled = || {
            let mut losses = Losses::default();
            for add in [queue(0, 3, true, 5), queue(11, 3, true, 2), queue(0, 4, true, 1), queue(0, 5, false, 90)] {
                add(&mut losses);
            }
            losses.add_counter(&counter(Driver, "rx_queue_0_drops", 7));
            losses
        };
        let found: Vec<(u32, u64)> =
            filled().rows(false).iter().map(|loss| (loss.row.ifindex, loss.row.count)).collect();
        assert_eq!(found, [(3, 7), (4, 1)], "of a card the loss is in rx_dropped, too");
        let mut beside = filled();
        beside.note_packets(&PacketDrop { netns_id: 7, place: b"veth_xdp_rcv_skb", count: 6, ..PacketDrop::default() });
        assert_eq!(names(&beside.rows(true)), vec![("rx_queue_#_xdp_drops".to_owned(), 1); 2]);
    }

    #[test]
    fn traps_that_drop_are_losses_of_their_device() {
        let mut losses = Losses::default();
        let mut add = |name: &'static str, is_drop_trap: bool, delta: i128| {
            let trap = counter(Trap, name, delta);
            losses.add_counter(&Counter { object: b"pci/0000:01:00.0", ifindex: 0, is_drop_trap, ..trap });
        };
        add("blackhole_route.packets", true, 7);
        add("blackhole_route.bytes", true, 700);
        add("blackhole_route.dropped", true, 2);
        add("ttl_value_is_too_small.packets", false, 9);
        add("ingress_vlan_filter.dropped", true, 1);
        let rows = losses.rows(true);
        assert_eq!(names(&rows), [("blackhole_route".to_owned(), 9), ("ingress_vlan_filter".to_owned(), 1)]);
        let row = rows[0].row();
        assert_eq!((row.place, row.counted_in), (&b"pci/0000:01:00.0"[..], CountedIn::Trap));
    }

    #[test]
    fn sockets_beyond_the_bound_are_counted() {
        let mut first = SocketDrops::default();
        let mut memory = [0; 36];
        memory[32] = 1;
        let socket = |cookie: usize| Socket {
            proto: Proto::Udp,
            cookie: cookie as u64,
            skmem: Some(SkMem::new(&memory)),
            ..Socket::EMPTY
        };
        (1..LOSING_SOCKETS_MAX + 3).for_each(|cookie| _ = first.add(&socket(cookie), None));
        assert_eq!((first.drops.len(), first.over), (LOSING_SOCKETS_MAX, 2));
        assert_eq!(
            SocketDrops::default().add(&socket(LOSING_SOCKETS_MAX + 9), Some(&first)),
            0,
            "it may have been there"
        );
    }
}
