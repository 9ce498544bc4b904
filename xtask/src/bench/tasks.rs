//! The tasks: the programs to compare, at which sizes, and the goals.

/// How the equality check reads a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `ss -atn` and our face of it.
    Ss,
    /// `netstat -atn` and our face of it.
    Netstat,
    /// A native table written to a pipe: field names, then cells separated by tabs.
    Table,
    /// Native JSON lines.
    Json,
    /// `lstf -n` and our face of it.
    Lstf,
    /// The native table of flows.
    Flows,
    /// `conntrack -L` and our face of it.
    Conntrack,
    /// The native table of connection tracking.
    Nat,
    /// A count followed by the counted item; native tables have the item first.
    Counts,
    /// Known to be wrong: timed, but not compared.
    Unread,
}

/// One program with its arguments.
pub(super) struct Entry {
    /// Name in tables.
    pub(super) label: &'static str,
    pub(super) program: &'static str,
    pub(super) args: &'static str,
    pub(super) shape: Shape,
    /// 0 measures a whole run; otherwise the mean cost of this many further rounds of `--watch`.
    pub(super) rounds: u32,
}

/// One question that several programs answer.
pub(super) struct Task {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// The smallest and the largest size of this task.
    pub(super) sizes: (u64, u64),
    /// Number of network namespaces that the sockets are spread over.
    pub(super) namespaces: u64,
    /// Additional processes with 20 open files each and no socket.
    pub(super) idle: u64,
    /// True if all programs print the owner of a socket, so that the owners are compared as well.
    pub(super) owned: bool,
    pub(super) peers: &'static [Entry],
    pub(super) ours: &'static [Entry],
    /// Goals against a peer for our entries whose label begins with `ours`: (ours, peer, rows, ratio).
    pub(super) ratios: &'static [(&'static str, &'static str, u64, f64)],
    /// Goals for the memory of our entries: (ours, rows, MiB).
    pub(super) memory: &'static [(&'static str, u64, f64)],
}

impl Task {
    /// Number of rounds at a size: more if a run takes only milliseconds.
    pub(super) fn runs(&self, rows: u64) -> u32 {
        match rows {
            ..100 => 41,
            100..=10_000 => 15,
            10_001..=100_000 => 9,
            _ => 3,
        }
    }
}

/// Marks our own binary among the programs.
pub(super) const OURS: &str = "netwren";

const ALWAYS: u64 = u64::MAX;

pub(super) const fn peer(label: &'static str, program: &'static str, args: &'static str, shape: Shape) -> Entry {
    Entry { label, program, args, shape, rounds: 0 }
}

pub(super) const fn ours(label: &'static str, args: &'static str, shape: Shape) -> Entry {
    Entry { label, program: OURS, args, shape, rounds: 0 }
}

/// The cost of repeating the same command with `--watch`, from the second round on.
pub(super) const fn refresh(label: &'static str, args: &'static str, shape: Shape) -> Entry {
    Entry { rounds: 20, ..ours(label, args, shape) }
}

const SS: Entry = peer("ss -atn", "ss", "-atn", Shape::Ss);
const NETSTAT: Entry = peer("netstat -atn", "netstat", "-atn", Shape::Netstat);
const LSTF: Entry = peer("lstf -n", "lstf", "-n", Shape::Lstf);

/// The backend that netwren chooses by default.
const CHOSEN: &str = "sockets --no-owner 'proto = tcp'";
/// The same without the columns that compare rounds.
const CHOSEN_PLAIN: &str =
    "sockets --no-owner 'proto = tcp' --columns proto,state,recv_q,send_q,local_addr,local_port,peer_addr,peer_port";
const NATIVE: &str = "sockets --no-owner --via netlink 'proto = tcp'";

/// The tasks of the bench with this name.
pub(super) fn of(name: &str) -> &'static [Task] {
    match name {
        "start" => START,
        "sockets" => SOCKETS,
        "flows" => FLOWS,
        "namespaces" => NAMESPACES,
        _ => OWNERS,
    }
}

const START: &[Task] = &[Task {
    id: "start",
    title: "10 sockets, start to end",
    sizes: (1, 999),
    namespaces: 1,
    idle: 0,
    owned: false,
    peers: &[SS, NETSTAT],
    ours: &[ours("native", NATIVE, Shape::Table), ours("face ss", "ss -atn", Shape::Ss)],
    ratios: &[("native", "ss -atn", 10, 2.0), ("face ss", "ss -atn", 10, 2.0)],
    memory: &[],
}];

const SOCKETS: &[Task] = &[
    Task {
        id: "list",
        title: "list all TCP as text",
        sizes: (1, ALWAYS),
        namespaces: 1,
        idle: 0,
        owned: false,
        peers: &[SS, NETSTAT],
        ours: &[
            ours("native", NATIVE, Shape::Table),
            ours("face ss", "ss -atn", Shape::Ss),
            ours("face netstat", "netstat -atn", Shape::Netstat),
            ours("own choice", CHOSEN, Shape::Table),
            refresh("refresh", CHOSEN, Shape::Table),
            refresh("refresh, plain columns", CHOSEN_PLAIN, Shape::Table),
            ours("/proc door", "sockets --no-owner --via proc 'proto = tcp'", Shape::Table),
        ],
        ratios: &[
            ("own choice", "ss -atn", 100_000, 3.5),
            ("own choice", "ss -atn", 250_000, 5.5),
            ("own choice", "ss -atn", 1_000_000, 6.0),
            ("own choice", "netstat -atn", 100_000, 6.0),
            ("own choice", "netstat -atn", 1_000_000, 9.0),
            ("face ss", "ss -atn", 250_000, 5.5),
            ("face netstat", "netstat -atn", 1_000_000, 9.0),
            ("refresh", "ss -atn", 100_000, 8.0),
            ("native", "ss -atn", 10_000, 2.4),
            ("native", "ss -atn", 100_000, 2.2),
            ("native", "ss -atn", 1_000_000, 2.0),
            ("face ss", "ss -atn", 10_000, 2.4),
            ("face ss", "ss -atn", 100_000, 3.5),
            ("face ss", "ss -atn", 1_000_000, 6.0),
            ("native", "netstat -atn", 100_000, 3.8),
            ("face ss", "netstat -atn", 100_000, 3.8),
        ],
        memory: &[("native", 1_000_000, 6.0)],
    },
    Task {
        id: "json",
        title: "list all TCP as JSON",
        sizes: (1_000, ALWAYS),
        namespaces: 1,
        idle: 0,
        owned: false,
        peers: &[SS],
        ours: &[
            ours("JSON", "sockets --no-owner -o json 'proto = tcp'", Shape::Json),
            ours("JSON by netlink", "sockets --no-owner --via netlink -o json 'proto = tcp'", Shape::Json),
        ],
        ratios: &[("JSON", "ss -atn", 100_000, 1.7)],
        memory: &[],
    },
    Task {
        id: "port",
        title: "one port",
        sizes: (10_000, 100_000),
        namespaces: 1,
        idle: 0,
        owned: false,
        peers: &[peer("ss sport = :443", "ss", "-atn 'sport = :443'", Shape::Ss)],
        ours: &[
            ours("native", "sockets --no-owner --via netlink 'proto = tcp and local_port = 443'", Shape::Table),
            ours("face ss", "ss -atn 'sport = :443'", Shape::Ss),
        ],
        ratios: &[("native", "ss sport = :443", 100_000, 1.25), ("face ss", "ss sport = :443", 100_000, 1.25)],
        memory: &[],
    },
    Task {
        id: "listeners",
        title: "listeners only",
        sizes: (10_000, 100_000),
        namespaces: 1,
        idle: 0,
        owned: false,
        peers: &[peer("ss -ltn", "ss", "-ltn", Shape::Ss)],
        ours: &[
            ours("native", "sockets --no-owner --via netlink 'proto = tcp and state = listen'", Shape::Table),
            ours("face ss", "ss -ltn", Shape::Ss),
        ],
        ratios: &[("native", "ss -ltn", 100_000, 15.0), ("face ss", "ss -ltn", 100_000, 15.0)],
        memory: &[],
    },
];

const FLOWS: &[Task] = &[Task {
    id: "flows",
    title: "host-to-host flows",
    sizes: (10, ALWAYS),
    namespaces: 1,
    idle: 0,
    owned: false,
    peers: &[LSTF],
    ours: &[
        ours("native", "flows --no-owner --via netlink", Shape::Flows),
        ours("face lstf", "lstf -n", Shape::Lstf),
        ours("own choice", "flows --no-owner", Shape::Flows),
        ours("/proc door", "flows --no-owner --via proc", Shape::Flows),
    ],
    ratios: &[
        ("own choice", "lstf -n", 1_000_000, 10.0),
        ("face lstf", "lstf -n", 1_000_000, 10.0),
        ("native", "lstf -n", 10_000, 5.0),
        ("native", "lstf -n", 100_000, 3.3),
        ("face lstf", "lstf -n", 10_000, 5.0),
        ("face lstf", "lstf -n", 100_000, 3.3),
    ],
    memory: &[("native", 1_000_000, 50.0), ("own choice", 1_000_000, 40.0), ("face lstf", 1_000_000, 40.0)],
}];

const SS_OWNERS: Entry = peer("ss -atnp", "ss", "-atnp", Shape::Ss);
const NETSTAT_OWNERS: Entry = peer("netstat -atnp", "netstat", "-atnp", Shape::Netstat);

const OWNERS: &[Task] = &[
    Task {
        id: "owners",
        title: "list all TCP with processes",
        sizes: (1_000, 250_000),
        namespaces: 1,
        idle: 0,
        owned: true,
        peers: &[SS_OWNERS, NETSTAT_OWNERS],
        ours: &[
            ours("native", "sockets 'proto = tcp'", Shape::Table),
            ours("face ss", "ss -atnp", Shape::Ss),
            ours("/proc owners", "sockets --owners-via proc 'proto = tcp'", Shape::Table),
        ],
        ratios: &[
            ("native", "ss -atnp", 10_000, 4.0),
            ("native", "ss -atnp", 100_000, 25.0),
            ("native", "ss -atnp", 250_000, 100.0),
            ("face ss", "ss -atnp", 10_000, 4.0),
            ("face ss", "ss -atnp", 100_000, 25.0),
            ("face ss", "ss -atnp", 250_000, 100.0),
        ],
        memory: &[],
    },
    Task {
        id: "crowd",
        title: "1 000 sockets with processes among 3 000 idle ones",
        sizes: (1_000, 1_000),
        namespaces: 1,
        idle: 3_000,
        owned: true,
        peers: &[SS_OWNERS, NETSTAT_OWNERS],
        ours: &[
            ours("native", "sockets 'proto = tcp'", Shape::Table),
            ours("face ss", "ss -atnp", Shape::Ss),
            ours("/proc owners", "sockets --owners-via proc 'proto = tcp'", Shape::Table),
        ],
        ratios: &[("native", "ss -atnp", 1_000, 6.0), ("face ss", "ss -atnp", 1_000, 6.0)],
        memory: &[],
    },
];

/// The previous approach: one namespace after the other, by name.
const SS_IN_TURN: Entry =
    peer("ss -N in turn", "sh", "-c 'for n in /run/netns/nw-bench-*; do ss -Hatn -N ${n##*/}; done'", Shape::Ss);

const ALL_NETNS: &str = "sockets --all-netns --no-owner 'proto = tcp and netns ~ \"^nw-bench-\"'";
const ALL_NETNS_BY_NETLINK: &str =
    "sockets --all-netns --no-owner --via netlink 'proto = tcp and netns ~ \"^nw-bench-\"'";

const NAMESPACES: &[Task] = &[
    Task {
        id: "all-netns-50",
        title: "50 namespaces with 1,000 sockets each",
        sizes: (50_000, 50_000),
        namespaces: 50,
        idle: 0,
        owned: false,
        peers: &[SS_IN_TURN],
        ours: &[
            ours("native", ALL_NETNS, Shape::Table),
            ours("by netlink", ALL_NETNS_BY_NETLINK, Shape::Table),
            refresh("refresh", ALL_NETNS, Shape::Table),
        ],
        ratios: &[
            ("native", "ss -N in turn", 50_000, 18.0),
            ("by netlink", "ss -N in turn", 50_000, 1.8),
            ("refresh", "ss -N in turn", 50_000, 60.0),
        ],
        memory: &[],
    },
    Task {
        id: "all-netns-200",
        title: "200 namespaces with 200 sockets each",
        sizes: (40_000, 40_000),
        namespaces: 200,
        idle: 0,
        owned: false,
        peers: &[SS_IN_TURN],
        ours: &[
            ours("native", ALL_NETNS, Shape::Table),
            ours("by netlink", ALL_NETNS_BY_NETLINK, Shape::Table),
            refresh("refresh", ALL_NETNS, Shape::Table),
        ],
        ratios: &[
            ("native", "ss -N in turn", 40_000, 55.0),
            ("by netlink", "ss -N in turn", 40_000, 1.8),
            ("refresh", "ss -N in turn", 40_000, 200.0),
        ],
        memory: &[],
    },
];
