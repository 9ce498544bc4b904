//! A network namespace in which packets are captured.
use record::rows::Link;
use record::{Accounting, SourceError, SourceFault};
use sys::{LinkEvents, NetNs, ShortShares, SysError, clock};

use super::WHAT;
use super::links::{KnownLink, LinkTable};

/// Minimum time between two reads of the interfaces because of an unknown one.
const RENEW_NS: u64 = 100_000_000;

/// A network namespace.
#[derive(Debug)]
pub struct CapturePlace {
    /// Its inode.
    pub netns_id: u64,
    /// A handle of the namespace, unless the calling thread is in it.
    pub netns: Option<NetNs>,
    /// Size of each ring, in bytes.
    pub ring_bytes: usize,
}

/// Reads the interfaces of a place with their counters; the error is a sentence.
pub type ReadLinks<'h> = &'h dyn Fn(&CapturePlace) -> Result<Vec<Link>, String>;

/// Reads the interfaces of places.
pub(super) struct LinkReader<'h> {
    pub(super) read: ReadLinks<'h>,
    /// The time of the latest read because of an unknown interface.
    pub(super) renewed_ns: u64,
}

impl LinkReader<'_> {
    /// Reads the interfaces of a place again after a packet of an unknown one, which must be new.
    #[cold]
    fn renew_unknown(&mut self, place: &mut OpenPlace) {
        let now_ns = clock::monotonic_ns();
        if now_ns.saturating_sub(self.renewed_ns) > RENEW_NS {
            self.renewed_ns = now_ns;
            let _ = place.renew(self.read);
        }
    }
}

/// A place with its interfaces.
pub(super) struct OpenPlace {
    pub(super) place: CapturePlace,
    pub(super) links: LinkTable,
    pub(super) events: Option<LinkEvents>,
}

impl OpenPlace {
    /// Subscribes to changes, then reads the interfaces. The error contains the place.
    pub(super) fn open(place: CapturePlace, read: ReadLinks<'_>) -> Result<OpenPlace, (CapturePlace, String)> {
        let events = place.inside(LinkEvents::open).ok();
        let mut open = OpenPlace { place, links: LinkTable::default(), events };
        match open.renew(read) {
            Ok(()) => Ok(open),
            Err(error) => Err((open.place, error)),
        }
    }

    /// Reads the interfaces again.
    pub(super) fn renew(&mut self, read: ReadLinks<'_>) -> Result<(), String> {
        self.links.renew(&read(&self.place)?);
        Ok(())
    }

    /// The interface with this number, even if it is removed.
    #[inline]
    pub(super) fn link(&mut self, index: u32, reader: &mut LinkReader<'_>) -> Option<&KnownLink> {
        let mut link = self.links.find(index);
        if link.is_none() {
            reader.renew_unknown(self);
            link = self.links.find(index);
        }
        link.and_then(|at| self.links.at(at))
    }
}

impl CapturePlace {
    /// Calls `work` inside the namespace: sockets that it opens belong to it.
    pub(super) fn inside<R>(&self, work: impl FnOnce() -> Result<R, SysError>) -> Result<R, SysError> {
        let _inside = match &self.netns {
            Some(netns) => Some(netns.enter()?),
            None => None,
        };
        work()
    }
}

/// The other namespaces that are captured in part or not at all.
pub(super) struct MissingPlaces {
    /// See [`FollowPackets::shortage`](crate::FollowPackets::shortage).
    shortage: ShortShares,
    /// Number of namespaces with an error, and the first reason.
    unopened: u64,
    why: Option<String>,
}

/// Opens the places, except other namespaces with an error.
pub(super) fn open_places(
    places: Vec<CapturePlace>,
    links: ReadLinks<'_>,
    shortage: ShortShares,
) -> Result<(Vec<OpenPlace>, MissingPlaces), SourceError> {
    let (mut open, mut missing) = (Vec::new(), MissingPlaces { shortage, unopened: 0, why: None });
    for place in places {
        match OpenPlace::open(place, links) {
            Ok(place) => open.push(place),
            Err((place, why)) if missing.note(&place, &why) => {}
            Err((_, why)) => return Err(SourceError { what: WHAT, fault: SourceFault::Io, cause: why.into() }),
        }
    }
    Ok((open, missing))
}

impl MissingPlaces {
    /// Counts a namespace with an error. Returns false for the caller's own, where every error ends the run.
    pub(super) fn note(&mut self, place: &CapturePlace, why: &str) -> bool {
        self.unopened += 1;
        self.why.get_or_insert_with(|| format!("network namespace {}: {why}", place.netns_id));
        place.netns.is_some()
    }

    /// Reports them.
    pub(super) fn report(&self, stats: &mut Accounting) {
        let ShortShares { left_out, reduced } = self.shortage;
        let unopened = format!("were not captured ({})", self.why.as_deref().unwrap_or_default());
        let no_memory = "were left out for lack of memory or file descriptors (raise with --buffer-total, ulimit -n)";
        for (count, is_missing, what) in [
            (left_out, true, no_memory),
            (self.unopened, true, &unopened),
            (reduced, false, "had smaller rings: they share --buffer-total"),
        ] {
            if count > 0 {
                stats.incomplete |= is_missing;
                stats.add_reason(count, format!("network namespaces {what}"));
            }
        }
    }
}
