//! OPRINT: keys and values of a record, one per line.

use super::UlogdStyle;
use super::gprint::first_four;
use super::keys::{KeyWriter, Name, Record, Stages, put_keys};
use super::logemu::{put, put_hardware, put_outside};
use super::names::IfaceNames;
use record::rows::LogRecord;
use record::text::Line;
use record::{Addr, Lookups};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Writes `===>PACKET BOUNDARY` and then lines like `raw.pktlen=60`.
pub struct Oprint {
    stages: Stages,
    names: IfaceNames,
    line: Line,
    bug_compatible: bool,
}

impl Oprint {
    /// A writer of the keys of these plugins. It writes no local time.
    pub fn new(stages: Stages, options: UlogdStyle) -> Oprint {
        Oprint { stages, names: IfaceNames::new(), line: Line::new(), bug_compatible: options.bug_compatible }
    }

    /// Appends the record's lines.
    pub fn write(&mut self, row: &LogRecord<'_>, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        self.line.put_short(b"===>PACKET BOUNDARY\n");
        let second = row.time_ns / NS_PER_SECOND;
        let record = Record { row, stages: self.stages, bug_compatible: self.bug_compatible, second };
        let mut to = Lines { line: &mut self.line, out, bug_compatible: self.bug_compatible };
        put_keys(&mut to, &record, &mut self.names, lookups);
        self.line.drain(out);
    }
}

/// Writes each key on its own line.
struct Lines<'a> {
    line: &'a mut Line,
    out: &'a mut Vec<u8>,
    bug_compatible: bool,
}

impl Lines<'_> {
    #[inline]
    fn name(&mut self, name: &Name) {
        self.line.make_room(self.out);
        self.line.put_short(name.plain);
    }
}

impl KeyWriter for Lines<'_> {
    #[inline]
    fn number(&mut self, name: &Name, n: u64) {
        self.name(name);
        self.line.decimal(n);
        self.line.byte(b'\n');
    }

    fn repeated_number(&mut self, name: &Name, n: u64) {
        self.number(name, n);
    }

    fn outside_text(&mut self, name: &Name, text: &[u8]) {
        self.name(name);
        put_outside(self.line, self.out, text);
        self.line.byte(b'\n');
    }

    fn word(&mut self, name: &Name, text: &[u8]) {
        self.name(name);
        put(self.line, self.out, text);
        self.line.byte(b'\n');
    }

    fn address(&mut self, name: &Name, addr: Addr) {
        self.name(name);
        self.line.addr(addr);
        self.line.byte(b'\n');
    }

    fn raw_address(&mut self, name: &Name, addr: Addr) {
        self.address(name, if self.bug_compatible { reverse_bytes(addr) } else { addr });
    }

    fn hardware(&mut self, name: &Name, bytes: &[u8]) {
        self.name(name);
        put_hardware(self.line, self.out, bytes);
        self.line.byte(b'\n');
    }

    fn pointer(&mut self, name: &Name) {
        self.name(name);
        self.line.put_short(b"default\n");
    }
}

/// The tool prints the bytes of an IPv4 address in reverse order, and treats IPv6 addresses as IPv4.
fn reverse_bytes(addr: Addr) -> Addr {
    match first_four(addr) {
        Addr::V4([a, b, c, d]) => Addr::V4([d, c, b, a]),
        other => other,
    }
}
