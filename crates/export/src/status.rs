//! The status report about all outputs of a run: as text, as JSON, for Prometheus.

use crate::Ledger;
use record::text::{put_json, put_log_text, put_text};
use std::fmt::Write;

/// Columns of the text.
const WIDTH: usize = 80;

/// The status of an output at one point in time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The counts.
    pub ledger: Ledger,
    /// Bytes of the messages that wait.
    pub waiting_bytes: u64,
    /// True if the last attempt to open or to write worked.
    pub is_open: bool,
    /// The last fault, if there was one.
    pub last_error: Option<String>,
    /// How often opening or writing has failed.
    pub failures: u64,
    /// The store's present fault, for example a full disk; `None` while it works.
    pub store_trouble: Option<String>,
}

/// One output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputReport {
    /// The part of an agent that ships there; empty for other runs.
    pub part: &'static str,
    /// Its target, in the form that users write.
    pub target: String,
    /// Its counts and faults. With a spool, the counts cover the spool's whole life.
    pub status: Status,
    /// The counts when this run began, if there is a spool.
    pub at_start: Option<Ledger>,
}

/// The report about all outputs of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusReport {
    /// The outputs, in the order of the command line.
    pub outputs: Vec<OutputReport>,
    /// Records that the kernel dropped before netwren could read them, if that is known during the run.
    pub lost_in_kernel: Option<u64>,
    /// The parts of an agent that do not run.
    pub stopped: Vec<StoppedPart>,
    /// The parts of an agent that run, but have made no rows yet.
    pub silent: Vec<&'static str>,
}

/// A part of an agent that does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedPart {
    /// Its name.
    pub part: &'static str,
    /// Why it does not run.
    pub why: String,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// Text for people.
    Text,
    /// One JSON object.
    Json,
    /// The text format of Prometheus.
    Prometheus,
}

impl ReportFormat {
    /// The words for the formats.
    pub const WORDS: [&'static str; 3] = ["text", "json", "prometheus"];

    /// Returns the format for this word.
    pub fn from_word(word: &str) -> Option<ReportFormat> {
        match word {
            "text" => Some(ReportFormat::Text),
            "json" => Some(ReportFormat::Json),
            "prometheus" => Some(ReportFormat::Prometheus),
            _ => None,
        }
    }
}

impl StatusReport {
    /// Writes the report, which ends with a newline.
    pub fn write(&self, format: ReportFormat) -> String {
        match format {
            ReportFormat::Text => self.text(),
            ReportFormat::Json => self.json(),
            ReportFormat::Prometheus => self.prometheus(),
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for output in &self.outputs {
            let part = if output.part.is_empty() { String::new() } else { format!("{}: ", output.part) };
            let _ = writeln!(out, "{part}{}", escape_with(&output.target, put_text));
            fold(&state(&output.status), &mut out);
            fold(&format_counts(&output.status.ledger), &mut out);
            if let Some(start) = &output.at_start {
                fold(&format!("this run: {}", format_counts(&since(&output.status.ledger, start))), &mut out);
            }
            for (what, trouble) in [("store", &output.status.store_trouble), ("last error", &output.status.last_error)]
            {
                if let Some(trouble) = trouble {
                    fold(&format!("{what}: {}", escape_with(trouble, put_text)), &mut out);
                }
            }
        }
        for StoppedPart { part, why } in &self.stopped {
            let _ = writeln!(out, "{part}: stopped");
            fold(&escape_with(why, put_text), &mut out);
        }
        self.silent.iter().for_each(|part| _ = writeln!(out, "{part}: no rows yet"));
        match self.lost_in_kernel {
            Some(lost) => _ = writeln!(out, "lost in the kernel: {lost}"),
            None => out.push_str("lost in the kernel: reported when the run ends\n"),
        }
        out
    }

    fn json(&self) -> String {
        let mut out = "{\"outputs\":[".to_owned();
        for (index, output) in self.outputs.iter().enumerate() {
            let status = &output.status;
            let comma = if index == 0 { "" } else { "," };
            out.push_str(comma);
            out.push('{');
            if !output.part.is_empty() {
                let _ = write!(out, "\"part\":\"{}\",", output.part);
            }
            let _ = write!(out, "\"output\":{},", quote_or_null(Some(&output.target)));
            json_counts(&status.ledger, &mut out);
            let _ = write!(
                out,
                ",\"in_spool\":{},\"failures\":{},\"bytes\":{},\"open\":{},\"last_error\":{},\"store_error\":{},\
                 \"lost_in_kernel\":{}",
                status.ledger.waiting_records(),
                status.failures,
                status.waiting_bytes,
                status.is_open,
                quote_or_null(status.last_error.as_deref()),
                quote_or_null(status.store_trouble.as_deref()),
                self.lost_in_kernel.map_or_else(|| "null".to_owned(), |lost| lost.to_string())
            );
            if let Some(start) = &output.at_start {
                out.push_str(",\"run\":{");
                json_counts(&since(&status.ledger, start), &mut out);
                out.push('}');
            }
            out.push('}');
        }
        out.push(']');
        for (index, StoppedPart { part, why }) in self.stopped.iter().enumerate() {
            out.push_str(if index == 0 { ",\"stopped\":[" } else { "," });
            let _ = write!(out, "{{\"part\":\"{part}\",\"why\":{}}}", quote_or_null(Some(why)));
        }
        out.push_str(if self.stopped.is_empty() { "" } else { "]" });
        if !self.silent.is_empty() {
            // Names of parts are plain words.
            let _ = write!(out, ",\"silent\":{:?}", self.silent);
        }
        out.push_str("}\n");
        out
    }

    fn prometheus(&self) -> String {
        let mut out = String::new();
        for (name, kind, help, value) in METRICS {
            let _ = writeln!(out, "# HELP netwren_export_{name} {help}\n# TYPE netwren_export_{name} {kind}");
            for output in &self.outputs {
                let labels = labels(output);
                let _ = writeln!(out, "netwren_export_{name}{{{labels}}} {}", value(&output.status));
            }
        }
        out.push_str("# HELP netwren_export_dropped_total Records dropped, by reason.\n");
        out.push_str("# TYPE netwren_export_dropped_total counter\n");
        for output in &self.outputs {
            let labels = labels(output);
            for (reason, count) in output.status.ledger.dropped.reasons() {
                let _ = writeln!(out, "netwren_export_dropped_total{{{labels},reason=\"{reason}\"}} {count}");
            }
        }
        if !self.stopped.is_empty() {
            out.push_str("# HELP netwren_part_stopped 1 for a part of the agent that does not run.\n");
            out.push_str("# TYPE netwren_part_stopped gauge\n");
        }
        for StoppedPart { part, .. } in &self.stopped {
            let _ = writeln!(out, "netwren_part_stopped{{part=\"{part}\"}} 1");
        }
        if let Some(lost) = self.lost_in_kernel {
            out.push_str("# HELP netwren_lost_in_kernel_total Records the kernel dropped before they could be read.\n");
            let _ = write!(out, "# TYPE netwren_lost_in_kernel_total counter\nnetwren_lost_in_kernel_total {lost}\n");
        }
        out
    }
}

/// A metric of one output: its name without the prefix, its type, its help, its value.
type Metric = (&'static str, &'static str, &'static str, fn(&Status) -> u64);

const METRICS: [Metric; 9] = [
    ("seen_total", "counter", "Records meant for the output.", |status| status.ledger.seen),
    ("delivered_total", "counter", "Records delivered to the receiver.", |status| status.ledger.delivered),
    ("folded_total", "counter", "Records folded into an earlier one.", |status| status.ledger.folded),
    ("limited_total", "counter", "Records above the allowed rate.", |status| status.ledger.limited),
    ("resent_total", "counter", "Messages sent again, not included in other counts.", |status| status.ledger.resent),
    ("failures_total", "counter", "Failures to open or write, in this run.", |status| status.failures),
    ("waiting", "gauge", "Records in the queue.", |status| status.ledger.waiting_records()),
    ("waiting_bytes", "gauge", "Bytes in the queue.", |status| status.waiting_bytes),
    ("open", "gauge", "1 if the receiver can be written to.", |status| status.is_open.into()),
];

/// The labels of an output's metrics.
fn labels(output: &OutputReport) -> String {
    let part = if output.part.is_empty() { String::new() } else { format!("part=\"{}\",", output.part) };
    format!("{part}output=\"{}\"", label(&output.target))
}

fn state(status: &Status) -> String {
    let open = if status.is_open { "open" } else { "not open" };
    let (waiting, bytes) = (status.ledger.waiting_records(), status.waiting_bytes);
    format!("{open}, {} failures, waiting {waiting} ({bytes} bytes)", status.failures)
}

fn format_counts(ledger: &Ledger) -> String {
    let mut text = format!(
        "seen {}, delivered {}, folded {}, limited {}, dropped {}",
        ledger.seen,
        ledger.delivered,
        ledger.folded,
        ledger.limited,
        ledger.dropped.total()
    );
    let reasons = ledger.dropped.reasons().into_iter().filter(|(_, count)| *count > 0);
    let reasons: Vec<String> = reasons.map(|(reason, count)| format!("{reason} {count}")).collect();
    if !reasons.is_empty() {
        let _ = write!(text, " ({})", reasons.join(", "));
    }
    let _ = write!(text, ", resent {}", ledger.resent);
    text
}

fn json_counts(ledger: &Ledger, out: &mut String) {
    let _ = write!(
        out,
        "\"seen\":{},\"delivered\":{},\"folded\":{},\"limited\":{},\"dropped\":{{",
        ledger.seen, ledger.delivered, ledger.folded, ledger.limited
    );
    for (index, (reason, count)) in ledger.dropped.reasons().into_iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(out, "{comma}\"{reason}\":{count}");
    }
    let _ = write!(out, "}},\"resent\":{}", ledger.resent);
}

impl Ledger {
    /// Returns the increase of the counts since `start`. Records of earlier runs may be delivered in this one.
    pub fn since(&self, start: &Ledger) -> Ledger {
        since(self, start)
    }
}

fn since(now: &Ledger, start: &Ledger) -> Ledger {
    let mut run = *now;
    let pairs = [
        (&mut run.seen, start.seen),
        (&mut run.delivered, start.delivered),
        (&mut run.folded, start.folded),
        (&mut run.limited, start.limited),
        (&mut run.resent, start.resent),
        (&mut run.dropped.full, start.dropped.full),
        (&mut run.dropped.age, start.dropped.age),
        (&mut run.dropped.lost, start.dropped.lost),
        (&mut run.dropped.end, start.dropped.end),
        (&mut run.dropped.refused, start.dropped.refused),
    ];
    for (count, before) in pairs {
        *count = count.saturating_sub(before);
    }
    run
}

/// Appends `text` in indented lines of at most 80 columns; longer words stay whole.
fn fold(text: &str, out: &mut String) {
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length <= WIDTH {
            out.push(' ');
            column += 1 + length;
        } else {
            out.push_str(if column == 0 { "  " } else { "\n    " });
            column = length + if column == 0 { 2 } else { 4 };
        }
        out.push_str(word);
    }
    out.push('\n');
}

fn escape_with(text: &str, put: fn(&mut Vec<u8>, &[u8])) -> String {
    let mut out = Vec::with_capacity(text.len());
    put(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

fn quote_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), |text| format!("\"{}\"", escape_with(text, put_json)))
}

/// Formats the value of a label: control characters as `\xNN`, then the escapes that Prometheus requires.
fn label(text: &str) -> String {
    escape_with(text, put_log_text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Drops;

    fn report() -> StatusReport {
        let dropped = Drops { full: 3, ..Drops::default() };
        let ledger = Ledger { seen: 100, delivered: 80, folded: 5, limited: 2, dropped, resent: 4, held: 0 };
        let status = Status {
            ledger,
            waiting_bytes: 2500,
            is_open: false,
            last_error: Some(
                "cannot connect to log.example:6514: \"no\u{1b}[2J\" ".to_owned() + &"long ".repeat(20) + "end",
            ),
            failures: 7,
            store_trouble: None,
        };
        let hostile =
            OutputReport { part: "", target: "json:/a\"b\\c\n".to_owned(), status: status.clone(), at_start: None };
        let start = Ledger { seen: 90, delivered: 75, ..Ledger::default() };
        let spooled = OutputReport {
            part: "",
            target: "syslog+tcp://log.example:6514".to_owned(),
            status,
            at_start: Some(start),
        };
        StatusReport { outputs: vec![spooled, hostile], lost_in_kernel: Some(9), ..StatusReport::default() }
    }

    #[test]
    fn text_fits_eighty_columns() {
        let text = report().write(ReportFormat::Text);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let head = "syslog+tcp://log.example:6514\n  not open, 7 failures, waiting 10 (2500 bytes)\n  \
                    seen 100, delivered 80, folded 5, limited 2, dropped 3 (full 3), resent 4\n  \
                    this run: seen 10, delivered 5, folded 5, limited 2, dropped 3 (full 3),\n    resent 4\n  \
                    last error: cannot connect to log.example:6514: \"no\\x1b[2J\" ";
        assert!(text.starts_with(head), "{text}");
        assert!(text.contains("\njson:/a\"b\\\\c\\n\n") && text.ends_with("lost in the kernel: 9\n"), "{text}");
    }

    #[test]
    fn json_is_the_ledger_and_adds_up() {
        let text = report().write(ReportFormat::Json);
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        for output in parsed["outputs"].as_array().unwrap() {
            let count = |key: &str| output[key].as_u64().unwrap();
            let dropped: u64 = output["dropped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
            let sum = count("delivered") + count("folded") + count("limited") + dropped + count("in_spool");
            assert_eq!((count("seen"), count("lost_in_kernel")), (sum, 9));
        }
        assert_eq!(parsed["outputs"][1]["output"], "json:/a\"b\\c\n");
        assert_eq!((&parsed["outputs"][0]["run"]["seen"], parsed["outputs"][1].get("run")), (&10.into(), None));
        assert!(!text.contains('\u{1b}') && text.matches('\n').count() == 1);
    }

    #[test]
    fn prometheus_has_each_metric_once_and_escaped_labels() {
        let text = report().write(ReportFormat::Prometheus);
        let dropped = "netwren_export_dropped_total{output=\"syslog+tcp://log.example:6514\",reason=\"full\"} 3\n";
        assert!(text.contains(dropped), "{text}");
        assert!(text.contains("netwren_export_seen_total{output=\"json:/a\\\"b\\\\c\\\\x0a\"} 100\n"), "{text}");
        assert!(text.contains("# TYPE netwren_export_waiting gauge\n") && text.ends_with("_in_kernel_total 9\n"));
        for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
            assert_eq!(text.matches(line).count(), 1, "{line}");
        }
    }
}
