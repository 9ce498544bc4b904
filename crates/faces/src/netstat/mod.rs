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

use super::text::{self, printable, warn};
use lookups::session::{Session, SessionTarget};
use switches::{NetstatTask, Refusal};

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
    match switches::parse(call.words(), call.bug_compatible) {
        Ok(NetstatTask::List(list)) => with_session(|session| list::run(session, &list)),
        Ok(NetstatTask::Statistics(request)) => statistics::run(&request),
        Ok(NetstatTask::Interfaces(request)) => with_session(|session| interfaces::run(session, &request)),
        Ok(NetstatTask::Routes(request)) => with_session(|session| routes::run(session, &request)),
        Ok(NetstatTask::Help) => help(call.bug_compatible),
        Ok(NetstatTask::Version) => print(if call.bug_compatible { OLD_VERSION } else { VERSION }, 0),
        Err(refusal) => refuse(refusal, call.bug_compatible),
    }
}

fn with_session(run: impl FnOnce(&Session) -> u8) -> u8 {
    Session::open(SessionTarget::default())
        .map_or_else(|error| complain(&error.to_string(), 1), |session| run(&session))
}

fn help(bug_compatible: bool) -> u8 {
    warn(FAMILIES);
    let beyond = if bug_compatible { "" } else { BEYOND };
    print(&format!("{USAGE}{beyond}"), 0)
}

fn refuse(refusal: Refusal, bug_compatible: bool) -> u8 {
    match refusal {
        Refusal::Usage(message) => {
            if let Some(message) = message {
                complain(&message, 3);
            }
            warn(&format!("{USAGE}{FAMILIES}"));
            3
        }
        Refusal::Unsupported { switch, instead } => {
            complain(&format!("`{switch}` is not supported: {instead} replaces it; `netwren sockets` lists sockets"), 2)
        }
        Refusal::NoSelinux => {
            warn("SELinux is not enabled on this machine.\n");
            1
        }
        Refusal::UnknownFamily(name) => {
            warn(&format!("Unknown address family `{}'.\n", printable(name.as_bytes())));
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

fn print(words: &str, code: u8) -> u8 {
    text::print_bytes("netstat", words.as_bytes(), code)
}

/// Prints `netstat: WORDS` on stderr; returns the exit code.
fn complain(words: &str, code: u8) -> u8 {
    text::complain("netstat", words);
    code
}
