//! The source: a demand in, rows out, through whichever backend works. Start reading at [`SocketSource`].
pub(crate) mod recorded;

use std::cell::RefCell;

use record::rows::Sockets;
use record::{Accounting, Demand, Each, Offer, Proto, Push, RowCache, RowStats, Scan, Source, SourceError};
use sys::caps::{self, Cap};
use sys::{Host, Mode, NetNs};

use crate::backends::Run;
use crate::backends::bpf::cache::{BackendCache, Program};
pub(crate) use crate::backends::bpf::{IN_SMALL_TABLES, is_counted, parts_of};
pub(crate) use crate::backends::fault::fault_of;
use crate::backends::handed_out::HandedOut;
use crate::choose::{Choice, Facts, Recorded, Via, Walk, backends, choose};
use crate::expected::{
    self, WORTH_ITERATING, WORTH_LOADING, WORTH_LOADING_FOR_MANY, WORTH_LOADING_FOR_ONE_PORT, WORTH_LOADING_ITERATOR,
    WORTH_WALKING,
};
use crate::keys::{self, Table};
use crate::options::Options;
use crate::pushdown::named::{expects, is_in_every_kernel, mentions};
use crate::pushdown::{PushdownContext, Split, TableFilter, split};
pub(crate) use recorded::note_of;

/// The kernel's sockets. Reads the calling thread's network namespace unless told otherwise.
#[derive(Debug)]
pub struct SocketSource<'h> {
    pub(crate) host: &'h Host,
    pub(crate) options: Options,
    pub(crate) netns: Option<&'h NetNs>,
    /// Where a loaded program is kept; its own place if nobody lends one.
    cache: Option<&'h BackendCache>,
    own_cache: BackendCache,
    /// What a walk has handed out that this finishes.
    rest_of: Option<&'h RefCell<HandedOut>>,
}

impl<'h> SocketSource<'h> {
    /// Sockets of the namespace that the calling thread is in.
    pub fn new(host: &'h Host, options: Options) -> SocketSource<'h> {
        SocketSource { host, options, netns: None, cache: None, own_cache: BackendCache::new(), rest_of: None }
    }

    /// Sockets of another namespace, which is entered for the time of opening. Needs CAP_SYS_ADMIN.
    pub fn inside(mut self, netns: &'h NetNs) -> SocketSource<'h> {
        self.netns = Some(netns);
        self
    }

    /// Keeps what is dear to open in `cache`, for the next source of the same session.
    pub fn with_cache(mut self, cache: &'h BackendCache) -> SocketSource<'h> {
        self.cache = Some(cache);
        self
    }

    /// Leaves out what a walk has handed out that broke off.
    pub(crate) fn finishing(mut self, walk: &'h RefCell<HandedOut>) -> SocketSource<'h> {
        self.rest_of = Some(walk);
        self
    }

    pub(crate) fn cache(&self) -> &BackendCache {
        self.cache.unwrap_or(&self.own_cache)
    }

    /// Chooses the tables that `demand` needs, and of each the backend and the filter.
    pub(crate) fn scan(&self, demand: &Demand<Sockets>) -> SocketScan<'_, 'h> {
        // A recording is filtered by the engine; only tables that cannot have such rows are left out. Every backend
        // filters but /proc, which is read only where the user asks for it or another one fails.
        let filters = |_| !self.host.is_replay() && self.options.via.is_none_or(Choice::filters);
        let Split { tables, pushed } = self.split(demand, &filters);
        let planned = |filter: TableFilter| {
            let reports_absence = self.reports_absence(demand, filter.proto);
            PlannedTable { choice: self.choose(demand, &filter), reports_absence, filter }
        };
        let counted = is_counted(demand);
        SocketScan {
            source: self,
            tables: tables.into_iter().map(planned).collect(),
            pushed,
            need: demand.need,
            repeated: demand.repeated,
            counted,
            parts: parts_of(self.host, demand.need, counted),
            narrower: if self.host.is_replay() { self.narrower_filters(demand) } else { Vec::new() },
        }
    }

    fn split(&self, demand: &Demand<Sockets>, filters: &dyn Fn(Proto) -> bool) -> Split {
        let wanted = |proto: &Proto| !self.options.if_named.contains(proto) || mentions(demand, *proto);
        let order: Vec<Proto> = self.options.order.iter().copied().filter(wanted).collect();
        split(&demand.conjuncts, &order, self.options.families, self, filters)
    }

    // Whether a table that cannot be read is worth a word.
    pub(crate) fn reports_absence(&self, demand: &Demand<Sockets>, proto: Proto) -> bool {
        is_in_every_kernel(proto) || (!self.options.quiet && expects(demand, proto))
    }

    pub(crate) fn choose(&self, demand: &Demand<Sockets>, filter: &TableFilter) -> Choice {
        let TableFilter { proto, states, .. } = *filter;
        let both: &[Table] = if proto == Proto::Tcp { &[Table::Tcp] } else { &[] };
        let held = |via| both.iter().chain(keys::tables_of(proto)).any(|table| self.host.holds(&self.key(*table, via)));
        let recorded = self.host.is_replay().then(|| Recorded {
            netlink: held(Via::Netlink),
            bpf: held(Via::Bpf),
            proc: held(Via::Proc),
        });
        let counted = is_counted(demand);
        let few_states = states & !IN_SMALL_TABLES == 0;
        let one_port = filter.sport != 0 || filter.dport != 0;
        let walk = || self.walk(demand, parts_of(self.host, demand.need, counted), one_port);
        let via = self.options.via;
        choose(&Facts { proto, need: demand.need, counted, few_states, via, recorded, walk: &walk })
    }

    // Whether the walk of TCP's tables is possible and pays.
    fn walk(&self, demand: &Demand<Sockets>, parts: u32, one_port: bool) -> Walk {
        if !cfg!(feature = "bpf") || self.netns.is_some() {
            return Walk::TooFew;
        }
        // A table must not change its stream on the tape from round to round.
        match self.cache().first().get().filter(|_| self.host.mode() == Mode::Recording) {
            Some(Via::Bpf) => return Walk::Pays("as in the first round"),
            Some(_) => return Walk::TooFew,
            None => {}
        }
        let (least, why) = match (self.cache().loaded(parts), demand.repeated) {
            (Some(Program::Walk), _) => (WORTH_WALKING, "the program is loaded"),
            (Some(Program::Iterator), _) => (WORTH_ITERATING, "the program is loaded"),
            (None, _) if self.cache().was_refused() => {
                (WORTH_LOADING_ITERATOR, "so many sockets that an iterator pays")
            }
            (None, true) => (WORTH_LOADING_FOR_MANY, "many sockets, read again and again: loading a program pays"),
            (None, false) if one_port => (WORTH_LOADING_FOR_ONE_PORT, "so many sockets that loading a program pays"),
            (None, false) => (WORTH_LOADING, "so many sockets that loading a program pays"),
        };
        let least = self.options.walk_from.unwrap_or(least);
        if expected::tcp_sockets(self.host, least) < least {
            return Walk::TooFew;
        }
        match self.cache().why_no_program() {
            Some(why_not) => Walk::No(why_not),
            None => Walk::Pays(why),
        }
    }

    // Whether the iterator is worth its load where the walk cannot be had.
    pub(crate) fn iterator_pays(&self, repeated: bool) -> bool {
        let least = self.options.walk_from.unwrap_or(iterator_from(repeated));
        self.options.via == Some(Via::Bpf) || expected::tcp_sockets(self.host, least) >= least
    }

    pub(crate) fn key(&self, table: Table, via: Via) -> String {
        keys::key(table, via, self.options.netns_id)
    }
}

impl PushdownContext for SocketSource<'_> {
    fn ifindex(&self, name: &[u8]) -> Option<u32> {
        crate::pushdown::ifindex::of(self.host, self.netns, self.options.netns_id, name)
    }

    fn may_ask_marks(&self) -> bool {
        caps::effective().is_ok_and(|set| set.has(Cap::NetAdmin))
    }
}

fn iterator_from(repeated: bool) -> u64 {
    if repeated { WORTH_ITERATING } else { WORTH_LOADING_ITERATOR }
}

/// One table of a scan.
#[derive(Debug)]
pub(crate) struct PlannedTable {
    pub(crate) choice: Choice,
    pub(crate) filter: TableFilter,
    /// True if a kernel without this table is worth a word.
    pub(crate) reports_absence: bool,
}

/// A reading of the sockets of one namespace, prepared.
#[derive(Debug)]
pub(crate) struct SocketScan<'s, 'h> {
    pub(crate) source: &'s SocketSource<'h>,
    pub(crate) tables: Vec<PlannedTable>,
    pushed: Vec<Push>,
    /// `need` bits of the demand.
    pub(crate) need: u64,
    /// True if the demand says that it will be read again.
    pub(crate) repeated: bool,
    /// True if of `tcp_info` only members are wanted that the walk copies.
    counted: bool,
    /// What the walk is to copy of each socket.
    pub(crate) parts: u32,
    /// Filters that a recording was made with and that leave out rows of this demand.
    narrower: Vec<&'s str>,
}

impl Source<Sockets> for SocketSource<'_> {
    fn prepare(&self, demand: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        Box::new(self.scan(demand))
    }
}

impl SocketScan<'_, '_> {
    fn read(&self, cache: Option<&dyn RowCache>, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        let mut stats = RowStats::default();
        for filter in &self.narrower {
            stats.unanswered(format!("the recording was made with a {filter}: other sockets are missing"));
        }
        let own = RefCell::default();
        Run::new(self, cache, each, stats, self.source.rest_of.unwrap_or(&own)).through(&self.tables)
    }
}

impl Scan<Sockets> for SocketScan<'_, '_> {
    fn offer(&self) -> Offer {
        let source = self.source;
        let used = |via| self.tables.iter().any(|table| table.choice.via == via);
        let door = match (used(Via::Bpf), used(Via::Netlink), used(Via::Proc)) {
            (true, true, true) => "bpf, netlink, proc",
            (true, true, false) => "bpf, netlink",
            (true, false, true) => "bpf, proc",
            (true, false, false) => Via::Bpf.name(),
            (false, true, true) => "netlink, proc",
            (false, false, true) => Via::Proc.name(),
            _ => Via::Netlink.name(),
        };
        let mut explain: Vec<String> =
            self.tables.iter().map(|table| explain_table(&table.choice, &table.filter)).collect();
        if self.tables.is_empty() {
            explain.push("no table can have such rows: nothing is read".into());
        }
        if source.host.is_replay() {
            explain.extend(source.recorded_filters().map(|note| format!("recorded with a {note}")));
        }
        let lacks = self.tables.iter().fold(0, |lacks, table| lacks | table.choice.lacks);
        let protos: Vec<Proto> = self.tables.iter().map(|table| table.filter.proto).collect();
        let forced = source.options.via.filter(|_| !source.host.is_replay());
        let backends = forced.map_or_else(Vec::new, |forced| backends(forced, &protos, self.counted));
        Offer { door, pushed: self.pushed.clone(), lacks, backends, explain }
    }

    fn run(&mut self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.read(None, each)
    }

    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.read(Some(cache), each)
    }
}

/// The line of `--explain` for one table.
pub(crate) fn explain_table(choice: &Choice, filter: &TableFilter) -> String {
    let words = filter.words();
    let kernel = match (choice.via, words.is_empty()) {
        (Via::Netlink, false) => format!("; the kernel filters {words}"),
        (Via::Bpf, false) => {
            format!("; filtered by {words}, the program does what concerns states, families and ports")
        }
        _ => String::new(),
    };
    let no_walk = choice.no_walk.map(|why| format!("; {why}")).unwrap_or_default();
    format!("{} sockets by {} ({}{no_walk}){kernel}", filter.proto.name(), choice.via.name(), choice.why)
}
