//! Helper processes of the process that reads packets: this program, started again with the original privileges before
//! they are dropped, and connected by a socket (docs/adr/0027).

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// This program.
const PROGRAM: &str = "/proc/self/exe";

/// Starts this program under the name `name`, in the calling thread's network namespace. Returns the other end of the
/// socket that is its standard input; the process ends when it is closed.
pub fn start(name: &str, words: impl IntoIterator<Item: AsRef<OsStr>>) -> io::Result<UnixStream> {
    let (stream, other) = UnixStream::pair()?;
    let mut command = Command::new(PROGRAM);
    command.arg0(name).args(words).env_clear();
    command.stdin(OwnedFd::from(other)).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C is for the main process; this one ends with it.
    command.process_group(0).spawn()?;
    Ok(stream)
}

/// Returns the started process's end of the socket; `None` if a user started it without one.
pub fn begin(name: &str) -> Option<UnixStream> {
    let stream = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from).ok()?;
    stream.peer_addr().ok()?;
    // The name that ps(1) and similar tools show for this process.
    let _ = std::fs::write("/proc/self/comm", name);
    let _ = sys::rights::forbid_new();
    Some(stream)
}
