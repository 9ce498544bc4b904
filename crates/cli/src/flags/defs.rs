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
        .and(Scope::LASTS);
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
        help: "6.1 or 6.15: the layout and the switches of *netwren ss*. Without it those of the installed ss (6.1 up \
               to iproute2 6.6,\n\
               6.15 from 6.7 on), which is looked for in PATH and the usual folders, and read, not run; without an ss \
               those of 6.15.",
    },
    Variable {
        name: "NETWREN_BUG_COMPATIBLE",
        help: "1: the faces print the old bytes where their tool is wrong, as with *--bug-compatible*.",
    },
    Variable {
        name: "NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS",
        help: "and what belongs to them (sd_notify(3), sd_listen_fds(3)): *log*, and what ships, tells the service \
               manager how it goes;\n*log* has its sockets kept for the next run.",
    },
    Variable {
        name: "COLUMNS",
        help: "width of tables and texts in columns instead of the terminal's; also aligns tables in a pipe.",
    },
    Variable { name: "NO_COLOR", help: "not empty: no colour, unless *--color* asks for it." },
];

use Takes::{Counted, File, Maybe, Nothing, Value, Values, Word};

const WHAT: &str = "What is shown";
const HOW: &str = "How it is shown";
const WHERE: &str = "Where it is read";
const LOOKED_AT: &str = "What is looked at";
const LISTENED_TO: &str = "What is listened to";
const DONE: &str = "What is done";
const SHIPPED: &str = "Where it is shipped";
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
        LOOKED_AT,
        "How often counters are read; growth needs two that are a second apart, a forecast three",
    )
    .default("3"),
    flag(Scope::ADVICE, "interval", None, Value("SECONDS"), LOOKED_AT, "Time between samples").default("1"),
    flag(
        Scope::ADVICE,
        "memory",
        None,
        Value("SIZE"),
        LOOKED_AT,
        "Memory that the advised table may take (512M, 2GiB: units of 1024); otherwise a tenth of the host's",
    ),
    flag(
        Scope::COUNTERS,
        "for",
        None,
        Value("SECONDS"),
        WHAT,
        "Time between the two readings that are compared (default 1); of a recording: time from its first round to the \
         one that is compared with it (default: the last one). With --watch, which compares its rounds: end after this \
         time",
    ),
    flag(
        Scope::DOCTOR,
        "for",
        None,
        Value("SECONDS"),
        WHAT,
        "How long the host is watched (default 3); of a recording: time from its first round to the one that is \
         compared with it (default: the last one). With --watch, which compares its rounds: end after this time",
    ),
    flag(
        Scope::DOCTOR,
        "baseline",
        None,
        File("FILE"),
        WHAT,
        "What changed since the host was recorded (`netwren record FILE`) when it was well: findings, settings, \
         listeners, and rates that are three times as high",
    ),
    flag(Scope::COUNTERS, "changed", None, Nothing, WHAT, "Only counters that changed"),
    flag(
        Scope::COLUMNS,
        "columns",
        Some('c'),
        Values("LIST"),
        WHAT,
        "Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` \
         explains them all",
    ),
    flag(
        Scope::FLOWS,
        "columns",
        Some('c'),
        Values("LIST"),
        WHAT,
        "Columns, by name: `a,b`; `+a`, `-a`, `all`, `help`",
    ),
    flag(
        Scope::BY,
        "by",
        None,
        Value("LIST"),
        WHAT,
        "One row for each different value of these fields, with `count`, the largest first. `peer` is the peer's \
         address; `peer_addr/24` is its network, `peer_addr/24/64` with another length for IPv6. With --all-netns each \
         namespace has groups of its own, unless `-netns` is in the list",
    ),
    flag(Scope::FOLDS, "sum", None, Value("LIST"), WHAT, "With --by: also the sum of these fields, the largest first"),
    flag(
        Scope::FOLDS,
        "max",
        None,
        Value("LIST"),
        WHAT,
        "With --by: also the largest value of these fields, the largest first",
    ),
    flag(Scope::FOLDS, "avg", None, Value("LIST"), WHAT, "With --by: also the mean of these fields, the largest first"),
    flag(
        Scope::SORT,
        "sort",
        None,
        Value("LIST"),
        WHAT,
        "Order by these columns, which are shown: quantities (counts, bytes, times) from the largest, everything else \
         ascending; `a:asc`, `a:desc` or `-a` chooses. Without it rows stream in the kernel's order; with --watch, \
         tables with rates are ordered by the rate",
    ),
    flag(Scope::ROWS, "limit", Some('n'), Value("N"), WHAT, "At most N rows"),
    flag(
        Scope::OWNERS,
        "process",
        None,
        Values("NAME"),
        WHAT,
        "Only what belongs to this process: short for `process = NAME` in the filter; several: `a,b`",
    ),
    flag(Scope::OWNERS, "pid", None, Values("PID"), WHAT, "Only what belongs to this process, by its number"),
    flag(Scope::OWNERS, "container", None, Values("NAME"), WHAT, "Only what belongs to this container"),
    flag(Scope::USERS, "user", None, Values("NAME"), WHAT, "Only what belongs to this user"),
    flag(
        Scope::OWNERS,
        "no-owner",
        None,
        Nothing,
        WHAT,
        "Leave out the columns of the owning process, and the work of finding it",
    ),
    flag(
        Scope::NAMES,
        "resolve",
        None,
        Maybe("SECONDS", "1"),
        WHAT,
        "Host names for addresses, as many as arrive within SECONDS after the last row; JSON keeps the address and has \
         the name beside it, as `peer_addr_name`",
    ),
    flag(
        Scope::ROWS.and(Scope::SUPPORT),
        "output",
        Some('o'),
        Word(&["table", "wide", "plain", "tsv", "json", "csv"]),
        HOW,
        "table: on a terminal aligned within its width, with units and local times; in a pipe tab-separated and exact, \
         or aligned if COLUMNS is set, as watch(1) does; wide: the same with more columns; plain: aligned and exact \
         everywhere; tsv: tab-separated and exact everywhere; json: one object a line; csv: quoted as in RFC 4180, \
         lines end in LF, and text that a spreadsheet would compute (= + - @ in front) gets an apostrophe",
    ),
    flag(
        Scope::ROWS.and(Scope::SUPPORT).and(Scope::VERIFY).and(Scope::ADVICE),
        "json",
        None,
        Nothing,
        HOW,
        "Short for -o json",
    ),
    flag(Scope::ROWS.and(Scope::SUPPORT).and(Scope::ADVICE), "csv", None, Nothing, HOW, "Short for -o csv"),
    flag(Scope::ROWS, "no-header", Some('H'), Nothing, HOW, "No header line"),
    flag(
        Scope::ROWS,
        "color",
        None,
        Word(&["auto", "always", "never"]),
        HOW,
        "Colour; auto: on a terminal unless NO_COLOR is set. Red: lost, or over a limit (accept queue, 90 % of \
         conntrack); yellow: sent again, opening or closing, a guess; green: established, incoming; cyan: listening, \
         outgoing; dim: closed, or nothing",
    ),
    flag(Scope::WATCH, "watch", Some('w'), Maybe("SECONDS", "1"), HOW, "Again every SECONDS until interrupted"),
    flag(
        Scope::DROPS,
        "watch",
        None,
        Maybe("SECONDS", "1"),
        HOW,
        "A round of drops every SECONDS until interrupted; the default on a terminal without --for",
    ),
    flag(
        Scope::CAPTURE,
        "watch",
        None,
        Maybe("SECONDS", "1"),
        HOW,
        "With --by: the groups of every SECONDS, with packets and bytes in a second. Without: on stderr, every \
         SECONDS, how many packets were received, dropped by the ring and by interfaces, written, not written and \
         filtered so far, on a terminal in one line; SIGUSR1 asks for the same once",
    ),
    flag(
        Scope::FOLLOW,
        "follow",
        None,
        Maybe("SECONDS", "1"),
        HOW,
        "Show connections as they open and close, until interrupted; of flows: what opened and closed every SECONDS",
    ),
    flag(
        Scope::FOLLOW,
        "no-hooks",
        None,
        Nothing,
        HOW,
        "With --follow: attach nothing to the root cgroup's getpeername hooks, where others without BPF_F_ALLOW_MULTI \
         are refused meanwhile; who accepted is then known by the first send or receive",
    ),
    flag(
        Scope::ROWS,
        "stats",
        None,
        Nothing,
        HOW,
        "The row counts of the run at the end: rows seen, shown, filtered, lost",
    ),
    flag(
        Scope::ROWS,
        "cost",
        None,
        Nothing,
        HOW,
        "What the run itself cost: CPU, system calls, bytes read, memory, the interface used",
    ),
    flag(
        Scope::PLACES.and(Scope::CAPTURE),
        "explain",
        None,
        Nothing,
        HOW,
        "Do not run: say which kernel interface would be read, what the kernel filters and what is left",
    ),
    flag(Scope::MATCHES, "exit-code", None, Nothing, HOW, "Exit with 1 if no row was shown"),
    flag(
        Scope::DOCTOR,
        "exit-code",
        None,
        Maybe("SEVERITY", "warning"),
        HOW,
        "Exit with 1 if there is a finding of this severity or a worse one: critical, warning, hint; before 3 for what \
         could not be seen",
    ),
    flag(
        Scope::ROWS,
        "netns",
        Some('N'),
        Value("NAME|PID|PATH"),
        WHERE,
        "The network namespace of that name, of that process, at that path or of that container",
    ),
    flag(
        Scope::ADVICE,
        "netns",
        Some('N'),
        Value("NAME|PID|PATH"),
        WHERE,
        "Only the network namespace of that name, of that process, at that path or of that container",
    ),
    flag(
        Scope::ALL_NETNS,
        "all-netns",
        None,
        Nothing,
        WHERE,
        "Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`",
    ),
    flag(
        Scope::ADVICE,
        "all-netns",
        None,
        Nothing,
        WHERE,
        "Every network namespace of this host, as without it; with --timeouts they are set in all of them",
    ),
    flag(
        Scope::VIA,
        "via",
        None,
        Word(&["netlink", "proc", "bpf"]),
        WHERE,
        "Read by this kernel interface instead of the best one",
    ),
    flag(
        Scope::DROPS,
        "via",
        None,
        Word(&drops::DropsVia::NAMES),
        WHERE,
        "Read by this kernel interface instead of the best one. tracefs knows reason, place and EtherType alone, of \
         every network namespace, and is used where BPF cannot be had; net-dm, the kernel's drop monitor, has one user \
         at a time, and is used where tracefs cannot be had either; counters know no packet, only how many were lost, \
         and are what is left",
    ),
    flag(
        Scope::OWNERS_VIA,
        "owners-via",
        None,
        Word(&["bpf", "proc"]),
        WHERE,
        "Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses no \
         process",
    ),
    flag(
        Scope::SUPPORT,
        "bundle",
        None,
        File("FILE"),
        DONE,
        "Write all of it, with the tables of the host, to a new file for a bug report: names and addresses are \
         pseudonyms in it",
    ),
    flag(
        Scope::PLACES.and(Scope::ADVICE),
        "record",
        None,
        File("FILE"),
        WHERE,
        "Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process \
         names",
    ),
    flag(
        Scope::PLACES.and(Scope::ADVICE),
        "replay",
        None,
        File("FILE"),
        WHERE,
        "Read a recording instead of the kernel; needs no rights",
    ),
    flag(
        Scope::HOME,
        "replay",
        None,
        File("FILE"),
        OPTIONS,
        "The host as it was when it was recorded (`netwren record FILE`)",
    ),
    flag(
        Scope::CT_TABLE,
        "table",
        None,
        Word(&["conntrack", "dying", "unconfirmed", "expect"]),
        WHERE,
        "Which of the kernel's tables: entries, those that are dying, those whose first packet is on its way, \
         connections that helpers expect",
    ),
    flag(
        Scope::PER_CPU,
        "per-cpu",
        None,
        Nothing,
        WHAT,
        "One row a CPU; sizes and settings are the namespace's and null then",
    ),
    flag(
        Scope::EVENTS,
        "event",
        None,
        Value("LIST"),
        LISTENED_TO,
        "Only these events: new, update, destroy, live. The kernel sends no others; new alone is reported by BPF where \
         that can be",
    ),
    flag(
        Scope::EVENTS,
        "buffer",
        None,
        Value("BYTES"),
        LISTENED_TO,
        "Room for what waits to be read (512k, 64MiB: units of 1024): 8MiB if not said, 16MiB and more by BPF",
    ),
    flag(
        Scope::EVENTS.and(Scope::LOG).and(Scope::CAPTURE),
        "buffer-total",
        None,
        Value("BYTES"),
        LISTENED_TO,
        "With --all-netns: room in all other network namespaces together (256MiB if not said), shared out: those of \
         the host first, then equal parts for each user who has made some",
    ),
    flag(
        Scope::LOG.and(Scope::LOG_RULE),
        "group",
        None,
        Value("LIST"),
        LISTENED_TO,
        "Log groups, as rules name them: `log group 1` (nft), `-j NFLOG --nflog-group 1` (iptables)",
    ),
    flag(
        Scope::LOG_SERVICE,
        "config",
        None,
        File("FILE"),
        WHERE,
        "Reads what is asked from a TOML file, whose keys are the long names of these flags; flags given beside it \
         win. `netwren log check` looks it over",
    ),
    flag(
        Scope::LOG_RULE,
        "match",
        None,
        Value("EXPRESSION"),
        OPTIONS,
        "Which packets, as nft says it: `tcp dport 22 ct state new`; without it all of them",
    ),
    flag(
        Scope::LOG_RULE,
        "hook",
        None,
        Word(&["prerouting", "input", "forward", "output", "postrouting"]),
        OPTIONS,
        "Where on their way they are logged",
    )
    .default("input"),
    flag(Scope::LOG_RULE, "prefix", None, Value("TEXT"), OPTIONS, "What its records begin with; the hook if not said"),
    flag(
        Scope::LOG_RULE,
        "apply",
        None,
        Nothing,
        OPTIONS,
        "Put the rule in place of the one for this group and hook; without --yes only show it",
    ),
    flag(Scope::LOG_RULE, "undo", None, Nothing, OPTIONS, "Take the rules away again; without --yes only show them"),
    flag(Scope::LOG_RULE, "yes", None, Nothing, OPTIONS, "Really change the rules"),
    flag(
        Scope::LOG_RULE,
        "netns",
        None,
        Value("NAME|PID|PATH"),
        OPTIONS,
        "The network namespace whose packets are logged, instead of one's own",
    ),
    flag(
        Scope::LOG,
        "latency",
        None,
        Value("TIME"),
        LISTENED_TO,
        "How long records may gather in the kernel: 10ms to 10s. The longer, the cheaper",
    )
    .default("50ms"),
    flag(
        Scope::LOG,
        "copy",
        None,
        Value("BYTES"),
        LISTENED_TO,
        "Bytes of each packet that the kernel copies, from the network header on; --to pcap:FILE and pcapng:FILE \
         take all by default",
    )
    .default("128"),
    flag(
        Scope::LOG,
        "buffer",
        None,
        Value("BYTES"),
        LISTENED_TO,
        "Room for what waits to be read, for each group: 16MiB hold some 60,000 records",
    )
    .default("16MiB"),
    flag(
        Scope::CAPTURE,
        "interface",
        Some('i'),
        Values("IFACE"),
        LISTENED_TO,
        "The interface whose packets are captured; may be given several times. Without it, or with `any`, all of the \
         namespace, those that come later, too",
    ),
    flag(
        Scope::CAPTURE,
        "write",
        Some('w'),
        File("FILE"),
        OPTIONS,
        "Write the packets to a file instead of showing them, - for standard output: as pcapng with the interfaces' \
         names, as pcap if the name ends in .pcap; packed if it ends in .gz or .zst. With \
         --rotate-size, --rotate-age (from 1s on) or --rotate-packets \
         files follow one another: all.pcapng stands for all_00001_20261124080512.pcapng, all_00002_… With \
         --rotate-keep the last N are kept, the one that is written included, else all. The mode is 0640 at most; a \
         link and a file of another user are refused",
    ),
    flag(
        Scope::CAPTURE,
        "comment",
        None,
        Value("FIELDS"),
        OPTIONS,
        "With --write or --to pcapng: these fields of both ends (process, pid, container, src_process …), of the \
         connection (nat, client, published, backend, orig_src …) and netns, as a comment and as custom options \
         (`name=value` each) of the first packet of each connection, and where they change",
    ),
    flag(
        Scope::LOG_SERVICE,
        "comment",
        None,
        Value("FIELDS"),
        OPTIONS,
        "With --to pcapng: these fields (process, container, netns, nat, client, rule_comment …) as a second comment \
         of each packet, after the prefix, and as custom options (`name=value` each)",
    ),
    flag(
        Scope::COPIES,
        "write",
        Some('w'),
        File("FILE"),
        OPTIONS,
        "The file that is written, - for standard output: pcapng with all that the input says, pcap if the name ends \
         in .pcap; packed if it ends in .gz or .zst",
    ),
    flag(
        Scope::CUT,
        "from",
        Some('A'),
        Value("TIME"),
        OPTIONS,
        "Packets of this time and later: 10:30 (local time today), -5m, 2026-11-22T10:30:00Z",
    ),
    flag(Scope::CUT, "until", Some('B'), Value("TIME"), OPTIONS, "Packets before this time"),
    flag(Scope::CUT, "snaplen", Some('s'), Value("BYTES"), OPTIONS, "At most so many bytes of each packet"),
    flag(Scope::CUT, "limit", Some('n'), Value("N"), OPTIONS, "At most N packets"),
    flag(
        Scope::CAPTURE,
        "print-filter",
        Some('d'),
        Counted,
        OPTIONS,
        "Print the program that the kernel runs on packets of Ethernet, and end: -dd as C, -ddd as numbers",
    ),
    flag(
        Scope::CAPTURE,
        "read",
        Some('r'),
        File("FILE"),
        LISTENED_TO,
        "The packets of a file instead of those of interfaces: pcap or pcapng of any system, also packed by gzip or \
         zstd; - for standard input",
    ),
    flag(
        Scope::CAPTURE,
        "latency",
        None,
        Value("TIME"),
        LISTENED_TO,
        "How late packets may be shown while there are many: auto (0.33 ms), 0 (each wakes us, which costs most), 1ms \
         to 1000ms. While they are rare each is shown at once",
    )
    .default("auto"),
    flag(
        Scope::CAPTURE,
        "buffer",
        None,
        Value("BYTES"),
        LISTENED_TO,
        "Room in each ring for what waits to be shown (64KiB to 1GiB): 16MiB if not said, 64MiB for whole packets",
    ),
    flag(
        Scope::CAPTURE,
        "threads",
        None,
        Value("N"),
        LISTENED_TO,
        "Threads that read each interface, each with a ring of its own (1 to 64; 1 if not said): the kernel shares \
         packets by flow, so those of one stay in their order, and all are merged by time. It costs \
         1.5 to 2.4 times the CPU a packet (measured on two CPUs): it pays where one thread loses packets",
    ),
    flag(
        Scope::CAPTURE,
        "snaplen",
        Some('s'),
        Value("BYTES"),
        LISTENED_TO,
        "Bytes of each packet that are captured, 262144 at most: 1918 if not said; --to pcap:FILE and pcapng:FILE take \
         all by default",
    ),
    flag(
        Scope::CAPTURE,
        "no-promiscuous",
        None,
        Nothing,
        LISTENED_TO,
        "Leave interfaces that are named as they are: packets for other hosts are not asked for",
    ),
    flag(
        Scope::CAPTURE,
        "relinquish-privileges",
        Some('Z'),
        Value("USER"),
        LISTENED_TO,
        "Belong to this user once interfaces and the files of -r and -w are open. Capabilities are always given up",
    ),
    flag(
        Scope::CAPTURE,
        "verbose",
        Some('v'),
        Nothing,
        LISTENED_TO,
        "Say on stderr which rights were given up before the first packet was looked at",
    ),
    flag(
        Scope::CAPTURE,
        "time-stamp-type",
        Some('j'),
        Word(&["host", "adapter", "adapter_unsynced"]),
        LISTENED_TO,
        "Whose clock stamps packets: the host's, or that of the network adapter, equal to the host's or as it is. Its \
         driver is told to stamp all that it receives, and does so beyond the end of the run. Where there is no such \
         clock that is said, and the host's is taken; the column `stamp` tells it of each packet",
    )
    .default("host"),
    flag(Scope::CAPTURE, "for", None, Value("SECONDS"), LISTENED_TO, "How long; Ctrl-C ends it before"),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "to",
        None,
        Values("TARGET"),
        SHIPPED,
        "Ships rows instead of showing them, as FORMAT:PATH or FORMAT+tcp://HOST:PORT, `+tls`, `+udp`, \
         `+unix:PATH` (syslog by TCP and TLS: `?framing=newline` for receivers that do not count octets), as \
         sqlite:PATH or postgres://USER@HOST:PORT/DATABASE (rows of a table, which is made; `?sslmode=`, \
         `require_auth=` as libpq has them: other hosts are verified by default); may be given several times. A wrong \
         TARGET is answered with those that there are. SIGHUP opens files anew. Files have mode 0640 at most; links \
         and files of other users are refused",
    ),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "when-full",
        None,
        Word(&export::WhenFull::WORDS),
        SHIPPED,
        "With --to: what is done with new rows while a receiver is away and its queue is full. Rows that are dropped \
         are counted",
    )
    .default("drop-oldest"),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "queue-max",
        None,
        Value("SIZE"),
        SHIPPED,
        "With --to: memory for what waits for one receiver (units of 1024)",
    )
    .default("64MiB"),
    flag(
        Scope::SHIP,
        "fold",
        None,
        Value("TIME"),
        SHIPPED,
        "With --to: rows that are the same but for time, source port and numbers are shipped once, and once more at \
         the end of TIME (1s to 1h) with their count: `folded`, ×1203 in 10 s",
    ),
    flag(
        Scope::SHIP,
        "rate",
        None,
        Value("N/s[:BURST]"),
        SHIPPED,
        "With --to: so many rows of a rule are shipped, N/s, N/m or N/h; what is above is counted (`limited`) and said \
         every ten seconds. It is looked at before --fold",
    ),
    flag(
        Scope::SHIP,
        "rate-by",
        None,
        Word(&shipping::RateBy::WORDS),
        SHIPPED,
        "What --rate is of: the rule (prefix and group; of NAT events, the kind), or each address",
    )
    .default("rule"),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "spool",
        None,
        File("DIR"),
        SHIPPED,
        "With --to: rows wait on disk below DIR instead, also beyond the end of the run: the next one delivers them",
    ),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "spool-max",
        None,
        Value("SIZE"),
        SHIPPED,
        "With --spool: bytes on disk for what waits for one receiver (units of 1024)",
    )
    .default("1GiB"),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "spool-age",
        None,
        Value("SECONDS"),
        SHIPPED,
        "With --spool: rows that wait longer are dropped, and counted; without it none",
    ),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "spool-sync",
        None,
        Word(&["never", "second", "always"]),
        SHIPPED,
        "With --spool: when the disk is made to take what was written, against a power failure",
    )
    .default("second"),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "rotate-size",
        None,
        Value("SIZE"),
        SHIPPED,
        "With --to FORMAT:PATH: begins a new file before one would be larger (from 1MiB on); PATH becomes PATH.1, that \
         PATH.2",
    ),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "rotate-age",
        None,
        Value("TIME"),
        SHIPPED,
        "The same once a file is so old: 1m to 3650d, as 90m, 12h or 1d",
    ),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "rotate-keep",
        None,
        Value("N"),
        SHIPPED,
        "How many files are kept beside PATH; older ones are removed",
    )
    .default("7"),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "rotate-zstd",
        None,
        Nothing,
        SHIPPED,
        "Packs them by another process: PATH.1 becomes PATH.1.zst, which zstdcat reads",
    ),
    flag(
        Scope::CAPTURE,
        "rotate-packets",
        None,
        Value("N"),
        SHIPPED,
        "With --write: begins a new file after so many packets",
    ),
    flag(
        Scope::CAPTURE,
        "rotate-command",
        None,
        Value("PROGRAM"),
        SHIPPED,
        "With --write: run PROGRAM FILE once a file is complete, without a shell, with the caller's rights or those of \
         -Z, behind others for the processor, at most four at a time. Failures are said and counted",
    ),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "control",
        None,
        File("FILE"),
        SHIPPED,
        "With --to: a unix socket, of this user alone, where `netwren log status` asks what has become of the rows",
    ),
    flag(
        Scope::LOG_SERVICE,
        "take-over",
        None,
        Nothing,
        SHIPPED,
        "With --control: takes the bound groups of the run that answers there, which then ends; no record is lost \
         meanwhile",
    ),
    flag(
        Scope::STATUS,
        "control",
        None,
        File("FILE"),
        OPTIONS,
        "The unix socket of the run that is asked, as it was given there",
    ),
    flag(
        Scope::STATUS,
        "output",
        Some('o'),
        Word(&export::ReportFormat::WORDS),
        OPTIONS,
        "text; json: one object; prometheus: its text format, for a collector that runs this command",
    )
    .default("text"),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "tls-ca",
        None,
        File("FILE"),
        SHIPPED,
        "With --to …+tls: certificates (PEM) of the authorities that may have signed the receiver's; without it those \
         that the system trusts",
    ),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "tls-cert",
        None,
        File("FILE"),
        SHIPPED,
        "With --to …+tls: our own certificate (PEM), for receivers that demand one. Each connection reads the three \
         files anew",
    ),
    flag(
        Scope::SHIP.and(Scope::FOLLOW),
        "tls-key",
        None,
        File("FILE"),
        SHIPPED,
        "With --tls-cert: its key (PEM, without a passphrase), if it is in another file",
    ),
    flag(
        Scope::EVENTS,
        "resync",
        None,
        Nothing,
        LISTENED_TO,
        "After events were lost, dump what lives now, until nothing is lost meanwhile: rows whose event is live, \
         whatever --event names",
    ),
    flag(
        Scope::ADVICE,
        "output",
        Some('o'),
        Word(&["table", "wide", "plain", "tsv", "json", "csv"]),
        HOW,
        "table: in words, with a filter or columns as rows; wide: all columns; plain: rows, aligned and exact; tsv: \
         rows, tab-separated; json: one object a namespace; csv: quoted as in RFC 4180",
    )
    .default("table"),
    flag(
        Scope::ADVICE,
        "apply",
        None,
        Nothing,
        DONE,
        "Set limit and buckets as advised and keep them in /etc/sysctl.d; without --yes only show it",
    ),
    flag(
        Scope::ADVICE,
        "timeouts",
        None,
        Nothing,
        DONE,
        "With --apply: also the timeouts that are advised, each in its network namespace",
    ),
    flag(Scope::ADVICE, "yes", None, Nothing, DONE, "With --apply: do it"),
    flag(Scope::CLOSING, "yes", None, Nothing, DONE, "Close the sockets; each row says in `result` what became of it"),
    flag(Scope::CLOSING, "all", None, Nothing, DONE, "Every TCP and UDP socket of the namespace, instead of a filter"),
    flag(
        Scope::DELETING,
        "yes",
        None,
        Nothing,
        DONE,
        "Delete the entries; each row says in `result` what became of it",
    ),
    flag(Scope::DELETING, "all", None, Nothing, DONE, "Every entry of the namespace, instead of a filter"),
    flag(
        Scope::RULES,
        "publish",
        Some('p'),
        Values("[ADDR:]PORT:BACKEND:PORT[/tcp|/udp]"),
        OPTIONS,
        "A port of this host and where it really is; may be given several times; IPv6 in brackets",
    ),
    flag(
        Scope::RULES,
        "no-helper",
        None,
        Nothing,
        OPTIONS,
        "Publish ports of FTP and the like all the same: something else is spoken there",
    ),
    flag(
        Scope::RULES,
        "apply",
        None,
        Nothing,
        OPTIONS,
        "Put the rules in place of those applied before; without --yes only show them",
    ),
    flag(Scope::RULES, "undo", None, Nothing, OPTIONS, "Take the rules away again; without --yes only show them"),
    flag(Scope::RULES, "yes", None, Nothing, OPTIONS, "Really change the rules"),
    flag(
        Scope::RULES,
        "probe",
        None,
        Value("SECONDS"),
        OPTIONS,
        "How long packets are watched after --apply --yes (5): if they move in one direction only, what was before is \
         put back. 0 watches none",
    ),
    flag(
        Scope::RULES,
        "no-undo",
        None,
        Nothing,
        OPTIONS,
        "Leave the rules in place even if packets move in one direction only",
    ),
    flag(Scope::VERIFY, "within", None, Value("SECONDS"), OPTIONS, "Watch at most so long, until it is so (5)"),
    flag(Scope::VERIFY, "output", Some('o'), Word(&["table", "json"]), OPTIONS, "How it is shown"),
    flag(
        Scope::RULES.and(Scope::VERIFY),
        "netns",
        None,
        Value("NAME|PID|PATH"),
        OPTIONS,
        "The network namespace whose packets are rewritten, instead of one's own",
    ),
    flag(
        Scope::LASTS,
        "for",
        None,
        Value("SECONDS"),
        HOW,
        "With --watch, --follow and in streams: end after this time; Ctrl-C ends it before",
    ),
    flag(
        Scope::RECORD,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "How long: a round every second, 10 seconds if nothing is said; Ctrl-C ends it before",
    ),
    flag(
        Scope::LOG_TOP,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "How long records are counted (10); Ctrl-C ends it before",
    ),
    flag(
        Scope::LATENCY,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "How long delays are measured (2); 0: not at all. Ctrl-C ends it before. With --watch: end after this time",
    ),
    flag(
        Scope::SOFTIRQ,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "How long samples are taken (3); Ctrl-C ends it before. With --watch: end after this time",
    ),
    flag(
        Scope::SOFTIRQ,
        "hz",
        None,
        Value("N"),
        OPTIONS,
        "Samples a second of each CPU (999): a sample costs it 5 to 20 us in a virtual machine",
    ),
    flag(
        Scope::SOFTIRQ,
        "stack",
        None,
        Nothing,
        OPTIONS,
        "Call chains in place of groups, those with the most samples first",
    ),
    flag(Scope::SOFTIRQ, "per-cpu", None, Nothing, OPTIONS, "Groups of each CPU by itself"),
    flag(
        Scope::SOFTIRQ,
        "all",
        None,
        Nothing,
        OPTIONS,
        "Also what is not the network's: programs, the rest of the kernel, idle time",
    ),
    flag(
        Scope::SOFTIRQ,
        "via",
        None,
        Word(&["bpf", "perf", "proc"]),
        OPTIONS,
        "Sample by this interface instead of the best one: bpf counts in the kernel, perf hands every sample over, \
         proc knows softirqs as a whole",
    ),
    flag(
        Scope::PATH,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "How long packets count, and pay for it (2); Ctrl-C ends it before. With --watch: end after this time",
    ),
    flag(Scope::PATH, "all", None, Nothing, OPTIONS, "Also stages that no packet came to"),
    flag(
        Scope::DROPS,
        "for",
        None,
        Value("SECONDS"),
        OPTIONS,
        "How long drops are counted; Ctrl-C ends it before. Without it: until interrupted",
    ),
    flag(
        Scope::DROPS,
        "events",
        None,
        Nothing,
        OPTIONS,
        "Each dropped packet by itself, as it comes: about a microsecond more for each; with --by the groups of these, \
         of addresses and ports as well",
    ),
    flag(
        Scope::DROPS,
        "stack",
        None,
        Nothing,
        OPTIONS,
        "The functions of the kernel that led to the drop, as column `stack`: of the first packet of a row, with \
         --events of each, which costs 3 us more",
    ),
    flag(
        Scope::DROPS,
        "write",
        Some('w'),
        File("FILE"),
        OPTIONS,
        "Write the dropped packets to a pcapng file instead of showing them, - for standard output; a comment of each \
         says reason, place and hook, or the fields of --columns",
    ),
    flag(
        Scope::DROPS,
        "snaplen",
        None,
        Value("BYTES"),
        OPTIONS,
        "With -w: at most so many bytes of each packet, 128 if not said, 4096 at most",
    ),
    flag(Scope::DROPS, "exit-after", None, Value("N"), OPTIONS, "With --events: end after N packets were shown"),
    flag(
        Scope::DROPS,
        "all",
        None,
        Nothing,
        OPTIONS,
        "Also drops that are routine, such as unread data of a socket that was closed: their `benign` is true",
    ),
    flag(
        Scope::RECORD,
        "netns",
        Some('N'),
        Value("NAME|PID|PATH"),
        OPTIONS,
        "Only the network namespace of that name, of that process, at that path or of that container",
    ),
    flag(Scope::RECORD, "once", None, Nothing, OPTIONS, "One round"),
    flag(
        Scope::RECORD,
        "max-size",
        None,
        Value("BYTES"),
        OPTIONS,
        "Largest size of the file before it is packed, 1GiB by default; the recording stops there",
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
