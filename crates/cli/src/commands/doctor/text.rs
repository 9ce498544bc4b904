//! Findings as text, folded at the terminal's width or in a pipe at 80 columns. Commands are not folded.

use super::TEXT_COLUMNS;
use record::text::{put_i64, put_seconds, put_text, put_timestamp, put_u64};
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Value};
use runtime::fold::fold;
use runtime::width;
use std::cell::Cell;
use std::io::{ErrorKind, Write};

/// The checks whose findings are shown.
#[derive(Clone, Copy)]
pub(super) struct ChecksShown {
    /// Number of checks.
    pub(super) checks: usize,
    /// True if a filter applies to their findings.
    pub(super) is_filtered: bool,
}

/// The data of a round.
#[derive(Clone, Copy, Default)]
pub(super) struct Compared {
    /// Number of samples.
    pub(super) samples: usize,
    /// The longest window, in nanoseconds.
    pub(super) window_ns: u64,
}

/// A window of this many seconds also shows slow faults.
const LONG_S: u64 = 30;

/// Writes each finding as a paragraph at the end of the round.
pub(super) struct FindingText<'c> {
    to: Box<dyn Write>,
    text: String,
    /// The width of the text.
    width: usize,
    findings: u64,
    scope: ChecksShown,
    /// The data of the round.
    compared: &'c Cell<Compared>,
    /// True if rounds follow each other.
    is_watch: bool,
}

impl FindingText<'_> {
    /// Makes a writer for the findings of these checks.
    pub(super) fn new(to: Box<dyn Write>, scope: ChecksShown, compared: &Cell<Compared>) -> FindingText<'_> {
        let (text, width) = (String::new(), width::of_texts());
        FindingText { to, text, width, findings: 0, scope, compared, is_watch: false }
    }

    /// Appends a line with a heading; continuation lines are indented to its text.
    fn line(&mut self, head: &str, text: &str) {
        self.text.push_str(&fold(&format!("  {head:<8}  {text}\n"), self.width));
    }
}

impl Sink for FindingText<'_> {
    fn begin(&mut self, _: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        (self.text, self.findings, self.is_watch) = (String::new(), 0, round.is_some());
        if let Some(round) = round {
            let mut time = Vec::new();
            put_seconds(&mut time, round.time_s());
            self.text = format!("{}\n", String::from_utf8_lossy(&time));
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let cell = |name: &str| {
            let place = TEXT_COLUMNS.split(',').position(|column| column == name);
            place.and_then(|place| cells.get(place)).copied().unwrap_or(Value::Null)
        };
        if self.findings > 0 {
            self.text.push('\n');
        }
        self.findings += 1;
        let place = match words(cell("netns")) {
            netns if netns.is_empty() => String::new(),
            netns => format!(" in {netns}"),
        };
        let (severity, id, sure) = (words(cell("severity")), words(cell("id")), words(cell("confidence")));
        let head = format!("{}{place} ({id}, {sure}): {}\n", severity.to_uppercase(), words(cell("title")));
        self.text.push_str(&fold(&head, self.width));
        let cause = words(cell("explained_by"));
        if !cause.is_empty() {
            self.line("cause", &format!("explained by {cause}"));
        }
        for (name, head) in [("cost", "cost"), ("since", "since")] {
            let text = words(cell(name));
            if !text.is_empty() {
                self.line(head, &text);
            }
        }
        let mut head = "evidence";
        cell("evidence").for_each_item(&mut |item| {
            self.line(head, &proof(item));
            head = "";
        });
        let mut head = "remedy";
        cell("remedy").for_each_item(&mut |item| {
            let [command, effect, risk, place] =
                ["command", "effect", "risk", "place"].map(|name| words(member(item, name).value()));
            let effect = if place.is_empty() { effect } else { format!("{effect}; run it in {place}") };
            let risk = if risk.is_empty() { risk } else { format!("; risk: {risk}") };
            if !command.is_empty() {
                self.text.push_str(&format!("  {head:<8}  {command}\n"));
                self.line("", &format!("  {effect}{risk}"));
            } else {
                self.line(head, &format!("{effect}{risk}"));
            }
            head = "";
        });
        Ok(Next::More)
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        let Compared { samples, window_ns } = self.compared.get();
        if samples == 0 {
            self.text.push_str("nothing was checked\n");
        } else if self.findings == 0 {
            let but = if totals.is_partial() { " in the data that could be read" } else { "" };
            let ChecksShown { checks, is_filtered } = self.scope;
            let what = if is_filtered { "nothing that matches the filter" } else { "nothing wrong" };
            let plural = if checks == 1 { "" } else { "s" };
            self.text.push_str(&format!("{what} was found{but} by {checks} check{plural}\n"));
            let seconds = window_ns.div_ceil(1_000_000_000);
            if seconds < LONG_S && !is_filtered && !self.is_watch {
                self.text.push_str(&fold(&format!("{}\n", slow_faults(seconds)), self.width));
            }
        }
        self.to.write_all(self.text.as_bytes()).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => SinkError::Closed,
            _ => SinkError::Io(Box::new(error)),
        })
    }
}

/// The faults that a short window does not show.
fn slow_faults(seconds: u64) -> String {
    format!(
        "a window of {seconds} s misses slow faults, such as a resolver that times out after 5 s; --for {LONG_S} shows \
         more of them"
    )
}

/// A value that proves a finding: `ListenOverflows 3 → 343`.
fn proof(item: Value<'_>) -> String {
    let [counter, before, after, limit] =
        ["counter", "before", "after", "limit"].map(|name| words(member(item, name).value()));
    let of = if limit.is_empty() { String::new() } else { format!(" of {limit}") };
    match before.is_empty() {
        true => format!("{counter}: {after}{of}"),
        false => format!("{counter}: {before} -> {after}{of}"),
    }
}

fn member(item: Value<'_>, name: &str) -> record::OwnedValue {
    let mut found = record::OwnedValue::Plain(Value::Null);
    if let Value::Object(object) = item {
        object.for_each(&mut |known, value| {
            if known == name {
                found = value.into();
            }
        });
    }
    found
}

/// A cell as escaped text.
fn words(value: Value<'_>) -> String {
    let mut text = Vec::new();
    match value {
        Value::U64(n) => put_u64(&mut text, n),
        Value::I64(n) => put_i64(&mut text, n),
        Value::Time(ns) => put_timestamp(&mut text, ns),
        Value::Name(word) => text.extend_from_slice(word.as_bytes()),
        Value::Bytes(bytes) => put_text(&mut text, bytes),
        _ => {}
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::{Evidence, Remedy};

    #[test]
    fn a_finding_as_a_paragraph() {
        let evidence = vec![
            Evidence { counter: "drop".into(), before: Some(10), after: 59, limit: None },
            Evidence { counter: "entries\x1b".into(), before: None, after: 1000, limit: Some(1000) },
        ];
        let remedy = vec![
            Remedy {
                command: "sysctl -w a=2".into(),
                effect: "makes room".into(),
                risk: "takes memory".into(),
                place: "the first network namespace",
            },
            Remedy { command: String::new(), effect: "send less".into(), risk: String::new(), place: "" },
        ];
        let compared = Cell::new(Compared { samples: 1, window_ns: 3_000_000_000 });
        let mut prose =
            FindingText::new(Box::new(std::io::sink()), ChecksShown { checks: 7, is_filtered: false }, &compared);
        prose.begin(&Columns::default(), None).unwrap();
        let cells = [
            Value::Name("critical"),
            Value::Bytes(b"ct-full"),
            Value::Null,
            Value::Bytes(b"it is full"),
            Value::Bytes(b"much"),
            Value::Name("certain"),
            Value::List(&evidence),
            Value::List(&remedy),
            Value::Null,
            Value::Bytes(b"ct-chains"),
        ];
        assert_eq!(prose.row(&cells).unwrap(), Next::More);
        let expected = [
            "CRITICAL (ct-full, certain): it is full",
            "  cause     explained by ct-chains",
            "  cost      much",
            "  evidence  drop: 10 -> 59",
            "            entries\\x1b: 1000 of 1000",
            "  remedy    sysctl -w a=2",
            "              makes room; run it in the first network namespace; risk: takes",
            "              memory",
            "            send less",
        ];
        assert_eq!(prose.text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn silence_names_what_a_short_window_misses() {
        let text = |window_s: u64, is_filtered| {
            let compared = Cell::new(Compared { samples: 1, window_ns: window_s * 1_000_000_000 });
            let scope = ChecksShown { checks: 7, is_filtered };
            let mut prose = FindingText::new(Box::new(std::io::sink()), scope, &compared);
            prose.begin(&Columns::default(), None).unwrap();
            prose.end(&Accounting::default()).unwrap();
            prose.text.replace('\n', " ")
        };
        assert!(text(3, false).contains("a window of 3 s misses slow faults"), "{}", text(3, false));
        assert_eq!((text(30, false), text(3, true).matches("misses").count()), (text(60, false), 0));
    }
}
