//! A ring that replaces one whose interface was removed, if threads share the packets.
//!
//! The kernel refuses to bind a socket again that is in a group (PACKET_FANOUT), and a run that has dropped its
//! privileges cannot open another. So a spare socket without a ring is opened along with each ring at the start, at the
//! cost of a descriptor. Its ring is created when the interface is back; these rings share the packets by CPU, without
//! a group, and can be bound whenever the interface comes back.

use sys::SysError;
use sys::packet_ring::{Instruction, PacketRing, PacketSocket, RingKind, RingRequest, StampClock, of_some_cpus};

/// A spare socket.
#[derive(Debug)]
pub(super) struct Successor {
    place: Option<Readied>,
    kind: RingKind,
    ring_bytes: usize,
    program: Vec<Instruction>,
    ignore_outgoing: bool,
    clock: StampClock,
}

/// Its state.
#[derive(Debug)]
enum Readied {
    Socket(PacketSocket),
    /// A ring that could not be bound, because the interface was removed once more.
    Ring(PacketRing),
}

impl Successor {
    /// Opens the spare socket of ring number `which` of `of`, in the calling thread's network namespace. Needs
    /// CAP_NET_RAW.
    pub(super) fn open(request: &RingRequest<'_>, which: u32, of: u32) -> Result<Successor, SysError> {
        Ok(Successor {
            place: Some(Readied::Socket(PacketSocket::open()?)),
            kind: request.kind,
            ring_bytes: request.ring_bytes,
            program: of_some_cpus(request.program, which, of),
            ignore_outgoing: request.ignore_outgoing,
            clock: StampClock::Host,
        })
    }

    /// Requests time stamps of this clock, if the interface makes them.
    pub(super) fn stamp_by(&mut self, clock: StampClock) {
        self.clock = clock;
    }

    /// The ring, bound to this interface; `None` if it was handed out before. Needs no privilege.
    pub(super) fn ring(&mut self, ifindex: u32) -> Result<Option<PacketRing>, SysError> {
        let ring = match self.place.take() {
            None => return Ok(None),
            Some(Readied::Ring(ring)) => ring,
            Some(Readied::Socket(socket)) => {
                let ring = socket.into_ring(&RingRequest {
                    ifindex: 0,
                    kind: self.kind,
                    ring_bytes: self.ring_bytes,
                    program: &self.program,
                    promiscuous: false,
                    ignore_outgoing: self.ignore_outgoing,
                })?;
                // Without an interface the driver is not asked, which would need a privilege.
                let _ = ring.stamp_by(self.clock, None);
                ring
            }
        };
        if let Err(error) = ring.bind(ifindex) {
            self.place = Some(Readied::Ring(ring));
            return Err(error);
        }
        Ok(Some(ring))
    }
}
