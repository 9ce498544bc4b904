//! Reads a table from its file in /proc/net.
mod line;
pub(crate) mod packet;
pub(crate) mod tcp;
pub(crate) mod unix;
pub(crate) mod unix_lines;

use record::rows::FamilyExtras;
use record::{Proto, SourceFault};
use sys::{Errno, SysError};

use crate::address_families::AF_INET6;
use crate::backends::TableReader;
use crate::backends::fault::{NoKernelPart, fault_of, lacks_table};
use crate::backends::proc::packet::{parse_proc_netlink_line, parse_proc_packet_line};
use crate::backends::proc::tcp::parse_proc_line;
use crate::backends::proc_file::ProcFile;
use crate::backends::rows::RowOutput;
use crate::backends::window::Window;
use crate::choose::Via;
use crate::keys::Table;
use crate::pushdown::TableFilter;

impl TableReader<'_, '_, '_> {
    // Reads one file of /proc/net; returns false if this kernel does not have it. After an error there were no rows.
    pub(crate) fn by_proc(&mut self, table: Table, filter: &TableFilter) -> Result<bool, SysError> {
        if table == Table::Unix {
            return self.unix_by_proc(filter);
        }
        let plan = self.plan;
        let netns_id = plan.options.netns_id;
        let filter = (!filter.accepts_all()).then_some(filter);
        let rows_before = self.stats.rows();
        let (as_sent, window) = (self.plan.options.as_sent, Window::new());
        let handed_out = &mut *self.handed_out.borrow_mut();
        let mut rows = RowOutput { each: self.each, stats: &mut self.stats, filter, as_sent, window, handed_out };
        let file = ProcFile { host: plan.host, netns: plan.netns, table, key: plan.key(table, Via::Proc) };
        let mut text = Vec::new();
        let end = file.read(|line| {
            let mut extras = FamilyExtras::default();
            rows.line(match table.proto() {
                Proto::Packet => parse_proc_packet_line(line, netns_id, &mut extras),
                Proto::Netlink => parse_proc_netlink_line(line, netns_id, &mut extras, &mut text),
                proto => parse_proc_line(line, proto, netns_id),
            })
        });
        match end {
            Ok(stopped) => {
                self.stopped |= stopped;
                self.stats.add_backend(Via::Proc.name());
                Ok(true)
            }
            Err(error) if error.errno == Errno::NOENT && table.family() == AF_INET6 => Ok(false),
            Err(error) if self.stats.rows() > rows_before => {
                self.stats.add_backend(Via::Proc.name());
                self.stats.incomplete(0, format!("{} are incomplete: {error}", table.description()));
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn proc_failed(&mut self, table: Table, error: SysError) {
        match error.errno {
            errno if !self.reports_absence && lacks_table(errno) => {}
            Errno::NOT_RECORDED => self.not_recorded(table),
            Errno::RECORDING_BROKEN => self.fail(table, SourceFault::Malformed, Box::new(error)),
            errno => {
                let cause = NoKernelPart::explain(table.proto(), Some(errno), error);
                self.fail(table, fault_of(Some(errno)), cause);
            }
        }
    }
}
