//! Reads unix sockets from /proc/net/unix, to complete netlink or to replace it.
use std::ops::ControlFlow;

use netlink::{DumpError, Query};
use record::State;
use sys::SysError;

use crate::backends::TableReader;
use crate::backends::netlink::request::NETLINK_SOCK_DIAG;
use crate::backends::netlink::unix_diag::{UnixDecoder, request_names};
use crate::backends::proc::unix::{parse_proc_unix_line, restore_abstract};
use crate::backends::proc::unix_lines::{LEFT_OUT, Lines, SocketNames, UnixCounts, has_paths, kernel_lines};
use crate::backends::proc_file::{ProcFile, TEXT_MAX};
use crate::backends::rows::RowOutput;
use crate::backends::window::Window;
use crate::choose::Via;
use crate::keys::{self, Table};
use crate::pushdown::TableFilter;

/// Maximum number of attempts to read the file and the names while sockets come and go between the two.
///
/// Bound: readings of /proc/net/unix whose paths netlink does not confirm. Beyond: unconfirmed lines are left out and
/// counted (exit code 3). By: a local user who opens and closes unix sockets fast, with `--via proc` only.
const ATTEMPTS: u32 = 3;

/// The note if lines cannot be distinguished from parts of paths.
const UNPROVEN: &str = "rows of unix sockets may be forged: /proc/net/unix does not escape paths, so a path with a \
                        line break looks like a row; only netlink can distinguish them";

impl TableReader<'_, '_, '_> {
    /// Reads the fields that netlink lacks from /proc/net/unix; `None` if they are not demanded, not available, or not
    /// recorded.
    pub(crate) fn unix_counts(&mut self) -> Option<UnixCounts> {
        let wants = record::rows::need::UNIX_REFS;
        if self.plan.need & wants == 0 || self.lacks & wants != 0 {
            return None;
        }
        let mut text = Vec::new();
        match self.unix_text(&mut text) {
            Ok(()) => self.stats.add_backend(Via::Proc.name()),
            Err(error) => {
                self.stats.add_note(format!("reference counts and flags of unix sockets are unknown: {error}"));
                return None;
            }
        }
        if let Lines::Plain(counts) = UnixCounts::read_unchecked(&text) {
            return Some(counts);
        }
        match self.unix_names() {
            Ok(names) => {
                let counts = UnixCounts::count_genuine(&text, &names);
                if counts.left_out > 0 {
                    self.stats.add_note(format!("{} {LEFT_OUT}", counts.left_out));
                }
                Some(counts)
            }
            // The dump of the sockets themselves will report the error.
            Err(_) => None,
        }
    }

    /// Hands out the connections that wait for accept: netlink does not have them, because they have no inode.
    pub(crate) fn unix_waiting(&mut self, counts: &UnixCounts, filter: &TableFilter) {
        let netns_id = self.plan.options.netns_id;
        let filter = (!filter.accepts_all()).then_some(filter);
        let handed_out = &mut *self.handed_out.borrow_mut();
        let window = Window::new();
        let mut rows =
            RowOutput { each: self.each, stats: &mut self.stats, filter, as_sent: false, window, handed_out };
        for line in counts.unaccepted_lines() {
            let mut line = line.clone();
            if unix_row(&mut rows, &mut line, netns_id).is_break() {
                self.stopped = true;
                return;
            }
        }
    }

    /// Reads the table from its file and checks each line against netlink. If netlink is unavailable, every row of a
    /// file with paths is uncertain, and the result counts as incomplete.
    pub(crate) fn unix_by_proc(&mut self, filter: &TableFilter) -> Result<bool, SysError> {
        let mut text = Vec::new();
        for attempt in 1.. {
            self.unix_text(&mut text)?;
            self.stats.add_backend(Via::Proc.name());
            let Ok(names) = self.unix_names() else {
                self.unix_unproven(&text, filter);
                break;
            };
            let left_out = kernel_lines(&text, &names, &mut |_| true);
            if left_out > 0 && attempt < ATTEMPTS {
                continue;
            }
            if left_out > 0 {
                self.stats.incomplete(left_out, LEFT_OUT);
            }
            self.unix_rows(filter, |each| {
                kernel_lines(&text, &names, each);
            });
            break;
        }
        Ok(true)
    }

    fn unix_unproven(&mut self, text: &[u8], filter: &TableFilter) {
        if has_paths(text) {
            self.stats.incomplete(0, UNPROVEN);
        }
        self.unix_rows(filter, |each| {
            let lines = text.split(|&byte| byte == b'\n').skip(1).filter(|line| !line.is_empty());
            let _ = lines.map_while(|line| each(line).then_some(())).count();
        });
    }

    /// Hands out the lines from `lines`, as long as its callback returns that more are wanted.
    fn unix_rows(&mut self, filter: &TableFilter, lines: impl FnOnce(&mut dyn FnMut(&[u8]) -> bool)) {
        let netns_id = self.plan.options.netns_id;
        let filter = (!filter.accepts_all()).then_some(filter);
        let handed_out = &mut *self.handed_out.borrow_mut();
        let window = Window::new();
        let mut rows =
            RowOutput { each: self.each, stats: &mut self.stats, filter, as_sent: false, window, handed_out };
        let (mut line, mut stopped) = (Vec::new(), false);
        lines(&mut |text| {
            line.clear();
            line.extend_from_slice(text);
            stopped = unix_row(&mut rows, &mut line, netns_id).is_break();
            !stopped
        });
        self.stopped |= stopped;
    }

    fn unix_text(&mut self, into: &mut Vec<u8>) -> Result<(), SysError> {
        let plan = self.plan;
        let key = plan.key(Table::Unix, Via::Proc);
        let file = ProcFile { host: plan.host, netns: plan.netns, table: Table::Unix, key };
        match file.text(into) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let text =
                    format!("unix sockets are incomplete: only {} MiB of /proc/net/unix are read", TEXT_MAX >> 20);
                self.stats.incomplete(0, text);
                Ok(())
            }
            Err(error) if into.is_empty() => Err(error),
            Err(error) => {
                self.stats.incomplete(0, format!("{} are incomplete: {error}", Table::Unix.description()));
                Ok(())
            }
        }
    }

    fn unix_names(&mut self) -> Result<SocketNames, DumpError> {
        let plan = self.plan;
        let (key, request) = (keys::unix_names_key(plan.options.netns_id), request_names());
        let ask = Query {
            what: Table::Unix.description(),
            protocol: NETLINK_SOCK_DIAG,
            request: &request,
            key: &key,
            note: "",
            netns: plan.netns,
        };
        let (mut names, mut decoder) = (SocketNames::default(), UnixDecoder::new(0));
        netlink::dump(plan.host, &ask, |part| {
            if let Ok(row) = decoder.decode(part.payload) {
                names.add(row.inode, row.unix.and_then(|part| part.path), row.state == State::LISTEN);
            }
            ControlFlow::Continue(())
        })?;
        Ok(names)
    }
}

/// Unix sockets have no key in this file: two with the same inode count as two sockets.
fn unix_row(rows: &mut RowOutput<'_, '_>, line: &mut [u8], netns_id: u64) -> ControlFlow<()> {
    restore_abstract(line);
    rows.line(parse_proc_unix_line(line, netns_id))
}
