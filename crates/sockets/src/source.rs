//! The source: a demand in, rows out, through whichever backend works. Start reading at [`SocketSource`].
pub(crate) mod recorded;

use std::cell::{Cell, RefCell};

use record::rows::Sockets;
use record::{Accounting, Demand, Each, Offer, Proto, Push, RowCache, RowStats, Source, SourceError};
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
use crate::pushdown::named::{is_in_every_kernel, is_named, is_told};
use crate::pushdown::{Split, TableFilter, World, split};
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
    /// How many sockets at least mattered, and how many are expected: the plan is made more than once.
    expected: Cell<Option<(u64, u64)>>,
    /// What a walk has handed out that this finishes; its own otherwise.
    rest_of: Option<&'h RefCell<HandedOut>>,
    own_handed_out: RefCell<HandedOut>,
}

impl<'h> SocketSource<'h> {
    /// Sockets of the namespace that the calling thread is in.
    pub fn new(host: &'h Host, options: Options) -> SocketSource<'h> {
        SocketSource {
            host,
            options,
            netns: None,
            cache: None,
            own_cache: BackendCache::new(),
            expected: Cell::new(None),
            rest_of: None,
            own_handed_out: RefCell::default(),
        }
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

    pub(crate) fn handed_out(&self) -> &RefCell<HandedOut> {
        self.rest_of.unwrap_or(&self.own_handed_out)
    }

    pub(crate) fn cache(&self) -> &BackendCache {
        self.cache.unwrap_or(&self.own_cache)
    }

    /// The tables with their backends and filters, the same for `offer` and `run`.
    fn plan(&self, demand: &Demand<Sockets>) -> Plan {
        // A recording is filtered by the engine; only tables that cannot have such rows are left out.
        let filters = |proto| {
            !self.host.is_replay()
                && Choice::filters(self.choose(demand, &TableFilter::all(proto, self.options.families)).via)
        };
        let Split { tables, pushed } = self.split(demand, &filters);
        let with_choice = |filter: TableFilter| {
            let choice = self.choose(demand, &filter);
            PlannedTable { choice, filter }
        };
        Plan { tables: tables.into_iter().map(with_choice).collect(), pushed }
    }

    fn split(&self, demand: &Demand<Sockets>, filters: &dyn Fn(Proto) -> bool) -> Split {
        let wanted = |proto: &Proto| !self.options.if_named.contains(proto) || is_named(demand, *proto);
        let order: Vec<Proto> = self.options.order.iter().copied().filter(wanted).collect();
        split(&demand.conjuncts, &order, self.options.families, self, filters)
    }

    // Whether a table that cannot be read is worth a word.
    pub(crate) fn tells(&self, demand: &Demand<Sockets>, proto: Proto) -> bool {
        is_in_every_kernel(proto) || (!self.options.quiet && is_told(demand, proto))
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
        if self.expected(least) < least {
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
        self.options.via == Some(Via::Bpf) || self.expected(least) >= least
    }

    fn expected(&self, least: u64) -> u64 {
        match self.expected.get() {
            Some((of, count)) if of == least => count,
            _ => {
                let count = expected::tcp_sockets(self.host, least);
                self.expected.set(Some((least, count)));
                count
            }
        }
    }

    pub(crate) fn key(&self, table: Table, via: Via) -> String {
        keys::key(table, via, self.options.netns_id)
    }
}

impl World for SocketSource<'_> {
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

#[derive(Debug)]
struct Plan {
    tables: Vec<PlannedTable>,
    pushed: Vec<Push>,
}

#[derive(Debug)]
pub(crate) struct PlannedTable {
    pub(crate) choice: Choice,
    pub(crate) filter: TableFilter,
}

impl Source<Sockets> for SocketSource<'_> {
    fn offer(&self, demand: &Demand<Sockets>) -> Offer {
        let plan = self.plan(demand);
        let used = |via| plan.tables.iter().any(|table| table.choice.via == via);
        let door = match (used(Via::Bpf), used(Via::Netlink), used(Via::Proc)) {
            (true, true, true) => "bpf, netlink, proc",
            (true, true, false) => "bpf, netlink",
            (true, false, true) => "bpf, proc",
            (true, false, false) => Via::Bpf.name(),
            (false, true, true) => "netlink, proc",
            (false, false, true) => Via::Proc.name(),
            _ => Via::Netlink.name(),
        };
        let mut explain: Vec<String> = plan.tables.iter().map(explain_table).collect();
        if plan.tables.is_empty() {
            explain.push("no table can have such rows: nothing is read".into());
        }
        if self.host.is_replay() {
            explain.extend(self.recorded_filters().map(|note| format!("recorded with a {note}")));
        }
        let lacks = plan.tables.iter().fold(0, |lacks, table| lacks | table.choice.lacks);
        let protos: Vec<Proto> = plan.tables.iter().map(|table| table.filter.proto).collect();
        let forced = self.options.via.filter(|_| !self.host.is_replay());
        let backends = forced.map_or_else(Vec::new, |forced| {
            let counted = is_counted(demand);
            backends(forced, &protos, counted)
        });
        Offer { door, pushed: plan.pushed, lacks, backends, explain }
    }

    fn read(
        &mut self,
        demand: &Demand<Sockets>,
        cache: Option<&dyn RowCache>,
        each: &mut Each<'_, Sockets>,
    ) -> Result<Accounting, SourceError> {
        let plan = self.plan(demand);
        *self.own_handed_out.get_mut() = HandedOut::default();
        let mut stats = RowStats::default();
        if self.host.is_replay() {
            for filter in self.narrower_filters(demand) {
                stats.unanswered(format!("the recording was made with a {filter}: other sockets are missing"));
            }
        }
        Run::new(self, demand, cache, each, stats).through(&plan.tables)
    }
}

pub(crate) fn explain_table(table: &PlannedTable) -> String {
    let PlannedTable { choice, filter } = table;
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
