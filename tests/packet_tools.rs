//! Tools that read files of packets: tcpdump, tshark, capinfos.

use std::path::Path;
use std::process::Command;
use testkit::unpacked::Unpacked;

/// The tool, installed or unpacked below target/tools; `None`, and said so, where it is not there.
pub(crate) fn peer(tool: &str) -> Option<Command> {
    let found = Unpacked::find(tool);
    if found.is_none() {
        testkit::loud(&format!("skipped: {tool} is not installed: what it says of our files is not known"));
    }
    found.map(|found| found.command())
}

/// What the tool prints about a file; it must have nothing to say against it.
pub(crate) fn said_by(tool: &str, args: &[&str], path: &Path) -> Option<String> {
    let read = peer(tool)?.args(args).arg(path).output().unwrap();
    let said = String::from_utf8_lossy(&read.stderr).to_lowercase();
    let complains =
        ["truncated", "error", "cut short", "malformed", "isn't", "bad"].iter().any(|word| said.contains(word));
    assert!(read.status.success() && !complains, "{tool}: {said}");
    Some(String::from_utf8_lossy(&read.stdout).into_owned())
}

/// The tool reads the file and has nothing to say against it.
pub(crate) fn is_read_by(tool: &str, args: &[&str], path: &Path) {
    said_by(tool, args, path);
}
