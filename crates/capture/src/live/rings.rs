//! The rings of a capture: opens them, and merges their packets.
use record::rows::FramePlace;
use record::{Next, SourceError, SourceFault};
use sys::packet_ring::{Frame, RingKind, RingRequest, StampClock, accepts_all_whole};
use sys::{SysError, clock};

use super::WHAT;
use super::place::{MissingPlaces, OpenPlace};
use super::ring::OpenRing;
use crate::pace::{Delivery, Pacing};

/// Larger snapshot lengths do not get larger slots, which would be mostly empty: the rest of a packet is read from the
/// socket.
const SLOT_SNAPLEN_MAX: u32 = 3968;
/// Size of a slot if packets may be longer than a slot.
const SLOT_BYTES: usize = 2048;
/// Offset of the packet in a slot, after the kernel's header.
const SLOT_HEADER: u32 = 128;
/// Maximum number of rows in a batch, after which they are written and `stop` is called.
const BATCH_MAX: u64 = 1024;
/// Interval between two reads of the 32-bit counters: at ten million packets per second they wrap after seven minutes.
const COUNT_NS: u64 = 10_000_000_000;
/// Maximum number of packets that are handed out together.
const ALIKE_MAX: u64 = 64;
/// Maximum number of interface names in an error.
const NAMES_MAX: usize = 20;

/// Whether packets are handed out one by one or together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    One,
    Alike,
}

/// The rings of all places.
pub(super) struct Rings {
    pub(super) all: Vec<OpenRing>,
    /// Number of instructions of the kernel's program; 0 if it accepts all packets whole.
    instructions: usize,
    /// The time of the latest reading of their counters.
    count_ns: u64,
    /// Number of packets in the latest batch.
    pub(super) handed: u64,
    /// Places of the packets that are handed out together; reused to save allocations.
    frame_places: Vec<FramePlace>,
}

impl Rings {
    /// Opens the rings of the interfaces with these names, or of all interfaces.
    pub(super) fn open(
        places: &[OpenPlace],
        ifaces: &[String],
        request: &RingRequest<'_>,
        missing: &mut MissingPlaces,
    ) -> Result<Rings, SourceError> {
        let mut all = Vec::new();
        for (at, place) in places.iter().enumerate() {
            let request = RingRequest { ring_bytes: place.place.ring_bytes, ..*request };
            let open = |name: &String| OpenRing::of_named(at, place, name, &request).transpose();
            let opened = match ifaces {
                [] => OpenRing::of_all(at, place, &request).map(|ring| vec![ring]),
                names => names.iter().filter_map(open).collect(),
            };
            match opened {
                Ok(opened) => all.extend(opened),
                Err(error) if missing.note(&place.place, &error.to_string()) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        let is_open = |name: &&String| places.iter().any(|place| place.links.named(name.as_bytes()).is_some());
        if let Some(missing) = ifaces.iter().find(|name| !is_open(name)) {
            let names: Vec<Box<str>> = places.iter().flat_map(|place| place.links.names()).take(NAMES_MAX).collect();
            let text = format!(
                "interface {} does not exist; available: {}",
                sys::escape_bytes(missing.as_bytes()),
                names.join(", ")
            );
            return Err(SourceError { what: WHAT, fault: SourceFault::Io, cause: text.into() });
        }
        let is_bare = !ifaces.is_empty() && accepts_all_whole(request.program);
        let instructions = if is_bare { 0 } else { request.program.len() };
        let frame_places = Vec::with_capacity(ALIKE_MAX as usize);
        Ok(Rings { all, instructions, count_ns: clock::monotonic_ns(), handed: 0, frame_places })
    }

    /// Requests time stamps of this clock, and reports what differs from the request.
    pub(super) fn say_caveats(&self, places: &[OpenPlace], clock: StampClock, say: &dyn Fn(&str)) {
        let is_small = |ring: &&OpenRing| places.get(ring.at).is_some_and(|at| ring.ring.bytes() < at.place.ring_bytes);
        if let Some(bytes) = self.all.iter().filter(is_small).map(|ring| ring.ring.bytes()).min() {
            say(&format!("the kernel has memory only for a ring of {} KiB", bytes >> 10));
        }
        self.all.iter().filter_map(OpenRing::caveat).for_each(|caveat| say(&caveat));
        if clock != StampClock::Host {
            self.all.iter().filter_map(|ring| ring.stamp_by(clock)).for_each(|caveat| say(&caveat));
        }
    }

    /// Describes the rings and the kernel's program.
    pub(super) fn explain(&self) -> Vec<String> {
        let rings = format!("packets via AF_PACKET: {} rings, {} KiB in total", self.all.len(), self.bytes() >> 10);
        let program = match self.instructions {
            0 => "no filter in the kernel: all packets are captured whole".to_owned(),
            instructions => format!("the kernel's filter has {instructions} instructions"),
        };
        vec![rings, program]
    }

    /// Size of all rings in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.all.iter().map(|ring| ring.ring.bytes()).sum()
    }

    /// Reads the kernel's counters before they wrap.
    pub(super) fn count_before_wrap(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.count_ns) > COUNT_NS {
            self.count_ns = now_ns;
            self.all.iter_mut().for_each(|ring| _ = ring.count());
        }
    }

    /// True if the latest batch was full: more packets may wait.
    pub(super) fn was_full(&self) -> bool {
        self.handed >= BATCH_MAX
    }

    /// Hands out a batch of the available packets, merged across rings in the order of their time stamps.
    #[inline]
    pub(super) fn hand_out(
        &mut self,
        places: &mut [OpenPlace],
        together: Together,
        mut hand: impl FnMut(&Frame<'_>, &[u8], &[FramePlace], &mut OpenPlace) -> Next,
    ) -> Next {
        let Rings { all, handed, frame_places, .. } = self;
        *handed = 0;
        let mut next = Next::More;
        while *handed < BATCH_MAX && next == Next::More {
            let (at, most) = match &mut all[..] {
                [_] => (Some(0), BATCH_MAX - *handed),
                rings => (oldest(rings), 1),
            };
            let Some(ring) = at.and_then(|at| all.get_mut(at)) else { break };
            let Some(place) = places.get_mut(ring.at) else { break };
            frame_places.clear();
            let note = |at: usize, frame: &Frame<'_>| frame_places.push(place_of(at, frame));
            let alike = match together {
                Together::Alike => ring.ring.take_similar(most.min(ALIKE_MAX), note),
                Together::One => None,
            };
            let taken = if let Some(alike) = alike {
                next = hand(&alike.first, alike.memory, frame_places, place);
                frame_places.len() as u64
            } else {
                ring.ring.take_many(most, |frame| {
                    next = hand(frame, frame.bytes, &[place_of(0, frame)], place);
                    next == Next::More
                })
            };
            *handed += taken;
            ring.handed += taken;
            if taken == 0 {
                break;
            }
        }
        next
    }
}

/// The place of a packet whose bytes start at `at`.
#[inline]
fn place_of(at: usize, frame: &Frame<'_>) -> FramePlace {
    FramePlace { at, captured: frame.bytes.len(), len: frame.len, time_ns: frame.time_ns }
}

/// Index of the ring whose next packet is the oldest; `None` if all rings are empty.
fn oldest(rings: &mut [OpenRing]) -> Option<usize> {
    let stamps = rings.iter_mut().enumerate().filter_map(|(at, ring)| Some((ring.ring.next_ns()?, at)));
    stamps.min().map(|(_, at)| at)
}

/// The type of the rings, and how to wait for packets in them.
pub(super) fn form(delivery: Delivery, snaplen: u32) -> (RingKind, Pacing) {
    let exact = (snaplen + SLOT_HEADER).next_power_of_two() as usize;
    match delivery {
        Delivery::InBlocks { retire_ms } => (RingKind::Blocks { retire_ms }, Pacing::new(None)),
        Delivery::AtOnce(pace) if snaplen <= SLOT_SNAPLEN_MAX => {
            (RingKind::Slots { slot_bytes: exact, whole: None }, pace)
        }
        Delivery::AtOnce(pace) => (RingKind::Slots { slot_bytes: SLOT_BYTES, whole: Some(snaplen) }, pace),
    }
}

fn refused(error: SysError) -> SourceError {
    if error.errno.is_denied() {
        let text = format!("{error} (needs CAP_NET_RAW; `netwren support` lists what works)");
        return SourceError { what: WHAT, fault: SourceFault::Denied, cause: text.into() };
    }
    SourceError { what: WHAT, fault: SourceFault::Io, cause: Box::new(error) }
}
