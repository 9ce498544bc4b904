use super::*;
use crate::packet_sockets::tests::{add, packet, read};
use record::rows::LinkType;
use record::{Addr, Annotated, Demand, Offer, Proto, SourceError, SourceFault, Stream, StreamState};
use std::cell::RefCell;
use std::rc::Rc;

const HERE: Addr = Addr::V4([10, 0, 0, 1]);
const THERE: Addr = Addr::V4([10, 0, 0, 2]);

/// Replaces a packet: the stream fails here.
const BROKEN: u16 = 9999;

/// UDP packets from these ports at these times, in batches.
struct Packets(Vec<Vec<(u16, u64)>>, u64);

impl Stream<CapturedPackets> for Packets {
    fn offer(&self, _: &Demand<CapturedPackets>) -> Offer {
        Offer::default()
    }

    fn next(
        &mut self,
        _: &Demand<CapturedPackets>,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Result<StreamState, SourceError> {
        for (port, time_ns) in self.0.remove(0) {
            if port == BROKEN {
                return Err(SourceError { what: "packets", fault: SourceFault::Io, cause: "broken".into() });
            }
            self.1 += 1;
            let frame = port.to_be_bytes();
            let row = packet(None, (HERE, port), (THERE, 53), time_ns);
            let row = CapturedPacket { frame: &frame, iface: b"eth0", link_type: LinkType::RAW, len: 9, ..row };
            if each(&row) == Next::Stop {
                return Ok(StreamState::Open);
            }
        }
        Ok(if self.0.is_empty() { StreamState::Ended } else { StreamState::Open })
    }

    fn close(&mut self) -> Accounting {
        Accounting { seen: self.1, ..Accounting::default() }
    }
}

/// Decodes a frame as these tests do: it contains a port.
fn complete<'r>(row: CapturedPacket<'r>, _: u64, _: &'r mut Vec<u8>) -> CapturedPacket<'r> {
    let port = row.frame.first_chunk::<2>().map_or(0, |port| u16::from_be_bytes(*port));
    CapturedPacket { packet: packet(None, (HERE, port), (THERE, 53), 0).packet, ..row }
}

/// One reading per request, as long as there are any: its start, and a port with its owner.
#[derive(Default)]
struct News {
    readings: Vec<(u64, u16, u32)>,
    is_asked: bool,
    now_ns: u64,
    asked: u64,
}

type SharedNews = Rc<RefCell<News>>;

impl SocketNews for SharedNews {
    fn take(&mut self, into: &mut PacketSockets, _: bool) {
        let mut news = self.borrow_mut();
        if news.is_asked && !news.readings.is_empty() {
            let (taken_ns, port, pid) = news.readings.remove(0);
            read(into, taken_ns, |sockets| add(sockets, Proto::Udp, (HERE, port), None, pid));
            news.is_asked = false;
        }
    }

    fn ask(&mut self) {
        let mut news = self.borrow_mut();
        news.asked += u64::from(!news.is_asked);
        news.is_asked = true;
    }

    fn is_alive(&self) -> bool {
        true
    }

    fn now_ns(&self) -> u64 {
        let mut news = self.borrow_mut();
        news.now_ns += 1_000_000;
        news.now_ns
    }

    fn wait(&mut self) {
        self.borrow_mut().now_ns += 10_000_000;
    }

    fn close(&mut self) -> Accounting {
        Accounting::default()
    }
}

/// Reads all packets, at most `wanted`; returns the ports with the pid of the sender, in order, and the row counts.
fn run(batches: &[&[(u16, u64)]], readings: &[(u64, u16, u32)], wanted: usize) -> (Vec<(u16, u32)>, Accounting, News) {
    let news: SharedNews = Rc::new(RefCell::new(News { readings: readings.to_vec(), ..News::default() }));
    let mut packets = Packets(batches.iter().map(|batch| batch.to_vec()).collect(), 0);
    let mut sockets = PacketSockets::default();
    read(&mut sockets, 100, |sockets| add(sockets, Proto::Udp, (HERE, 1), None, 11));
    let mut owned = Annotated::new(&mut packets, PacketOwners::new(complete, Rc::clone(&news), sockets));
    let (mut rows, demand) = (Vec::new(), Demand::new(&[], Vec::new()));
    let mut state = StreamState::Open;
    while state == StreamState::Open && rows.len() < wanted {
        let next = owned.next(&demand, &mut |row| {
            assert_eq!((row.iface, row.len, row.link_type), (&b"eth0"[..], 9, LinkType::RAW));
            let pid = row.src_socket.map_or(0, |socket| socket.owners[0].pid);
            rows.push((row.ports().map_or(0, |(sport, _)| sport), pid));
            if rows.len() == wanted { Next::Stop } else { Next::More }
        });
        state = next.unwrap_or(StreamState::Ended);
    }
    let stats = owned.close();
    drop(owned);
    let news = Rc::into_inner(news).map(RefCell::into_inner).unwrap_or_default();
    (rows, stats, news)
}

#[test]
fn packets_wait_for_a_reading_in_their_order() {
    let (rows, stats, news) = run(&[&[(1, 200), (2, 210), (1, 220)], &[(1, 230)], &[]], &[(250, 2, 12)], 99);
    assert_eq!(rows, [(1, 11), (2, 12), (1, 11), (1, 11)], "{stats:?}");
    assert_eq!((stats.seen, stats.is_partial()), (4, false));
    assert!(stats.why.is_empty(), "{stats:?}");
    assert_eq!(news.asked, 1, "for all together");
}

#[test]
fn what_no_reading_knows_is_counted() {
    // The first reading is older than the packet.
    let (rows, stats, news) = run(&[&[(3, 200)], &[], &[]], &[(150, 2, 12), (250, 2, 12)], 99);
    assert_eq!((rows.as_slice(), news.asked), (&[(3, 0)][..], 2));
    assert!(stats.why[0].text.starts_with("1 of 1 packets to or from this host have no owner"), "{stats:?}");
    assert!(!stats.is_partial());
}

#[test]
fn nothing_waits_for_ever() {
    let (rows, stats, _) = run(&[&[(1, 200), (2, 210)], &[(1, 220)]], &[], 99);
    assert_eq!(rows, [(1, 11), (2, 0), (1, 11)]);
    assert!(
        stats.is_partial() && stats.why.iter().any(|why| why.text.ends_with("takes longer than 500 ms")),
        "{stats:?}"
    );
}

#[test]
fn memory_is_bounded() {
    let many: Vec<(u16, u64)> = (0..300_000).map(|nth| (2, 200 + nth)).collect();
    let (rows, stats, _) = run(&[&many], &[], 250_000);
    assert_eq!((rows.len(), stats.seen), (250_000, 250_000), "what nobody wanted was not seen");
}

#[test]
fn a_broken_stream_hands_out_what_waits() {
    let (rows, stats, _) = run(&[&[(1, 200), (2, 200), (BROKEN, 0)]], &[], 99);
    assert_eq!((rows, stats.seen), (vec![(1, 11), (2, 0)], 2));
}

#[test]
fn readings_are_renewed_while_packets_come() {
    let second = 1_000_000_000;
    let (_, _, news) = run(&[&[(1, 200)], &[(1, 2 * second)], &[(1, 2 * second)], &[]], &[(2 * second, 1, 11)], 99);
    assert_eq!(news.asked, 1);
}
