//! What may stand between rows and outputs: it decides of which rows messages are made.

use export::Rate;
use record::{Column, Columns, Kind, Table, Value};
use std::time::Duration;

/// What is asked for of rows that come too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct RepeatRequest {
    /// `--fold`
    pub(crate) fold: Option<Duration>,
    /// `--rate`, `--rate-by`
    pub(crate) rate: Option<(Rate, RateBy)>,
}

/// What a rate is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum RateBy {
    /// Group and prefix of the rule; of NAT events all of one kind.
    #[default]
    Rule,
    /// Source address.
    Src,
    /// Destination address.
    Dst,
}

impl RateBy {
    /// The words that are parsed.
    pub(crate) const WORDS: [&'static str; 4] = ["rule", "prefix", "src", "dst"];

    /// The one with this word.
    pub(crate) fn of(word: &str) -> RateBy {
        match word {
            "src" => RateBy::Src,
            "dst" => RateBy::Dst,
            _ => RateBy::Rule,
        }
    }
}

/// What becomes of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// A message is made of it.
    Ship,
    /// It will stand for others, unless the output has no words for that: then it is a message of its own, now.
    StandsForFolded,
    /// Another one stands for it; the same exception.
    Folded,
    /// It will say how many after it were above the rate.
    StandsForLimited,
    /// It is above the rate.
    Limited,
}

/// What a row says of others, beside itself.
pub(crate) struct Notice {
    /// True if only outputs that have words for it get the row.
    pub(crate) is_fold: bool,
    /// The cells of [`columns`].
    pub(crate) cells: [Value<'static>; 3],
    /// The end of a text for people.
    pub(crate) words: Vec<u8>,
}

/// The columns that rows which stand for others have behind their own.
pub(crate) fn columns(columns: &Columns) -> Columns {
    let own = [("folded", Kind::Count), ("folded_since", Kind::Time), ("limited", Kind::Count)];
    let own = own.map(|(name, kind)| Column { name: name.into(), kind });
    Columns(columns.0.iter().cloned().chain(own).collect())
}

/// Decides of each row, and says what was held back.
pub(crate) trait RowGate<T: Table> {
    /// What becomes of the row. Allocates only for rows that are kept.
    fn fate(&mut self, row: &T::Row<'_>) -> Fate;

    /// Hands out the rows that stand for others whose time has come; with `is_end` all of them.
    fn take_due(&mut self, is_end: bool, each: &mut dyn FnMut(&T::Row<'_>, &Notice));

    /// Rows that were not folded because there were too many different ones.
    fn unfolded(&self) -> u64;
}
