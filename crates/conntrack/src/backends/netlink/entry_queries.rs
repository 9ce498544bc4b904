//! Requests single entries, many at once: one datagram carries many requests, and all answers are in the receive buffer
//! when the kernel has accepted it.
use netlink::datagrams::{DatagramFrame, FRAME};
use netlink::{Messages, Request, prefix};
use record::Addr;
use record::rows::CtTuple;
use sys::{Errno, NetlinkSocket, SysError, clock};

use crate::kernel_filter::put_tuple;
use crate::uapi::{AF_INET, AF_INET6, NETLINK_NETFILTER, NFNL_SUBSYS_CTNETLINK, cta, msg};

/// Requests per datagram. The kernel answers each in a buffer of some 4 KiB: all of them fit into [`BUFFER_BYTES`].
const QUERIES_AT_ONCE: usize = 128;
/// Size of the receive buffer; the kernel doubles it.
const BUFFER_BYTES: i32 = 1 << 20;
/// Maximum size of an answer: the kernel builds answers within a page (NLMSG_GOODSIZE).
const ANSWER_BYTES_MAX: usize = 16 << 10;
/// NLMSG_ERROR: the first four bytes are an errno.
const NLMSG_ERROR: u16 = 2;

/// Outcome of a number of requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryCounts {
    /// Entries found.
    pub found: u64,
    /// Tuples without an entry in zone 0.
    pub missing: u64,
    /// Requests without an answer, because the receive buffer was full.
    pub unanswered: u64,
    /// Requests that the kernel refused, and the first error.
    pub refused: Option<(u64, Errno)>,
}

/// Requests entries of one namespace by their tuples.
#[derive(Debug)]
pub struct EntryQueries {
    socket: NetlinkSocket,
    netns_id: u64,
    /// Buffer for the current request.
    request: Request,
    /// Buffer for the current datagram.
    datagram: Vec<u8>,
    place: Vec<u8>,
    /// Number of the newest datagram; answers to older ones are dropped.
    seq: u32,
}

impl EntryQueries {
    /// Opens a socket in the calling thread's namespace `netns_id` and requests an impossible entry: an error is the
    /// kernel's reason why no entry can be requested. Needs CAP_NET_ADMIN; the kernel loads nf_conntrack_netlink.
    pub fn open(netns_id: u64) -> Result<EntryQueries, SysError> {
        let socket = NetlinkSocket::open(NETLINK_NETFILTER)?;
        socket.make_room(BUFFER_BYTES);
        let request = Request::for_one(0);
        let (datagram, place) = (Vec::new(), vec![0; ANSWER_BYTES_MAX]);
        let mut queries = EntryQueries { socket, netns_id, request, datagram, place, seq: 0 };
        match queries.query(&[CtTuple::EMPTY], &mut Vec::new())?.refused {
            Some((_, errno)) => Err(SysError::new("ask", "a connection-tracking entry", errno)),
            None => Ok(queries),
        }
    }

    /// Inode of the namespace.
    pub fn netns_id(&self) -> u64 {
        self.netns_id
    }

    /// Requests the entries of zone 0 that have one of `tuples` in either direction, and appends the kernel's answers
    /// to `into`, each as a [`DatagramFrame`]. Never waits: two system calls per `QUERIES_AT_ONCE` requests and one per
    /// answer, in total some 4 µs per request.
    pub fn query(&mut self, tuples: &[CtTuple], into: &mut Vec<u8>) -> Result<QueryCounts, SysError> {
        let mut counts = QueryCounts::default();
        for tuples in tuples.chunks(QUERIES_AT_ONCE) {
            self.seq = self.seq.wrapping_add(1);
            self.datagram.clear();
            for tuple in tuples {
                self.add(tuple)?;
            }
            self.socket.send(&self.datagram)?;
            let answered = self.receive(tuples.len(), into, &mut counts)?;
            counts.unanswered += (tuples.len() - answered) as u64;
        }
        Ok(counts)
    }

    fn add(&mut self, tuple: &CtTuple) -> Result<(), SysError> {
        let family = if matches!(tuple.src, Addr::V4(_)) { AF_INET } else { AF_INET6 };
        let request = self.request.begin_unacknowledged(NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_GET, self.seq);
        request.append(&[family, 0, 0, 0]);
        put_tuple(request, cta::TUPLE_ORIG, tuple);
        let bytes = request.bytes().map_err(|_| SysError::new("sendto", "a tuple", Errno::MSGSIZE))?;
        self.datagram.extend_from_slice(bytes);
        Ok(())
    }

    /// Receives up to `asked` answers and returns their number. The kernel has queued all answers by the time the send
    /// returns.
    fn receive(&mut self, asked: usize, into: &mut Vec<u8>, counts: &mut QueryCounts) -> Result<usize, SysError> {
        let mut answered = 0;
        while answered < asked {
            let received = match self.socket.try_recv(&mut self.place) {
                Ok(Some(received)) => received.bytes,
                // There was no room for the remaining answers.
                Ok(None) => break,
                Err(error) if error.errno == Errno::NOBUFS => break,
                Err(error) => return Err(error),
            };
            let datagram = self.place.get(..received).unwrap_or_default();
            if count(datagram, self.seq, &mut answered, counts) {
                let mut head = [0; FRAME];
                DatagramFrame::put(&mut head, self.netns_id, clock::wall_ns(), None, datagram.len());
                into.extend_from_slice(&head);
                into.extend_from_slice(datagram);
            }
        }
        Ok(answered)
    }
}

/// Counts the answers with number `seq` in a datagram; true if one of them is an entry.
fn count(datagram: &[u8], seq: u32, answered: &mut usize, counts: &mut QueryCounts) -> bool {
    let mut has_entry = false;
    for message in Messages::new(datagram).map_while(Result::ok).filter(|message| message.seq == seq) {
        *answered += 1;
        if message.kind != NLMSG_ERROR {
            (has_entry, counts.found) = (true, counts.found + 1);
            continue;
        }
        match Errno(prefix::i32_at(message.payload, 0).unwrap_or(0).saturating_neg()) {
            Errno::NOENT => counts.missing += 1,
            errno => counts.refused.get_or_insert((0, errno)).0 += 1,
        }
    }
    has_entry
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::backends::netlink::ctnetlink::CtDecoder;
    use record::rows::ip_proto;
    use testkit::conntrack::Entry;
    use testkit::netns::Lab;

    const ENTRIES: u16 = 500;

    fn tuple(sport: u16) -> CtTuple {
        CtTuple {
            src: Addr::V4([192, 0, 2, 1]),
            dst: Addr::V4([192, 0, 2, 2]),
            proto: ip_proto::UDP,
            src_part: sport,
            dst_part: 53,
            zone: None,
        }
    }

    /// Original tuples of the entries in `frames`.
    fn entries(frames: &[u8]) -> Vec<CtTuple> {
        let block = [&[0; netlink::datagrams::BATCH_HEADER], frames].concat();
        let mut found = Vec::new();
        for frame in netlink::datagrams::DatagramFrames::new(&block).map(Result::unwrap) {
            let message = Messages::new(frame.bytes).next().unwrap().unwrap();
            found.push(CtDecoder::new(frame.netns_id).decode(message.payload).unwrap().orig);
        }
        found
    }

    /// Every request gets its answer, in either direction, for this zone only; missing entries are counted.
    #[test]
    fn root_many_are_asked_for_at_once() {
        testkit::require_root!();
        let lab = Lab::new("ctqueries");
        let (a, b) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let zoned = Entry::udp((a, ENTRIES + 7), (b, 53)).zone(7);
        lab.track((1..=ENTRIES).map(|port| Entry::udp((a, port), (b, 53))).chain([zoned]));
        let asked: Vec<CtTuple> = (1..=ENTRIES + 50)
            .map(|port| if port % 2 == 0 { tuple(port) } else { tuple(port).reply_tuple().unwrap() })
            .collect();
        let mut frames = Vec::new();
        let counts = lab.run_inside(|| EntryQueries::open(9).unwrap().query(&asked, &mut frames).unwrap());
        let expected = QueryCounts { found: ENTRIES.into(), missing: 50, ..QueryCounts::default() };
        assert_eq!(counts, expected);
        let found = entries(&frames);
        assert!(found.iter().zip(1..=ENTRIES).all(|(found, port)| *found == tuple(port)), "in their order");
        assert_eq!(found.len(), usize::from(ENTRIES));
    }

    /// Without CAP_NET_ADMIN the kernel answers one of many requests, with its reason.
    #[test]
    fn root_without_the_right_nothing_is_asked() {
        testkit::require_root!();
        let lab = Lab::new("ctqueriesno");
        let refused = lab.run_inside(|| {
            testkit::sandbox::drop_caps(&[sys::caps::Cap::NetAdmin]).unwrap();
            EntryQueries::open(9).unwrap_err()
        });
        assert_eq!(refused.errno, Errno::PERM);
    }
}
