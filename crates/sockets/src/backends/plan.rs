//! The plan of a read, as decided by the source.
use sys::{Host, NetNs};

use crate::backends::bpf::cache::BackendCache;
use crate::choose::{Choice, Via};
use crate::expected::{self, WORTH_ITERATING, WORTH_LOADING_ITERATOR};
use crate::keys::{self, Table};
use crate::options::Options;
use crate::pushdown::TableFilter;

/// One table of a plan.
#[derive(Debug)]
pub(crate) struct PlannedTable {
    pub(crate) choice: Choice,
    pub(crate) filter: TableFilter,
    /// True if a message should report that the kernel lacks this table.
    pub(crate) reports_absence: bool,
}

/// The tables to read, their place, and the demanded parts of each socket.
#[derive(Debug)]
pub(crate) struct ReadPlan<'s> {
    pub(crate) host: &'s Host,
    pub(crate) options: &'s Options,
    /// The namespace to enter; `None` to read the calling thread's.
    pub(crate) netns: Option<&'s NetNs>,
    pub(crate) cache: &'s BackendCache,
    pub(crate) tables: Vec<PlannedTable>,
    /// `need` bits of the demand.
    pub(crate) need: u64,
    /// True if the tables will be read repeatedly.
    pub(crate) repeated: bool,
    /// The parts of a row that a walk copies.
    pub(crate) parts: u32,
}

impl ReadPlan<'_> {
    /// Name of a table's stream in a recording.
    pub(crate) fn key(&self, table: Table, via: Via) -> String {
        keys::key(table, via, self.options.netns_id)
    }

    /// True if loading the kernel's iterator pays off while the walk is unavailable. Reads a file or two.
    pub(crate) fn iterator_pays(&self) -> bool {
        let measured = if self.repeated { WORTH_ITERATING } else { WORTH_LOADING_ITERATOR };
        let least = self.options.walk_from.unwrap_or(measured);
        self.options.via == Some(Via::Bpf) || expected::tcp_sockets(self.host, least) >= least
    }
}
