//! Simulated readings for tests.

use crate::readings::{ReadOwners, Reading};
use crate::socket_index::SocketIndex;
use record::rows::{Endpoint, Socket};
use record::{Accounting, Addr, Comm, Key, Lookup, Owner, Proto, Value};

pub(crate) const HERE: Addr = Addr::V4([10, 0, 0, 1]);
pub(crate) const THERE: Addr = Addr::V4([10, 0, 0, 2]);
/// The latest time of a reading.
pub(crate) const LATEST_NS: u64 = 1_000;

/// The owners of every socket: process 7, or none.
pub(crate) struct FakeOwners(Option<Owner>);

impl Lookup for FakeOwners {
    fn value(&self, _: Key) -> Value<'_> {
        Value::Null
    }

    fn owners(&self, _: Key) -> &[Owner] {
        self.0.as_slice()
    }
}

/// Readings of a socket on port 9; each begins 10 ns after the previous one, the first at 10.
pub(crate) struct FakeReadings {
    with_socket: u64,
    without_owner: u64,
    taken: u64,
}

impl FakeReadings {
    /// The first `with_socket` readings contain the socket; the first `without_owner` readings contain no owners.
    pub(crate) fn new(with_socket: u64, without_owner: u64) -> FakeReadings {
        FakeReadings { with_socket, without_owner, taken: 0 }
    }
}

impl ReadOwners for FakeReadings {
    type Owners = FakeOwners;

    fn read(&mut self) -> Option<Reading<FakeOwners>> {
        self.taken += 1;
        let mut sockets = SocketIndex::new(false);
        sockets.add_address(0, HERE);
        if self.taken <= self.with_socket {
            let [local, peer] = [(HERE, 9), (THERE, 80)].map(|(addr, port)| Endpoint { addr, port });
            sockets.add_socket(&Socket { proto: Proto::Tcp, local, peer, inode: 5, ..Socket::EMPTY });
        }
        let owner = Owner { pid: 7, fd: 3, process: Comm::new(b"x"), started: 0 };
        let owners = Some(FakeOwners(Some(owner).filter(|_| self.taken > self.without_owner)));
        let taken_ns = self.taken * 10;
        Some(Reading { taken_ns, is_last: false, sockets, owners, seen_ns: taken_ns + 5 })
    }

    fn has_passed(&self, time_ns: u64) -> bool {
        time_ns <= LATEST_NS
    }

    fn close(&mut self) -> Accounting {
        Accounting::default()
    }
}
