//! Adds rules, owners and conntrack entries to records. Reads only what the columns and the filter require.

use super::entries::{Entries, EntryRecords};
use super::rules::{RuledRecords, Rules};
use crate::commands::nat::owner_readings::SessionReadings;
use lookups::session::Session;
use nflog::Preview;
use owners::SocketOwners;
use record::rows::{LogRecords, log_need};
use record::{Annotated, Demand, Stream};
use std::time::Duration;

/// The readings in addition to records.
pub(super) struct Meaning<'s> {
    session: &'s Session,
    rules: Option<Rules<'s>>,
    entries: Option<Entries<'s>>,
    owners: bool,
}

impl<'s> Meaning<'s> {
    /// Reads the data required by `demand`. Must be called before groups are bound, so that no change of rules is
    /// missed.
    pub(super) fn open(session: &'s Session, demand: &Demand<LogRecords>, latency: Duration) -> Meaning<'s> {
        Meaning {
            session,
            rules: Rules::open(session, demand, latency),
            entries: Entries::open(session, demand),
            owners: demand.need & log_need::OWNERS != 0,
        }
    }

    /// Reads changed data again. Must be called several times per second.
    pub(super) fn refresh(&self) {
        if self.session.take_found() {
            self.rules.iter().for_each(Rules::find_namespaces);
            self.entries.iter().for_each(|entries| entries.find_namespaces(self.session));
        }
        self.rules.iter().for_each(Rules::refresh);
    }

    /// True if entries are requested and the kernel sends them with records.
    pub(super) fn entries_are_sent(&self) -> bool {
        self.entries.as_ref().is_some_and(Entries::are_sent)
    }

    /// The object that must see the records of a batch before they are handed out.
    pub(super) fn preview(&self) -> Option<&dyn Preview> {
        self.entries.as_ref().map(|entries| entries as &dyn Preview)
    }

    /// Calls `then` with `stream`, whose rows get owners, rules and entries.
    pub(super) fn over<R>(
        &self,
        stream: &mut dyn Stream<LogRecords>,
        then: impl FnOnce(&mut dyn Stream<LogRecords>) -> R,
    ) -> R {
        let (mut owned, mut ruled, mut with_entries);
        let stream: &mut dyn Stream<LogRecords> = if self.owners {
            owned = Annotated::new(stream, SocketOwners::new(SessionReadings::new(self.session)));
            &mut owned
        } else {
            stream
        };
        let stream: &mut dyn Stream<LogRecords> = match &self.rules {
            Some(rules) => {
                ruled = RuledRecords::new(stream, rules);
                &mut ruled
            }
            None => stream,
        };
        match &self.entries {
            Some(entries) => {
                with_entries = EntryRecords::new(stream, entries);
                then(&mut with_entries)
            }
            None => then(stream),
        }
    }
}
