//! What the switches of conntrack ask for, and what a line shows beside its row.

use super::clock::Clock;

/// What a row becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A line of text.
    Text,
    /// An element.
    Xml,
    /// The command that makes the entry.
    Save,
}

/// What is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryOptions {
    /// In which form.
    pub form: Form,
    /// `-o extended`: the address family in front.
    pub layer3: bool,
    /// `-o id`
    pub id: bool,
    /// `-o ktimestamp`: when the entry began and ended.
    pub ktimestamp: bool,
    /// `-o timestamp`: when an event came.
    pub time: bool,
    /// Elements stand alone, without declaration and root.
    pub bare: bool,
    /// The old tool's known defects, and outside text as it is.
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

/// What happened to an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It was made.
    New,
    /// Something in it changed.
    Update,
    /// It ended.
    Destroy,
    /// A message that the tool has no word for.
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

/// Name of a label by its bit; `None` where there is none.
pub type LabelNames<'l> = &'l dyn Fn(u16) -> Option<&'l [u8]>;

/// What the forms look at beside the row.
pub(super) struct Layout<'l> {
    pub(super) options: EntryOptions,
    pub(super) clock: &'l dyn Clock,
    pub(super) labels: Option<LabelNames<'l>>,
}

impl Layout<'_> {
    /// Calls `each` with the name of every label that is set and has one.
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
