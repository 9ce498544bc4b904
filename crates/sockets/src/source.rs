//! The source: a demand in, rows out, through whichever door works.
use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;

use netlink::{Ask, DecodeError, DumpEnd, DumpError, Request};
use record::rows::need::{self, NETLINK, STORAGES};
use record::rows::{Rare, Socket, Sockets};
use record::{
    Accounting, Books, Demand, Each, Next, Offer, Op, Operand, Proto, Push, RowBytes, Source, SourceError, SourceFault,
    State, Table as _, Unchanged,
};
use sys::caps::{self, Cap};
use sys::{Errno, Host, Mode, NetNs, SysError};

use crate::bpf_door::{self, Doors, Own, WalkError, Whose};
use crate::bpf_rows::{COUNTED, Taker, part};
use crate::bytecode::Code;
use crate::choose::{Choice, Facts, Recorded, Via, Walk, choose, lacks};
use crate::expected::{
    self, WORTH_ITERATING, WORTH_LOADING, WORTH_LOADING_FOR_MANY, WORTH_LOADING_FOR_ONE_PORT, WORTH_LOADING_ITERATOR,
    WORTH_WALKING,
};
use crate::inet_diag::{AF_INET, AF_INET6, InetDecoder, STATES_ALL, Wanted, ext_of};
use crate::keys::{self, Table};
use crate::netlink_diag::{self, NetlinkDecoder};
use crate::packet_diag::{self, PacketDecoder};
use crate::proc_door::{self, ProcFile};
use crate::proc_packet::{parse_proc_netlink_line, parse_proc_packet_line};
use crate::proc_tcp::parse_proc_line;
use crate::proc_unix::{parse_proc_unix_line, restore_abstract};
use crate::pushdown::{Families, Split, TableFilter, World, only_in, split};
use crate::sctp_diag::SctpDecoder;
use crate::tipc_diag::{self, TipcDecoder};
use crate::unix_diag::{self, UnixDecoder};
use crate::vsock_diag::{self, decode_vsock};
use crate::window::Window;
use crate::xdp_diag::{self, XdpDecoder};

/// NETLINK_SOCK_DIAG (include/uapi/linux/netlink.h).
pub(crate) const NETLINK_SOCK_DIAG: i32 = 4;

/// How often a dump that the kernel calls interrupted is begun again, as long as no row of it went out.
const INTERRUPTED_RETRIES: u32 = 2;

/// What a [`SocketSource`] reads.
#[derive(Debug, Clone)]
pub struct Options {
    /// The door; `None` chooses.
    pub via: Option<Via>,
    /// Inode of the network namespace that is read: it goes into every row and names the recording's streams.
    pub netns_id: u64,
    /// The tables in the order in which their rows shall come, as far as the filter does not rule them out.
    pub order: Vec<Proto>,
    /// Those of them that are read only if the filter speaks of protocols, or of fields that they alone have.
    pub if_named: &'static [Proto],
    /// Nobody named a table: what this kernel lacks is not told, but for TCP, UDP and unix sockets.
    pub quiet: bool,
    /// What the kernel sends twice is handed out twice, as the old tools show it: netlink sockets of groups.
    pub as_sent: bool,
    /// Address families of TCP and UDP.
    pub families: Families,
    /// TCP sockets from which the walk pays; `None` is what was measured.
    pub walk_from: Option<u64>,
    /// The state mask for SCTP, DCCP, vsock and TIPC sockets as an old tool asks for it; what the kernel makes of it is
    /// shown.
    pub states: Option<u32>,
}

impl Options {
    /// Every table, both families, any door. MPTCP, UDP-Lite and netlink sockets are read if the filter names them: for
    /// the first the kernel crosses the whole host's table of tokens (2.5 ms for not one socket, where all the rest takes
    /// 0.7), nobody has one of the second, and the third are many and of little interest. SCTP, DCCP, vsock, TIPC and
    /// AF_XDP sockets are read on the same condition: asking for them makes the kernel load their modules (docs/adr/0009).
    pub fn new(netns_id: u64) -> Options {
        let order = vec![
            Proto::Tcp,
            Proto::Mptcp,
            Proto::Udp,
            Proto::UdpLite,
            Proto::Raw,
            Proto::Packet,
            Proto::Unix,
            Proto::Netlink,
            Proto::Sctp,
            Proto::Dccp,
            Proto::Vsock,
            Proto::Tipc,
            Proto::Xdp,
        ];
        let if_named = &[
            Proto::Mptcp,
            Proto::UdpLite,
            Proto::Netlink,
            Proto::Sctp,
            Proto::Dccp,
            Proto::Vsock,
            Proto::Tipc,
            Proto::Xdp,
        ];
        let families = Families::Both;
        Options {
            via: None,
            netns_id,
            order,
            if_named,
            quiet: false,
            as_sent: false,
            families,
            walk_from: None,
            states: None,
        }
    }

    /// Only this table.
    pub fn only(proto: Proto, netns_id: u64) -> Options {
        Options { order: vec![proto], if_named: &[], ..Options::new(netns_id) }
    }
}

/// The kernel's sockets. Reads the calling thread's network namespace unless told otherwise.
#[derive(Debug)]
pub struct SocketSource<'h> {
    host: &'h Host,
    options: Options,
    netns: Option<&'h NetNs>,
    /// Where a loaded program is kept; its own place if nobody lends one.
    doors: Option<&'h Doors>,
    own_doors: Doors,
    /// How many sockets at least mattered, and how many are expected: the plan is made more than once.
    expected: Cell<Option<(u64, u64)>>,
}

impl<'h> SocketSource<'h> {
    /// Sockets of the namespace that the calling thread is in.
    pub fn new(host: &'h Host, options: Options) -> SocketSource<'h> {
        SocketSource { host, options, netns: None, doors: None, own_doors: Doors::new(), expected: Cell::new(None) }
    }

    /// Sockets of another namespace, which is entered for the time of opening. Needs CAP_SYS_ADMIN.
    pub fn inside(mut self, netns: &'h NetNs) -> SocketSource<'h> {
        self.netns = Some(netns);
        self
    }

    /// Keeps what is dear to open in `doors`, for the next source of the same session.
    pub fn keeping(mut self, doors: &'h Doors) -> SocketSource<'h> {
        self.doors = Some(doors);
        self
    }

    fn doors(&self) -> &Doors {
        self.doors.unwrap_or(&self.own_doors)
    }

    /// The tables with their doors and filters, the same for `offer` and `run`.
    fn plan(&self, demand: &Demand<Sockets>) -> Plan {
        // A recording is filtered by the engine; only tables that cannot have such rows are left out.
        let filters = |proto| {
            !self.host.is_replay()
                && Choice::filters(self.choose(demand, &TableFilter::all(proto, self.options.families)).via)
        };
        let Split { tables, pushed } = self.split(demand, &filters);
        let with_door = |filter: TableFilter| {
            let choice = self.choose(demand, &filter);
            PlannedTable { choice, filter }
        };
        Plan { tables: tables.into_iter().map(with_door).collect(), pushed }
    }

    fn split(&self, demand: &Demand<Sockets>, filters: &dyn Fn(Proto) -> bool) -> Split {
        let wanted = |proto: &Proto| !self.options.if_named.contains(proto) || is_named(demand, *proto);
        let order: Vec<Proto> = self.options.order.iter().copied().filter(wanted).collect();
        split(&demand.conjuncts, &order, self.options.families, self, filters)
    }

    // Whether a table that cannot be read is worth a word.
    fn tells(&self, demand: &Demand<Sockets>, proto: Proto) -> bool {
        everywhere(proto) || (!self.options.quiet && is_told(demand, proto))
    }

    fn choose(&self, demand: &Demand<Sockets>, filter: &TableFilter) -> Choice {
        let TableFilter { proto, states, .. } = *filter;
        let both: &[Table] = if proto == Proto::Tcp { &[Table::Tcp] } else { &[] };
        let held = |via| both.iter().chain(keys::tables_of(proto)).any(|table| self.host.holds(&self.key(*table, via)));
        let recorded = self.host.is_replay().then(|| Recorded { netlink: held(Via::Netlink), bpf: held(Via::Bpf) });
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
        match self.doors().first().get().filter(|_| self.host.mode() == Mode::Recording) {
            Some(Via::Bpf) => return Walk::Pays("as in the first round"),
            Some(_) => return Walk::TooFew,
            None => {}
        }
        let (least, why) = match (self.doors().loaded(parts), demand.repeated) {
            (Some(Own::Walk), _) => (WORTH_WALKING, "the program is loaded"),
            (Some(Own::Iterator), _) => (WORTH_ITERATING, "the program is loaded"),
            (None, _) if self.doors().was_refused() => {
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
        match self.doors().why_neither() {
            Some(why_not) => Walk::No(why_not),
            None => Walk::Pays(why),
        }
    }

    // Whether the iterator is worth its load where the walk cannot be had.
    fn iterator_pays(&self, repeated: bool) -> bool {
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

    fn key(&self, table: Table, via: Via) -> String {
        keys::key(table, via, self.options.netns_id)
    }
}

impl World for SocketSource<'_> {
    fn ifindex(&self, name: &[u8]) -> Option<u32> {
        crate::ifindex::of(self.host, self.netns, self.options.netns_id, name)
    }

    fn may_ask_marks(&self) -> bool {
        caps::effective().is_ok_and(|set| set.has(Cap::NetAdmin))
    }
}

fn iterator_from(repeated: bool) -> u64 {
    if repeated { WORTH_ITERATING } else { WORTH_LOADING_ITERATOR }
}

// Tables that every kernel of use has.
fn everywhere(proto: Proto) -> bool {
    matches!(proto, Proto::Tcp | Proto::Udp | Proto::Unix)
}

// Whether the filter speaks of protocols or of what that table alone has, or such a column has to be asked for.
pub(crate) fn is_named(demand: &Demand<Sockets>, proto: Proto) -> bool {
    let mut named = proto == Proto::Netlink && demand.need & NETLINK != 0;
    for part in &demand.conjuncts {
        part.for_each_test(&mut |test| {
            let name = Sockets::FIELDS.get(test.field).map_or("", |field| field.name);
            named |= name == "proto" || only_in(name) == Some(proto);
        });
    }
    named
}

// Whether somebody waits for that table. Of those that many kernels lack only its own name says so: `proto != tcp`
// speaks of them as well.
fn is_told(demand: &Demand<Sockets>, proto: Proto) -> bool {
    if !matches!(proto, Proto::Sctp | Proto::Dccp | Proto::Vsock | Proto::Tipc | Proto::Xdp) {
        return is_named(demand, proto);
    }
    let mut told = false;
    for part in &demand.conjuncts {
        part.for_each_test(&mut |test| {
            let name = Sockets::FIELDS.get(test.field).map_or("", |field| field.name);
            let word = match (&test.operand, test.op) {
                (Operand::Words(words), Op::Eq) => words.iter().any(|word| **word == *proto.name().as_bytes()),
                _ => false,
            };
            told |= only_in(name) == Some(proto) || (name == "proto" && word);
        });
    }
    told
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
        Offer { door, pushed: plan.pushed, lacks, explain }
    }

    fn run(&mut self, demand: &Demand<Sockets>, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.read(demand, None, each)
    }

    fn run_again(
        &mut self,
        demand: &Demand<Sockets>,
        unchanged: &dyn Unchanged,
        each: &mut Each<'_, Sockets>,
    ) -> Result<Accounting, SourceError> {
        self.read(demand, Some(unchanged), each)
    }
}

impl SocketSource<'_> {
    fn read(
        &self,
        demand: &Demand<Sockets>,
        unchanged: Option<&dyn Unchanged>,
        each: &mut Each<'_, Sockets>,
    ) -> Result<Accounting, SourceError> {
        let plan = self.plan(demand);
        let mut books = Books::default();
        if self.host.is_replay() {
            for filter in self.narrower_filters(demand) {
                books.note(format!("the recording was made with a {filter}"));
            }
        }
        let parts = parts_of(self.host, demand.need, is_counted(demand));
        let mut run = Run {
            source: self,
            need: demand.need,
            repeated: demand.repeated,
            parts,
            each,
            unchanged,
            books,
            tells: true,
            listeners: false,
            stopped: false,
            failure: None,
        };
        for table in &plan.tables {
            run.tells = self.tells(demand, table.filter.proto);
            run.table(table);
            if run.stopped {
                break;
            }
        }
        run.finish()
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

impl SocketSource<'_> {
    // What the recording lacks though this run wants it: the filters it was made with, of the tables read now, unless
    // one of them is the very filter that this run would have asked the kernel for.
    fn narrower_filters(&self, demand: &Demand<Sockets>) -> Vec<&str> {
        let mut narrower: Vec<&str> = Vec::new();
        for filter in self.split(demand, &|_| true).tables {
            let wanted = [note_of(&filter, &[]), note_of(&filter, &[0])];
            let both: &[Table] = if filter.proto == Proto::Tcp { &[Table::Tcp] } else { &[] };
            for table in both.iter().chain(keys::tables_of(filter.proto)) {
                let keys = [self.key(*table, Via::Netlink), self.key(*table, Via::Bpf)];
                let ours = |of: &str| keys.iter().any(|key| **key == *of);
                let notes = || self.host.notes().iter().filter(|(of, _)| ours(of)).map(|(_, note)| &**note);
                if !notes().any(|note| wanted.iter().any(|wanted| *wanted == note)) {
                    narrower.extend(notes().filter(|note| !note.is_empty()));
                }
            }
        }
        narrower.sort_unstable();
        narrower.dedup();
        narrower
    }

    // The notes of this namespace's streams that tell of a filter.
    fn recorded_filters(&self) -> impl Iterator<Item = &str> {
        let ours = |key: &str| keys::is_ours(key, self.options.netns_id);
        let notes = self.host.notes().iter().filter(move |(key, note)| ours(key) && !note.is_empty());
        notes.map(|(_, note)| &**note)
    }
}

/// One run: what it has to say, where rows go, the books.
struct Run<'s, 'h, 'e, 'f> {
    source: &'s SocketSource<'h>,
    need: u64,
    /// Whether the tables will be read again and again.
    repeated: bool,
    /// What the walk is to copy of each socket.
    parts: u32,
    each: &'e mut Each<'f, Sockets>,
    /// Who knows rows by their bytes.
    unchanged: Option<&'e dyn Unchanged>,
    books: Books,
    /// Whether it is worth a word if the table read now is one that this kernel lacks.
    tells: bool,
    /// True while netlink reads what stands beside the walk.
    listeners: bool,
    stopped: bool,
    /// The first table that gave nothing at all.
    failure: Option<SourceError>,
}

impl Run<'_, '_, '_, '_> {
    fn table(&mut self, planned: &PlannedTable) {
        let filter = &planned.filter;
        if filter.proto == Proto::Tcp && filter.states & !IN_SMALL_TABLES != 0 {
            self.source.doors().first().set(Some(planned.choice.via));
            self.source.doors().pass_over(planned.choice.no_walk);
        }
        if planned.choice.via == Via::Bpf {
            return self.by_walk(filter);
        }
        self.by_files_or_dumps(planned.choice.via, filter);
    }

    fn by_files_or_dumps(&mut self, via: Via, filter: &TableFilter) {
        if via == Via::Netlink && filter.proto == Proto::Tcp && self.both_families_at_once(filter) {
            return;
        }
        for table in keys::tables_of(filter.proto).iter().copied() {
            if self.stopped || !filter.families.has(table.family()) {
                continue;
            }
            match via {
                Via::Netlink | Via::Bpf => self.by_netlink(table, filter),
                Via::Proc => {
                    if let Err(error) = self.by_proc(table, filter) {
                        self.proc_failed(table, error);
                    }
                }
            }
        }
    }

    // True if that was all; false if each family has to be asked for.
    fn both_families_at_once(&mut self, filter: &TableFilter) -> bool {
        let host = self.source.host;
        let possible = if host.is_replay() {
            // It may have been made with more families than are wanted now.
            host.holds(&self.netlink_key(Table::Tcp))
        } else {
            filter.families == Families::Both
        };
        if !possible {
            return false;
        }
        let rows = self.books.rows();
        match self.dump(Table::Tcp, filter) {
            Err(error) if error.is_unavailable() && self.books.rows() == rows => false,
            other => {
                self.settle(Table::Tcp, rows, other);
                true
            }
        }
    }

    // Whether /proc lacks something that is wanted of this table. Of TCP, UDP and unix sockets it is told in any case:
    // a kernel without netlink for them is odd.
    fn loses(&self, proto: Proto) -> bool {
        everywhere(proto) || lacks(Via::Proc, proto) & self.need != 0
    }

    fn by_netlink(&mut self, table: Table, filter: &TableFilter) {
        let rows = self.books.rows();
        match self.dump(table, filter) {
            Err(error) if self.may_fall_back(&error) && self.books.rows() == rows => {
                match self.by_proc(table, filter) {
                    Ok(true) if !self.tells || !self.loses(table.proto()) => {}
                    Ok(true) => {
                        let what = table.what();
                        self.books.note(format!("{what} were read from /proc/net, which knows less: {error}"));
                    }
                    // A kernel without this family: neither door can have it.
                    Ok(false) => {}
                    Err(proc) if !self.tells && lacks_table(proc.errno) => {}
                    Err(proc) => {
                        let fault = fault_of(Some(proc.errno));
                        self.fail(table, fault, Box::new(NoDoor { netlink: error, proc }));
                    }
                }
            }
            other => self.settle(table, rows, other),
        }
    }

    fn may_fall_back(&self, error: &DumpError) -> bool {
        error.is_unavailable() && (self.source.options.via != Some(Via::Netlink) || self.source.host.is_replay())
    }

    // The books' entry for a dump that is over, one way or the other.
    fn settle(&mut self, table: Table, rows_before: u64, result: Result<(), DumpError>) {
        let Err(error) = result else { return };
        if self.books.rows() > rows_before {
            return self.books.incomplete(0, error.to_string());
        }
        if !self.tells && (error.is_unavailable() || error.errno().is_some_and(lacks_table)) {
            return;
        }
        if let DumpError::Io(SysError { errno: Errno::NOT_RECORDED, .. }) = error {
            return self.not_recorded(table);
        }
        let fault = match &error {
            DumpError::Malformed { .. } | DumpError::CutShort { .. } => SourceFault::Malformed,
            error => fault_of(error.errno()),
        };
        self.fail(table, fault, Box::new(error));
    }

    fn fail(&mut self, table: Table, fault: SourceFault, cause: Box<dyn Error + Send + Sync>) {
        self.books.incomplete(0, cause.to_string());
        self.failure.get_or_insert(SourceError { what: table.what(), fault, cause });
    }

    // The run that was recorded did not ask for this table: nothing is lost, but it has to be said.
    fn not_recorded(&mut self, table: Table) {
        let cause = NotRecorded(table.what());
        self.books.note(cause.to_string());
        let fault = SourceFault::Unsupported;
        self.failure.get_or_insert(SourceError { what: table.what(), fault, cause: Box::new(cause) });
    }

    fn netlink_key(&self, table: Table) -> String {
        if self.listeners {
            return keys::listeners_key(table, self.source.options.netns_id);
        }
        self.source.key(table, Via::Netlink)
    }

    // One table by netlink. A filter that the kernel refuses (an old one, a missing right) is left out, and what it
    // would have done is done here: the engine relies on it.
    fn dump(&mut self, table: Table, filter: &TableFilter) -> Result<(), DumpError> {
        let netns_id = self.source.options.netns_id;
        let (key, unfiltered) = (self.netlink_key(table), keys::unfiltered_key(table, netns_id));
        if self.source.host.is_replay() {
            let key = if self.source.host.holds(&unfiltered) { unfiltered } else { key };
            return self.dump_until_quiet(table, &key, filter, &[], true);
        }
        let program = if table.proto().is_inet() { filter.code.compile() } else { None };
        let program = program.unwrap_or_default();
        match self.dump_until_quiet(table, &key, filter, &program, false) {
            Err(DumpError::Refused { errno, .. }) if !program.is_empty() && refuses_programs(errno) => {
                self.dump_until_quiet(table, &unfiltered, filter, &[], true)
            }
            other => other,
        }
    }

    // An interrupted dump is begun again while that can go unnoticed: as long as no row of it is out.
    fn dump_until_quiet(
        &mut self,
        table: Table,
        key: &str,
        filter: &TableFilter,
        program: &[u8],
        filter_here: bool,
    ) -> Result<(), DumpError> {
        let note = note_of(filter, program);
        let request = request_of(table, filter, program, self.need, self.source.options.states);
        let (source, what) = (self.source, table.what());
        let ask = Ask { what, protocol: NETLINK_SOCK_DIAG, request: &request, key, note: &note, netns: source.netns };
        let rows = self.books.rows();
        for _ in 0..=INTERRUPTED_RETRIES {
            let end = self.dump_once(table, &ask, filter_here.then_some(filter))?;
            self.books.used(Via::Netlink.name());
            if !end.interrupted {
                return Ok(());
            }
            if self.books.rows() > rows {
                break;
            }
        }
        let text = format!("{what} changed while they were read: some may be missing");
        self.books.incomplete(0, text);
        Ok(())
    }

    fn dump_once(
        &mut self,
        table: Table,
        ask: &Ask<'_>,
        filter_here: Option<&TableFilter>,
    ) -> Result<DumpEnd, DumpError> {
        let netns_id = self.source.options.netns_id;
        let (as_sent, window) = (self.source.options.as_sent, Window::new());
        let mut rows = Rows { each: self.each, books: &mut self.books, filter: filter_here, as_sent, window };
        let (host, proto) = (self.source.host, table.proto());
        // Rows go by reference: 400 bytes are not moved for nothing.
        let (end, unknown) = match proto {
            Proto::Unix => {
                let mut decoder = UnixDecoder::new(netns_id);
                let end = netlink::dump(host, ask, |part| rows.take(&decoder.decode(part.payload)));
                (end, decoder.unknown_attrs)
            }
            Proto::Packet => {
                let mut decoder = PacketDecoder::new(netns_id);
                let end =
                    netlink::dump(host, ask, |part| rows.take(&decoder.decode(part.payload, &mut Rare::default())));
                (end, decoder.unknown_attrs)
            }
            Proto::Netlink => {
                let mut decoder = NetlinkDecoder::new(netns_id);
                let end =
                    netlink::dump(host, ask, |part| rows.take(&decoder.decode(part.payload, &mut Rare::default())));
                (end, decoder.unknown_attrs)
            }
            Proto::Raw | Proto::Mptcp => {
                let mut decoder = InetDecoder::new(proto, netns_id).needing(self.need);
                let end = netlink::dump(host, ask, |part| {
                    rows.take(&decoder.decode_rare(part.payload, &mut Rare::default()))
                });
                (end, decoder.unknown_attrs)
            }
            Proto::Sctp => {
                let mut decoder = SctpDecoder::new(netns_id);
                let end = netlink::dump(host, ask, |part| match decoder.decode(part.payload, &mut Rare::default()) {
                    // A socket and its associations have the same cookie.
                    Ok(row) => rows.row(&row, 0),
                    Err(error) => rows.failed(error),
                });
                (end, decoder.unknown_attrs())
            }
            Proto::Vsock | Proto::Tipc | Proto::Xdp => dump_family(host, ask, proto, netns_id, &mut rows),
            Proto::Tcp | Proto::Udp | Proto::UdpLite | Proto::Dccp => {
                let mut decoder = InetDecoder::new(proto, netns_id).needing(self.need);
                let end = netlink::dump(host, ask, |part| rows.take(&decoder.decode(part.payload)));
                (end, decoder.unknown_attrs)
            }
        };
        self.books.unknown_attrs(unknown);
        self.stopped |= end.as_ref().is_ok_and(|end| end.stopped);
        end
    }

    // TCP by a program. For the walk netlink reads the listeners, whom it finds without crossing the table of connections
    // (and it knows those that are merely bound); the iterator has them itself.
    fn by_walk(&mut self, filter: &TableFilter) {
        let (source, replayed) = (self.source, self.source.host.is_replay());
        let few = filter.states & !IN_SMALL_TABLES == 0 && !replayed;
        let opened = match few || replayed {
            true => Ok(Own::Walk),
            false => source.doors().open(source.host, self.parts, || source.iterator_pays(self.repeated)),
        };
        let opened = match opened {
            Err(error) if source.options.via != Some(Via::Bpf) => {
                return self.walk_failed(filter, error, self.books.rows(), filter.states);
            }
            opened => opened,
        };
        // A recording may have the listeners here or among the connections.
        let apart = if replayed { self.holds_listeners() } else { !matches!(opened, Ok(Own::Iterator)) };
        let beside = filter.states & if apart { IN_SMALL_TABLES } else { 1 << State::BOUND_INACTIVE.0 };
        if if replayed { apart } else { beside != 0 } {
            self.listeners = true;
            self.by_files_or_dumps(Via::Netlink, &TableFilter { states: beside, ..filter.clone() });
            self.listeners = false;
        }
        if self.stopped || few {
            return;
        }
        let rows = self.books.rows();
        match opened.and_then(|own| self.walk_connections(filter, own, beside)) {
            Ok(stopped) => {
                self.stopped |= stopped;
                self.books.used(Via::Bpf.name());
            }
            Err(error) => self.walk_failed(filter, error, rows, filter.states & !beside),
        }
    }

    // Whether the recording has listeners of their own; of both families, or by one dump for each.
    fn holds_listeners(&self) -> bool {
        let key = |table: &Table| keys::listeners_key(*table, self.source.options.netns_id);
        [Table::Tcp, Table::Tcp4, Table::Tcp6].iter().any(|table| self.source.host.holds(&key(table)))
    }

    fn walk_connections(&mut self, filter: &TableFilter, own: Own, beside: u32) -> Result<bool, WalkError> {
        let source = self.source;
        let (key, note) = (source.key(Table::Tcp, Via::Bpf), note_of(filter, &[]));
        let ask = bpf_door::Ask {
            whose: Whose::Own,
            parts: self.parts,
            // A socket that is closed leaves the table before it is called so: one that says it was just let go.
            states: filter.states & !(1 << State::CLOSE.0) & !beside,
            v4: filter.families.has(AF_INET),
            v6: filter.families.has(AF_INET6),
            sport: filter.sport,
            dport: filter.dport,
            key: &key,
            note: &note,
            netns_id: source.options.netns_id,
        };
        // The program has done the rest; a recording may have been made with less of a filter.
        let behind = (source.host.is_replay() || filter.code != Code::True).then_some(filter);
        let rows =
            Rows { each: self.each, books: &mut self.books, filter: behind, window: Window::new(), as_sent: false };
        let mut rows = WalkedRows::new(rows, source.host, self.unchanged);
        match own {
            Own::Walk => source.doors().walk(source.host, &ask, &mut rows),
            Own::Iterator => source.doors().iterate(source.host, &ask, &mut rows),
        }
    }

    // What is left of the sockets by another door, if no row of them is out and nobody insists on this one.
    fn walk_failed(&mut self, filter: &TableFilter, error: WalkError, rows_before: u64, states: u32) {
        let (errno, cause): (_, Box<dyn Error + Send + Sync>) = match error {
            WalkError::Closed(cause) => (None, cause),
            WalkError::Broken(error) => (Some(error.errno), Box::new(error)),
        };
        if self.books.rows() > rows_before {
            self.books.used(Via::Bpf.name());
            return self.books.incomplete(0, format!("{} are incomplete: {cause}", Table::Tcp.what()));
        }
        if self.source.options.via == Some(Via::Bpf) && !self.source.host.is_replay() {
            let fault = errno.map_or(SourceFault::Unsupported, |errno| fault_of(Some(errno)));
            return self.fail(Table::Tcp, fault, cause);
        }
        if errno.is_some() {
            self.books.note(format!("{} were read by netlink: {cause}", Table::Tcp.what()));
        }
        self.by_files_or_dumps(Via::Netlink, &TableFilter { states, ..filter.clone() });
    }

    // One file of /proc/net; false if this kernel does not have it. An error gave no row at all.
    fn by_proc(&mut self, table: Table, filter: &TableFilter) -> Result<bool, SysError> {
        let source = self.source;
        let netns_id = source.options.netns_id;
        let filter = (*filter != TableFilter::all(filter.proto, Families::Both)).then_some(filter);
        let rows_before = self.books.rows();
        let (as_sent, window) = (self.source.options.as_sent, Window::new());
        let mut rows = Rows { each: self.each, books: &mut self.books, filter, as_sent, window };
        let file = ProcFile { host: source.host, netns: source.netns, table, key: source.key(table, Via::Proc) };
        let mut text = Vec::new();
        let end = file.read(|line| {
            let mut rare = Rare::default();
            rows.take_line(match table.proto() {
                Proto::Unix => {
                    restore_abstract(line);
                    parse_proc_unix_line(line, netns_id)
                }
                Proto::Packet => parse_proc_packet_line(line, netns_id, &mut rare),
                Proto::Netlink => parse_proc_netlink_line(line, netns_id, &mut rare, &mut text),
                proto => parse_proc_line(line, proto, netns_id),
            })
        });
        match end {
            Ok(stopped) => {
                self.stopped |= stopped;
                self.books.used(Via::Proc.name());
                Ok(true)
            }
            Err(error) if error.errno == Errno::NOENT && table.family() == AF_INET6 => Ok(false),
            Err(error) if self.books.rows() > rows_before => {
                self.books.used(Via::Proc.name());
                self.books.incomplete(0, format!("{} are incomplete: {error}", table.what()));
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn proc_failed(&mut self, table: Table, error: SysError) {
        match error.errno {
            errno if !self.tells && lacks_table(errno) => {}
            Errno::NOT_RECORDED => self.not_recorded(table),
            Errno::RECORDING_BROKEN => self.fail(table, SourceFault::Malformed, Box::new(error)),
            errno => self.fail(table, fault_of(Some(errno)), Box::new(error)),
        }
    }

    fn finish(self) -> Result<Accounting, SourceError> {
        match self.failure {
            Some(error) if !self.books.has_read() && self.books.rows() == 0 => Err(error),
            _ => Ok(self.books.close()),
        }
    }
}

/// States of sockets that netlink finds without crossing the table of connections.
pub(crate) const IN_SMALL_TABLES: u32 = 1 << State::LISTEN.0 | 1 << State::BOUND_INACTIVE.0;

/// True if some of `tcp_info` is wanted, and nothing of it but what the walk copies.
pub(crate) fn is_counted(demand: &Demand<Sockets>) -> bool {
    let of_info = demand.fields.iter().filter_map(|&i| Sockets::FIELDS.get(i)).filter(|f| f.need & need::TCP_INFO != 0);
    let mut any = false;
    let all = of_info.map(|f| f.name).all(|name| {
        any = true;
        COUNTED.contains(&name)
    });
    all && any
}

/// What the walk has to copy for these `need` bits.
pub(crate) fn parts_of(host: &Host, demanded: u64, counted: bool) -> u32 {
    let members = counted && demanded & need::TCP_INFO != 0;
    // Whoever replays a recording cannot tell a counter of nothing from one that was left out.
    let recording = host.mode() == Mode::Recording;
    let resent = demanded & need::RESENT != 0 || (demanded & need::COUNTERS != 0 && recording);
    let wanted = [
        (demanded & need::TIMER != 0, part::TIMER),
        (demanded & need::UNIX_QUEUES != 0, part::QUEUES),
        (demanded & need::COUNTERS != 0 || members, part::COUNTERS),
        (resent || members, part::RESENT),
        (members || recording, part::PATH),
        (demanded & need::MARK != 0 || recording, part::MARK),
        (demanded & need::UNIX_UID != 0 || recording, part::UID),
        (demanded & need::INODE != 0 || recording, part::INODE),
    ];
    wanted.iter().filter(|(wanted, _)| *wanted).fold(part::BOUND, |parts, (_, part)| parts | part)
}

/// Where decoded rows go.
pub(crate) struct Rows<'r, 'f> {
    pub(crate) each: &'r mut Each<'f, Sockets>,
    pub(crate) books: &'r mut Books,
    /// What the kernel was not asked or could not do.
    pub(crate) filter: Option<&'r TableFilter>,
    /// Twice what comes twice by design.
    pub(crate) as_sent: bool,
    pub(crate) window: Window,
}

impl Rows<'_, '_> {
    /// What a decoder made of a message.
    #[inline(always)]
    fn take(&mut self, decoded: &Result<Socket<'_>, DecodeError>) -> ControlFlow<()> {
        match decoded {
            Ok(row) => self.row(row, row.cookie),
            Err(error) => self.failed(*error),
        }
    }

    /// What a line was made into. A raw socket's line has its protocol where others have ports.
    fn take_line(&mut self, parsed: Result<Socket<'_>, DecodeError>) -> ControlFlow<()> {
        match parsed {
            Ok(row) if row.proto == Proto::Raw => {
                let rare = Rare { ip_protocol: u8::try_from(row.local.port).ok(), ..Rare::EMPTY };
                let row = Socket { rare: Some(&rare), ..row };
                self.row(&row, proc_door::key_of(&row))
            }
            Ok(row) => self.row(&row, proc_door::key_of(&row)),
            Err(error) => self.failed(error),
        }
    }

    #[inline]
    pub(crate) fn row(&mut self, row: &Socket<'_>, key: u64) -> ControlFlow<()> {
        if self.filter.is_some_and(|filter| !filter.admits(row)) {
            return ControlFlow::Continue(());
        }
        if self.window.is_double(key) && self.leaves_out(row.proto) {
            return ControlFlow::Continue(());
        }
        self.books.row();
        match (self.each)(row) {
            Next::More => ControlFlow::Continue(()),
            Next::Stop => ControlFlow::Break(()),
        }
    }

    /// What to do with a row that came before. Netlink sockets of groups stand in two lists of the kernel, and
    /// netlink_diag (net/netlink/diag.c, 6.18) sends both: that is no sign of a table that changed.
    #[cold]
    fn leaves_out(&mut self, proto: Proto) -> bool {
        if proto == Proto::Netlink {
            return !self.as_sent;
        }
        self.books.doubled();
        true
    }

    #[cold]
    pub(crate) fn failed(&mut self, error: DecodeError) -> ControlFlow<()> {
        self.books.failed(error);
        ControlFlow::Continue(())
    }
}

/// Rows of the walk: some are known by their bytes.
pub(crate) struct WalkedRows<'r, 'f> {
    rows: Rows<'r, 'f>,
    unchanged: Option<&'r dyn Unchanged>,
}

impl<'r, 'f> WalkedRows<'r, 'f> {
    /// `unchanged` is asked only if the kernel itself is read, and rows need no further filter.
    pub(crate) fn new(rows: Rows<'r, 'f>, host: &Host, unchanged: Option<&'r dyn Unchanged>) -> WalkedRows<'r, 'f> {
        let unchanged = unchanged.filter(|_| host.mode() == Mode::Live && rows.filter.is_none());
        WalkedRows { rows, unchanged }
    }
}

impl Taker for WalkedRows<'_, '_> {
    #[inline(always)]
    fn row(&mut self, row: Result<(&Socket<'_>, u64), DecodeError>) -> ControlFlow<()> {
        match row {
            Ok((row, key)) => self.rows.row(row, key),
            Err(error) => {
                self.unchanged.iter().for_each(|unchanged| unchanged.forget());
                self.rows.failed(error)
            }
        }
    }

    #[inline]
    fn knows_bytes(&self) -> bool {
        self.unchanged.is_some()
    }

    #[inline]
    fn again(&mut self, bytes: RowBytes<'_>) -> Option<ControlFlow<()>> {
        // What comes twice is counted where all rows are.
        let unchanged = self.unchanged.filter(|_| !self.rows.window.has(bytes.key))?;
        let again = unchanged.again(bytes)?;
        self.rows.window.is_double(bytes.key);
        self.rows.books.row();
        Some(match again.next {
            Next::More => ControlFlow::Continue(()),
            Next::Stop => ControlFlow::Break(()),
        })
    }
}

// One dump of a family that has no IP addresses and no text of its own.
fn dump_family(
    host: &Host,
    ask: &Ask<'_>,
    proto: Proto,
    netns_id: u64,
    rows: &mut Rows<'_, '_>,
) -> (Result<DumpEnd, DumpError>, u64) {
    let (mut tipc, mut xdp) = (TipcDecoder::new(netns_id), XdpDecoder::new(netns_id));
    let end = netlink::dump(host, ask, |part| {
        let mut rare = Rare::default();
        rows.take(&match proto {
            Proto::Tipc => tipc.decode(part.payload, &mut rare),
            Proto::Xdp => xdp.decode(part.payload, &mut rare),
            _ => decode_vsock(part.payload, netns_id, &mut rare),
        })
    });
    (end, tipc.unknown_attrs + xdp.unknown_attrs)
}

/// Neither door opened.
#[derive(Debug)]
struct NoDoor {
    netlink: DumpError,
    proc: SysError,
}

impl fmt::Display for NoDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.netlink, self.proc)
    }
}

impl Error for NoDoor {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.proc)
    }
}

/// The run that made the recording did not read this table.
#[derive(Debug)]
struct NotRecorded(&'static str);

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the recording holds no {}", self.0)
    }
}

impl Error for NotRecorded {}

pub(crate) fn fault_of(errno: Option<Errno>) -> SourceFault {
    match errno {
        Some(errno) if errno.is_denied() => SourceFault::Denied,
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::NOSYS) => {
            SourceFault::Unsupported
        }
        _ => SourceFault::Io,
    }
}

// The kernel has no such table, or the run that was recorded found none.
fn lacks_table(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOT_RECORDED)
}

// EPERM: marks without CAP_NET_ADMIN. EINVAL: an operation that an old kernel does not have.
fn refuses_programs(errno: Errno) -> bool {
    matches!(errno, Errno::PERM | Errno::INVAL)
}

// What a recording has to say about itself: what the kernel left out is missing in it.
pub(crate) fn note_of(filter: &TableFilter, program: &[u8]) -> String {
    let words =
        if program.is_empty() { TableFilter { code: Code::True, ..filter.clone() }.words() } else { filter.words() };
    if words.is_empty() { words } else { format!("kernel filter: {words}") }
}

// bpf_capable() in the kernel.
fn may_ask_storages() -> bool {
    caps::effective().is_ok_and(|set| set.has(Cap::Bpf) || set.has(Cap::SysAdmin))
}

fn request_of(table: Table, filter: &TableFilter, program: &[u8], need: u64, as_asked: Option<u32>) -> Request {
    let TableFilter { states, sport, dport, .. } = *filter;
    // Without the right the kernel would refuse the whole request.
    let storages = need & STORAGES != 0 && may_ask_storages();
    // Numbers of associations are no part of other tables' attributes.
    let of_table = if table.proto() == Proto::Sctp { need } else { need & !need::SCTP };
    let states = match table.proto() {
        Proto::Sctp | Proto::Vsock | Proto::Tipc => as_asked.unwrap_or(states),
        // PARTOPEN is one of its own: 13, and 14 since 6.8.
        Proto::Dccp => as_asked.unwrap_or(STATES_ALL | 3 << 13),
        _ => states,
    };
    let wanted = Wanted { ext: ext_of(of_table), states, sport, dport, bytecode: program, storages };
    match table {
        Table::Tcp => wanted.legacy(),
        Table::Unix => unix_diag::request(states, unix_diag::show_of(need)),
        Table::Packet => packet_diag::request(packet_diag::show_of(need)),
        Table::Netlink => netlink_diag::request(netlink_diag::show_of(need)),
        Table::Vsock => vsock_diag::request(states),
        Table::Tipc => tipc_diag::request(states),
        Table::Xdp => xdp_diag::request(xdp_diag::show_of(need)),
        table => wanted.by_family(table.family(), table.proto()),
    }
}
