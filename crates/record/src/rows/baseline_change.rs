//! Changes of a host since it was recorded (`doctor --baseline`).

use crate::named_enum::named_enum;
use crate::table::stored_once;
use crate::{Field, Show, Table, Value};

named_enum! {
    /// Kind of change: finding, setting, listener or rate.
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
    const FIELDS: &'static [F] = stored_once! { F:
        /// Kind of change: finding, setting, listener or rate.
        thing: Name(ChangedThing::NAMES) = own(|row| Value::Name(row.thing.name())), show Show::Default;
        /// Change: new, gone, changed, or higher (a rate that is at least three times as high).
        change: Name(BaselineVerb::NAMES) = own(|row| Value::Name(row.verb.name())), show Show::Default;
        /// Name of the network namespace; null for the whole host.
        netns: Text = own(|row| Value::nonempty(row.netns.as_bytes())), show Show::Wide;
        /// What changed: the finding and its object, the setting, the listener's protocol and address, or the counter.
        subject: Text = own(|row| Value::Bytes(row.subject.as_bytes())), show Show::Default;
        /// Value in the recording: the severity, the setting's value, the process, or the rate per second; null if it
        /// did not exist.
        before: Text = own(|row| Value::nonempty(row.before.as_bytes())), show Show::Default;
        /// Value now; null if it no longer exists.
        after: Text = own(|row| Value::nonempty(row.after.as_bytes())), show Show::Default;
        /// Ratio of the rates after and before; null if the rate was 0, and for everything except rates.
        times: Thousandths = own(|row| row.times.map_or(Value::Null, Value::Thousandths)), show Show::Default;
        /// Meaning: the finding's cause, or the counter's description.
        meaning: Text = own(|row| Value::nonempty(row.meaning.as_bytes())), show Show::Default;
    };
}
