//! Findings of `doctor`: one row per problem of a host.

use crate::named_enum::named_enum;
use crate::table::stored_once;
use crate::{Field, Key, Kind, LookupId, Member, Object, Show, Table, Value};

named_enum! {
    /// The severity of a finding, most severe first.
    pub enum Severity {
        /// Packets or connections are being lost.
        Critical => "critical",
        /// Something is slower than it should be, or losses are imminent.
        Warning => "warning",
        /// It deserves attention.
        Hint => "hint",
    }
}

named_enum! {
    /// The confidence in a finding.
    pub enum Confidence {
        /// A counter or a state of the kernel proves it.
        Certain => "certain",
        /// It follows from two facts together.
        Likely => "likely",
        /// Other explanations are possible.
        Hint => "hint",
    }
}

/// A problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Inode of the network namespace; `None` for the whole host.
    pub netns_id: Option<u64>,
    /// The check that found it: `listen-overflow`.
    pub id: &'static str,
    /// The affected part of the network: `tcp`.
    pub area: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The confidence in it.
    pub confidence: Confidence,
    /// The affected socket, interface or table.
    pub object: String,
    /// The cause, as a sentence.
    pub title: String,
    /// The numbers that prove it.
    pub evidence: Vec<Evidence>,
    /// Its present cost, as a sentence.
    pub cost: String,
    /// Packets or connections lost in the window; `None` if nothing is lost.
    pub lost: Option<u64>,
    /// When it began, in ns since 1970; `None` if it began before the window.
    pub since_ns: Option<u64>,
    /// The window in nanoseconds.
    pub window_ns: u64,
    /// Remedies, best first.
    pub remedy: Vec<Remedy>,
    /// The check whose finding explains this one; `None` for a cause.
    pub explained_by: Option<&'static str>,
}

/// A number that proves a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Name of the counter, setting or state, including its object.
    pub counter: String,
    /// Its value at the beginning of the window; `None` for a state that was read once.
    pub before: Option<i64>,
    /// Its value at the end.
    pub after: i64,
    /// The value that it is compared with.
    pub limit: Option<i64>,
}

/// A command that would fix the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The command; empty if no command can be given.
    pub command: String,
    /// Its effect.
    pub effect: String,
    /// Its risk; empty if it has no risk.
    pub risk: String,
    /// Where it must be run; empty if it works in the namespace of the finding.
    pub place: &'static str,
}

impl Object for Evidence {
    fn for_each(&self, each: &mut dyn FnMut(&'static str, Value<'_>)) {
        each("counter", Value::Bytes(self.counter.as_bytes()));
        each("before", self.before.map_or(Value::Null, signed));
        each("after", signed(self.after));
        each("limit", self.limit.map_or(Value::Null, signed));
    }
}

impl Object for Remedy {
    fn for_each(&self, each: &mut dyn FnMut(&'static str, Value<'_>)) {
        each("command", Value::nonempty(self.command.as_bytes()));
        each("effect", Value::nonempty(self.effect.as_bytes()));
        each("risk", Value::nonempty(self.risk.as_bytes()));
        each("place", Value::nonempty(self.place.as_bytes()));
    }
}

fn signed(n: i64) -> Value<'static> {
    u64::try_from(n).map_or(Value::I64(n), Value::U64)
}

const OF_EVIDENCE: &[Member] = &[
    Member { name: "counter", kind: Kind::Text },
    Member { name: "before", kind: Kind::Count },
    Member { name: "after", kind: Kind::Count },
    Member { name: "limit", kind: Kind::Count },
];

const OF_REMEDY: &[Member] = &[
    Member { name: "command", kind: Kind::Text },
    Member { name: "effect", kind: Kind::Text },
    Member { name: "risk", kind: Kind::Text },
    Member { name: "place", kind: Kind::Text },
];

/// The table of findings (`doctor`).
#[derive(Clone, Copy, Debug)]
pub enum Findings {}

type F = Field<Findings>;

impl Table for Findings {
    type Row<'b> = Finding;
    const NAME: &'static str = "doctor";
    const FIELDS: &'static [F] = stored_once! { F:
        /// Severity: critical (packets or connections are being lost), warning or hint.
        severity: Name(Severity::NAMES) = own(|row| Value::Name(row.severity.name())), show Show::Default;
        /// ID of the check that reports the finding.
        id: Text = own(|row| Value::Bytes(row.id.as_bytes())), show Show::Default;
        /// Area of the network that the finding concerns.
        area: Text = own(|row| Value::Bytes(row.area.as_bytes())), show Show::Wide;
        /// Name of the network namespace, or its inode number if it is unnamed; null for the whole host.
        netns: Text = joined(LookupId::Netns, |row| row.netns_id.map_or(Key::None, Key::Id)), show Show::Wide;
        /// Inode of the network namespace; null for the whole host.
        netns_id: Id = own(|row| Value::number(row.netns_id));
        /// Socket, interface or table that the finding concerns.
        object: Text = own(|row| Value::nonempty(row.object.as_bytes())), show Show::Wide;
        /// Cause, in one sentence.
        title: Text = own(|row| Value::Bytes(row.title.as_bytes())), show Show::Default;
        /// Current cost of the problem.
        cost: Text = own(|row| Value::nonempty(row.cost.as_bytes())), show Show::Default;
        /// Packets or connections lost during the window; null if nothing was lost.
        lost: Count = own(|row| Value::number(row.lost)), show Show::Wide;
        /// Evidence: each counter with its value before and after, and the limit that it is compared with.
        evidence: Objects(OF_EVIDENCE) = own(|row| Value::List(&row.evidence)), show Show::Wide;
        /// Remedies: command, effect and risk, and the place where the command must be run if it is not the namespace
        /// of the finding.
        remedy: Objects(OF_REMEDY) = own(|row| Value::List(&row.remedy)), show Show::Wide;
        /// Confidence: certain (the kernel reports it), likely (concluded from two facts) or hint (other explanations
        /// are possible).
        confidence: Name(Confidence::NAMES) = own(|row| Value::Name(row.confidence.name())), show Show::Default;
        /// ID of the finding that explains this one: its cause; null for a cause.
        explained_by: Text = own(|row| Value::nonempty(row.explained_by.unwrap_or_default().as_bytes())),
            show Show::Wide;
        /// Time at which the problem began; null if it began before the window.
        since: Time = own(|row| row.since_ns.map_or(Value::Null, Value::Time)), show Show::Wide;
        /// Length of the window.
        window_us: DurationUs = own(|row| Value::U64(row.window_ns / 1000)), show Show::Wide;
    };
}
