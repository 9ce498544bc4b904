//! The rows of `capture`.
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use record::rows::{
    CapturedFrame, CapturedPacket, CapturedPackets, FramePlace, Link, LinkType, PktType, SimilarFrames, StampSource,
};
use record::{Accounting, Demand, Each, Next, Offer, SourceError, SourceFault, Stream, StreamState};
use sys::packet_ring::{
    Frame, FrameStatus, Instruction, RingKind, RingRequest, StampClock, accept_all, accepts_all_whole, sleep_precisely,
};
use sys::{ShortShares, SysError, clock, wait_any};

use super::links::KnownLink;
use super::place::{CapturePlace, OpenPlace, ReadLinks};
use super::ring::OpenRing;
use crate::latency::LatencyCounts;
use crate::pace::{Delivery, Pacing, Wait};
use crate::report::CaptureReport;
use crate::row::{Passes, complete};

/// Names the stream in messages to the user.
const WHAT: &str = "packets";
const BACKEND: &str = "packet socket";

/// Default snapshot length: with the kernel's header it fills a slot of 2 KiB.
pub const SNAPLEN: u32 = 1918;
/// Maximum snapshot length, the same as in tcpdump.
pub const SNAPLEN_MAX: u32 = 262_144;
/// Larger snapshot lengths do not get larger slots, which would be mostly empty: the rest of a packet is read from the
/// socket.
const SLOT_SNAPLEN_MAX: u32 = 3968;
/// Size of a slot if packets may be longer than a slot.
const SLOT_BYTES: usize = 2048;
/// Offset of the packet in a slot, after the kernel's header.
const SLOT_HEADER: u32 = 128;
/// Maximum number of rows in a batch, after which they are written and `stop` is called.
const BATCH_MAX: u64 = 1024;
/// Maximum number of packets that are handed out together.
const ALIKE_MAX: u64 = 64;
/// Maximum wait without a packet: ten wake-ups per second.
const IDLE_MS: i32 = 100;
/// Interval between two calls of `stop` while packets arrive.
const TURN_NS: u64 = 20_000_000;
/// Interval between two reads of the 32-bit counters: at ten million packets per second they wrap after seven minutes.
const COUNT_NS: u64 = 10_000_000_000;
/// Minimum time between two reads of the interfaces because of an unknown one.
const RENEW_NS: u64 = 100_000_000;
/// The clock is read once per this number of packets in a batch, a power of two.
const STAMPED: u64 = 16;
/// The clock is read once per this number of packets in a block, which arrive a thousand at a time: latency is measured
/// only for these packets, because reading the clock costs as much as a packet.
const STAMPED_IN_BLOCKS: u64 = 64;
/// Maximum time at the end to receive packets that the kernel has counted.
///
/// Bound: at the end of a capture for packets that the kernel has counted. Beyond: later packets are not shown. By: a
/// broken kernel.
const END_NS: u64 = 500_000_000;

/// A further file that ends a wait for packets.
#[derive(Clone, Copy)]
pub struct WakeUp<'h> {
    /// The file; a wait ends when it becomes readable.
    pub file: BorrowedFd<'h>,
    /// Set when the file becomes readable; its reader clears it.
    pub is_ready: &'h Cell<bool>,
}

/// The interfaces, filter and pace of a [`PacketStream`].
pub struct FollowPackets<'h> {
    /// Names of interfaces; empty for all, including later ones.
    pub ifaces: Vec<String>,
    /// The namespaces.
    pub places: Vec<CapturePlace>,
    /// How packets are delivered.
    pub delivery: Delivery,
    /// Number of other namespaces left out for lack of memory, and of namespaces with smaller rings.
    pub shortage: ShortShares,
    /// Maximum number of captured bytes per packet.
    pub snaplen: u32,
    /// True to also capture packets for other hosts, on named interfaces.
    pub promiscuous: bool,
    /// The clock for time stamps, if the interface has it.
    pub clock: StampClock,
    /// Selects packets in the kernel, and how much of each is captured; `None` for all.
    pub program: Option<Vec<Instruction>>,
    /// Decides about the packets that the kernel's program lets through; `None` if they all pass.
    pub passes: Option<&'h Passes<'h>>,
    /// Reads the interfaces of a place with their counters.
    pub links: &'h dyn Fn(&CapturePlace) -> Result<Vec<Link>, String>,
    /// Reports changes of interfaces to the user.
    pub say: &'h dyn Fn(&str),
    /// Returns true to end the run.
    pub stop: &'h dyn Fn() -> bool,
    /// Returns how often a report was requested so far, by SIGUSR1 or by a timer.
    pub reports: &'h dyn Fn() -> u64,
    /// A further file that ends a wait.
    pub wake_up: Option<WakeUp<'h>>,
    /// Gets a requested report.
    pub on_report: &'h dyn Fn(&CaptureReport),
}

/// The stream of packets from now on.
pub struct PacketStream<'h> {
    places: Vec<OpenPlace>,
    /// See [`FollowPackets::shortage`].
    shortage: ShortShares,
    unopened: Unopened,
    rings: Vec<OpenRing>,
    pace: Pacing,
    passes: Option<&'h Passes<'h>>,
    /// Number of packets that did not pass.
    filtered: u64,
    /// Number of instructions of the kernel's program.
    instructions: usize,
    read_links: ReadLinks<'h>,
    say: &'h dyn Fn(&str),
    stop: &'h dyn Fn() -> bool,
    reports: &'h dyn Fn() -> u64,
    wake_up: Option<WakeUp<'h>>,
    on_report: &'h dyn Fn(&CaptureReport),
    reported: u64,
    /// Number of packets in the previous batch, and whether that batch was full.
    handed: u64,
    was_full: bool,
    turn_ns: u64,
    count_ns: u64,
    renew_ns: u64,
    latency: LatencyCounts,
    /// True if the latency of every packet is measured.
    measures_all: bool,
    /// Number of packets with time stamps of an adapter's clock.
    adapter_stamps: u64,
    snaplen: u32,
    /// Number of packets of which the kernel kept fewer bytes than that.
    truncated: u64,
    info: Vec<u8>,
    /// Places of the packets that are handed out together; reused to save allocations.
    frame_places: Vec<FramePlace>,
}

/// Packets of one interface that are handed out together.
struct Taken<'t> {
    first: Frame<'t>,
    memory: &'t [u8],
    places: &'t [FramePlace],
    netns_id: u64,
    link: Option<&'t KnownLink>,
}

/// Whether packets are handed out one by one or together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Together {
    One,
    Alike,
}

impl<'h> PacketStream<'h> {
    /// Opens the rings, which receive packets from now on. Needs CAP_NET_RAW.
    pub fn open(follow: FollowPackets<'h>) -> Result<PacketStream<'h>, SourceError> {
        let FollowPackets { ifaces, places, delivery, snaplen, promiscuous, .. } = follow;
        let (places, mut unopened) = open_places(places, follow.links)?;
        let program = follow.program.unwrap_or_else(|| accept_all(snaplen));
        let (kind, pace) = form(delivery, snaplen);
        let request =
            RingRequest { ifindex: 0, kind, ring_bytes: 0, program: &program, promiscuous, ignore_outgoing: false };
        let rings = open_rings(&places, &ifaces, &request, &mut unopened)?;
        let is_small = |ring: &&OpenRing| places.get(ring.at).is_some_and(|at| ring.ring.bytes() < at.place.ring_bytes);
        let small = rings.iter().filter(is_small).map(|ring| ring.ring.bytes()).min();
        if let Some(bytes) = small {
            (follow.say)(&format!("the kernel has memory only for a ring of {} KiB", bytes >> 10));
        }
        rings.iter().filter_map(OpenRing::caveat).for_each(|caveat| (follow.say)(&caveat));
        if follow.clock != StampClock::Host {
            let caveats = rings.iter().filter_map(|ring| ring.stamp_by(follow.clock));
            caveats.for_each(|caveat| (follow.say)(&caveat));
        }
        sleep_precisely();
        Ok(PacketStream {
            places,
            shortage: follow.shortage,
            unopened,
            rings,
            pace,
            passes: follow.passes,
            filtered: 0,
            instructions: if !ifaces.is_empty() && accepts_all_whole(&program) { 0 } else { program.len() },
            read_links: follow.links,
            say: follow.say,
            stop: follow.stop,
            reports: follow.reports,
            wake_up: follow.wake_up,
            on_report: follow.on_report,
            reported: (follow.reports)(),
            handed: 0,
            was_full: false,
            turn_ns: 0,
            count_ns: clock::monotonic_ns(),
            renew_ns: 0,
            latency: LatencyCounts::default(),
            measures_all: matches!(kind, RingKind::Slots { .. }),
            adapter_stamps: 0,
            snaplen,
            truncated: 0,
            info: Vec::with_capacity(256),
            frame_places: Vec::with_capacity(ALIKE_MAX as usize),
        })
    }

    /// The report so far.
    pub fn report(&mut self) -> CaptureReport {
        let mut report = CaptureReport {
            latency: self.latency.clone(),
            adapter_stamps: self.adapter_stamps,
            truncated: self.truncated,
            ..CaptureReport::default()
        };
        for ring in &mut self.rings {
            ring.count();
            report.received += ring.statistics.packets;
            report.dropped_by_ring += ring.statistics.drops;
            report.handed += ring.handed;
            report.ring_bytes += ring.ring.bytes() as u64;
        }
        for (at, place) in self.places.iter_mut().enumerate() {
            let _ = place.renew(self.read_links);
            let only: Vec<u32> = self.rings.iter().filter(|ring| ring.at == at).filter_map(OpenRing::ifindex).collect();
            report.dropped_by_ifaces.extend(place.links.drops(&only));
        }
        report
    }

    /// Does periodic work. True if the run must end.
    fn turn(&mut self, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.turn_ns) < TURN_NS {
            return false;
        }
        self.turn_ns = now_ns;
        if now_ns.saturating_sub(self.count_ns) > COUNT_NS {
            self.count_ns = now_ns;
            self.rings.iter_mut().for_each(|ring| _ = ring.count());
        }
        self.hear_of_links();
        let reports = (self.reports)();
        if reports != self.reported {
            self.reported = reports;
            let report = self.report();
            (self.on_report)(&report);
        }
        (self.stop)()
    }

    /// Reads the interfaces again if something has changed.
    fn hear_of_links(&mut self) {
        for (at, place) in self.places.iter_mut().enumerate() {
            let has_changed = place.events.as_mut().is_some_and(|events| events.receive_changes());
            if has_changed && place.renew(self.read_links).is_ok() {
                let of_place = self.rings.iter_mut().filter(|ring| ring.at == at);
                of_place.for_each(|ring| ring.look(place, self.say));
            }
        }
    }

    /// Waits for packets, or for a short time.
    fn wait(&mut self) -> Result<(), SysError> {
        if self.was_full {
            return Ok(());
        }
        let wait = self.pace.next(clock::monotonic_ns(), self.handed);
        if let Wait::Sleep(time) = wait {
            std::thread::sleep(time);
            return Ok(());
        }
        if self.rings.iter_mut().any(|ring| ring.ring.next_ns().is_some()) {
            return Ok(());
        }
        self.poll()
    }

    fn poll(&mut self) -> Result<(), SysError> {
        let events = self.places.iter().filter_map(|place| place.events.as_ref());
        let mut files: Vec<_> =
            self.rings.iter().map(|ring| ring.ring.as_fd()).chain(events.map(|events| events.as_fd())).collect();
        let wake_at = files.len();
        // Excluded while it is readable: otherwise each wait would end at once.
        files.extend(self.wake_up.filter(|wake_up| !wake_up.is_ready.get()).map(|wake_up| wake_up.file));
        let mut ready = Vec::new();
        wait_any(&files, IDLE_MS, &mut ready)?;
        for at in ready {
            if let Some(wake_up) = self.wake_up.filter(|_| at == wake_at) {
                wake_up.is_ready.set(true);
                continue;
            }
            let Some(ring) = self.rings.get_mut(at) else {
                // An interface changed.
                self.turn_ns = 0;
                continue;
            };
            ring.woken();
        }
        Ok(())
    }

    /// Hands out the available packets, merged across rings in the order of their time stamps.
    #[inline]
    fn hand_out(&mut self, together: Together, take: &mut impl FnMut(&Taken<'_>) -> Next) -> Next {
        let PacketStream { places, rings, read_links, renew_ns, latency, handed, frame_places, .. } = self;
        let (adapter_stamps, snaplen, truncated) = (&mut self.adapter_stamps, self.snaplen, &mut self.truncated);
        let (mut now_ns, mut nth, measures_all) = (0, 0_u64, self.measures_all);
        let stamped = if measures_all { STAMPED } else { STAMPED_IN_BLOCKS };
        let mut hand = |first: &Frame<'_>, memory: &[u8], frames: &[FramePlace], place: &mut OpenPlace| {
            let count = frames.len() as u64;
            // Index of the packet for which the clock is read, if it is among them.
            let due = nth.wrapping_neg() & (stamped - 1);
            let is_stamped = due < count;
            nth += count;
            if is_stamped {
                now_ns = clock::wall_ns();
            }
            let looked_at = frames.get(if is_stamped { due as usize } else { 0 });
            if first.status.has_any(FrameStatus::STAMPED_BY_ADAPTER) {
                // Its clock differs from the host's.
                *adapter_stamps += count;
            } else if let Some(frame) = looked_at.filter(|_| is_stamped || measures_all) {
                latency.add(now_ns.saturating_sub(frame.time_ns));
            }
            *truncated += cut(frames, snaplen);
            let mut link = place.links.find(first.ifindex);
            if link.is_none() {
                renew_unknown(place, *read_links, renew_ns);
                link = place.links.find(first.ifindex);
            }
            let link = link.and_then(|at| place.links.at(at));
            take(&Taken { first: *first, memory, places: frames, netns_id: place.place.netns_id, link })
        };
        *handed = 0;
        let mut next = Next::More;
        while *handed < BATCH_MAX && next == Next::More {
            let (at, most) = match &mut rings[..] {
                [_] => (Some(0), BATCH_MAX - *handed),
                rings => (oldest(rings), 1),
            };
            let Some(ring) = at.and_then(|at| rings.get_mut(at)) else { break };
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

    /// Stops receiving and hands out the available packets.
    fn finish(&mut self, together: Together, take: &mut impl FnMut(&Taken<'_>) -> Next) -> Result<(), SysError> {
        for ring in &self.rings {
            ring.ring.reject_all()?;
        }
        let begin_ns = clock::monotonic_ns();
        loop {
            if self.hand_out(together, take) == Next::Stop {
                return Ok(());
            }
            let is_all = self.rings.iter_mut().all(OpenRing::count);
            if is_all || clock::monotonic_ns().saturating_sub(begin_ns) > END_NS {
                return Ok(());
            }
            if self.handed == 0 {
                // Some packets are still being copied, or in a block that is not full.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn next_batch(
        &mut self,
        together: Together,
        take: &mut impl FnMut(&Taken<'_>) -> Next,
    ) -> Result<StreamState, SourceError> {
        let failed = |error| SourceError { what: WHAT, fault: SourceFault::Io, cause: Box::new(error) };
        // Before the wait, because the consumer has the rows by now; the next packet is then handed out at once.
        let mut is_over = self.turn(clock::monotonic_ns());
        if !is_over {
            self.wait().map_err(failed)?;
            is_over = self.turn_ns == 0 && self.turn(clock::monotonic_ns());
        }
        if is_over {
            self.finish(together, take).map_err(failed)?;
            return Ok(StreamState::Ended);
        }
        if self.hand_out(together, take) == Next::Stop {
            return Ok(StreamState::Open);
        }
        self.was_full = self.handed >= BATCH_MAX;
        if !self.was_full {
            self.rings.iter_mut().for_each(|ring| ring.ring.release());
        }
        Ok(StreamState::Open)
    }

    /// True if packets are filtered here by their headers; [`PacketStream::next_captured`] does not do that.
    pub fn is_judging(&self) -> bool {
        self.passes.is_some()
    }

    /// Like `next`, but hands out packets as they are in the ring, similar ones together: a few ns each, while a row
    /// costs a few dozen.
    pub fn next_captured(
        &mut self,
        each: &mut impl FnMut(&SimilarFrames<'_>) -> Next,
    ) -> Result<StreamState, SourceError> {
        self.next_batch(Together::Alike, &mut |taken| {
            let Taken { first: frame, memory, places, netns_id, link } = *taken;
            let first = CapturedFrame {
                time_ns: frame.time_ns,
                unusual_time: None,
                netns_id,
                ifindex: frame.ifindex,
                iface_version: link.map(|link| link.version),
                len: frame.len,
                link_type: LinkType::of_hardware(frame.hardware),
                packet_type: PktType::from_number(frame.packet_type.0),
                iface: link.map_or(b"", |link| &link.name),
                frame: frame.bytes,
            };
            each(&SimilarFrames { first, memory, places })
        })
    }
}

/// Number of packets with fewer bytes than requested.
#[inline]
fn cut(frames: &[FramePlace], snaplen: u32) -> u64 {
    frames.iter().filter(|frame| frame.captured < frame.len.min(snaplen) as usize).count() as u64
}

/// The place of a packet whose bytes start at `at`.
#[inline]
fn place_of(at: usize, frame: &Frame<'_>) -> FramePlace {
    FramePlace { at, captured: frame.bytes.len(), len: frame.len, time_ns: frame.time_ns }
}

/// The type of the rings, and how to wait for packets in them.
fn form(delivery: Delivery, snaplen: u32) -> (RingKind, Pacing) {
    let exact = (snaplen + SLOT_HEADER).next_power_of_two() as usize;
    match delivery {
        Delivery::InBlocks { retire_ms } => (RingKind::Blocks { retire_ms }, Pacing::new(None)),
        Delivery::AtOnce(pace) if snaplen <= SLOT_SNAPLEN_MAX => {
            (RingKind::Slots { slot_bytes: exact, whole: None }, pace)
        }
        Delivery::AtOnce(pace) => (RingKind::Slots { slot_bytes: SLOT_BYTES, whole: Some(snaplen) }, pace),
    }
}

/// Index of the ring whose next packet is the oldest; `None` if all rings are empty.
fn oldest(rings: &mut [OpenRing]) -> Option<usize> {
    let stamps = rings.iter_mut().enumerate().filter_map(|(at, ring)| Some((ring.ring.next_ns()?, at)));
    stamps.min().map(|(_, at)| at)
}

/// Reads the interfaces of a place again after a packet of an unknown one, which must be new.
#[cold]
fn renew_unknown(place: &mut OpenPlace, read: ReadLinks<'_>, last_ns: &mut u64) {
    let now_ns = clock::monotonic_ns();
    if now_ns.saturating_sub(*last_ns) > RENEW_NS {
        *last_ns = now_ns;
        let _ = place.renew(read);
    }
}

/// The row of a packet.
#[inline]
fn row<'r>(frame: &Frame<'r>, netns_id: u64, link: Option<&'r KnownLink>) -> CapturedPacket<'r> {
    CapturedPacket {
        time_ns: frame.time_ns,
        netns_id,
        ifindex: frame.ifindex,
        iface: link.map_or(b"", |link| &link.name),
        link_type: LinkType::of_hardware(frame.hardware),
        packet_type: PktType::from_number(frame.packet_type.0),
        checksum_not_ready: frame.status.has_any(FrameStatus::CHECKSUM_NOT_READY),
        is_super_packet: frame.status.has_any(FrameStatus::GSO_TCP),
        stamp: match frame.status.has_any(FrameStatus::STAMPED_BY_ADAPTER) {
            true => Some(StampSource::Adapter),
            false => Some(StampSource::Host),
        },
        len: frame.len,
        frame: frame.bytes,
        ..CapturedPacket::default()
    }
}

/// Number of other namespaces with an error, and the first reason. They are captured in part or not at all.
#[derive(Default)]
struct Unopened {
    count: u64,
    why: Option<String>,
}

impl Unopened {
    /// Counts a namespace. Returns false for the caller's own namespace, where every error ends the run.
    fn note(&mut self, place: &CapturePlace, why: &str) -> bool {
        self.count += 1;
        self.why.get_or_insert_with(|| format!("network namespace {}: {why}", place.netns_id));
        place.netns.is_some()
    }
}

fn open_places(places: Vec<CapturePlace>, links: ReadLinks<'_>) -> Result<(Vec<OpenPlace>, Unopened), SourceError> {
    let (mut open, mut unopened) = (Vec::new(), Unopened::default());
    for place in places {
        match OpenPlace::open(place, links) {
            Ok(place) => open.push(place),
            Err((place, why)) if unopened.note(&place, &why) => {}
            Err((_, why)) => return Err(SourceError { what: WHAT, fault: SourceFault::Io, cause: why.into() }),
        }
    }
    Ok((open, unopened))
}

fn open_rings(
    places: &[OpenPlace],
    ifaces: &[String],
    request: &RingRequest<'_>,
    unopened: &mut Unopened,
) -> Result<Vec<OpenRing>, SourceError> {
    let mut rings = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let request = RingRequest { ring_bytes: place.place.ring_bytes, ..*request };
        let open = |name: &String| OpenRing::of_named(at, place, name, &request).transpose();
        let opened = match ifaces {
            [] => OpenRing::of_all(at, place, &request).map(|ring| vec![ring]),
            names => names.iter().filter_map(open).collect(),
        };
        match opened {
            Ok(opened) => rings.extend(opened),
            Err(error) if unopened.note(&place.place, &error.to_string()) => {}
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
    Ok(rings)
}

/// Maximum number of interface names in an error.
const NAMES_MAX: usize = 20;

fn refused(error: SysError) -> SourceError {
    if error.errno.is_denied() {
        let text = format!("{error} (needs CAP_NET_RAW; `netwren support` lists what works)");
        return SourceError { what: WHAT, fault: SourceFault::Denied, cause: text.into() };
    }
    SourceError { what: WHAT, fault: SourceFault::Io, cause: Box::new(error) }
}

impl Stream<CapturedPackets> for PacketStream<'_> {
    fn offer(&self, _: &Demand<CapturedPackets>) -> Offer {
        let bytes: usize = self.rings.iter().map(|ring| ring.ring.bytes()).sum();
        let line = format!("packets via AF_PACKET: {} rings, {} KiB in total", self.rings.len(), bytes >> 10);
        let program = match self.instructions {
            0 => "no filter in the kernel: all packets are captured whole".to_owned(),
            instructions => format!("the kernel's filter has {instructions} instructions"),
        };
        Offer { backend: BACKEND, explain: vec![line, program], ..Offer::default() }
    }

    fn next(
        &mut self,
        demand: &Demand<CapturedPackets>,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Result<StreamState, SourceError> {
        let (passes, mut filtered, mut info) = (self.passes, 0, std::mem::take(&mut self.info));
        let state = self.next_batch(Together::One, &mut |taken| {
            let row = row(&taken.first, taken.netns_id, taken.link);
            if passes.is_some_and(|passes| !passes(&row)) {
                filtered += 1;
                return Next::More;
            }
            each(&complete(row, demand.need, &mut info))
        });
        self.filtered += filtered;
        self.info = info;
        state
    }

    fn close(&mut self) -> Accounting {
        let report = self.report();
        let seen = self.rings.iter().map(|ring| ring.handed).sum();
        let mut stats =
            Accounting { seen, filtered: self.filtered, lost: report.dropped_by_ring, ..Accounting::default() };
        stats.add_backend(BACKEND);
        if report.dropped_by_ring > 0 {
            let kib = report.ring_bytes >> 10;
            let text = format!("packets lost: the ring of {kib} KiB was full (raise with --buffer)");
            stats.add_reason(report.dropped_by_ring, text);
        }
        let ShortShares { left_out, reduced } = self.shortage;
        let unopened = format!("were not captured ({})", self.unopened.why.as_deref().unwrap_or_default());
        for (count, is_missing, what) in [
            (
                left_out,
                true,
                "were left out for lack of memory or file descriptors (raise with --buffer-total, ulimit -n)",
            ),
            (self.unopened.count, true, &unopened),
            (reduced, false, "had smaller rings: they share --buffer-total"),
        ] {
            if count > 0 {
                stats.incomplete |= is_missing;
                stats.add_reason(count, format!("network namespaces {what}"));
            }
        }
        if report.truncated > 0 {
            stats.incomplete(report.truncated, "long packets were truncated: not enough room (raise with --buffer)");
        }
        stats
    }
}
