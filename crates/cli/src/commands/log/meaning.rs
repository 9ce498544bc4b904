//! Adds rules, owners and conntrack entries to records. Reads only what the columns and the filter require.

use super::entries::Entries;
use super::rules::Rules;
use lookups::owners::readings::SessionReadings;
use lookups::session::Session;
use nflog::Preview;
use owners::SocketOwners;
use record::rows::{LogRecords, log_need};
use record::{Annotate, Demand, Stream, annotated};
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

    /// The records of `stream` with owners, rules and entries.
    pub(super) fn over<'r>(&'r self, stream: &'r mut dyn Stream<LogRecords>) -> Box<dyn Stream<LogRecords> + 'r> {
        let mut annotators: Vec<Box<dyn Annotate<LogRecords> + 'r>> = Vec::new();
        if self.owners {
            annotators.push(Box::new(SocketOwners::new(SessionReadings::new(self.session))));
        }
        annotators.extend(self.rules.as_ref().map(|rules| Box::new(rules) as Box<dyn Annotate<_>>));
        annotators.extend(self.entries.as_ref().map(|entries| Box::new(entries) as Box<dyn Annotate<_>>));
        annotated(stream, annotators)
    }
}
