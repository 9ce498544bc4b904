//! The record of an event of connection tracking: an entry is new, has changed, is gone.

/// What happened to an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NatHappening {
    /// It was made.
    New,
    /// It has changed: its state, its status, its mark.
    Update,
    /// It is gone.
    Destroy,
    /// It lives: told by a dump after events were lost.
    Live,
}

impl NatHappening {
    /// The words of the field `event`.
    pub const NAMES: &'static [&'static str] = &["new", "update", "destroy", "live"];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            NatHappening::New => "new",
            NatHappening::Update => "update",
            NatHappening::Destroy => "destroy",
            NatHappening::Live => "live",
        }
    }
}
