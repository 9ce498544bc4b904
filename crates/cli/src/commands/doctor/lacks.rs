//! Gaps of a reading of `doctor`, said in sentences.

use record::Accounting;

/// Adds what could not be seen; the rows are none of the findings'.
pub(in crate::commands) fn note(stats: &mut Accounting, read: &Accounting) {
    stats.incomplete |= read.lacks_rows();
    stats.unanswered |= read.unanswered;
    read.why.iter().for_each(|why| stats.add_reason(why.count, why.text.clone()));
    read.via.iter().for_each(|via| stats.used(via));
}
