//! Changes of a host since it was recorded (`doctor --baseline`).

use crate::named_enum::named_enum;
use crate::table::fields;
use crate::{Field, Show, Table, Value};

named_enum! {
    /// The kind of thing that changed.
    pub enum ChangedThing {
        /// A finding of `doctor`.
        Finding => "finding",
        /// A kernel setting or limit.
        Setting => "setting",
        /// A socket that accepts connections or datagrams from any peer.
        Listener => "listener",
        /// The change of a counter per second.
        Rate => "rate",
    }
}

named_enum! {
    /// How it changed.
    pub enum BaselineVerb {
        /// It exists now but not in the recording.
        New => "new",
        /// It no longer exists.
        Gone => "gone",
        /// Its value differs.
        Changed => "changed",
        /// It is several times as high as in the recording.
        Higher => "higher",
    }
}

/// A difference between the host and the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineChange {
    /// Name of the network namespace; empty for the whole host.
    pub netns: String,
    /// The kind of thing.
    pub thing: ChangedThing,
    /// How it changed.
    pub verb: BaselineVerb,
    /// Its name.
    pub subject: String,
    /// Its value in the recording; empty if it did not exist then.
    pub before: String,
    /// Its value now; empty if it no longer exists.
    pub after: String,
    /// The ratio of the new to the old value, in thousandths; `None` if the old value was 0 or the thing is not a
    /// rate.
    pub times: Option<u64>,
    /// The meaning of the change, as a sentence.
    pub meaning: String,
}

/// The table of changes since a recording.
#[derive(Clone, Copy, Debug)]
pub enum BaselineChanges {}

type F = Field<BaselineChanges>;

impl Table for BaselineChanges {
    type Row<'b> = BaselineChange;
    const NAME: &'static str = "doctor --baseline";
    const FIELDS: &'static [F] = fields! { F:
        /// The kind of thing that changed.
        thing: Name(ChangedThing::NAMES) = own(|row| Value::Name(row.thing.name())), show Show::Default;
        /// new, gone, changed; higher: a rate that is at least three times as high.
        change: Name(BaselineVerb::NAMES) = own(|row| Value::Name(row.verb.name())), show Show::Default;
        /// Name of the network namespace; null for the whole host.
        netns: Text = own(|row| Value::nonempty(row.netns.as_bytes())), show Show::Wide;
        /// Its name: the finding and its object, the setting, the listener's protocol and address, the counter.
        subject: Text = own(|row| Value::Bytes(row.subject.as_bytes())), show Show::Default;
        /// What it was in the recording: the severity, the value, the process, the rate by the second; null if it was
        /// not there.
        before: Text = own(|row| Value::nonempty(row.before.as_bytes())), show Show::Default;
        /// What it is now; null if it is there no more.
        after: Text = own(|row| Value::nonempty(row.after.as_bytes())), show Show::Default;
        /// How many times as high a rate is; null if it was 0, and for all that is no rate.
        times: Thousandths = own(|row| row.times.map_or(Value::Null, Value::Thousandths)), show Show::Default;
        /// What it means: the finding's cause, the counter's sentence.
        meaning: Text = own(|row| Value::nonempty(row.meaning.as_bytes())), show Show::Default;
    };
}
