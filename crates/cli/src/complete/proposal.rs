//! Proposals for the word at the cursor.

/// The proposals of one completion.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Proposals {
    /// File names, which the shell completes.
    Files,
    /// Complete words; the shell appends a blank.
    Words(Vec<Proposal>),
    /// Words that may continue; the shell appends no blank.
    Parts(Vec<Proposal>),
}

impl Proposals {
    /// An empty list.
    pub(super) const NONE: Proposals = Proposals::Words(Vec::new());
}

/// A proposed word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proposal {
    /// The whole word.
    pub(super) word: String,
    /// A short description.
    pub(super) about: String,
}

impl Proposal {
    /// A word with a description.
    pub(super) fn new(word: impl Into<String>, about: impl Into<String>) -> Proposal {
        Proposal { word: word.into(), about: about.into() }
    }

    /// A word without a description.
    pub(super) fn named(word: impl Into<String>) -> Proposal {
        Proposal::new(word, "")
    }

    /// The proposal with `written` in front.
    pub(super) fn behind(self, written: &str) -> Proposal {
        Proposal { word: format!("{written}{}", self.word), ..self }
    }
}
