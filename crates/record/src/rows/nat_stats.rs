//! Counters and settings of connection tracking, one row a namespace or one a CPU (`nat stats`).

use super::Change;
use crate::{Field, Key, Kind, LookupId, Show, Table, Value};

/// The table of counters (`nat stats`).
#[derive(Clone, Copy, Debug)]
pub enum NatStats {}

impl Table for NatStats {
    type Row<'b> = NatStat<'b>;
    const NAME: &'static str = "nat stats";
    const FIELDS: &'static [Field<NatStats>] = FIELDS;
}

/// Bits of [`Field::need`] for [`NatStats`].
pub mod stat_need {
    /// Settings beside the sizes: a file of /proc/sys each.
    pub const SETTINGS: u64 = 1;
    /// Counters of expectations: a second question to ctnetlink.
    pub const EXPECTATIONS: u64 = 1 << 1;
}

/// What the kernel counts for each namespace and CPU (`struct ip_conntrack_stat`, 32 bits each).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatCounter {
    /// Packets dropped because no entry could be made: the table was full, or memory.
    Drop,
    /// Entries thrown out before their time to make room for new ones.
    EarlyDrop,
    /// Entries that could not go in: another one has the same tuple, or the chain is too long. The packet is dropped.
    InsertFailed,
    /// Packets that belong to no connection in a way that could be.
    Invalid,
    /// Searches begun again because the table was resized meanwhile.
    SearchRestart,
    /// Entries that two CPUs made at once, and that were made one.
    ClashResolve,
    /// Entries not made because their hash chain was too long: the table has too few buckets, or somebody chooses tuples to that end. Since Linux 5.15.
    ChainTooLong,
    /// ICMP messages about errors that could not be tracked.
    Error,
    /// Connections that came as a helper had expected them.
    ExpectNew,
    /// Expectations made by helpers.
    ExpectCreate,
    /// Expectations removed.
    ExpectDelete,
    /// Means little: searches for a free tuple by NAT that hit another entry, not packets of known connections.
    Found,
    /// Means little: entries made through ctnetlink, not those of traffic.
    Insert,
    /// Means nothing: always 0 in kernels of today.
    New,
    /// Means nothing: always 0 in kernels of today.
    Ignore,
    /// Means nothing: always 0 in kernels of today.
    Delete,
}

impl StatCounter {
    /// All of them, in the order of their numbers.
    pub const ALL: [StatCounter; 16] = [
        StatCounter::Drop,
        StatCounter::EarlyDrop,
        StatCounter::InsertFailed,
        StatCounter::Invalid,
        StatCounter::SearchRestart,
        StatCounter::ClashResolve,
        StatCounter::ChainTooLong,
        StatCounter::Error,
        StatCounter::ExpectNew,
        StatCounter::ExpectCreate,
        StatCounter::ExpectDelete,
        StatCounter::Found,
        StatCounter::Insert,
        StatCounter::New,
        StatCounter::Ignore,
        StatCounter::Delete,
    ];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            StatCounter::Drop => "drop",
            StatCounter::EarlyDrop => "early_drop",
            StatCounter::InsertFailed => "insert_failed",
            StatCounter::Invalid => "invalid",
            StatCounter::SearchRestart => "search_restart",
            StatCounter::ClashResolve => "clash_resolve",
            StatCounter::ChainTooLong => "chaintoolong",
            StatCounter::Error => "error",
            StatCounter::ExpectNew => "expect_new",
            StatCounter::ExpectCreate => "expect_create",
            StatCounter::ExpectDelete => "expect_delete",
            StatCounter::Found => "found",
            StatCounter::Insert => "insert",
            StatCounter::New => "new",
            StatCounter::Ignore => "ignore",
            StatCounter::Delete => "delete",
        }
    }
}

/// The counters of one row; `None` where this kernel or this door has none of the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatCounts([Option<u64>; StatCounter::ALL.len()]);

impl StatCounts {
    /// One of them.
    pub fn get(&self, counter: StatCounter) -> Option<u64> {
        self.0.get(counter as usize).copied().flatten()
    }

    /// Sets one of them.
    pub fn set(&mut self, counter: StatCounter, value: Option<u64>) {
        if let Some(place) = self.0.get_mut(counter as usize) {
            *place = value;
        }
    }
}

/// A setting of connection tracking in /proc/sys/net/netfilter that is one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CtSetting {
    /// `nf_conntrack_acct`: packets and bytes of each entry are counted; costs its extension (see `nat advise`).
    Acct,
    /// `nf_conntrack_events`: what happens to entries is told to listeners: 0 never, 1 always, 2 while somebody listens.
    Events,
    /// `nf_conntrack_timestamp`: each entry keeps when it began.
    Timestamp,
    /// `nf_conntrack_checksum`: packets with a wrong checksum are invalid.
    Checksum,
    /// `nf_conntrack_log_invalid`: protocol whose invalid packets are logged; 255 all, 0 none.
    LogInvalid,
    /// `nf_conntrack_helper`: helpers are assigned by port alone; gone since Linux 6.0.
    Helper,
    /// `nf_conntrack_tcp_be_liberal`: only resets outside the window are invalid.
    TcpBeLiberal,
    /// `nf_conntrack_tcp_loose`: connections are picked up in the middle.
    TcpLoose,
    /// `nf_conntrack_tcp_max_retrans`: retransmissions without an answer before the shorter timeout applies.
    TcpMaxRetrans,
    /// `nf_conntrack_tcp_ignore_invalid_rst`: resets outside the window are not invalid.
    TcpIgnoreInvalidRst,
    /// `nf_conntrack_tcp_timeout_syn_sent`: seconds that a TCP entry without an answer is kept.
    TcpSynSent,
    /// `nf_conntrack_tcp_timeout_syn_recv`: seconds for a TCP handshake that was answered.
    TcpSynRecv,
    /// `nf_conntrack_tcp_timeout_established`: seconds that an open, silent TCP connection is kept.
    TcpEstablished,
    /// `nf_conntrack_tcp_timeout_fin_wait`: seconds after the first FIN.
    TcpFinWait,
    /// `nf_conntrack_tcp_timeout_close_wait`: seconds after a FIN that was acknowledged.
    TcpCloseWait,
    /// `nf_conntrack_tcp_timeout_last_ack`: seconds after the second FIN.
    TcpLastAck,
    /// `nf_conntrack_tcp_timeout_time_wait`: seconds after a connection was closed by both.
    TcpTimeWait,
    /// `nf_conntrack_tcp_timeout_close`: seconds after a reset.
    TcpClose,
    /// `nf_conntrack_tcp_timeout_max_retrans`: seconds after too many retransmissions.
    TcpMaxRetransTimeout,
    /// `nf_conntrack_tcp_timeout_unacknowledged`: seconds while what was sent is not acknowledged.
    TcpUnacknowledged,
    /// `nf_conntrack_udp_timeout`: seconds for UDP that has not become a stream.
    Udp,
    /// `nf_conntrack_udp_timeout_stream`: seconds for UDP in both directions over more than two seconds.
    UdpStream,
    /// `nf_conntrack_icmp_timeout`: seconds for ICMP queries.
    Icmp,
    /// `nf_conntrack_icmpv6_timeout`: seconds for ICMPv6 queries.
    Icmpv6,
    /// `nf_conntrack_sctp_timeout_closed`: seconds for SCTP that is closed.
    SctpClosed,
    /// `nf_conntrack_sctp_timeout_cookie_wait`: seconds after INIT.
    SctpCookieWait,
    /// `nf_conntrack_sctp_timeout_cookie_echoed`: seconds after COOKIE ECHO.
    SctpCookieEchoed,
    /// `nf_conntrack_sctp_timeout_established`: seconds for an SCTP association.
    SctpEstablished,
    /// `nf_conntrack_sctp_timeout_shutdown_sent`: seconds after SHUTDOWN.
    SctpShutdownSent,
    /// `nf_conntrack_sctp_timeout_shutdown_recd`: seconds after SHUTDOWN of the other side.
    SctpShutdownRecd,
    /// `nf_conntrack_sctp_timeout_shutdown_ack_sent`: seconds after SHUTDOWN ACK.
    SctpShutdownAckSent,
    /// `nf_conntrack_sctp_timeout_heartbeat_sent`: seconds for an association known by its heartbeats only.
    SctpHeartbeatSent,
    /// `nf_conntrack_gre_timeout`: seconds for GRE that was not answered.
    Gre,
    /// `nf_conntrack_gre_timeout_stream`: seconds for GRE in both directions.
    GreStream,
    /// `nf_conntrack_generic_timeout`: seconds for every other protocol.
    Generic,
}

impl CtSetting {
    /// All of them, in the order of their numbers.
    pub const ALL: [CtSetting; 35] = [
        CtSetting::Acct,
        CtSetting::Events,
        CtSetting::Timestamp,
        CtSetting::Checksum,
        CtSetting::LogInvalid,
        CtSetting::Helper,
        CtSetting::TcpBeLiberal,
        CtSetting::TcpLoose,
        CtSetting::TcpMaxRetrans,
        CtSetting::TcpIgnoreInvalidRst,
        CtSetting::TcpSynSent,
        CtSetting::TcpSynRecv,
        CtSetting::TcpEstablished,
        CtSetting::TcpFinWait,
        CtSetting::TcpCloseWait,
        CtSetting::TcpLastAck,
        CtSetting::TcpTimeWait,
        CtSetting::TcpClose,
        CtSetting::TcpMaxRetransTimeout,
        CtSetting::TcpUnacknowledged,
        CtSetting::Udp,
        CtSetting::UdpStream,
        CtSetting::Icmp,
        CtSetting::Icmpv6,
        CtSetting::SctpClosed,
        CtSetting::SctpCookieWait,
        CtSetting::SctpCookieEchoed,
        CtSetting::SctpEstablished,
        CtSetting::SctpShutdownSent,
        CtSetting::SctpShutdownRecd,
        CtSetting::SctpShutdownAckSent,
        CtSetting::SctpHeartbeatSent,
        CtSetting::Gre,
        CtSetting::GreStream,
        CtSetting::Generic,
    ];

    /// Its file in /proc/sys/net/netfilter.
    pub fn file(self) -> &'static str {
        match self {
            CtSetting::Acct => "nf_conntrack_acct",
            CtSetting::Events => "nf_conntrack_events",
            CtSetting::Timestamp => "nf_conntrack_timestamp",
            CtSetting::Checksum => "nf_conntrack_checksum",
            CtSetting::LogInvalid => "nf_conntrack_log_invalid",
            CtSetting::Helper => "nf_conntrack_helper",
            CtSetting::TcpBeLiberal => "nf_conntrack_tcp_be_liberal",
            CtSetting::TcpLoose => "nf_conntrack_tcp_loose",
            CtSetting::TcpMaxRetrans => "nf_conntrack_tcp_max_retrans",
            CtSetting::TcpIgnoreInvalidRst => "nf_conntrack_tcp_ignore_invalid_rst",
            CtSetting::TcpSynSent => "nf_conntrack_tcp_timeout_syn_sent",
            CtSetting::TcpSynRecv => "nf_conntrack_tcp_timeout_syn_recv",
            CtSetting::TcpEstablished => "nf_conntrack_tcp_timeout_established",
            CtSetting::TcpFinWait => "nf_conntrack_tcp_timeout_fin_wait",
            CtSetting::TcpCloseWait => "nf_conntrack_tcp_timeout_close_wait",
            CtSetting::TcpLastAck => "nf_conntrack_tcp_timeout_last_ack",
            CtSetting::TcpTimeWait => "nf_conntrack_tcp_timeout_time_wait",
            CtSetting::TcpClose => "nf_conntrack_tcp_timeout_close",
            CtSetting::TcpMaxRetransTimeout => "nf_conntrack_tcp_timeout_max_retrans",
            CtSetting::TcpUnacknowledged => "nf_conntrack_tcp_timeout_unacknowledged",
            CtSetting::Udp => "nf_conntrack_udp_timeout",
            CtSetting::UdpStream => "nf_conntrack_udp_timeout_stream",
            CtSetting::Icmp => "nf_conntrack_icmp_timeout",
            CtSetting::Icmpv6 => "nf_conntrack_icmpv6_timeout",
            CtSetting::SctpClosed => "nf_conntrack_sctp_timeout_closed",
            CtSetting::SctpCookieWait => "nf_conntrack_sctp_timeout_cookie_wait",
            CtSetting::SctpCookieEchoed => "nf_conntrack_sctp_timeout_cookie_echoed",
            CtSetting::SctpEstablished => "nf_conntrack_sctp_timeout_established",
            CtSetting::SctpShutdownSent => "nf_conntrack_sctp_timeout_shutdown_sent",
            CtSetting::SctpShutdownRecd => "nf_conntrack_sctp_timeout_shutdown_recd",
            CtSetting::SctpShutdownAckSent => "nf_conntrack_sctp_timeout_shutdown_ack_sent",
            CtSetting::SctpHeartbeatSent => "nf_conntrack_sctp_timeout_heartbeat_sent",
            CtSetting::Gre => "nf_conntrack_gre_timeout",
            CtSetting::GreStream => "nf_conntrack_gre_timeout_stream",
            CtSetting::Generic => "nf_conntrack_generic_timeout",
        }
    }
}

/// The settings of a namespace; `None` where this kernel has none of the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtSettings([Option<u64>; CtSetting::ALL.len()]);

impl Default for CtSettings {
    fn default() -> CtSettings {
        CtSettings([None; CtSetting::ALL.len()])
    }
}

impl CtSettings {
    /// One of them.
    pub fn get(&self, setting: CtSetting) -> Option<u64> {
        self.0.get(setting as usize).copied().flatten()
    }

    /// Sets one of them.
    pub fn set(&mut self, setting: CtSetting, value: Option<u64>) {
        if let Some(place) = self.0.get_mut(setting as usize) {
            *place = value;
        }
    }
}

/// Counters and settings of a namespace, or counters of one of its CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatStat<'b> {
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// The CPU; `None` for the sum of all.
    pub cpu: Option<u32>,
    /// Since the round before; `None` in the first.
    pub change: Option<Change>,
    /// Entries that count, expired ones included. This and the other sizes are the namespace's: `None` for a CPU.
    pub entries: Option<u64>,
    /// Most entries there may be.
    pub max: Option<u64>,
    /// Buckets of the hash table, which all namespaces share.
    pub buckets: Option<u64>,
    /// Most expectations there may be.
    pub expect_max: Option<u64>,
    /// Counters since the namespace was made.
    pub counts: StatCounts,
    /// What they grew by since the round before; `None` where one went backwards.
    pub grown: StatCounts,
    /// Settings, if they were asked for.
    pub settings: Option<&'b CtSettings>,
}

impl NatStat<'_> {
    /// A row with nothing known.
    pub const EMPTY: NatStat<'static> = NatStat {
        netns_id: 0,
        cpu: None,
        change: None,
        entries: None,
        max: None,
        buckets: None,
        expect_max: None,
        counts: StatCounts([None; StatCounter::ALL.len()]),
        grown: StatCounts([None; StatCounter::ALL.len()]),
        settings: None,
    };

    /// How full the table is, in percent, rounded down.
    fn fill_percent(&self) -> Option<u64> {
        let full = u128::from(self.entries?) * 100 / u128::from(self.max.filter(|max| *max > 0)?);
        u64::try_from(full).ok()
    }

    fn setting(&self, setting: CtSetting) -> Value<'static> {
        Value::number(self.settings.and_then(|settings| settings.get(setting)))
    }
}

type F = Field<NatStats>;
type Cell = for<'r, 'b> fn(&'r NatStat<'b>) -> Value<'r>;

const fn count(name: &'static str, kernel: &'static str, doc: &'static str, get: Cell) -> F {
    F::own(name, Kind::Count, get).kernel(kernel).doc(doc)
}

const fn setting(name: &'static str, kernel: &'static str, doc: &'static str, get: Cell) -> F {
    F::own(name, Kind::Count, get).kernel(kernel).doc(doc).needs(stat_need::SETTINGS)
}

const fn timeout(name: &'static str, kernel: &'static str, doc: &'static str, get: Cell) -> F {
    F::own(name, Kind::DurationS, get).kernel(kernel).doc(doc).needs(stat_need::SETTINGS)
}

// One line a field: whoever looks for one finds it with its neighbours.
#[rustfmt::skip]
const FIELDS: &[F] = &[
    F::own("change", Kind::Name(Change::NAMES), |row| row.change.map_or(Value::Null, |change| Value::Name(change.name())))
        .doc("With --watch: new, kept, or gone since the round before."),
    F::joined("netns", Kind::Text, LookupId::Netns, |row| Key::Id(row.netns_id))
        .doc("Name of the network namespace; its number where it has none.")
        .show(Show::Wide),
    F::own("netns_id", Kind::Id, |row| Value::U64(row.netns_id)).doc("Inode of the network namespace."),
    F::own("cpu", Kind::Id, |row| Value::number(row.cpu))
        .doc("The CPU, with --per-cpu; null for the sum of all. Sizes and settings are the namespace's: null for a CPU.")
        .show(Show::Wide),
    F::own("entries", Kind::Count, |row| Value::number(row.entries))
        .kernel("nf_conntrack_count")
        .doc("Entries in the table, including expired ones that are not collected yet.")
        .show(Show::Default),
    F::own("max", Kind::Count, |row| Value::number(row.max))
        .kernel("nf_conntrack_max")
        .doc("Most entries there may be: one number for the host, compared with the entries of each namespace.")
        .show(Show::Default),
    F::own("fill_percent", Kind::Count, |row| Value::number(row.fill_percent()))
        .doc("`entries` in percent of `max`, rounded down.")
        .show(Show::Default),
    F::own("buckets", Kind::Count, |row| Value::number(row.buckets))
        .kernel("nf_conntrack_buckets")
        .doc("Buckets of the hash table, which all namespaces share.")
        .show(Show::Wide),
    F::own("expect_max", Kind::Count, |row| Value::number(row.expect_max))
        .kernel("nf_conntrack_expect_max")
        .doc("Most expectations of helpers there may be."),
    count("drop", "CTA_STATS_DROP", "Packets dropped because no entry could be made: the table was full, or memory.", |row| Value::number(row.counts.get(StatCounter::Drop))).show(Show::Default),
    count("early_drop", "CTA_STATS_EARLY_DROP", "Entries thrown out before their time to make room for new ones.", |row| Value::number(row.counts.get(StatCounter::EarlyDrop))).show(Show::Default),
    count("insert_failed", "CTA_STATS_INSERT_FAILED", "Entries that could not go in: another one has the same tuple, or the chain is too long. The packet is dropped.", |row| Value::number(row.counts.get(StatCounter::InsertFailed))).show(Show::Default),
    count("invalid", "CTA_STATS_INVALID", "Packets that belong to no connection in a way that could be.", |row| Value::number(row.counts.get(StatCounter::Invalid))).show(Show::Default),
    count("search_restart", "CTA_STATS_SEARCH_RESTART", "Searches begun again because the table was resized meanwhile.", |row| Value::number(row.counts.get(StatCounter::SearchRestart))).show(Show::Default),
    count("clash_resolve", "CTA_STATS_CLASH_RESOLVE", "Entries that two CPUs made at once, and that were made one.", |row| Value::number(row.counts.get(StatCounter::ClashResolve))).show(Show::Default),
    count("chaintoolong", "CTA_STATS_CHAIN_TOOLONG", "Entries not made because their hash chain was too long: the table has too few buckets, or somebody chooses tuples to that end. Since Linux 5.15.", |row| Value::number(row.counts.get(StatCounter::ChainTooLong))).show(Show::Default),
    count("error", "CTA_STATS_ERROR", "ICMP messages about errors that could not be tracked.", |row| Value::number(row.counts.get(StatCounter::Error))),
    count("expect_new", "CTA_STATS_EXP_NEW", "Connections that came as a helper had expected them.", |row| Value::number(row.counts.get(StatCounter::ExpectNew))).needs(stat_need::EXPECTATIONS),
    count("expect_create", "CTA_STATS_EXP_CREATE", "Expectations made by helpers.", |row| Value::number(row.counts.get(StatCounter::ExpectCreate))).needs(stat_need::EXPECTATIONS),
    count("expect_delete", "CTA_STATS_EXP_DELETE", "Expectations removed.", |row| Value::number(row.counts.get(StatCounter::ExpectDelete))).needs(stat_need::EXPECTATIONS),
    count("found", "CTA_STATS_FOUND", "Means little: searches for a free tuple by NAT that hit another entry, not packets of known connections.", |row| Value::number(row.counts.get(StatCounter::Found))),
    count("insert", "CTA_STATS_INSERT", "Means little: entries made through ctnetlink, not those of traffic.", |row| Value::number(row.counts.get(StatCounter::Insert))),
    count("new", "new", "Means nothing: always 0 in kernels of today.", |row| Value::number(row.counts.get(StatCounter::New))),
    count("ignore", "ignore", "Means nothing: always 0 in kernels of today.", |row| Value::number(row.counts.get(StatCounter::Ignore))),
    count("delete", "delete", "Means nothing: always 0 in kernels of today.", |row| Value::number(row.counts.get(StatCounter::Delete))),
    count("drop_delta", "", "What `drop` grew by since the round before; null in the first, and where it went backwards.", |row| Value::number(row.grown.get(StatCounter::Drop))),
    count("early_drop_delta", "", "What `early_drop` grew by since the round before; null in the first, and where it went backwards.", |row| Value::number(row.grown.get(StatCounter::EarlyDrop))),
    count("insert_failed_delta", "", "What `insert_failed` grew by since the round before; null in the first, and where it went backwards.", |row| Value::number(row.grown.get(StatCounter::InsertFailed))),
    count("invalid_delta", "", "What `invalid` grew by since the round before; null in the first, and where it went backwards.", |row| Value::number(row.grown.get(StatCounter::Invalid))),
    count("search_restart_delta", "", "What `search_restart` grew by since the round before; null in the first, and where it went backwards.", |row| Value::number(row.grown.get(StatCounter::SearchRestart))),
    count("clash_resolve_delta", "", "What `clash_resolve` grew by since the round before; null in the first, and where it went backwards.", |row| Value::number(row.grown.get(StatCounter::ClashResolve))),
    count("chaintoolong_delta", "", "What `chaintoolong` grew by since the round before; null in the first, and where it went backwards.", |row| Value::number(row.grown.get(StatCounter::ChainTooLong))),
    setting("acct", "nf_conntrack_acct", "Packets and bytes of each entry are counted; costs its extension (see `nat advise`).", |row| row.setting(CtSetting::Acct)),
    setting("events", "nf_conntrack_events", "Events are sent to listeners: 0 never, 1 always, 2 while a program listens.", |row| row.setting(CtSetting::Events)),
    setting("timestamp", "nf_conntrack_timestamp", "Each entry keeps when it began.", |row| row.setting(CtSetting::Timestamp)),
    setting("checksum", "nf_conntrack_checksum", "Packets with a wrong checksum are invalid.", |row| row.setting(CtSetting::Checksum)),
    setting("log_invalid", "nf_conntrack_log_invalid", "Protocol whose invalid packets are logged; 255 all, 0 none.", |row| row.setting(CtSetting::LogInvalid)),
    setting("helper", "nf_conntrack_helper", "Helpers are assigned by port alone; gone since Linux 6.0.", |row| row.setting(CtSetting::Helper)),
    setting("tcp_be_liberal", "nf_conntrack_tcp_be_liberal", "Only resets outside the window are invalid.", |row| row.setting(CtSetting::TcpBeLiberal)),
    setting("tcp_loose", "nf_conntrack_tcp_loose", "Connections are picked up in the middle.", |row| row.setting(CtSetting::TcpLoose)),
    setting("tcp_max_retrans", "nf_conntrack_tcp_max_retrans", "Retransmissions without an answer before the shorter timeout applies.", |row| row.setting(CtSetting::TcpMaxRetrans)),
    setting("tcp_ignore_invalid_rst", "nf_conntrack_tcp_ignore_invalid_rst", "Resets outside the window are not invalid.", |row| row.setting(CtSetting::TcpIgnoreInvalidRst)),
    timeout("tcp_timeout_syn_sent_s", "nf_conntrack_tcp_timeout_syn_sent", "Seconds that a TCP entry without an answer is kept.", |row| row.setting(CtSetting::TcpSynSent)),
    timeout("tcp_timeout_syn_recv_s", "nf_conntrack_tcp_timeout_syn_recv", "Seconds for a TCP handshake that was answered.", |row| row.setting(CtSetting::TcpSynRecv)),
    timeout("tcp_timeout_established_s", "nf_conntrack_tcp_timeout_established", "Seconds that an open, silent TCP connection is kept.", |row| row.setting(CtSetting::TcpEstablished)),
    timeout("tcp_timeout_fin_wait_s", "nf_conntrack_tcp_timeout_fin_wait", "Seconds after the first FIN.", |row| row.setting(CtSetting::TcpFinWait)),
    timeout("tcp_timeout_close_wait_s", "nf_conntrack_tcp_timeout_close_wait", "Seconds after a FIN that was acknowledged.", |row| row.setting(CtSetting::TcpCloseWait)),
    timeout("tcp_timeout_last_ack_s", "nf_conntrack_tcp_timeout_last_ack", "Seconds after the second FIN.", |row| row.setting(CtSetting::TcpLastAck)),
    timeout("tcp_timeout_time_wait_s", "nf_conntrack_tcp_timeout_time_wait", "Seconds after a connection was closed by both.", |row| row.setting(CtSetting::TcpTimeWait)),
    timeout("tcp_timeout_close_s", "nf_conntrack_tcp_timeout_close", "Seconds after a reset.", |row| row.setting(CtSetting::TcpClose)),
    timeout("tcp_timeout_max_retrans_s", "nf_conntrack_tcp_timeout_max_retrans", "Seconds after too many retransmissions.", |row| row.setting(CtSetting::TcpMaxRetransTimeout)),
    timeout("tcp_timeout_unacknowledged_s", "nf_conntrack_tcp_timeout_unacknowledged", "Seconds while what was sent is not acknowledged.", |row| row.setting(CtSetting::TcpUnacknowledged)),
    timeout("udp_timeout_s", "nf_conntrack_udp_timeout", "Seconds for UDP that has not become a stream.", |row| row.setting(CtSetting::Udp)),
    timeout("udp_timeout_stream_s", "nf_conntrack_udp_timeout_stream", "Seconds for UDP in both directions over more than two seconds.", |row| row.setting(CtSetting::UdpStream)),
    timeout("icmp_timeout_s", "nf_conntrack_icmp_timeout", "Seconds for ICMP queries.", |row| row.setting(CtSetting::Icmp)),
    timeout("icmpv6_timeout_s", "nf_conntrack_icmpv6_timeout", "Seconds for ICMPv6 queries.", |row| row.setting(CtSetting::Icmpv6)),
    timeout("sctp_timeout_closed_s", "nf_conntrack_sctp_timeout_closed", "Seconds for SCTP that is closed.", |row| row.setting(CtSetting::SctpClosed)),
    timeout("sctp_timeout_cookie_wait_s", "nf_conntrack_sctp_timeout_cookie_wait", "Seconds after INIT.", |row| row.setting(CtSetting::SctpCookieWait)),
    timeout("sctp_timeout_cookie_echoed_s", "nf_conntrack_sctp_timeout_cookie_echoed", "Seconds after COOKIE ECHO.", |row| row.setting(CtSetting::SctpCookieEchoed)),
    timeout("sctp_timeout_established_s", "nf_conntrack_sctp_timeout_established", "Seconds for an SCTP association.", |row| row.setting(CtSetting::SctpEstablished)),
    timeout("sctp_timeout_shutdown_sent_s", "nf_conntrack_sctp_timeout_shutdown_sent", "Seconds after SHUTDOWN.", |row| row.setting(CtSetting::SctpShutdownSent)),
    timeout("sctp_timeout_shutdown_recd_s", "nf_conntrack_sctp_timeout_shutdown_recd", "Seconds after SHUTDOWN of the other side.", |row| row.setting(CtSetting::SctpShutdownRecd)),
    timeout("sctp_timeout_shutdown_ack_sent_s", "nf_conntrack_sctp_timeout_shutdown_ack_sent", "Seconds after SHUTDOWN ACK.", |row| row.setting(CtSetting::SctpShutdownAckSent)),
    timeout("sctp_timeout_heartbeat_sent_s", "nf_conntrack_sctp_timeout_heartbeat_sent", "Seconds for an association known by its heartbeats only.", |row| row.setting(CtSetting::SctpHeartbeatSent)),
    timeout("gre_timeout_s", "nf_conntrack_gre_timeout", "Seconds for GRE that was not answered.", |row| row.setting(CtSetting::Gre)),
    timeout("gre_timeout_stream_s", "nf_conntrack_gre_timeout_stream", "Seconds for GRE in both directions.", |row| row.setting(CtSetting::GreStream)),
    timeout("generic_timeout_s", "nf_conntrack_generic_timeout", "Seconds for every other protocol.", |row| row.setting(CtSetting::Generic)),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Each field shows its own counter or setting and no other one's.
    #[test]
    fn every_counter_and_setting_has_its_field() {
        for counter in StatCounter::ALL {
            let mut row = NatStat::EMPTY;
            row.counts.set(counter, Some(7));
            let shown = shown(&row);
            assert_eq!(shown, [counter.name()]);
        }
        for setting in CtSetting::ALL {
            let mut settings = CtSettings::default();
            settings.set(setting, Some(7));
            let shown = shown(&NatStat { settings: Some(&settings), ..NatStat::EMPTY });
            let field = FIELDS.iter().find(|field| field.kernel == setting.file());
            assert_eq!(shown, [field.map_or("", |field| field.name)]);
        }
        for counter in &StatCounter::ALL[..7] {
            let mut row = NatStat::EMPTY;
            row.grown.set(*counter, Some(7));
            assert_eq!(shown(&row), [format!("{}_delta", counter.name())]);
        }
    }

    fn shown(row: &NatStat<'_>) -> Vec<&'static str> {
        let own = FIELDS.iter().filter(|field| match field.get {
            crate::Get::Own(get) => get(row) == Value::U64(7),
            _ => false,
        });
        own.map(|field| field.name).collect()
    }

    #[test]
    fn filling() {
        let fill = |entries, max| NatStat { entries, max, ..NatStat::EMPTY }.fill_percent();
        assert_eq!(fill(Some(999), Some(1000)), Some(99));
        assert_eq!(fill(Some(1000), Some(1000)), Some(100));
        assert_eq!(fill(Some(u64::MAX), Some(1)), None, "more than a number holds");
        assert_eq!((fill(Some(1), Some(0)), fill(None, Some(1)), fill(Some(1), None)), (None, None, None));
    }
}
