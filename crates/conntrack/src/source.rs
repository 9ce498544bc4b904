//! The source: a demand in, entries out, through whichever backend works.
use std::cell::RefCell;
use std::error::Error;
use std::fmt;

use netlink::DumpError;
use record::rows::{Conntrack, Expectation, Nat, nat_need as need};
use record::{
    Accounting, Demand, Each, Offer, RowCache, RowStats, Scan, Source, SourceError, SourceFault, Table, field_index,
};
use sys::{Errno, Host, Mode, NetNs, SysError, WalkError};

use crate::backends::bpf::cache::{self as bpf, BackendCache};
use crate::backends::bpf::chains::Chains;
use crate::backends::bpf::walk_filter::WalkFilter;
use crate::backends::netlink::dump::{CtTable, Dumped, KernelFilter, NetnsRef, dump_entries, dump_expectations, key};
use crate::backends::proc::file as proc_file;
use crate::backends::proc::line::parse_proc_line;
use crate::backends::rows::Rows;
use crate::backends::seen::{HandedOut, Seen};
use crate::choose::{Choice, Facts, PROC_LACKS, Recorded, Via, WalkVerdict, backends, choose};
use crate::labels::LabelNames;
use crate::pushdown::{Split, split};
use crate::sizes::Size;

/// How often a reading is begun again because the hash table was resized under it.
const RESIZED_RETRIES: u32 = 3;
const NOT_RECORDED: &str = "not in the recording (`netwren record FILE` records everything)";
const RESIZED: &str =
    "the hash table of connection tracking was resized again and again while it was read: entries may be missing";

/// What a [`ConntrackSource`] reads.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The backend; `None` chooses.
    pub via: Option<Via>,
    /// Inode of the network namespace that is read: it goes into every row and names the recording's streams.
    pub netns_id: u64,
    /// The table.
    pub table: CtTable,
}

impl Options {
    /// The table of entries, by any backend.
    pub fn new(netns_id: u64) -> Options {
        Options { via: None, netns_id, table: CtTable::Conntrack }
    }
}

/// The kernel's entries. Reads the calling thread's network namespace unless told otherwise.
#[derive(Debug, Clone)]
pub struct ConntrackSource<'h> {
    host: &'h Host,
    options: Options,
    /// The backend that the user wants, whatever `options` say where all namespaces are read.
    forced: Option<Via>,
    netns: Option<&'h NetNs>,
    cache: Option<&'h BackendCache>,
    /// Entries of every namespace, by the walk.
    all: bool,
}

impl<'h> ConntrackSource<'h> {
    /// Entries of the namespace that the calling thread is in.
    pub fn new(host: &'h Host, options: Options) -> ConntrackSource<'h> {
        ConntrackSource { host, options, forced: options.via, netns: None, cache: None, all: false }
    }

    /// Entries of another namespace, which is entered for the time of opening. Needs CAP_SYS_ADMIN.
    pub fn inside(mut self, netns: &'h NetNs) -> ConntrackSource<'h> {
        self.netns = Some(netns);
        self
    }

    /// With backends that stay open from one reading to the next. Without them the walk is loaded for each.
    pub fn with_cache(mut self, cache: &'h BackendCache) -> ConntrackSource<'h> {
        self.cache = Some(cache);
        self
    }

    /// Entries of every namespace in one pass: by the walk, or not at all.
    pub(crate) fn of_all(mut self) -> ConntrackSource<'h> {
        self.all = true;
        self.options.via = Some(Via::Bpf);
        self
    }

    /// Whether netlink reads what a walk leaves that breaks off. In a replay that is so if it was so then.
    pub(crate) fn is_followed(&self) -> bool {
        if self.host.is_replay() { self.recorded().netlink } else { self.options.via != Some(Via::Bpf) }
    }

    fn place(&self) -> NetnsRef<'h> {
        NetnsRef { netns: self.netns, netns_id: self.options.netns_id }
    }

    /// Chooses the backend and the kernel's filter.
    pub fn scan(&self, demand: &Demand<Nat>) -> ConntrackScan<'h> {
        let entries = Size::of_entries(self.host, self.place()).read();
        let size = entries.zip(Size::of_buckets(self.host, self.place()).read());
        // Saves at most 2 µs for each entry that is left out, and costs 50 ns for each bucket.
        let worth_two_walks = || size.is_some_and(|(entries, buckets)| entries > buckets / 20);
        let can_filter = !self.host.is_replay() && self.options.table == CtTable::Conntrack;
        let mut split = if can_filter { split(&demand.conjuncts, worth_two_walks) } else { Split::default() };
        let (walk, walk_pushed) = WalkFilter::of(if can_filter { &demand.conjuncts } else { &[] });
        let filters = split.filter != KernelFilter::default();
        let mut passed_over = None;
        let mut choice = choose(&Facts {
            table: self.options.table,
            need: demand.need,
            filters,
            via: self.options.via,
            recorded: self.host.is_replay().then(|| self.recorded()),
            size,
            walk: self.walk(demand.need, size, filters, &walk, &mut passed_over),
        });
        if self.all && !self.host.is_replay() {
            choice.why = "one pass instead of one in each";
        }
        self.keep_to_the_first(&mut choice);
        match choice.via {
            Via::Netlink => {}
            // If netlink has to take over, its filter is the kernel's part again.
            Via::Bpf => split.pushed = walk_pushed,
            Via::Proc => split = Split::default(),
        }
        let is_empty = self.options.table == CtTable::Conntrack && entries == Some(0) && !self.all;
        let fits = demand.need & CHANGES_BY_ITSELF == 0 && self.host.mode() == Mode::Live;
        ConntrackScan {
            source: self.clone(),
            choice,
            split,
            walk,
            passed_over,
            is_empty,
            need: demand.need,
            filtered_need: filtered_need(demand),
            timeout: field_index::<Nat>("timeout_s").filter(|_| fits),
            narrower: self.narrower_filters(demand),
            chains: None,
        }
    }

    /// Whether the walk is possible here and pays.
    /// If it would pay but is not possible, `passed_over` tells why.
    fn walk(
        &self,
        need: u64,
        size: Option<(u64, u64)>,
        filters: bool,
        filter: &WalkFilter,
        passed_over: &mut Option<Box<str>>,
    ) -> WalkVerdict {
        let Some((entries, buckets)) = size.filter(|_| !self.host.is_replay()) else { return WalkVerdict::No };
        let possible = match self.cache {
            Some(cache) => cache.why_not(),
            None => BackendCache::new().why_not(),
        };
        if self.options.table != CtTable::Conntrack {
            return WalkVerdict::No;
        }
        let loaded = self.cache.is_some_and(|cache| cache.is_loaded(&self.ask(need, filter, "")));
        match (WalkVerdict::of(entries, buckets, need, filters, loaded), possible) {
            (WalkVerdict::Pays(_), Some(why)) => {
                *passed_over = Some(why);
                WalkVerdict::No
            }
            (walk, _) => walk,
        }
    }

    fn ask<'a>(&'a self, demanded: u64, filter: &'a WalkFilter, note: &'a str) -> bpf::Ask<'a> {
        bpf::Ask {
            netns: self.netns,
            all: self.all,
            parts: bpf::parts_for(demanded, self.all),
            filter,
            expired: demanded & need::EXPIRED != 0,
            note,
            netns_id: self.options.netns_id,
        }
    }

    // While a recording is made, all rounds must go through one backend.
    fn keep_to_the_first(&self, choice: &mut Choice) {
        let Some(cache) = self.cache.filter(|_| self.host.mode() == Mode::Recording) else { return };
        match cache.first().get() {
            Some(via) if via != choice.via => *choice = Choice { via, why: "as in the first round of the recording" },
            Some(_) => {}
            None => cache.first().set(Some(choice.via)),
        }
    }

    fn recorded(&self) -> Recorded {
        let id = self.options.netns_id;
        let netlink = [0, 2, 10].iter().any(|family| self.host.holds(&key(self.options.table, id, *family)));
        Recorded { netlink, proc: self.host.holds(&proc_file::key(id)), bpf: self.host.holds(&bpf::key(id, self.all)) }
    }

    // What the recording lacks though this run wants it: filters it was made with, but for the one that this run would
    // have asked the kernel for.
    fn narrower_filters(&self, demand: &Demand<Nat>) -> Vec<&'h str> {
        let wanted = [true, false].map(|worth| split(&demand.conjuncts, || worth).filter);
        let families = |filter: KernelFilter| [0, 2, 10].map(|family| note_of(&filter.of_family(family)));
        let own: Vec<String> = wanted.into_iter().flat_map(families).collect();
        self.recorded_filters().into_iter().filter(|note| !own.iter().any(|own| own == note)).collect()
    }

    // The notes of this namespace's streams that tell of a filter.
    fn recorded_filters(&self) -> Vec<&'h str> {
        let keys = [0, 2, 10].map(|family| key(self.options.table, self.options.netns_id, family));
        let walk = bpf::key(self.options.netns_id, self.all);
        let ours = |of: &str| keys.iter().any(|key| **key == *of) || *walk == *of;
        let notes = self.host.notes().iter().filter(|(of, note)| ours(of) && !note.is_empty());
        let mut notes: Vec<&str> = notes.map(|(_, note)| &**note).collect();
        notes.dedup();
        notes
    }
}

// What a recording has to say about itself: what the kernel left out is missing in it.
fn note_of(filter: &KernelFilter) -> String {
    let words = filter.words();
    if words.is_empty() { words } else { format!("kernel filter: {words}") }
}

/// A reading of one namespace's entries, or of all by the walk, prepared.
#[derive(Debug)]
pub struct ConntrackScan<'h> {
    source: ConntrackSource<'h>,
    choice: Choice,
    split: Split,
    walk: WalkFilter,
    /// Why it is not the walk, though that would pay.
    passed_over: Option<Box<str>>,
    /// The kernel counts no entry: a dump would look into every bucket of the host for nothing.
    is_empty: bool,
    /// `need` bits of the demand.
    need: u64,
    /// `need` bits of the fields that the filter tests.
    filtered_need: u64,
    /// The field that stands beside a row's bytes, if rows may be shown as bytes.
    timeout: Option<usize>,
    /// Filters that a recording was made with and that leave out entries of this demand.
    narrower: Vec<&'h str>,
    /// What the last run met.
    chains: Option<Chains>,
}

impl Source<Nat> for ConntrackSource<'_> {
    fn prepare(&self, demand: &Demand<Nat>) -> Box<dyn Scan<Nat> + '_> {
        Box::new(self.scan(demand))
    }
}

impl Scan<Nat> for ConntrackScan<'_> {
    fn offer(&self) -> Offer {
        let ConntrackScan { source, choice, split, walk, passed_over, .. } = self;
        let what = source.options.table.what();
        let of_all = if source.all { " of all network namespaces in one pass" } else { "" };
        let kernel = match choice.via {
            Via::Bpf if !walk.is_any() => format!("; the walk filters by {}", walk.words()),
            Via::Netlink if !split.filter.words().is_empty() => {
                format!("; the kernel filters {}", split.filter.words())
            }
            _ => String::new(),
        };
        let mut explain = vec![format!("{what}{of_all} by {} ({}){kernel}", choice.via.name(), choice.why)];
        if let Some(why) = passed_over.as_ref().filter(|_| choice.via != Via::Bpf) {
            explain.push(format!("not by bpf, which would be cheaper: {why}"));
        }
        if self.is_empty {
            explain.push("the kernel counts no entry: nothing is read".into());
        }
        if source.host.is_replay() {
            explain.extend(source.recorded_filters().iter().map(|note| format!("recorded with a {note}")));
        }
        let forced = source.forced.filter(|_| source.options.table == CtTable::Conntrack && !source.host.is_replay());
        let backends = forced.map(backends).unwrap_or_default();
        Offer { door: choice.via.name(), pushed: split.pushed.clone(), lacks: choice.lacks(), backends, explain }
    }

    fn run(&mut self, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        self.read(None, each, &RefCell::new(self.own_handed_out()))
    }

    // Rows of the walk are shown as bytes, unless more of them than the time left changes by itself.
    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        let cache = self.may_show_bytes(cache).then_some(cache);
        self.read(cache, each, &RefCell::new(self.own_handed_out()))
    }
}

impl ConntrackScan<'_> {
    /// Lengths of the hash table's chains, as the last run met them: those of all namespaces together, whichever was read.
    /// `None` by other backends than the walk, and if the table was not walked to its end or its size changed meanwhile.
    pub fn chains(&self) -> Option<Chains> {
        self.chains
    }

    /// True if rows may be shown to `cache` as bytes: only the time that is left changes by itself.
    pub(crate) fn may_show_bytes(&self, cache: &dyn RowCache) -> bool {
        self.timeout.is_some_and(|field| cache.exclude_field(field))
    }

    fn own_handed_out(&self) -> HandedOut {
        if self.source.is_followed() { HandedOut::noting() } else { HandedOut::default() }
    }

    /// Reads, notes in `handed_out` what the walk hands out, and leaves out what is noted there already.
    pub(crate) fn read(
        &mut self,
        cache: Option<&dyn RowCache>,
        each: &mut Each<'_, Nat>,
        handed_out: &RefCell<HandedOut>,
    ) -> Result<Accounting, SourceError> {
        let ConntrackScan { source, choice, split, walk, need: demanded, .. } = self;
        let mut stats = RowStats::default();
        for note in &self.narrower {
            stats.unanswered(format!("the recording was made with a {note}: other entries are missing"));
        }
        if self.is_empty {
            stats.used(choice.via.name());
            return Ok(stats.close());
        }
        let host = source.host;
        let labels = (*demanded & need::LABELS != 0).then(|| LabelNames::read(host));
        let now_ns = host.now().since_1970_ns();
        let handed_out = &mut *handed_out.borrow_mut();
        let rows = Rows {
            each,
            cache,
            stats: &mut stats,
            labels,
            text: Vec::new(),
            unnamed: false,
            now_ns,
            stopped: false,
            handed_out,
        };
        self.chains = None;
        let mut run = Run { source, rows, chains: None, by_proc: false };
        let ended = match choice.via {
            Via::Proc => run.by_proc().map_err(ReadFailure::Proc),
            Via::Bpf => run.by_walk(*demanded, walk, &split.filter),
            Via::Netlink => run.by_netlink_or_proc(&split.filter),
        };
        let by_proc_instead = choice.via != Via::Proc && run.by_proc;
        let (unnamed, chains) = (run.rows.unnamed, run.chains);
        if by_proc_instead && self.filtered_need & PROC_LACKS != 0 {
            stats.incomplete(0, "the filter tests fields that /proc/net/nf_conntrack lacks: entries may be missing");
        }
        self.chains = chains;
        if unnamed {
            stats.note("labels are shown by number: /etc/xtables/connlabel.conf cannot be read");
        }
        match ended {
            Ok(()) => Ok(stats.close()),
            Err(trouble) if stats.rows() > 0 => {
                let what = source.options.table.what();
                stats.incomplete(0, format!("{what} {} incomplete: {trouble}", netlink::is_or_are(what)));
                Ok(stats.close())
            }
            Err(trouble) => Err(trouble.into_error(source.options.table)),
        }
    }
}

/// What a row's bytes do not tell, beside the time left: an age, whether that time is over, the names of labels, how many
/// look at the entry.
const CHANGES_BY_ITSELF: u64 = need::TIMES | need::EXPIRED | need::LABELS | need::USES;

/// `need` bits of the fields that the filter tests.
fn filtered_need(demand: &Demand<Nat>) -> u64 {
    let mut need = 0;
    for part in &demand.conjuncts {
        part.for_each_test(&mut |test| need |= Nat::FIELDS.get(test.field).map_or(0, |field| field.need));
    }
    need
}

/// One run.
struct Run<'s, 'h, 'r, 'f> {
    source: &'s ConntrackSource<'h>,
    rows: Rows<'r, 'f>,
    /// Lengths of the table's chains, from the walk.
    chains: Option<Chains>,
    /// Rows came from /proc.
    by_proc: bool,
}

impl Run<'_, '_, '_, '_> {
    // Netlink takes over where the walk cannot be had or breaks off before its first row.
    fn by_walk(&mut self, demanded: u64, filter: &WalkFilter, kernel: &KernelFilter) -> Result<(), ReadFailure> {
        let source = self.source;
        let words = filter.words();
        let note = if words.is_empty() { words } else { format!("filter of the walk: {words}") };
        let own;
        let cache = match source.cache {
            Some(cache) => cache,
            None => {
                own = BackendCache::new();
                &own
            }
        };
        let rows = &mut self.rows;
        let walked = cache.walk(source.host, &source.ask(demanded, filter, &note), rows);
        match walked {
            Ok(walked) => {
                self.chains = walked.chains;
                rows.stats.used(Via::Bpf.name());
                Ok(())
            }
            Err(error) if rows.stats.rows() > 0 && rows.handed_out.is_noting() => {
                rows.stats.used(Via::Bpf.name());
                rows.stats.note(format!("the rest was read by netlink: {error}"));
                rows.handed_out.finish();
                if source.all { Ok(()) } else { self.by_netlink_or_proc(kernel) }
            }
            Err(error) if rows.stats.rows() > 0 || !source.is_followed() => Err(ReadFailure::Walk(error)),
            Err(error) => {
                rows.stats.note(format!("read by netlink: {error}"));
                self.by_netlink_or_proc(kernel)
            }
        }
    }

    fn by_netlink_or_proc(&mut self, filter: &KernelFilter) -> Result<(), ReadFailure> {
        let Options { via, table, .. } = self.source.options;
        let before = self.rows.stats.rows();
        match self.by_netlink(filter) {
            Err(error)
                if error.is_unavailable()
                    && via != Some(Via::Netlink)
                    && table == CtTable::Conntrack
                    && self.rows.stats.rows() == before
                    && !self.source.host.is_replay() =>
            {
                match self.by_proc() {
                    Ok(()) => {
                        self.rows.stats.note(format!("read from /proc/net/nf_conntrack, which knows less: {error}"));
                        Ok(())
                    }
                    Err(proc) => Err(ReadFailure::Neither(error, proc)),
                }
            }
            other => other.map_err(ReadFailure::Netlink),
        }
    }

    fn by_netlink(&mut self, filter: &KernelFilter) -> Result<(), DumpError> {
        let (host, options) = (self.source.host, self.source.options);
        // A recording has one stream of both families, or one of each.
        let held = |family: &u8| host.holds(&key(options.table, options.netns_id, *family));
        let families: &[u8] = match host.is_replay() {
            true if held(&0) => &[0],
            true => &[2, 10],
            false => filter.families(),
        };
        // An empty table was recorded as an empty stream, or by its count (`Plan::is_empty`).
        if host.is_replay() && !families.iter().any(held) {
            let table = options.table.what();
            return Err(DumpError::Io(SysError::new("replay", table, Errno::NOT_RECORDED)));
        }
        for family in families.iter().filter(|family| held(family)) {
            let filter = filter.of_family(*family);
            if options.table == CtTable::Expect {
                self.expectations(*family)?;
            } else {
                self.entries_until_steady(&filter)?;
            }
            if self.rows.stopped {
                break;
            }
        }
        self.rows.stats.used(Via::Netlink.name());
        Ok(())
    }

    // A hash table that is resized under a dump loses rows and doubles others, and the kernel does not say so
    // (no NLM_F_DUMP_INTR): read it again then, and hand out what is not out yet.
    fn entries_until_steady(&mut self, filter: &KernelFilter) -> Result<(), DumpError> {
        let mut seen = Seen::new();
        for _ in 0..=RESIZED_RETRIES {
            if !self.entries(filter, &mut seen)? || self.rows.stopped {
                return Ok(());
            }
            seen.watch();
        }
        self.rows.stats.incomplete(0, RESIZED);
        Ok(())
    }

    // True if the table was resized meanwhile. The number of buckets is looked at after each receive buffer and before
    // any row of it goes out: whatever was moved is seen by then, for the number changes under the same locks.
    fn entries(&mut self, filter: &KernelFilter, seen: &mut Seen) -> Result<bool, DumpError> {
        let (host, place) = (self.source.host, self.source.place());
        let note = note_of(filter);
        let mut buckets = Size::of_buckets(host, place);
        let before = buckets.read();
        let (mut resized, mut block) = (false, u64::MAX);
        let table = self.source.options.table;
        let rows = &mut self.rows;
        let done = dump_entries(host, place, table, filter, &note, |row, number| {
            rows.stats.arrived(1);
            if number != block && !resized {
                block = number;
                resized = buckets.read() != before;
                if resized {
                    seen.watch();
                }
            }
            rows.row_unless_out(row, seen)
        })?;
        self.dumped(&done);
        Ok(resized || buckets.read() != before)
    }

    fn expectations(&mut self, family: u8) -> Result<(), DumpError> {
        let rows = &mut self.rows;
        let each = |row: &Expectation<'_>| {
            rows.stats.arrived(1);
            let master = row.master;
            rows.row(&Conntrack {
                netns_id: row.netns_id,
                family: row.family,
                orig: row.tuple,
                timeout_s: row.timeout_s,
                id: row.id,
                helper: row.helper,
                zone: row.zone,
                master: Some(&master),
                ..Conntrack::EMPTY
            })
        };
        let done = dump_expectations(self.source.host, self.source.place(), family, each)?;
        self.dumped(&done);
        Ok(())
    }

    fn dumped(&mut self, done: &Dumped) {
        let stats = &mut self.rows.stats;
        stats.arrived(done.malformed);
        stats.failed_rows(done.malformed, done.first_error);
        stats.unknown_attrs(done.unknown_attrs);
        if done.end.interrupted {
            stats.incomplete(0, "the table changed while it was read: entries may be missing");
        }
        self.rows.stopped |= done.end.stopped;
    }

    fn by_proc(&mut self) -> Result<(), SysError> {
        self.by_proc = true;
        let (host, place) = (self.source.host, self.source.place());
        let rows = &mut self.rows;
        let now_ns = Some(rows.now_ns);
        // The same as by netlink. A read gives a page, some twenty rows, and a look at the size after each would cost more
        // than looking for every row.
        let mut seen = Seen::new();
        seen.watch();
        for _ in 0..=RESIZED_RETRIES {
            let mut buckets = Size::of_buckets(host, place);
            let before = buckets.read();
            let stopped = proc_file::lines(host, place, |line| {
                rows.stats.arrived(1);
                match parse_proc_line(line, place.netns_id, now_ns) {
                    Ok(row) => rows.row_unless_out(&row, &mut seen),
                    Err(error) => rows.failed(error),
                }
            })?;
            rows.stats.used(Via::Proc.name());
            if stopped || buckets.read() == before {
                return Ok(());
            }
        }
        rows.stats.incomplete(0, RESIZED);
        Ok(())
    }
}

/// Why there was nothing, or not all.
#[derive(Debug)]
enum ReadFailure {
    Netlink(DumpError),
    Proc(SysError),
    Neither(DumpError, SysError),
    Walk(WalkError),
}

impl fmt::Display for ReadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadFailure::Netlink(DumpError::Io(SysError { errno: Errno::NOT_RECORDED, .. })) => {
                f.write_str(NOT_RECORDED)
            }
            ReadFailure::Netlink(error) => error.fmt(f),
            ReadFailure::Proc(error) => error.fmt(f),
            ReadFailure::Neither(netlink, proc) => write!(f, "{netlink}; {proc}"),
            ReadFailure::Walk(error) => error.fmt(f),
        }
    }
}

impl Error for ReadFailure {}

impl ReadFailure {
    fn into_error(self, table: CtTable) -> SourceError {
        let fault = match &self {
            ReadFailure::Netlink(DumpError::Malformed { .. } | DumpError::CutShort { .. }) => SourceFault::Malformed,
            ReadFailure::Netlink(error) => fault_of(error.errno()),
            ReadFailure::Proc(error) => fault_of(Some(error.errno)),
            // Without the right, netlink says so and /proc cannot be opened; without the thing, both lack it.
            ReadFailure::Neither(error, _) => fault_of(error.errno()),
            ReadFailure::Walk(WalkError::Unavailable(_)) => SourceFault::Unsupported,
            ReadFailure::Walk(WalkError::Broken(error)) => fault_of(Some(error.errno)),
        };
        SourceError { what: table.what(), fault, cause: Box::new(self) }
    }
}

fn fault_of(errno: Option<Errno>) -> SourceFault {
    match errno {
        Some(errno) if errno.is_denied() => SourceFault::Denied,
        Some(errno) if errno.is_unsupported() => SourceFault::Unsupported,
        // EINVAL: nfnetlink knows no such subsystem.
        Some(Errno::INVAL | Errno::NOT_RECORDED) => SourceFault::Unsupported,
        _ => SourceFault::Io,
    }
}
