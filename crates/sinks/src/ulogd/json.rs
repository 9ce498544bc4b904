//! JSON: one object per line.

use super::UlogdStyle;
use super::clock::{SecondText, microseconds, put_iso, put_offset};
use super::keys::{KeyWriter, Name, Record, Stages, put_keys};
use super::names::IfaceNames;
use crate::LocalTime;
use record::rows::LogRecord;
use record::text::{Line, put_json};
use record::{Addr, Lookups};

/// The options of the plugin.
#[derive(Clone, Copy)]
pub struct JsonOptions<'a> {
    /// `device`: the value of `dvc`.
    pub device: &'a [u8],
    /// `timestamp`: the time as text in front.
    pub timestamp: bool,
    /// `eventv1`: `@version`, `@timestamp`.
    pub v1: bool,
    /// `boolean_label`: `action` (allowed or blocked) in place of the label.
    pub boolean_label: bool,
}

impl Default for JsonOptions<'_> {
    fn default() -> Self {
        JsonOptions { device: b"Netfilter", timestamp: true, v1: false, boolean_label: false }
    }
}

/// Writes objects like `{"timestamp": "2026-11-21T12:43:54.699260+0100", "dvc": "Netfilter", "raw.pktlen": 60, …}`.
pub struct Json {
    /// `{"timestamp": "`, or the beginning without the time.
    begin: &'static [u8],
    /// The text after the time up to the first key, without the comma between them.
    dvc: Vec<u8>,
    time: SecondText,
    /// True if the time is in front.
    timestamp: bool,
    boolean_label: bool,
    stages: Stages,
    names: IfaceNames,
    line: Line,
    bug_compatible: bool,
}

/// Length of `2026-11-21T12:43:54`.
const WHOLE_SECOND: usize = 19;

impl Json {
    /// A writer of the keys of these plugins.
    pub fn new(json: JsonOptions<'_>, stages: Stages, options: UlogdStyle) -> Json {
        let begin: &[u8] = match (json.v1, json.timestamp) {
            (false, true) => b"{\"timestamp\": \"",
            (true, true) => b"{\"@version\": 1, \"@timestamp\": \"",
            (false, false) => b"{",
            (true, false) => b"{\"@version\": 1, ",
        };
        let mut dvc = Vec::new();
        dvc.extend_from_slice(if json.timestamp { b"\", \"dvc\": \"" } else { b"\"dvc\": \"" });
        put_json(&mut dvc, json.device);
        dvc.push(b'"');
        Json {
            begin,
            dvc,
            time: SecondText::new(options.zone, if options.bug_compatible { put_time_unlike_utc } else { put_time }),
            timestamp: json.timestamp,
            boolean_label: json.boolean_label,
            stages,
            names: IfaceNames::new(),
            line: Line::new(),
            bug_compatible: options.bug_compatible,
        }
    }

    /// Appends the record's object and a newline.
    pub fn write(&mut self, row: &LogRecord<'_>, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        self.time.advance(row.time_ns);
        out.extend_from_slice(self.begin);
        if self.timestamp {
            let (second, offset) = self.time.text().split_at_checked(WHOLE_SECOND).unwrap_or_default();
            self.line.put_short(second);
            self.line.put_short(&fraction(microseconds(row.time_ns)));
            self.line.put_short(offset);
            self.line.drain(out);
        }
        out.extend_from_slice(&self.dvc);
        let record =
            Record { row, stages: self.stages, bug_compatible: self.bug_compatible, second: self.time.second() };
        let mut to = MemberWriter { line: &mut self.line, out, boolean_label: self.boolean_label };
        put_keys(&mut to, &record, &mut self.names, lookups);
        self.line.put_short(b"}\n");
        self.line.drain(out);
    }
}

fn put_time(out: &mut Vec<u8>, at: &LocalTime) {
    put_iso(out, at);
    put_offset(out, at);
}

/// The tool omits the time zone if it is UTC.
fn put_time_unlike_utc(out: &mut Vec<u8>, at: &LocalTime) {
    put_iso(out, at);
    if at.utc_offset_s != 0 {
        put_offset(out, at);
    }
}

/// Returns `.001234`.
fn fraction(microseconds: u64) -> [u8; 7] {
    let mut text = *b".000000";
    let mut rest = microseconds;
    for digit in text[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

/// Writes keys as members of an object.
struct MemberWriter<'a> {
    line: &'a mut Line,
    out: &'a mut Vec<u8>,
    boolean_label: bool,
}

impl MemberWriter<'_> {
    #[inline(always)]
    fn name(&mut self, name: &[u8]) {
        self.line.make_room(self.out);
        self.line.put_short(name);
    }
}

impl KeyWriter for MemberWriter<'_> {
    #[inline(always)]
    fn number(&mut self, name: &Name, n: u64) {
        self.name(name.json);
        self.line.decimal(n);
    }

    /// An object has each key only once.
    #[inline(always)]
    fn repeated_number(&mut self, _: &Name, _: u64) {}

    fn outside_text(&mut self, name: &Name, text: &[u8]) {
        self.name(name.json);
        self.line.byte(b'"');
        self.line.drain(self.out);
        put_json(self.out, text);
        self.line.byte(b'"');
    }

    fn word(&mut self, name: &Name, text: &[u8]) {
        self.outside_text(name, text);
    }

    #[inline(always)]
    fn address(&mut self, name: &Name, addr: Addr) {
        self.name(name.json);
        self.line.byte(b'"');
        self.line.addr(addr);
        self.line.byte(b'"');
    }

    #[inline(always)]
    fn raw_address(&mut self, _: &Name, _: Addr) {}

    fn hardware(&mut self, name: &Name, bytes: &[u8]) {
        self.name(name.json);
        self.line.byte(b'"');
        super::logemu::put_hardware(self.line, self.out, bytes);
        self.line.byte(b'"');
    }

    #[inline(always)]
    fn pointer(&mut self, _: &Name) {}

    fn label(&mut self, name: &Name, label: u8) {
        if !self.boolean_label {
            return self.number(name, label.into());
        }
        self.name(b", \"action\": ");
        self.line.put_short(if label == 0 { b"\"blocked\"" } else { b"\"allowed\"" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions() {
        assert_eq!((&fraction(0), &fraction(40), &fraction(999_999)), (b".000000", b".000040", b".999999"));
    }
}
