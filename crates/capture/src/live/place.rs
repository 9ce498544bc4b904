//! A network namespace in which packets are captured.
use record::rows::Link;
use sys::{LinkEvents, NetNs, SysError};

use super::links::LinkTable;

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
pub(super) type ReadLinks<'h> = &'h dyn Fn(&CapturePlace) -> Result<Vec<Link>, String>;

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
