//! Conntrack counters and settings, one row per namespace or one per CPU (`nat stats`).

use super::Change;
use crate::table::{fields, stored_once};
use crate::{Field, Key, Kind, LookupId, Show, Table, Value, concat_fields};

/// The table of counters (`nat stats`).
#[derive(Clone, Copy, Debug)]
pub enum NatStats {}

impl Table for NatStats {
    type Row<'b> = NatStat<'b>;
    const NAME: &'static str = "nat stats";
    const FIELDS: &'static [F] = stored_once!(F, FIELDS);
}

/// Bits of [`Field::need`] for [`NatStats`].
pub mod stat_need {
    /// Settings other than sizes: one file of /proc/sys each.
    pub const SETTINGS: u64 = 1;
    /// Counters of expectations: a second ctnetlink request.
    pub const EXPECTATIONS: u64 = 1 << 1;
}

type F = Field<NatStats>;

macro_rules! counters {
    ($($variant:ident $name:literal $kernel:literal $doc:literal $(.$with:ident($value:expr))?;)*) => {
        /// Counters that the kernel keeps per namespace and CPU (`struct ip_conntrack_stat`, 32 bits each).
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum StatCounter {
            $(#[doc = $doc] $variant,)*
        }

        impl StatCounter {
            /// Every counter, in the order of the discriminants.
            pub const ALL: [StatCounter; [$($name),*].len()] = [$(StatCounter::$variant),*];

            /// The counter's word.
            pub fn name(self) -> &'static str {
                match self { $(StatCounter::$variant => $name),* }
            }
        }

        const COUNTERS: &[F] = &[$(
            F::own($name, Kind::Count, |row| Value::number(row.counts.get(StatCounter::$variant)))
                .kernel($kernel).doc($doc)$(.$with($value))?
        ),*];
    };
}

// Variant, word, the kernel's name, sentence. Counters without CTA_… are only in /proc/net/stat/nf_conntrack.
counters! {
    Drop "drop" "CTA_STATS_DROP"
        "Packets dropped because no entry could be created: the table was full or memory ran out." .show(Show::Default);
    EarlyDrop "early_drop" "CTA_STATS_EARLY_DROP"
        "Entries evicted early to make room for new ones." .show(Show::Default);
    InsertFailed "insert_failed" "CTA_STATS_INSERT_FAILED"
        "Entries that could not be inserted because the tuple was taken or the hash chain was too long. The packet is \
         dropped." .show(Show::Default);
    Invalid "invalid" "CTA_STATS_INVALID"
        "Packets classified as invalid: malformed, or impossible in the connection's state." .show(Show::Default);
    SearchRestart "search_restart" "CTA_STATS_SEARCH_RESTART"
        "Lookups restarted because the table was resized during the search." .show(Show::Default);
    ClashResolve "clash_resolve" "CTA_STATS_CLASH_RESOLVE"
        "Clashes resolved: two CPUs created the same entry at once, and the kernel merged them." .show(Show::Default);
    ChainTooLong "chaintoolong" "CTA_STATS_CHAIN_TOOLONG"
        "Entries not inserted because their hash chain was too long: the table has too few buckets, or a sender \
         chooses colliding tuples on purpose. Since Linux 5.15." .show(Show::Default);
    Error "error" "CTA_STATS_ERROR" "ICMP messages that could not be tracked: malformed ones, and errors about unknown \
        connections.";
    ExpectNew "expect_new" "CTA_STATS_EXP_NEW"
        "Connections that matched a helper's expectation." .needs(stat_need::EXPECTATIONS);
    ExpectCreate "expect_create" "CTA_STATS_EXP_CREATE"
        "Expectations created by helpers." .needs(stat_need::EXPECTATIONS);
    ExpectDelete "expect_delete" "CTA_STATS_EXP_DELETE" "Expectations removed." .needs(stat_need::EXPECTATIONS);
    Found "found" "CTA_STATS_FOUND"
        "Searches of NAT for a free tuple that hit an existing entry; not packets of known connections, so of little \
        use.";
    Insert "insert" "CTA_STATS_INSERT" "Entries created through ctnetlink; not those that traffic creates, so of \
        little use.";
    New "new" "new" "Always 0 in current kernels.";
    Ignore "ignore" "ignore" "Always 0 in current kernels.";
    Delete "delete" "delete" "Always 0 in current kernels.";
}

macro_rules! deltas {
    ($($variant:ident $name:literal),*) => {
        const DELTAS: &[F] = &[$(
            F::own(concat!($name, "_delta"), Kind::Count, |row| Value::number(row.grown.get(StatCounter::$variant)))
                .doc(concat!("Increase of `", $name, "` since the previous round; null in the first round, and if the \
                    counter decreased."))
        ),*];
    };
}

deltas!(
    Drop "drop", EarlyDrop "early_drop", InsertFailed "insert_failed", Invalid "invalid",
    SearchRestart "search_restart", ClashResolve "clash_resolve", ChainTooLong "chaintoolong"
);

/// The counters of one row; `None` for counters that this kernel or this backend does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatCounts([Option<u64>; StatCounter::ALL.len()]);

impl StatCounts {
    /// Returns a counter.
    pub fn get(&self, counter: StatCounter) -> Option<u64> {
        self.0.get(counter as usize).copied().flatten()
    }

    /// Sets a counter.
    pub fn set(&mut self, counter: StatCounter, value: Option<u64>) {
        if let Some(place) = self.0.get_mut(counter as usize) {
            *place = value;
        }
    }
}

macro_rules! settings {
    (@name Count $file:literal) => { $file };
    (@name DurationS $file:literal) => { concat!($file, "_s") };
    ($($variant:ident $kind:ident $file:literal $doc:literal;)*) => {
        /// A conntrack setting in /proc/sys/net/netfilter that is a single number.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum CtSetting {
            $(#[doc = concat!("`nf_conntrack_", $file, "`: ", $doc)] $variant,)*
        }

        impl CtSetting {
            /// Every setting, in the order of the discriminants.
            pub const ALL: [CtSetting; [$($file),*].len()] = [$(CtSetting::$variant),*];

            /// Its file in /proc/sys/net/netfilter.
            pub fn file(self) -> &'static str {
                match self { $(CtSetting::$variant => concat!("nf_conntrack_", $file)),* }
            }
        }

        const SETTINGS: &[F] = &[$(
            F::own(settings!(@name $kind $file), Kind::$kind, |row| row.setting(CtSetting::$variant))
                .kernel(concat!("nf_conntrack_", $file)).doc($doc).needs(stat_need::SETTINGS)
        ),*];
    };
}

// Variant, kind, file name without `nf_conntrack_` (the column of a time ends in `_s`), sentence.
settings! {
    Acct Count "acct" "1 if packets and bytes of each entry are counted; each entry then takes more memory (see `nat \
        advise`).";
    Events Count "events" "When events are sent to listening programs: 0 never, 1 always, 2 while a program is \
        listening.";
    Timestamp Count "timestamp" "1 if each entry records its start time.";
    Checksum Count "checksum" "1 if packets with a wrong checksum are invalid.";
    LogInvalid Count "log_invalid" "Number of the protocol whose invalid packets are logged; 255 for all, 0 for none.";
    Helper Count "helper" "1 if helpers are assigned by port number alone; removed in Linux 6.0.";
    TcpBeLiberal Count "tcp_be_liberal" "1 if only resets outside the window are invalid.";
    TcpLoose Count "tcp_loose" "1 if connections that are already established are picked up.";
    TcpMaxRetrans Count "tcp_max_retrans" "Unanswered retransmissions before the shorter timeout applies.";
    TcpIgnoreInvalidRst Count "tcp_ignore_invalid_rst" "1 if resets outside the window are not invalid.";
    TcpSynSent DurationS "tcp_timeout_syn_sent" "Timeout of a TCP connection whose SYN has not been answered.";
    TcpSynRecv DurationS "tcp_timeout_syn_recv" "Timeout of a TCP handshake that has been answered.";
    TcpEstablished DurationS "tcp_timeout_established" "Timeout of an established TCP connection without traffic.";
    TcpFinWait DurationS "tcp_timeout_fin_wait" "Timeout after the first FIN.";
    TcpCloseWait DurationS "tcp_timeout_close_wait" "Timeout after a FIN that was acknowledged.";
    TcpLastAck DurationS "tcp_timeout_last_ack" "Timeout after the second FIN.";
    TcpTimeWait DurationS "tcp_timeout_time_wait" "Timeout after both sides have closed the connection.";
    TcpClose DurationS "tcp_timeout_close" "Timeout after a reset.";
    TcpMaxRetransTimeout DurationS "tcp_timeout_max_retrans" "Timeout after too many retransmissions.";
    TcpUnacknowledged DurationS "tcp_timeout_unacknowledged" "Timeout while sent data are not acknowledged.";
    Udp DurationS "udp_timeout" "Timeout of UDP traffic that is not a stream yet.";
    UdpStream DurationS "udp_timeout_stream" "Timeout of a UDP stream: traffic in both directions for more than two \
        seconds.";
    Icmp DurationS "icmp_timeout" "Timeout of ICMP queries.";
    Icmpv6 DurationS "icmpv6_timeout" "Timeout of ICMPv6 queries.";
    SctpClosed DurationS "sctp_timeout_closed" "Timeout of a closed SCTP association.";
    SctpCookieWait DurationS "sctp_timeout_cookie_wait" "Timeout after INIT.";
    SctpCookieEchoed DurationS "sctp_timeout_cookie_echoed" "Timeout after COOKIE ECHO.";
    SctpEstablished DurationS "sctp_timeout_established" "Timeout of an established SCTP association.";
    SctpShutdownSent DurationS "sctp_timeout_shutdown_sent" "Timeout after SHUTDOWN was sent.";
    SctpShutdownRecd DurationS "sctp_timeout_shutdown_recd" "Timeout after SHUTDOWN was received.";
    SctpShutdownAckSent DurationS "sctp_timeout_shutdown_ack_sent" "Timeout after SHUTDOWN ACK.";
    SctpHeartbeatSent DurationS "sctp_timeout_heartbeat_sent"
        "Timeout of an SCTP association of which only heartbeats were seen.";
    Gre DurationS "gre_timeout" "Timeout of GRE traffic in one direction.";
    GreStream DurationS "gre_timeout_stream" "Timeout of GRE traffic in both directions.";
    Generic DurationS "generic_timeout" "Timeout of all other protocols.";
}

/// The settings of a namespace; `None` for settings that this kernel does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtSettings([Option<u64>; CtSetting::ALL.len()]);

impl Default for CtSettings {
    fn default() -> CtSettings {
        CtSettings([None; CtSetting::ALL.len()])
    }
}

impl CtSettings {
    /// Returns a setting.
    pub fn get(&self, setting: CtSetting) -> Option<u64> {
        self.0.get(setting as usize).copied().flatten()
    }

    /// Sets a setting.
    pub fn set(&mut self, setting: CtSetting, value: Option<u64>) {
        if let Some(place) = self.0.get_mut(setting as usize) {
            *place = value;
        }
    }
}

/// Counters and settings of a namespace, or the counters of one of its CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatStat<'b> {
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// The CPU; `None` for the sum of all CPUs.
    pub cpu: Option<u32>,
    /// Change since the previous round; `None` in the first round.
    pub change: Option<Change>,
    /// Number of entries, including expired ones. This and the other sizes apply to the namespace: `None` for a CPU.
    pub entries: Option<u64>,
    /// Maximum number of entries.
    pub max: Option<u64>,
    /// Number of buckets of the hash table, which all namespaces share.
    pub buckets: Option<u64>,
    /// Maximum number of expectations.
    pub expect_max: Option<u64>,
    /// Counters since the namespace was created.
    pub counts: StatCounts,
    /// Increase since the previous round; `None` for counters that decreased.
    pub grown: StatCounts,
    /// Settings, if requested.
    pub settings: Option<&'b CtSettings>,
}

impl NatStat<'_> {
    /// A row with all values unset.
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

    /// Fill level of the table in percent, rounded down.
    fn fill_percent(&self) -> Option<u64> {
        let full = u128::from(self.entries?) * 100 / u128::from(self.max.filter(|max| *max > 0)?);
        u64::try_from(full).ok()
    }

    fn setting(&self, setting: CtSetting) -> Value<'static> {
        Value::number(self.settings.and_then(|settings| settings.get(setting)))
    }
}

const FIELDS: &[F] = &concat_fields::<_, { SIZES.len() + COUNTERS.len() + DELTAS.len() + SETTINGS.len() }>(&[
    SIZES, COUNTERS, DELTAS, SETTINGS,
]);

const SIZES: &[F] = fields! { F:
    /// With --watch: new, kept or gone since the previous round.
    change: Name(Change::NAMES) = own(|row| { row.change.map_or(Value::Null, |change| Value::Name(change.name())) });
    /// Name of the network namespace, or its inode number if it is unnamed.
    netns: Text = joined(LookupId::Netns, |row| Key::Id(row.netns_id)), show Show::Wide;
    /// Inode of the network namespace.
    netns_id: Id = own(|row| Value::U64(row.netns_id));
    /// CPU, with --per-cpu; null for the sum of all CPUs. Sizes and settings belong to the namespace and are null in a
    /// CPU's row.
    cpu: Id = own(|row| Value::number(row.cpu)), show Show::Wide;
    /// Entries in the table, including expired entries that the kernel has not collected yet.
    entries: Count = own(|row| Value::number(row.entries)), kernel "nf_conntrack_count", show Show::Default;
    /// Maximum number of entries: one limit for the whole host, applied to each namespace separately.
    max: Count = own(|row| Value::number(row.max)), kernel "nf_conntrack_max", show Show::Default;
    /// `entries` in percent of `max`, rounded down.
    fill_percent: Count = own(|row| Value::number(row.fill_percent())), show Show::Default;
    /// Buckets of the hash table, which all namespaces share.
    buckets: Count = own(|row| Value::number(row.buckets)), kernel "nf_conntrack_buckets", show Show::Wide;
    /// Maximum number of helper expectations.
    expect_max: Count = own(|row| Value::number(row.expect_max)), kernel "nf_conntrack_expect_max";
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Each field shows its own counter or setting.
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
