//! Reads tables of sockets: each through its backend, and through the next one if that fails.
pub(crate) mod bpf;
pub(crate) mod fault;
pub(crate) mod handed_out;
pub(crate) mod netlink;
pub(crate) mod plan;
pub(crate) mod proc;
pub(crate) mod proc_file;
pub(crate) mod row_keys;
pub(crate) mod rows;
mod unix;
pub(crate) mod window;

use std::cell::RefCell;
use std::error::Error;

use record::rows::Sockets;
use record::{Accounting, Each, Proto, RowCache, RowStats, SourceError, SourceFault};

use self::bpf::IN_SMALL_TABLES;
use crate::backends::fault::UnrecordedTable;
use crate::backends::handed_out::HandedOut;
use crate::backends::plan::{PlannedTable, ReadPlan};
use crate::backends::proc::unix_lines::UnixCounts;
use crate::choose::Via;
use crate::keys::{self, Table};
use crate::pushdown::TableFilter;

/// Reads the tables of a plan once.
pub(crate) struct TableReader<'s, 'e, 'f> {
    plan: &'s ReadPlan<'s>,
    /// The rows that a walk has handed out.
    handed_out: &'e RefCell<HandedOut>,
    each: &'e mut Each<'f, Sockets>,
    /// Recognises rows of the previous round by their bytes.
    cache: Option<&'e dyn RowCache>,
    stats: RowStats,
    /// True if a message should report that the kernel lacks the current table.
    reports_absence: bool,
    /// `need` bits that the backend of the current table lacks.
    lacks: u64,
    /// Data from /proc/net/unix for the table that netlink reads.
    unix: Option<UnixCounts>,
    /// True while netlink reads the small tables that a walk leaves out.
    listeners: bool,
    /// True once the consumer wants no more rows.
    stopped: bool,
    /// The error of the first table without any result.
    failure: Option<SourceError>,
}

impl<'s, 'e, 'f> TableReader<'s, 'e, 'f> {
    pub(crate) fn new(
        plan: &'s ReadPlan<'s>,
        cache: Option<&'e dyn RowCache>,
        each: &'e mut Each<'f, Sockets>,
        stats: RowStats,
        handed_out: &'e RefCell<HandedOut>,
    ) -> TableReader<'s, 'e, 'f> {
        TableReader {
            plan,
            handed_out,
            each,
            cache,
            stats,
            reports_absence: true,
            lacks: 0,
            unix: None,
            listeners: false,
            stopped: false,
            failure: None,
        }
    }

    /// Reads the tables one after the other, until the consumer wants no more rows. Fails if no table could be read.
    pub(crate) fn read(mut self) -> Result<Accounting, SourceError> {
        for table in &self.plan.tables {
            (self.reports_absence, self.lacks) = (table.reports_absence, table.choice.lacks);
            self.table(table);
            if self.stopped {
                break;
            }
        }
        self.finish()
    }

    fn table(&mut self, planned: &PlannedTable) {
        let filter = &planned.filter;
        if filter.proto == Proto::Tcp && filter.states & !IN_SMALL_TABLES != 0 {
            self.plan.cache.first_backend().set(Some(planned.choice.via));
            self.plan.cache.pass_over(planned.choice.no_walk);
        }
        if planned.choice.via == Via::Bpf {
            return self.by_walk(filter);
        }
        self.by_files_or_dumps(planned.choice.via, filter);
    }

    fn by_files_or_dumps(&mut self, via: Via, filter: &TableFilter) {
        if via == Via::Netlink && filter.proto == Proto::Tcp && self.dump_both_families(filter) {
            return;
        }
        for table in keys::tables_of(filter.proto).iter().copied() {
            if self.stopped || !filter.families.contains(table.family()) {
                continue;
            }
            match via {
                Via::Netlink | Via::Bpf => self.by_netlink(table, filter),
                Via::Proc => {
                    if let Err(error) = self.by_proc(table, filter) {
                        self.proc_failed(table, error);
                    }
                }
            }
        }
    }

    fn fail(&mut self, table: Table, fault: SourceFault, cause: Box<dyn Error + Send + Sync>) {
        self.stats.incomplete(0, cause.to_string());
        self.failure.get_or_insert(SourceError { what: table.description(), fault, cause });
    }

    // Records that the recorded run did not request this table.
    fn not_recorded(&mut self, table: Table) {
        let cause = UnrecordedTable(table.description());
        self.stats.add_unanswered(cause.to_string());
        let fault = SourceFault::Unsupported;
        self.failure.get_or_insert(SourceError { what: table.description(), fault, cause: Box::new(cause) });
    }

    fn finish(self) -> Result<Accounting, SourceError> {
        match self.failure {
            Some(error) if !self.stats.has_read() && self.stats.rows() == 0 => Err(error),
            _ => Ok(self.stats.close()),
        }
    }
}
