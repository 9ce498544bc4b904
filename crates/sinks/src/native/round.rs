//! The separator between the rounds of a repeated table, with the time.

use record::{Round, text};

/// Appends an empty line and a line with the time before every round except the first.
pub(super) fn put_separator(out: &mut Vec<u8>, round: Option<Round>, line_end: &[u8]) {
    let Some(round) = round else { return };
    if round.n > 1 {
        out.extend_from_slice(line_end);
        text::put_seconds(out, round.time_s());
        out.extend_from_slice(line_end);
    }
}
