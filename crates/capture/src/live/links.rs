//! The interfaces of a namespace: their names, and notifications of changes.
use std::collections::HashMap;
use std::num::NonZeroU32;

use record::rows::{Link, LinkType, iff};
use sys::escape_bytes;

use crate::report::IfaceDrops;

/// Maximum number of known interfaces, including removed ones. Further interfaces have no name.
///
/// Bound: interfaces of a namespace during a capture, including removed ones. Beyond: packets of further interfaces are
/// shown without the name. By: anyone who may make interfaces there.
const LINKS_MAX: usize = 1 << 17;

/// An interface as reported by rtnetlink.
#[derive(Debug)]
pub(super) struct KnownLink {
    pub(super) index: u32,
    /// Changes whenever the name changes, and differs from every other interface's in the namespace.
    pub(super) version: NonZeroU32,
    pub(super) name: Box<[u8]>,
    pub(super) is_up: bool,
    /// False once it is removed; its packets may still wait.
    pub(super) is_there: bool,
    pub(super) link_type: LinkType,
    /// Number of dropped packets at the start, and now.
    drops: [u64; 2],
}

/// The interfaces of one namespace.
#[derive(Debug, Default)]
pub(super) struct LinkTable {
    links: Vec<KnownLink>,
    places: HashMap<u32, usize>,
    /// Index of the previous packet's interface.
    last: usize,
    /// Number of versions assigned so far.
    versions: u32,
}

impl LinkTable {
    /// Updates the table with the current interfaces.
    pub(super) fn renew(&mut self, now: &[Link]) {
        let is_first = self.links.is_empty();
        self.links.iter_mut().for_each(|link| link.is_there = false);
        for link in now {
            let drops = link.stats.map_or(0, |stats| stats.rx_dropped.saturating_add(stats.rx_missed_errors));
            let (count, at) = (self.links.len(), self.places.get(&link.index).copied());
            let version = NonZeroU32::MIN.saturating_add(self.versions);
            match at.and_then(|at| self.links.get_mut(at)) {
                Some(known) => {
                    if known.name != link.name {
                        self.versions = self.versions.saturating_add(1);
                        (known.name, known.version) = (link.name.clone(), version);
                    }
                    known.link_type = LinkType::of_hardware(link.hardware);
                    (known.is_up, known.is_there) = (link.flags & iff::UP != 0, true);
                    // A new interface with the same name and number counts from 0.
                    known.drops = [known.drops[0].min(drops), drops];
                }
                None if count < LINKS_MAX => {
                    self.versions = self.versions.saturating_add(1);
                    self.places.insert(link.index, count);
                    self.links.push(KnownLink {
                        index: link.index,
                        version,
                        name: link.name.clone(),
                        is_up: link.flags & iff::UP != 0,
                        is_there: true,
                        link_type: LinkType::of_hardware(link.hardware),
                        drops: [if is_first { drops } else { 0 }, drops],
                    });
                }
                None => {}
            }
        }
    }

    /// Index of the interface with this number for [`LinkTable::at`], even if it is removed.
    #[inline]
    pub(super) fn find(&mut self, index: u32) -> Option<usize> {
        if self.links.get(self.last).is_none_or(|last| last.index != index) {
            self.last = *self.places.get(&index)?;
        }
        Some(self.last)
    }

    /// The interface at this index.
    #[inline]
    pub(super) fn at(&self, place: usize) -> Option<&KnownLink> {
        self.links.get(place)
    }

    /// The existing interface with this name.
    pub(super) fn named(&self, name: &[u8]) -> Option<&KnownLink> {
        self.links.iter().find(|link| link.is_there && *link.name == *name)
    }

    /// The interface with this number, if it exists.
    pub(super) fn present(&self, index: u32) -> Option<&KnownLink> {
        self.places.get(&index).and_then(|at| self.links.get(*at)).filter(|link| link.is_there)
    }

    /// The names of all existing interfaces, escaped.
    pub(super) fn names(&self) -> Vec<Box<str>> {
        self.links.iter().filter(|link| link.is_there).map(|link| escape_bytes(&link.name)).collect()
    }

    /// Packets that interfaces have dropped since the start: the interfaces in `only`, or all if it is empty.
    pub(super) fn drops(&self, only: &[u32]) -> Vec<IfaceDrops> {
        let is_meant = |link: &&KnownLink| only.is_empty() || only.contains(&link.index);
        let drops = |link: &KnownLink| IfaceDrops {
            iface: escape_bytes(&link.name),
            packets: link.drops[1].saturating_sub(link.drops[0]),
        };
        self.links.iter().filter(is_meant).map(drops).filter(|drops| drops.packets > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::LinkStats;

    fn link(index: u32, name: &str, rx_dropped: u64) -> Link {
        let stats = Some(LinkStats { rx_dropped, ..LinkStats::default() });
        Link { index, name: name.as_bytes().into(), flags: iff::UP, hardware: 1, stats, ..Link::default() }
    }

    fn get(table: &mut LinkTable, index: u32) -> Option<&KnownLink> {
        table.find(index).and_then(|place| table.at(place))
    }

    #[test]
    fn interfaces_come_go_and_change_their_names() {
        let mut table = LinkTable::default();
        table.renew(&[link(1, "lo", 0), link(2, "eth0", 10)]);
        assert_eq!(&*get(&mut table, 2).unwrap().name, b"eth0");
        assert!(table.find(3).is_none());
        let versions = |table: &mut LinkTable| [1, 2].map(|index| get(table, index).unwrap().version.get());
        assert_eq!(versions(&mut table), [1, 2]);
        table.renew(&[link(1, "lo", 0), link(2, "wan", 15), link(3, "eth0", 4)]);
        assert_eq!(&*get(&mut table, 2).unwrap().name, b"wan");
        assert_eq!(table.named(b"eth0").unwrap().index, 3);
        assert_eq!(versions(&mut table), [1, 3], "what has another name");
        let drops: Vec<(String, u64)> =
            table.drops(&[]).iter().map(|drops| (drops.iface.to_string(), drops.packets)).collect();
        assert_eq!(drops, [("wan".to_owned(), 5), ("eth0".to_owned(), 4)]);
        assert_eq!(table.drops(&[3]).len(), 1);
        table.renew(&[link(1, "lo", 0)]);
        assert!(table.named(b"wan").is_none() && table.present(2).is_none());
        assert_eq!(&*get(&mut table, 2).unwrap().name, b"wan", "packets of it may still wait");
        assert_eq!(table.names(), ["lo".into()]);
    }
}
