//! Faces: the command lines, output bytes and exit codes of the old tools.
//!
//! A face is thin: it parses its switches into the same demand that the native command makes and hands typed rows to a
//! writer, which is in the `output` module of the tool. Nothing here reads the kernel.
#![forbid(unsafe_code)]

pub mod conntrack;
pub mod dropwatch;
mod getopt;
pub mod lstf;
pub mod netstat;
pub mod nstat;
mod pieces;
mod quoted;
mod read;
mod selinux;
pub mod ss;
mod strerror;
pub mod tcpdump;
mod text;
pub mod ulogd;

use shipping::ShipRequest;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Runs `netwren log` with these arguments and outputs until a signal ends it; true if nothing failed. The program
/// provides it, because the ulogd face only translates a configuration.
pub type RunLog = fn(Vec<OsString>, &ShipRequest) -> bool;

/// The command line of a face.
pub struct Call {
    /// The arguments after the face's name, without a leading `--bug-compatible`.
    pub(crate) args: Vec<OsString>,
    /// True if the face reproduces the old tool's known defects: `--bug-compatible` directly after the face's name, or
    /// `NETWREN_BUG_COMPATIBLE=1` for links that old scripts call.
    pub(crate) bug_compatible: bool,
    /// Ships log records for the ulogd face.
    pub(crate) run_log: RunLog,
}

impl Call {
    /// The arguments as bytes.
    pub(crate) fn words(&self) -> Vec<Vec<u8>> {
        self.args.iter().map(|word| word.as_bytes().to_vec()).collect()
    }
}

/// An old tool.
pub struct Face {
    /// The tool's name.
    pub name: &'static str,
    run: fn(&Call) -> u8,
    switches: fn() -> Vec<String>,
    /// Checks a command line; `None` for tools that hints never propose.
    accepts: Option<fn(&Call) -> bool>,
}

/// All faces.
pub const FACES: &[Face] = &[
    Face { name: "ss", run: ss::run, switches: ss::switches, accepts: Some(ss::accepts) },
    Face { name: "netstat", run: netstat::run, switches: netstat::switches, accepts: None },
    Face { name: "nstat", run: nstat::run, switches: nstat::switches, accepts: None },
    Face { name: "lstf", run: lstf::run, switches: lstf::switches, accepts: Some(lstf::accepts) },
    Face { name: "conntrack", run: conntrack::run, switches: conntrack::switches, accepts: Some(conntrack::accepts) },
    Face { name: "tcpdump", run: tcpdump::run, switches: tcpdump::switches, accepts: Some(tcpdump::accepts) },
    Face { name: "ulogd", run: ulogd::run, switches: ulogd::switches, accepts: None },
    Face { name: "dropwatch", run: dropwatch::run, switches: dropwatch::switches, accepts: None },
];

/// Returns the face with this name.
pub fn find(name: &str) -> Option<&'static Face> {
    FACES.iter().find(|face| face.name == name)
}

impl Face {
    /// Runs the face with the arguments after its name; returns its tool's exit code.
    pub fn run(&self, args: impl Iterator<Item = OsString>, run_log: RunLog) -> u8 {
        let mut args: Vec<OsString> = args.collect();
        let mut bug_compatible = std::env::var_os("NETWREN_BUG_COMPATIBLE").is_some_and(|v| v == "1");
        if args.first().is_some_and(|a| a == "--bug-compatible") {
            args.remove(0);
            bug_compatible = true;
        }
        (self.run)(&Call { args, bug_compatible, run_log })
    }

    /// Returns the tool's switches, for completion.
    pub fn switches(&self) -> Vec<String> {
        (self.switches)()
    }

    /// True if the face accepts these arguments.
    pub fn accepts(&self, args: Vec<OsString>) -> bool {
        let call = Call { args, bug_compatible: false, run_log: |_, _| false };
        self.accepts.is_some_and(|accepts| accepts(&call))
    }
}
