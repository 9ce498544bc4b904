//! The counts of the packet reader and the writer, shown during the capture (`--watch`, SIGUSR1).

use capture::CaptureReport;
use runtime::messages::{print_message, show_progress};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use sys::term::{STDERR, STDOUT};

/// Counts of packets that were written and of those that were not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct WriteCounts {
    pub(super) packets: u64,
    /// Packets that could not be written, or that do not fit into a pcap file.
    pub(super) not_written: u64,
}

/// Interval at which the counts are read for the statistics in file series.
const FOR_FILES: Duration = Duration::from_secs(1);

/// The counts of a capture, shown on request.
pub struct Figures {
    /// `--watch`
    watch: Option<Duration>,
    /// Interval at which the reader's counts are requested; `None` to request them only by SIGUSR1.
    period: Option<Duration>,
    begin_ns: u64,
    /// Number of requests handled: by SIGUSR1, and by `--watch`.
    answered: Cell<u64>,
    shown: Cell<u64>,
    /// The reader's counts at the last request.
    report: RefCell<CaptureReport>,
    /// The writer's counts: packets received and packets written. `None` if rows are shown.
    written: Cell<Option<(u64, WriteCounts)>>,
}

impl Figures {
    /// Makes empty counts. `writes_files` is true for a file series, whose files contain statistics.
    pub fn new(watch: Option<Duration>, writes_files: bool) -> Figures {
        Figures {
            watch,
            period: watch.or(writes_files.then_some(FOR_FILES)),
            begin_ns: sys::clock::monotonic_ns(),
            answered: Cell::new(sys::signal::report_count()),
            shown: Cell::new(0),
            report: RefCell::default(),
            written: Cell::new(None),
        }
    }

    fn periods(&self, period: Option<Duration>) -> u64 {
        let elapsed = sys::clock::monotonic_ns().saturating_sub(self.begin_ns);
        period.map_or(0, |period| u128::from(elapsed).checked_div(period.as_nanos()).unwrap_or(0) as u64)
    }

    /// Number of times that the reader's counts have been requested.
    pub fn requests(&self) -> u64 {
        sys::signal::report_count() + self.periods(self.period)
    }

    /// Stores the reader's counts, and shows them if requested.
    pub fn take(&self, report: &CaptureReport) {
        self.report.replace(report.clone());
        let (asked, shown) = (sys::signal::report_count(), self.periods(self.watch));
        if self.answered.replace(asked) != asked {
            print_message(&self.line());
        } else if self.shown.replace(shown) != shown {
            self.show();
        }
    }

    /// Stores the writer's counts; `taken` is the number of packets that it has received.
    pub(super) fn set_write_counts(&self, taken: u64, written: WriteCounts) {
        self.written.set(Some((taken, written)));
    }

    /// The latest counts of the reader.
    pub(super) fn report(&self) -> CaptureReport {
        self.report.borrow().clone()
    }

    /// The counts in a form that fits a terminal's line.
    fn short_line(&self) -> String {
        let report = self.report.borrow();
        let seconds = sys::clock::monotonic_ns().saturating_sub(self.begin_ns) / 1_000_000_000;
        let by_ifaces: u64 = report.dropped_by_ifaces.iter().map(|drops| drops.packets).sum();
        let (received, by_ring) = (report.received, report.dropped_by_ring);
        let line = format!("{seconds} s: {received} received, {by_ring} dropped (ring), {by_ifaces} (interfaces)");
        match self.written.get() {
            None => line,
            Some((taken, WriteCounts { packets, not_written })) => {
                let filtered = report.handed.saturating_sub(taken);
                format!("{line}, {packets} written, {not_written} not, {filtered} filtered")
            }
        }
    }

    fn line(&self) -> String {
        let report = self.report.borrow();
        match self.written.get() {
            None => report.to_string(),
            Some((taken, WriteCounts { packets, not_written })) => {
                let filtered = report.handed.saturating_sub(taken);
                format!("{report}; {packets} written, {not_written} not written, {filtered} filtered")
            }
        }
    }

    /// Shows the counts in a line; on a terminal it replaces the previous one, unless rows are shown there.
    fn show(&self) {
        let has_rows = self.written.get().is_none() && sys::term::is_terminal(STDOUT);
        if has_rows || !sys::term::is_terminal(STDERR) {
            return print_message(&self.line());
        }
        show_progress(&self.short_line());
    }
}
