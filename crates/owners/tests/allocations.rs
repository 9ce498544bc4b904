//! Adding the owners to a row costs no allocation: counted, not timed.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]
use owners::{ReadOwners, Reading, SocketIndex, SocketOwners};
use record::rows::{Endpoint, LogRecord, LogRecords, PacketHeaders, Socket, Transport, ip_proto};
use record::{
    Accounting, Addr, Annotated, Comm, Demand, Each, Key, Lookup, Next, Offer, Owner, Proto, SourceError, Stream,
    StreamState, Value, annotated,
};

#[global_allocator]
static HEAP: testkit::allocator::CountingAllocator = testkit::allocator::CountingAllocator;

const HERE: Addr = Addr::V4([10, 0, 0, 1]);
const THERE: Addr = Addr::V4([10, 0, 0, 2]);

/// The same owner for every socket.
struct OneOwner(Owner);

impl Lookup for OneOwner {
    fn value(&self, _: Key) -> Value<'_> {
        Value::Null
    }

    fn owners(&self, _: Key) -> &[Owner] {
        std::slice::from_ref(&self.0)
    }
}

/// A reading of one UDP socket, which is taken after all records.
struct OneSocket;

impl ReadOwners for OneSocket {
    type Owners = OneOwner;

    fn read(&mut self) -> Option<Reading<OneOwner>> {
        let mut sockets = SocketIndex::new(false);
        sockets.add_address(0, HERE);
        let local = Endpoint { addr: HERE, port: 53 };
        sockets.add_socket(&Socket { proto: Proto::Udp, local, inode: 5, ..Socket::EMPTY });
        let owner = Owner { pid: 7, fd: 3, process: Comm::new(b"named"), started: 0 };
        Some(Reading { taken_ns: 10, is_last: false, sockets, owners: Some(OneOwner(owner)), seen_ns: 15 })
    }

    fn has_passed(&self, _: u64) -> bool {
        true
    }

    fn close(&mut self) -> Accounting {
        Accounting::default()
    }
}

/// A number of records of packets to the socket, in one batch.
struct Records(usize);

impl Stream<LogRecords> for Records {
    fn offer(&self, _: &Demand<LogRecords>) -> Offer {
        Offer::default()
    }

    fn next(&mut self, _: &Demand<LogRecords>, each: &mut Each<'_, LogRecords>) -> Result<StreamState, SourceError> {
        let transport = Transport::Ports { sport: 4000, dport: 53 };
        let packet = PacketHeaders { src: THERE, dst: HERE, proto: ip_proto::UDP, transport, ..Default::default() };
        let record = LogRecord { family: 2, hook: 1, packet: Some(packet), time_ns: 5, ..LogRecord::default() };
        let _ = (0..self.0).try_for_each(|_| std::ops::ControlFlow::from(each(&record)));
        Ok(StreamState::Ended)
    }

    fn close(&mut self) -> Accounting {
        Accounting::default()
    }
}

/// Reads the records to their end and returns the allocations.
fn allocations(stream: &mut dyn Stream<LogRecords>, count: usize) -> u64 {
    let demand = Demand::new(&[], Vec::new());
    let (before, mut owned) = (testkit::allocator::allocations(), 0);
    let state = stream.next(&demand, &mut |record| {
        owned += usize::from(record.owners.first().is_some_and(|owner| owner.pid == 7));
        Next::More
    });
    let after = testkit::allocator::allocations();
    assert_eq!((state.unwrap(), owned), (StreamState::Ended, count));
    after - before
}

#[test]
fn a_thousand_rows_allocate_as_much_as_one() {
    let one_annotator = |count| {
        let mut records = Records(count);
        allocations(&mut Annotated::new(&mut records, SocketOwners::new(OneSocket)), count)
    };
    let list_of_two = |count| {
        let mut records = Records(count);
        let list = [(), ()].map(|()| Box::new(SocketOwners::new(OneSocket)) as Box<dyn record::Annotate<_>>);
        allocations(&mut *annotated(&mut records, list), count)
    };
    assert_eq!(one_annotator(1), one_annotator(1000));
    assert_eq!(list_of_two(1), list_of_two(1000));
}
