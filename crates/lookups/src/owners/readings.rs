//! Reads sockets, addresses and owners through a session, for the crate `owners`, which uses them to find the owners
//! of entries.

use crate::enrich::read_owners;
use crate::pillars;
use crate::session::Session;
use ::owners::{ReadOwners, Reading, SocketIndex};
use host::Owners;
use record::{Accounting, Addr, Next};
use sys::{NetNs, Share};

/// Minimum time between two readings.
const PAUSE_NS: u64 = 100_000_000;
/// Maximum time between two readings, for any number of sockets, because events must be buffered until then.
const PAUSE_NS_MAX: u64 = 1_000_000_000;
/// Readings take at most one part in this many of the time.
const SHARE_OF_TIME: u64 = 4;
/// The recording's key for the time of a reading.
const TAKEN: &str = "nat events/owners";

/// Successive readings of the sockets and their owners.
pub struct SessionReadings<'s> {
    session: &'s Session,
    /// Earliest time of the next reading, on the monotonic clock.
    not_before_ns: u64,
    /// Number of the newest reading, starting at 1.
    number: u64,
    stats: Accounting,
}

impl<'s> SessionReadings<'s> {
    /// Reads nothing yet.
    pub fn new(session: &'s Session) -> SessionReadings<'s> {
        SessionReadings { session, not_before_ns: 0, number: 0, stats: Accounting::default() }
    }

    /// Starts the next reading and returns its time; None if a recording has no more readings.
    fn moment(&mut self) -> Option<u64> {
        let next = self.number.saturating_add(1);
        let mut bytes = Vec::new();
        let read = self.session.host().bytes(TAKEN, "", &mut bytes, |into| {
            [sys::clock::wall_ns(), next].iter().for_each(|number| into.extend_from_slice(&number.to_ne_bytes()));
            Ok(())
        });
        if let Err(error) = read {
            self.stats.incomplete(1, format!("owners are missing: {error}"));
            return None;
        }
        let (taken_ns, number) = bytes.split_first_chunk::<8>()?;
        let (taken_ns, number) = (u64::from_ne_bytes(*taken_ns), u64::from_ne_bytes(number.try_into().ok()?));
        // The recording repeats its last reading.
        let is_next = number > self.number;
        self.number = self.number.max(number);
        is_next.then_some(taken_ns)
    }
}

impl ReadOwners for SessionReadings<'_> {
    type Owners = Owners;

    fn read(&mut self) -> Option<Reading<Owners>> {
        let is_replay = self.session.host().is_replay();
        // When the run ends, one more reading answers all pending questions.
        let is_last = !is_replay && !self.session.sleep_until(self.not_before_ns);
        let begun_ns = sys::clock::monotonic_ns();
        let taken_ns = self.moment()?;
        // Only the last reading's errors are reported, because they repeat.
        self.stats = Accounting::default();
        self.session.find_namespaces(None, &mut self.stats);
        let sockets = read_sockets(self.session, &mut self.stats);
        let owners = read_owners(self.session, &mut self.stats);
        let end_ns = sys::clock::monotonic_ns();
        let pause_ns = Share::pause_ns(SHARE_OF_TIME, end_ns.saturating_sub(begun_ns)).clamp(PAUSE_NS, PAUSE_NS_MAX);
        self.not_before_ns = end_ns.saturating_add(pause_ns);
        let seen_ns = owners.as_ref().map_or(u64::MAX, Owners::seen_ns);
        Some(Reading { taken_ns, is_last, sockets, owners, seen_ns })
    }

    fn has_passed(&self, time_ns: u64) -> bool {
        self.session.host().is_replay() || time_ns <= sys::clock::wall_ns()
    }

    fn close(&mut self) -> Accounting {
        std::mem::take(&mut self.stats)
    }
}

/// Reads the TCP and UDP sockets, and the addresses of the session's namespaces. If that fails, owners are missing,
/// and a reason is added.
pub fn read_sockets(session: &Session, stats: &mut Accounting) -> SocketIndex {
    let several = session.namespaces().is_some();
    let mut index = SocketIndex::new(several);
    let read = pillars::with_sockets(session, None, &|_| true, |sockets| {
        sockets.run(&SocketIndex::demand(), &mut |socket| {
            index.add_socket(socket);
            Next::More
        })
    });
    match read {
        Ok(read) => {
            stats.incomplete |= read.is_partial();
            read.why.iter().for_each(|why| stats.add_reason(why.count, format!("owners: {}", why.text)));
        }
        Err(error) => {
            stats.incomplete(1, format!("owners are missing: {error}"));
        }
    }
    session.in_each_namespace(&mut |netns_id| {
        read_addresses(session, netns_id, stats, &mut |addr| index.add_address(netns_id, addr));
        if let Some(uid) = if several { maker(session, netns_id) } else { None } {
            index.add_maker(netns_id, uid);
        }
    });
    index
}

/// Reads the addresses of the calling thread's namespace. If that fails, owners are missing, and a reason is added.
pub(super) fn read_addresses(session: &Session, netns_id: u64, stats: &mut Accounting, add: &mut dyn FnMut(Addr)) {
    match host::addresses::read(session.host(), netns_id, None, add) {
        Err(error) if !error.is_not_recorded() => {
            stats.incomplete(1, format!("{error}; owners of listeners are missing"));
        }
        _ => {}
    }
}

/// The user who created the calling thread's namespace; None if the kernel does not report it.
fn maker(session: &Session, netns_id: u64) -> Option<u32> {
    let mut bytes = Vec::new();
    let read = session.host().bytes(&format!("netns maker/{netns_id}"), "", &mut bytes, |into| {
        into.extend_from_slice(&NetNs::current()?.owner_uid()?.to_ne_bytes());
        Ok(())
    });
    read.ok()?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}
