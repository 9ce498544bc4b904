//! Findings of `doctor`: one row per problem of a host.

use crate::named_enum::named_enum;
use crate::table::fields;
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
];

/// The table of findings (`doctor`).
#[derive(Clone, Copy, Debug)]
pub enum Findings {}

type F = Field<Findings>;

impl Table for Findings {
    type Row<'b> = Finding;
    const NAME: &'static str = "doctor";
    const FIELDS: &'static [F] = fields! { F:
        /// How much it harms. critical: packets or connections are lost now.
        severity: Name(Severity::NAMES) = own(|row| Value::Name(row.severity.name())), show Show::Default;
        /// The check that found it.
        id: Text = own(|row| Value::Bytes(row.id.as_bytes())), show Show::Default;
        /// The part of the network that it is about.
        area: Text = own(|row| Value::Bytes(row.area.as_bytes())), show Show::Wide;
        /// Name of the network namespace; its number where it has none; null for the whole host.
        netns: Text = joined(LookupId::Netns, |row| row.netns_id.map_or(Key::None, Key::Id)), show Show::Wide;
        /// Inode of the network namespace; null for the whole host.
        netns_id: Id = own(|row| Value::number(row.netns_id));
        /// The socket, interface or table that it is about.
        object: Text = own(|row| Value::nonempty(row.object.as_bytes())), show Show::Wide;
        /// The cause in a sentence.
        title: Text = own(|row| Value::Bytes(row.title.as_bytes())), show Show::Default;
        /// What it costs now.
        cost: Text = own(|row| Value::nonempty(row.cost.as_bytes())), show Show::Default;
        /// Packets or connections lost in the window; null if nothing is lost.
        lost: Count = own(|row| Value::number(row.lost)), show Show::Wide;
        /// The numbers that prove it: the counter, its value before and after, what it is compared with.
        evidence: Objects(OF_EVIDENCE) = own(|row| Value::List(&row.evidence)), show Show::Wide;
        /// What would mend it: the command, what it does, what may go wrong.
        remedy: Objects(OF_REMEDY) = own(|row| Value::List(&row.remedy)), show Show::Wide;
        /// certain: the kernel says it; likely: concluded from two facts; hint: there are other explanations.
        confidence: Name(Confidence::NAMES) = own(|row| Value::Name(row.confidence.name())), show Show::Default;
        /// When it began; null if it began before the window.
        since: Time = own(|row| row.since_ns.map_or(Value::Null, Value::Time)), show Show::Wide;
        /// The time that was watched.
        window_us: DurationUs = own(|row| Value::U64(row.window_ns / 1000)), show Show::Wide;
    };
}
