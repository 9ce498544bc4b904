//! A lookup that reads again on unknown keys, for runs that outlive the objects they look up.
//!
//! Readings are limited by their time, not by their number. A name that cannot be read at the moment stays empty and
//! is counted.

use crate::append_map::AppendMap;
use host::{Cgroups, Containers, NetnsNames, Users};
use record::{Accounting, Key, Lookup, LookupId, Lookups, Value};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use sys::{Host, MountsWatch, Share, clock};

/// Readings may take one part in this many of the time.
///
/// Bound: parts of the time: at most one is spent on reading names
/// (`refreshing_lookups::issue_10_readings_are_bounded_by_their_rate_and_what_is_missing_is_counted`). Beyond: cells
/// are empty; counted (exit code 3). By: a local user who makes cgroups and namespaces fast.
const SHARE_OF_TIME: u64 = 20;
/// Time available at once after a pause.
const CREDIT_NS_MAX: u64 = 200_000_000;
/// A nameless namespace is looked up again after this time, because names are given after creation.
const NAMELESS_NS: u64 = 1_000_000_000;
/// Maximum number of names kept, about 200 bytes each; cells may borrow from them until the batch of rows ends. If
/// more than half are used then, all are dropped, and existing ones are read again. Further names in one batch are
/// counted as missing.
///
/// Bound: names of cgroups and namespaces in a batch of `--follow`. Beyond: further cells are empty; counted (exit code
/// 3). By: a local user who makes as many.
const NAMES_MAX: usize = 1 << 18;

/// The names of a first reading, and those added by later readings.
pub(crate) struct RefreshingLookup<'s, L> {
    base: Lookups<'s>,
    id: LookupId,
    read: Box<dyn Fn(Key) -> Option<L> + 's>,
    /// True if the reading found the key's object, even without a name.
    met: fn(&L, Key) -> bool,
    /// A key without a name is looked up again after this time.
    nameless_ns: u64,
    now_ns: fn() -> u64,
    /// The newest reading. Names are copied from it, so that it can be replaced.
    newest: RefCell<Option<L>>,
    names: AppendMap<Key, Name>,
    /// Keys whose meaning differs from the one in `base`.
    forgotten: HashSet<Key>,
    /// True if the meaning of all keys may differ.
    is_all_forgotten: bool,
    share: Share,
    missing: Cell<u64>,
    gone: Cell<u64>,
}

struct Name {
    /// None if a reading did not find the key.
    text: Option<Box<[u8]>>,
    read_ns: u64,
}

impl<'s, L: Lookup> RefreshingLookup<'s, L> {
    /// Uses lookup `id` of `base`, and `read` for keys that it does not have. Keys without a name are looked up again
    /// after `nameless_ns`.
    pub(crate) fn new(
        base: Lookups<'s>,
        id: LookupId,
        nameless_ns: u64,
        met: fn(&L, Key) -> bool,
        read: impl Fn(Key) -> Option<L> + 's,
    ) -> RefreshingLookup<'s, L> {
        RefreshingLookup {
            base,
            id,
            read: Box::new(read),
            met,
            nameless_ns,
            now_ns: sys::clock::monotonic_ns,
            newest: RefCell::new(None),
            names: AppendMap::new(NAMES_MAX),
            forgotten: HashSet::new(),
            is_all_forgotten: false,
            share: Share::one_in(SHARE_OF_TIME, CREDIT_NS_MAX),
            missing: Cell::new(0),
            gone: Cell::new(0),
        }
    }

    /// Starts a new batch of rows.
    fn renew(&mut self) {
        self.names.renew();
    }

    /// Forgets these keys, because they have a new meaning, and all cached names, which may also be old.
    fn forget(&mut self, keys: impl Iterator<Item = Key>) {
        let (base, id) = (self.base, self.id);
        self.forgotten.extend(keys.filter(|key| !base.value(id, *key).is_null()));
        self.names.clear();
        self.newest.take();
    }

    /// Forgets all keys, because any of them may have a new meaning.
    fn forget_all(&mut self) {
        self.is_all_forgotten = true;
        self.names.clear();
        self.newest.take();
    }

    /// Forgets all keys if the share of the time allows another reading now; returns true if it does.
    fn try_forget_all(&mut self) -> bool {
        let may_read = self.share.may_start((self.now_ns)());
        if may_read {
            self.forget_all();
        }
        may_read
    }

    /// Number of cells left empty because it was too soon for another reading.
    fn missing(&self) -> u64 {
        self.missing.get()
    }

    /// Number of keys whose object had disappeared before a reading.
    fn gone(&self) -> u64 {
        self.gone.get()
    }

    /// Looks up a key without a current reading.
    fn find(&self, key: Key, is_new: bool) -> Value<'_> {
        let known = self.newest.borrow().as_ref().and_then(|reading| text_of(reading, key));
        if known.is_some() && !self.names.is_full() {
            return self.keep(key, known);
        }
        let start_ns = (self.now_ns)();
        if self.names.is_full() || !self.share.may_start(start_ns) {
            self.missing.set(self.missing.get() + u64::from(is_new));
            return Value::Null;
        }
        let reading = (self.read)(key);
        self.share.charge((self.now_ns)().saturating_sub(start_ns));
        let text = reading.as_ref().and_then(|reading| text_of(reading, key));
        let is_gone = is_new && reading.as_ref().is_some_and(|reading| !(self.met)(reading, key));
        self.gone.set(self.gone.get() + u64::from(is_gone));
        if reading.is_some() {
            self.newest.replace(reading);
        }
        self.keep(key, text)
    }

    fn keep(&self, key: Key, text: Option<Box<[u8]>>) -> Value<'_> {
        let name = self.names.push(key, Name { text, read_ns: (self.now_ns)() });
        Value::text(name.and_then(|name| name.text.as_deref()))
    }
}

fn text_of(lookup: &impl Lookup, key: Key) -> Option<Box<[u8]>> {
    match lookup.value(key) {
        Value::Bytes(text) => Some(text.into()),
        _ => None,
    }
}

impl<L: Lookup> Lookup for RefreshingLookup<'_, L> {
    fn value(&self, key: Key) -> Value<'_> {
        let known = self.base.value(self.id, key);
        let is_forgotten = self.is_all_forgotten || !self.forgotten.is_empty() && self.forgotten.contains(&key);
        if !known.is_null() && !is_forgotten {
            return known;
        }
        match self.names.newest(&key) {
            Some(Name { text: Some(text), .. }) => Value::Bytes(text),
            Some(name) if (self.now_ns)().saturating_sub(name.read_ns) < self.nameless_ns => Value::Null,
            Some(_) => self.find(key, false),
            None => self.find(key, true),
        }
    }
}

/// Lookups for objects that may be newer than the run: namespaces, users, cgroups, containers.
pub(crate) struct RefreshingLookups<'s> {
    users: RefreshingLookup<'s, Users>,
    passwd: ChangedFile,
    namespaces: RefreshingLookup<'s, NetnsNames>,
    /// Detects that namespaces got or lost a name: the kernel gives the inode of a removed namespace to the next one.
    /// `None` in a replay.
    mounts: Option<MountsWatch>,
    /// True if mounts have changed since names were forgotten. Names are kept until they can be read again, so that a
    /// user who mounts file systems fast empties no cells.
    names_may_be_old: bool,
    groups: RefreshingLookup<'s, Cgroups>,
    /// Lookups for containers, pods and units.
    places: [(LookupId, RefreshingLookup<'s, Place>); 3],
}

impl<'s> RefreshingLookups<'s> {
    /// Reads nothing yet; `base` has the lookups read at the start.
    pub(crate) fn new(host: &'s Host, base: Lookups<'s>) -> RefreshingLookups<'s> {
        let names = move |key| match key {
            Key::Id(inode) => NetnsNames::read(host, &[inode]).ok(),
            _ => None,
        };
        // A cgroup missing at its lookup has been removed, and its id is never reused.
        let for_ever = u64::MAX;
        let place = |id, part: Part| {
            let read = move |_| {
                let groups = Cgroups::read(host).ok()?;
                let containers = Containers::read(host, std::iter::empty(), Some(&groups));
                Some(Place { containers, groups, part })
            };
            (id, RefreshingLookup::new(base, id, for_ever, Place::met, read))
        };
        RefreshingLookups {
            users: RefreshingLookup::new(base, LookupId::Users, NAMELESS_NS, |_, _| true, |_| Users::read(host).ok()),
            passwd: ChangedFile::new(host.is_replay()),
            // A namespace without a name is shown by its inode.
            namespaces: RefreshingLookup::new(base, LookupId::Netns, NAMELESS_NS, |_, _| true, names),
            names_may_be_old: false,
            mounts: (!host.is_replay()).then(|| MountsWatch::open().ok()).flatten(),
            groups: RefreshingLookup::new(base, LookupId::Cgroups, for_ever, has_path, move |_| {
                Cgroups::read(host).ok()
            }),
            places: [
                place(LookupId::Containers, |containers| containers.names()),
                place(LookupId::Pods, |containers| containers.pods()),
                place(LookupId::Units, |containers| containers.units()),
            ],
        }
    }

    /// Returns `base` with these lookups in place of its own.
    pub(crate) fn over<'l>(&'l self, base: Lookups<'l>) -> Lookups<'l> {
        let all = [
            (LookupId::Users, &self.users as &dyn Lookup),
            (LookupId::Netns, &self.namespaces),
            (LookupId::Cgroups, &self.groups),
        ];
        let places = self.places.iter().map(|(id, place)| (*id, place as &dyn Lookup));
        let had = all.into_iter().chain(places).filter(|(id, _)| base.contains(*id));
        had.fold(base, |lookups, (id, lookup)| lookups.with_lookup(id, lookup))
    }

    /// Starts a new batch of rows; nothing borrows from the lookups any more.
    pub(crate) fn renew(&mut self) {
        self.users.renew();
        if self.passwd.has_changed() {
            self.users.forget_all();
        }
        self.namespaces.renew();
        self.names_may_be_old |= self.mounts.as_ref().is_some_and(MountsWatch::have_changed);
        self.names_may_be_old = self.names_may_be_old && !self.namespaces.try_forget_all();
        self.groups.renew();
        self.places.iter_mut().for_each(|(_, place)| place.renew());
    }

    /// Forgets namespaces with these inodes, which were removed or renamed.
    pub(crate) fn forget_namespaces(&mut self, inodes: Vec<u64>) {
        if !inodes.is_empty() {
            self.namespaces.forget(inodes.into_iter().map(Key::Id));
        }
    }

    /// Reports cells that stayed empty although a name may exist.
    pub(crate) fn tell(&self, stats: &mut Accounting) {
        let places = || self.places.iter().map(|(_, place)| place);
        let share = 100 / SHARE_OF_TIME;
        let late = |what| {
            format!("columns without the names of new {what}: reading names may take at most {share} % of the time")
        };
        let gone = |what| format!("{what} without names: removed before they were read, or not visible here");
        let parts = "containers, pods or units";
        let all = [
            (self.users.missing(), late("users")),
            (self.namespaces.missing(), late("network namespaces")),
            (self.groups.missing(), late("cgroups")),
            (places().map(RefreshingLookup::missing).sum(), late(parts)),
            (self.groups.gone(), gone("cgroups")),
            // One cgroup can be counted by three lookups.
            (places().map(RefreshingLookup::gone).max().unwrap_or(0), gone("cgroups with containers, pods or units")),
        ];
        for (count, text) in all.into_iter().filter(|(count, _)| *count > 0) {
            stats.incomplete(count, text);
        }
    }
}

/// Detects that /etc/passwd was replaced, or that its time or size has changed. Checks once a second.
struct ChangedFile {
    is_replay: bool,
    looked_ns: u64,
    seen: Option<(u64, i128, u64)>,
}

impl ChangedFile {
    fn new(is_replay: bool) -> ChangedFile {
        let mut file = ChangedFile { is_replay, looked_ns: 0, seen: None };
        file.has_changed();
        file
    }

    fn has_changed(&mut self) -> bool {
        let now_ns = clock::monotonic_ns();
        if self.is_replay || self.looked_ns != 0 && now_ns.saturating_sub(self.looked_ns) < NAMELESS_NS {
            return false;
        }
        let is_first = self.looked_ns == 0;
        self.looked_ns = now_ns;
        let seen = std::fs::metadata("/etc/passwd").ok().map(|file| {
            let changed_ns = i128::from(file.ctime()) * 1_000_000_000 + i128::from(file.ctime_nsec());
            (file.ino(), changed_ns, file.len())
        });
        let before = std::mem::replace(&mut self.seen, seen);
        !is_first && before != seen
    }
}

type Part = fn(&Containers) -> &dyn Lookup;

/// One of the three lookups on cgroups.
struct Place {
    containers: Containers,
    groups: Cgroups,
    part: Part,
}

impl Place {
    fn met(&self, key: Key) -> bool {
        match key {
            Key::Pair(group, 0) => self.groups.path(group).is_some(),
            _ => true,
        }
    }
}

fn has_path(groups: &Cgroups, key: Key) -> bool {
    !groups.value(key).is_null()
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
    use sys::WORK_NS_MIN;

    /// Has a name for each key up to a number.
    struct UpTo(u64);

    impl Lookup for UpTo {
        fn value(&self, key: Key) -> Value<'_> {
            match key {
                Key::Id(id) if id <= self.0 => Value::Bytes(b"name"),
                _ => Value::Null,
            }
        }
    }

    const NAME: Value<'static> = Value::Bytes(b"name");

    #[test]
    fn reads_again_for_what_it_does_not_know() {
        let asked = RefCell::new(Vec::new());
        let base = UpTo(1);
        let lookups = Lookups::empty().with_lookup(LookupId::Cgroups, &base);
        let mut lookup = RefreshingLookup::new(
            lookups,
            LookupId::Cgroups,
            NAMELESS_NS,
            |_, _| true,
            |key| {
                asked.borrow_mut().push(key);
                Some(UpTo(3))
            },
        );
        lookup.now_ns = || 5;
        assert_eq!(lookup.value(Key::Id(1)), NAME);
        assert!(asked.borrow().is_empty());
        assert_eq!((lookup.value(Key::Id(2)), lookup.value(Key::Id(2))), (NAME, NAME));
        assert_eq!(lookup.value(Key::Id(3)), NAME, "the same reading knew it");
        assert_eq!((lookup.value(Key::Id(4)), lookup.value(Key::Id(4))), (Value::Null, Value::Null));
        assert_eq!(*asked.borrow(), [Key::Id(2), Key::Id(4)]);
        lookup.now_ns = || 5 + NAMELESS_NS;
        assert_eq!(lookup.value(Key::Id(4)), Value::Null);
        assert_eq!((asked.borrow().len(), lookup.missing()), (3, 0));
    }

    #[test]
    fn what_was_forgotten_is_read_again() {
        let base = UpTo(9);
        let lookups = Lookups::empty().with_lookup(LookupId::Netns, &base);
        let mut lookup = RefreshingLookup::new(lookups, LookupId::Netns, NAMELESS_NS, |_, _| true, |_| Some(UpTo(1)));
        assert_eq!((lookup.value(Key::Id(1)), lookup.value(Key::Id(2))), (NAME, NAME));
        lookup.forget([1, 2].map(Key::Id).into_iter());
        assert_eq!((lookup.value(Key::Id(1)), lookup.value(Key::Id(2))), (NAME, Value::Null));
        assert_eq!(lookup.value(Key::Id(3)), NAME, "as it was");
    }

    /// A user who mounts file systems fast must not empty the cells of namespaces.
    #[test]
    fn names_are_kept_until_they_can_be_read_again() {
        thread_local!(static NOW_NS: Cell<u64> = const { Cell::new(5) });
        let readings = Cell::new(0);
        let read = |_| {
            readings.set(readings.get() + 1);
            NOW_NS.set(NOW_NS.get() + CREDIT_NS_MAX);
            Some(UpTo(1))
        };
        let mut lookup = RefreshingLookup::new(Lookups::empty(), LookupId::Netns, NAMELESS_NS, |_, _| true, read);
        lookup.now_ns = || NOW_NS.get();
        let forgotten = (0..1_000).filter(|_| {
            NOW_NS.set(NOW_NS.get() + CREDIT_NS_MAX / 100);
            let is_forgotten = lookup.try_forget_all();
            assert_eq!(lookup.value(Key::Id(1)), NAME);
            is_forgotten
        });
        let forgotten = forgotten.count();
        assert!((2..100).contains(&forgotten) && readings.get() >= forgotten, "{forgotten}, {readings:?}");
        assert_eq!(lookup.missing(), 0);
    }

    #[test]
    fn issue_10_readings_are_bounded_by_their_rate_and_what_is_missing_is_counted() {
        thread_local!(static NOW_NS: Cell<u64> = const { Cell::new(5) });
        let asked = Cell::new(0u64);
        let mut lookup = RefreshingLookup::new(
            Lookups::empty(),
            LookupId::Cgroups,
            u64::MAX,
            |_, _| true,
            |key| {
                asked.set(asked.get() + 1);
                NOW_NS.set(NOW_NS.get() + WORK_NS_MIN);
                let Key::Id(id) = key else { return None };
                Some(UpTo(id))
            },
        );
        lookup.now_ns = || NOW_NS.get();
        let mut key = 0;
        let mut wave = |lookup: &RefreshingLookup<'_, UpTo>, keys: u64| {
            let named = (0..keys).filter(|_| {
                key += 1;
                lookup.value(Key::Id(key)) == NAME
            });
            named.count() as u64
        };
        let first = wave(&lookup, 1_000);
        assert!((200..=215).contains(&first), "{first}");
        assert_eq!(lookup.missing(), 1_000 - first);
        // Far more than the readings allowed at once, as long as there is time for them.
        for _ in 0..100 {
            NOW_NS.set(NOW_NS.get() + 10 * WORK_NS_MIN * SHARE_OF_TIME);
            assert_eq!(wave(&lookup, 10), 10);
            lookup.renew();
        }
        assert_eq!((asked.get(), lookup.missing()), (first + 1_000, 1_000 - first));
    }

    #[test]
    fn issue_10_what_is_gone_before_it_is_read_is_counted() {
        let met = |reading: &UpTo, key| !reading.value(key).is_null();
        let lookup = RefreshingLookup::new(Lookups::empty(), LookupId::Cgroups, u64::MAX, met, |_| Some(UpTo(3)));
        assert_eq!((lookup.value(Key::Id(3)), lookup.gone()), (NAME, 0));
        assert_eq!((lookup.value(Key::Id(4)), lookup.value(Key::Id(4))), (Value::Null, Value::Null));
        assert_eq!((lookup.value(Key::Id(5)), lookup.gone(), lookup.missing()), (Value::Null, 2, 0));
        let unreadable: RefreshingLookup<'_, UpTo> =
            RefreshingLookup::new(Lookups::empty(), LookupId::Cgroups, u64::MAX, met, |_| None);
        assert_eq!((unreadable.value(Key::Id(4)), unreadable.gone()), (Value::Null, 0), "said elsewhere");
    }

    #[test]
    fn issue_10_cells_that_stay_empty_cost_the_run_its_completeness() {
        let host = Host::live();
        let refreshing = RefreshingLookups::new(&host, Lookups::empty());
        let mut stats = Accounting::default();
        refreshing.tell(&mut stats);
        assert!(!stats.incomplete && stats.why.is_empty());
        refreshing.groups.missing.set(3);
        refreshing.groups.gone.set(7);
        refreshing.places[0].1.missing.set(1);
        refreshing.places[2].1.missing.set(1);
        refreshing.tell(&mut stats);
        let said: Vec<(u64, &str)> = stats.why.iter().map(|why| (why.count, &*why.text)).collect();
        assert_eq!((stats.incomplete, said.len(), said[0].0, said[1].0, said[2].0), (true, 3, 3, 2, 7));
        assert!(said[0].1.starts_with("columns without the names of new cgroups"), "{said:?}");
    }
}
