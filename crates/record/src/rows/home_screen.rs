//! The home screen (`netwren` without a command): one row per reading of the whole host, with a list for each part.

use crate::table::stored_once;
use crate::{Field, Kind, Member, OwnedObject, Show, Table, Value};

/// The table of home screens.
#[derive(Clone, Copy, Debug)]
pub enum HomeScreens {}

/// A summary of a host. Lists are cut to the length that the cli chooses; the totals count everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HomeScreen {
    /// When the reading was finished, in ns since 1970.
    pub time_ns: u64,
    /// Host name; empty if it cannot be read.
    pub host: Vec<u8>,
    /// Kernel release and machine.
    pub kernel: String,
    /// Time since the host started, in seconds.
    pub uptime_s: Option<u64>,
    /// The time between the two readings of the counters, in ns; 0 if there is no second reading.
    pub window_ns: u64,
    /// Interfaces with the members [`HomeScreen::INTERFACES`], busiest first.
    pub interfaces: Vec<OwnedObject>,
    /// Total number of interfaces.
    pub interfaces_total: u64,
    /// Sockets with the members [`HomeScreen::SOCKETS`].
    pub sockets: Vec<OwnedObject>,
    /// Conntrack tables with the members [`HomeScreen::CONNTRACK`].
    pub conntrack: Vec<OwnedObject>,
    /// TCP segments sent during the window; `None` if unknown.
    pub segs_out: Option<u64>,
    /// The retransmitted segments among them.
    pub retransmits: Option<u64>,
    /// Flows with the members [`HomeScreen::FLOWS`], most traffic first.
    pub flows: Vec<OwnedObject>,
    /// Total number of flows.
    pub flows_total: u64,
    /// Drops with the members [`HomeScreen::DROPS`], most drops first.
    pub drops: Vec<OwnedObject>,
    /// The source of the drops, one of [`HomeScreen::DROPS_VIA`].
    pub drops_via: &'static str,
    /// Findings with the members [`HomeScreen::FINDINGS`], most severe first.
    pub findings: Vec<OwnedObject>,
    /// Total number of findings.
    pub findings_total: u64,
    /// Parts of the host that could not be read, as sentences.
    pub unseen: Vec<String>,
}

const fn member(name: &'static str, kind: Kind) -> Member {
    Member { name, kind }
}

impl HomeScreen {
    /// The words of `drops_via`: a BPF program in the kernel knows the cause of each drop, counters know only some
    /// causes.
    pub const DROPS_VIA: &'static [&'static str] = &["bpf", "counters"];

    /// Members of an interface.
    pub const INTERFACES: &'static [Member] = &[
        member("netns", Kind::Text),
        member("iface", Kind::Text),
        member("bits_in_per_s", Kind::BitsPerSecond),
        member("bits_out_per_s", Kind::BitsPerSecond),
        member("packets_in_per_s", Kind::Count),
        member("packets_out_per_s", Kind::Count),
    ];

    /// Members of a count of sockets.
    pub const SOCKETS: &'static [Member] =
        &[member("proto", Kind::Text), member("state", Kind::Text), member("count", Kind::Count)];

    /// Members of a conntrack table.
    pub const CONNTRACK: &'static [Member] = &[
        member("netns", Kind::Text),
        member("entries", Kind::Count),
        member("max", Kind::Count),
        member("drop", Kind::Count),
        member("early_drop", Kind::Count),
        member("insert_failed", Kind::Count),
    ];

    /// Members of a flow.
    pub const FLOWS: &'static [Member] = &[
        member("netns", Kind::Text),
        member("proto", Kind::Text),
        member("direction", Kind::Text),
        member("local_addr", Kind::Addr),
        member("local_port", Kind::Port),
        member("peer_addr", Kind::Addr),
        member("peer_port", Kind::Port),
        member("connections", Kind::Count),
        member("bytes_in_per_s", Kind::Bytes),
        member("bytes_out_per_s", Kind::Bytes),
        member("process", Kind::Text),
        member("pid", Kind::Id),
        member("container", Kind::Text),
    ];

    /// Members of a cause of drops. For counters, `reason` is the counter's name and `place` the kernel interface that
    /// it is read from.
    pub const DROPS: &'static [Member] = &[
        member("count", Kind::Count),
        member("reason", Kind::Text),
        member("place", Kind::Text),
        member("netns", Kind::Text),
        member("iface", Kind::Text),
        member("process", Kind::Text),
        member("meaning", Kind::Text),
    ];

    /// Members of a finding.
    pub const FINDINGS: &'static [Member] = &[
        member("severity", Kind::Text),
        member("id", Kind::Text),
        member("netns", Kind::Text),
        member("title", Kind::Text),
        member("cost", Kind::Text),
        member("command", Kind::Text),
    ];
}

type F = Field<HomeScreens>;

impl Table for HomeScreens {
    type Row<'b> = HomeScreen;
    const NAME: &'static str = "home";
    const FIELDS: &'static [F] = stored_once! { F:
        /// Time at which the reading ended.
        time: Time = own(|row| Value::Time(row.time_ns)), show Show::Default;
        /// Name of the host.
        host: Text = own(|row| Value::nonempty(&row.host)), show Show::Default;
        /// Kernel release and machine architecture.
        kernel: Text = own(|row| Value::nonempty(row.kernel.as_bytes())), show Show::Default;
        /// Time since the host started.
        uptime_s: DurationS = own(|row| Value::number(row.uptime_s)), show Show::Default;
        /// Time between the two readings from which the rates are computed; null if there was only one reading.
        window_us: DurationUs = own(|row| Value::number((row.window_ns > 0).then_some(row.window_ns / 1000))),
            show Show::Default;
        /// The 20 busiest interfaces with their rates.
        interfaces: Objects(HomeScreen::INTERFACES) = own(|row| Value::List(&row.interfaces)), show Show::Default;
        /// Total number of interfaces.
        interfaces_total: Count = own(|row| Value::U64(row.interfaces_total)), show Show::Default;
        /// Number of sockets per protocol and state.
        sockets: Objects(HomeScreen::SOCKETS) = own(|row| Value::List(&row.sockets)), show Show::Default;
        /// The 20 fullest conntrack tables with their limits, one per network namespace; drop, early_drop and
        /// insert_failed are the increases during the window.
        conntrack: Objects(HomeScreen::CONNTRACK) = own(|row| Value::List(&row.conntrack)), show Show::Default;
        /// TCP segments sent during the window; null if unknown.
        segs_out: Count = own(|row| Value::number(row.segs_out)), kernel "TcpOutSegs", show Show::Default;
        /// TCP segments retransmitted during the window.
        retransmits: Count = own(|row| Value::number(row.retransmits)), kernel "TcpRetransSegs", show Show::Default;
        /// The 20 flows with the most traffic, with their owners.
        flows: Objects(HomeScreen::FLOWS) = own(|row| Value::List(&row.flows)), show Show::Default;
        /// Total number of flows.
        flows_total: Count = own(|row| Value::U64(row.flows_total)), show Show::Default;
        /// Packets dropped during the window: the 20 most frequent causes.
        drops: Objects(HomeScreen::DROPS) = own(|row| Value::List(&row.drops)), show Show::Default;
        /// Where `drops` come from: bpf (each dropped packet is counted) or counters (the kernel's drop counters, which
        /// do not cover every cause; used where BPF is not permitted).
        drops_via: Name(HomeScreen::DROPS_VIA) = own(|row| Value::Name(row.drops_via)), show Show::Default;
        /// The 20 most severe findings of `doctor` for the same window; `command` is the first remedy.
        findings: Objects(HomeScreen::FINDINGS) = own(|row| Value::List(&row.findings)), show Show::Default;
        /// Total number of findings.
        findings_total: Count = own(|row| Value::U64(row.findings_total)), show Show::Default;
        /// Parts of the host that could not be read, and why.
        unseen: Texts = own(|row| Value::List(&row.unseen)), show Show::Default;
    };
}
