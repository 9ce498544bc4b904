//! The switches of ss: parses the command line into a selection of sockets and display options.

use super::filter_file;
use super::states;
use super::stop::{SINCE_6_15, Stop};
use super::tables::{Db, FAMILIES, Family, Selection};
use crate::getopt::{self, Getopt, Spec, spec};
use crate::selinux;
use crate::ss::output::{Context, Layout, Options, show};
use crate::text::printable;

/// A switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Switch {
    /// Bits of [`show`] to set.
    Show(u32),
    /// Bits of [`show`] to clear.
    Hide(u32),
    Table(Db),
    Only(Family),
    All,
    Listening,
    BoundInactive,
    FamilyWord,
    TableWords,
    Summary,
    Version,
    Help,
    Net,
    Context(Context),
    FilterFile,
    DumpFile,
    Kill,
    Events,
    /// A missing feature: the meaning of the switch, and the alternative.
    Unsupported(&'static str, &'static str),
}

const fn shows(letter: u8, long: &'static str, bits: u32) -> Spec<Switch> {
    spec(letter, long, false, Switch::Show(bits))
}

/// All switches of ss 6.15 in its order, because messages list them in that order.
#[rustfmt::skip]
const SWITCHES: &[Spec<Switch>] = &[
    shows(b'n', "numeric", show::NUMERIC), shows(b'r', "resolve", show::RESOLVE), shows(b'o', "options", show::TIMERS),
    shows(b'e', "extended", show::TIMERS | show::DETAILS), shows(b'm', "memory", show::MEMORY),
    shows(b'i', "info", show::INFO), shows(b'p', "processes", show::PROCESSES), shows(b'T', "threads", show::THREADS),
    shows(b'b', "bpf", show::TIMERS | show::FILTERS), spec(b'E', "events", false, Switch::Events),
    spec(b'd', "dccp", false, Switch::Table(Db::Dccp)), spec(b't', "tcp", false, Switch::Table(Db::Tcp)),
    spec(b'S', "sctp", false, Switch::Table(Db::Sctp)), spec(b'u', "udp", false, Switch::Table(Db::Udp)),
    spec(b'w', "raw", false, Switch::Table(Db::Raw)), spec(b'x', "unix", false, Switch::Only(Family::Unix)),
    spec(0, "tipc", false, Switch::Only(Family::Tipc)), spec(0, "vsock", false, Switch::Only(Family::Vsock)),
    spec(b'a', "all", false, Switch::All), spec(b'l', "listening", false, Switch::Listening),
    spec(b'B', "bound-inactive", false, Switch::BoundInactive), spec(b'4', "ipv4", false, Switch::Only(Family::Inet)),
    spec(b'6', "ipv6", false, Switch::Only(Family::Inet6)), spec(b'0', "packet", false, Switch::Only(Family::Packet)),
    spec(b'f', "family", true, Switch::FamilyWord), spec(b'A', "socket", true, Switch::TableWords),
    spec(b'A', "query", true, Switch::TableWords), spec(b's', "summary", false, Switch::Summary),
    spec(b'D', "diag", true, Switch::DumpFile), spec(b'F', "filter", true, Switch::FilterFile),
    spec(b'V', "version", false, Switch::Version), spec(b'v', "", false, Switch::Version),
    spec(b'h', "help", false, Switch::Help), spec(b'Z', "context", false, Switch::Context(Context::Process)),
    spec(b'z', "contexts", false, Switch::Context(Context::Socket)), spec(b'N', "net", true, Switch::Net),
    shows(0, "tipcinfo", show::TIPC), shows(0, "tos", show::TOS), shows(0, "cgroup", show::CGROUP),
    spec(b'K', "kill", false, Switch::Kill), spec(b'H', "no-header", false, Switch::Hide(show::HEADER)),
    spec(0, "xdp", false, Switch::Only(Family::Xdp)), spec(b'M', "mptcp", false, Switch::Table(Db::Mptcp)),
    shows(b'O', "oneline", show::ONE_LINE), spec(b'Q', "no-queues", false, Switch::Hide(show::QUEUES)),
    shows(0, "inet-sockopt", show::SOCKOPT),
    spec(0, "bpf-maps", false, Switch::Unsupported("socket storage", "netwren has no substitute")),
    spec(0, "bpf-map-id", true, Switch::Unsupported("socket storage", "netwren has no substitute")),
];

/// The result of the switches and the state words.
#[derive(Debug)]
pub(super) struct Flags {
    pub(super) selection: Selection,
    /// Display options. The columns Netid and State are decided after the expression is parsed.
    pub(super) options: Options,
    /// `-N`
    pub(super) netns: Option<Vec<u8>>,
    /// `-s`
    pub(super) summary: bool,
    /// `-K`
    pub(super) kill: bool,
    /// `-E`
    pub(super) events: bool,
    /// False if only the summary was requested.
    pub(super) table: bool,
    /// True if neither a table nor a family was named.
    pub(super) by_default: bool,
    /// `-D`: the file to write the kernel's messages about TCP sockets to.
    pub(super) dump_file: Option<Vec<u8>>,
    /// True if the user named states: bound-inactive sockets among them are then intended.
    pub(super) bound_is_meant: bool,
    /// The words of the expression, followed by those from `-F`.
    pub(super) expression: Vec<Vec<u8>>,
}

/// Parses switches and state words. Help, version and errors end the run and are returned as a [`Stop`].
pub(super) fn parse(args: Vec<Vec<u8>>, layout: Layout, bug_compatible: bool) -> Result<Flags, Stop> {
    let known: Vec<Spec<Switch>> =
        SWITCHES.iter().filter(|s| layout == Layout::V6_15 || !SINCE_6_15.contains(&s.long)).copied().collect();
    let mut getopt = Getopt::new(&known, args);
    let flags = Flags {
        selection: Selection::nothing(layout),
        options: Options { bug_compatible, ..Options::plain(layout).without(show::NUMERIC) },
        netns: None,
        summary: false,
        kill: false,
        events: false,
        table: true,
        by_default: true,
        dump_file: None,
        bound_is_meant: false,
        expression: Vec::new(),
    };
    let mut reader = Reader { flags, states: 0, saw_tables: false, filter_file: None };
    while let Some((switch, value)) = getopt.next().map_err(|says| Stop::usage(format!("ss: {says}")))? {
        reader.take(switch, &value)?;
    }
    reader.finish(getopt.into_rest())
}

struct Reader {
    flags: Flags,
    /// States selected by `-a`, `-l` or words; 0 selects the tables' default states.
    states: u32,
    saw_tables: bool,
    filter_file: Option<Vec<Vec<u8>>>,
}

impl Reader {
    fn take(&mut self, switch: Switch, value: &[u8]) -> Result<(), Stop> {
        let Flags { selection, options, .. } = &mut self.flags;
        match switch {
            Switch::Show(bits) => *options = options.with(bits),
            Switch::Hide(bits) => *options = options.without(bits),
            Switch::Context(context) => return self.context(context),
            Switch::FilterFile if self.filter_file.is_some() => {
                return Err(Stop::fail("More than one filter file".to_owned(), 255));
            }
            Switch::FilterFile => self.filter_file = Some(filter_file::read(value)?),
            Switch::DumpFile => self.flags.dump_file = Some(value.to_vec()),
            Switch::Kill => self.flags.kill = true,
            Switch::Events => self.flags.events = true,
            Switch::Table(db) => selection.add_table(db),
            Switch::Only(family) => selection.add_family(family),
            Switch::All => self.states = states::all(options.layout),
            Switch::Listening => self.states = states::SERVERS,
            Switch::BoundInactive => self.states = states::BOUND,
            Switch::FamilyWord => return self.family(value),
            Switch::TableWords => return self.tables(value),
            Switch::Summary => self.flags.summary = true,
            Switch::Version => return Err(Stop::version(options.layout, options.bug_compatible)),
            Switch::Help => return Err(Stop::help()),
            Switch::Net => self.flags.netns = Some(value.to_vec()),
            Switch::Unsupported(what, instead) => return Err(Stop::unsupported(what, instead)),
        }
        Ok(())
    }

    fn context(&mut self, context: Context) -> Result<(), Stop> {
        if !selinux::enabled(&sys::Host::live()) {
            return Err(Stop::fail("ss: SELinux is not enabled.".to_owned(), 1));
        }
        if self.flags.options.context != Context::Socket {
            self.flags.options.context = context;
        }
        Ok(())
    }

    fn family(&mut self, word: &[u8]) -> Result<(), Stop> {
        if word == b"help" {
            return Err(Stop::help());
        }
        match FAMILIES.iter().find(|(name, _)| name.as_bytes() == word) {
            Some((_, family)) => self.flags.selection.add_family(*family),
            None => return Err(Stop::usage(format!("ss: \"{}\" is invalid family", printable(word)))),
        }
        Ok(())
    }

    fn tables(&mut self, words: &[u8]) -> Result<(), Stop> {
        if !self.saw_tables {
            self.saw_tables = true;
            self.flags.selection.forget_tables();
            if self.states == 0 {
                self.states = states::connected(self.flags.options.layout);
            }
        }
        for word in words.split(|&b| b == b',') {
            if !self.flags.selection.table_word(word) {
                return Err(Stop::usage(format!("ss: \"{}\" is illegal socket table id", printable(word))));
            }
        }
        Ok(())
    }

    fn finish(mut self, rest: Vec<Vec<u8>>) -> Result<Flags, Stop> {
        let flags = &mut self.flags;
        flags.table = !flags.summary || !flags.selection.by_default || !rest.is_empty();
        let mut rest = rest.into_iter().peekable();
        let mut saw_states = false;
        while let Some(exclude) = rest.peek().and_then(|word| state_word(word)) {
            rest.next();
            let Some(word) = rest.next() else {
                return Err(Stop::fail("Command line is not complete. Try option \"help\"".to_owned(), 255));
            };
            let Some(states) = states::by_word(&word, flags.options.layout) else {
                return Err(Stop::fail(format!("ss: wrong state name: {}", printable(&word)), 255));
            };
            if !saw_states {
                self.states = if exclude { states::all(flags.options.layout) } else { 0 };
            }
            self.states = if exclude { self.states & !states } else { self.states | states };
            saw_states = true;
        }
        flags.by_default = flags.selection.by_default;
        flags.bound_is_meant = saw_states || self.states == states::BOUND;
        flags.selection.settle(self.states);
        flags.expression = rest.chain(self.filter_file.into_iter().flatten()).collect();
        Ok(self.flags)
    }
}

/// Parses `state` (false) and `exclude` (true: removes states); None for any other word.
fn state_word(word: &[u8]) -> Option<bool> {
    match word {
        b"state" => Some(false),
        b"exclude" | b"excl" => Some(true),
        _ => None,
    }
}

/// The switches of ss with their dashes, for completion.
pub(super) fn written() -> Vec<String> {
    getopt::written(SWITCHES)
}
