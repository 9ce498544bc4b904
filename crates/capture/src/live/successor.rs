//! A ring that takes the place of one whose interface has gone, among those that share packets by threads.
//!
//! The kernel refuses to bind a socket again that is in a group (PACKET_FANOUT), and a run that has given up its rights
//! opens no other. So one is opened beside each at the start, without a ring: it costs a descriptor. Its ring is made
//! once the interface is there again; these share the packets by CPU, without a group, and can be bound as often as
//! interfaces come.

use sys::SysError;
use sys::packet_ring::{Instruction, PacketRing, PacketSocket, RingKind, RingRequest, StampClock, of_some_cpus};

/// A socket for later.
#[derive(Debug)]
pub(super) struct Successor {
    place: Option<Readied>,
    kind: RingKind,
    ring_bytes: usize,
    program: Vec<Instruction>,
    ignore_outgoing: bool,
    clock: StampClock,
}

/// How far it is.
#[derive(Debug)]
enum Readied {
    Socket(PacketSocket),
    /// It could not be bound: the interface had gone once more.
    Ring(PacketRing),
}

impl Successor {
    /// Opens the socket of the ring with number `which` of `of`, in the calling thread's network namespace. Needs
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

    /// Asks for stamps of this clock, should the interface make them.
    pub(super) fn stamp_by(&mut self, clock: StampClock) {
        self.clock = clock;
    }

    /// The ring, bound to this interface; `None` if it was handed out before. Needs no right.
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
                // Without an interface the driver is not asked, which would take a right.
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
