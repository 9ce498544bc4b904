//! Reports data that `doctor` could not read.

use record::Accounting;

/// Adds the reasons for missing data, but not the row counts, because rows are not findings.
pub(in crate::commands) fn note(stats: &mut Accounting, read: &Accounting) {
    stats.incomplete |= read.lacks_rows();
    stats.unanswered |= read.unanswered;
    read.why.iter().for_each(|why| stats.add_reason(why.count, why.text.clone()));
    read.via.iter().for_each(|via| stats.used(via));
}
