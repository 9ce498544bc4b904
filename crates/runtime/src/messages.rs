//! Lines on stderr: warnings, errors, and the footer that reports missing data.

use crate::ascii;
use crate::width;
use record::{Accounting, text};
use std::sync::atomic::{AtomicBool, Ordering};
use sys::cost::Cost;
use sys::term::STDERR;

/// True while a progress line is the last line of the terminal.
static HAS_PROGRESS: AtomicBool = AtomicBool::new(false);
/// Erases the rest of a terminal line: "erase to the end of the line".
const ERASE: &[u8] = b"\x1b[K";

/// Replaces the text of the progress line, the last line of stderr. Call it only if people can see that line.
pub fn show_progress(text: &str) {
    let width = sys::term::width(STDERR).unwrap_or(80).saturating_sub(1);
    let text: String = ascii::message(text).chars().take(width).collect();
    let mut out = vec![b'\r'];
    text::put_text(&mut out, text.as_bytes());
    out.extend_from_slice(ERASE);
    HAS_PROGRESS.store(true, Ordering::Relaxed);
    // A failed write to the terminal does not affect the results.
    let _ = sys::out::Out::stderr().write_all(&out);
}

/// Erases the progress line, so that other output can take its place.
pub fn erase_progress() {
    if HAS_PROGRESS.swap(false, Ordering::Relaxed) {
        let _ = sys::out::Out::stderr().write_all(&[b"\r", ERASE].concat());
    }
}

/// Prints `netwren: TEXT` on stderr, escaped; deferred while rounds are drawn on the terminal. Ignores a closed
/// stderr.
pub fn print_message(message: &str) {
    let mut line = b"netwren: ".to_vec();
    for (i, part) in message.split('\n').enumerate() {
        if i > 0 {
            line.push(b'\n');
        }
        // Text from outside may already be escaped, so backslashes are not doubled.
        for (j, piece) in part.split('\\').enumerate() {
            if j > 0 {
                line.push(b'\\');
            }
            text::put_text(&mut line, piece.as_bytes());
        }
    }
    line.push(b'\n');
    let text = String::from_utf8_lossy(&line);
    let text = ascii::message(&text);
    let text = width::folded_message(&text);
    let waits = sys::alternate_screen::is_shown() && sys::term::is_terminal(STDERR);
    if !(waits && sys::alternate_screen::hold_message(text.as_bytes())) {
        erase_progress();
        let _ = sys::out::Out::stderr().write_all(text.as_bytes());
    }
}

/// Reports lost, unreadable or incomplete data; prints nothing if all is well.
pub fn footer(stats: &Accounting) {
    for line in footer_lines(stats) {
        print_message(&line);
    }
}

/// The footer's lines: one for the counted losses, and one per reason.
pub fn footer_lines(stats: &Accounting) -> Vec<String> {
    let mut lines = Vec::new();
    let counted: Vec<String> =
        [("lost", stats.lost), ("unreadable", stats.failed), ("read twice and shown once", stats.duplicates)]
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(word, n)| format!("{n} {word}"))
            .collect();
    if !counted.is_empty() {
        lines.push(format!("of {} rows read: {}", stats.seen, counted.join(", ")));
    }
    // If the same data is missing for rows and for their owners, it is reported once.
    let is_said = |text: &str| stats.why.iter().any(|why| text.strip_prefix("owners: ") == Some(&*why.text));
    for why in stats.why.iter().filter(|why| !is_said(&why.text)) {
        lines.push(match why.count {
            0 | 1 => why.text.to_string(),
            n => format!("{} ({n} times)", why.text),
        });
    }
    if stats.incomplete && stats.why.is_empty() {
        lines.push("the result may be incomplete".to_owned());
    }
    lines
}

/// The line of `--stats` for formats that do not include it.
pub fn stats_line(stats: &Accounting) -> String {
    let Accounting { seen, emitted, filtered, grouped, duplicates, cut, failed, lost, .. } = stats;
    format!(
        "rows seen {seen}: shown {emitted}, filtered {filtered}, grouped {grouped}, duplicates {duplicates}, cut \
         {cut}, failed {failed}; lost {lost}; via {}",
        stats.via.join(", ")
    )
}

/// The line of `--cost`.
pub fn cost_line(cost: &Cost, stats: &Accounting) -> String {
    let ms = |us: u64| us as f64 / 1000.0;
    let peak = sys::cost::peak_kib().map_or_else(|| "unknown".to_owned(), |kib| format!("{kib} KiB"));
    format!(
        "cost: {:.1} ms CPU ({:.1} user, {:.1} system), {:.1} ms elapsed, {} system calls, {} KiB read, peak memory \
         {peak}, via {}",
        ms(cost.user_us + cost.system_us),
        ms(cost.user_us),
        ms(cost.system_us),
        ms(cost.at_ns / 1000),
        cost.syscalls,
        cost.bytes_read / 1024,
        stats.via.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_result_has_no_footer() {
        let mut stats = Accounting { seen: 5, emitted: 5, ..Accounting::default() };
        assert!(footer_lines(&stats).is_empty());
        stats.lost = 2;
        stats.add_reason(1, "the table changed while it was read");
        assert_eq!(footer_lines(&stats), ["of 5 rows read: 2 lost", "the table changed while it was read"]);
        stats.add_reason(1, "owners: the table changed while it was read");
        stats.add_reason(1, "owners: none");
        assert_eq!(footer_lines(&stats)[1..], ["the table changed while it was read", "owners: none"]);
    }
}
