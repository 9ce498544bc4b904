//! GPRINT: keys and values of a record, on one line.

use super::UlogdStyle;
use super::clock::{SecondText, put_slashed};
use super::keys::{KeyWriter, Name, Record, Stages, put_keys};
use super::logemu::{put, put_hardware, put_marked, put_outside};
use super::names::IfaceNames;
use crate::LocalTime;
use record::rows::LogRecord;
use record::text::{Line, put_log_text};
use record::{Addr, Lookups};

/// Writes lines like `timestamp=2026/11/21-12:43:54,raw.pktlen=84,…,oob.in=eth0,oob.out=`.
pub struct Gprint {
    time: SecondText,
    timestamp: bool,
    stages: Stages,
    names: IfaceNames,
    line: Line,
    bug_compatible: bool,
}

impl Gprint {
    /// A writer of the keys of these plugins, with the local time in front if `timestamp` is true.
    pub fn new(timestamp: bool, stages: Stages, options: UlogdStyle) -> Gprint {
        Gprint {
            time: SecondText::new(options.zone, put_time),
            timestamp,
            stages,
            names: IfaceNames::new(),
            line: Line::new(),
            bug_compatible: options.bug_compatible,
        }
    }

    /// Appends the record's line.
    pub fn write(&mut self, row: &LogRecord<'_>, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        self.time.advance(row.time_ns);
        if self.timestamp {
            self.line.put_short(b"timestamp=");
            self.line.put_short(self.time.text());
        }
        let record =
            Record { row, stages: self.stages, bug_compatible: self.bug_compatible, second: self.time.second() };
        let begun = self.timestamp;
        let mut to = Pairs { line: &mut self.line, out, begun, bug_compatible: self.bug_compatible };
        put_keys(&mut to, &record, &mut self.names, lookups);
        self.line.byte(b'\n');
        self.line.drain(out);
    }
}

fn put_time(out: &mut Vec<u8>, at: &LocalTime) {
    put_slashed(out, at);
}

/// Writes keys separated by commas.
struct Pairs<'a> {
    line: &'a mut Line,
    out: &'a mut Vec<u8>,
    /// True if the line is not empty.
    begun: bool,
    bug_compatible: bool,
}

impl Pairs<'_> {
    /// True if the text contains a comma, after which readers expect another key.
    fn ends_a_value(&self, text: &[u8]) -> bool {
        !self.bug_compatible && text.contains(&b',')
    }

    #[inline]
    fn name(&mut self, name: &Name) {
        self.line.make_room(self.out);
        if self.begun {
            self.line.byte(b',');
        }
        self.begun = true;
        self.line.put_short(name.plain);
    }
}

impl KeyWriter for Pairs<'_> {
    #[inline]
    fn number(&mut self, name: &Name, n: u64) {
        self.name(name);
        self.line.decimal(n);
    }

    fn repeated_number(&mut self, name: &Name, n: u64) {
        self.number(name, n);
    }

    fn outside_text(&mut self, name: &Name, text: &[u8]) {
        self.name(name);
        if self.ends_a_value(text) {
            self.line.drain(self.out);
            return put_marked(self.out, text, Some(b','), put_log_text);
        }
        put_outside(self.line, self.out, text);
    }

    fn word(&mut self, name: &Name, text: &[u8]) {
        self.name(name);
        if self.ends_a_value(text) {
            self.line.drain(self.out);
            return put_marked(self.out, text, Some(b','), Vec::extend_from_slice);
        }
        put(self.line, self.out, text);
    }

    fn address(&mut self, name: &Name, addr: Addr) {
        self.name(name);
        self.line.addr(addr);
    }

    fn raw_address(&mut self, name: &Name, addr: Addr) {
        self.address(name, if self.bug_compatible { first_four(addr) } else { addr });
    }

    fn hardware(&mut self, name: &Name, bytes: &[u8]) {
        self.name(name);
        put_hardware(self.line, self.out, bytes);
    }

    fn pointer(&mut self, _: &Name) {}
}

/// The tool takes the first four bytes of an IPv6 address as an IPv4 address.
pub(super) fn first_four(addr: Addr) -> Addr {
    match addr {
        Addr::V4(_) => addr,
        Addr::V6([a, b, c, d, ..]) => Addr::V4([a, b, c, d]),
    }
}
