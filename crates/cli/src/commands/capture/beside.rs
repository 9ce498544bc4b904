//! Processes beside the one that reads packets: this program again, with the rights that it has before it gives them
//! up, at the other end of a socket (docs/adr/0027).

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// This program.
const PROGRAM: &str = "/proc/self/exe";

/// Starts the process that is called `name`, in the calling thread's network namespace; returns our end of the socket
/// that is its standard input. It ends by itself once that is closed.
pub(super) fn start(name: &str, words: impl IntoIterator<Item: AsRef<OsStr>>) -> io::Result<UnixStream> {
    let (stream, other) = UnixStream::pair()?;
    let mut command = Command::new(PROGRAM);
    command.arg0(name).args(words).env_clear();
    command.stdin(OwnedFd::from(other)).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C is for us: it ends when we do.
    command.process_group(0).spawn()?;
    Ok(stream)
}

/// In the started process: its end of the socket. `None` if there is none: somebody has called it by hand.
pub(super) fn begin(name: &str) -> Option<UnixStream> {
    let stream = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from).ok()?;
    stream.peer_addr().ok()?;
    // Who looks at processes shall see what this one is.
    let _ = std::fs::write("/proc/self/comm", name);
    let _ = sys::rights::forbid_new();
    Some(stream)
}
