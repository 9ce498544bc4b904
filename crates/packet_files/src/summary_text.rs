//! The text of `capture stats`: a paragraph per file.

use super::read_file::{ReadFile, format_word, link_type_words};
use capture::{FileSummary, IfaceSummary, LENGTH_CLASSES};
use record::rows::CaptureFile;
use record::text;
use std::fmt::Write;

/// All information about a file, with a line per topic that has any.
pub fn render_summary(file: &ReadFile) -> String {
    let (Some(row), summary) = (file.row(), &file.summary) else { return String::new() };
    let mut out = escaped(&file.name);
    let packed = if summary.is_packed { ", compressed" } else { "" };
    let sections = match summary.sections {
        0 | 1 => String::new(),
        sections => format!(", {sections} sections"),
    };
    let _ = writeln!(out, ": {}{packed}{sections}, {} bytes", file.format.map_or("", format_word), summary.file_bytes);
    put(&mut out, "packets", &packets(summary));
    if let Some((first, last)) = summary.times_ns {
        put(&mut out, "time", &format!("{} to {}, {}", time(first), time(last), duration(first.abs_diff(last))));
    }
    if let (Some(packets), Some(bits)) = (row.per_second(row.packets), row.per_second(row.bytes.saturating_mul(8))) {
        put(&mut out, "rate", &format!("{packets} packets/s, {}", sinks::bit_rate(bits)));
    }
    put_sizes(&mut out, &row, summary);
    if summary.backwards > 0 {
        let most = duration(summary.backwards_max_ns);
        put(&mut out, "order", &format!("{} earlier than the packet before, by {most} at most", summary.backwards));
    }
    if summary.untimed > 0 {
        put(&mut out, "no time", &format!("{} packets", summary.untimed));
    }
    if summary.commented > 0 {
        put(&mut out, "comments", &format!("{} packets", summary.commented));
    }
    summary.ifaces.iter().for_each(|iface| put(&mut out, "interface", &iface_line(iface)));
    if let Some(others) = &summary.others {
        put(&mut out, "others", &iface_line(others));
    }
    if let Some(fault) = &summary.fault {
        put(&mut out, "broken", &format!("byte {}: {}", fault.offset, fault.fault));
    }
    out
}

fn put(out: &mut String, word: &str, line: &str) {
    let _ = writeln!(out, "  {word:<10} {line}");
}

fn escaped(name: &[u8]) -> String {
    let mut text = Vec::new();
    text::put_text(&mut text, name);
    String::from_utf8_lossy(&text).into_owned()
}

fn packets(summary: &FileSummary) -> String {
    let mut line = format!("{}, {} bytes", summary.packets, summary.bytes);
    if summary.captured_bytes != summary.bytes {
        let _ = write!(line, ", {} of them captured", summary.captured_bytes);
    }
    if summary.cut > 0 {
        let _ = write!(line, "; {} packets are truncated", summary.cut);
    }
    line
}

/// Minimum, maximum and mean length, and the share of each class that has packets.
fn put_sizes(out: &mut String, row: &CaptureFile<'_>, summary: &FileSummary) {
    let (Some((least, most)), Some(mean)) = (row.lengths, row.mean_length()) else { return };
    let mut line = format!("{least} to {most} bytes, mean {mean}");
    let ends = LENGTH_CLASSES.iter().map(|end| format!("≤{end}"));
    let last = LENGTH_CLASSES.last().map(|end| format!(">{end}"));
    let mut separator = ':';
    for (name, count) in ends.chain(last).zip(summary.by_length).filter(|(_, count)| *count > 0) {
        let _ = write!(line, "{separator} {name} {}", percent(count, summary.packets));
        separator = ',';
    }
    put(out, "sizes", &line);
}

fn iface_line(iface: &IfaceSummary) -> String {
    let name = if iface.name.is_empty() { "without a name".to_owned() } else { escaped(&iface.name) };
    let kind = link_type_words(iface.link_type);
    let snaplen = if iface.snaplen == 0 { String::new() } else { format!(", snaplen {}", iface.snaplen) };
    let mut line = format!("{name}: {kind}{snaplen}, {} packets, {} bytes", iface.packets, iface.bytes);
    let counts = &iface.counts;
    let said = [
        (counts.received, "received"),
        (counts.dropped_by_iface, "dropped by the interface"),
        (counts.accepted, "passed the filter"),
        (counts.dropped_by_system, "dropped by the system"),
        (counts.delivered, "delivered"),
    ];
    let mut separator = ';';
    for (count, words) in said {
        if let Some(count) = count {
            let _ = write!(line, "{separator} {count} {words}");
            separator = ',';
        }
    }
    line
}

fn time(ns: i128) -> String {
    let mut text = Vec::new();
    text::put_time(&mut text, ns);
    String::from_utf8_lossy(&text).into_owned()
}

fn duration(ns: u128) -> String {
    match ns {
        0..1_000_000 => format!("{}.{:03} µs", ns / 1000, ns % 1000),
        1_000_000..1_000_000_000 => format!("{}.{:03} ms", ns / 1_000_000, ns / 1000 % 1000),
        ns => format!("{}.{:06} s", ns / 1_000_000_000, ns / 1000 % 1_000_000),
    }
}

fn percent(part: u64, total: u64) -> String {
    let tenths = (u128::from(part) * 1000 + u128::from(total) / 2) / u128::from(total.max(1));
    if tenths == 0 { "<0.1 %".to_owned() } else { format!("{}.{} %", tenths / 10, tenths % 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units_that_fit() {
        assert_eq!(
            [0, 1_500, 2_500_000, 61_000_002_000].map(duration),
            ["0.000 µs", "1.500 µs", "2.500 ms", "61.000002 s"]
        );
        assert_eq!(
            [(1, 3), (3, 3), (1, 100_000), (0, 0)].map(|(part, total)| percent(part, total)),
            ["33.3 %", "100.0 %", "<0.1 %", "<0.1 %"]
        );
    }
}
