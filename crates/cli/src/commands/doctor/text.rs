//! Findings as text, folded at the terminal's width or in a pipe at 80 columns. Commands are not folded.

use super::TEXT_COLUMNS;
use record::text::{put_i64, put_text, put_timestamp, put_u64};
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

/// Writes each finding as a paragraph at the end of the round.
pub(super) struct FindingText<'c> {
    to: Box<dyn Write>,
    text: String,
    /// The width of the text.
    width: usize,
    findings: u64,
    scope: ChecksShown,
    /// Number of samples examined in the round.
    compared: &'c Cell<usize>,
}

impl FindingText<'_> {
    /// Makes a writer for the findings of these checks.
    pub(super) fn new(to: Box<dyn Write>, scope: ChecksShown, compared: &Cell<usize>) -> FindingText<'_> {
        FindingText { to, text: String::new(), width: width::of_texts(), findings: 0, scope, compared }
    }

    /// Appends a line with a heading; continuation lines are indented to its text.
    fn line(&mut self, head: &str, text: &str) {
        self.text.push_str(&fold(&format!("  {head:<8}  {text}\n"), self.width));
    }
}

impl Sink for FindingText<'_> {
    fn begin(&mut self, _: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        (self.text, self.findings) = (String::new(), 0);
        if let Some(round) = round {
            let mut time = Vec::new();
            put_timestamp(&mut time, u64::try_from(round.time_s).unwrap_or(0).saturating_mul(1_000_000_000));
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
            let [command, effect, risk] = ["command", "effect", "risk"].map(|name| words(member(item, name).value()));
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
        if self.compared.get() == 0 {
            self.text.push_str("nothing was checked\n");
        } else if self.findings == 0 {
            let but = if totals.is_partial() { " in the data that could be read" } else { "" };
            let ChecksShown { checks, is_filtered } = self.scope;
            let what = if is_filtered { "nothing that matches the filter" } else { "nothing wrong" };
            let plural = if checks == 1 { "" } else { "s" };
            self.text.push_str(&format!("{what} was found{but} by {checks} check{plural}\n"));
        }
        self.to.write_all(self.text.as_bytes()).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => SinkError::Closed,
            _ => SinkError::Io(Box::new(error)),
        })
    }
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
            Remedy { command: "sysctl -w a=2".into(), effect: "makes room".into(), risk: "takes memory".into() },
            Remedy { command: String::new(), effect: "send less".into(), risk: String::new() },
        ];
        let compared = Cell::new(1);
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
        ];
        assert_eq!(prose.row(&cells).unwrap(), Next::More);
        let expected = [
            "CRITICAL (ct-full, certain): it is full",
            "  cost      much",
            "  evidence  drop: 10 -> 59",
            "            entries\\x1b: 1000 of 1000",
            "  remedy    sysctl -w a=2",
            "              makes room; risk: takes memory",
            "            send less",
        ];
        assert_eq!(prose.text.lines().collect::<Vec<_>>(), expected);
    }
}
