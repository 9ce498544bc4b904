//! The process that runs commands on files, with the privileges that the writer of the files has dropped.
//!
//! A process that parses packets makes the requests, and an attacker may control it. Therefore this process runs only
//! the program named on its own command line, and only with paths that begin with the prefix given there.

use runtime::exit::Exit;
use runtime::helper_process::{Helper, put_message};
use runtime::messages::print_message;
use runtime::rights;
use runtime::rights::account;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use sys::caps::CapSet;

/// The program name that selects this process. Arguments: the program, the common prefix of all paths, and the user if
/// it differs.
pub const RUNNER: &str = "netwren-file-commands";
/// The answers: the command succeeded, or it failed.
const DONE: u8 = b'.';
pub(super) const FAILED: u8 = b'!';
/// Length of an answer.
pub(super) const ANSWER_BYTES: usize = 1;
/// Number of commands that run in parallel. Others wait in the socket, whose buffer limits them.
///
/// Bound: commands of `--rotate-command` at a time; about 200 more wait in a socket. Beyond: further commands are not
/// run; reported and counted (exit code 3). By: any sender of packets, by filling files fast.
const RUNNING_MAX: usize = 4;
/// Maximum number of failures to report; all are counted.
const REPORTED_MAX: usize = 10;
/// Longer byte sequences are not paths (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;

/// Runs commands until an empty path arrives or the main process ends, and all commands have ended.
pub fn run(mut args: impl Iterator<Item = OsString>) -> Exit {
    let (Some(program), Some(prefix)) = (args.next(), args.next()) else { return Exit::Usage };
    let user = args.next();
    // The capture has priority, as in tcpdump. If the priority cannot be lowered, the commands still run.
    let _ = sys::priority::lowest();
    let Some(main) = Helper::of_stdin() else { return Exit::Usage };
    match user.as_deref().map_or(Ok(()), become_user) {
        Ok(()) => {
            serve(&program, prefix.as_bytes(), &main);
            Exit::Ok
        }
        Err(error) => {
            print_message(&format!("commands are not run: {error}"));
            Exit::Failed
        }
    }
}

fn become_user(name: &OsStr) -> Result<(), String> {
    let needed = rights::NeededRights { account: Some(account(&name.to_string_lossy())?), ..Default::default() };
    needed.become_account()?;
    // The process keeps only that user's rights.
    sys::rights::keep_only(CapSet::default()).map(drop).map_err(|error| error.to_string())
}

fn serve(program: &OsStr, prefix: &[u8], main: &Helper) {
    let (sender, receiver) = sync_channel::<OsString>(0);
    let (receiver, failures) = (Mutex::new(receiver), Mutex::new(0));
    std::thread::scope(|scope| {
        for _ in 0..RUNNING_MAX {
            scope.spawn(|| work(program, &receiver, &failures, main));
        }
        let mut path = Vec::new();
        while main.receive(PATH_BYTES_MAX, &mut path).unwrap_or(false) && is_below_prefix(&path, prefix) {
            if sender.send(OsStr::from_bytes(&path).to_owned()).is_err() {
                break;
            }
        }
        drop(sender);
    });
}

/// True for the path of a file in the directory of `prefix`, or below it, that begins with `prefix`. An empty prefix
/// allows all paths below the current directory.
fn is_below_prefix(path: &[u8], prefix: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(prefix) else { return false };
    let leads_away =
        rest.split(|byte| *byte == b'/').any(|part| part == b"..") || prefix.is_empty() && rest.starts_with(b"/");
    !path.is_empty() && !leads_away
}

fn work(program: &OsStr, paths: &Mutex<Receiver<OsString>>, failures: &Mutex<usize>, main: &Helper) {
    loop {
        let path = paths.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(path) = path else { return };
        let fault = run_command(program, &path);
        if let Some(fault) = &fault {
            let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
            *failures += 1;
            if *failures <= REPORTED_MAX {
                print_message(&format!("{} {}: {fault}", program.to_string_lossy(), path.to_string_lossy()));
            }
        }
        // The requesting process may have ended; waiting commands still run.
        let mut answer = Vec::new();
        put_message(&mut answer, |out| out.push(if fault.is_none() { DONE } else { FAILED }));
        let _ = main.send(&answer);
    }
}

/// Runs the command; returns a description of its failure.
fn run_command(program: &OsStr, path: &OsStr) -> Option<String> {
    match Command::new(program).arg(path).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string()),
        Err(error) => Some(sys::io_error_text(&error)),
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
            assert_eq!(is_below_prefix(path.as_bytes(), b"dir/all_"), expected, "{path}");
        }
        assert!(
            is_below_prefix(b"10.pcap", b"") && !is_below_prefix(b"/etc/passwd", b"") && !is_below_prefix(b"../x", b"")
        );
    }
}
