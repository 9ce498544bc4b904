//! The switches of conntrack, and the data of a line in addition to its row.

use sinks::Clock;

/// The form of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A line of text.
    Text,
    /// An element.
    Xml,
    /// The command that creates the entry.
    Save,
}

/// The requested output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryOptions {
    /// The form of rows.
    pub form: Form,
    /// `-o extended`: the address family in front.
    pub layer3: bool,
    /// `-o id`
    pub id: bool,
    /// `-o ktimestamp`: when the entry began and ended.
    pub ktimestamp: bool,
    /// `-o timestamp`: when an event arrived.
    pub time: bool,
    /// Elements without a declaration and a root element.
    pub bare: bool,
    /// The old tool's known defects, and unescaped text from outside.
    pub bug_compatible: bool,
}

impl EntryOptions {
    /// Plain `conntrack -L`.
    pub const PLAIN: EntryOptions = EntryOptions {
        form: Form::Text,
        layer3: false,
        id: false,
        ktimestamp: false,
        time: false,
        bare: false,
        bug_compatible: false,
    };
}

/// The change of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It was created.
    New,
    /// Something in it changed.
    Update,
    /// It ended.
    Destroy,
    /// A message for which the tool has no word.
    Unknown,
}

/// The process that caused an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin<'o> {
    /// Port id of its netlink socket.
    pub portid: u32,
    /// Its name, if it could be found.
    pub program: Option<&'o [u8]>,
}

/// Returns the name of a label by its bit; `None` without a name.
pub type LabelNames<'l> = &'l dyn Fn(u16) -> Option<&'l [u8]>;

/// The data that the forms use in addition to the row.
pub(super) struct Layout<'l> {
    pub(super) options: EntryOptions,
    pub(super) clock: &'l dyn Clock,
    pub(super) labels: Option<LabelNames<'l>>,
}

impl Layout<'_> {
    /// Calls `each` with the name of every label that is set and has a name.
    pub(super) fn each_label<'l>(&self, names: LabelNames<'l>, labels: &[u8], mut each: impl FnMut(&'l [u8])) {
        for (byte, bits) in labels.iter().enumerate() {
            for bit in (0..8u16).filter(|bit| bits >> bit & 1 == 1) {
                let number = u16::try_from(byte * 8).unwrap_or(u16::MAX).saturating_add(bit);
                if let Some(name) = names(number) {
                    each(name);
                }
            }
        }
    }
}
