//! What a table command must know besides its plan: how the rows are read.

use crate::flags::request::Repeat;
use crate::session::Session;
use record::{Accounting, Expr, Field, Kind, LookupId, Lookups, Source, SourceError, Table};

/// Makes the source of a table, once a round.
pub(crate) trait SourceProvider<T: Table> {
    /// True if the source itself needs this lookup, beyond what the plan shows or filters by.
    fn needs_lookup(&self, id: LookupId) -> bool {
        let _ = id;
        false
    }

    /// False if no row of this round needs this lookup, which is then not read. Asked after the round was opened.
    fn can_use_lookup(&self, session: &Session, id: LookupId) -> bool {
        let _ = (session, id);
        true
    }

    /// True if the source itself checks that this lookup answers as in the round before, for each row that it reports
    /// as unchanged.
    fn compares(&self, id: LookupId) -> bool {
        let _ = id;
        false
    }

    /// True if the part of the filter that only the source knows tests a field of this kind.
    fn tests(&self, subject: Subject) -> bool {
        let _ = subject;
        false
    }

    /// Called before a round, and before what surrounds its rows is read. A table of what happens, and not of what is
    /// there, waits here until the round is over. Fails if nothing can be read.
    fn open_round(&self, session: &Session, repeat: Repeat) -> Result<RoundTime, SourceError> {
        let _ = (session, repeat);
        Ok(RoundTime::Moment)
    }

    /// Makes the source for one round and calls `then` with it. Adds to `stats` why something could not be read.
    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<T>) -> R,
    ) -> R;
}

/// The time that the rows of a round are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RoundTime {
    /// The moment of the round.
    Moment,
    /// The time since the round before; it is over.
    Interval,
    /// The same, and no round follows.
    LastInterval,
}

/// What a filter can ask for that may be in another network namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// An address, alone or with its port.
    Address,
    /// A container or a pod.
    Container,
}

impl Subject {
    /// True if one of the tests is about it.
    pub(super) fn is_in<T: Table>(self, conjuncts: &[Expr]) -> bool {
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
