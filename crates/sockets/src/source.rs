//! The source of sockets: takes a demand, decides how to read each table, and reads it.
//!
//! [`SocketSource::scan`] decides everything, in this order: which tables can have rows that pass the filter, and which
//! part of the filter each backend applies ([`split`]); which backend reads each table ([`choose`]); which parts of
//! each socket are copied. The result is a [`SocketScan`]. It describes itself to the engine ([`Scan::offer`]), and its
//! [`ReadPlan`] is carried out by [`TableReader`], as often as the engine requests it.
mod recorded;

use std::cell::RefCell;

use record::rows::Sockets;
use record::{Accounting, Demand, Each, FilterPushdown, Offer, Proto, RowCache, RowStats, Scan, Source, SourceError};
use sys::caps::{self, Cap};
use sys::{Host, Mode, NetNs};

use crate::backends::TableReader;
use crate::backends::bpf::cache::{BackendCache, Program};
use crate::backends::bpf::{IN_SMALL_TABLES, info_parts, parts_of};
use crate::backends::handed_out::HandedOut;
use crate::backends::plan::{PlannedTable, ReadPlan};
use crate::choose::{Choice, Facts, RecordedBackends, Via, WalkDecision, backends, choose};
use crate::expected::{
    self, WORTH_ITERATING, WORTH_LOADING, WORTH_LOADING_FOR_MANY, WORTH_LOADING_FOR_ONE_PORT, WORTH_LOADING_ITERATOR,
    WORTH_WALKING,
};
use crate::keys::{self, Table};
use crate::options::Options;
use crate::pushdown::named::{expects_table, is_in_every_kernel, tests_table};
use crate::pushdown::{PushdownContext, SplitFilter, TableFilter, split};

/// Sockets of one network namespace: the calling thread's, or the one set with [`SocketSource::in_netns`].
#[derive(Debug)]
pub struct SocketSource<'h> {
    host: &'h Host,
    options: Options,
    netns: Option<&'h NetNs>,
    /// The session's cache of loaded programs; without one the source uses `own_cache`.
    cache: Option<&'h BackendCache>,
    own_cache: BackendCache,
    /// Rows that an interrupted walk has handed out, if this source reads the rest.
    rest_of: Option<&'h RefCell<HandedOut>>,
}

impl<'h> SocketSource<'h> {
    /// Reads sockets of the calling thread's namespace.
    pub fn new(host: &'h Host, options: Options) -> SocketSource<'h> {
        SocketSource { host, options, netns: None, cache: None, own_cache: BackendCache::new(), rest_of: None }
    }

    /// Reads sockets of another namespace, which is entered while sockets and files are opened. Needs CAP_SYS_ADMIN.
    pub fn in_netns(mut self, netns: &'h NetNs) -> SocketSource<'h> {
        self.netns = Some(netns);
        self
    }

    /// Keeps loaded programs in `cache`, for the next source of the same session.
    pub fn with_cache(mut self, cache: &'h BackendCache) -> SocketSource<'h> {
        self.cache = Some(cache);
        self
    }

    /// Leaves out the rows that a walk had handed out before it was interrupted.
    pub(crate) fn finishing_walk(mut self, walk: &'h RefCell<HandedOut>) -> SocketSource<'h> {
        self.rest_of = Some(walk);
        self
    }

    fn cache(&self) -> &BackendCache {
        self.cache.unwrap_or(&self.own_cache)
    }

    /// Decides which tables `demand` needs, and the backend and the filter of each.
    pub(crate) fn scan(&self, demand: &Demand<Sockets>) -> SocketScan<'_> {
        // The engine filters a recording; only tables that cannot have matching rows are left out. Every backend except
        // /proc can filter; /proc is read only if the user asks for it or another backend fails.
        let filters = |_| !self.host.is_replay() && self.options.via.is_none_or(Choice::filters);
        let SplitFilter { tables, pushdown } = self.split(demand, &filters);
        let info = info_parts(demand);
        let (parts, counted) = (parts_of(self.host, demand.need, info), info != 0);
        let planned = |filter: TableFilter| PlannedTable {
            choice: self.choose_backend(demand, &filter, counted, parts),
            reports_absence: self.reports_absence(demand, filter.proto),
            filter,
        };
        let plan = ReadPlan {
            host: self.host,
            options: &self.options,
            netns: self.netns,
            cache: self.cache(),
            tables: tables.into_iter().map(planned).collect(),
            need: demand.need,
            repeated: demand.repeated,
            parts,
        };
        let missing = if self.host.is_replay() { self.narrower_filters(demand) } else { Vec::new() };
        let recorded_filters = if self.host.is_replay() { self.recorded_filters().collect() } else { Vec::new() };
        SocketScan { plan, pushdown, counted, missing, recorded_filters, rest_of: self.rest_of }
    }

    /// Returns the tables that can have matching rows, in the order of the options.
    fn split(&self, demand: &Demand<Sockets>, filters: &dyn Fn(Proto) -> bool) -> SplitFilter {
        let wanted = |proto: &Proto| !self.options.if_named.contains(proto) || tests_table(demand, *proto);
        let order: Vec<Proto> = self.options.order.iter().copied().filter(wanted).collect();
        split(&demand.conjuncts, &order, self.options.families, self, filters)
    }

    /// True if it is worth a message that the kernel lacks this table.
    fn reports_absence(&self, demand: &Demand<Sockets>, proto: Proto) -> bool {
        is_in_every_kernel(proto) || (!self.options.quiet && expects_table(demand, proto))
    }

    /// Chooses the backend of one table. In a replay it is one that was recorded.
    fn choose_backend(&self, demand: &Demand<Sockets>, filter: &TableFilter, counted: bool, parts: u32) -> Choice {
        let proto = filter.proto;
        let both_families: &[Table] = if proto == Proto::Tcp { &[Table::Tcp] } else { &[] };
        let tables = || both_families.iter().chain(keys::tables_of(proto));
        let holds = |via| tables().any(|table| self.host.contains(&keys::key(*table, via, self.options.netns_id)));
        let recorded = self.host.is_replay().then(|| RecordedBackends {
            netlink: holds(Via::Netlink),
            bpf: holds(Via::Bpf),
            proc: holds(Via::Proc),
        });
        let few_states = filter.states & !IN_SMALL_TABLES == 0;
        let one_port = filter.sport != 0 || filter.dport != 0;
        let walk = || self.whether_walk_pays(parts, demand.repeated, one_port);
        choose(&Facts { proto, need: demand.need, counted, few_states, via: self.options.via, recorded, walk: &walk })
    }

    /// Decides whether a BPF program may read TCP here, and costs less than netlink. Reads one or two files of
    /// /proc/net if the decision depends on them.
    fn whether_walk_pays(&self, parts: u32, repeated: bool, one_port: bool) -> WalkDecision {
        if !cfg!(feature = "bpf") || self.netns.is_some() {
            return WalkDecision::TooFew;
        }
        // In a recording, a table must use the same stream in every round.
        match self.cache().first_backend().get().filter(|_| self.host.mode() == Mode::Recording) {
            Some(Via::Bpf) => return WalkDecision::Pays("as in the first round"),
            Some(_) => return WalkDecision::TooFew,
            None => {}
        }
        let (measured, why) = self.sockets_from_which_it_pays(parts, repeated, one_port);
        let least = self.options.walk_from.unwrap_or(measured);
        if expected::tcp_sockets(self.host, least) < least {
            return WalkDecision::TooFew;
        }
        self.cache().why_no_program().map_or(WalkDecision::Pays(why), WalkDecision::No)
    }

    /// Measured number of TCP sockets from which a program costs less than netlink, and the reason in words.
    fn sockets_from_which_it_pays(&self, parts: u32, repeated: bool, one_port: bool) -> (u64, &'static str) {
        match self.cache().loaded(parts) {
            Some(Program::Walk) => (WORTH_WALKING, "the program is loaded"),
            Some(Program::Iterator) => (WORTH_ITERATING, "the program is loaded"),
            None if self.cache().was_refused() => (WORTH_LOADING_ITERATOR, "enough sockets to justify an iterator"),
            None if repeated => {
                (WORTH_LOADING_FOR_MANY, "many sockets, read repeatedly: loading a program is justified")
            }
            None if one_port => (WORTH_LOADING_FOR_ONE_PORT, "enough sockets to justify loading a program"),
            None => (WORTH_LOADING, "enough sockets to justify loading a program"),
        }
    }
}

impl PushdownContext for SocketSource<'_> {
    fn ifindex(&self, name: &[u8]) -> Option<u32> {
        crate::pushdown::ifindex::find_ifindex(self.host, self.netns, self.options.netns_id, name)
    }

    fn may_ask_marks(&self) -> bool {
        caps::effective().is_ok_and(|set| set.contains(Cap::NetAdmin))
    }
}

impl Source<Sockets> for SocketSource<'_> {
    fn prepare(&self, demand: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        Box::new(self.scan(demand))
    }
}

/// A scan of the sockets of one namespace: everything is decided, nothing has been read yet.
#[derive(Debug)]
pub(crate) struct SocketScan<'s> {
    pub(crate) plan: ReadPlan<'s>,
    /// How far the backends apply each part of the filter.
    pushdown: Vec<FilterPushdown>,
    /// True if the demand wants members of `tcp_info`, but only those that a walk copies.
    counted: bool,
    /// Filters of the recording that left out sockets which this demand wants.
    missing: Vec<&'s str>,
    /// The filters that the recording was made with.
    recorded_filters: Vec<&'s str>,
    rest_of: Option<&'s RefCell<HandedOut>>,
}

impl SocketScan<'_> {
    fn read(&self, cache: Option<&dyn RowCache>, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        let mut stats = RowStats::default();
        for filter in &self.missing {
            stats.add_unanswered(format!("the recording was made with a {filter}: other sockets are missing"));
        }
        let own = RefCell::default();
        TableReader::new(&self.plan, cache, each, stats, self.rest_of.unwrap_or(&own)).read()
    }

    /// Lists the backends in use.
    fn backend_names(&self) -> &'static str {
        let used = |via| self.plan.tables.iter().any(|table| table.choice.via == via);
        match (used(Via::Bpf), used(Via::Netlink), used(Via::Proc)) {
            (true, true, true) => "bpf, netlink, proc",
            (true, true, false) => "bpf, netlink",
            (true, false, true) => "bpf, proc",
            (true, false, false) => Via::Bpf.name(),
            (false, true, true) => "netlink, proc",
            (false, false, true) => Via::Proc.name(),
            (false, _, false) => Via::Netlink.name(),
        }
    }
}

impl Scan<Sockets> for SocketScan<'_> {
    fn offer(&self) -> Offer {
        let ReadPlan { host, options, ref tables, .. } = self.plan;
        let mut explain: Vec<String> = tables.iter().map(|table| explain_table(&table.choice, &table.filter)).collect();
        if tables.is_empty() {
            explain.push("no table can contain such rows: nothing is read".into());
        }
        explain.extend(self.recorded_filters.iter().map(|note| format!("recorded with a {note}")));
        let lacks = tables.iter().fold(0, |lacks, table| lacks | table.choice.lacks);
        let protos: Vec<Proto> = tables.iter().map(|table| table.filter.proto).collect();
        let forced = options.via.filter(|_| !host.is_replay());
        let backends = forced.map_or_else(Vec::new, |forced| backends(forced, &protos, self.counted));
        Offer { backend: self.backend_names(), pushdown: self.pushdown.clone(), lacks, backends, explain }
    }

    fn run(&mut self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.read(None, each)
    }

    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.read(Some(cache), each)
    }
}

/// Line of `--explain` for one table.
pub(crate) fn explain_table(choice: &Choice, filter: &TableFilter) -> String {
    let words = filter.words();
    let kernel = match (choice.via, words.is_empty()) {
        (Via::Netlink, false) => format!("; the kernel filters {words}"),
        (Via::Bpf, false) => {
            format!("; filtered by {words}; the program tests states, families and ports")
        }
        _ => String::new(),
    };
    let no_walk = choice.no_walk.map(|why| format!("; {why}")).unwrap_or_default();
    format!("{} sockets via {} ({}{no_walk}){kernel}", filter.proto.name(), choice.via.name(), choice.why)
}
