//! Describes how a table command reads its rows.

use crate::request::Repeat;
use lookups::session::Session;
use record::{Accounting, Expr, Field, Kind, LookupId, Lookups, Source, SourceError, Table};

/// Makes the source of a table, once per round.
pub trait SourceProvider<T: Table> {
    /// True if the source itself needs this lookup, beyond what the plan shows or filters by.
    fn needs_lookup(&self, id: LookupId) -> bool {
        let _ = id;
        false
    }

    /// False if no row of this round needs this lookup, which is then not read. Called after the round's interval.
    fn can_use_lookup(&self, session: &Session, id: LookupId) -> bool {
        let _ = (session, id);
        true
    }

    /// True if the source itself checks, for each row that it reports as unchanged, that this lookup has the same
    /// value as in the previous round.
    fn compares(&self, id: LookupId) -> bool {
        let _ = id;
        false
    }

    /// True if the part of the filter that only the source knows tests a field of this kind.
    fn tests(&self, subject: Subject) -> bool {
        let _ = subject;
        false
    }

    /// The intervals that rows are about; `None` for a table of state, which can be read again at any time.
    fn intervals(&self) -> Option<&dyn Intervals> {
        None
    }

    /// Makes the source for one round and calls `then` with it. Adds the reasons for missing data to `stats`.
    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<T>) -> R,
    ) -> R;
}

/// The intervals of a table whose rows are about a time: events rather than state. Each interval is over once and
/// cannot be read again.
pub trait Intervals {
    /// Called before a round and its lookups: waits until the interval is over. Fails if nothing can be read.
    fn wait(&self, session: &Session, repeat: Repeat) -> Result<RoundTime, SourceError>;
}

/// The time to which the rows of a round refer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoundTime {
    /// The moment of the reading.
    Moment,
    /// The time since the previous round, which has passed.
    Interval,
    /// Like [`RoundTime::Interval`], and no round follows.
    LastInterval,
}

impl RoundTime {
    /// The time of an interval; true if no other one follows.
    pub fn of_interval(is_last: bool) -> RoundTime {
        if is_last { RoundTime::LastInterval } else { RoundTime::Interval }
    }
}

/// A filter subject that may be found in another network namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// An address, with or without a port.
    Address,
    /// A container or a pod.
    Container,
}

impl Subject {
    /// True if one of the tests is about this subject.
    pub fn is_in<T: Table>(self, conjuncts: &[Expr]) -> bool {
        let is_it = |field: &Field<T>| match self {
            Subject::Address => matches!(field.kind, Kind::Addr | Kind::Endpoint),
            Subject::Container => field.needs_lookup(LookupId::Containers) || field.needs_lookup(LookupId::Pods),
        };
        let mut found = false;
        for part in conjuncts {
            part.for_each_test(&mut |test| found |= T::FIELDS.get(test.field).is_some_and(is_it));
        }
        found
    }
}
