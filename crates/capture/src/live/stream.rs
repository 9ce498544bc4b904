//! The rows of `capture`.
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use record::rows::{CapturedFrame, CapturedPacket, CapturedPackets, LinkType, PktType, SimilarFrames, StampSource};
use record::{Accounting, Demand, Each, Next, Offer, SourceError, SourceFault, Stream, StreamState};
use sys::packet_ring::{FrameStatus, Instruction, RingRequest, StampClock, accept_all, sleep_precisely};
use sys::{ShortShares, SysError, clock, wait_any};

use super::WHAT;
use super::counts::{BatchClock, PacketCounts};
use super::place::{CapturePlace, LinkReader, MissingPlaces, OpenPlace, ReadLinks, open_places};
use super::ring::OpenRing;
use super::rings::{Rings, Together, form};
use crate::pace::{Delivery, Pacing, Wait};
use crate::report::CaptureReport;
use crate::row::{Passes, complete};

const BACKEND: &str = "packet socket";

/// Default snapshot length: with the kernel's header it fills a slot of 2 KiB.
pub const SNAPLEN: u32 = 1918;
/// Maximum snapshot length, the same as in tcpdump.
pub const SNAPLEN_MAX: u32 = 262_144;
/// Maximum wait without a packet: ten wake-ups per second.
const IDLE_MS: i32 = 100;
/// Interval between two calls of `stop` while packets arrive.
const TURN_NS: u64 = 20_000_000;
/// Maximum time at the end to receive packets that the kernel has counted.
///
/// Bound: at the end of a capture for packets that the kernel has counted. Beyond: later packets are not shown. By: a
/// broken kernel.
const END_NS: u64 = 500_000_000;

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
    pub links: ReadLinks<'h>,
    /// Reports to the run, and requests from it.
    pub control: CaptureControl<'h>,
}

/// How a capture and the run around it talk to each other.
#[derive(Clone, Copy)]
pub struct CaptureControl<'h> {
    /// Reports changes of interfaces to the user.
    pub say: &'h dyn Fn(&str),
    /// Returns true to end the run.
    pub stop: &'h dyn Fn() -> bool,
    /// Returns how often a report was requested so far, by SIGUSR1 or by a timer.
    pub reports: &'h dyn Fn() -> u64,
    /// Gets a requested report.
    pub on_report: &'h dyn Fn(&CaptureReport),
    /// A further file that ends a wait.
    pub wake_up: Option<WakeUp<'h>>,
}

/// A further file that ends a wait for packets.
#[derive(Clone, Copy)]
pub struct WakeUp<'h> {
    /// The file; a wait ends when it becomes readable.
    pub file: BorrowedFd<'h>,
    /// Set when the file becomes readable; its reader clears it.
    pub is_ready: &'h Cell<bool>,
}

/// The stream of packets from now on.
pub struct PacketStream<'h> {
    places: Vec<OpenPlace>,
    missing: MissingPlaces,
    links: LinkReader<'h>,
    rings: Rings,
    pace: Pacing,
    /// The time of the latest turn.
    turn_ns: u64,
    control: CaptureControl<'h>,
    /// Number of requested reports so far.
    reported: u64,
    passes: Option<&'h Passes<'h>>,
    /// Number of packets that did not pass.
    filtered: u64,
    counts: PacketCounts,
    info: Vec<u8>,
}

impl<'h> PacketStream<'h> {
    /// Opens the rings, which receive packets from now on. Needs CAP_NET_RAW.
    pub fn open(follow: FollowPackets<'h>) -> Result<PacketStream<'h>, SourceError> {
        let FollowPackets { ifaces, delivery, snaplen, promiscuous, links, control, .. } = follow;
        let (places, mut missing) = open_places(follow.places, links, follow.shortage)?;
        let program = follow.program.unwrap_or_else(|| accept_all(snaplen));
        let (kind, pace) = form(delivery, snaplen);
        let request =
            RingRequest { ifindex: 0, kind, ring_bytes: 0, program: &program, promiscuous, ignore_outgoing: false };
        let rings = Rings::open(&places, &ifaces, &request, &mut missing)?;
        rings.say_caveats(&places, follow.clock, control.say);
        sleep_precisely();
        Ok(PacketStream {
            places,
            missing,
            links: LinkReader { read: links, renewed_ns: 0 },
            rings,
            pace,
            turn_ns: 0,
            control,
            reported: (control.reports)(),
            passes: follow.passes,
            filtered: 0,
            counts: PacketCounts::new(kind, snaplen),
            info: Vec::with_capacity(256),
        })
    }

    /// The report so far.
    pub fn report(&mut self) -> CaptureReport {
        let mut report = CaptureReport { ring_bytes: self.rings.bytes() as u64, ..self.counts.report.clone() };
        for ring in &mut self.rings.all {
            ring.count();
            report.received += ring.statistics.packets;
            report.dropped_by_ring += ring.statistics.drops;
            report.handed += ring.handed;
        }
        for (at, place) in self.places.iter_mut().enumerate() {
            let _ = place.renew(self.links.read);
            let of_place = self.rings.all.iter().filter(|ring| ring.at == at);
            let only: Vec<u32> = of_place.filter_map(OpenRing::ifindex).collect();
            report.dropped_by_ifaces.extend(place.links.drops(&only));
        }
        report
    }

    /// Does periodic work if it is due, or at once. True if the run must end.
    fn turn(&mut self, at_once: bool) -> bool {
        let now_ns = clock::monotonic_ns();
        if !at_once && now_ns.saturating_sub(self.turn_ns) < TURN_NS {
            return false;
        }
        self.turn_ns = now_ns;
        self.rings.count_before_wrap(now_ns);
        self.hear_of_links();
        let reports = (self.control.reports)();
        if reports != self.reported {
            self.reported = reports;
            let report = self.report();
            (self.control.on_report)(&report);
        }
        (self.control.stop)()
    }

    /// Reads the interfaces again if something has changed.
    fn hear_of_links(&mut self) {
        for (at, place) in self.places.iter_mut().enumerate() {
            let has_changed = place.events.as_mut().is_some_and(|events| events.receive_changes());
            if has_changed && place.renew(self.links.read).is_ok() {
                let of_place = self.rings.all.iter_mut().filter(|ring| ring.at == at);
                of_place.for_each(|ring| ring.look(place, self.control.say));
            }
        }
    }

    /// Waits for packets, or for a short time. True if an interface changed.
    fn wait(&mut self) -> Result<bool, SysError> {
        if self.rings.was_full() {
            return Ok(false);
        }
        if let Wait::Sleep(time) = self.pace.next(clock::monotonic_ns(), self.rings.handed) {
            std::thread::sleep(time);
            return Ok(false);
        }
        if self.rings.all.iter_mut().any(|ring| ring.ring.next_ns().is_some()) {
            return Ok(false);
        }
        self.poll()
    }

    fn poll(&mut self) -> Result<bool, SysError> {
        let events = self.places.iter().filter_map(|place| place.events.as_ref());
        let mut files: Vec<_> =
            self.rings.all.iter().map(|ring| ring.ring.as_fd()).chain(events.map(|events| events.as_fd())).collect();
        let wake_at = files.len();
        // Excluded while it is readable: otherwise each wait would end at once.
        let wake_up = self.control.wake_up.filter(|wake_up| !wake_up.is_ready.get());
        files.extend(wake_up.map(|wake_up| wake_up.file));
        let (mut ready, mut has_link_changed) = (Vec::new(), false);
        wait_any(&files, IDLE_MS, &mut ready)?;
        for at in ready {
            match (self.rings.all.get_mut(at), wake_up.filter(|_| at == wake_at)) {
                (Some(ring), _) => ring.woken(),
                (None, Some(wake_up)) => wake_up.is_ready.set(true),
                (None, None) => has_link_changed = true,
            }
        }
        Ok(has_link_changed)
    }

    /// Hands out a batch of the available packets.
    #[inline]
    fn hand_out(&mut self, together: Together, take: &mut impl FnMut(&SimilarFrames<'_>, FrameStatus) -> Next) -> Next {
        let PacketStream { places, rings, links, counts, .. } = self;
        let mut clock = BatchClock::default();
        rings.hand_out(places, together, |first, memory, frames, place| {
            counts.add(first, frames, &mut clock);
            let netns_id = place.place.netns_id;
            let link = place.link(first.ifindex, links);
            let captured = CapturedFrame {
                time_ns: first.time_ns,
                unusual_time: None,
                netns_id,
                ifindex: first.ifindex,
                iface_version: link.map(|link| link.version),
                len: first.len,
                link_type: LinkType::of_hardware(first.hardware),
                packet_type: PktType::from_number(first.packet_type.0),
                iface: link.map_or(b"", |link| &link.name),
                frame: first.bytes,
            };
            take(&SimilarFrames { first: captured, memory, places: frames }, first.status)
        })
    }

    /// Stops receiving and hands out the available packets.
    fn finish(
        &mut self,
        together: Together,
        take: &mut impl FnMut(&SimilarFrames<'_>, FrameStatus) -> Next,
    ) -> Result<(), SysError> {
        for ring in &self.rings.all {
            ring.ring.reject_all()?;
        }
        let begin_ns = clock::monotonic_ns();
        loop {
            if self.hand_out(together, take) == Next::Stop {
                return Ok(());
            }
            let is_all = self.rings.all.iter_mut().all(OpenRing::count);
            if is_all || clock::monotonic_ns().saturating_sub(begin_ns) > END_NS {
                return Ok(());
            }
            if self.rings.handed == 0 {
                // Some packets are still being copied, or in a block that is not full.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn next_batch(
        &mut self,
        together: Together,
        take: &mut impl FnMut(&SimilarFrames<'_>, FrameStatus) -> Next,
    ) -> Result<StreamState, SourceError> {
        let failed = |error| SourceError { what: WHAT, fault: SourceFault::Io, cause: Box::new(error) };
        // Before the wait, because the consumer has the rows by now; the next packet is then handed out at once.
        let is_over = self.turn(false) || (self.wait().map_err(failed)? && self.turn(true));
        if is_over {
            self.finish(together, take).map_err(failed)?;
            return Ok(StreamState::Ended);
        }
        if self.hand_out(together, take) == Next::More && !self.rings.was_full() {
            self.rings.all.iter_mut().for_each(|ring| ring.ring.release());
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
        self.next_batch(Together::Alike, &mut |frames, _| each(frames))
    }
}

/// The row of a packet.
#[inline]
fn row<'r>(frame: &CapturedFrame<'r>, status: FrameStatus) -> CapturedPacket<'r> {
    let is_by_adapter = status.has_any(FrameStatus::STAMPED_BY_ADAPTER);
    CapturedPacket {
        time_ns: frame.time_ns,
        netns_id: frame.netns_id,
        ifindex: frame.ifindex,
        iface: frame.iface,
        link_type: frame.link_type,
        packet_type: frame.packet_type,
        checksum_not_ready: status.has_any(FrameStatus::CHECKSUM_NOT_READY),
        is_super_packet: status.has_any(FrameStatus::GSO_TCP),
        stamp: Some(if is_by_adapter { StampSource::Adapter } else { StampSource::Host }),
        len: frame.len,
        frame: frame.frame,
        ..CapturedPacket::default()
    }
}

impl Stream<CapturedPackets> for PacketStream<'_> {
    fn offer(&self, _: &Demand<CapturedPackets>) -> Offer {
        Offer { backend: BACKEND, explain: self.rings.explain(), ..Offer::default() }
    }

    fn next(
        &mut self,
        demand: &Demand<CapturedPackets>,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Result<StreamState, SourceError> {
        let (passes, mut filtered, mut info) = (self.passes, 0, std::mem::take(&mut self.info));
        let state = self.next_batch(Together::One, &mut |frames, status| {
            let row = row(&frames.first, status);
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
        let (seen, lost) = (report.handed, report.dropped_by_ring);
        let mut stats = Accounting { seen, filtered: self.filtered, lost, ..Accounting::default() };
        stats.add_backend(BACKEND);
        if report.dropped_by_ring > 0 {
            let kib = report.ring_bytes >> 10;
            let text = format!("packets lost: the ring of {kib} KiB was full (raise with --buffer)");
            stats.add_reason(report.dropped_by_ring, text);
        }
        self.missing.report(&mut stats);
        if report.truncated > 0 {
            stats.incomplete(report.truncated, "long packets were truncated: not enough room (raise with --buffer)");
        }
        stats
    }
}
