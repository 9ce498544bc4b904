//! Every flag of the native commands, and every environment variable that netwren reads: one entry each.
//!
//! Parser, help, man page, completion and error messages use this table. Flags and commands have a [`Scope`]; a
//! command takes a flag if their scopes intersect.

/// The features of a command, one bit each; for a flag, the features that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Scope(u64);

impl Scope {
    /// Matches no command.
    pub(crate) const NONE: Scope = Scope(0);
    /// The command writes rows.
    pub(crate) const ROWS: Scope = Scope(1).and(Scope::MATCHES);
    /// Rows are search results: `--exit-code` reports whether any matched.
    pub(crate) const MATCHES: Scope = Scope(1 << 41);
    /// `--columns` selects the columns.
    pub(crate) const COLUMNS: Scope = Scope(1 << 1);
    /// Rows can be sorted.
    pub(crate) const SORT: Scope = Scope(1 << 2);
    /// `--by` makes groups.
    pub(crate) const BY: Scope = Scope(1 << 3);
    /// Groups have sums and other aggregates.
    pub(crate) const FOLDS: Scope = Scope(1 << 4);
    /// Rows have columns for their owner.
    pub(crate) const OWNERS: Scope = Scope(1 << 5);
    /// Owners can be found via more than one interface.
    pub(crate) const OWNERS_VIA: Scope = Scope(1 << 6);
    /// Rows have addresses, which have host names.
    pub(crate) const NAMES: Scope = Scope(1 << 7);
    /// Rows can be read repeatedly.
    pub(crate) const WATCH: Scope = Scope(1 << 8);
    /// Connections can be followed.
    pub(crate) const FOLLOW: Scope = Scope(1 << 9);
    /// Rows can be recorded and replayed.
    pub(crate) const PLACES: Scope = Scope(1 << 10);
    /// Rows can be read via more than one kernel interface.
    pub(crate) const VIA: Scope = Scope(1 << 11);
    /// `flows`.
    pub(crate) const FLOWS: Scope = Scope(1 << 12);
    /// One of the kernel's conntrack tables.
    pub(crate) const CT_TABLE: Scope = Scope(1 << 13);
    /// `nat stats`.
    pub(crate) const PER_CPU: Scope = Scope(1 << 14);
    /// `nat events`.
    pub(crate) const EVENTS: Scope = Scope(1 << 15);
    /// `nat advise`.
    pub(crate) const ADVICE: Scope = Scope(1 << 16);
    /// `sockets kill`.
    pub(crate) const CLOSING: Scope = Scope(1 << 17);
    /// `nat delete`.
    pub(crate) const DELETING: Scope = Scope(1 << 18);
    /// `nat stateless plan`.
    pub(crate) const RULES: Scope = Scope(1 << 19);
    /// `nat stateless verify`.
    pub(crate) const VERIFY: Scope = Scope(1 << 20);
    /// `record`.
    pub(crate) const RECORD: Scope = Scope(1 << 21);
    /// `support`.
    pub(crate) const SUPPORT: Scope = Scope(1 << 22);
    /// `netwren` without a command.
    pub(crate) const HOME: Scope = Scope(1 << 23);
    /// `log`.
    pub(crate) const LOG: Scope = Scope(1 << 24);

    /// The command has a stream of rows, which can be shipped.
    pub(crate) const SHIP: Scope = Scope(1 << 25);
    /// The rounds of a table can be shipped.
    pub(crate) const ROUNDS: Scope = Scope(1 << 57);
    /// `agent`.
    pub(crate) const AGENT: Scope = Scope(1 << 58);
    /// Rows can be shipped: of a stream, or of rounds.
    pub(crate) const SHIPPED: Scope = Scope::SHIP.and(Scope::FOLLOW).and(Scope::ROUNDS);
    /// Rows can be read from every namespace.
    pub(crate) const ALL_NETNS: Scope = Scope(1 << 27);

    /// `log setup`.
    pub(crate) const LOG_RULE: Scope = Scope(1 << 26);

    /// `log` itself, which can run as a service.
    pub(crate) const LOG_SERVICE: Scope = Scope(1 << 30);

    /// `log top`.
    pub(crate) const LOG_TOP: Scope = Scope(1 << 29);

    /// `log status`.
    pub(crate) const STATUS: Scope = Scope(1 << 28);

    /// `capture`.
    pub(crate) const CAPTURE: Scope = Scope(1 << 31);

    /// Packet files are written from other packet files.
    pub(crate) const COPIES: Scope = Scope(1 << 32);

    /// `capture cut`.
    pub(crate) const CUT: Scope = Scope(1 << 33);

    /// `capture latency`.
    pub(crate) const LATENCY: Scope = Scope(1 << 34);

    /// `doctor`.
    pub(crate) const DOCTOR: Scope = Scope(1 << 42);
    /// `counters`.
    pub(crate) const COUNTERS: Scope = Scope(1 << 40);
    /// `doctor softirq`.
    pub(crate) const SOFTIRQ: Scope = Scope(1 << 48);
    /// `doctor path`.
    pub(crate) const PATH: Scope = Scope(1 << 49);
    /// `drops`.
    pub(crate) const DROPS: Scope = Scope(1 << 36);

    /// Rows have a user.
    pub(crate) const USERS: Scope = Scope(1 << 55);

    /// `--for` ends the rounds or the stream.
    pub(crate) const LASTS: Scope = Scope(1 << 56);

    /// `--for` is the time that one reading takes. With `--watch`, it ends the rounds, which then take that time.
    pub(crate) const WINDOWS: Scope =
        Scope::COUNTERS.and(Scope::DOCTOR).and(Scope::SOFTIRQ).and(Scope::PATH).and(Scope::LATENCY);

    /// Features of every table: rows with columns, sorting, groups, rounds, namespaces and recordings.
    pub(crate) const TABLE: Scope = Scope::ROWS
        .and(Scope::COLUMNS)
        .and(Scope::SORT)
        .and(Scope::BY)
        .and(Scope::FOLDS)
        .and(Scope::NAMES)
        .and(Scope::WATCH)
        .and(Scope::PLACES)
        .and(Scope::ALL_NETNS)
        .and(Scope::LASTS)
        .and(Scope::ROUNDS);
    /// A table whose rows have owners, found via several interfaces.
    pub(crate) const OWNED_TABLE: Scope = Scope::TABLE.and(Scope::OWNERS).and(Scope::OWNERS_VIA).and(Scope::VIA);
    /// The table of the objects of an action.
    pub(crate) const ACTION: Scope =
        Scope::ROWS.and(Scope::COLUMNS).and(Scope::SORT).and(Scope::OWNERS).and(Scope::NAMES);

    /// The union of two scopes.
    pub(crate) const fn and(self, other: Scope) -> Scope {
        Scope(self.0 | other.0)
    }

    /// The scope without the bits of `other`.
    pub(crate) const fn without(self, other: Scope) -> Scope {
        Scope(self.0 & !other.0)
    }

    /// True if the two have a bit in common.
    pub(crate) const fn meets(self, other: Scope) -> bool {
        self.0 & other.0 != 0
    }
}

/// A flag and its description. Two entries may have the same name if no command takes both.
pub(crate) struct Flag {
    /// Long name without dashes, which is also its id.
    pub(crate) long: &'static str,
    /// One-letter name.
    pub(crate) short: Option<char>,
    /// The value that it takes.
    pub(crate) takes: Takes,
    /// The sentence of `--help` and the man page.
    pub(crate) help: &'static str,
    /// Heading in `--help`; empty for the default heading.
    pub(crate) group: &'static str,
    /// The commands that take it.
    pub(crate) scope: Scope,
    /// The default value, shown in the help; empty for no default.
    pub(crate) default: &'static str,
}

impl Flag {
    /// The flag with a default value.
    const fn default(self, default: &'static str) -> Flag {
        Flag { default, ..self }
    }
}

/// The value after a flag.
#[derive(Clone, Copy)]
pub(crate) enum Takes {
    /// The flag takes no value.
    Nothing,
    /// The flag takes no value. It can be repeated, and the count matters.
    Counted,
    /// A value; the name is for the help.
    Value(&'static str),
    /// A value; the flag can be repeated.
    Values(&'static str),
    /// The path of a file.
    File(&'static str),
    /// An optional value, and its default when the flag is given alone. Written `--flag=VALUE`.
    Maybe(&'static str, &'static str),
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Takes {
    /// True if the word after the flag is its value.
    pub(crate) const fn takes_next_word(self) -> bool {
        !matches!(self, Takes::Nothing | Takes::Counted | Takes::Maybe(..))
    }
}

/// An environment variable.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its effect, as in the man page; words between `*` are bold.
    pub help: &'static str,
}

/// The variables that netwren reads, except for variables of the tools that its faces replace.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "NETWREN_SS_LAYOUT",
        help: "6.1 or 6.15: the layout and the switches of *netwren ss*. The default is the layout of the installed ss \
               (6.1 up to iproute2 6.6,\n\
               6.15 from 6.7 on), which netwren searches in PATH and the usual directories, and reads without running \
               it; without ss, 6.15.",
    },
    Variable {
        name: "NETWREN_BUG_COMPATIBLE",
        help: "1: the faces reproduce errors of their tool byte for byte, as with *--bug-compatible*.",
    },
    Variable {
        name: "NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS",
        help: "and related variables (sd_notify(3), sd_listen_fds(3)): *log*, and commands that ship rows, report \
               their state to the service manager;\n*log* also lets it keep the sockets for the next run.",
    },
    Variable {
        name: "COLUMNS",
        help: "width of tables and texts in columns, instead of the terminal's width; also aligns tables in a pipe.",
    },
    Variable { name: "NO_COLOR", help: "if not empty: no colour, unless *--color* requests it." },
];

use Takes::{Counted, File, Maybe, Nothing, Value, Values, Word};

const ROWS_AND_COLUMNS: &str = "Rows and columns";
const OUTPUT: &str = "Output";
const READ_FROM: &str = "Where to read";
const SAMPLING: &str = "Sampling";
const INPUT: &str = "Input";
const ACTIONS: &str = "Actions";
const SHIPPING: &str = "Shipping";
/// clap's default heading.
const OPTIONS: &str = "";

const fn flag(
    scope: Scope,
    long: &'static str,
    short: Option<char>,
    takes: Takes,
    group: &'static str,
    help: &'static str,
) -> Flag {
    Flag { long, short, takes, help, group, scope, default: "" }
}

/// The flags in the order of the help.
pub(crate) const FLAGS: &[Flag] = &[
    flag(
        Scope::ADVICE,
        "samples",
        None,
        Value("N"),
        SAMPLING,
        "Number of samples; a growth rate needs two that are a second apart, a forecast three",
    )
    .default("3"),
    flag(Scope::ADVICE, "interval", None, Value("SECONDS"), SAMPLING, "Time between samples").default("1"),
    flag(
        Scope::ADVICE,
        "memory",
        None,
        Value("SIZE"),
        SAMPLING,
        "Memory that the recommended table may take (512M, 2GiB: units of 1024); by default a tenth of the host's \
        memory",
    ),
    flag(
        Scope::COUNTERS,
        "for",
        None,
        Value("SECONDS"),
        ROWS_AND_COLUMNS,
        "Time between the two readings that are compared (default 1). In a recording: time from its first round to the \
         round compared with it (default: the last). With --watch, which compares its rounds: end after this time",
    ),
    flag(
        Scope::DOCTOR,
        "for",
        None,
        Value("SECONDS"),
        ROWS_AND_COLUMNS,
        "Time to watch the host (default 3). In a recording: time from its first round to the round compared with it \
         (default: the last). With --watch, which compares its rounds: end after this time",
    ),
    flag(
        Scope::DOCTOR,
        "baseline",
        None,
        File("FILE"),
        ROWS_AND_COLUMNS,
        "Show changes since the recording the host was recorded in good condition (`netwren record FILE`): findings, \
         settings, listeners, and rates that are at least three times as high",
    ),
    flag(Scope::COUNTERS, "changed", None, Nothing, ROWS_AND_COLUMNS, "Only counters that changed"),
    flag(
        Scope::COLUMNS,
        "columns",
        Some('c'),
        Values("LIST"),
        ROWS_AND_COLUMNS,
        "Columns to show: `a,b`; `+a` adds a column to the default ones, `-a` leaves one out, `all` is every field, \
         `help` describes them all",
    ),
    flag(
        Scope::FLOWS,
        "columns",
        Some('c'),
        Values("LIST"),
        ROWS_AND_COLUMNS,
        "Columns to show: `a,b`; also `+a`, `-a`, `all`, `help`",
    ),
    flag(
        Scope::BY,
        "by",
        None,
        Value("LIST"),
        ROWS_AND_COLUMNS,
        "One row per distinct value of these fields, with `count`, largest first. `peer` is the peer's address; \
         `peer_addr/24` is its network, `peer_addr/24/64` sets another length for IPv6. With --all-netns each \
         namespace has its own groups, unless the list contains `-netns`",
    ),
    flag(
        Scope::FOLDS,
        "sum",
        None,
        Value("LIST"),
        ROWS_AND_COLUMNS,
        "With --by: also the sum of these fields, largest first",
    ),
    flag(
        Scope::FOLDS,
        "max",
        None,
        Value("LIST"),
        ROWS_AND_COLUMNS,
        "With --by: also the maximum of these fields, largest first",
    ),
    flag(
        Scope::FOLDS,
        "avg",
        None,
        Value("LIST"),
        ROWS_AND_COLUMNS,
        "With --by: also the mean of these fields, largest first",
    ),
    flag(
        Scope::SORT,
        "sort",
        None,
        Value("LIST"),
        ROWS_AND_COLUMNS,
        "Sort by these columns, which are also shown: quantities (counts, bytes, times) descending, everything else \
         ascending, unless `a:asc`, `a:desc` or `-a` says otherwise. By default rows appear in the kernel's order; \
         with --watch, tables with rates are sorted by the rate",
    ),
    flag(Scope::ROWS, "limit", Some('n'), Value("N"), ROWS_AND_COLUMNS, "Show at most N rows"),
    flag(
        Scope::OWNERS,
        "process",
        None,
        Values("NAME"),
        ROWS_AND_COLUMNS,
        "Only rows of this process: short for `process = NAME` in the filter; several: `a,b`",
    ),
    flag(Scope::OWNERS, "pid", None, Values("PID"), ROWS_AND_COLUMNS, "Only rows of the process with this PID"),
    flag(Scope::OWNERS, "container", None, Values("NAME"), ROWS_AND_COLUMNS, "Only rows of this container"),
    flag(Scope::USERS, "user", None, Values("NAME"), ROWS_AND_COLUMNS, "Only rows of this user"),
    flag(
        Scope::OWNERS,
        "no-owner",
        None,
        Nothing,
        ROWS_AND_COLUMNS,
        "Leave out the columns of the owning process, and do not search for it",
    ),
    flag(
        Scope::NAMES,
        "resolve",
        None,
        Maybe("SECONDS", "1"),
        ROWS_AND_COLUMNS,
        "Show host names instead of addresses, if they arrive within SECONDS after the last row; JSON keeps the \
         address and adds the name as `peer_addr_name`",
    ),
    flag(
        Scope::ROWS.and(Scope::SUPPORT),
        "output",
        Some('o'),
        Word(&["table", "wide", "plain", "tsv", "json", "csv"]),
        OUTPUT,
        "Output format. table: on a terminal, aligned to its width, with units and local times; in a pipe, \
         tab-separated and exact, or aligned if COLUMNS is set, as watch(1) does; wide: the same with more columns; \
         plain: always aligned and exact; tsv: always tab-separated and exact; json: one object per line; csv: quoted \
         as in RFC 4180 with LF line ends; text that a spreadsheet would evaluate (starting with = + - @) gets an \
         apostrophe",
    ),
    flag(
        Scope::ROWS.and(Scope::SUPPORT).and(Scope::VERIFY).and(Scope::ADVICE),
        "json",
        None,
        Nothing,
        OUTPUT,
        "Short for -o json",
    ),
    flag(Scope::ROWS.and(Scope::SUPPORT).and(Scope::ADVICE), "csv", None, Nothing, OUTPUT, "Short for -o csv"),
    flag(Scope::ROWS, "no-header", Some('H'), Nothing, OUTPUT, "No header line"),
    flag(
        Scope::ROWS,
        "color",
        None,
        Word(&["auto", "always", "never"]),
        OUTPUT,
        "Use colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of \
         conntrack); yellow: retransmitted, opening or closing, a guess; green: established, incoming; cyan: \
         listening, outgoing; dim: closed, or no value",
    ),
    flag(Scope::WATCH, "watch", Some('w'), Maybe("SECONDS", "1"), OUTPUT, "Repeat every SECONDS until interrupted"),
    flag(
        Scope::DROPS,
        "watch",
        None,
        Maybe("SECONDS", "1"),
        OUTPUT,
        "Show drops every SECONDS until interrupted; the default on a terminal without --for",
    ),
    flag(
        Scope::CAPTURE,
        "watch",
        None,
        Maybe("SECONDS", "1"),
        OUTPUT,
        "With --by: show the groups every SECONDS, with packets and bytes per second. Without --by: every SECONDS, \
         report on stderr how many packets were received, dropped by the ring and by interfaces, written, not written \
         and filtered so far, on a terminal in one line; SIGUSR1 requests one such report",
    ),
    flag(
        Scope::FOLLOW,
        "follow",
        None,
        Maybe("SECONDS", "1"),
        OUTPUT,
        "Show connections as they open and close, until interrupted; for flows: connections opened and closed, every \
        SECONDS",
    ),
    flag(
        Scope::FOLLOW,
        "no-hooks",
        None,
        Nothing,
        OUTPUT,
        "With --follow: do not attach to the root cgroup's getpeername hooks (while netwren is attached there, \
         programs without BPF_F_ALLOW_MULTI cannot attach); the accepting process is then identified at its first send \
         or receive",
    ),
    flag(
        Scope::ROWS,
        "stats",
        None,
        Nothing,
        OUTPUT,
        "Report the row counts at the end: rows seen, shown, filtered, lost",
    ),
    flag(
        Scope::ROWS,
        "cost",
        None,
        Nothing,
        OUTPUT,
        "Report the cost of the run: CPU, system calls, bytes read, memory, the interface used",
    ),
    flag(
        Scope::PLACES.and(Scope::CAPTURE),
        "explain",
        None,
        Nothing,
        OUTPUT,
        "Do not run: show which kernel interface would be read, what the kernel filters and what netwren filters",
    ),
    flag(Scope::MATCHES, "exit-code", None, Nothing, OUTPUT, "Exit with 1 if no row was shown"),
    flag(
        Scope::DOCTOR,
        "exit-code",
        None,
        Maybe("SEVERITY", "warning"),
        OUTPUT,
        "Exit with 1 if there is a finding of this severity or worse: critical, warning, hint. Takes precedence over 3 \
         (incomplete result)",
    ),
    flag(
        Scope::ROWS,
        "netns",
        Some('N'),
        Value("NAME|PID|PATH"),
        READ_FROM,
        "The network namespace with this name, of this process, at this path or of this container",
    ),
    flag(
        Scope::ADVICE,
        "netns",
        Some('N'),
        Value("NAME|PID|PATH"),
        READ_FROM,
        "Only the network namespace with this name, of this process, at this path or of this container",
    ),
    flag(
        Scope::ALL_NETNS,
        "all-netns",
        None,
        Nothing,
        READ_FROM,
        "All network namespaces of this host, named or used by a process or container; adds the column `netns`",
    ),
    flag(
        Scope::ADVICE,
        "all-netns",
        None,
        Nothing,
        READ_FROM,
        "All network namespaces of this host, which is also the default; with --timeouts, set timeouts in all of them",
    ),
    flag(
        Scope::VIA,
        "via",
        None,
        Word(&["netlink", "proc", "bpf"]),
        READ_FROM,
        "Read via this kernel interface instead of the best one",
    ),
    flag(
        Scope::DROPS,
        "via",
        None,
        Word(&drops::DropsVia::NAMES),
        READ_FROM,
        "Read via this kernel interface instead of the best one. tracefs reports only reason, place and EtherType, for \
         all network namespaces, and is used if BPF is not available; net-dm, the kernel's drop monitor, has one user \
         at a time and is used if tracefs is not available either; counters show only how many packets were lost, and \
         are the last resort",
    ),
    flag(
        Scope::OWNERS_VIA,
        "owners-via",
        None,
        Word(&["bpf", "proc"]),
        READ_FROM,
        "Find owners via this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses no \
         process",
    ),
    flag(
        Scope::SUPPORT,
        "bundle",
        None,
        File("FILE"),
        ACTIONS,
        "Write this table and the tables of the host to a new file for a bug report, with pseudonyms for names and \
         addresses",
    ),
    flag(
        Scope::PLACES.and(Scope::ADVICE),
        "record",
        None,
        File("FILE"),
        READ_FROM,
        "Save everything that is read from the kernel. Keep the file private: it contains addresses and process names",
    ),
    flag(
        Scope::PLACES.and(Scope::ADVICE),
        "replay",
        None,
        File("FILE"),
        READ_FROM,
        "Read a recording instead of the kernel; needs no privileges",
    ),
    flag(
        Scope::HOME,
        "replay",
        None,
        File("FILE"),
        OPTIONS,
        "Show the host as it was recorded (`netwren record FILE`)",
    ),
    flag(
        Scope::CT_TABLE,
        "table",
        None,
        Word(&["conntrack", "dying", "unconfirmed", "expect"]),
        READ_FROM,
        "Which of the kernel's tables: conntrack (entries), dying (entries being deleted), unconfirmed (entries whose \
         first packet is still being processed), expect (connections that helpers expect)",
    ),
    flag(
        Scope::PER_CPU,
        "per-cpu",
        None,
        Nothing,
        ROWS_AND_COLUMNS,
        "One row per CPU; sizes and settings belong to the namespace and are null",
    ),
    flag(
        Scope::EVENTS,
        "event",
        None,
        Value("LIST"),
        INPUT,
        "Only these events: new, update, destroy, live. The kernel sends no others; new alone is reported via BPF \
         where possible",
    ),
    flag(
        Scope::EVENTS,
        "buffer",
        None,
        Value("BYTES"),
        INPUT,
        "Buffer for events that wait to be read (512k, 64MiB: units of 1024); default 8MiB, with BPF 16MiB or more",
    ),
    flag(
        Scope::EVENTS.and(Scope::LOG).and(Scope::CAPTURE),
        "buffer-total",
        None,
        Value("BYTES"),
        INPUT,
        "With --all-netns: total buffer for all other network namespaces (default 256MiB). The host's namespaces are \
         served first, then each user who created namespaces gets an equal part",
    ),
    flag(
        Scope::LOG.and(Scope::LOG_RULE),
        "group",
        None,
        Value("LIST"),
        INPUT,
        "Log groups, as in the rules: `log group 1` (nft), `-j NFLOG --nflog-group 1` (iptables)",
    ),
    flag(
        Scope::LOG_SERVICE,
        "config",
        None,
        File("FILE"),
        READ_FROM,
        "Read options from a TOML file, whose keys are the long names of these flags; flags on the command line take \
         precedence. `netwren log check` checks the file",
    ),
    flag(Scope::AGENT, "config", Some('c'), File("FILE"), OPTIONS, "The same as FILE"),
    flag(
        Scope::LOG_RULE,
        "match",
        None,
        Value("EXPRESSION"),
        OPTIONS,
        "Packets to log, as an nft expression: `tcp dport 22 ct state new`; all packets by default",
    ),
    flag(
        Scope::LOG_RULE,
        "hook",
        None,
        Word(&["prerouting", "input", "forward", "output", "postrouting"]),
        OPTIONS,
        "Netfilter hook at which packets are logged",
    )
    .default("input"),
    flag(
        Scope::LOG_RULE,
        "prefix",
        None,
        Value("TEXT"),
        OPTIONS,
        "Prefix of the log records; by default the name of the hook",
    ),
    flag(
        Scope::LOG_RULE,
        "apply",
        None,
        Nothing,
        OPTIONS,
        "Install the rule, replacing the previous one for this group and hook; without --yes only show it",
    ),
    flag(Scope::LOG_RULE, "undo", None, Nothing, OPTIONS, "Remove the rules; without --yes only show them"),
    flag(Scope::LOG_RULE, "yes", None, Nothing, OPTIONS, "Change the rules instead of only showing them"),
    flag(
        Scope::LOG_RULE,
        "netns",
        None,
        Value("NAME|PID|PATH"),
        OPTIONS,
        "Network namespace whose packets are logged, instead of the current one",
    ),
    flag(
        Scope::LOG,
        "latency",
        None,
        Value("TIME"),
        INPUT,
        "How long records may wait in the kernel: 10ms to 10s. Longer is cheaper",
    )
    .default("50ms"),
    flag(
        Scope::LOG,
        "copy",
        None,
        Value("BYTES"),
        INPUT,
        "Bytes of each packet to copy from the kernel, from the network header on; --to pcap:FILE and pcapng:FILE copy \
         whole packets by default",
    )
    .default("128"),
    flag(
        Scope::LOG,
        "buffer",
        None,
        Value("BYTES"),
        INPUT,
        "Buffer per group for records that wait to be read: 16MiB hold about 60,000 records",
    )
    .default("16MiB"),
    flag(
        Scope::CAPTURE,
        "interface",
        Some('i'),
        Values("IFACE"),
        INPUT,
        "Interface to capture on; may be repeated. By default, or with `any`, all interfaces of the namespace, \
         including those that appear later",
    ),
    flag(
        Scope::CAPTURE,
        "write",
        Some('w'),
        File("FILE"),
        OPTIONS,
        "Write the packets to a file instead of showing them (- for standard output): pcapng with interface names, or \
         pcap if the name ends in .pcap; compressed if it ends in .gz or .zst. With --rotate-size, --rotate-age (at \
         least 1s) or --rotate-packets a series of files is written: all.pcapng becomes \
         all_00001_20261124080512.pcapng, all_00002_… --rotate-keep keeps the last N files, including the current one; \
         by default all are kept. Files have mode 0640 at most; links and files of other users are refused",
    ),
    flag(
        Scope::CAPTURE,
        "comment",
        None,
        Value("FIELDS"),
        OPTIONS,
        "With --write or --to pcapng: add these fields of both ends (process, pid, container, src_process, …), of the \
         connection (nat, client, published, backend, orig_src, …) and netns to the first packet of each connection, \
         and to packets where they change, as a comment and as custom options (`name=value`)",
    ),
    flag(
        Scope::LOG_SERVICE,
        "comment",
        None,
        Value("FIELDS"),
        OPTIONS,
        "With --to pcapng: add these fields (process, container, netns, nat, client, rule_comment, …) to each packet, \
         as a second comment after the prefix and as custom options (`name=value`)",
    ),
    flag(
        Scope::COPIES,
        "write",
        Some('w'),
        File("FILE"),
        OPTIONS,
        "Output file, - for standard output: pcapng with all information of the input, or pcap if the name ends in \
         .pcap; compressed if it ends in .gz or .zst",
    ),
    flag(
        Scope::CUT,
        "from",
        Some('A'),
        Value("TIME"),
        OPTIONS,
        "Only packets from this time on: 10:30 (local time today), -5m, 2026-11-22T10:30:00Z",
    ),
    flag(Scope::CUT, "until", Some('B'), Value("TIME"), OPTIONS, "Only packets before this time"),
    flag(Scope::CUT, "snaplen", Some('s'), Value("BYTES"), OPTIONS, "At most BYTES bytes of each packet"),
    flag(Scope::CUT, "limit", Some('n'), Value("N"), OPTIONS, "Write at most N packets"),
    flag(
        Scope::CAPTURE,
        "print-filter",
        Some('d'),
        Counted,
        OPTIONS,
        "Print the program that the kernel runs on Ethernet packets, and exit; -dd prints C, -ddd numbers",
    ),
    flag(
        Scope::CAPTURE,
        "read",
        Some('r'),
        File("FILE"),
        INPUT,
        "Read packets from a file instead of interfaces: pcap or pcapng of any system, also compressed with gzip or \
         zstd; - for standard input",
    ),
    flag(
        Scope::CAPTURE,
        "latency",
        None,
        Value("TIME"),
        INPUT,
        "Longest delay of packets while there are many: auto (0.33 ms), 0 (one wake-up per packet, the most expensive) \
         or 1ms to 1000ms. While packets are rare, each is shown at once",
    )
    .default("auto"),
    flag(
        Scope::CAPTURE,
        "buffer",
        None,
        Value("BYTES"),
        INPUT,
        "Size of each ring, which holds packets that wait to be shown (64KiB to 1GiB); default 16MiB, 64MiB for whole \
        packets",
    ),
    flag(
        Scope::CAPTURE,
        "snaplen",
        Some('s'),
        Value("BYTES"),
        INPUT,
        "Bytes of each packet to capture, at most 262144; default 1918, but whole packets with --to pcap:FILE and \
         pcapng:FILE",
    ),
    flag(
        Scope::CAPTURE,
        "no-promiscuous",
        None,
        Nothing,
        INPUT,
        "Do not put the interfaces named by -i into promiscuous mode: packets for other hosts are not captured",
    ),
    flag(
        Scope::CAPTURE,
        "relinquish-privileges",
        Some('Z'),
        Value("USER"),
        INPUT,
        "Switch to this user after opening the interfaces and the files of -r and -w. Capabilities are always dropped",
    ),
    flag(
        Scope::CAPTURE,
        "verbose",
        Some('v'),
        Nothing,
        INPUT,
        "Report on stderr which privileges were dropped before the first packet was processed",
    ),
    flag(
        Scope::CAPTURE,
        "time-stamp-type",
        Some('j'),
        Word(&["host", "adapter", "adapter_unsynced"]),
        INPUT,
        "Clock of the timestamps: host, adapter (the network card's, synchronized with the host's) or adapter_unsynced \
         (the network card's as it is). The driver then stamps all packets it receives, and continues to do so after \
         the run. Without such a clock netwren reports this and uses the host's; the column `stamp` shows the clock of \
         each packet",
    )
    .default("host"),
    flag(Scope::CAPTURE, "for", None, Value("SECONDS"), INPUT, "Duration of the capture; Ctrl-C ends it earlier"),
    flag(
        Scope::SHIPPED,
        "to",
        None,
        Values("TARGET"),
        SHIPPING,
        "Ship rows instead of showing them, to FORMAT:PATH or FORMAT+tcp://HOST:PORT, `+tls`, `+udp`, `+unix:PATH` \
         (syslog over TCP and TLS: `?framing=newline` for receivers without octet counting), \
         ipfix+udp://HOST:PORT (`nat events`, `sockets --follow`), otlp+http://HOST:PORT (OpenTelemetry; `otlp+https` \
         with TLS, headers in OTEL_EXPORTER_OTLP_HEADERS), kafka://BROKER,BROKER/TOPIC (`kafka+tls` with TLS; \
         `USER@` with `?sasl=` and `passfile=`, or NETWREN_KAFKA_PASSWORD, logs in), or to a database, whose table is \
         created if missing: sqlite:PATH, clickhouse://USER@HOST:PORT/DATABASE (`clickhouses` with TLS; \
         `?table=`, `passfile=` or CLICKHOUSE_PASSWORD), postgres://USER@HOST:PORT/DATABASE (`?sslmode=` and \
         `require_auth=` as in libpq: other hosts are verified by default); may be repeated. The rows of a table get a \
         column `time`, the time at which they were read. An invalid TARGET prints the list of targets. SIGHUP reopens \
         files. Files have mode 0640 at most; links and files of other users are refused",
    ),
    flag(
        Scope::SHIPPED,
        "when-full",
        None,
        Word(&export::WhenFull::WORDS),
        SHIPPING,
        "With --to: what to do with new rows while a receiver is unavailable and its queue is full. Dropped rows are \
         counted",
    )
    .default("drop-oldest"),
    flag(
        Scope::SHIPPED,
        "queue-max",
        None,
        Value("SIZE"),
        SHIPPING,
        "With --to: memory for the queue of one receiver (units of 1024)",
    )
    .default("64MiB"),
    flag(
        Scope::SHIP,
        "fold",
        None,
        Value("TIME"),
        SHIPPING,
        "With --to: ship rows that differ only in time, source port and numbers once, and once more at the end of TIME \
         (1s to 1h) with their count: `folded`, ×1203 in 10 s",
    ),
    flag(
        Scope::SHIP,
        "rate",
        None,
        Value("N/s[:BURST]"),
        SHIPPING,
        "With --to: ship at most N rows of a rule per second, minute or hour: N/s, N/m or N/h. Rows above the limit \
         are counted (`limited`) and reported every ten seconds. Applied before --fold",
    ),
    flag(
        Scope::SHIP,
        "rate-by",
        None,
        Word(&shipping::RateBy::WORDS),
        SHIPPING,
        "What --rate limits: each rule (prefix and group; for NAT events, each kind of event) or each address",
    )
    .default("rule"),
    flag(
        Scope::SHIPPED,
        "spool",
        None,
        File("DIR"),
        SHIPPING,
        "With --to: queue rows on disk in DIR instead, also beyond the end of the run: the next run delivers them",
    ),
    flag(
        Scope::SHIPPED,
        "spool-max",
        None,
        Value("SIZE"),
        SHIPPING,
        "With --spool: disk space for the queue of one receiver (units of 1024)",
    )
    .default("1GiB"),
    flag(
        Scope::SHIPPED,
        "spool-age",
        None,
        Value("SECONDS"),
        SHIPPING,
        "With --spool: drop and count rows that have waited longer; by default no rows are dropped for their age",
    ),
    flag(
        Scope::SHIPPED,
        "spool-sync",
        None,
        Word(&["never", "second", "always"]),
        SHIPPING,
        "With --spool: when written rows are synced to disk, as protection against power failure",
    )
    .default("second"),
    flag(
        Scope::SHIPPED,
        "rotate-size",
        None,
        Value("SIZE"),
        SHIPPING,
        "With --to FORMAT:PATH: start a new file before the current one exceeds SIZE (at least 1MiB); PATH becomes \
         PATH.1, PATH.1 becomes PATH.2",
    ),
    flag(
        Scope::SHIPPED,
        "rotate-age",
        None,
        Value("TIME"),
        SHIPPING,
        "Start a new file when the current one reaches this age: 1m to 3650d, such as 90m, 12h or 1d",
    ),
    flag(
        Scope::SHIPPED,
        "rotate-keep",
        None,
        Value("N"),
        SHIPPING,
        "Number of old files to keep in addition to PATH; older ones are removed",
    )
    .default("7"),
    flag(
        Scope::SHIPPED,
        "rotate-zstd",
        None,
        Nothing,
        SHIPPING,
        "Compress old files in a separate process: PATH.1 becomes PATH.1.zst, which zstdcat reads",
    ),
    flag(
        Scope::CAPTURE,
        "rotate-packets",
        None,
        Value("N"),
        SHIPPING,
        "With --write: start a new file after N packets; --rotate-keep includes the current file",
    ),
    flag(
        Scope::CAPTURE,
        "rotate-command",
        None,
        Value("PROGRAM"),
        SHIPPING,
        "With --write: run PROGRAM FILE when a file is complete: without a shell, with the privileges of the caller or \
         of -Z, at low CPU priority, at most four at a time. Failures are reported and counted",
    ),
    flag(
        Scope::SHIPPED,
        "control",
        None,
        File("FILE"),
        SHIPPING,
        "With --to: unix socket, accessible only to this user, through which `netwren log status` reads the row counts",
    ),
    flag(
        Scope::LOG_SERVICE,
        "take-over",
        None,
        Nothing,
        SHIPPING,
        "With --control: take over the bound groups of the run that answers on that socket and ends then; no record is \
         lost",
    ),
    flag(
        Scope::STATUS,
        "control",
        None,
        File("FILE"),
        OPTIONS,
        "Unix socket of the run to query, as given to that run",
    ),
    flag(
        Scope::STATUS,
        "output",
        Some('o'),
        Word(&export::ReportFormat::WORDS),
        OPTIONS,
        "Output format: text, json (one object) or prometheus (text format, for a collector that runs this command)",
    )
    .default("text"),
    flag(
        Scope::SHIPPED,
        "tls-ca",
        None,
        File("FILE"),
        SHIPPING,
        "With --to …+tls: certificates (PEM) of the authorities that sign the receiver's certificate; by default those \
         that the system trusts",
    ),
    flag(
        Scope::SHIPPED,
        "tls-cert",
        None,
        File("FILE"),
        SHIPPING,
        "With --to …+tls: client certificate (PEM), for receivers that require one. The three files are read again for \
         each connection",
    ),
    flag(
        Scope::SHIPPED,
        "tls-key",
        None,
        File("FILE"),
        SHIPPING,
        "With --tls-cert: key of the certificate (PEM, without a passphrase), if it is in another file",
    ),
    flag(
        Scope::EVENTS,
        "resync",
        None,
        Nothing,
        INPUT,
        "After events were lost, dump the current entries as rows with the event live, regardless of --event; repeated \
         until no events are lost during the dump",
    ),
    flag(
        Scope::ADVICE,
        "output",
        Some('o'),
        Word(&["table", "wide", "plain", "tsv", "json", "csv"]),
        OUTPUT,
        "Output format. table: sentences, or rows if a filter or columns are given; wide: all columns; plain: rows, \
         aligned and exact; tsv: rows, tab-separated; json: one object per namespace; csv: quoted as in RFC 4180",
    )
    .default("table"),
    flag(
        Scope::ADVICE,
        "apply",
        None,
        Nothing,
        ACTIONS,
        "Set the recommended limit and buckets, and save them in /etc/sysctl.d; without --yes only show the changes",
    ),
    flag(
        Scope::ADVICE,
        "timeouts",
        None,
        Nothing,
        ACTIONS,
        "With --apply: also set the recommended timeouts, each in its network namespace",
    ),
    flag(Scope::ADVICE, "yes", None, Nothing, ACTIONS, "With --apply: make the changes"),
    flag(Scope::CLOSING, "yes", None, Nothing, ACTIONS, "Close the sockets; `result` shows the outcome for each row"),
    flag(
        Scope::CLOSING,
        "all",
        None,
        Nothing,
        ACTIONS,
        "All TCP and UDP sockets of the namespace, instead of a filter",
    ),
    flag(Scope::DELETING, "yes", None, Nothing, ACTIONS, "Delete the entries; `result` shows the outcome for each row"),
    flag(Scope::DELETING, "all", None, Nothing, ACTIONS, "All entries of the namespace, instead of a filter"),
    flag(
        Scope::RULES,
        "publish",
        Some('p'),
        Values("[ADDR:]PORT:BACKEND:PORT[/tcp|/udp]"),
        OPTIONS,
        "Port of this host, and the backend that serves it; may be repeated; IPv6 addresses in brackets",
    ),
    flag(
        Scope::RULES,
        "no-helper",
        None,
        Nothing,
        OPTIONS,
        "Publish ports of FTP and similar protocols anyway: another protocol uses them here",
    ),
    flag(
        Scope::RULES,
        "apply",
        None,
        Nothing,
        OPTIONS,
        "Install the rules, replacing those applied before; without --yes only show them",
    ),
    flag(Scope::RULES, "undo", None, Nothing, OPTIONS, "Remove the rules; without --yes only show them"),
    flag(Scope::RULES, "yes", None, Nothing, OPTIONS, "Change the rules instead of only showing them"),
    flag(
        Scope::RULES,
        "probe",
        None,
        Value("SECONDS"),
        OPTIONS,
        "Time to watch packets after --apply --yes (default 5): if they pass in one direction only, the previous rules \
         are restored. 0 disables the check",
    ),
    flag(Scope::RULES, "no-undo", None, Nothing, OPTIONS, "Keep the rules even if packets pass in one direction only"),
    flag(
        Scope::VERIFY,
        "within",
        None,
        Value("SECONDS"),
        OPTIONS,
        "Time to wait until packets pass in both directions (default 5)",
    ),
    flag(Scope::VERIFY, "output", Some('o'), Word(&["table", "json"]), OPTIONS, "Output"),
    flag(
        Scope::RULES.and(Scope::VERIFY),
        "netns",
        None,
        Value("NAME|PID|PATH"),
        OPTIONS,
        "Network namespace whose packets are rewritten, instead of the current one",
    ),
    flag(
        Scope::LASTS,
        "for",
        None,
        Value("SECONDS"),
        OUTPUT,
        "With --watch, --follow and in streams: end after this time; Ctrl-C ends it earlier",
    ),
    flag(
        Scope::RECORD,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "Duration, with one round per second (default 10); Ctrl-C ends it earlier",
    ),
    flag(
        Scope::LOG_TOP,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "Time to count records (default 10); Ctrl-C ends it earlier",
    ),
    flag(
        Scope::LATENCY,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "Time to measure delays (default 2); 0 measures none. Ctrl-C ends it earlier. With --watch: end after this \
        time",
    ),
    flag(
        Scope::SOFTIRQ,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "Time to take samples (default 3); Ctrl-C ends it earlier. With --watch: end after this time",
    ),
    flag(
        Scope::SOFTIRQ,
        "hz",
        None,
        Value("N"),
        OPTIONS,
        "Samples per second on each CPU (default 999); a sample costs 5 to 20 us in a virtual machine",
    ),
    flag(
        Scope::SOFTIRQ,
        "stack",
        None,
        Nothing,
        OPTIONS,
        "Show call chains instead of groups, those with the most samples first",
    ),
    flag(Scope::SOFTIRQ, "per-cpu", None, Nothing, OPTIONS, "Show the groups of each CPU separately"),
    flag(
        Scope::SOFTIRQ,
        "all",
        None,
        Nothing,
        OPTIONS,
        "Also show time outside the network code: programs, the rest of the kernel, idle time",
    ),
    flag(
        Scope::SOFTIRQ,
        "via",
        None,
        Word(&["bpf", "perf", "proc"]),
        OPTIONS,
        "Sample via this interface instead of the best one: bpf counts in the kernel, perf delivers every sample to \
         netwren, proc shows only the total time in softirqs",
    ),
    flag(
        Scope::PATH,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "Time to measure packets, which slows them down (default 2); Ctrl-C ends it earlier. With --watch: end after \
        this time",
    ),
    flag(Scope::PATH, "all", None, Nothing, OPTIONS, "Also show stages that no packet entered"),
    flag(
        Scope::DROPS,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "Time to count drops; Ctrl-C ends it earlier. By default until interrupted",
    ),
    flag(
        Scope::DROPS,
        "events",
        None,
        Nothing,
        OPTIONS,
        "Show each dropped packet as it is dropped, at a cost of about one microsecond more per packet; with --by, \
         groups of them, also by address and port",
    ),
    flag(
        Scope::DROPS,
        "stack",
        None,
        Nothing,
        OPTIONS,
        "Add the column `stack`, the kernel functions that led to the drop: of the first packet in a row, or with \
         --events of each packet, which costs 3 us more",
    ),
    flag(
        Scope::DROPS,
        "write",
        Some('w'),
        File("FILE"),
        OPTIONS,
        "Write the dropped packets to a pcapng file instead of showing them (- for standard output); each has a \
         comment with reason, place and hook, or the fields of --columns",
    ),
    flag(
        Scope::DROPS,
        "snaplen",
        None,
        Value("BYTES"),
        OPTIONS,
        "With -w: bytes of each packet to write (default 128, at most 4096)",
    ),
    flag(Scope::DROPS, "exit-after", None, Value("N"), OPTIONS, "With --events: exit after showing N packets"),
    flag(
        Scope::DROPS,
        "all",
        None,
        Nothing,
        OPTIONS,
        "Also show routine drops, such as unread data of a closed socket: their `benign` is true",
    ),
    flag(
        Scope::RECORD,
        "netns",
        Some('N'),
        Value("NAME|PID|PATH"),
        OPTIONS,
        "Only the network namespace with this name, of this process, at this path or of this container",
    ),
    flag(Scope::RECORD, "once", None, Nothing, OPTIONS, "Record one round"),
    flag(
        Scope::RECORD,
        "max-size",
        None,
        Value("BYTES"),
        OPTIONS,
        "Maximum size of the file before compression (default 1GiB); the recording stops there",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The command is found before its flags are known, so each name must take a value in all commands or in none.
    /// `-w` is tcpdump's in `capture`; before a command it takes no value.
    #[test]
    fn one_name_takes_a_value_everywhere_or_nowhere() {
        for flag in FLAGS {
            let others = FLAGS.iter().filter(|other| {
                other.long == flag.long || flag.short.is_some_and(|s| s != 'w' && other.short == Some(s))
            });
            for other in others {
                assert_eq!(flag.takes.takes_next_word(), other.takes.takes_next_word(), "{}", flag.long);
            }
        }
    }
}
