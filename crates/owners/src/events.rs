//! Conntrack events with the owners of their entries, which are remembered from an entry's first event to its last.

use crate::attribution::Attribution;
use crate::readings::{ReadOwners, Readings, SeenOwners};
use crate::socket_owners::OwnerCounts;
use record::rows::{Conntrack, NatEvent, NatEventKind, NatEvents};
use record::{Accounting, Annotate, Each, Next};
use std::collections::HashMap;

/// Maximum number of entries whose owners are remembered, about 40 bytes each; the destroy events of further entries
/// have no owner.
///
/// Bound: entries of connection tracking whose owners are remembered. Beyond: the destroy events of further entries
/// have no owner; they are counted. By: a local user with as many connections.
const MAX: usize = 1 << 20;

/// The reasons why an event has no owner: the socket is looked up after the event, and may be closed by then.
const UNKNOWN: &str = "the socket was closed before it was looked up, no process listens there, or the entry is \
                       older than this run";

/// The owners of the entries of events.
pub struct EventOwners<R: ReadOwners> {
    tracker: OwnerTracker<R>,
    /// False if new events are received only to find the owners for later ones.
    shows_new: bool,
}

impl<R: ReadOwners> EventOwners<R> {
    /// Takes readings through `reader`. The stream must deliver new events in any case: `shows` returns whether new
    /// and destroy events pass the filter.
    pub fn new(reader: R, [shows_new, shows_destroy]: [bool; 2]) -> EventOwners<R> {
        EventOwners { tracker: OwnerTracker::new(reader, shows_destroy), shows_new }
    }
}

impl<R: ReadOwners> Annotate<NatEvents> for EventOwners<R> {
    fn row(&mut self, event: &NatEvent<'_>, each: &mut Each<'_, NatEvents>) -> Next {
        let owners = self.tracker.of(event.kind, event.entry, event.time_ns);
        if event.kind == NatEventKind::New && !self.shows_new {
            return Next::More;
        }
        let Some(seen) = owners else { return each(event) };
        let entry = &Conntrack { owners: &seen.owners, owners_seen_ns: seen.seen_ns, ..*event.entry };
        each(&NatEvent { entry, ..*event })
    }

    fn close(&mut self, stats: &mut Accounting) {
        let mut own = Accounting::default();
        self.tracker.close(&mut own);
        // The notes about owners come first, because the events' own last line is their summary. The events' backends
        // come first.
        let via = std::mem::take(&mut own.via);
        own.add(stats);
        via.into_iter().for_each(|backend| own.add_backend(backend));
        *stats = own;
    }
}

/// Remembers the owners of entries from their new event to their destroy event.
struct OwnerTracker<R: ReadOwners> {
    readings: Readings<R>,
    /// True if destroy events are shown: the owners of new entries are then remembered for them.
    remembers: bool,
    known: HashMap<u64, SeenOwners>,
    counts: OwnerCounts,
    unremembered: u64,
}

impl<R: ReadOwners> OwnerTracker<R> {
    fn new(reader: R, remembers: bool) -> OwnerTracker<R> {
        let readings = Readings::new(reader);
        let (known, counts) = Default::default();
        OwnerTracker { readings, remembers, known, counts, unremembered: 0 }
    }

    /// The owners to show with an event.
    fn of(&mut self, what: NatEventKind, entry: &Conntrack<'_>, happened_ns: u64) -> Option<SeenOwners> {
        if what == NatEventKind::Destroy {
            // The socket is closed or serves another connection by now: only remembered owners are correct.
            let known = self.known.remove(&entry.lifetime_key());
            self.counts.here += u64::from(known.is_some() || self.readings.is_here(entry));
            self.counts.unknown += u64::from(known.is_none() && self.readings.is_here(entry));
            return known;
        }
        if let (true, Some(known)) = (what != NatEventKind::New, self.known.get(&entry.lifetime_key())) {
            self.counts.here += 1;
            return Some(known.clone());
        }
        let answer = self.readings.find(entry, 0, happened_ns);
        self.counts.add(&answer);
        let Attribution::Found(owners) = answer else { return None };
        self.remember(entry, &owners);
        Some(owners)
    }

    fn remember(&mut self, entry: &Conntrack<'_>, owners: &SeenOwners) {
        if !self.remembers {
            return;
        }
        if self.known.len() >= MAX {
            self.unremembered += 1;
            return;
        }
        self.known.insert(entry.lifetime_key(), owners.clone());
    }

    /// Adds the counts of events without an owner, and reading errors, to `stats`.
    fn close(&mut self, stats: &mut Accounting) {
        stats.add(&self.readings.close());
        self.counts.report("events with an endpoint on this host", UNKNOWN, stats);
        if self.unremembered > 0 {
            let text = format!("destroy events of entries after the first {MAX} have no owner");
            stats.incomplete(self.unremembered, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_readings::{FakeReadings, HERE, LATEST_NS, THERE};
    use record::rows::{CtTuple, ip_proto};
    use record::{Annotated, Demand, Offer, SourceError, Stream, StreamState};

    /// A connection from this host with this source port; port 8 is a connection from another host.
    fn entry(port: u16) -> Conntrack<'static> {
        let src = if port == 8 { THERE } else { HERE };
        let orig = CtTuple { src, dst: THERE, src_part: port, dst_part: 80, proto: ip_proto::TCP, ..CtTuple::EMPTY };
        Conntrack { id: Some(port.into()), orig, ..Conntrack::EMPTY }
    }

    fn tracker(with_socket: u64, remembers: bool) -> OwnerTracker<FakeReadings> {
        OwnerTracker::new(FakeReadings::new(with_socket, 0), remembers)
    }

    #[test]
    fn what_was_known_at_the_beginning_is_shown_at_the_end() {
        let mut tracker = tracker(1, true);
        let mut pid = |kind, port, at| tracker.of(kind, &entry(port), at).map(|seen| seen.owners[0].pid);
        assert_eq!(pid(NatEventKind::New, 9, 5), Some(7));
        assert_eq!(pid(NatEventKind::Update, 9, 15), Some(7), "without looking again");
        assert_eq!(pid(NatEventKind::Destroy, 9, 15), Some(7));
        assert_eq!([pid(NatEventKind::Destroy, 9, 15), pid(NatEventKind::New, 9, 15)], [None; 2]);
        assert_eq!([pid(NatEventKind::New, 8, 15), pid(NatEventKind::Destroy, 8, 15)], [None; 2]);
        let mut stats = Accounting::default();
        tracker.close(&mut stats);
        let says = stats
            .why
            .iter()
            .any(|why| why.text.starts_with("2 of 5 events with an endpoint on this host have no owner"));
        assert!(says, "forwarded ones are not counted: {stats:?}");
        assert!(!stats.incomplete && tracker.known.is_empty());
    }

    /// One connection from this host: new, then ended.
    struct OneConnection;

    impl Stream<NatEvents> for OneConnection {
        fn offer(&self, _: &Demand<NatEvents>) -> Offer {
            Offer::default()
        }

        fn next(&mut self, _: &Demand<NatEvents>, each: &mut Each<'_, NatEvents>) -> Result<StreamState, SourceError> {
            for (kind, time_ns) in [(NatEventKind::New, 5), (NatEventKind::Destroy, 6)] {
                let _ = each(&NatEvent { kind, time_ns, entry: &entry(9), ..NatEvent::EMPTY });
            }
            Ok(StreamState::Ended)
        }

        fn close(&mut self) -> Accounting {
            Accounting { seen: 1, via: vec!["netlink"], ..Accounting::default() }
        }
    }

    #[test]
    fn an_end_has_the_owner_of_a_beginning_that_is_not_shown() {
        for (shows_new, kinds) in
            [(true, &[NatEventKind::New, NatEventKind::Destroy][..]), (false, &[NatEventKind::Destroy])]
        {
            let mut inner = OneConnection;
            let reader = FakeReadings::new(1, 0);
            let mut events = Annotated::new(&mut inner, EventOwners::new(reader, [shows_new, true]));
            let mut shown = Vec::new();
            let state = events.next(&Demand::new(&[], Vec::new()), &mut |event| {
                assert_eq!(event.entry.owners.first().map(|owner| owner.pid), Some(7));
                assert_eq!(event.entry.owners_seen_ns, 15, "the reading began at 10");
                shown.push(event.kind);
                Next::More
            });
            assert!(matches!(state, Ok(StreamState::Ended)));
            assert_eq!(shown, kinds);
            assert_eq!(events.close(), Accounting { seen: 1, via: vec!["netlink"], ..Accounting::default() });
        }
    }

    #[test]
    fn ends_without_events_are_not_remembered() {
        let mut tracker = tracker(5, false);
        assert!(tracker.of(NatEventKind::New, &entry(9), 5).is_some());
        assert!(tracker.known.is_empty());
    }

    #[test]
    fn an_event_is_never_looked_up_in_a_reading_that_is_older() {
        let mut readings = Readings::new(FakeReadings::new(2, 0));
        let udplite = Conntrack { orig: CtTuple { proto: 136, ..entry(9).orig }, ..entry(9) };
        // Each case: an event at a time, and the time of the newest reading afterwards.
        for (entry, happened_ns, is_found, taken_ns, why) in [
            (entry(9), 9, true, 10, "the first reading is younger"),
            (entry(9), 9, true, 10, "it answers again"),
            (entry(9), 10, true, 20, "a reading of the same time may have come before"),
            (entry(9), 20, false, 40, "the socket is gone for two younger readings"),
            (entry(9), 29, false, 40, "both are younger than this event, too"),
            (entry(9), 30, false, 50, "one of them is, and another one is taken"),
            (entry(9), LATEST_NS + 1, false, 50, "the clock was put back: there is no younger one"),
            (entry(8), 70, false, 50, "it only passes through"),
            (udplite, 70, false, 50, "no socket can be found"),
        ] {
            let answer = readings.find(&entry, 0, happened_ns);
            let is_here = entry.orig.src == HERE && entry.orig.proto == ip_proto::TCP;
            assert_eq!(matches!(answer, Attribution::Found(_)), is_found, "{why}");
            assert_eq!(answer == Attribution::NotHere, !is_here, "{why}");
            assert_eq!(readings.taken_ns(), taken_ns, "{why}");
        }
    }
}
