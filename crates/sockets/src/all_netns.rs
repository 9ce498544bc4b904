//! Sockets of many network namespaces as one table.
//!
//! Each namespace is entered once for all of its tables, on the calling thread, and read by a separate
//! [`SocketSource`]: sock_diag answers for the namespace in which its socket was opened. If a namespace cannot be
//! entered or no longer exists, only its rows are missing, and a note says so. If the walk is available, TCP is read in
//! one pass over the kernel's tables, without entering a namespace (`walk`). How namespaces are found is not this
//! module's concern.
mod walk;

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

use record::rows::{Socket, Sockets};
use record::{
    Accounting, Demand, Each, FilterPushdown, MergedStats, Next, Offer, Proto, RowCache, Scan, Source, SourceError,
    Table,
};
use sys::caps::{self, Cap};
use sys::{Host, NetnsTarget, UnenteredNetns, visit_each};

use self::walk::WalkExtent;
use crate::backends::bpf::cache::BackendCache;
use crate::backends::handed_out::HandedOut;
use crate::choose::{Choice, Via};
use crate::options::Options;
use crate::pushdown::named::tests_table;
use crate::pushdown::{PushdownContext, SplitFilter, TableFilter, split};
use crate::source::{SocketSource, explain_table};

/// The note if only the walk reaches a namespace.
const UNREACHABLE: &str = "a network namespace cannot be entered: only its TCP sockets were read";

/// The sockets of several namespaces, one after the other in the order of `targets`.
#[derive(Debug)]
pub struct AllNetnsSockets<'h> {
    host: &'h Host,
    options: Options,
    targets: Vec<NetnsTarget<'h>>,
    cache: &'h BackendCache,
}

impl<'h> AllNetnsSockets<'h> {
    /// Sockets of all namespaces in `targets`; the namespace in `options` is not used. Entering a namespace needs
    /// CAP_SYS_ADMIN. Loaded programs are kept in `cache`.
    pub fn new(
        host: &'h Host,
        options: Options,
        targets: Vec<NetnsTarget<'h>>,
        cache: &'h BackendCache,
    ) -> AllNetnsSockets<'h> {
        AllNetnsSockets { host, options, targets, cache }
    }

    /// The source for one namespace, without the protocol that is read for all namespaces at once.
    fn source(&self, netns_id: u64, without: Option<Proto>) -> SocketSource<'h> {
        let mut options = Options { netns_id, ..self.options.clone() };
        options.order.retain(|proto| Some(*proto) != without);
        SocketSource::new(self.host, options).with_cache(self.cache)
    }

    /// The tables left by the parts of the filter that do not depend on the namespace.
    fn split(&self, demand: &Demand<Sockets>) -> SplitFilter {
        let wanted = |proto: &Proto| !self.options.if_named.contains(proto) || tests_table(demand, *proto);
        let order: Vec<Proto> = self.options.order.iter().copied().filter(wanted).collect();
        split(&demand.conjuncts, &order, self.options.families, self, &|_| true)
    }
}

impl PushdownContext for AllNetnsSockets<'_> {
    /// The name may belong to another interface in other namespaces, so the engine decides.
    fn ifindex(&self, _name: &[u8]) -> Option<u32> {
        None
    }

    fn may_ask_marks(&self) -> bool {
        caps::effective().is_ok_and(|set| set.contains(Cap::NetAdmin))
    }
}

impl Source<Sockets> for AllNetnsSockets<'_> {
    fn prepare(&self, demand: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        let tables = self.split(demand).tables;
        let walk = self.tcp_by_walk(demand, &tables);
        Box::new(AllNetnsScan { source: self, demand: demand.clone(), tables, walk })
    }
}

/// A prepared reading of all namespaces. Each namespace's own scan is prepared inside it when its turn comes, because
/// names of interfaces and numbers of sockets differ.
struct AllNetnsScan<'s, 'h> {
    source: &'s AllNetnsSockets<'h>,
    demand: Demand<Sockets>,
    /// The tables left by the parts of the filter that do not depend on the namespace.
    tables: Vec<TableFilter>,
    /// The walk of TCP, if it is used.
    walk: Option<(TableFilter, Choice)>,
}

impl Scan<Sockets> for AllNetnsScan<'_, '_> {
    fn offer(&self) -> Offer {
        let AllNetnsScan { source, demand, tables, walk } = self;
        let Some(first) = source.targets.first() else { return Offer::default() };
        let of_one = source.source(first.netns_id, None);
        let mut of_one = of_one.scan(demand);
        let mut explain = Vec::new();
        let mut offer = of_one.offer();
        if let Some((filter, choice)) = walk {
            explain.push(explain_table(choice, filter));
            let others = tables.iter().any(|table| table.proto != Proto::Tcp);
            of_one.plan.tables.retain(|table| table.filter.proto != Proto::Tcp);
            let rest = of_one.offer();
            offer.lacks = choice.lacks | if others { rest.lacks } else { 0 };
            offer.backend = if others { "bpf, netlink" } else { Via::Bpf.name() };
            offer.explain = if others { rest.explain } else { Vec::new() };
        }
        for (push, part) in offer.pushdown.iter_mut().zip(&demand.conjuncts) {
            let mut names_one = false;
            part.for_each_test(&mut |test| {
                names_one |= Sockets::FIELDS.get(test.field).is_some_and(|f| f.name == "iface");
            });
            if names_one {
                *push = FilterPushdown::Unsupported;
            }
        }
        if source.cache.why_no_walk().is_some() || !cfg!(feature = "bpf") {
            explain.push("without BPF, network namespaces that only a socket keeps alive are not found".into());
        }
        if !offer.explain.is_empty() {
            explain.append(&mut offer.explain);
            let many = source.targets.len();
            explain.push(format!("via netlink and proc in each of {many} network namespaces, one after the other"));
        }
        Offer { explain, ..offer }
    }

    fn run(&mut self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.read(None, each)
    }

    // Only rows of the walk have bytes to compare. If TCP is walked, there are few others.
    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.read(Some(cache), each)
    }
}

/// Parameters of reading each namespace separately.
struct EachNetns<'r> {
    demand: &'r Demand<Sockets>,
    tables: &'r [TableFilter],
    /// The sockets that a walk has handed out.
    handed_out: &'r RefCell<HandedOut>,
    stopped: &'r Cell<bool>,
}

impl AllNetnsScan<'_, '_> {
    fn read(&self, cache: Option<&dyn RowCache>, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        let AllNetnsScan { source, demand, tables, walk } = self;
        let mut round = Round::default();
        if source.targets.is_empty() {
            return round.finish();
        }
        let stopped = Cell::new(false);
        let mut each = |row: &Socket<'_>| {
            let next = each(row);
            stopped.set(next == Next::Stop);
            next
        };
        let handed_out = RefCell::default();
        let walked = walk.as_ref().map_or(WalkExtent::Not, |(filter, choice)| {
            let walker = source.walker(demand, filter, cache, &handed_out);
            source.walk_all(&walker, *choice, &mut each, &mut round)
        });
        let rest = EachNetns { demand, tables, handed_out: &handed_out, stopped: &stopped };
        if walked == WalkExtent::Partly {
            handed_out.borrow_mut().finish();
            source.read_each(&rest, &source.only_tcp(), &mut each, &mut round);
        }
        let mut options = source.options.clone();
        if walked != WalkExtent::Not {
            options.order.retain(|proto| *proto != Proto::Tcp);
        }
        if tables.iter().any(|table| options.order.contains(&table.proto)) {
            source.read_each(&rest, &options, &mut each, &mut round);
        }
        round.finish()
    }
}

impl AllNetnsSockets<'_> {
    /// Options for the TCP sockets that netlink reads after an interrupted walk.
    fn only_tcp(&self) -> Options {
        Options { via: Some(Via::Netlink), order: vec![Proto::Tcp], ..self.options.clone() }
    }

    fn read_each(&self, rest: &EachNetns<'_>, options: &Options, each: &mut Each<'_, Sockets>, round: &mut Round) {
        if rest.stopped.get() {
            return;
        }
        let (targets, unreachable): (Vec<_>, Vec<_>) =
            self.targets.iter().copied().partition(NetnsTarget::can_be_entered);
        let not_entered = visit_each(self.host, &targets, "/sockets", &mut |target| {
            let options = Options { netns_id: target.netns_id, ..options.clone() };
            let source = SocketSource::new(self.host, options).with_cache(self.cache);
            round.many.add(source.finishing_walk(rest.handed_out).run(rest.demand, each));
            if rest.stopped.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        round.not_entered.append(not_entered);
        for target in unreachable {
            if rest.stopped.get() {
                break;
            }
            self.read_by_number(&target, rest, options, each, round);
        }
    }
}

/// The result for all namespaces so far.
#[derive(Default)]
struct Round {
    many: MergedStats,
    not_entered: UnenteredNetns,
    /// Number of namespaces that no path leads into.
    unreachable: u64,
}

impl Round {
    fn finish(mut self) -> Result<Accounting, SourceError> {
        let rows_are_whole = !self.many.stats.incomplete;
        self.many.add_vanished(self.not_entered.gone);
        if self.unreachable > 0 {
            self.many.stats.incomplete(self.unreachable, UNREACHABLE);
        }
        self.not_entered.unreadable.into_iter().for_each(|why| self.many.not_entered(why.error.errno.is_denied(), why));
        self.many.stats.only_namespaces_missing = rows_are_whole && self.many.stats.incomplete;
        self.many.finish()
    }
}
