//! Reads a table via sock_diag, and falls back to other backends if that fails.
pub(crate) mod inet_diag;
pub(crate) mod netlink_diag;
pub(crate) mod packet_diag;
pub(crate) mod raw_dump;
pub(crate) mod request;
pub(crate) mod sctp_diag;
pub(crate) mod tipc_diag;
pub(crate) mod unix_diag;
pub(crate) mod vsock_diag;
pub(crate) mod xdp_diag;

use std::ops::ControlFlow;

use netlink::{DumpEnd, DumpError, Query};
use record::rows::FamilyExtras;
use record::{Proto, SourceFault};
use sys::{Errno, Host, SysError};

use crate::backends::TableReader;
use crate::backends::fault::{NoBackend, NoKernelPart, fault_of, has_no_file, lacks_table};
use crate::backends::netlink::inet_diag::InetDecoder;
use crate::backends::netlink::netlink_diag::NetlinkDecoder;
use crate::backends::netlink::packet_diag::PacketDecoder;
use crate::backends::netlink::request::{NETLINK_SOCK_DIAG, request_of};
use crate::backends::netlink::sctp_diag::SctpDecoder;
use crate::backends::netlink::tipc_diag::TipcDecoder;
use crate::backends::netlink::unix_diag::UnixDecoder;
use crate::backends::netlink::vsock_diag::decode_vsock;
use crate::backends::netlink::xdp_diag::XdpDecoder;
use crate::backends::proc_file::ProcFile;
use crate::backends::rows::RowOutput;
use crate::backends::window::Window;
use crate::choose::{Via, missing_need};
use crate::keys::{self, Table};
use crate::pushdown::named::is_in_every_kernel;
use crate::pushdown::{Families, TableFilter};

/// Maximum number of repetitions of a dump that the kernel reports as interrupted, as long as none of its rows was
/// handed out.
///
/// Bound: repetitions of a socket dump that changed while it was read. Beyond: the table counts as incomplete (exit
/// code 3). By: a local user who opens and closes rare sockets.
const INTERRUPTED_RETRIES: u32 = 2;

impl TableReader<'_, '_, '_> {
    pub(crate) fn by_netlink(&mut self, table: Table, filter: &TableFilter) {
        let rows = self.stats.rows();
        self.unix = if table == Table::Unix { self.unix_counts() } else { None };
        match self.dump(table, filter) {
            // These sockets are in no file, so a fallback is impossible.
            Err(error) if self.is_only_backend(table, &error) => self.record_outcome(table, rows, Err(error)),
            Err(error) if self.may_fall_back(&error) && self.stats.rows() == rows => {
                match self.by_proc(table, filter) {
                    Ok(true) if !self.reports_absence || !self.must_report_fallback(table.proto()) => {}
                    Ok(true) => {
                        let what = table.description();
                        self.stats
                            .add_note(format!("{what} were read from /proc/net, which has fewer fields: {error}"));
                    }
                    // The kernel lacks this family, so neither backend can have it.
                    Ok(false) => {}
                    Err(proc) if !self.reports_absence && lacks_table(proc.errno) => {}
                    Err(proc) => {
                        let fault = fault_of(Some(proc.errno));
                        self.fail(table, fault, Box::new(NoBackend { netlink: error, proc }));
                    }
                }
            }
            other => {
                self.record_outcome(table, rows, other);
                if let Some(counts) = self.unix.take().filter(|_| !self.stopped) {
                    self.unix_waiting(&counts, filter);
                }
            }
        }
    }

    fn is_only_backend(&self, table: Table, error: &DumpError) -> bool {
        !self.plan.host.is_replay() && has_no_file(table.proto()) && self.may_fall_back(error)
    }

    fn may_fall_back(&self, error: &DumpError) -> bool {
        error.is_unavailable() && (self.plan.options.via != Some(Via::Netlink) || self.plan.host.is_replay())
    }

    // Returns true if that was all; false if each family has to be requested separately.
    pub(crate) fn dump_both_families(&mut self, filter: &TableFilter) -> bool {
        let host = self.plan.host;
        let possible = if host.is_replay() {
            // The recording may contain more families than are wanted now.
            host.contains(&self.netlink_key(Table::Tcp))
        } else {
            filter.families == Families::Both
        };
        if !possible {
            return false;
        }
        let rows = self.stats.rows();
        match self.dump(Table::Tcp, filter) {
            Err(error) if error.is_unavailable() && self.stats.rows() == rows => false,
            other => {
                self.record_outcome(Table::Tcp, rows, other);
                true
            }
        }
    }

    fn netlink_key(&self, table: Table) -> String {
        if self.listeners {
            return keys::listeners_key(table, self.plan.options.netns_id);
        }
        self.plan.key(table, Via::Netlink)
    }

    // Reads one table via netlink. If the kernel refuses a filter (an old kernel, a missing privilege), it is left out.
    //
    // The offer promises that the filter is applied, and the engine relies on it, so every row is tested again here:
    // the kernel ignores some parts of a request in some tables (6.18: the two ports for bound TCP sockets,
    // net/ipv4/tcp_diag.c; the states for raw sockets, net/ipv4/raw_diag.c), and a socket may change between the
    // kernel's test and its message. Costs some nanoseconds per row that the kernel let through.
    fn dump(&mut self, table: Table, filter: &TableFilter) -> Result<(), DumpError> {
        let netns_id = self.plan.options.netns_id;
        let (key, unfiltered) = (self.netlink_key(table), keys::unfiltered_key(table, netns_id));
        if self.plan.host.is_replay() {
            let key = if self.plan.host.contains(&unfiltered) { unfiltered } else { key };
            return self.dump_until_quiet(table, &key, filter, &[]);
        }
        let program = if table.proto().is_inet() { filter.code.compile() } else { None };
        let program = program.unwrap_or_default();
        match self.dump_until_quiet(table, &key, filter, &program) {
            Err(DumpError::Refused { errno, .. }) if !program.is_empty() && refuses_programs(errno) => {
                self.dump_until_quiet(table, &unfiltered, filter, &[])
            }
            other => other,
        }
    }

    // Repeats an interrupted dump while that can go unnoticed: as long as none of its rows was handed out.
    fn dump_until_quiet(
        &mut self,
        table: Table,
        key: &str,
        filter: &TableFilter,
        program: &[u8],
    ) -> Result<(), DumpError> {
        let note = keys::note_of(filter, program);
        let request = request_of(table, filter, program, self.plan.need, self.plan.options.states);
        let (plan, what) = (self.plan, table.description());
        let ask = Query { what, protocol: NETLINK_SOCK_DIAG, request: &request, key, note: &note, netns: plan.netns };
        let rows = self.stats.rows();
        for _ in 0..=INTERRUPTED_RETRIES {
            let end = self.dump_once(table, &ask, filter)?;
            self.stats.add_backend(Via::Netlink.name());
            if !end.interrupted {
                return Ok(());
            }
            if self.stats.rows() > rows {
                break;
            }
        }
        let text = format!("{what} changed while they were read: some may be missing");
        self.stats.incomplete(0, text);
        Ok(())
    }

    fn dump_once(&mut self, table: Table, ask: &Query<'_>, filter: &TableFilter) -> Result<DumpEnd, DumpError> {
        let netns_id = self.plan.options.netns_id;
        let (as_sent, window) = (self.plan.options.as_sent, Window::new());
        let filter = (!filter.accepts_all()).then_some(filter);
        let handed_out = &mut *self.handed_out.borrow_mut();
        let mut rows = RowOutput { each: self.each, stats: &mut self.stats, filter, as_sent, window, handed_out };
        let (host, proto) = (self.plan.host, table.proto());
        // Rows are passed by reference, to avoid moving 400 bytes.
        let (end, unknown) = match proto {
            Proto::Unix => {
                let mut decoder = UnixDecoder::new(netns_id);
                let counts = self.unix.as_ref();
                let end = netlink::dump(host, ask, |part| {
                    let mut row = decoder.decode(part.payload);
                    if let (Some(counts), Ok(row)) = (counts, &mut row) {
                        counts.complete(row);
                    }
                    rows.message(&row)
                });
                (end, decoder.unknown_attrs)
            }
            Proto::Packet => {
                let mut decoder = PacketDecoder::new(netns_id);
                let end = netlink::dump(host, ask, |part| {
                    rows.message(&decoder.decode(part.payload, &mut FamilyExtras::default()))
                });
                (end, decoder.unknown_attrs)
            }
            Proto::Netlink => {
                let mut decoder = NetlinkDecoder::new(netns_id);
                let end = netlink::dump(host, ask, |part| {
                    rows.message(&decoder.decode(part.payload, &mut FamilyExtras::default()))
                });
                (end, decoder.unknown_attrs)
            }
            Proto::Raw | Proto::Mptcp => {
                let mut decoder = InetDecoder::new(proto, netns_id).with_need(self.plan.need);
                let end = netlink::dump(host, ask, |part| {
                    rows.message(&decoder.decode_rare(part.payload, &mut FamilyExtras::default()))
                });
                (end, decoder.unknown_attrs)
            }
            Proto::Sctp => {
                let mut decoder = SctpDecoder::new(netns_id);
                let end = netlink::dump(host, ask, |part| {
                    // A socket and its associations have the same cookie.
                    rows.message_with_key(&decoder.decode(part.payload, &mut FamilyExtras::default()), |_| 0)
                });
                (end, decoder.unknown_attrs())
            }
            Proto::Vsock | Proto::Tipc | Proto::Xdp => dump_family(host, ask, proto, netns_id, &mut rows),
            Proto::Tcp | Proto::Udp | Proto::UdpLite | Proto::Dccp => {
                let mut decoder = InetDecoder::new(proto, netns_id).with_need(self.plan.need);
                let end = netlink::dump(host, ask, |part| rows.message(&decoder.decode(part.payload)));
                (end, decoder.unknown_attrs)
            }
        };
        self.stats.unknown_attrs(unknown);
        self.stopped |= end.as_ref().is_ok_and(|end| end.stopped);
        end
    }

    // True if /proc lacks demanded fields of this table. Always reported for TCP, UDP and unix sockets: a kernel
    // without netlink for them is unusual.
    fn must_report_fallback(&self, proto: Proto) -> bool {
        is_in_every_kernel(proto) || missing_need(Via::Proc, proto) & self.plan.need != 0
    }

    // Reports sockets that only a file lists although the user requested netlink, instead of leaving them out silently.
    #[cold]
    fn report_unseen(&mut self, table: Table, error: &DumpError) {
        let (plan, options) = (self.plan, &self.plan.options);
        if options.via != Some(Via::Netlink) || options.quiet || plan.host.is_replay() || has_no_file(table.proto()) {
            return;
        }
        // A separate name in the recording: a replay reads the same tables as this run, and no others.
        let key = format!("{}?", plan.key(table, Via::Proc));
        let file = ProcFile { host: plan.host, netns: plan.netns, table, key };
        let mut lines = 0;
        // A kernel without the file has no such sockets.
        let _ = file.read(|_| {
            lines += 1;
            ControlFlow::Continue(())
        });
        if lines > 0 {
            self.stats.incomplete(lines, format!("{} are missing: {error}; --via proc has them", table.description()));
        }
    }

    // Records the outcome of a finished dump in the row counts.
    fn record_outcome(&mut self, table: Table, rows_before: u64, result: Result<(), DumpError>) {
        let Err(error) = result else { return };
        if self.stats.rows() > rows_before {
            return self.stats.incomplete(0, error.to_string());
        }
        if !self.reports_absence && (error.is_unavailable() || error.errno().is_some_and(lacks_table)) {
            return self.report_unseen(table, &error);
        }
        if let DumpError::Io(SysError { errno: Errno::NOT_RECORDED, .. }) = error {
            return self.not_recorded(table);
        }
        let fault = match &error {
            DumpError::Malformed { .. } | DumpError::CutShort { .. } => SourceFault::Malformed,
            error => fault_of(error.errno()),
        };
        self.fail(table, fault, NoKernelPart::explain(table.proto(), error.errno(), error));
    }
}

// Dumps a family without IP addresses and without text.
fn dump_family(
    host: &Host,
    ask: &Query<'_>,
    proto: Proto,
    netns_id: u64,
    rows: &mut RowOutput<'_, '_>,
) -> (Result<DumpEnd, DumpError>, u64) {
    let (mut tipc, mut xdp) = (TipcDecoder::new(netns_id), XdpDecoder::new(netns_id));
    let end = netlink::dump(host, ask, |part| {
        let mut extras = FamilyExtras::default();
        rows.message(&match proto {
            Proto::Tipc => tipc.decode(part.payload, &mut extras),
            Proto::Xdp => xdp.decode(part.payload, &mut extras),
            _ => decode_vsock(part.payload, netns_id, &mut extras),
        })
    });
    (end, tipc.unknown_attrs + xdp.unknown_attrs)
}

// EPERM: marks without CAP_NET_ADMIN. EINVAL: an operation that an old kernel does not have.
fn refuses_programs(errno: Errno) -> bool {
    matches!(errno, Errno::PERM | Errno::INVAL)
}
