//! Words that could stand at the cursor.

/// What can stand at the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Proposals {
    /// Files: the shell knows them.
    Files,
    /// These words, and behind each a blank.
    Words(Vec<Proposal>),
    /// These words, which may go on: the shell puts no blank behind.
    Parts(Vec<Proposal>),
}

impl Proposals {
    /// Nothing that is known.
    pub(super) const NONE: Proposals = Proposals::Words(Vec::new());
}

/// A word that could stand there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proposal {
    /// The whole word.
    pub(super) word: String,
    /// A few words on it.
    pub(super) about: String,
}

impl Proposal {
    /// A word and a few words on it.
    pub(super) fn new(word: impl Into<String>, about: impl Into<String>) -> Proposal {
        Proposal { word: word.into(), about: about.into() }
    }

    /// A word that says it itself.
    pub(super) fn named(word: impl Into<String>) -> Proposal {
        Proposal::new(word, "")
    }

    /// The same behind what is written already.
    pub(super) fn behind(self, written: &str) -> Proposal {
        Proposal { word: format!("{written}{}", self.word), ..self }
    }
}
