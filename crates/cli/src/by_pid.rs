//! Facts about processes that are read when a row first names them: for runs that meet processes as they come.

use host::{ProcessParts, Processes};
use record::{Key, Lookup, LookupId, Lookups, Value};
use std::cell::{Cell, OnceCell};
use sys::Host;

/// Processes kept at most: each stays in memory, because cells may borrow from it. Later ones have no cells.
const PROCESSES_MAX: u32 = 1 << 16;
/// Chains that they are kept in.
const CHAINS: usize = 1 << 12;

/// What /proc told of each process when it was first asked for; of one that was gone by then, nothing.
///
/// A number that is given to another process during the run keeps the first one's facts.
pub(crate) struct ByPid<'s> {
    read: Box<dyn Fn(u32) -> Processes + 's>,
    chains: Vec<Place>,
    kept: Cell<u32>,
}

type Place = OnceCell<Box<Link>>;

struct Link {
    pid: u32,
    process: Processes,
    next: Place,
}

impl<'s> ByPid<'s> {
    /// Reads nothing yet.
    pub(crate) fn new(host: &'s Host, parts: ProcessParts) -> ByPid<'s> {
        ByPid::by(move |pid| Processes::read(host, &[pid], parts).unwrap_or_default())
    }

    fn by(read: impl Fn(u32) -> Processes + 's) -> ByPid<'s> {
        let chains = std::iter::repeat_with(OnceCell::new).take(CHAINS).collect();
        ByPid { read: Box::new(read), chains, kept: Cell::new(0) }
    }

    fn of(&self, key: Key) -> Option<&Processes> {
        let Key::Id(pid) = key else { return None };
        let pid = u32::try_from(pid).ok()?;
        let mut place = self.chains.get(pid as usize % CHAINS)?;
        while let Some(link) = place.get() {
            if link.pid == pid {
                return Some(&link.process);
            }
            place = &link.next;
        }
        if self.kept.get() >= PROCESSES_MAX {
            return None;
        }
        self.kept.set(self.kept.get() + 1);
        let link = Link { pid, process: (self.read)(pid), next: OnceCell::new() };
        Some(&place.get_or_init(|| Box::new(link)).process)
    }

    /// The columns that come from here.
    pub(crate) fn columns(&self) -> [(LookupId, Column<'_>); 2] {
        [
            (LookupId::Cmdlines, Column { processes: self, part: |process| process.cmdlines() }),
            (LookupId::ContainerPids, Column { processes: self, part: |process| process.container_pids() }),
        ]
    }
}

/// One of the facts, as a lookup.
pub(crate) struct Column<'p> {
    processes: &'p ByPid<'p>,
    part: fn(&Processes) -> &dyn Lookup,
}

impl Lookup for Column<'_> {
    fn value(&self, key: Key) -> Value<'_> {
        self.processes.of(key).map_or(Value::Null, |process| (self.part)(process).value(key))
    }
}

/// `base` with `columns` in the place of what it has.
pub(crate) fn over<'l>(base: Lookups<'l>, columns: &'l [(LookupId, Column<'l>)]) -> Lookups<'l> {
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
}
