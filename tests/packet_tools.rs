//! External tools that read packet files: tcpdump, tshark, capinfos.

use std::path::Path;
use std::process::Command;
use testkit::unpacked::UnpackedProgram;

/// The tool, installed or unpacked below target/tools; if it is missing, prints a message and returns `None`.
pub(crate) fn peer(tool: &str) -> Option<Command> {
    let found = UnpackedProgram::find(tool);
    if found.is_none() {
        testkit::print_loud(&format!("skipped: {tool} is not installed: what it says of our files is not known"));
    }
    found.map(|found| found.command())
}

/// The tool's output for a file; checks that the tool reports no error.
pub(crate) fn said_by(tool: &str, args: &[&str], path: &Path) -> Option<String> {
    let read = peer(tool)?.args(args).arg(path).output().unwrap();
    let said = String::from_utf8_lossy(&read.stderr).to_lowercase();
    let complains =
        ["truncated", "error", "cut short", "malformed", "isn't", "bad"].iter().any(|word| said.contains(word));
    assert!(read.status.success() && !complains, "{tool}: {said}");
    Some(String::from_utf8_lossy(&read.stdout).into_owned())
}

/// Checks that the tool reads the file without errors.
pub(crate) fn is_read_by(tool: &str, args: &[&str], path: &Path) {
    said_by(tool, args, path);
}
