//! Passes decoded rows to their consumer: adds label names and counts the rows.
use std::ops::ControlFlow;

use netlink::DecodeError;
use record::rows::{Conntrack, Nat};
use record::{Each, Next, RowBytes, RowCache, RowStats, RowVisitor};
use sys::SysError;

use crate::backends::bpf::rows::EntryBytes;
use crate::backends::seen::{HandedOut, RowKeys};
use crate::labels::LabelNames;

/// Destination of decoded rows.
pub(crate) struct Rows<'r, 'f> {
    pub(crate) each: &'r mut Each<'f, Nat>,
    /// Recognises rows of the walk by their bytes.
    pub(crate) cache: Option<&'r dyn RowCache>,
    pub(crate) stats: &'r mut RowStats,
    /// Names of labels, if labels are demanded.
    pub(crate) labels: Option<Result<LabelNames, SysError>>,
    /// Labels of the newest row as words.
    pub(crate) text: Vec<u8>,
    /// True if an entry had a label and no file of label names exists.
    pub(crate) unnamed: bool,
    pub(crate) now_ns: u64,
    pub(crate) stopped: bool,
    /// The entries that a walk has handed out.
    pub(crate) handed_out: &'r mut HandedOut,
}

impl Rows<'_, '_> {
    #[inline]
    pub(crate) fn row(&mut self, row: &Conntrack<'_>) -> ControlFlow<()> {
        self.stats.row();
        let next = match row.labels.is_some() || row.start_ns.is_some() {
            false => (self.each)(row),
            true => self.hand_out_completed(row),
        };
        self.flow(next)
    }

    #[inline]
    fn flow(&mut self, next: Next) -> ControlFlow<()> {
        match next {
            Next::More => ControlFlow::Continue(()),
            Next::Stop => {
                self.stopped = true;
                ControlFlow::Break(())
            }
        }
    }

    // Completes the few rows that have labels or times, with label names and with the time from which ages count.
    fn hand_out_completed(&mut self, row: &Conntrack<'_>) -> Next {
        self.text.clear();
        let mut row = Conntrack { now_ns: Some(self.now_ns), ..*row };
        if let (Some(bits), Some(names)) = (row.labels, &self.labels) {
            let nameless = LabelNames::default();
            names.as_ref().unwrap_or(&nameless).put_words(&mut self.text, bits);
            self.unnamed |= names.is_err() && !self.text.is_empty();
            row.label_words = Some(&*self.text).filter(|text| !text.is_empty());
        }
        (self.each)(&row)
    }

    /// Hands out a row of another backend unless it came before or a walk has handed it out.
    #[inline]
    pub(crate) fn row_unless_out(&mut self, row: &Conntrack<'_>, seen: &mut RowKeys) -> ControlFlow<()> {
        if seen.is_double(row) || self.handed_out.is_out(row) {
            self.stats.duplicate();
            return ControlFlow::Continue(());
        }
        self.row(row)
    }

    #[cold]
    pub(crate) fn add_failure(&mut self, error: DecodeError) -> ControlFlow<()> {
        self.cache.iter().for_each(|cache| cache.invalidate());
        self.stats.add_failed(error);
        ControlFlow::Continue(())
    }
}

impl RowVisitor<Nat, EntryBytes<'_>, DecodeError> for Rows<'_, '_> {
    fn add_arrived(&mut self, rows: u64) {
        self.stats.add_arrived(rows);
    }

    #[inline(always)]
    fn row(&mut self, row: Result<(&Conntrack<'_>, EntryBytes<'_>), DecodeError>) -> ControlFlow<()> {
        match row {
            Ok((row, entry)) => {
                entry.add_to(self.handed_out);
                Rows::row(self, row)
            }
            Err(error) => self.add_failure(error),
        }
    }

    #[inline]
    fn reuses_rows(&self) -> bool {
        self.cache.is_some()
    }

    #[inline]
    fn reuse(&mut self, bytes: RowBytes<'_>, entry: EntryBytes<'_>) -> Option<ControlFlow<()>> {
        let reused = self.cache?.reuse(bytes)?;
        entry.add_to(self.handed_out);
        self.stats.row();
        Some(self.flow(reused.next))
    }
}
