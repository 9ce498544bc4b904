//! The annotators of log records: processes, rules and conntrack entries, as far as columns and filter require them.

use crate::owners::readings::SessionReadings;
use crate::packet_entries::RecordEntries;
use crate::rules::LoggingRules;
use crate::session::Session;
use owners::SocketOwners;
use record::rows::{LogRecords, log_need};
use record::{Annotate, Demand, Stream, annotated};
use std::time::Duration;

/// The readings in addition to records.
pub struct RecordAnnotators<'s> {
    session: &'s Session,
    rules: Option<LoggingRules<'s>>,
    /// The conntrack entries. They must see the records of a batch before they are handed out.
    pub entries: Option<RecordEntries<'s>>,
    needs_owners: bool,
}

impl<'s> RecordAnnotators<'s> {
    /// Reads the data required by `demand`. Must be called before groups are bound, so that no change of rules is
    /// missed.
    pub fn open(session: &'s Session, demand: &Demand<LogRecords>, latency: Duration) -> RecordAnnotators<'s> {
        RecordAnnotators {
            session,
            rules: LoggingRules::open(session, demand, latency),
            entries: RecordEntries::open(session, demand),
            needs_owners: demand.need & log_need::OWNERS != 0,
        }
    }

    /// Reads changed data again. Must be called several times per second.
    pub fn refresh(&self) {
        if self.session.found().take_found() {
            self.rules.iter().for_each(LoggingRules::update_namespaces);
            self.entries.iter().for_each(|entries| entries.update_namespaces(self.session));
        }
        self.rules.iter().for_each(LoggingRules::refresh);
    }

    /// The records of `stream` with owners, rules and entries.
    pub fn annotate<'r>(&'r self, stream: &'r mut dyn Stream<LogRecords>) -> Box<dyn Stream<LogRecords> + 'r> {
        let owners = self.needs_owners.then(|| SocketOwners::new(SessionReadings::new(self.session)));
        let annotators: [Option<Box<dyn Annotate<LogRecords> + 'r>>; 3] = [
            owners.map(|owners| Box::new(owners) as _),
            self.rules.as_ref().map(|rules| Box::new(rules) as _),
            self.entries.as_ref().map(|entries| Box::new(entries) as _),
        ];
        annotated(stream, annotators.into_iter().flatten())
    }
}
