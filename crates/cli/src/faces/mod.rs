//! Faces: the command lines, output bytes and exit codes of the old tools.
//!
//! A face is thin: it parses its switches into the same demand that the native command makes and hands typed rows to a
//! writer in `sinks::face`. Nothing here reads the kernel.

pub(crate) mod conntrack;
pub(crate) mod dropwatch;
mod getopt;
pub(crate) mod lstf;
pub(crate) mod netstat;
pub(crate) mod nstat;
mod read;
mod selinux;
pub(crate) mod ss;
pub(crate) mod tcpdump;

mod text;
pub(crate) mod ulogd;

use std::ffi::OsString;

/// The command line of a face.
pub(crate) struct Call {
    /// The arguments after the face's name, without a leading `--bug-compatible`.
    pub(crate) args: Vec<OsString>,
    /// True if the face reproduces the old tool's known defects: `--bug-compatible` directly after the face's name, or
    /// `NETWREN_BUG_COMPATIBLE=1` for links that old scripts call.
    pub(crate) bug_compatible: bool,
}

/// Runs a face; returns its tool's exit code.
pub(crate) type Run = fn(&Call) -> u8;

/// The switches of a face's tool, for completion.
type Switches = fn() -> Vec<String>;

/// The faces, with the name of the tool that each replaces.
const FACES: &[(&str, Run, Switches)] = &[
    ("ss", ss::run, ss::switches),
    ("netstat", netstat::run, netstat::switches),
    ("nstat", nstat::run, nstat::switches),
    ("lstf", lstf::run, lstf::switches),
    ("conntrack", conntrack::run, conntrack::switches),
    ("tcpdump", tcpdump::run, tcpdump::switches),
    ("ulogd", ulogd::run, ulogd::switches),
    ("dropwatch", dropwatch::run, dropwatch::switches),
];

/// True if the face called `name` accepts these arguments. Returns false for faces that hints never propose.
pub(crate) fn accepts(name: &str, args: Vec<OsString>) -> bool {
    let call = Call { args, bug_compatible: false };
    match name {
        "ss" => ss::accepts(&call),
        "conntrack" => conntrack::accepts(&call),
        "tcpdump" => tcpdump::accepts(&call),
        "lstf" => lstf::accepts(&call),
        _ => false,
    }
}

/// The face called `name`, if there is one.
pub(crate) fn find(name: &str) -> Option<Run> {
    FACES.iter().find(|(face, ..)| *face == name).map(|(_, run, _)| *run)
}

/// Names of all faces.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FACES.iter().map(|(name, ..)| *name)
}

/// The switches of the face called `name`.
pub(crate) fn switches(name: &str) -> Vec<String> {
    FACES.iter().find(|(face, ..)| *face == name).map(|(_, _, switches)| switches()).unwrap_or_default()
}

impl Call {
    /// Makes a call from the words after the face's name.
    pub(crate) fn new(args: impl Iterator<Item = OsString>) -> Call {
        let mut args: Vec<OsString> = args.collect();
        let mut bug_compatible = std::env::var_os("NETWREN_BUG_COMPATIBLE").is_some_and(|v| v == "1");
        if args.first().is_some_and(|a| a == "--bug-compatible") {
            args.remove(0);
            bug_compatible = true;
        }
        Call { args, bug_compatible }
    }
}
