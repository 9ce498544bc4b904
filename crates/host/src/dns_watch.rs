//! Counts DNS queries and answers over UDP, by server, from the heads of the messages.
//!
//! An answer matches a query with the client's address and port and the same ID. Its response code is read; names and
//! other contents are not. A query whose answer comes from another address than was asked is counted separately: a
//! client with a connected socket does not receive such an answer.
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use netlink::prefix;
use record::Addr;
use sys::{DNS_HEAD_BYTES, DnsSocket, SysError};

/// Bound: DNS messages that `doctor` reads in a namespace during its window. Beyond: it stops counting there and
/// judges what it has read; reported (exit code 3). By: anyone who sends DNS messages.
const MESSAGES_MAX: u32 = 8192;
/// Bound: DNS servers, and pairs of servers, that `doctor` keeps for a namespace. Beyond: further ones are left out,
/// reported (exit code 3). By: anyone who sends DNS messages.
const SERVERS_MAX: usize = 256;

/// A query that is not answered for this long counts as waiting.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// The port of DNS.
const DNS: u16 = 53;
/// The bit of an answer in the third byte of a DNS header.
const IS_ANSWER: u8 = 0x80;
/// Sizes of the UDP header and of the IPv6 header.
const UDP_HEADER: usize = 8;
const IPV6_HEADER: usize = 40;

/// Sizes of a record of a server and of a mismatch in a recording, each after a byte that shows which one it is.
const SERVER: usize = 51;
const MISMATCH: usize = 53;
/// The size of a record of a server with failures.
const FAILING_SERVER: usize = SERVER + 8;

/// Response codes, RFC 1035, 4.1.1.
const SERVFAIL: u8 = 2;
const REFUSED: u8 = 5;

/// Queries to a DNS server, and its answers, during the watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsServerCount {
    /// The server.
    pub server: Addr,
    /// The client that has waited longest; the last client if none waits.
    pub client: Addr,
    /// The client's port.
    pub port: u16,
    /// Queries; a repeated one counts once.
    pub asked: u32,
    /// Answers, including those to earlier queries.
    pub answered: u32,
    /// Queries that have waited for [`PATIENCE`] or longer.
    pub waiting: u32,
    /// How long the oldest of them has waited, in milliseconds.
    pub longest_ms: u32,
    /// Answers with the response code SERVFAIL: the server could not find the answer.
    pub failed: u32,
    /// Answers with the response code REFUSED: the server does not serve this client, or this name.
    pub refused: u32,
}

/// Answers that came from another address than the client had asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsMismatchCount {
    /// The address that was asked.
    pub asked: Addr,
    /// The address that the answers came from.
    pub answered: Addr,
    /// A client.
    pub client: Addr,
    /// Number of answers.
    pub count: u32,
}

/// The counts of a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DnsCounts {
    /// The servers, in the order of addresses.
    pub servers: Vec<DnsServerCount>,
    /// The mismatches, in the order of addresses.
    pub mismatches: Vec<DnsMismatchCount>,
}

/// The head of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DnsHead {
    server: Addr,
    client: Addr,
    port: u16,
    id: u16,
    is_answer: bool,
    /// The response code.
    code: u8,
}

/// A query: the client's address and port, the ID, the server.
type QueryKey = (Addr, u16, u16, Addr);

/// The totals of a server.
#[derive(Debug, Clone, Copy)]
struct Totals {
    asked: u32,
    answered: u32,
    failed: u32,
    refused: u32,
    last: (Addr, u16),
}

/// The state of a watch.
#[derive(Debug, Default)]
struct Counting {
    /// Queries without an answer, with the time of the first attempt.
    waiting: BTreeMap<QueryKey, Instant>,
    /// Queries with an answer: a bridge or router shows it twice.
    answered: BTreeSet<QueryKey>,
    servers: BTreeMap<Addr, Totals>,
    mismatches: BTreeMap<(Addr, Addr), (Addr, u32)>,
    /// True if a server or a pair of servers was left out.
    is_over: bool,
}

/// Counts DNS messages of a namespace as long as it exists.
#[derive(Debug)]
pub struct DnsWatch {
    /// `None` after the last message that is read.
    socket: Option<DnsSocket>,
    counting: Counting,
    read: u32,
    /// The time of the last reading.
    until: Instant,
}

impl DnsWatch {
    /// From now on counts the messages of the calling thread's namespace. Needs CAP_NET_RAW.
    pub fn open() -> Result<DnsWatch, SysError> {
        let (counting, until) = (Counting::default(), Instant::now());
        Ok(DnsWatch { socket: Some(DnsSocket::open()?), counting, read: 0, until })
    }

    /// Reads the messages that have arrived. They get the time of the call: call it several times per second.
    pub fn read(&mut self) -> Result<(), SysError> {
        let (now, mut head) = (Instant::now(), [0; DNS_HEAD_BYTES]);
        let Some(socket) = &self.socket else { return Ok(()) };
        self.until = now;
        while let Some(size) = socket.receive(&mut head)? {
            self.read += 1;
            if let Some(head) = head.get(..size).and_then(parse_head) {
                self.counting.add(head, now);
            }
            if self.read >= MESSAGES_MAX {
                self.socket = None;
                break;
            }
        }
        Ok(())
    }

    /// True if messages or servers beyond the bounds were not counted.
    pub fn is_over(&self) -> bool {
        self.socket.is_none() || self.counting.is_over
    }

    /// Returns the counts up to the last reading.
    pub fn counts(&self) -> DnsCounts {
        self.counting.counts(self.until)
    }
}

impl Counting {
    fn add(&mut self, head: DnsHead, now: Instant) {
        let DnsHead { server, client, port, id, is_answer, .. } = head;
        let key = (client, port, id, server);
        if !is_answer {
            let is_new = !self.waiting.contains_key(&key);
            self.waiting.entry(key).or_insert(now);
            self.answered.remove(&key);
            return self.total(head, u32::from(is_new), 0);
        }
        if self.waiting.remove(&key).is_some() {
            self.answered.insert(key);
            return self.total(head, 0, 1);
        }
        if self.answered.contains(&key) {
            return;
        }
        let of_lookup = (client, port, id, Addr::V4([0; 4]))..=(client, port, id, Addr::V6([0xff; 16]));
        match self.waiting.range(of_lookup).next().map(|((.., asked), _)| *asked) {
            Some(asked) if self.mismatches.len() < SERVERS_MAX => {
                let of = self.mismatches.entry((asked, server)).or_insert((client, 0));
                of.1 = of.1.saturating_add(1);
            }
            Some(_) => self.is_over = true,
            // The answer to an earlier query, or to none: anyone can send it, so its code does not count.
            None => self.total(DnsHead { code: 0, ..head }, 0, 1),
        }
    }

    fn total(&mut self, head: DnsHead, asked: u32, answered: u32) {
        if self.servers.len() >= SERVERS_MAX && !self.servers.contains_key(&head.server) {
            self.is_over = true;
            return;
        }
        let last = (head.client, head.port);
        let of =
            self.servers.entry(head.server).or_insert(Totals { asked: 0, answered: 0, failed: 0, refused: 0, last });
        of.asked = of.asked.saturating_add(asked);
        of.answered = of.answered.saturating_add(answered);
        match head.code {
            SERVFAIL => of.failed = of.failed.saturating_add(answered),
            REFUSED => of.refused = of.refused.saturating_add(answered),
            _ => {}
        }
        of.last = last;
    }

    fn counts(&self, until: Instant) -> DnsCounts {
        let of_server = |(server, of): (&Addr, &Totals)| {
            let of_this = self.waiting.iter().filter(|((.., asked), _)| asked == server);
            let ages =
                of_this.map(|((client, port, ..), asked)| (until.saturating_duration_since(*asked), client, port));
            let waiting: Vec<_> = ages.filter(|(age, ..)| *age >= PATIENCE).collect();
            let oldest = waiting.iter().max_by_key(|(age, ..)| *age);
            let (client, port) = oldest.map_or(of.last, |(_, client, port)| (**client, **port));
            DnsServerCount {
                server: *server,
                client,
                port,
                asked: of.asked,
                answered: of.answered,
                waiting: u32::try_from(waiting.len()).unwrap_or(u32::MAX),
                longest_ms: oldest.map_or(0, |(age, ..)| u32::try_from(age.as_millis()).unwrap_or(u32::MAX)),
                failed: of.failed,
                refused: of.refused,
            }
        };
        let of_pair = |(&(asked, answered), &(client, count)): (&(Addr, Addr), &(Addr, u32))| DnsMismatchCount {
            asked,
            answered,
            client,
            count,
        };
        DnsCounts {
            servers: self.servers.iter().map(of_server).collect(),
            mismatches: self.mismatches.iter().map(of_pair).collect(),
        }
    }
}

/// Parses an IP packet with the head of a DNS message.
fn parse_head(packet: &[u8]) -> Option<DnsHead> {
    let first = prefix::u8_at(packet, 0)?;
    let (src, dst, udp) = match first >> 4 {
        4 => {
            let (src, dst) = (prefix::array_at(packet, 12)?, prefix::array_at(packet, 16)?);
            (Addr::V4(src), Addr::V4(dst), usize::from(first & 0xf) * 4)
        }
        6 => (Addr::V6(prefix::array_at(packet, 8)?), Addr::V6(prefix::array_at(packet, 24)?), IPV6_HEADER),
        _ => return None,
    };
    let (sport, dport) = (prefix::be16_at(packet, udp)?, prefix::be16_at(packet, udp + 2)?);
    let id = prefix::be16_at(packet, udp + UDP_HEADER)?;
    let flags = prefix::u8_at(packet, udp + UDP_HEADER + 2)?;
    let code = prefix::u8_at(packet, udp + UDP_HEADER + 3)? & 0xf;
    let is_answer = sport == DNS && (dport != DNS || flags & IS_ANSWER != 0);
    let (server, client, port) = if is_answer { (src, dst, dport) } else { (dst, src, sport) };
    Some(DnsHead { server, client, port, id, is_answer, code })
}

impl DnsCounts {
    /// Appends the counts in the format of [`parse`].
    pub fn put(&self, into: &mut Vec<u8>) {
        for one in &self.servers {
            into.push(2);
            into.extend_from_slice(&bytes_of(one.server));
            into.extend_from_slice(&bytes_of(one.client));
            into.extend_from_slice(&one.port.to_ne_bytes());
            for number in [one.asked, one.answered, one.waiting, one.longest_ms, one.failed, one.refused] {
                into.extend_from_slice(&number.to_ne_bytes());
            }
        }
        for one in &self.mismatches {
            into.push(1);
            [one.asked, one.answered, one.client].iter().for_each(|addr| into.extend_from_slice(&bytes_of(*addr)));
            into.extend_from_slice(&one.count.to_ne_bytes());
        }
    }
}

/// An address in a recording: IPv4 as a mapped IPv6 address.
fn bytes_of(addr: Addr) -> [u8; 16] {
    match addr {
        Addr::V4([a, b, c, d]) => [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d],
        Addr::V6(bytes) => bytes,
    }
}

/// Decodes counts written by [`DnsCounts::put`], up to the first malformed one.
pub fn parse(mut bytes: &[u8]) -> DnsCounts {
    let mut counts = DnsCounts::default();
    let addr = |bytes, at| prefix::array_at(bytes, at).map(|addr| Addr::V6(addr).unmapped());
    let server = |bytes| {
        Some(DnsServerCount {
            server: addr(bytes, 1)?,
            client: addr(bytes, 17)?,
            port: prefix::u16_at(bytes, 33)?,
            asked: prefix::u32_at(bytes, 35)?,
            answered: prefix::u32_at(bytes, 39)?,
            waiting: prefix::u32_at(bytes, 43)?,
            longest_ms: prefix::u32_at(bytes, 47)?,
            failed: 0,
            refused: 0,
        })
    };
    let failing_server = |bytes| {
        let (failed, refused) = (prefix::u32_at(bytes, SERVER)?, prefix::u32_at(bytes, SERVER + 4)?);
        Some(DnsServerCount { failed, refused, ..server(bytes)? })
    };
    let mismatch = |bytes| {
        let (asked, answered, client) = (addr(bytes, 1)?, addr(bytes, 17)?, addr(bytes, 33)?);
        Some(DnsMismatchCount { asked, answered, client, count: prefix::u32_at(bytes, 49)? })
    };
    loop {
        let size = match bytes.first() {
            // Recordings of earlier versions.
            Some(0) => server(bytes).map(|one| counts.servers.push(one)).map(|()| SERVER),
            Some(2) => failing_server(bytes).map(|one| counts.servers.push(one)).map(|()| FAILING_SERVER),
            Some(1) => mismatch(bytes).map(|one| counts.mismatches.push(one)).map(|()| MISMATCH),
            _ => None,
        };
        match size.and_then(|size| bytes.get(size..)) {
            Some(rest) => bytes = rest,
            None => return counts,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use testkit::netns::Lab;

    const CLIENT: Addr = Addr::V4([192, 0, 2, 10]);
    const FIRST: Addr = Addr::V4([192, 0, 2, 53]);
    const SECOND: Addr = Addr::V4([192, 0, 2, 54]);

    fn head(server: Addr, port: u16, id: u16, is_answer: bool) -> DnsHead {
        DnsHead { server, client: CLIENT, port, id, is_answer, code: 0 }
    }

    #[test]
    fn failures_are_counted_by_their_code() {
        let (mut counting, now) = (Counting::default(), Instant::now());
        for (id, code) in [SERVFAIL, SERVFAIL, REFUSED, 0, 3].into_iter().enumerate() {
            let id = u16::try_from(id).unwrap();
            counting.add(head(FIRST, 4000, id, false), now);
            counting.add(DnsHead { code, ..head(FIRST, 4000, id, true) }, now);
        }
        let counts = counting.counts(now);
        let one = counts.servers[0];
        assert_eq!((one.asked, one.answered, one.failed, one.refused), (5, 5, 2, 1));
        // Forged answers, to queries that this host has not sent.
        for id in 100..200 {
            counting.add(DnsHead { code: REFUSED, ..head(FIRST, 4000, id, true) }, now);
        }
        let forged = counting.counts(now).servers[0];
        assert_eq!((forged.answered, forged.failed, forged.refused), (105, 2, 1));
        let mut bytes = Vec::new();
        counts.put(&mut bytes);
        assert_eq!(parse(&bytes), counts);
        // A recording without failures.
        bytes[0] = 0;
        assert_eq!(parse(&bytes[..SERVER]).servers, [DnsServerCount { failed: 0, refused: 0, ..one }]);
    }

    #[test]
    fn the_head_of_a_message_has_the_response_code() {
        let mut packet = vec![0x45; 20];
        packet.extend_from_slice(&[0, 53, 0x10, 0, 0, 20, 0, 0, 0, 7, 0x81, 0x82]);
        let head = parse_head(&packet).unwrap();
        assert_eq!((head.is_answer, head.id, head.code), (true, 7, SERVFAIL));
        assert_eq!(parse_head(&packet[..packet.len() - 1]), None);
    }

    #[test]
    fn the_first_of_two_servers_is_silent() {
        let (mut counting, begin) = (Counting::default(), Instant::now());
        counting.add(head(FIRST, 4000, 7, false), begin);
        counting.add(head(SECOND, 4001, 7, false), begin);
        counting.add(head(SECOND, 4001, 7, true), begin);
        counting.add(head(SECOND, 4001, 8, false), begin);
        let DnsCounts { servers, mismatches } = counting.counts(begin + Duration::from_millis(900));
        let numbers: Vec<_> =
            servers.iter().map(|one| (one.server, one.port, one.asked, one.answered, one.waiting)).collect();
        assert_eq!(numbers, [(FIRST, 4000, 1, 0, 1), (SECOND, 4001, 2, 1, 1)]);
        assert_eq!((servers[0].longest_ms, mismatches), (900, vec![]));
        assert_eq!(counting.counts(begin).servers[0].waiting, 0, "it may still answer");
    }

    #[test]
    fn an_answer_from_another_address() {
        let (mut counting, now) = (Counting::default(), Instant::now());
        counting.add(head(FIRST, 4000, 7, false), now);
        counting.add(head(SECOND, 4000, 7, true), now);
        // The answer to a query before the watch, and one that a bridge shows twice.
        counting.add(head(SECOND, 4002, 9, true), now);
        counting.add(head(FIRST, 4003, 7, false), now);
        counting.add(head(SECOND, 4003, 7, false), now);
        [1, 2].iter().for_each(|_| counting.add(head(SECOND, 4003, 7, true), now));
        let counts = counting.counts(now);
        let mismatch = DnsMismatchCount { asked: FIRST, answered: SECOND, client: CLIENT, count: 1 };
        assert_eq!(counts.mismatches, [mismatch]);
        let mut bytes = Vec::new();
        counts.put(&mut bytes);
        assert_eq!(parse(&bytes), counts);
        assert_eq!(parse(&bytes[..bytes.len() - 1]).servers, counts.servers);
        assert_eq!((parse(b"\x02"), parse(b"")), (DnsCounts::default(), DnsCounts::default()));
    }

    #[test]
    fn servers_that_are_left_out_are_known() {
        let (mut counting, now) = (Counting::default(), Instant::now());
        for number in 0..SERVERS_MAX {
            let [.., high, low] = number.to_be_bytes();
            counting.add(head(Addr::V4([198, 51, high, low]), 4000, 7, false), now);
        }
        assert!(!counting.is_over);
        counting.add(head(FIRST, 4000, 7, false), now);
        assert!(counting.is_over);
    }

    #[test]
    fn root_queries_and_answers_are_counted() {
        testkit::require_root!();
        let lab = Lab::new("dnswatch");
        lab.ip(&["link", "set", "lo", "up"]);
        let mut watch = lab.run_inside(DnsWatch::open).unwrap();
        let script = "import socket\n\
                      for family, host in ((2, '127.0.0.1'), (10, '::1')):\n    \
                      s = socket.socket(family, 2); s.bind((host, 53)); c = socket.socket(family, 2)\n    \
                      c.sendto(b'\\0\\7' + bytes(10), (host, 53)); d, a = s.recvfrom(99)\n    \
                      c.sendto(b'\\0\\7' + bytes(10), (host, 54))\n    s.sendto(d, a)\n";
        lab.output("python3", &["-c", script]);
        watch.read().unwrap();
        let counts = watch.counts();
        let numbers: Vec<_> =
            counts.servers.iter().map(|one| (one.server.to_string(), one.asked, one.answered)).collect();
        assert_eq!(numbers[0].0, "127.0.0.1");
        assert_eq!(numbers[1].0, "::1");
        assert!(numbers.iter().all(|(_, asked, answered)| *asked > 0 && *answered > 0), "{numbers:?}");
        assert_eq!(counts.mismatches, []);
    }
}
