//! The ring of one interface, or of all interfaces of a namespace, and the state of the interface.
use sys::escaped;
use sys::packet_ring::{PacketRing, RingRequest, RingStatistics, StampClock, reject_all, without_own_echo};

use super::place::OpenPlace;
use super::ring_reader::ReadRing;
use super::successor::Successor;
use crate::pace::Pacing;

/// `ARPHRD_LOOPBACK` interfaces have the link type of Ethernet; only the name identifies them.
const LOOPBACK: &[u8] = b"lo";

/// State of an interface that was requested by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Up,
    Down,
    Gone,
}

/// An interface that was requested by name.
#[derive(Debug)]
struct NamedIface {
    name: Box<[u8]>,
    index: u32,
    health: Health,
}

/// A ring with its interface.
pub(super) struct OpenRing {
    pub(super) ring: ReadRing,
    /// Index of its namespace in the list.
    pub(super) at: usize,
    iface: Option<NamedIface>,
    promiscuous: bool,
    /// True for the last of the rings that share packets, which reports changes for all of them.
    speaks: bool,
    /// Replaces this ring after the interface was removed, if it shares packets.
    successor: Option<Successor>,
    /// Number of packets handed out.
    pub(super) handed: u64,
    pub(super) statistics: RingStatistics,
    /// No packet older than this can arrive, in ns since 1970; as of the last call.
    pub(super) quiet_ns: u64,
}

impl OpenRing {
    /// Opens rings for all interfaces of a place: `count` rings that share its packets.
    pub(super) fn of_all(
        at: usize,
        place: &OpenPlace,
        request: &RingRequest<'_>,
        count: usize,
    ) -> Result<Vec<OpenRing>, sys::SysError> {
        // A packet of the loopback interface is sent and received: it must appear once.
        let program = without_own_echo(request.program);
        let request = RingRequest { ifindex: 0, program: &program, promiscuous: false, ..*request };
        let opened = place.place.inside(|| open_shared(&request, count))?;
        let last = opened.len().saturating_sub(1);
        let ring = |(which, ring)| OpenRing { speaks: which == last, ..OpenRing::of(ring, at, None) };
        Ok(opened.into_iter().enumerate().map(ring).collect())
    }

    fn of(ring: PacketRing, at: usize, iface: Option<NamedIface>) -> OpenRing {
        OpenRing {
            ring: ReadRing::Here(ring),
            at,
            iface,
            promiscuous: false,
            speaks: true,
            successor: None,
            handed: 0,
            statistics: RingStatistics::default(),
            quiet_ns: u64::MAX,
        }
    }

    /// Opens rings for the interface with this name: `count` rings that share its packets. No rings if the place lacks
    /// the interface.
    pub(super) fn of_named(
        at: usize,
        place: &OpenPlace,
        name: &str,
        request: &RingRequest<'_>,
        count: usize,
    ) -> Result<Vec<OpenRing>, sys::SysError> {
        let Some(link) = place.links.named(name.as_bytes()) else { return Ok(Vec::new()) };
        let ignore_outgoing = *link.name == *LOOPBACK;
        let request = RingRequest { ifindex: link.index, ignore_outgoing, ..*request };
        let shared = u32::try_from(count).unwrap_or(u32::MAX);
        let successor = |which| if count > 1 { Successor::open(&request, which, shared).map(Some) } else { Ok(None) };
        let (opened, successors) = place.place.inside(|| {
            let opened = open_shared(&request, count)?;
            Ok((opened, (0..shared.max(1)).map(successor).collect::<Result<Vec<_>, _>>()?))
        })?;
        let health = if link.is_up { Health::Up } else { Health::Down };
        let iface = || NamedIface { name: link.name.clone(), index: link.index, health };
        let (last, rings) = (opened.len().saturating_sub(1), opened.into_iter().zip(successors).enumerate());
        Ok(rings
            .map(|(which, (ring, successor))| OpenRing {
                promiscuous: request.promiscuous,
                speaks: which == last,
                successor,
                ..OpenRing::of(ring, at, Some(iface()))
            })
            .collect())
    }

    /// Lets a thread read the ring from now on.
    pub(super) fn on_thread(self, pace: Pacing, late_ns: u64) -> Result<OpenRing, std::io::Error> {
        Ok(OpenRing { ring: self.ring.on_thread(pace, late_ns)?, quiet_ns: 0, ..self })
    }

    /// Number of the interface, if the ring belongs to one.
    pub(super) fn ifindex(&self) -> Option<u32> {
        self.iface.as_ref().map(|iface| iface.index)
    }

    /// A note for the start, if the interface is down.
    pub(super) fn caveat(&self) -> Option<String> {
        let iface = self.iface.as_ref().filter(|iface| iface.health == Health::Down && self.speaks)?;
        Some(format!("{} is down: it is captured once it is up", escaped(&iface.name)))
    }

    /// Requests time stamps of this clock; returns a sentence if it is unavailable.
    pub(super) fn stamp_by(&mut self, clock: StampClock) -> Option<String> {
        if let Some(successor) = &mut self.successor {
            successor.stamp_by(clock);
        }
        let iface = self.iface.as_ref().map(|iface| &*iface.name);
        let error = self.ring.stamp_by(clock, iface).err().filter(|_| self.speaks)?;
        let name = iface.map_or_else(|| "all interfaces".into(), escaped);
        Some(match error.errno {
            errno if errno == sys::Errno::OPNOTSUPP => {
                format!("{name}: the driver has no such time stamps of its adapter: the host's are taken")
            }
            errno => format!("{name}: no time stamps of the adapter, the host's are taken: {errno}"),
        })
    }

    /// Checks the state of the interface, binds to a new interface of its name, and reports changes.
    pub(super) fn look(&mut self, place: &OpenPlace, say: &dyn Fn(&str)) {
        // A pending error would end each wait at once.
        while self.ring.take_error().is_some() {}
        let Some(iface) = &mut self.iface else { return };
        let tell = |text: &str| {
            if self.speaks {
                say(text);
            }
        };
        if let Some(link) = place.links.present(iface.index) {
            if link.name != iface.name {
                tell(&format!("{} is called {} now: it is captured on", escaped(&iface.name), escaped(&link.name)));
                iface.name.clone_from(&link.name);
            }
            let health = if link.is_up { Health::Up } else { Health::Down };
            match (iface.health, health) {
                (Health::Up, Health::Down) => {
                    tell(&format!("{} went down: it is captured again once it is up", escaped(&iface.name)));
                }
                (Health::Down, Health::Up) => tell(&format!("{} is up", escaped(&iface.name))),
                _ => {}
            }
            iface.health = health;
            return;
        }
        if iface.health != Health::Gone {
            iface.health = Health::Gone;
            tell(&format!("{} is gone: one of that name is captured once it is there", escaped(&iface.name)));
        }
        let Some(link) = place.links.named(&iface.name) else { return };
        if let Err(error) = self.ring.bind(link.index, self.promiscuous, &mut self.successor) {
            // Every ring reports this: a ring that is not bound misses its part of the packets.
            return say(&error);
        }
        tell(&format!("{} is there again", escaped(&iface.name)));
        iface.index = link.index;
        iface.health = if link.is_up { Health::Up } else { Health::Down };
        while self.ring.take_error().is_some() {}
    }

    /// Reads the kernel's counters; true if every packet that it has put into the ring was handed out.
    pub(super) fn count(&mut self) -> bool {
        let is_settled = self.ring.is_settled();
        if let Some(statistics) = self.ring.statistics() {
            self.statistics = statistics;
        }
        is_settled && self.handed >= self.statistics.packets.saturating_sub(self.statistics.drops)
    }
}

/// Opens `count` rings. Several rings share the packets by flow: no ring receives packets before all of them do.
fn open_shared(request: &RingRequest<'_>, count: usize) -> Result<Vec<PacketRing>, sys::SysError> {
    if count <= 1 {
        return Ok(vec![PacketRing::open(request)?]);
    }
    let (mut rings, mut group, nothing) = (Vec::new(), None, reject_all());
    for _ in 0..count {
        let ring = PacketRing::open(&RingRequest { program: &nothing, ..*request })?;
        group = Some(ring.share(group, request.ignore_outgoing)?);
        rings.push(ring);
    }
    rings.iter().try_for_each(|ring| ring.attach(request.program))?;
    Ok(rings)
}
