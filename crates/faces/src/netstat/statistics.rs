//! `netstat -s`: reads and prints the kernel's files of counters.

use super::complain;
use super::switches::StatisticsRequest;
use crate::netstat::output::{GarbledFile, Statistics};
use record::SinkError;
use runtime::stdout::Stdout;
use sinks::Out;
use sys::{Host, SysError};

/// Prints the counters; returns the exit code.
pub(super) fn run(request: &StatisticsRequest) -> u8 {
    let mut out = Out::new(Stdout::new());
    let host = Host::live();
    let mut counters = Counters { host: &host, text: Vec::new(), statistics: Statistics::new(request.blocks) };
    let code = if request.six { counters.put6(out.buf()) } else { counters.put(out.buf()) };
    match out.flush() {
        Ok(()) | Err(SinkError::Closed) => code,
        Err(error) => complain(&error.to_string(), 1),
    }
}

struct Counters<'h> {
    host: &'h Host,
    text: Vec<u8>,
    statistics: Statistics,
}

impl Counters<'_> {
    /// Prints the counters of snmp, netstat, and sctp/snmp if SCTP is loaded.
    fn put(&mut self, out: &mut Vec<u8>) -> u8 {
        if let Err(error) = self.read("snmp") {
            return complain(&format!("cannot read the counters: {error}"), 1);
        }
        tell(self.statistics.put_pairs(out, &self.text, ""), "snmp");
        if self.read("netstat").is_ok() {
            tell(self.statistics.put_pairs(out, &self.text, ""), "netstat");
        }
        if self.read("sctp/snmp").is_ok() {
            self.statistics.put_sctp(out, &self.text);
        }
        0
    }

    /// Prints the counters of snmp6, then those for TCP, which snmp counts for both families.
    fn put6(&mut self, out: &mut Vec<u8>) -> u8 {
        if let Err(error) = self.read("snmp6") {
            return complain(&format!("cannot read the counters of IPv6: {error}"), 1);
        }
        self.statistics.put_lines6(out, &self.text);
        if let Err(error) = self.read("snmp") {
            return complain(&format!("cannot read the counters: {error}"), 1);
        }
        tell(self.statistics.put_pairs(out, &self.text, "Tcp"), "snmp");
        0
    }

    fn read(&mut self, file: &str) -> Result<(), SysError> {
        self.host.read_file(&format!("/proc/thread-self/net/{file}"), &mut self.text)
    }
}

/// Reports a garbled file. Lines printed before the error remain, and the exit code does not change.
fn tell(outcome: Result<(), GarbledFile>, file: &str) {
    if outcome.is_err() {
        complain(&format!("/proc/net/{file} is malformed: the rest is left out"), 0);
    }
}
