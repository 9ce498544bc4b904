//! The process that runs commands with files: it has the rights that the writer of the files has given up.
//!
//! It is asked by a process that parses packets, which may be led to ask for anything: it runs one program, which its
//! own command line names, and with no path but one that begins as its command line says.

use crate::messages::say;
use crate::rights::account;
use crate::{Exit, rights};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use sys::caps::CapSet;

/// The name by which this program is called to be that process. Arguments: the program, the beginning of all paths, and
/// the user if it is another.
pub(crate) const RUNNER: &str = "netwren-file-commands";
/// The byte that ends a path on the socket.
pub(super) const END: u8 = 0;
/// The answers: the command has ended well, or has not.
const DONE: u8 = b'.';
pub(super) const FAILED: u8 = b'!';
/// How many run at a time. Others wait in the socket, whose buffer is the bound.
const RUNNING_MAX: usize = 4;
/// So many failures are said; all are counted.
const SAID_MAX: usize = 10;
/// Longer ones are no paths (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;

/// Runs commands until there is no path any more and all have ended.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> Exit {
    let (Some(program), Some(prefix)) = (args.next(), args.next()) else { return Exit::Usage };
    let user = args.next();
    // The capture comes first, as with tcpdump. Where that is not allowed they run all the same.
    let _ = sys::priority::lowest();
    let begun = user.as_deref().map_or(Ok(()), become_user).and_then(|()| {
        let socket = std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
        let socket = UnixStream::from(socket);
        let answers = socket.try_clone().map_err(|error| error.to_string())?;
        socket.set_nonblocking(false).map(|()| (socket, answers)).map_err(|error| error.to_string())
    });
    match begun {
        Ok((paths, answers)) => {
            serve(&program, prefix.as_bytes(), paths, &answers);
            Exit::Ok
        }
        Err(error) => {
            say(&format!("commands are not run: {error}"));
            Exit::Failed
        }
    }
}

fn become_user(name: &OsStr) -> Result<(), String> {
    let needed = rights::NeededRights { account: Some(account(&name.to_string_lossy())?), ..Default::default() };
    needed.become_account()?;
    // That user's rights, and none of ours.
    sys::rights::keep_only(CapSet::default()).map(drop).map_err(|error| error.to_string())
}

fn serve(program: &OsStr, prefix: &[u8], paths: UnixStream, answers: &UnixStream) {
    let (sender, receiver) = sync_channel::<OsString>(0);
    let (receiver, failures) = (Mutex::new(receiver), Mutex::new(0));
    std::thread::scope(|scope| {
        for _ in 0..RUNNING_MAX {
            scope.spawn(|| work(program, &receiver, &failures, answers));
        }
        let mut paths = BufReader::new(paths);
        let mut path = Vec::new();
        loop {
            path.clear();
            let read = std::io::Read::take(&mut paths, PATH_BYTES_MAX as u64 + 1).read_until(END, &mut path);
            let is_whole = path.pop() == Some(END);
            if read.is_err() || !is_whole || !is_ours(&path, prefix) {
                break;
            }
            if sender.send(OsStr::from_bytes(&path).to_owned()).is_err() {
                break;
            }
        }
        drop(sender);
    });
}

/// True for the path of a file in the directory of `prefix`, or below it, with this beginning; an empty one stands for
/// all below the current directory.
fn is_ours(path: &[u8], prefix: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(prefix) else { return false };
    let leads_away =
        rest.split(|byte| *byte == b'/').any(|part| part == b"..") || prefix.is_empty() && rest.starts_with(b"/");
    !path.is_empty() && !leads_away
}

fn work(program: &OsStr, paths: &Mutex<Receiver<OsString>>, failures: &Mutex<usize>, mut answers: &UnixStream) {
    loop {
        let path = paths.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(path) = path else { return };
        let fault = run_one(program, &path);
        if let Some(fault) = &fault {
            let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
            *failures += 1;
            if *failures <= SAID_MAX {
                say(&format!("{} {}: {fault}", program.to_string_lossy(), path.to_string_lossy()));
            }
        }
        // Who asked may have ended: what waits is run all the same.
        let _ = answers.write(&[if fault.is_none() { DONE } else { FAILED }]);
    }
}

/// Failures of a command.
fn run_one(program: &OsStr, path: &OsStr) -> Option<String> {
    match Command::new(program).arg(path).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string()),
        Err(error) => Some(super::words_of(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_ours_are_commands_run_with() {
        for (path, expected) in [
            ("dir/all_1.pcap", true),
            ("dir/all_", true),
            ("dir/other", false),
            ("dir/all_/../../etc/passwd", false),
            ("dir/all_/..", false),
            ("dir/all_/x", true),
            ("/etc/passwd", false),
            ("", false),
        ] {
            assert_eq!(is_ours(path.as_bytes(), b"dir/all_"), expected, "{path}");
        }
        assert!(is_ours(b"10.pcap", b"") && !is_ours(b"/etc/passwd", b"") && !is_ours(b"../x", b""));
    }
}
