//! Every flag of the native commands, once.

/// A flag and everything that is said about it.
pub(super) struct Flag {
    /// Long name without dashes; also its id.
    pub(super) long: &'static str,
    /// One-letter name.
    pub(super) short: Option<char>,
    /// What it takes.
    pub(super) takes: Takes,
    /// The sentence of `--help` and the man page.
    pub(super) help: &'static str,
    /// Heading in `--help`.
    pub(super) group: &'static str,
}

/// What stands behind a flag.
pub(super) enum Takes {
    /// Nothing.
    Nothing,
    /// A value of this name.
    Value(&'static str),
    /// A value of this name, or none: then this one is meant. Written `--flag=VALUE`.
    Maybe(&'static str, &'static str),
    /// One of these words.
    Word(&'static [&'static str]),
}

use Takes::{Maybe, Nothing, Value, Word};

const WHAT: &str = "What is shown";
const HOW: &str = "How it is shown";
const WHERE: &str = "Where it is read";

const fn flag(long: &'static str, short: Option<char>, takes: Takes, group: &'static str, help: &'static str) -> Flag {
    Flag { long, short, takes, help, group }
}

/// The flags of every table.
pub(super) const FLAGS: &[Flag] = &[
    flag(
        "columns",
        Some('c'),
        Value("LIST"),
        WHAT,
        "Columns, by name: `a,b`; `+a` adds to the usual ones, `-a` leaves one out, `all` is every field, `help` explains them all",
    ),
    flag(
        "by",
        None,
        Value("LIST"),
        WHAT,
        "One row for each different value of these fields, with `count`, the largest first",
    ),
    flag("sum", None, Value("LIST"), WHAT, "With --by: also the sum of these fields"),
    flag("max", None, Value("LIST"), WHAT, "With --by: also the largest value of these fields"),
    flag("avg", None, Value("LIST"), WHAT, "With --by: also the mean of these fields"),
    flag(
        "sort",
        None,
        Value("LIST"),
        WHAT,
        "Order by these columns, which are shown: `a` ascending, `a:desc` descending. Unsorted rows stream in the kernel's order",
    ),
    flag("limit", Some('n'), Value("N"), WHAT, "At most N rows"),
    flag("no-owner", None, Nothing, WHAT, "Leave out the columns of the owning process, and the work of finding it"),
    flag(
        "resolve",
        None,
        Maybe("SECONDS", "1"),
        WHAT,
        "Host names for addresses, as many as arrive within SECONDS after the last row",
    ),
    flag(
        "output",
        Some('o'),
        Word(&["table", "wide", "json", "csv"]),
        HOW,
        "table: aligned on a terminal, tab-separated in a pipe; wide: the same with more columns; json: one object a line; csv: RFC 4180, where text that a spreadsheet would compute (= + - @ in front) gets an apostrophe",
    ),
    flag("no-header", Some('H'), Nothing, HOW, "No header line"),
    flag("color", None, Word(&["auto", "always", "never"]), HOW, "Colour; auto: on a terminal unless NO_COLOR is set"),
    flag("watch", Some('w'), Maybe("SECONDS", "1"), HOW, "Again every SECONDS until interrupted"),
    flag(
        "follow",
        None,
        Maybe("SECONDS", "1"),
        HOW,
        "Show connections as they open and close, until interrupted; of flows: what opened and closed every SECONDS",
    ),
    flag(
        "no-hooks",
        None,
        Nothing,
        HOW,
        "With --follow: attach nothing to the root cgroup's getpeername hooks, where others without BPF_F_ALLOW_MULTI are \
         refused meanwhile; who accepted is then known by the first send or receive",
    ),
    flag("stats", None, Nothing, HOW, "The row counts of the run at the end: rows seen, shown, filtered, lost"),
    flag("cost", None, Nothing, HOW, "What the run itself cost: CPU, system calls, bytes read, memory, the door used"),
    flag(
        "explain",
        None,
        Nothing,
        HOW,
        "Do not run: say which kernel interface would be read, what the kernel filters and what is left",
    ),
    flag("exit-code", None, Nothing, HOW, "Exit with 1 if no row was shown"),
    flag(
        "netns",
        Some('N'),
        Value("NAME|PID|PATH"),
        WHERE,
        "The network namespace of that name, of that process or behind that path",
    ),
    flag(
        "all-netns",
        None,
        Nothing,
        WHERE,
        "Every network namespace of this host: those with a name, of processes, of containers; adds the column `netns`",
    ),
    flag(
        "via",
        None,
        Word(&["netlink", "proc", "bpf"]),
        WHERE,
        "Read by this kernel interface instead of the best one",
    ),
    flag(
        "owners-via",
        None,
        Word(&["bpf", "proc"]),
        WHERE,
        "Find owners by this interface instead of the cheaper one: bpf needs CAP_BPF and CAP_PERFMON and misses nobody",
    ),
    flag(
        "record",
        None,
        Value("FILE"),
        WHERE,
        "Save everything that is read from the kernel; the file is not for strangers: it holds addresses and process names",
    ),
    flag("replay", None, Value("FILE"), WHERE, "Read a recording instead of the kernel; needs no rights"),
];
