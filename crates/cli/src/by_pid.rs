//! Facts about processes that are read when a row first names them: for runs that meet processes as they come.

use host::{Containers, ProcessParts, Processes};
use record::{Key, Lookup, LookupId, Lookups, Value};
use std::cell::{Cell, OnceCell};
use sys::Host;

/// Processes kept at most: each stays in memory, because cells may borrow from it. Later ones have no cells.
const PROCESSES_MAX: u32 = 1 << 16;
/// Chains that they are kept in.
const CHAINS: usize = 1 << 12;

/// What was read of each process when it was first asked for; of one that was gone by then, nothing.
///
/// A number that is given to another process during the run keeps the first one's facts.
pub(crate) struct ByPid<'s, F> {
    read: Box<dyn Fn(u32) -> F + 's>,
    chains: Vec<Place<F>>,
    kept: Cell<u32>,
}

type Place<F> = OnceCell<Box<Link<F>>>;

struct Link<F> {
    pid: u32,
    facts: F,
    next: Place<F>,
}

impl<'s> ByPid<'s, Processes> {
    /// What /proc tells. Reads nothing yet.
    pub(crate) fn processes(host: &'s Host, parts: ProcessParts) -> ByPid<'s, Processes> {
        ByPid::by(move |pid| Processes::read(host, &[pid], parts).unwrap_or_default())
    }

    /// The columns that come from here.
    pub(crate) fn columns(&self) -> [(LookupId, Column<'_, Processes>); 2] {
        let column = |part| Column { of: self, part, id: LookupId::Cmdlines, below: Lookups::none() };
        [
            (LookupId::Cmdlines, column(|process| process.cmdlines())),
            (LookupId::ContainerPids, column(|process| process.container_pids())),
        ]
    }
}

impl<'s> ByPid<'s, Containers> {
    /// Where processes run. Reads nothing yet.
    pub(crate) fn places(host: &'s Host) -> ByPid<'s, Containers> {
        let parts = ProcessParts { cgroups: true, ..ProcessParts::default() };
        ByPid::by(move |pid| {
            let process = Processes::read(host, &[pid], parts).unwrap_or_default();
            Containers::read(host, process.cgroups(), None)
        })
    }

    /// The columns that come from here; what is not asked for by a process `below` answers.
    pub(crate) fn columns<'l>(&'l self, below: Lookups<'l>) -> [(LookupId, Column<'l, Containers>); 3] {
        let column = |id, part| (id, Column { of: self, part, id, below });
        [
            column(LookupId::Containers, |place| place.names()),
            column(LookupId::Pods, |place| place.pods()),
            column(LookupId::Units, |place| place.units()),
        ]
    }
}

impl<'s, F> ByPid<'s, F> {
    fn by(read: impl Fn(u32) -> F + 's) -> ByPid<'s, F> {
        let chains = std::iter::repeat_with(OnceCell::new).take(CHAINS).collect();
        ByPid { read: Box::new(read), chains, kept: Cell::new(0) }
    }

    fn of(&self, pid: u64) -> Option<&F> {
        let pid = u32::try_from(pid).ok()?;
        let mut place = self.chains.get(pid as usize % CHAINS)?;
        while let Some(link) = place.get() {
            if link.pid == pid {
                return Some(&link.facts);
            }
            place = &link.next;
        }
        if self.kept.get() >= PROCESSES_MAX {
            return None;
        }
        self.kept.set(self.kept.get() + 1);
        let link = Link { pid, facts: (self.read)(pid), next: OnceCell::new() };
        Some(&place.get_or_init(|| Box::new(link)).facts)
    }
}

/// One of the facts, as a lookup.
pub(crate) struct Column<'p, F> {
    of: &'p ByPid<'p, F>,
    part: fn(&F) -> &dyn Lookup,
    id: LookupId,
    below: Lookups<'p>,
}

impl<F> Lookup for Column<'_, F> {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Id(pid) => self.of.of(pid).map_or(Value::Null, |facts| (self.part)(facts).value(key)),
            _ => self.below.value(self.id, key),
        }
    }
}

/// `base` with `columns` in the place of what it has.
pub(crate) fn over<'l, F>(base: Lookups<'l>, columns: &'l [(LookupId, Column<'l, F>)]) -> Lookups<'l> {
    let had = columns.iter().filter(|(id, _)| base.has(*id));
    had.fold(base, |lookups, (id, column)| lookups.with(*id, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_is_read_once_and_many_share_a_chain() {
        let read = Cell::new(0);
        let parts = ProcessParts { cmdlines: true, ..ProcessParts::default() };
        let host = Host::live();
        let by_pid = ByPid::by(|pid| {
            read.set(read.get() + 1);
            Processes::read(&host, &[pid], parts).unwrap_or_default()
        });
        let columns = by_pid.columns();
        let own = std::process::id();
        let same_chain = own.wrapping_add(1 << 30);
        for _ in 0..2 {
            assert!(!columns[0].1.value(Key::Id(own.into())).is_null());
            assert!(columns[0].1.value(Key::Id(same_chain.into())).is_null(), "there is no such process");
            assert!(columns[1].1.value(Key::Id(own.into())).is_null(), "not asked for");
        }
        assert_eq!(read.get(), 2);
    }

    #[test]
    fn groups_are_not_asked_of_processes() {
        struct Group;
        impl Lookup for Group {
            fn value(&self, key: Key) -> Value<'_> {
                if key == Key::Pair(5, 0) { Value::U64(5) } else { Value::Null }
            }
        }
        let by_pid = ByPid::by(|_| -> Containers { unreachable!() });
        let below = Lookups::none().with(LookupId::Units, &Group);
        let columns = by_pid.columns(below);
        let lookups = over(below, &columns);
        assert_eq!(lookups.value(LookupId::Units, Key::Pair(5, 0)), Value::U64(5));
        assert!(!lookups.has(LookupId::Pods), "nobody asked for them");
    }
}
