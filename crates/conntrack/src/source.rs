//! The source of entries: chooses the backend and the kernel's part of the filter.
//!
//! [`ConntrackSource::scan`] makes the decision; [`ConntrackScan`] describes and carries it out. `backends/read.rs`
//! reads through the backends and lets one take over from another. Start reading at [`ConntrackSource`].
pub(crate) mod recorded;

use std::cell::RefCell;

use record::rows::{Nat, nat_need as need};
use record::{
    Accounting, Demand, Each, Expr, FilterPushdown, Offer, RowCache, RowStats, Scan, Source, SourceError, Table,
    field_index,
};
use sys::{Host, Mode, NetNs};

use crate::backends::bpf::cache::BackendCache;
use crate::backends::bpf::chains::Chains;
use crate::backends::bpf::walk_filter::WalkFilter;
use crate::backends::fault::ReadFailure;
use crate::backends::read::{ReadTarget, TableReader};
use crate::backends::rows::Rows;
use crate::backends::seen::HandedOut;
use crate::choose::{Choice, Facts, PROC_LACKS, Via, WalkVerdict, backends, choose};
use crate::kernel_filter::KernelFilter;
use crate::labels::LabelNames;
use crate::options::Options;
use crate::pushdown::{SplitFilter, split};
use crate::sizes::Size;
use crate::source::recorded::{narrower_filters, recorded_filters};
use crate::table::CtTable;

/// Fields that change while the bytes of a row stay the same, apart from the timeout: age, expiry, label names and
/// reference count.
const CHANGES_BY_ITSELF: u64 = need::TIMES | need::EXPIRED | need::LABELS | need::USES;

/// The kernel's entries in the calling thread's network namespace, or in the one given to
/// [`ConntrackSource::in_netns`].
#[derive(Debug, Clone)]
pub struct ConntrackSource<'h> {
    target: ReadTarget<'h>,
    /// The backend that the user asked for.
    forced: Option<Via>,
}

impl<'h> ConntrackSource<'h> {
    /// Entries of the calling thread's namespace.
    pub fn new(host: &'h Host, options: Options) -> ConntrackSource<'h> {
        let target = ReadTarget { host, options, netns: None, cache: None, all: false, narrowed: None, as_dump: false };
        ConntrackSource { target, forced: options.via }
    }

    /// Reads another namespace; files and sockets are opened inside it. Needs CAP_SYS_ADMIN.
    pub fn in_netns(mut self, netns: &'h NetNs) -> ConntrackSource<'h> {
        self.target.netns = Some(netns);
        self
    }

    /// Keeps the loaded walk in `cache` for the next reading. Without a cache each reading loads it again.
    pub fn with_cache(mut self, cache: &'h BackendCache) -> ConntrackSource<'h> {
        self.target.cache = Some(cache);
        self
    }

    /// Lets the backend exclude the rows that `filter` excludes, for a caller that tests rows itself; the demand's
    /// filter is not pushed to any backend. Reads with the walk or via netlink, and sends the request even if the
    /// kernel counts no entry, so that a refusal becomes visible.
    pub fn with_kernel_filter(mut self, filter: KernelFilter) -> ConntrackSource<'h> {
        self.target.narrowed = Some(filter);
        self
    }

    /// Like [`ConntrackSource::with_kernel_filter`], with one netlink dump: rows in the kernel's order, with every
    /// attribute; `filter` can reset counters to 0. A resize of the hash table makes the result partial instead of
    /// starting a new dump.
    pub fn as_dump(mut self, filter: KernelFilter) -> ConntrackSource<'h> {
        self.target.as_dump = true;
        self.target.options.via = Some(Via::Netlink);
        self.with_kernel_filter(filter)
    }

    /// Reads the entries of every namespace in one pass of the walk, which no other backend can do.
    pub(crate) fn of_all(mut self) -> ConntrackSource<'h> {
        self.target.all = true;
        self.target.options.via = Some(Via::Bpf);
        self
    }

    /// True if netlink reads the entries that an interrupted walk left out; in a replay, if it did so in the recording.
    pub(crate) fn is_followed(&self) -> bool {
        self.target.is_followed()
    }

    /// Chooses the backend and what the kernel filters. Reads two sysctls.
    pub fn scan(&self, demand: &Demand<Nat>) -> ConntrackScan<'h> {
        let ReadTarget { host, options, all, narrowed, .. } = self.target;
        let size_of = |mut size: Size<'_>| if self.target.as_dump { None } else { size.read() };
        let entries = size_of(Size::of_entries(host, self.target.netns_ref()));
        let size = entries.zip(size_of(Size::of_buckets(host, self.target.netns_ref())));
        let (mut split, (walk, walk_pushed)) = self.push_down(&demand.conjuncts, size);
        let filters = split.filter != KernelFilter::default();
        let (verdict, walk_refused) = self.judge_walk(demand.need, size, filters, &walk);
        let mut choice = choose(&Facts {
            table: options.table,
            need: demand.need,
            filters,
            via: options.via,
            recorded: host.is_replay().then(|| self.target.recorded_backends()),
            size,
            walk: verdict,
        });
        if all && !host.is_replay() {
            choice.why = "one pass instead of one in each";
        }
        self.keep_first_choice(&mut choice);
        match choice.via {
            Via::Netlink => {}
            // The kernel's filter stays in `split.filter` in case netlink has to take over.
            Via::Bpf => split.pushdown = walk_pushed,
            Via::Proc => split = SplitFilter::default(),
        }
        let timeout = field_index::<Nat>("timeout_s");
        let changes_by_itself = demand.need & CHANGES_BY_ITSELF != 0 || host.mode() != Mode::Live;
        ConntrackScan {
            source: self.clone(),
            choice,
            split,
            walk,
            walk_refused,
            is_empty: options.table == CtTable::Conntrack && entries == Some(0) && !all && narrowed.is_none(),
            need: demand.need,
            filtered_need: filtered_need(demand),
            excluded_field: timeout.filter(|_| !changes_by_itself),
            narrower_filters: narrower_filters(&self.target, demand),
            chains: None,
        }
    }

    /// Splits the filter for netlink and for the walk.
    fn push_down(
        &self,
        conjuncts: &[Expr],
        size: Option<(u64, u64)>,
    ) -> (SplitFilter, (WalkFilter, Vec<FilterPushdown>)) {
        let ReadTarget { host, options, narrowed, .. } = self.target;
        if let Some(filter) = narrowed {
            return (SplitFilter { filter, pushdown: Vec::new() }, (WalkFilter::by_kernel(&filter), Vec::new()));
        }
        // A second dump saves at most 2 µs for each excluded entry and costs 50 ns per bucket.
        let worth_two_dumps = || size.is_some_and(|(entries, buckets)| entries > buckets / 20);
        let can_filter = !host.is_replay() && options.table == CtTable::Conntrack;
        let conjuncts = if can_filter { conjuncts } else { &[] };
        (split(conjuncts, worth_two_dumps), WalkFilter::from_conjuncts(conjuncts))
    }

    /// Whether the walk is possible and pays off. If it would pay off but is not possible, the second value is the
    /// reason.
    fn judge_walk(
        &self,
        need: u64,
        size: Option<(u64, u64)>,
        filters: bool,
        filter: &WalkFilter,
    ) -> (WalkVerdict, Option<Box<str>>) {
        let ReadTarget { host, options, cache, .. } = self.target;
        let Some((entries, buckets)) = size.filter(|_| !host.is_replay() && options.table == CtTable::Conntrack) else {
            return (WalkVerdict::No, None);
        };
        let loaded = cache.is_some_and(|cache| cache.is_loaded(&self.target.walk_ask(need, filter, "")));
        let verdict = WalkVerdict::compare_costs(entries, buckets, need, filters, loaded);
        let refused = match (verdict, cache) {
            (WalkVerdict::No, _) => None,
            (_, Some(cache)) => cache.why_not(),
            (_, None) => BackendCache::new().why_not(),
        };
        if refused.is_some() { (WalkVerdict::No, refused) } else { (verdict, None) }
    }

    /// While a recording is made, all rounds use the backend of the first one.
    fn keep_first_choice(&self, choice: &mut Choice) {
        let Some(cache) = self.target.cache.filter(|_| self.target.host.mode() == Mode::Recording) else { return };
        match cache.first_backend().get() {
            Some(via) if via != choice.via => *choice = Choice { via, why: "as in the first round of the recording" },
            Some(_) => {}
            None => cache.first_backend().set(Some(choice.via)),
        }
    }
}

impl Source<Nat> for ConntrackSource<'_> {
    fn prepare(&self, demand: &Demand<Nat>) -> Box<dyn Scan<Nat> + '_> {
        Box::new(self.scan(demand))
    }
}

/// `need` bits of the fields that the filter tests.
fn filtered_need(demand: &Demand<Nat>) -> u64 {
    let mut need = 0;
    for part in &demand.conjuncts {
        part.for_each_test(&mut |test| need |= Nat::FIELDS.get(test.field).map_or(0, |field| field.need));
    }
    need
}

/// A prepared reading of the entries of one namespace, or of all namespaces with the walk.
#[derive(Debug)]
pub struct ConntrackScan<'h> {
    source: ConntrackSource<'h>,
    choice: Choice,
    /// Netlink's part of the filter.
    split: SplitFilter,
    /// The walk's part of the filter.
    walk: WalkFilter,
    /// Why the walk is not possible although it would pay off.
    walk_refused: Option<Box<str>>,
    /// True if the kernel counts no entry: then nothing is read, because a dump visits every bucket of the host.
    is_empty: bool,
    /// `need` bits of the demand.
    need: u64,
    /// `need` bits of the fields that the filter tests.
    filtered_need: u64,
    /// The timeout field, if a cache may compare rows by their bytes, which do not contain it.
    excluded_field: Option<usize>,
    /// Filters of the recorded run that left out entries of this demand.
    narrower_filters: Vec<&'h str>,
    /// Result of the last run.
    chains: Option<Chains>,
}

impl Scan<Nat> for ConntrackScan<'_> {
    fn offer(&self) -> Offer {
        let ConntrackScan { choice, split, .. } = self;
        let ReadTarget { host, options, .. } = self.source.target;
        let forced = self.source.forced.filter(|_| options.table == CtTable::Conntrack && !host.is_replay());
        let backends = forced.map(backends).unwrap_or_default();
        let explain = self.explain();
        Offer {
            backend: choice.via.name(),
            pushdown: split.pushdown.clone(),
            lacks: choice.missing_need(),
            backends,
            explain,
        }
    }

    fn run(&mut self, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        self.read(None, each, &RefCell::new(self.new_handed_out()))
    }

    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        let cache = self.may_show_bytes(cache).then_some(cache);
        self.read(cache, each, &RefCell::new(self.new_handed_out()))
    }
}

impl ConntrackScan<'_> {
    /// Chain lengths of the hash table in the last run; they count all namespaces even if only one was read. `None`
    /// unless the walk read the whole table and the size of the table did not change during it.
    pub fn chains(&self) -> Option<Chains> {
        self.chains
    }

    /// True if `cache` may get rows as bytes: no demanded field except the timeout changes while the bytes stay the
    /// same.
    pub(crate) fn may_show_bytes(&self, cache: &dyn RowCache) -> bool {
        self.excluded_field.is_some_and(|field| cache.exclude_field(field))
    }

    fn new_handed_out(&self) -> HandedOut {
        if self.source.is_followed() { HandedOut::new_recording() } else { HandedOut::default() }
    }

    /// The lines of `--explain`.
    fn explain(&self) -> Vec<String> {
        let ConntrackScan { choice, split, walk, .. } = self;
        let ReadTarget { host, options, all, .. } = self.source.target;
        let of_all = if all { " of all network namespaces in one pass" } else { "" };
        let kernel_words = split.filter.words();
        let filter = match choice.via {
            Via::Bpf if !walk.is_any() => format!("; the walk filters by {}", walk.words()),
            Via::Netlink if !kernel_words.is_empty() => format!("; the kernel filters {kernel_words}"),
            _ => String::new(),
        };
        let what = options.table.description();
        let mut explain = vec![format!("{what}{of_all} via {} ({}){filter}", choice.via.name(), choice.why)];
        if let Some(why) = self.walk_refused.as_ref().filter(|_| choice.via != Via::Bpf) {
            explain.push(format!("not via BPF, which would be cheaper: {why}"));
        }
        if self.is_empty {
            explain.push("the kernel counts no entries: the table is not read".into());
        }
        if host.is_replay() {
            let filters = recorded_filters(&self.source.target);
            explain.extend(filters.iter().map(|note| format!("recorded with a {note}")));
        }
        explain
    }

    /// Reads the table. Adds the entries that the walk hands out to `handed_out`, and skips those already in it.
    pub(crate) fn read(
        &mut self,
        cache: Option<&dyn RowCache>,
        each: &mut Each<'_, Nat>,
        handed_out: &RefCell<HandedOut>,
    ) -> Result<Accounting, SourceError> {
        let target = &self.source.target;
        let mut stats = RowStats::default();
        for note in &self.narrower_filters {
            stats.add_unanswered(format!("the recording was made with a {note}: other entries are missing"));
        }
        if self.is_empty {
            stats.add_backend(self.choice.via.name());
            return Ok(stats.close());
        }
        let rows = Rows {
            each,
            cache,
            stats: &mut stats,
            labels: (self.need & need::LABELS != 0).then(|| LabelNames::read(target.host)),
            text: Vec::new(),
            unnamed: false,
            now_ns: target.host.now().since_1970_ns(),
            stopped: false,
            handed_out: &mut handed_out.borrow_mut(),
        };
        let mut reader = TableReader { target, rows, chains: None, by_proc: false };
        let ended = match self.choice.via {
            Via::Proc => reader.by_proc().map_err(ReadFailure::Proc),
            Via::Bpf => reader.by_walk(self.need, &self.walk, &self.split.filter),
            Via::Netlink => reader.by_netlink_or_proc(&self.split.filter),
        };
        let fell_back_to_proc = self.choice.via != Via::Proc && reader.by_proc;
        let (has_unnamed_labels, chains) = (reader.rows.unnamed, reader.chains);
        if fell_back_to_proc && self.filtered_need & PROC_LACKS != 0 {
            stats.incomplete(0, "the filter tests fields that /proc/net/nf_conntrack lacks: entries may be missing");
        }
        if has_unnamed_labels {
            stats.add_note("labels are shown by number: /etc/xtables/connlabel.conf cannot be read");
        }
        let table = target.options.table;
        self.chains = chains;
        match ended {
            Ok(()) => Ok(stats.close()),
            Err(failure) if stats.rows() > 0 => {
                let what = table.description();
                stats.incomplete(0, format!("{what} {} incomplete: {failure}", netlink::is_or_are(what)));
                Ok(stats.close())
            }
            Err(failure) => Err(failure.into_error(table)),
        }
    }
}
