//! Makes conntrack entries through ctnetlink, in any state and without packets.

use crate::netns::Lab;
use netlink::{Messages, Request};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use sys::NetlinkSocket;

const NETLINK_NETFILTER: i32 = 12;
/// Subsystem 1 (ctnetlink), message 0 (IPCTNL_MSG_CT_NEW).
const CT_NEW: u16 = 1 << 8;
/// Message 2 (IPCTNL_MSG_CT_DELETE).
const CT_DELETE: u16 = 1 << 8 | 2;
/// NLM_F_CREATE | NLM_F_EXCL.
const CREATE: u16 = 0x400 | 0x200;
/// -ENOSPC: the chain of the entry's bucket is too long.
const NO_ROOM: i32 = -28;
/// Number of requests sent before their acknowledgements are read, which must fit into one receive buffer.
const BATCH: usize = 64;

/// Status bits, include/uapi/linux/netfilter/nf_conntrack_common.h.
pub mod status {
    /// A reply was seen.
    pub const SEEN_REPLY: u32 = 1 << 1;
    /// Not evicted early when the table is full.
    pub const ASSURED: u32 = 1 << 2;
    /// The entry is in the table; every entry has this bit.
    pub const CONFIRMED: u32 = 1 << 3;
}

/// An entry to create. Start with [`Entry::tcp`] or a similar function.
#[derive(Debug, Clone)]
pub struct Entry {
    proto: u8,
    src: (IpAddr, u16),
    dst: (IpAddr, u16),
    /// Type and code of an ICMP request and of its reply.
    icmp: Option<([u8; 2], [u8; 2])>,
    status: u32,
    timeout_s: u32,
    state: Option<u8>,
    dnat: Option<(IpAddr, u16)>,
    snat: Option<(IpAddr, u16)>,
    mark: u32,
    zone: u16,
    labels: Option<[u8; 16]>,
    helper: Option<&'static str>,
    master: Option<Box<Entry>>,
}

impl Entry {
    /// An entry for a protocol without ports (ESP 50, OSPF 89 …).
    pub fn without_ports(proto: u8, src: IpAddr, dst: IpAddr) -> Entry {
        Entry {
            proto,
            src: (src, 0),
            dst: (dst, 0),
            icmp: None,
            status: status::CONFIRMED,
            timeout_s: 3600,
            state: None,
            dnat: None,
            snat: None,
            mark: 0,
            zone: 0,
            labels: None,
            helper: None,
            master: None,
        }
    }

    /// An entry for a protocol with ports: UDP 17, UDP-Lite 136, GRE 47 (keys), TCP 6, SCTP 132.
    pub fn ports(proto: u8, src: (IpAddr, u16), dst: (IpAddr, u16)) -> Entry {
        Entry { src, dst, ..Entry::without_ports(proto, src.0, dst.0) }
    }

    /// A TCP entry in a state: `enum tcp_conntrack`, 1 SYN_SENT to 9 SYN_SENT2. Its status bits match the state.
    pub fn tcp(src: (IpAddr, u16), dst: (IpAddr, u16), state: u8) -> Entry {
        let mut entry = Entry { state: Some(state), ..Entry::ports(6, src, dst) };
        entry.status |= match state {
            1 | 9 => 0,
            2 => status::SEEN_REPLY,
            _ => status::SEEN_REPLY | status::ASSURED,
        };
        entry
    }

    /// A UDP entry without a reply.
    pub fn udp(src: (IpAddr, u16), dst: (IpAddr, u16)) -> Entry {
        Entry::ports(17, src, dst)
    }

    /// An SCTP entry in a state: `enum sctp_conntrack`, 1 CLOSED to 8 HEARTBEAT_SENT.
    pub fn sctp(src: (IpAddr, u16), dst: (IpAddr, u16), state: u8) -> Entry {
        Entry { state: Some(state), ..Entry::ports(132, src, dst) }
    }

    /// An entry for an echo request with this id: ICMP or ICMPv6, depending on the addresses.
    pub fn ping(src: IpAddr, dst: IpAddr, id: u16) -> Entry {
        let (proto, icmp) = if src.is_ipv4() { (1, ([8, 0], [0, 0])) } else { (58, ([128, 0], [129, 0])) };
        Entry { icmp: Some(icmp), src: (src, id), ..Entry::without_ports(proto, src, dst) }
    }

    /// Sets these status bits in addition to CONFIRMED.
    pub fn status(mut self, bits: u32) -> Entry {
        self.status = bits | status::CONFIRMED;
        self
    }

    /// Sets the timeout in seconds; the default is 3600.
    pub fn timeout_s(mut self, seconds: u32) -> Entry {
        self.timeout_s = seconds;
        self
    }

    /// Changes the destination address.
    pub fn with_destination(mut self, dst: IpAddr) -> Entry {
        self.dst.0 = dst;
        self
    }

    /// Sets a destination NAT; port 0 keeps the port.
    pub fn dnat(mut self, to: IpAddr, port: u16) -> Entry {
        self.dnat = Some((to, port));
        self
    }

    /// Sets a source NAT; port 0 keeps the port if it is free.
    pub fn snat(mut self, to: IpAddr, port: u16) -> Entry {
        self.snat = Some((to, port));
        self
    }

    /// Sets the mark.
    pub fn mark(mut self, mark: u32) -> Entry {
        self.mark = mark;
        self
    }

    /// Sets the zone for both directions.
    pub fn zone(mut self, zone: u16) -> Entry {
        self.zone = zone;
        self
    }

    /// Sets these label bits. The namespace must have a rule that uses labels: see [`Lab::use_conntrack_labels`].
    pub fn label_bits(mut self, bits: &[u8]) -> Entry {
        let mut words = [0; 16];
        bits.iter().filter(|bit| **bit < 128).for_each(|bit| words[usize::from(bit / 8)] |= 1 << (bit % 8));
        self.labels = Some(words);
        self
    }

    /// Sets the helper (`ftp`), which the kernel must have.
    pub fn helper(mut self, name: &'static str) -> Entry {
        self.helper = Some(name);
        self
    }

    /// Makes it an expected connection of `master`, an existing entry.
    pub fn master(mut self, master: &Entry) -> Entry {
        self.master = Some(Box::new(master.clone()));
        self
    }

    fn request(&self) -> Vec<u8> {
        let mut request = Request::for_one_with_flags(CT_NEW, CREATE);
        request.append(&[if self.src.0.is_ipv4() { 2 } else { 10 }, 0, 0, 0]);
        self.put_tuples(&mut request);
        request.attr(3, &self.status.to_be_bytes()).attr(7, &self.timeout_s.to_be_bytes());
        if let Some(state) = self.state {
            request.nested(4, |info| {
                if self.proto == 6 {
                    info.nested(1, |tcp| {
                        tcp.attr(1, &[state]);
                    });
                } else {
                    info.nested(3, |sctp| {
                        sctp.attr(1, &[state]).attr(2, &[0; 4]).attr(3, &[0; 4]);
                    });
                }
            });
        }
        for (kind, to) in [(13, self.dnat), (6, self.snat)] {
            if let Some(to) = to {
                self.put_nat(&mut request, kind, to);
            }
        }
        if self.mark != 0 {
            request.attr(8, &self.mark.to_be_bytes());
        }
        if self.zone != 0 {
            request.attr(18, &self.zone.to_be_bytes());
        }
        if let Some(labels) = self.labels {
            request.attr(22, &labels);
        }
        if let Some(helper) = self.helper {
            request.nested(5, |help| {
                help.attr(1, &[helper.as_bytes(), &[0]].concat());
            });
        }
        request.bytes().expect("nothing in it is long").to_vec()
    }

    // Identifies the entry by its original direction only.
    fn removal(&self) -> Vec<u8> {
        let mut request = Request::for_one_with_flags(CT_DELETE, 0);
        request.append(&[if self.src.0.is_ipv4() { 2 } else { 10 }, 0, 0, 0]);
        let asks = self.icmp.map_or([0; 2], |(asks, _)| asks);
        put_tuple(&mut request, 1, self.proto, [self.src, self.dst], asks);
        if self.zone != 0 {
            request.attr(18, &self.zone.to_be_bytes());
        }
        request.bytes().expect("nothing in it is long").to_vec()
    }

    fn put_tuples(&self, request: &mut Request) {
        let [asks, answers] = self.icmp.map_or([[0; 2]; 2], |(asks, answers)| [asks, answers]);
        put_tuple(request, 1, self.proto, [self.src, self.dst], asks);
        // The reply without NAT; the kernel applies the NAT to it.
        let back = if self.icmp.is_some() { [(self.dst.0, self.src.1), self.src] } else { [self.dst, self.src] };
        put_tuple(request, 2, self.proto, back, answers);
        if let Some(master) = &self.master {
            put_tuple(request, 14, master.proto, [master.src, master.dst], [0; 2]);
        }
    }

    // Adds a range of one address, and of one port unless it is kept.
    fn put_nat(&self, request: &mut Request, kind: u16, (to, port): (IpAddr, u16)) {
        request.nested(kind, |nat| {
            let (first, last, octets) = match to {
                IpAddr::V4(addr) => (1, 2, addr.octets().to_vec()),
                IpAddr::V6(addr) => (4, 5, addr.octets().to_vec()),
            };
            nat.attr(first, &octets).attr(last, &octets);
            if port != 0 {
                nat.nested(3, |ports| {
                    ports.attr(1, &port.to_be_bytes()).attr(2, &port.to_be_bytes());
                });
            }
        });
    }
}

fn put_tuple(request: &mut Request, kind: u16, proto: u8, ends: [(IpAddr, u16); 2], icmp: [u8; 2]) {
    request.nested(kind, |tuple| {
        tuple.nested(1, |ip| {
            for (n, (addr, _)) in (0..).zip(ends) {
                match addr {
                    IpAddr::V4(addr) => ip.attr(1 + n, &addr.octets()),
                    IpAddr::V6(addr) => ip.attr(3 + n, &addr.octets()),
                };
            }
        });
        tuple.nested(2, |parts| {
            parts.attr(1, &[proto]);
            let [src, dst] = ends.map(|(_, part)| part.to_be_bytes());
            match proto {
                1 => parts.attr(4, &src).attr(5, &icmp[..1]).attr(6, &icmp[1..]),
                58 => parts.attr(7, &src).attr(8, &icmp[..1]).attr(9, &icmp[1..]),
                6 | 17 | 33 | 47 | 132 | 136 => parts.attr(2, &src).attr(3, &dst),
                _ => parts,
            };
        });
    });
}

/// Creates the entries in the calling thread's namespace; returns their number.
///
/// # Panics
/// If the kernel refuses one, with its error and the entry.
#[track_caller]
pub fn insert(entries: impl IntoIterator<Item = Entry>) -> usize {
    ask_for_each(entries, Entry::request)
}

/// Removes the entries, which must exist, from the calling thread's namespace; returns their number.
///
/// # Panics
/// If the kernel refuses one, with its error and the entry.
#[track_caller]
pub fn remove(entries: impl IntoIterator<Item = Entry>) -> usize {
    ask_for_each(entries, Entry::removal)
}

#[track_caller]
fn ask_for_each(entries: impl IntoIterator<Item = Entry>, request: fn(&Entry) -> Vec<u8>) -> usize {
    let socket = NetlinkSocket::open(NETLINK_NETFILTER).expect("nfnetlink is there");
    socket.make_room(1 << 20);
    let (mut made, mut again) = insert_batch(&socket, entries.into_iter(), request);
    // Another test may have shrunk the hash table temporarily, so that its chains are too long.
    crate::wait_until("room in the hash table for every entry", || {
        let (more, left) = insert_batch(&socket, std::mem::take(&mut again).into_iter(), request);
        made += more;
        again = left;
        again.is_empty()
    });
    made
}

/// The number of entries that the kernel accepted, and the entries that did not fit into the hash table.
#[track_caller]
fn insert_batch(
    socket: &NetlinkSocket,
    mut entries: impl Iterator<Item = Entry>,
    request: fn(&Entry) -> Vec<u8>,
) -> (usize, Vec<Entry>) {
    let (mut into, mut made, mut again) = (vec![0; 64 << 10], 0, Vec::new());
    loop {
        let batch: Vec<Entry> = entries.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return (made, again);
        }
        let requests: Vec<u8> = batch.iter().flat_map(request).collect();
        socket.send(&requests).expect("the kernel takes a batch");
        let mut acknowledged = 0;
        while acknowledged < batch.len() {
            let got = socket.recv(&mut into).expect("each request is acknowledged");
            for message in Messages::new(&into[..got]) {
                let payload = message.expect("a whole message").payload;
                let errno = i32::from_ne_bytes(payload[..4].try_into().unwrap());
                let entry = &batch[acknowledged];
                assert!(matches!(errno, 0 | NO_ROOM), "the kernel refused {entry:?}: {errno}");
                if errno == NO_ROOM {
                    again.push(entry.clone());
                } else {
                    made += 1;
                }
                acknowledged += 1;
            }
        }
    }
}

/// `count` distinct entries of every kind, the same in every run: TCP in all its states, UDP, ICMP, SCTP, UDP-Lite,
/// GRE, a protocol without ports; IPv4 and, one in seven, IPv6; a quarter with destination NAT, a fifth with source
/// NAT, some with both; marks and zones. There are few clients, with unequal numbers of entries.
pub fn mixed_entries(count: u32) -> impl Iterator<Item = Entry> {
    (0..count).map(mixed_entry)
}

/// The original destination of entries with destination NAT in [`mixed_entries`].
pub const PUBLISHED: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 30);
/// The source address after source NAT.
pub const OUTSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

fn mixed_entry(n: u32) -> Entry {
    // A multiplicative hash, which looks random and is not correlated with the divisors below.
    let r = n.wrapping_mul(0x9e37_79b1) >> 7;
    let client = if r % 5 == 0 { r % 3 } else { r % 97 };
    let v6 = n % 7 == 3;
    let (src, dst) = ends(v6, client, r % 61);
    // Ports make each entry unique, regardless of the rest.
    let sport = 1024 + (n % 60_000) as u16;
    let dport = [80, 443, 8080, 5201][(r / 61 % 4) as usize] + (n / 60_000) as u16;
    let entry = match n % 20 {
        0..=11 => Entry::tcp((src, sport), (dst, dport), (1 + r % 9) as u8),
        12..=15 => Entry::udp((src, sport), (dst, 53)).status([0, status::SEEN_REPLY, 6][(r % 3) as usize]),
        16 => Entry::ping(src, dst, sport).status((r & 1) << 1),
        17 => Entry::sctp((src, sport), (dst, 3868), (1 + r % 8) as u8).status(2),
        18 => Entry::ports(if n % 40 == 18 { 136 } else { 47 }, (src, sport), (dst, dport)),
        _ => Entry::without_ports([50, 89, 253][(r % 3) as usize], spread_address(v6, n), dst),
    };
    let entry = with_nat(entry, n, v6).timeout_s(3_000 + r % 600);
    let entry = if r % 11 == 0 { entry.mark(1 + r % 5) } else { entry };
    if r % 13 == 0 { entry.zone(1 + (r % 3) as u16) } else { entry }
}

fn ends(v6: bool, client: u32, server: u32) -> (IpAddr, IpAddr) {
    if v6 {
        let of = |net: u16, host: u32| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host as u16 + 1));
        return (of(1, client), of(2, server));
    }
    (Ipv4Addr::from(0x0a00_0002 + client).into(), Ipv4Addr::from(0xc633_6402 + server).into())
}

// For protocols without ports, only the addresses distinguish entries.
fn spread_address(v6: bool, n: u32) -> IpAddr {
    let [_, b, c, d] = n.to_be_bytes();
    if v6 {
        return Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, u16::from(b), u16::from_be_bytes([c, d])).into();
    }
    Ipv4Addr::new(10, 64 | (b & 0x3f), c, d).into()
}

fn with_nat(mut entry: Entry, n: u32, v6: bool) -> Entry {
    let ported = matches!(entry.proto, 6 | 17);
    if v6 || !(ported || entry.proto == 1) {
        return entry;
    }
    let port = if ported { 1024 + (n % 60_000) as u16 } else { 0 };
    let backend = Ipv4Addr::new(172, 17, 0, 2 + (n % 50) as u8);
    if ported && n % 4 == 1 {
        entry.dst = (PUBLISHED.into(), 8000 + (n / 60_000) as u16);
        entry = entry.dnat(backend.into(), 80 + (n / 60_000) as u16);
    }
    // With hundreds of entries on one outside address and port, the kernel would search for a free port.
    if n % 5 == 2 || n % 20 == 1 { entry.snat(Ipv4Addr::from(u32::from(OUTSIDE) + n % 16).into(), port) } else { entry }
}

impl Lab {
    /// Creates the entries in the lab's table; returns their number.
    #[track_caller]
    pub fn track(&self, entries: impl IntoIterator<Item = Entry>) -> usize {
        self.shares_conntrack();
        let entries: Vec<Entry> = entries.into_iter().collect();
        self.run_inside(|| insert(entries))
    }

    /// Changes a conntrack setting in the lab's namespace: `nf_conntrack_acct`, `nf_conntrack_timestamp` …
    pub fn set_conntrack(&self, setting: &str, value: &str) {
        let path = format!("/proc/sys/net/netfilter/{setting}");
        self.run_inside(|| std::fs::write(&path, value)).unwrap_or_else(|e| panic!("cannot write {path}: {e}"));
    }

    /// Reserves room for labels in new entries, by adding a rule that tests labels. Needs nft(8).
    pub fn use_conntrack_labels(&self) {
        let rules = "table inet labels {\n chain never {\n ct label 1 accept\n }\n}\n";
        let file = self.dir().join("labels.nft");
        std::fs::write(&file, rules).expect("the lab's folder is there");
        self.output("nft", &["-f", file.to_str().expect("a plain path")]);
    }

    /// Enables connection tracking in the lab's namespace, by adding a rule that tests the state. Needs nft(8).
    pub fn use_conntrack(&self) {
        self.shares_conntrack();
        self.nft(
            "table inet tracked {\n chain input {\n type filter hook input priority 0;\n ct state new counter\n }\n}\n",
        );
    }

    /// Loads these rules into the lab's namespace. Needs nft(8).
    pub fn nft(&self, rules: &str) {
        self.shares_conntrack();
        let file = self.dir().join("rules.nft");
        std::fs::write(&file, rules).expect("the lab's folder is there");
        self.output("nft", &["-f", file.to_str().expect("a plain path")]);
    }

    /// Sends `count` datagrams, each of which creates a UDP entry: from one port to one port, at addresses of
    /// 127.0.0.0/8, starting at 127.1.0.0 + `first`.
    pub fn new_udp_flows(&self, first: u32, count: u32) {
        self.shares_conntrack();
        self.run_inside(|| {
            // The receiving socket exists but is never read, so that no ICMP error comes back.
            let there = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
            let here = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
            let port = there.local_addr().expect("it is bound").port();
            for n in first..first + count {
                let to = Ipv4Addr::from(0x7f01_0000 + n);
                here.send_to(b"x", (to, port)).unwrap_or_else(|e| panic!("cannot send to {to}: {e}"));
            }
        });
    }

    /// Number of entries in the lab's table, including expired ones.
    pub fn conntrack_count(&self) -> u64 {
        let path = "/proc/sys/net/netfilter/nf_conntrack_count";
        let text = self.run_inside(|| std::fs::read_to_string(path)).expect("connection tracking is there");
        text.trim().parse().expect("a number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_a_mix_goes_in_whole() {
        crate::require_root!();
        let lab = Lab::new("mix");
        assert_eq!(lab.track(mixed_entries(2_000)), 2_000);
        assert_eq!(lab.conntrack_count(), 2_000);
    }

    #[test]
    fn root_labels_need_a_rule_and_have_it() {
        crate::require_root!();
        let lab = Lab::new("labels");
        lab.use_conntrack_labels();
        let client = (IpAddr::from([10, 0, 0, 1]), 1024);
        lab.track([Entry::udp(client, ([10, 0, 0, 2].into(), 53)).label_bits(&[1, 77])]);
        assert_eq!(lab.conntrack_count(), 1);
    }
}
