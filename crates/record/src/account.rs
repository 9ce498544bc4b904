//! Row accounting: counts the fate of every row, so that no row is lost silently.

use std::borrow::Cow;

/// The row counts of a run. `seen = emitted + filtered + grouped + duplicates + cut + failed`; `lost` is counted
/// separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Rows that the kernel or the recording delivered. Counted on arrival, never computed from the other counts.
    pub seen: u64,
    /// Rows that reached the sink.
    pub emitted: u64,
    /// Rows that the filter rejected in our process.
    pub filtered: u64,
    /// Rows that were added to a group.
    pub grouped: u64,
    /// Rows that arrived a second time and were dropped.
    pub duplicates: u64,
    /// Rows cut off by `--limit`.
    pub cut: u64,
    /// Rows that could not be decoded or written.
    pub failed: u64,
    /// Rows known to be missing, if the kernel reported how many.
    pub lost: u64,
    /// Attributes of a newer kernel that were skipped. This is not an error.
    pub unknown_attrs: u64,
    /// True if the result is, or may be, incomplete: exit code 3.
    pub incomplete: bool,
    /// True if the query covers more than the recording holds. The exit code is also 3, although every row of the
    /// recording was read.
    pub unanswered: bool,
    /// True if only rows of network namespaces that could not be entered are missing: every row of the other
    /// namespaces was read. Never true if the result is complete.
    pub only_namespaces_missing: bool,
    /// Reasons for missing rows or cells, as shown in the footer.
    pub why: Vec<MissingReason>,
    /// Backends that were used, in order, without duplicates.
    pub via: Vec<&'static str>,
}

/// One reason for missing rows or cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingReason {
    /// Number of affected rows, cells or other items; 0 if unknown.
    pub count: u64,
    /// The sentence: lower case, no full stop.
    pub text: Cow<'static, str>,
}

impl Accounting {
    /// Adds a reason. The count of a repeated reason is added to the existing one.
    pub fn add_reason(&mut self, count: u64, text: impl Into<Cow<'static, str>>) {
        let text = text.into();
        match self.why.iter_mut().find(|w| w.text == text) {
            Some(why) => why.count += count,
            None => self.why.push(MissingReason { count, text }),
        }
    }

    /// Marks the result as incomplete because of `text`, which concerns `count` items (0 if unknown).
    pub fn incomplete(&mut self, count: u64, text: impl Into<Cow<'static, str>>) {
        self.incomplete = true;
        self.add_reason(count, text);
    }

    /// Records that `backend` was used.
    pub fn add_backend(&mut self, backend: &'static str) {
        if !self.via.contains(&backend) {
            self.via.push(backend);
        }
    }

    /// Adds the row counts of another part of the same run.
    pub fn add(&mut self, other: &Accounting) {
        self.seen += other.seen;
        self.emitted += other.emitted;
        self.filtered += other.filtered;
        self.grouped += other.grouped;
        self.duplicates += other.duplicates;
        self.cut += other.cut;
        self.failed += other.failed;
        self.lost += other.lost;
        self.unknown_attrs += other.unknown_attrs;
        let lacks_rows = |stats: &Accounting| stats.incomplete && !stats.only_namespaces_missing;
        let only_namespaces = !lacks_rows(self) && !lacks_rows(other);
        self.incomplete |= other.incomplete;
        self.unanswered |= other.unanswered;
        self.only_namespaces_missing = self.incomplete && only_namespaces;
        for why in &other.why {
            self.add_reason(why.count, why.text.clone());
        }
        for backend in &other.via {
            self.add_backend(backend);
        }
    }

    /// Adds the gaps and backends of a reading whose rows are not rows of this run: no row counts.
    pub fn add_gaps(&mut self, read: &Accounting) {
        self.incomplete |= read.lacks_rows();
        self.unanswered |= read.unanswered;
        read.why.iter().for_each(|why| self.add_reason(why.count, why.text.clone()));
        read.via.iter().for_each(|via| self.add_backend(via));
    }

    /// True if the reader must be warned (exit code 3).
    pub fn is_partial(&self) -> bool {
        self.unanswered || self.lacks_rows()
    }

    /// True if rows that should have been read are missing. A row that is absent from the result may still exist.
    pub fn lacks_rows(&self) -> bool {
        self.incomplete || self.lost > 0 || self.failed > 0
    }

    /// True if rows of a namespace that was read may be missing: not only whole namespaces.
    pub fn lacks_rows_of_namespaces(&self) -> bool {
        self.lacks_rows() && !(self.only_namespaces_missing && self.failed == 0 && self.lost == 0)
    }

    /// True if every row seen is accounted for.
    pub fn balances(&self) -> bool {
        self.seen == self.accounted_rows()
    }

    /// The number of rows whose fate is known.
    fn accounted_rows(&self) -> u64 {
        self.emitted + self.filtered + self.grouped + self.duplicates + self.cut + self.failed
    }

    /// Marks the result as incomplete and adds a reason if the counts of a finished run do not balance. Rows were then
    /// lost or invented between the kernel and the reader, which is a bug in this program.
    pub fn compare(&mut self) {
        let (seen, out) = (self.seen, self.accounted_rows());
        if seen == out {
            return;
        }
        let text = if seen > out {
            "rows were read but not written: this is a bug in netwren, please report it"
        } else {
            "rows were written that were not counted when they were read: this is a bug in netwren, please report it"
        };
        self.incomplete(seen.abs_diff(out), text);
    }
}
