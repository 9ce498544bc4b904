//! Counts the rows that lack something, by reason.

use crate::Accounting;
use std::cell::Cell;
use std::marker::PhantomData;

/// Maximum number of reasons of one kind.
const REASONS_MAX: usize = 8;

/// A reason why rows lack something, and the sentence that reports it: lower case, no full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing could be found, and nothing was lost: the result is complete.
    Note(&'static str),
    /// The result is incomplete: exit code 3.
    Incomplete(&'static str),
}

/// The reasons of one kind; [`reasons!`](crate::reasons) declares them.
pub trait Reasons: Copy {
    /// All reasons, in the order in which they are reported.
    const ALL: &'static [Reason];

    /// The reason's place in [`Reasons::ALL`].
    fn index(self) -> usize;
}

/// Declares an enum of reasons, each with its sentence.
///
/// ```
/// record::reasons! {
///     /// The reason why a record has no rule.
///     enum NoRule {
///         Unknown = Note("records that match no rule listed by nft"),
///         Late = Incomplete("records without their rule: rules changed too often to list them each time"),
///     }
/// }
/// ```
#[macro_export]
macro_rules! reasons {
    ($(#[$about:meta])* $vis:vis enum $name:ident { $($reason:ident = $kind:ident($sentence:expr),)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($reason,)+ }

        impl $crate::Reasons for $name {
            const ALL: &'static [$crate::Reason] = &[$($crate::Reason::$kind($sentence),)+];

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

/// The number of rows that lack something, for each reason.
#[derive(Debug)]
pub struct Misses<R> {
    counts: [Cell<u64>; REASONS_MAX],
    reasons: PhantomData<R>,
}

impl<R> Default for Misses<R> {
    fn default() -> Misses<R> {
        Misses { counts: [const { Cell::new(0) }; REASONS_MAX], reasons: PhantomData }
    }
}

impl<R: Reasons> Misses<R> {
    const FITS: () = assert!(R::ALL.len() <= REASONS_MAX, "too many reasons of one kind");

    /// Adds `count` rows that lack something for this reason. Does not allocate.
    pub fn add(&self, reason: R, count: u64) {
        let () = Self::FITS;
        if let Some(sum) = self.counts.get(reason.index()) {
            sum.set(sum.get().saturating_add(count));
        }
    }

    /// Adds each reason that has a count to `stats`, and starts to count from 0 again.
    pub fn report(&self, stats: &mut Accounting) {
        for (reason, count) in R::ALL.iter().zip(&self.counts) {
            match (count.take(), *reason) {
                (0, _) => {}
                (count, Reason::Note(sentence)) => stats.add_reason(count, sentence),
                (count, Reason::Incomplete(sentence)) => stats.incomplete(count, sentence),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    reasons! {
        /// The reason why something has no name.
        enum NoName {
            Unknown = Note("rows without a name"),
            Late = Incomplete("rows whose name came too late"),
        }
    }

    #[test]
    fn each_reason_is_reported_once_in_its_order() {
        let misses = Misses::default();
        let report = || {
            let mut stats = Accounting::default();
            misses.report(&mut stats);
            (stats.incomplete, stats.why.iter().map(|why| (why.count, why.text.to_string())).collect::<Vec<_>>())
        };
        assert_eq!(report(), (false, Vec::new()));
        misses.add(NoName::Unknown, 2);
        assert_eq!(report(), (false, vec![(2, "rows without a name".to_owned())]));
        for reason in [NoName::Late, NoName::Unknown, NoName::Late] {
            misses.add(reason, 1);
        }
        let both = [(1, "rows without a name".to_owned()), (2, "rows whose name came too late".to_owned())];
        assert_eq!(report(), (true, both.to_vec()), "the first report is not repeated");
        assert_eq!(report(), (false, Vec::new()));
    }
}
