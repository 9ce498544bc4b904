//! The nstat face (iproute2 6.1): the counters of `netwren counters`, and their increase since the previous call,
//! which is stored in a file.
//!
//! Exit codes are nstat's: 0 for success, 255 for a wrong command line or an unusable history, 254 for an invalid
//! history; 2 for a switch that this face does not support.

mod history;
pub mod output;
mod switches;

use super::text::{self, warn};
use crate::nstat::output::NstatWriter;
use crate::strerror::strerror;
use counters::read_sockets;
use history::{CounterEntry, History, HistoryFault};
use record::rows::CounterSource;
use switches::{NstatOptions, NstatTask, Refusal};
use sys::Host;

const USAGE: &str = include_str!("usage.txt");

/// The lines after a requested usage.
const BEYOND: &str = "
This is netwren, in place of nstat: no -d, and no daemon. `netwren counters` shows what each counter means,
and also interfaces, queues and connection tracking.
";

const VERSION: &str = concat!(
    "nstat utility, iproute2-6.1.0\n",
    "the output of nstat, by netwren ",
    env!("CARGO_PKG_VERSION"),
    " without the code of iproute2\n"
);

const OLD_VERSION: &str = "nstat utility, iproute2-6.1.0\n";

/// The exit code for a wrong command line and for an unusable history.
const WRONG: u8 = 255;

/// Settings and states, which nstat leaves out.
const USELESS: &[&str] =
    &["IpForwarding", "IpDefaultTTL", "TcpRtoAlgorithm", "TcpRtoMin", "TcpRtoMax", "TcpMaxConn", "TcpCurrEstab"];

/// The switches of nstat, for completion.
pub(crate) fn switches() -> Vec<String> {
    switches::written()
}

/// Runs the face; returns the exit code.
pub(crate) fn run(call: &super::Call) -> u8 {
    match switches::parse(call.words()) {
        Ok(NstatTask::Counters(options)) => show_counters(&options),
        Ok(NstatTask::Version) => {
            text::print_bytes("nstat", if call.bug_compatible { OLD_VERSION } else { VERSION }.as_bytes(), 0)
        }
        Ok(NstatTask::Help) => {
            let beyond = if call.bug_compatible { "" } else { BEYOND };
            warn(&format!("{USAGE}{beyond}"));
            WRONG
        }
        Err(Refusal::Usage(message)) => {
            complain(&message);
            warn(USAGE);
            WRONG
        }
        Err(Refusal::Interval) => {
            complain("invalid time constant divisor");
            WRONG
        }
        Err(Refusal::Daemon) => {
            complain("`-d` is not supported: `netwren counters --watch` shows rates without a daemon");
            2
        }
    }
}

/// Shows the counters and stores them.
fn show_counters(options: &NstatOptions) -> u8 {
    let path = history::path();
    if options.reset {
        // A missing file is fine.
        let _ = std::fs::remove_file(&path);
    }
    let mut kept = None;
    if !options.ignore || !options.no_update {
        match History::open(&path, options.ignore) {
            Ok(history) => kept = Some(history),
            Err(fault) => return report(&fault),
        }
    }
    let before = kept.as_mut().and_then(History::take);
    let now = match read_counters() {
        Ok(now) => now,
        Err(error) => {
            complain(&error.to_string());
            return 1;
        }
    };
    let code = match options.no_output {
        true => 0,
        false => {
            text::print_bytes("nstat", &output_of(options, &now, before.as_deref().filter(|_| !options.ignore)), 0)
        }
    };
    if options.no_update {
        return code;
    }
    let to_keep = history::text(options, &now, before.as_deref().unwrap_or_default());
    if let Some(Err(error)) = kept.map(|history| history.replace(&to_keep)) {
        complain(&format!("ftruncate: {}", strerror(&error)));
    }
    code
}

/// The output: differences if there are previous values, else totals.
fn output_of(options: &NstatOptions, now: &[CounterEntry], before: Option<&[CounterEntry]>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = NstatWriter::begin(options.style, &mut out);
    let mut rest = before.unwrap_or_default();
    for (name, value) in now {
        let (mut shown, mut overflow) = (*value, false);
        if let Some(at) = rest.iter().position(|(known, _)| known == name) {
            let old = rest.get(at).map_or(0, |(_, old)| *old);
            (shown, overflow) = (value.saturating_sub(old), *value < old);
            rest = rest.get(at + 1..).unwrap_or_default();
        }
        if (shown > 0 || options.zeros) && options.matches(name) {
            writer.put(&mut out, name, shown, overflow);
        }
    }
    writer.end(&mut out);
    out
}

/// Reads the kernel's counters in nstat's order.
fn read_counters() -> Result<Vec<CounterEntry>, sys::SysError> {
    let host = Host::live();
    let reading = read_sockets(&host, 0)?;
    let mut all = Vec::new();
    let mut sctp = Vec::new();
    // The file is missing if SCTP is not loaded.
    if host.read_file("/proc/thread-self/net/sctp/snmp", &mut sctp).is_ok() {
        let text = String::from_utf8_lossy(&sctp);
        all.extend(text.lines().filter_map(history::entry));
    }
    for source in [CounterSource::Snmp, CounterSource::Snmp6, CounterSource::Netstat] {
        let of_source = reading.values().iter().filter(|one| one.source == source);
        let of_source = of_source.filter_map(|one| Some((one.name.text().to_owned(), u64::try_from(one.value).ok()?)));
        all.extend(of_source.filter(|(name, _)| !USELESS.contains(&name.as_str())));
    }
    Ok(all)
}

fn report(fault: &HistoryFault) -> u8 {
    match fault {
        HistoryFault::Open(error) => complain(&format!("open history file: {}", strerror(error))),
        HistoryFault::Lock(error) => complain(&format!("flock history file: {error}")),
        HistoryFault::NotOurs => {
            complain("something is so wrong with history file, that I prefer not to proceed.");
        }
        HistoryFault::GarbledFile => {
            warn("nstat.c:146: error parsing history file\n");
            return 254;
        }
    }
    WRONG
}

/// Prints `nstat: WORDS` on stderr.
fn complain(words: &str) {
    text::complain("nstat", words);
}
