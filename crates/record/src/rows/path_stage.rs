//! Stages of a packet's path through netfilter's hooks (`doctor path`).

use crate::named_enum::named_enum;
use crate::rows::NetfilterHook;
use crate::table::stored_once;
use crate::{Field, Key, LookupId, Show, Table, Value};

named_enum! {
    /// The address family of packets.
    pub enum PathFamily {
        /// IPv4.
        Ip => "ip",
        /// IPv6.
        Ip6 => "ip6",
    }
}

named_enum! {
    /// A stage: the code between two priorities of a hook, or between two hooks.
    pub enum StageName {
        /// The stage contains no code.
        Empty => "empty",
        /// Reassembly of fragments.
        Defrag => "defrag",
        /// Rules that run before conntrack.
        Raw => "raw",
        /// Connection tracking.
        Conntrack => "conntrack",
        /// Rules that modify packets.
        Mangle => "mangle",
        /// Destination NAT.
        Dstnat => "dstnat",
        /// Rules that accept or drop packets.
        Filter => "filter",
        /// Source NAT.
        Srcnat => "srcnat",
        /// Code after all other stages.
        Late => "late",
        /// The path to the next hook.
        Routing => "routing",
    }
}

impl StageName {
    /// A sentence about the code of the stage.
    pub fn description(self) -> &'static str {
        match self {
            StageName::Empty => "no code between these two points: shows the cost of the measurement itself",
            StageName::Defrag => "fragments are held here for reassembly (held fragments count as lost)",
            StageName::Raw => "chains `raw` of nftables and iptables: notrack, early drops",
            StageName::Conntrack => "connection tracking finds or creates the packet's entry",
            StageName::Mangle => "chains `mangle` of nftables and iptables",
            StageName::Dstnat => "destination NAT: chains `nat` that publish or redirect services",
            StageName::Filter => "chains `filter` of nftables and iptables",
            StageName::Srcnat => "source NAT: chains `nat` that masquerade",
            StageName::Late => "code after the usual priorities: security, helpers",
            StageName::Routing => "between two hooks: routing, forwarding and other work of the IP layer",
        }
    }
}

/// A stage and the statistics of packets in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathStage {
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// The family.
    pub family: PathFamily,
    /// The hook. For the path between two hooks, the hook that every packet on it passes.
    pub hook: NetfilterHook,
    /// The stage.
    pub stage: StageName,
    /// The first and the last priority of the stage; `None` between two hooks.
    pub priorities: Option<(i32, i32)>,
    /// Packets that entered the stage.
    pub packets: u64,
    /// Packets that entered but did not leave it.
    pub lost: u64,
    /// Packets with a measured time.
    pub measured: u64,
    /// The sum of the times in ns.
    pub sum_ns: u64,
    /// The median time, in ns.
    pub median_ns: Option<u64>,
    /// The 99th percentile of the times, in ns.
    pub p99_ns: Option<u64>,
    /// The maximum time, in ns.
    pub max_ns: Option<u64>,
    /// Duration of the measurement.
    pub window_ns: u64,
}

impl PathStage {
    fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.measured)
    }

    fn priority(&self, which: fn((i32, i32)) -> i32) -> Value<'static> {
        match self.priorities.map(which) {
            Some(priority) => u64::try_from(priority).map_or(Value::I64(priority.into()), Value::U64),
            None => Value::Null,
        }
    }
}

/// Converts ns to thousandths of a µs.
fn microseconds_value(ns: Option<u64>) -> Value<'static> {
    ns.map_or(Value::Null, Value::Thousandths)
}

/// The table of stages between netfilter's hooks (`doctor path`).
#[derive(Clone, Copy, Debug)]
pub enum PathStages {}

type F = Field<PathStages>;

impl Table for PathStages {
    type Row<'b> = PathStage;
    const NAME: &'static str = "doctor path";
    const FIELDS: &'static [F] = stored_once! { F:
        /// Name of the network namespace, or its inode number if it is unnamed.
        netns: Text = joined(LookupId::Netns, |row| Key::Id(row.netns_id)), show Show::Wide;
        /// Inode of the network namespace.
        netns_id: Id = own(|row| Value::U64(row.netns_id));
        /// Address family: ip (IPv4) or ip6 (IPv6).
        family: Name(PathFamily::NAMES) = own(|row| Value::Name(row.family.name())), show Show::Default;
        /// Netfilter hook. In stage routing, prerouting means the path from that hook to input or forward, and
        /// postrouting the path to that hook from forward or output.
        hook: Name(NetfilterHook::NAMES) = own(|row| Value::Name(row.hook.name())), show Show::Default;
        /// Stage of the hook; empty is a stage without work and shows the cost of the measurement itself.
        stage: Name(StageName::NAMES) = own(|row| Value::Name(row.stage.name())), show Show::Default;
        /// Packets that entered the stage.
        packets: Count = own(|row| Value::U64(row.packets)), show Show::Default;
        /// Packets that did not leave the stage: dropped, queued for a program, or held as fragments.
        lost: Count = own(|row| Value::U64(row.lost)), show Show::Default;
        /// Mean time in the stage, in microseconds.
        mean_us: Thousandths = own(|row| microseconds_value(row.mean_ns())), show Show::Default;
        /// Median time in the stage, in microseconds, accurate to 12.5 %.
        median_us: Thousandths = own(|row| microseconds_value(row.median_ns)), show Show::Wide;
        /// 99th percentile of the time in the stage, in microseconds, accurate to 12.5 %.
        p99_us: Thousandths = own(|row| microseconds_value(row.p99_ns)), show Show::Default;
        /// Longest time in the stage, in microseconds.
        max_us: Thousandths = own(|row| microseconds_value(row.max_ns)), show Show::Default;
        /// Packets whose time was measured; excludes packets that changed CPU or buffer in the stage.
        measured: Count = own(|row| Value::U64(row.measured)), show Show::Wide;
        /// Sum of the measured times, in microseconds.
        sum_us: Thousandths = own(|row| Value::Thousandths(row.sum_ns)), show Show::Wide;
        /// First hook priority that belongs to the stage; null for stage routing, which is between two hooks.
        first_priority: Count = own(|row| row.priority(|(first, _)| first)), show Show::Wide;
        /// Last hook priority that belongs to the stage; null for stage routing, which is between two hooks.
        last_priority: Count = own(|row| row.priority(|(_, last)| last)), show Show::Wide;
        /// Description of the stage.
        about: Text = own(|row| Value::nonempty(row.stage.description().as_bytes())), show Show::Default;
        /// Time during which packets were counted.
        window_us: DurationUs = own(|row| Value::U64(row.window_ns / 1000)), show Show::Wide;
    };
}
