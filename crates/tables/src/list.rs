//! The tables by name: their fields, the columns that stay longest on a narrow terminal (the most important one first),
//! and how they are read.

use crate::error::TableError;
use crate::request::TableRequest;
use crate::{counters, flows, nat, netns, sockets, streams};
use engine::Run;
use lookups::session::Session;
use record::rows::{
    BaselineChanges, CallChains, CaptureFiles, CapturedPackets, CpuGroups, DropEvents, Drops, Features, Findings,
    FlowEvents, Flows, HomeScreens, KernelCounters, LogRecords, Nat, NatAdvices, NatEvents, NatStats, PathStages,
    Routes, SocketEvents, Sockets,
};
use record::{Schema, Sink};

/// A table of the list.
pub struct TableEntry {
    /// Its name and fields.
    pub schema: Schema,
    /// Reads it; `None` if only its command can, because it needs more than a request.
    pub read: Option<ReadTable>,
}

/// Reads the table of a request through a session, and passes its rows to a sink.
pub type ReadTable = fn(&Session, &TableRequest<'_>, &mut dyn Sink) -> Result<Run, TableError>;

/// All tables, in the order of their commands.
pub static TABLES: &[TableEntry] = &[
    TableEntry { schema: HOME, read: None },
    TableEntry { schema: SOCKETS, read: Some(sockets::read) },
    TableEntry { schema: SOCKET_EVENTS, read: Some(streams::read_socket_events) },
    TableEntry { schema: FLOWS, read: Some(flows::read) },
    TableEntry { schema: FLOW_EVENTS, read: None },
    TableEntry { schema: ROUTES, read: Some(netns::read::<Routes>) },
    TableEntry { schema: NAT, read: Some(nat::read) },
    TableEntry { schema: NAT_STATS, read: Some(nat::read_stats) },
    TableEntry { schema: NAT_EVENTS, read: None },
    TableEntry { schema: NAT_ADVICE, read: None },
    TableEntry { schema: LOG_RECORDS, read: None },
    TableEntry { schema: PACKETS, read: None },
    TableEntry { schema: CAPTURE_FILES, read: None },
    TableEntry { schema: DROPS, read: None },
    TableEntry { schema: DROP_EVENTS, read: None },
    TableEntry { schema: FINDINGS, read: None },
    TableEntry { schema: BASELINE_CHANGES, read: None },
    TableEntry { schema: CPU_GROUPS, read: None },
    TableEntry { schema: CALL_CHAINS, read: None },
    TableEntry { schema: PATH_STAGES, read: None },
    TableEntry { schema: COUNTERS, read: Some(counters::read) },
    TableEntry { schema: FEATURES, read: None },
];

/// Returns the table with this name.
pub fn find(name: &str) -> Option<&'static TableEntry> {
    TABLES.iter().find(|table| table.schema.name() == name)
}

/// Sockets of all families.
pub const SOCKETS: Schema = Schema::from_table::<Sockets>().with_kept_columns(&[
    "change",
    "process",
    "peer_addr",
    "local_port",
    "state",
    "accept_q",
    "accept_q_max",
    "path",
    "local_addr",
    "iface",
    "v6only",
    "peer_port",
    "pid",
    "user",
    "netlink_protocol",
    "portid",
    "packet_type",
    "ethertype",
    "unix_type",
    "netns",
    "bytes_out_per_s",
    "bytes_in_per_s",
    "proto",
    "peer_inode",
    "recv_q",
    "send_q",
]);
/// Connections that are opened and closed, and sockets that begin to listen.
pub const SOCKET_EVENTS: Schema = Schema::from_table::<SocketEvents>().with_kept_columns(&[
    "event",
    "time",
    "process",
    "peer_addr",
    "peer_port",
    "local_port",
    "direction",
    "netns",
    "local_addr",
    "iface",
    "duration_us",
    "bytes_out",
    "bytes_in",
    "pid",
]);
/// Sockets, grouped by the hosts and ports that they connect.
pub const FLOWS: Schema = Schema::from_table::<Flows>().with_kept_columns(&[
    "process",
    "peer_addr",
    "peer_port",
    "direction",
    "iface",
    "connections",
    "change",
    "bytes_out_per_s",
    "bytes_in_per_s",
    "local_port",
    "local_addr",
    "pid",
    "netns",
    "proto",
]);
/// Flows of connections that are opened and closed.
pub const FLOW_EVENTS: Schema = Schema::from_table::<FlowEvents>().with_kept_columns(&[
    "time",
    "peer_addr",
    "peer_port",
    "opened",
    "closed",
    "direction",
    "bytes_out",
    "bytes_in",
    "retrans_total",
    "local_port",
    "local_addr",
    "iface",
    "avg_duration_us",
]);
/// Entries of connection tracking.
pub const NAT: Schema = Schema::from_table::<Nat>().with_kept_columns(&[
    "client",
    "mapped",
    "published",
    "backend",
    "state",
    "process",
    "nat",
    "netns",
    "timeout_s",
    "proto",
    "pid",
]);
/// Counters and settings of connection tracking.
pub const NAT_STATS: Schema = Schema::from_table::<NatStats>().with_kept_columns(&[
    "cpu",
    "netns",
    "entries",
    "max",
    "fill_percent",
    "drop",
    "early_drop",
    "insert_failed",
    "invalid",
    "search_restart",
]);
/// Changes of entries.
pub const NAT_EVENTS: Schema = Schema::from_table::<NatEvents>().with_kept_columns(&[
    "event",
    "time",
    "client",
    "published",
    "backend",
    "state",
    "nat",
    "duration_us",
    "bytes_out",
    "bytes_in",
    "proto",
]);
/// The size that the conntrack table of each namespace should have.
pub const NAT_ADVICE: Schema = Schema::from_table::<NatAdvices>().with_kept_columns(&[
    "netns",
    "verdict",
    "entries",
    "max",
    "full_in_s",
    "advised_max",
    "advised_buckets",
]);
/// Packets that rules log.
pub const LOG_RECORDS: Schema = Schema::from_table::<LogRecords>().with_kept_columns(&[
    "time",
    "prefix",
    "src",
    "dst",
    "dport",
    "proto",
    "iif",
    "hook",
    "oif",
    "sport",
    "tcp_flags",
    "len",
    "group",
]);
/// Packets of interfaces and files.
pub const PACKETS: Schema = Schema::from_table::<CapturedPackets>()
    .with_kept_columns(&["time", "src", "dst", "info", "proto", "dport", "sport", "len", "iface"]);
/// Dropped packets, counted by reason and place.
pub const DROPS: Schema = Schema::from_table::<Drops>().with_kept_columns(&[
    "count", "reason", "meaning", "process", "rule", "per_s", "iface", "dst", "dport", "src", "place", "hook", "proto",
]);
/// Single dropped packets.
pub const DROP_EVENTS: Schema = Schema::from_table::<DropEvents>()
    .with_kept_columns(&["time", "reason", "src", "dst", "dport", "proto", "iface", "sport", "place", "hook", "len"]);
/// Problems of the host.
pub const FINDINGS: Schema =
    Schema::from_table::<Findings>().with_kept_columns(&["severity", "title", "id", "cost", "confidence"]);
/// Time and losses of packets in the stages of netfilter.
pub const PATH_STAGES: Schema = Schema::from_table::<PathStages>()
    .with_kept_columns(&["hook", "stage", "packets", "mean_us", "p99_us", "lost", "max_us", "family", "about"]);
/// The kernel's counters.
pub const COUNTERS: Schema = Schema::from_table::<KernelCounters>()
    .with_kept_columns(&["name", "delta", "per_s", "meaning", "object", "value", "source"]);
/// Features that work on this host.
pub const FEATURES: Schema =
    Schema::from_table::<Features>().with_kept_columns(&["feature", "state", "words", "remedy", "backend"]);
/// Rows of the routing tables.
pub const ROUTES: Schema = Schema::from_table::<Routes>();
/// The whole host on one screen.
pub const HOME: Schema = Schema::from_table::<HomeScreens>();
/// Differences between this host and a recording.
pub const BASELINE_CHANGES: Schema = Schema::from_table::<BaselineChanges>();
/// CPU time in network code, by group of functions.
pub const CPU_GROUPS: Schema = Schema::from_table::<CpuGroups>();
/// CPU time in network code, by call chain.
pub const CALL_CHAINS: Schema = Schema::from_table::<CallChains>();
/// Summaries of packet files.
pub const CAPTURE_FILES: Schema = Schema::from_table::<CaptureFiles>();
