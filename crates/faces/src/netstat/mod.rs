//! The netstat face (net-tools 2.10).
//!
//! The switches select a list of sockets, interfaces or routes, or a set of counters; `crate::netstat::output` writes
//! the bytes. Exit codes are netstat's: 0 for success, 1 for a read error, 3 for a wrong switch; 2 for a switch that
//! this face does not support.

mod interfaces;
mod list;
pub mod output;
mod programs;
mod rounds;
mod routes;
mod statistics;
mod switches;

use super::text::printable;
use runtime::stdout::Stdout;
use sinks::Out;
use std::os::unix::ffi::OsStrExt;
use switches::{Asked, Refusal};

/// The usage of net-tools 2.10, up to the list of families.
const USAGE: &str = include_str!("usage.txt");

/// The list of families, which netstat writes to stderr even if the usage was requested.
const FAMILIES: &str = "    inet (DARPA Internet) inet6 (IPv6) ax25 (AMPR AX.25)\x20
    netrom (AMPR NET/ROM) rose (AMPR ROSE) ipx (Novell IPX)\x20
    ddp (Appletalk DDP) x25 (CCITT X.25)\x20
";

/// The lines after a requested usage.
const BEYOND: &str = "
This is netwren, in place of netstat: TCP, UDP, UDP-Lite, raw, SCTP and unix sockets, interfaces, routes, groups and
counters; no -M, no --ax25, --ipx, --netrom. First word --bug-compatible: reproduces errors of netstat.
`netwren sockets --help` shows more features.
";

const VERSION: &str = concat!(
    "net-tools 2.10\n",
    "the output of netstat, by netwren ",
    env!("CARGO_PKG_VERSION"),
    " without the code of net-tools\n"
);

/// The version text of net-tools 2.10 in Debian.
const OLD_VERSION: &str = "\
net-tools 2.10
Fred Baumgarten, Alan Cox, Bernd Eckenfels, Phil Blundell, Tuan Hoang, Brian Micek and others
+NEW_ADDRT +RTF_IRTT +RTF_REJECT +FW_MASQUERADE +I18N +SELINUX
AF: (inet) +UNIX +INET +INET6 +IPX +AX25 +NETROM +X25 +ATALK +ECONET +ROSE -BLUETOOTH
HW:  +ETHER +ARC +SLIP +PPP +TUNNEL -TR +AX25 +NETROM +X25 +FR +ROSE +ASH +SIT +FDDI +HIPPI +HDLC/LAPB +EUI64\x20
";

/// The switches of netstat, for completion.
pub(crate) fn switches() -> Vec<String> {
    switches::written()
}

/// Runs the face; returns the exit code.
pub(crate) fn run(call: &super::Call) -> u8 {
    let words = call.args.iter().map(|word| word.as_bytes().to_vec()).collect();
    match switches::parse(words, call.bug_compatible) {
        Ok(Asked::List(list)) => list::run(&list),
        Ok(Asked::Statistics(wanted)) => statistics::run(&wanted),
        Ok(Asked::Interfaces(wanted)) => interfaces::run(&wanted),
        Ok(Asked::Routes(wanted)) => routes::run(&wanted),
        Ok(Asked::Help) => help(call.bug_compatible),
        Ok(Asked::Version) => print(if call.bug_compatible { OLD_VERSION } else { VERSION }, 0),
        Err(refusal) => refuse(refusal, call.bug_compatible),
    }
}

fn help(bug_compatible: bool) -> u8 {
    let _ = sys::out::Out::stderr().write_all(FAMILIES.as_bytes());
    let beyond = if bug_compatible { "" } else { BEYOND };
    print(&format!("{USAGE}{beyond}"), 0)
}

fn refuse(refusal: Refusal, bug_compatible: bool) -> u8 {
    match refusal {
        Refusal::Usage(message) => {
            if let Some(message) = message {
                complain(&message, 3);
            }
            let _ = sys::out::Out::stderr().write_all(format!("{USAGE}{FAMILIES}").as_bytes());
            3
        }
        Refusal::NotHere { switch, instead } => {
            complain(&format!("`{switch}` is not supported: {instead} replaces it; `netwren sockets` lists sockets"), 2)
        }
        Refusal::NoSelinux => {
            let _ = sys::out::Out::stderr().write_all(b"SELinux is not enabled on this machine.\n");
            1
        }
        Refusal::UnknownFamily(name) => {
            let line = format!("Unknown address family `{}'.\n", printable(name.as_bytes()));
            let _ = sys::out::Out::stderr().write_all(line.as_bytes());
            1
        }
        // The kernel has had this file only until 2.4.
        Refusal::NoMasquerade => {
            complain("no support for `ip_masquerade' on this system.", 1);
            if !bug_compatible {
                complain("`netwren conntrack -L --any-nat` lists what is translated", 1);
            }
            1
        }
        Refusal::NoStatistics(families) => {
            print(&format!("netstat: No statistics support for specified address family: {families}\n"), 1)
        }
    }
}

/// Prints to standard output; returns the exit code.
fn print(words: &str, code: u8) -> u8 {
    let mut out = Out::new(Stdout::new());
    out.buf().extend_from_slice(words.as_bytes());
    match out.flush() {
        Ok(()) | Err(record::SinkError::Closed) => code,
        Err(error) => complain(&error.to_string(), 1),
    }
}

/// Prints `netstat: WORDS` on stderr; returns the exit code.
fn complain(words: &str, code: u8) -> u8 {
    let line = format!("netstat: {}\n", printable(words.as_bytes()));
    let _ = sys::out::Out::stderr().write_all(line.as_bytes());
    code
}
