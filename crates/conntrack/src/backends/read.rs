//! Reads the table through one backend, and falls back to another if it fails.
use netlink::DumpError;
use record::rows::{Conntrack, Expectation, nat_need};
use sys::{Errno, Host, NetNs, SysError};

use crate::backends::bpf::cache::{BackendCache, WalkParameters, key as walk_key, parts_for};
use crate::backends::bpf::chains::Chains;
use crate::backends::bpf::walk_filter::WalkFilter;
use crate::backends::fault::ReadFailure;
use crate::backends::netlink::dump::{DumpResult, dump_entries, dump_expectations, key};
use crate::backends::proc::file as proc_file;
use crate::backends::proc::line::parse_proc_line;
use crate::backends::rows::Rows;
use crate::backends::seen::RowKeys;
use crate::choose::{RecordedBackends, Via};
use crate::kernel_filter::KernelFilter;
use crate::options::Options;
use crate::sizes::Size;
use crate::table::{CtTable, NetnsRef};

/// Maximum number of repeated reads after a resize of the hash table.
///
/// Bound: repetitions after the table was resized during a reading. Beyond: the table counts as incomplete (exit code
/// 3). By: root.
const RESIZED_RETRIES: u32 = 3;
const RESIZED_ONCE: &str =
    "the conntrack hash table was resized while it was read: entries may be missing or duplicated";
const RESIZED: &str = "the conntrack hash table was resized repeatedly while it was read: entries may be missing";

/// The table to read, and the means to read it.
#[derive(Debug, Clone)]
pub(crate) struct ReadTarget<'h> {
    pub(crate) host: &'h Host,
    pub(crate) options: Options,
    /// The namespace to read; `None` is the calling thread's.
    pub(crate) netns: Option<&'h NetNs>,
    /// Keeps the loaded walk; without a cache each scan loads it.
    pub(crate) cache: Option<&'h BackendCache>,
    /// True for the entries of every namespace in one pass of the walk.
    pub(crate) all: bool,
    /// The kernel's filter, if the caller passes one and tests rows itself; `None` to derive it from the demand's
    /// filter.
    pub(crate) narrowed: Option<KernelFilter>,
    /// True to read one netlink dump in the kernel's order.
    pub(crate) as_dump: bool,
}

impl<'h> ReadTarget<'h> {
    pub(crate) fn netns_ref(&self) -> NetnsRef<'h> {
        NetnsRef { netns: self.netns, netns_id: self.options.netns_id }
    }

    /// The backends through which the host's recording holds this table.
    pub(crate) fn recorded_backends(&self) -> RecordedBackends {
        let Options { netns_id, table, .. } = self.options;
        RecordedBackends {
            netlink: [0, 2, 10].iter().any(|family| self.host.contains(&key(table, netns_id, *family))),
            proc: self.host.contains(&proc_file::key(netns_id)),
            bpf: self.host.contains(&walk_key(netns_id, self.all)),
        }
    }

    /// True if netlink reads the entries that an interrupted walk left out; in a replay, if it did so in the recording.
    pub(crate) fn is_followed(&self) -> bool {
        if self.host.is_replay() { self.recorded_backends().netlink } else { self.options.via != Some(Via::Bpf) }
    }

    /// The request for a walk that fills the fields of the `need` bits. `note` is the stream's note in a recording.
    pub(crate) fn walk_ask<'a>(&'a self, need: u64, filter: &'a WalkFilter, note: &'a str) -> WalkParameters<'a> {
        WalkParameters {
            netns: self.netns,
            all: self.all,
            parts: parts_for(need, self.all),
            filter,
            expired: need & nat_need::EXPIRED != 0,
            note,
            netns_id: self.options.netns_id,
        }
    }
}

/// The note of a dump in a recording, which lacks the entries that the kernel's filter left out. Empty without a
/// filter.
pub(crate) fn filter_note(filter: &KernelFilter) -> String {
    let words = filter.words();
    if words.is_empty() { words } else { format!("kernel filter: {words}") }
}

/// One read of a table.
pub(crate) struct TableReader<'s, 'h, 'r, 'f> {
    pub(crate) target: &'s ReadTarget<'h>,
    pub(crate) rows: Rows<'r, 'f>,
    /// Chain lengths of the table, if the walk has read all of it.
    pub(crate) chains: Option<Chains>,
    /// True if /proc was read.
    pub(crate) by_proc: bool,
}

impl TableReader<'_, '_, '_, '_> {
    /// Reads with the walk of the hash table. If the walk is unavailable, netlink takes over; if it is interrupted,
    /// netlink reads the entries that were not handed out.
    pub(crate) fn by_walk(&mut self, need: u64, filter: &WalkFilter, kernel: &KernelFilter) -> Result<(), ReadFailure> {
        let target = self.target;
        let words = filter.words();
        let note = if words.is_empty() { words } else { format!("filter of the walk: {words}") };
        let own_cache;
        let cache = match target.cache {
            Some(cache) => cache,
            None => {
                own_cache = BackendCache::new();
                &own_cache
            }
        };
        let rows = &mut self.rows;
        let walked = cache.walk(target.host, &target.walk_ask(need, filter, &note), rows);
        match walked {
            Ok(walked) => {
                self.chains = walked.chains;
                rows.stats.add_backend(Via::Bpf.name());
                Ok(())
            }
            Err(error) if rows.stats.rows() > 0 && rows.handed_out.is_noting() => {
                rows.stats.add_backend(Via::Bpf.name());
                rows.stats.add_note(format!("the rest was read via netlink: {error}"));
                rows.handed_out.finish();
                if target.all { Ok(()) } else { self.by_netlink_or_proc(kernel) }
            }
            Err(error) if rows.stats.rows() > 0 || !target.is_followed() => Err(ReadFailure::Walk(error)),
            Err(error) => {
                rows.stats.add_note(format!("read via netlink: {error}"));
                self.by_netlink_or_proc(kernel)
            }
        }
    }

    /// Reads via netlink. Falls back to /proc if netlink is unavailable, unless the user chose a backend or the filter
    /// needs the other backends.
    pub(crate) fn by_netlink_or_proc(&mut self, filter: &KernelFilter) -> Result<(), ReadFailure> {
        let Options { via, table, .. } = self.target.options;
        let before = self.rows.stats.rows();
        match self.by_netlink(filter) {
            Err(error)
                if error.is_unavailable()
                    && via != Some(Via::Netlink)
                    && self.target.narrowed.is_none()
                    && table == CtTable::Conntrack
                    && self.rows.stats.rows() == before
                    && !self.target.host.is_replay() =>
            {
                match self.by_proc() {
                    Ok(()) => {
                        self.rows
                            .stats
                            .add_note(format!("read from /proc/net/nf_conntrack, which has fewer fields: {error}"));
                        Ok(())
                    }
                    Err(proc) => Err(ReadFailure::NetlinkAndProc(error, proc)),
                }
            }
            other => other.map_err(ReadFailure::Netlink),
        }
    }

    fn by_netlink(&mut self, filter: &KernelFilter) -> Result<(), DumpError> {
        let (host, options) = (self.target.host, self.target.options);
        // A recording holds one stream of both families, or one for each.
        let held = |family: &u8| host.contains(&key(options.table, options.netns_id, *family));
        let families: &[u8] = match host.is_replay() {
            true if held(&0) => &[0],
            true => &[2, 10],
            false => filter.families(),
        };
        // An empty table is recorded as an empty stream, or by its count (`ConntrackScan::is_empty`).
        if host.is_replay() && !families.iter().any(held) {
            let table = options.table.description();
            return Err(DumpError::Io(SysError::new("replay", table, Errno::NOT_RECORDED)));
        }
        for family in families.iter().filter(|family| held(family)) {
            let filter = filter.of_family(*family);
            if options.table == CtTable::Expect {
                self.expectations(*family)?;
            } else if self.target.as_dump {
                self.read_entries_unordered(&filter)?;
            } else {
                self.entries_until_steady(&filter)?;
            }
            if self.rows.stopped {
                break;
            }
        }
        self.rows.stats.add_backend(Via::Netlink.name());
        Ok(())
    }

    // A dump misses entries and repeats others if the hash table is resized during it, and the kernel does not report
    // that (no NLM_F_DUMP_INTR). In that case the table is read again, without the entries that were handed out.
    fn entries_until_steady(&mut self, filter: &KernelFilter) -> Result<(), DumpError> {
        let mut seen = RowKeys::new();
        for _ in 0..=RESIZED_RETRIES {
            if !self.entries(filter, &mut seen)? || self.rows.stopped {
                return Ok(());
            }
            seen.watch();
        }
        self.rows.stats.incomplete(0, RESIZED);
        Ok(())
    }

    // Returns true if the table was resized during the dump. The number of buckets is read after each receive buffer
    // and before any row of it is handed out: the kernel changes the number under the locks under which it moves
    // entries.
    fn entries(&mut self, filter: &KernelFilter, seen: &mut RowKeys) -> Result<bool, DumpError> {
        let (host, place) = (self.target.host, self.target.netns_ref());
        let note = filter_note(filter);
        let mut buckets = Size::of_buckets(host, place);
        let before = buckets.read();
        let (mut resized, mut block) = (false, u64::MAX);
        let table = self.target.options.table;
        let rows = &mut self.rows;
        let done = dump_entries(host, place, table, filter, &note, |row, number| {
            rows.stats.add_arrived(1);
            if number != block && !resized {
                block = number;
                resized = buckets.read() != before;
                if resized {
                    seen.watch();
                }
            }
            rows.row_unless_out(row, seen)
        })?;
        self.count(&done);
        Ok(resized || buckets.read() != before)
    }

    // Reads one dump: every row is handed out in the kernel's order, and counters may be reset to 0, so nothing is read
    // again. Reading the number of buckets before and after detects a resize.
    fn read_entries_unordered(&mut self, filter: &KernelFilter) -> Result<(), DumpError> {
        let (host, place) = (self.target.host, self.target.netns_ref());
        let mut buckets = Size::of_buckets(host, place);
        let before = buckets.read();
        let rows = &mut self.rows;
        let done = dump_entries(host, place, self.target.options.table, filter, &filter_note(filter), |row, _| {
            rows.stats.add_arrived(1);
            rows.row(row)
        })?;
        self.count(&done);
        if buckets.read() != before {
            self.rows.stats.incomplete(0, RESIZED_ONCE);
        }
        Ok(())
    }

    fn expectations(&mut self, family: u8) -> Result<(), DumpError> {
        let rows = &mut self.rows;
        let each = |row: &Expectation<'_>| {
            rows.stats.add_arrived(1);
            let master = row.master;
            rows.row(&Conntrack {
                netns_id: row.netns_id,
                family: row.family,
                orig: row.tuple,
                timeout_s: row.timeout_s,
                id: row.id,
                helper: row.helper,
                zone: row.zone,
                master: Some(&master),
                ..Conntrack::EMPTY
            })
        };
        let done = dump_expectations(self.target.host, self.target.netns_ref(), family, each)?;
        self.count(&done);
        Ok(())
    }

    fn count(&mut self, done: &DumpResult) {
        let stats = &mut self.rows.stats;
        stats.add_arrived(done.malformed);
        stats.failed_rows(done.malformed, done.first_error);
        stats.unknown_attrs(done.unknown_attrs);
        if done.end.interrupted {
            stats.incomplete(0, "the table changed while it was read: entries may be missing");
        }
        self.rows.stopped |= done.end.stopped;
    }

    /// Reads /proc/net/nf_conntrack, again if the hash table was resized during the read.
    pub(crate) fn by_proc(&mut self) -> Result<(), SysError> {
        self.by_proc = true;
        let (host, place) = (self.target.host, self.target.netns_ref());
        let rows = &mut self.rows;
        let now_ns = Some(rows.now_ns);
        // Unlike with netlink, every row is looked up from the start: a read returns a page of some twenty rows, and
        // reading the number of buckets after each page would cost more.
        let mut seen = RowKeys::new();
        seen.watch();
        for _ in 0..=RESIZED_RETRIES {
            let mut buckets = Size::of_buckets(host, place);
            let before = buckets.read();
            let stopped = proc_file::lines(host, place, |line| {
                rows.stats.add_arrived(1);
                match parse_proc_line(line, place.netns_id, now_ns) {
                    Ok(row) => rows.row_unless_out(&row, &mut seen),
                    Err(error) => rows.add_failure(error),
                }
            })?;
            rows.stats.add_backend(Via::Proc.name());
            if stopped || buckets.read() == before {
                return Ok(());
            }
        }
        rows.stats.incomplete(0, RESIZED);
        Ok(())
    }
}
