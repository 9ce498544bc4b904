//! A lookup that reads again when it meets what it does not know: for runs that last longer than what they look at.

use host::{Cgroups, Containers, NetnsNames};
use record::{Key, Lookup, LookupId, Lookups, Value};
use std::cell::{Cell, OnceCell};
use sys::Host;

/// Readings at most: each stays in memory, because cells may borrow from it.
const READINGS_MAX: u32 = 256;
/// The shortest time between two readings.
const PAUSE_NS: u64 = 1_000_000_000;
/// Reading may take this part of the time.
const SHARE_OF_TIME: u64 = 20;

/// What a first reading knew, and what later ones added.
pub(crate) struct Growing<'s, L> {
    base: Lookups<'s>,
    id: LookupId,
    read: Box<dyn Fn(Key) -> Option<L> + 's>,
    now_ns: fn() -> u64,
    first: OnceCell<Box<Reading<L>>>,
    readings: Cell<u32>,
    not_before_ns: Cell<u64>,
}

struct Reading<L> {
    lookup: L,
    next: OnceCell<Box<Reading<L>>>,
}

impl<'s, L: Lookup> Growing<'s, L> {
    /// Lookup `id` of `base`, and `read` for keys that it does not know.
    pub(crate) fn new(base: Lookups<'s>, id: LookupId, read: impl Fn(Key) -> Option<L> + 's) -> Growing<'s, L> {
        Growing {
            base,
            id,
            read: Box::new(read),
            now_ns: sys::clock::monotonic_ns,
            first: OnceCell::new(),
            readings: Cell::new(0),
            not_before_ns: Cell::new(0),
        }
    }

    /// Another reading, if it is not too soon.
    fn again(&self, key: Key) -> Option<L> {
        let start_ns = (self.now_ns)();
        if start_ns < self.not_before_ns.get() || self.readings.get() >= READINGS_MAX {
            return None;
        }
        self.readings.set(self.readings.get() + 1);
        let read = (self.read)(key);
        let end_ns = (self.now_ns)();
        let pause_ns = end_ns.saturating_sub(start_ns).saturating_mul(SHARE_OF_TIME).max(PAUSE_NS);
        self.not_before_ns.set(end_ns.saturating_add(pause_ns));
        read
    }
}

impl<L: Lookup> Lookup for Growing<'_, L> {
    fn value(&self, key: Key) -> Value<'_> {
        let known = self.base.value(self.id, key);
        if !known.is_null() {
            return known;
        }
        let mut place = &self.first;
        while let Some(reading) = place.get() {
            let known = reading.lookup.value(key);
            if !known.is_null() {
                return known;
            }
            place = &reading.next;
        }
        match self.again(key) {
            Some(lookup) => place.get_or_init(|| Box::new(Reading { lookup, next: OnceCell::new() })).lookup.value(key),
            None => Value::Null,
        }
    }
}

/// What may be younger than the run: names of namespaces, paths of groups, containers.
pub(crate) struct Younger<'s> {
    namespaces: Growing<'s, NetnsNames>,
    groups: Growing<'s, Cgroups>,
    /// Containers, pods, units.
    places: [(LookupId, Growing<'s, Place>); 3],
}

impl<'s> Younger<'s> {
    /// Reads nothing yet; `base` is what was read at the start.
    pub(crate) fn new(host: &'s Host, base: Lookups<'s>) -> Younger<'s> {
        let names = move |key| match key {
            Key::Id(inode) => NetnsNames::read(host, &[inode]).ok(),
            _ => None,
        };
        let place = |id, part: Part| {
            let read = move |_| {
                let groups = Cgroups::read(host).ok()?;
                Some(Place { containers: Containers::read(host, std::iter::empty(), Some(&groups)), part })
            };
            (id, Growing::new(base, id, read))
        };
        Younger {
            namespaces: Growing::new(base, LookupId::Netns, names),
            groups: Growing::new(base, LookupId::Cgroups, move |_| Cgroups::read(host).ok()),
            places: [
                place(LookupId::Containers, |containers| containers.names()),
                place(LookupId::Pods, |containers| containers.pods()),
                place(LookupId::Units, |containers| containers.units()),
            ],
        }
    }

    /// `base` with these in the place of what it has.
    pub(crate) fn over<'l>(&'l self, base: Lookups<'l>) -> Lookups<'l> {
        let all = [(LookupId::Netns, &self.namespaces as &dyn Lookup), (LookupId::Cgroups, &self.groups)];
        let places = self.places.iter().map(|(id, place)| (*id, place as &dyn Lookup));
        let had = all.into_iter().chain(places).filter(|(id, _)| base.has(*id));
        had.fold(base, |lookups, (id, lookup)| lookups.with(id, lookup))
    }
}

type Part = fn(&Containers) -> &dyn Lookup;

/// One of the three things that are known of groups.
struct Place {
    containers: Containers,
    part: Part,
}

impl Lookup for Place {
    fn value(&self, key: Key) -> Value<'_> {
        (self.part)(&self.containers).value(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Knows the keys up to a number.
    struct UpTo(u64);

    impl Lookup for UpTo {
        fn value(&self, key: Key) -> Value<'_> {
            match key {
                Key::Id(id) if id <= self.0 => Value::U64(id),
                _ => Value::Null,
            }
        }
    }

    #[test]
    fn reads_again_for_what_it_does_not_know_but_not_too_often() {
        let asked = RefCell::new(Vec::new());
        let base = UpTo(1);
        let lookups = Lookups::none().with(LookupId::Cgroups, &base);
        let mut growing = Growing::new(lookups, LookupId::Cgroups, |key| {
            asked.borrow_mut().push(key);
            Some(UpTo(2))
        });
        growing.now_ns = || 5;
        assert_eq!(growing.value(Key::Id(1)), Value::U64(1));
        assert!(asked.borrow().is_empty());
        assert_eq!(growing.value(Key::Id(2)), Value::U64(2));
        assert_eq!(growing.value(Key::Id(2)), Value::U64(2));
        assert_eq!(growing.value(Key::Id(3)), Value::Null, "too soon for another reading");
        assert_eq!(*asked.borrow(), [Key::Id(2)]);
        growing.now_ns = || 5 + PAUSE_NS;
        assert_eq!(growing.value(Key::Id(3)), Value::Null);
        assert_eq!(asked.borrow().len(), 2);
    }
}
