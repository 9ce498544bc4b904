//! Runs a command on each file once it is complete.
//!
//! A helper process, [`super::command_runner`], starts the commands. It is started before this process drops its
//! privileges. Packets never wait for it.

use super::command_runner::{ANSWER_BYTES, FAILED, RUNNER};
use runtime::helper_process::{EMPTY_MESSAGE, Helper, Inbox, put_message};
use runtime::messages::print_message;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum wait for commands at the end.
///
/// Bound: at the end for running commands (`capture_files::replay_commands_that_hang_hold_nothing_up`). Beyond: the
/// commands continue on their own. By: the command.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which the wait is reported.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// Bytes of answers to receive at a time.
const ENDS_BYTES: usize = 512;

/// Counts of the commands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CommandsReport {
    /// Number of files for which a command was requested.
    pub asked: u64,
    /// Commands that could not be started, or ended with an error.
    pub failed: u64,
    /// Commands that were not started because too many were waiting.
    pub not_run: u64,
    /// Commands that have not ended yet.
    pub unfinished: u64,
}

/// The process that runs the commands.
pub struct FileCommands {
    helper: Helper,
    inbox: Inbox,
    asked: u64,
    not_run: u64,
    /// Number of commands that have ended, including those that failed.
    ended: u64,
    failed: u64,
}

/// The program to run on files.
pub struct CommandRequest<'c> {
    /// The program, which gets the file's path as its only argument.
    pub program: &'c OsStr,
    /// The common prefix of the files' paths: the program runs with no other path.
    pub prefix: &'c Path,
    /// The user to run it as; None for the caller.
    pub user: Option<&'c str>,
}

impl FileCommands {
    /// Starts the process; must be called before privileges are dropped.
    pub fn start(request: &CommandRequest<'_>) -> io::Result<FileCommands> {
        let words = [request.program, request.prefix.as_os_str()].into_iter().chain(request.user.map(OsStr::new));
        let helper = Helper::start_with_output(RUNNER, words)?;
        helper.forbid_waiting()?;
        let inbox = Inbox::new(ENDS_BYTES, ANSWER_BYTES);
        Ok(FileCommands { helper, inbox, asked: 0, not_run: 0, ended: 0, failed: 0 })
    }

    /// Requests the command for this file. Returns immediately.
    pub fn run_with(&mut self, path: &Path) {
        self.take_ends();
        self.asked += 1;
        let mut request = Vec::new();
        put_message(&mut request, |out| out.extend_from_slice(path.as_os_str().as_bytes()));
        let why = match self.helper.send(&request) {
            Ok(()) => return,
            Err(error) if error.kind() != ErrorKind::WouldBlock => sys::io_error_text(&error),
            Err(_) => "too many are waiting for others to end".to_owned(),
        };
        self.not_run += 1;
        if self.not_run == 1 {
            print_message(&format!("{}: the command is not run: {why}", path.display()));
        }
    }

    /// Counts commands that have ended; false once the process has ended.
    fn take_ends(&mut self) -> bool {
        loop {
            match self.inbox.fill(&self.helper) {
                Ok(0) => return false,
                Ok(_) => {
                    while let Ok(Some(end)) = self.inbox.take() {
                        self.ended += 1;
                        self.failed += u64::from(end == [FAILED]);
                    }
                }
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    /// Waits at most ten seconds for all commands to end; the others continue.
    pub fn finish(mut self) -> CommandsReport {
        // An empty name ends the requests.
        let _ = self.helper.send(&EMPTY_MESSAGE);
        let (begin, mut has_said) = (Instant::now(), false);
        let unfinished = loop {
            let is_there = self.take_ends();
            let unfinished = self.asked.saturating_sub(self.not_run + self.ended);
            if unfinished == 0 || !is_there || begin.elapsed() > END_TIMEOUT {
                break unfinished;
            }
            if !has_said && begin.elapsed() > REPORT_AFTER {
                has_said = true;
                let seconds = END_TIMEOUT.as_secs();
                print_message(&format!("waiting up to {seconds} s for {unfinished} commands that are still running"));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        CommandsReport { asked: self.asked, failed: self.failed, not_run: self.not_run, unfinished }
    }
}
