//! Decides which rows become messages, between the stream and the outputs.

use export::Rate;
use record::{Column, Columns, Kind, Table, Value};
use std::time::Duration;

/// Limits for rows that arrive too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RepeatRequest {
    /// `--fold`
    pub fold: Option<Duration>,
    /// `--rate`, `--rate-by`
    pub rate: Option<(Rate, RateBy)>,
}

/// The key of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RateBy {
    /// Group and prefix of the rule; for NAT events, the kind of event.
    #[default]
    Rule,
    /// Source address.
    Src,
    /// Destination address.
    Dst,
}

impl RateBy {
    /// The words accepted on the command line.
    pub const WORDS: [&'static str; 4] = ["rule", "prefix", "src", "dst"];

    /// The key for a word.
    pub fn of(word: &str) -> RateBy {
        match word {
            "src" => RateBy::Src,
            "dst" => RateBy::Dst,
            _ => RateBy::Rule,
        }
    }
}

/// The decision about a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The row becomes a message.
    Ship,
    /// The row is kept and will stand for equal rows. If the output's format cannot express that, it becomes a message
    /// now.
    StandsForFolded,
    /// Another row stands for it. If the output's format cannot express that, it becomes a message now.
    Folded,
    /// The row is kept and will report how many later rows exceeded the rate.
    StandsForLimited,
    /// The row exceeds the rate.
    Limited,
}

/// Additional information for a row that stands for others.
pub struct Notice {
    /// True if the row is only for outputs whose format can express folding.
    pub is_fold: bool,
    /// The cells of [`columns`].
    pub cells: [Value<'static>; 3],
    /// The end of a human-readable text.
    pub words: Vec<u8>,
}

/// Adds the columns of rows that stand for others.
pub(crate) fn columns(columns: &Columns) -> Columns {
    let own = [("folded", Kind::Count), ("folded_since", Kind::Time), ("limited", Kind::Count)];
    let own = own.map(|(name, kind)| Column { name: name.into(), kind });
    Columns(columns.0.iter().cloned().chain(own).collect())
}

/// Decides the fate of each row, and reports the rows held back.
pub trait RowGate<T: Table> {
    /// The fate of a row. Allocates only for rows that are kept.
    fn fate(&mut self, row: &T::Row<'_>) -> Fate;

    /// Hands out the due rows that stand for others; with `is_end` all of them.
    fn take_due(&mut self, is_end: bool, each: &mut dyn FnMut(&T::Row<'_>, &Notice));

    /// Number of rows that were not folded because there were too many different ones.
    fn unfolded(&self) -> u64;
}
