//! Process data, read when a row first names the process, for runs that see processes as they appear.
//!
//! Data belongs to a process and its program, not to a pid: if a row has the start time of its process, or a time when
//! it was seen alive, data of another process with that pid is not used. Before the first use in each batch of rows,
//! the start time and the program are compared with those at the time of reading, and after a second the data is read
//! again, because a process may rewrite its command line.

use crate::append_map::AppendMap;
use host::processes::STUCK;
use host::{Containers, Identity, ProcessParts, Processes};
use record::{Accounting, Key, Lookup, LookupId, Lookups, Value};
use std::cell::Cell;
use std::rc::Rc;
use sys::Host;

/// Maximum number of readings kept, about 1 KiB each; cells may borrow from them until the batch of rows ends. If more
/// than half are used at the end of a batch, all are dropped. Further processes in one batch have empty cells, which
/// are counted.
///
/// Bound: processes in a batch of `--follow`. Beyond: cells of further processes are empty; counted (exit code 3). By:
/// a local user with as many processes.
const READINGS_MAX: usize = 1 << 16;

/// Data is read again after this time.
const FRESH_NS: u64 = 1_000_000_000;

/// The data of each process at its first lookup; None for a process that had already ended.
pub(crate) struct ProcessCache<'s, F> {
    read: Box<dyn Fn(u32) -> F + 's>,
    identity: Box<dyn Fn(u32) -> Option<Identity> + 's>,
    /// Time in ns until data is read again. Unlimited in a replay, where time does not pass.
    fresh_ns: u64,
    now_ns: fn() -> u64,
    readings: AppendMap<Process, Reading<F>>,
    batch: u64,
    missing: Cell<u64>,
    /// Number of processes that had ended before they were read.
    gone: Cell<u64>,
    /// Command lines that did not arrive.
    stuck: Rc<Cell<u64>>,
}

/// A pid, and the start time in the form used by [`Identity::is_of`].
type Process = (u32, u32);

/// A process, with the additional information that a row has.
#[derive(Clone, Copy)]
struct Wanted {
    process: Process,
    /// A time when it was alive, by CLOCK_BOOTTIME; 0 if the row has none.
    seen_ns: u64,
}

struct Reading<F> {
    /// `None` if the process had ended.
    facts: Option<F>,
    identity: Option<Identity>,
    read_ns: u64,
    /// The batch in which the data was last verified.
    checked: Cell<u64>,
    /// When the process was last found alive, by CLOCK_BOOTTIME; for one that had ended, when a row saw it.
    alive_ns: Cell<u64>,
}

impl<'s> ProcessCache<'s, Processes> {
    /// A cache of the data in /proc. Reads nothing yet.
    pub(crate) fn processes(host: &'s Host, parts: ProcessParts) -> ProcessCache<'s, Processes> {
        let stuck = Rc::new(Cell::new(0));
        let counted = Rc::clone(&stuck);
        let read = move |pid| {
            let process = Processes::read_one(host, pid, parts).unwrap_or_default();
            counted.set(counted.get() + u64::from(process.report().stuck));
            process
        };
        ProcessCache { stuck, ..ProcessCache::by(host, read) }
    }

    /// The columns from this cache.
    pub(crate) fn columns(&self) -> [(LookupId, Column<'_, Processes>); 2] {
        let column = |part| Column { of: self, part, id: LookupId::Cmdlines, below: Lookups::empty() };
        [
            (LookupId::Cmdlines, column(|process| process.cmdlines())),
            (LookupId::ContainerPids, column(|process| process.container_pids())),
        ]
    }
}

impl<'s> ProcessCache<'s, Containers> {
    /// A cache of the containers, pods and units of processes. Reads nothing yet.
    pub(crate) fn places(host: &'s Host) -> ProcessCache<'s, Containers> {
        let parts = ProcessParts { cgroups: true, ..ProcessParts::default() };
        ProcessCache::by(host, move |pid| {
            let process = Processes::read_one(host, pid, parts).unwrap_or_default();
            Containers::read(host, process.cgroups(), None)
        })
    }

    /// The columns from this cache; `below` answers keys that are not processes.
    pub(crate) fn columns<'l>(&'l self, below: Lookups<'l>) -> [(LookupId, Column<'l, Containers>); 3] {
        let column = |id, part| (id, Column { of: self, part, id, below });
        [
            column(LookupId::Containers, |place| place.names()),
            column(LookupId::Pods, |place| place.pods()),
            column(LookupId::Units, |place| place.units()),
        ]
    }
}

impl<'s, F> ProcessCache<'s, F> {
    fn by(host: &'s Host, read: impl Fn(u32) -> F + 's) -> ProcessCache<'s, F> {
        ProcessCache {
            read: Box::new(read),
            identity: Box::new(|pid| Identity::read(host, pid).ok()),
            fresh_ns: if host.is_replay() { u64::MAX } else { FRESH_NS },
            now_ns: sys::clock::monotonic_ns,
            readings: AppendMap::new(READINGS_MAX),
            batch: 0,
            missing: Cell::new(0),
            gone: Cell::new(0),
            stuck: Rc::default(),
        }
    }

    /// Starts a new batch of rows: data is verified again, and dropped if there is too much of it.
    pub(crate) fn renew(&mut self) {
        self.batch += 1;
        self.readings.renew();
    }

    /// Reports missing data.
    pub(crate) fn tell(&self, stats: &mut Accounting) {
        if self.missing.get() > 0 {
            let text = format!("process columns are empty: more than {READINGS_MAX} processes at a time");
            stats.incomplete(self.missing.get(), text);
        }
        if self.stuck.get() > 0 {
            stats.incomplete = true;
            stats.add_reason(self.stuck.get(), STUCK);
        }
        if self.gone.get() > 0 {
            let text = "processes without command line or container: they ended before they were read, or are not \
                        visible here";
            stats.incomplete(self.gone.get(), text);
        }
    }

    fn of(&self, wanted: Wanted) -> Option<&F> {
        let process = wanted.process;
        if let Some(reading) = self.readings.newest(&process).filter(|reading| self.is_true(wanted, reading)) {
            reading.checked.set(self.batch);
            return reading.facts.as_ref();
        }
        if self.readings.is_full() {
            self.missing.set(self.missing.get() + 1);
            return None;
        }
        let now_ns = self.boottime_ns();
        // The identity is read first: if the program is replaced in between, the data is not used for the new one.
        let identity = (self.identity)(process.0).filter(|identity| wanted.is(identity));
        let alive_ns = if identity.is_some() { now_ns } else { wanted.seen_ns };
        let facts = (identity.is_some() || wanted.is_any()).then(|| (self.read)(process.0));
        self.gone.set(self.gone.get() + u64::from(identity.is_none()));
        let checked = Cell::new(self.batch);
        let reading = Reading { identity, facts, read_ns: (self.now_ns)(), checked, alive_ns: Cell::new(alive_ns) };
        self.readings.push(process, reading)?.facts.as_ref()
    }

    /// True if the reading is valid for the wanted process. A process that has ended keeps its data.
    fn is_true(&self, wanted: Wanted, reading: &Reading<F>) -> bool {
        // It owned the pid as long as it was known to be alive.
        let was_alive = wanted.seen_ns <= reading.alive_ns.get();
        match reading.identity {
            None if wanted.seen_ns > 0 => return was_alive,
            Some(identity) if !wanted.is(&identity) => return false,
            _ => {}
        }
        if reading.checked.get() == self.batch && was_alive {
            return true;
        }
        let alive_ns = self.boottime_ns();
        let now = (self.identity)(wanted.process.0).filter(|now| wanted.is(now));
        if now.is_some() && now == reading.identity {
            reading.alive_ns.set(alive_ns);
            return reading.checked.get() == self.batch || self.is_fresh(reading);
        }
        now.is_none() && was_alive
    }

    fn is_fresh(&self, reading: &Reading<F>) -> bool {
        (self.now_ns)().saturating_sub(reading.read_ns) < self.fresh_ns
    }

    /// The current time; in a replay every process stays alive.
    fn boottime_ns(&self) -> u64 {
        if self.fresh_ns == u64::MAX { u64::MAX } else { sys::clock::boottime_ns() }
    }
}

impl Wanted {
    /// The current owner of the pid.
    fn any(pid: u32) -> Wanted {
        Wanted { process: (pid, 0), seen_ns: 0 }
    }

    fn is_any(self) -> bool {
        self.process.1 == 0 && self.seen_ns == 0
    }

    fn is(self, identity: &Identity) -> bool {
        let was_there = self.seen_ns == 0 || !identity.started_after(self.seen_ns);
        was_there && identity.is_of(self.process.1) && !identity.has_ended
    }
}

/// One kind of data, as a lookup.
pub(crate) struct Column<'p, F> {
    of: &'p ProcessCache<'p, F>,
    part: fn(&F) -> &dyn Lookup,
    id: LookupId,
    below: Lookups<'p>,
}

impl<F> Lookup for Column<'_, F> {
    fn value(&self, key: Key) -> Value<'_> {
        let wanted = match key {
            Key::Id(pid) => u32::try_from(pid).ok().map(Wanted::any),
            Key::Process { pid, seen_ns } => Some(Wanted { process: (pid, 0), seen_ns }),
            // If the start time is 0, the first number is a cgroup's.
            Key::Pair(pid, started @ 1..) => {
                u32::try_from(pid).ok().map(|pid| Wanted { process: (pid, started), seen_ns: 0 })
            }
            _ => return self.below.value(self.id, key),
        };
        let facts = wanted.and_then(|wanted| Some((wanted.process.0, self.of.of(wanted)?)));
        facts.map_or(Value::Null, |(pid, facts)| (self.part)(facts).value(Key::Id(pid.into())))
    }
}

/// Returns `base` with `columns` in place of the lookups that it already has.
pub(crate) fn over<'l, F>(base: Lookups<'l>, columns: &'l [(LookupId, Column<'l, F>)]) -> Lookups<'l> {
    let had = columns.iter().filter(|(id, _)| base.contains(*id));
    had.fold(base, |lookups, (id, column)| lookups.with_lookup(*id, column))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    fn parts() -> ProcessParts {
        ProcessParts { cmdlines: true, ..ProcessParts::default() }
    }

    #[test]
    fn each_process_is_read_once_a_batch() {
        let read = Cell::new(0);
        let host = Host::live();
        let mut process_cache = ProcessCache::by(&host, |pid| {
            read.set(read.get() + 1);
            Processes::read_one(&host, pid, parts()).unwrap_or_default()
        });
        process_cache.now_ns = || 5;
        let own = std::process::id();
        for _ in 0..3 {
            let columns = process_cache.columns();
            for _ in 0..2 {
                assert!(!columns[0].1.value(Key::Id(own.into())).is_null());
                assert!(columns[0].1.value(Key::Id((own + (1 << 30)).into())).is_null(), "there is no such process");
                assert!(columns[1].1.value(Key::Id(own.into())).is_null(), "not asked for");
            }
            process_cache.renew();
        }
        assert_eq!(read.get(), 2);
        process_cache.now_ns = || 5 + FRESH_NS;
        process_cache.of(Wanted::any(own)).unwrap();
        assert_eq!(read.get(), 3, "it may have changed its command line");
    }

    #[test]
    fn issue_10_after_exec_the_new_program_is_shown() {
        let host = Host::live();
        let mut process_cache = ProcessCache::processes(&host, parts());
        process_cache.now_ns = || 5;
        let mut child = Command::new("sh")
            .args(["-c", "echo; read x; exec sleep 60"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let pid = child.id();
        let shown =
            |process_cache: &ProcessCache<'_, Processes>| match process_cache.columns()[0].1.value(Key::Id(pid.into()))
            {
                Value::Bytes(words) => words.to_vec(),
                _ => Vec::new(),
            };
        assert_eq!(shown(&process_cache), b"sh -c echo; read x; exec sleep 60");
        drop(child.stdin.take());
        testkit::wait_until("it sleeps", || std::fs::read(format!("/proc/{pid}/cmdline")).unwrap() == b"sleep\x0060\0");
        assert_eq!(shown(&process_cache), b"sh -c echo; read x; exec sleep 60", "rows of this batch borrow it");
        process_cache.renew();
        assert_eq!(shown(&process_cache), b"sleep 60");
        child.kill().unwrap();
        child.wait().unwrap();
        process_cache.renew();
        assert_eq!(shown(&process_cache), b"sleep 60", "it has ended, and nobody else has the number");
    }

    #[test]
    fn issue_10_another_process_with_the_number_lends_nothing() {
        let host = Host::live();
        let process_cache = ProcessCache::processes(&host, parts());
        let own = std::process::id();
        let boot_ns = Identity::read(&host, own).unwrap().started * 10_000_000;
        let started = (boot_ns >> 20) as u32;
        let cell = |started| process_cache.columns()[0].1.value(Key::Pair(own.into(), started)).is_null();
        assert!(!cell(started) && process_cache.gone.get() == 0);
        assert!(cell(started - 1000) && cell(started - 1000) && cell(started + 1000), "it has another start");
        let mut stats = Accounting::default();
        process_cache.tell(&mut stats);
        assert_eq!((stats.incomplete, stats.why[0].count), (true, 2));
    }

    #[test]
    fn issue_10_who_started_after_an_owner_was_seen_lends_nothing() {
        let host = Host::live();
        let mut process_cache = ProcessCache::processes(&host, parts());
        let own = std::process::id();
        let start_ns = Identity::read(&host, own).unwrap().started * 10_000_000;
        let is_null = |cache: &ProcessCache<'_, Processes>, seen_ns| {
            cache.columns()[0].1.value(Key::Process { pid: own, seen_ns }).is_null()
        };
        assert!(!is_null(&process_cache, start_ns) && process_cache.gone.get() == 0);
        for _ in 0..3 {
            assert!(is_null(&process_cache, start_ns - 10_000_000), "the number was another's then");
        }
        assert_eq!(process_cache.gone.get(), 1, "it is looked for once");
        assert!(!is_null(&process_cache, sys::clock::boottime_ns()));
        // It has ended, and the row is from a time when another process had the pid.
        process_cache.identity = Box::new(|_| None);
        process_cache.renew();
        assert!(!is_null(&process_cache, start_ns), "what was read while it lived");
        assert!(is_null(&process_cache, sys::clock::boottime_ns()), "it may have ended before");
    }

    #[test]
    fn issue_10_a_lookup_without_a_waiting_row_is_counted() {
        let host = Host::live();
        let process_cache = ProcessCache::processes(&host, parts());
        let mut child = Command::new("true").spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        testkit::wait_until("it ends", || std::fs::read_to_string(&stat).unwrap().contains(") Z "));
        let seen_ns = sys::clock::boottime_ns();
        assert!(process_cache.columns()[0].1.value(Key::Process { pid: child.id(), seen_ns }).is_null());
        assert_eq!(process_cache.gone.get(), 1);
        child.wait().unwrap();
    }

    #[test]
    fn issue_10_many_processes_are_dropped_between_batches_only() {
        let host = Host::live();
        let mut process_cache = ProcessCache::by(&host, |_| ());
        process_cache.identity = Box::new(|_| None);
        for pid in 0..READINGS_MAX as u32 + 7 {
            let _ = process_cache.of(Wanted::any(pid));
        }
        let mut stats = Accounting::default();
        process_cache.tell(&mut stats);
        assert_eq!((stats.incomplete, stats.why[0].count), (true, 7));
        process_cache.renew();
        assert!(process_cache.of(Wanted::any(READINGS_MAX as u32 + 6)).is_some());
        assert_eq!(process_cache.missing.get(), 7);
    }

    #[test]
    fn groups_are_not_asked_of_processes() {
        struct Group;
        impl Lookup for Group {
            fn value(&self, key: Key) -> Value<'_> {
                if key == Key::Pair(5, 0) { Value::U64(5) } else { Value::Null }
            }
        }
        let host = Host::live();
        let process_cache = ProcessCache::by(&host, |_| -> Containers { unreachable!() });
        let below = Lookups::empty().with_lookup(LookupId::Units, &Group);
        let columns = process_cache.columns(below);
        let lookups = over(below, &columns);
        assert_eq!(lookups.value(LookupId::Units, Key::Pair(5, 0)), Value::U64(5));
        assert!(!lookups.contains(LookupId::Pods), "nobody asked for them");
    }
}
