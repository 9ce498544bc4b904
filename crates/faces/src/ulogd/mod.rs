//! The ulogd 2.0.8 face: ships the stacks of an ulogd.conf that begin with NFLOG, like `netwren log --to`.
//!
//! Unsupported parts of the file are reported with their line numbers, and nothing is started. Records are written in
//! batches, and none is lost while a receiver is unavailable for a short time. docs/ulogd.md lists the differences.

mod file;
mod settings;
mod stacks;
mod switches;

use super::Call;
use super::text::print;
use file::Complaint;
use runtime::local_time::local_time;
use runtime::messages::print_message;
use shipping::ShipRequest;
use shipping::UlogdTuning;
use stacks::Output;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use switches::UlogdCall;
use sys::infile;
use sys::outfile::{Contents, FilePlace, OutfileOptions};

const HELP: &str = "\
Parameters:
	-h --help	This help page
	-V --version	Print version information
	-v --verbose	Accepted; messages go to stderr
	-l --loglevel	Accepted; there are no levels
	-c --configfile	Use alternative Configfile (/etc/ulogd.conf)
	-p --pidfile	Record the PID in file

This is netwren, in place of ulogd 2.0.8: NFLOG stacks that end in LOGEMU, SYSLOG, JSON, GPRINT, OPRINT, XML,
PCAP, SQLITE3 or PGSQL.
It stays in the foreground. `netwren log --to` ships the same without a file; `netwren ulogd --bug-compatible …`
reproduces errors of ulogd.
";

const VERSION: &str = concat!("ulogd Version 2.0.8 (netwren ", env!("CARGO_PKG_VERSION"), ")\n");

/// Bound: bytes of the configuration of `ulogd -c`. Beyond: the file is refused. By: the author of the file.
const CONFIG_MAX: u64 = 1 << 20;
/// The tool's exit code for all errors.
const FAILED: u8 = 1;

/// The switches of ulogd, for completion.
pub(crate) fn switches() -> Vec<String> {
    switches::written()
}

/// Runs the face; returns the exit code.
pub(crate) fn run(call: &Call) -> u8 {
    match switches::parse(call.words()) {
        Ok(UlogdCall::Help) => print(HELP, FAILED),
        Ok(UlogdCall::Version) => print(VERSION, FAILED),
        Ok(UlogdCall::Run { config, pid_file }) => {
            run_file(&config, pid_file.as_deref(), call).unwrap_or_else(|messages| {
                messages.iter().for_each(|message| print_message(&format!("ulogd: {message}")));
                FAILED
            })
        }
        Err(message) => {
            print_message(&format!("ulogd: {message}"));
            FAILED
        }
    }
}

fn run_file(config: &Path, pid_file: Option<&Path>, call: &Call) -> Result<u8, Vec<String>> {
    let shown = sys::escape_bytes(config.as_os_str().as_bytes());
    let (bytes, _) =
        infile::read_trusted(config, CONFIG_MAX).map_err(|error| vec![format!("cannot read {shown}: {error}")])?;
    let text = String::from_utf8(bytes).map_err(|_| vec![format!("cannot read {shown}: it is not UTF-8 text")])?;
    let now = i64::try_from(sys::clock::wall_ns() / 1_000_000_000).ok().and_then(local_time);
    let now = now.ok_or_else(|| vec!["the local time is unknown".to_owned()])?;
    let with_lines = |complaints: Vec<Complaint>| {
        complaints.iter().map(|complaint| format!("{shown}:{}: {}", complaint.line, complaint.text)).collect::<Vec<_>>()
    };
    let outputs = stacks::outputs(&text, &now).map_err(with_lines)?;
    let pid_file =
        pid_file.map(|file| write_pid(file).map_err(|error| vec![format!("cannot write {}: {error}", file.display())]));
    let pid_file = pid_file.transpose()?;
    let code = ship(outputs, call);
    if let Some(file) = pid_file {
        // The file may already have been removed.
        let _ = file.folder().remove(file.name());
    }
    Ok(code)
}

/// Writes the process id to a file and returns its place, to remove it at the end.
fn write_pid(path: &Path) -> io::Result<FilePlace> {
    let place = FilePlace::find(path)?;
    let mut file = place.open(OutfileOptions::regular(Contents::Emptied))?;
    writeln!(file, "{}", std::process::id())?;
    Ok(place)
}

/// Ships records until a signal ends the run.
fn ship(outputs: Vec<Output>, call: &Call) -> u8 {
    let mut groups: Vec<u16> = outputs.iter().map(|output| output.tuning.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let groups: Vec<String> = groups.iter().map(u16::to_string).collect();
    // The tool copies whole packets.
    let words = ["--group", &groups.join(","), "--copy", "65535"].map(OsString::from).to_vec();
    let tuned =
        |Output { target, tuning }: Output| (target, UlogdTuning { bug_compatible: call.bug_compatible, ..tuning });
    let ship = ShipRequest::tuned(outputs.into_iter().map(tuned).collect());
    if (call.run_log)(words, &ship) { 0 } else { FAILED }
}
