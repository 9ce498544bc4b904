//! What became of every row: nothing is lost silently.

use std::borrow::Cow;

/// The row counts of a run. `seen = emitted + filtered + grouped + duplicates + cut + failed`; `lost` stands beside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Rows that the kernel (or the recording) gave: counted where they come from, never out of the other counts.
    pub seen: u64,
    /// Rows that reached the sink.
    pub emitted: u64,
    /// Rows that the filter left out in our process.
    pub filtered: u64,
    /// Rows that went into a group.
    pub grouped: u64,
    /// Rows that came twice and were shown once.
    pub duplicates: u64,
    /// Rows cut off by `--limit`.
    pub cut: u64,
    /// Rows that could not be decoded or written.
    pub failed: u64,
    /// Rows known to be missing, if the kernel told how many.
    pub lost: u64,
    /// Attributes of a newer kernel that were skipped. No fault.
    pub unknown_attrs: u64,
    /// True if the result is known or feared not to be whole: exit code 3.
    pub incomplete: bool,
    /// True if the question is wider than what a recording holds: exit code 3 as well, though every row that the
    /// recording has was read.
    pub unanswered: bool,
    /// True if all that is missing are whole network namespaces that were not entered: of those that were read every
    /// row is there. Never true where the result is complete.
    pub only_namespaces_missing: bool,
    /// Why something is missing, in words for the footer.
    pub why: Vec<Why>,
    /// Backends that were used, in order, without doubles.
    pub via: Vec<&'static str>,
}

/// One reason for missing rows or cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// How many rows, cells or things it concerns; 0 if nobody knows.
    pub count: u64,
    /// The sentence: lower case, no full stop.
    pub text: Cow<'static, str>,
}

impl Accounting {
    /// Adds a reason; the same text again adds up.
    pub fn add_reason(&mut self, count: u64, text: impl Into<Cow<'static, str>>) {
        let text = text.into();
        match self.why.iter_mut().find(|w| w.text == text) {
            Some(why) => why.count += count,
            None => self.why.push(Why { count, text }),
        }
    }

    /// Notes that `backend` was used.
    pub fn used(&mut self, backend: &'static str) {
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
            self.used(backend);
        }
    }

    /// True if a reader must be warned (exit code 3).
    pub fn is_partial(&self) -> bool {
        self.unanswered || self.lacks_rows()
    }

    /// True if rows that were there to be read are missing: what is not seen may be there all the same.
    pub fn lacks_rows(&self) -> bool {
        self.incomplete || self.lost > 0 || self.failed > 0
    }

    /// True if every row seen is accounted for.
    pub fn balances(&self) -> bool {
        self.seen == self.came_out()
    }

    /// Rows whose end is known, whatever it was.
    fn came_out(&self) -> u64 {
        self.emitted + self.filtered + self.grouped + self.duplicates + self.cut + self.failed
    }

    /// Says so where the counts of a run that is over differ: rows were lost, or made up, between the kernel and the
    /// reader. That is a fault of this program, and the result is not whole.
    pub fn compare(&mut self) {
        let (seen, out) = (self.seen, self.came_out());
        if seen == out {
            return;
        }
        self.incomplete = true;
        let text = if seen > out {
            "rows that were read did not come out: this is a bug in netwren, please report it"
        } else {
            "rows came out that were not counted when they were read: this is a bug in netwren, please report it"
        };
        self.add_reason(seen.abs_diff(out), text);
    }
}
