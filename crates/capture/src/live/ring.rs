//! The ring of one interface, or of all interfaces of a namespace, and the state of the interface.
use sys::packet_ring::{PacketRing, RingRequest, RingStatistics, StampClock, without_own_echo};
use sys::{SysError, escape_bytes};

use super::place::OpenPlace;

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
    pub(super) ring: PacketRing,
    /// Index of its namespace in the list.
    pub(super) at: usize,
    iface: Option<NamedIface>,
    promiscuous: bool,
    /// Number of packets handed out.
    pub(super) handed: u64,
    pub(super) statistics: RingStatistics,
}

impl OpenRing {
    /// Opens a ring for all interfaces of a place.
    pub(super) fn of_all(at: usize, place: &OpenPlace, request: &RingRequest<'_>) -> Result<OpenRing, SysError> {
        // A packet of the loopback interface is sent and received: it must appear once.
        let program = without_own_echo(request.program);
        let request = RingRequest { ifindex: 0, program: &program, promiscuous: false, ..*request };
        let ring = place.place.inside(|| PacketRing::open(&request))?;
        Ok(OpenRing { ring, at, iface: None, promiscuous: false, handed: 0, statistics: RingStatistics::default() })
    }

    /// Opens a ring for the interface with this name; `None` if the place lacks it.
    pub(super) fn of_named(
        at: usize,
        place: &OpenPlace,
        name: &str,
        request: &RingRequest<'_>,
    ) -> Result<Option<OpenRing>, SysError> {
        let Some(link) = place.links.named(name.as_bytes()) else { return Ok(None) };
        let ignore_outgoing = *link.name == *LOOPBACK;
        let request = RingRequest { ifindex: link.index, ignore_outgoing, ..*request };
        let ring = place.place.inside(|| PacketRing::open(&request))?;
        let health = if link.is_up { Health::Up } else { Health::Down };
        let iface = Some(NamedIface { name: link.name.clone(), index: link.index, health });
        let (promiscuous, statistics) = (request.promiscuous, RingStatistics::default());
        Ok(Some(OpenRing { ring, at, iface, promiscuous, handed: 0, statistics }))
    }

    /// Number of the interface, if the ring belongs to one.
    pub(super) fn ifindex(&self) -> Option<u32> {
        self.iface.as_ref().map(|iface| iface.index)
    }

    /// A note for the start, if the interface is down.
    pub(super) fn caveat(&self) -> Option<String> {
        let iface = self.iface.as_ref().filter(|iface| iface.health == Health::Down)?;
        Some(format!("{} is down: capturing starts when it is up", escape_bytes(&iface.name)))
    }

    /// Requests time stamps of this clock; returns a sentence if it is unavailable.
    pub(super) fn stamp_by(&self, clock: StampClock) -> Option<String> {
        let iface = self.iface.as_ref().map(|iface| &*iface.name);
        let error = self.ring.stamp_by(clock, iface).err()?;
        let name = iface.map_or_else(|| "all interfaces".into(), escape_bytes);
        Some(match error.errno {
            errno if errno == sys::Errno::OPNOTSUPP => {
                format!("{name}: the driver has no such timestamps of the network card: using the host's")
            }
            errno => format!("{name}: no timestamps of the network card, using the host's: {errno}"),
        })
    }

    /// Checks the state of the interface, binds to a new interface of its name, and reports changes.
    pub(super) fn look(&mut self, place: &OpenPlace, say: &dyn Fn(&str)) {
        // A pending error would end each wait at once.
        while self.ring.take_error().is_some() {}
        let Some(iface) = &mut self.iface else { return };
        if let Some(link) = place.links.present(iface.index) {
            if link.name != iface.name {
                say(&format!(
                    "{} was renamed to {}: capturing continues",
                    escape_bytes(&iface.name),
                    escape_bytes(&link.name)
                ));
                iface.name.clone_from(&link.name);
            }
            let health = if link.is_up { Health::Up } else { Health::Down };
            match (iface.health, health) {
                (Health::Up, Health::Down) => {
                    say(&format!("{} went down: capturing continues when it is up", escape_bytes(&iface.name)));
                }
                (Health::Down, Health::Up) => say(&format!("{} is up", escape_bytes(&iface.name))),
                _ => {}
            }
            iface.health = health;
            return;
        }
        if iface.health != Health::Gone {
            iface.health = Health::Gone;
            let name = escape_bytes(&iface.name);
            say(&format!("{name} was removed: capturing continues when an interface of that name appears"));
        }
        let Some(link) = place.links.named(&iface.name) else { return };
        if let Err(error) = self.ring.bind(link.index) {
            return say(&error.to_string());
        }
        if self.promiscuous {
            let _ = self.ring.see_all(link.index);
        }
        say(&format!("{} has reappeared", escape_bytes(&iface.name)));
        iface.index = link.index;
        iface.health = if link.is_up { Health::Up } else { Health::Down };
        while self.ring.take_error().is_some() {}
    }

    /// Call it after this ring ended a wait.
    pub(super) fn woken(&mut self) {
        if self.ring.next_ns().is_none() {
            // Its interface went down or was removed, and the pending error would end every wait; notifications report
            // the interface.
            self.ring.take_error();
            self.ring.keep_early();
        }
    }

    /// Reads the kernel's counters; true if every packet that it has put into the ring was handed out.
    pub(super) fn count(&mut self) -> bool {
        if let Ok(statistics) = self.ring.statistics() {
            self.statistics = statistics;
        }
        self.handed >= self.statistics.packets.saturating_sub(self.statistics.drops)
    }
}
