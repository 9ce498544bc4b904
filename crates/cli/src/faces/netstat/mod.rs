//! The face of netstat (net-tools 2.10).
//!
//! The switches become a list of sockets, interfaces or routes, or a set of counters; `sinks::face::netstat` knows the bytes. Exit codes are
//! netstat's: 0, 1 for what cannot be read, 3 for a wrong switch; 2 for a switch that this face has not.

mod interfaces;
mod list;
mod programs;
mod rounds;
mod routes;
mod statistics;
mod switches;

use super::text::printable;
use crate::stdout::Stdout;
use sinks::Out;
use std::os::unix::ffi::OsStrExt;
use switches::{Asked, Refusal};

const USAGE: &str = "\
usage: netstat [-tux46] [-al] [-npeoWc]    sockets: TCP, UDP, unix; all or listening instead of connected
       netstat -r [-46] [-CF] [-neWc]      routes
       netstat -i [-aec]                   interfaces
       netstat -g [-nc]                    multicast groups, with -tux46 sockets before them
       netstat -s [-tuwS] [-4|-6]          counters of the protocols
       netstat {-h|--help|-V|--version}

  -t --tcp  -u --udp  -x --unix            these protocols (else all)
  -4 --inet  -6 --inet6  -A LIST           these address families
  -a --all  -l --listening                 all sockets; only those that wait for somebody
  -n --numeric                             numbers, no names; --numeric-hosts, -ports, -users for one kind
  -p --programs                            PID and program of the holder
  -e --extend                              user and inode
  -o --timers                              running timers
  -W --wide                                cut no address (ours never does but under --bug-compatible)
  -c --continuous                          again every second
  -s --statistics                          counters
  -r --route                               routing tables: -F table (default), -C cache, -e -ee other columns
  -i --interfaces                          interfaces that are up, -a all of them, -e a paragraph for each
  -g --groups                              memberships in multicast groups
  --bug-compatible                         first word: the old bytes where netstat is wrong

This is netwren in netstat's place; `netwren sockets --help` shows what it can do beyond it.
";

const VERSION: &str = concat!(
    "net-tools 2.10\n",
    "the output of netstat, by netwren ",
    env!("CARGO_PKG_VERSION"),
    " without the code of net-tools\n"
);

/// Runs the face; returns the exit code.
pub(crate) fn run(call: &super::Call) -> u8 {
    let words = call.args.iter().map(|word| word.as_bytes().to_vec()).collect();
    match switches::parse(words, call.bug_compatible) {
        Ok(Asked::List(list)) => list::run(&list),
        Ok(Asked::Statistics(wanted)) => statistics::run(&wanted),
        Ok(Asked::Interfaces(wanted)) => interfaces::run(&wanted),
        Ok(Asked::Routes(wanted)) => routes::run(&wanted),
        Ok(Asked::Help) => print(USAGE, 0),
        Ok(Asked::Version) => print(VERSION, 0),
        Err(refusal) => refuse(refusal),
    }
}

fn refuse(refusal: Refusal) -> u8 {
    match refusal {
        Refusal::Usage(message) => {
            if let Some(message) = message {
                complain(&message, 3);
            }
            let _ = sys::out::Out::stderr().write_all(USAGE.as_bytes());
            3
        }
        Refusal::NotHere { switch, instead } => {
            complain(&format!("`{switch}` is not built in: {instead} has it; `netwren sockets` lists sockets"), 2)
        }
        Refusal::NoSelinux => {
            let _ = sys::out::Out::stderr().write_all(b"SELinux is not enabled on this machine.\n");
            1
        }
        Refusal::UnknownFamily(name) => complain(&format!("unknown address family `{name}`"), 1),
        Refusal::NoStatistics(families) => {
            print(&format!("netstat: No statistics support for specified address family: {families}\n"), 1)
        }
    }
}

/// Prints on standard output; the exit code.
fn print(words: &str, code: u8) -> u8 {
    let mut out = Out::new(Stdout::new());
    out.buf().extend_from_slice(words.as_bytes());
    match out.flush() {
        Ok(()) | Err(record::SinkError::Closed) => code,
        Err(error) => complain(&error.to_string(), 1),
    }
}

/// Says `netstat: WORDS` on stderr; the exit code.
fn complain(words: &str, code: u8) -> u8 {
    let line = format!("netstat: {}\n", printable(words.as_bytes()));
    let _ = sys::out::Out::stderr().write_all(line.as_bytes());
    code
}
