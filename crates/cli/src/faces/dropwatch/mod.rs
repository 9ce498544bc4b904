//! The face of dropwatch 1.5: commands on standard input, and each second the places that dropped packets.
//!
//! The kernel's drop_monitor is not asked: drops are counted at the tracepoint `kfree_skb`, as `netwren drops` counts
//! them, of every namespace and with those that are routine. Alerts with packets (`set alertmode`, `set trunc`,
//! `set queue`) and of hardware are not here; `netwren drops -w FILE` has packets.

mod monitor;

use super::Call;
use crate::exit::Exit;
use crate::messages::say;
use crate::output;
use crate::session::{Session, SessionTarget};
use monitor::{Monitor, MonitoringEnd};
use std::ffi::OsString;
use std::io::BufRead;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

const USAGE: &str = "dropwatch [-l|--lmethod <method | list>]\n";
const METHODS: &str = "Available lookup methods:\nkas - use /proc/kallsyms\n";
const HELP: &str = "\
Command Syntax:
exit				 - Quit dropwatch
help				 - Display this message
set:
	alertlimit <number>	 - capture only this many alert packets
start				 - start capture
stop				 - stop capture
";

/// The tool's exit code for everything that goes wrong.
const FAILED: u8 = 1;
/// Time between two looks for a signal.
const LOOK: Duration = Duration::from_millis(50);
/// Longest line of standard input that is looked at.
const LINE_MAX: u64 = 4096;

/// Task that the switches ask for.
#[derive(Debug, PartialEq, Eq)]
enum DropwatchCall {
    /// Commands are read; true: with the names of functions.
    Run(bool),
    Help,
    Methods,
}

fn parse(args: &[OsString]) -> Result<DropwatchCall, String> {
    let mut words = args.iter().map(|word| word.to_string_lossy());
    let mut method = None;
    while let Some(word) = words.next() {
        let joined = word.strip_prefix("--lmethod=").or_else(|| word.strip_prefix("-l"));
        match (&*word, joined) {
            ("-h" | "--help", _) => return Ok(DropwatchCall::Help),
            ("-l" | "--lmethod", _) => method = words.next().map(|word| word.into_owned()),
            (_, Some(joined)) => method = Some(joined.to_owned()),
            _ => return Err(format!("unknown option {word}")),
        }
    }
    match method.as_deref() {
        None => Ok(DropwatchCall::Run(false)),
        Some("list") => Ok(DropwatchCall::Methods),
        Some("kas") => Ok(DropwatchCall::Run(true)),
        Some(other) => Err(format!("Unknown lookup method {other}")),
    }
}

/// The switches of dropwatch, for completion.
pub(crate) fn switches() -> Vec<String> {
    ["--lmethod", "-l", "--help", "-h"].map(str::to_owned).to_vec()
}

/// Runs the face; returns the exit code.
pub(crate) fn run(call: &Call) -> u8 {
    match parse(&call.args) {
        Ok(DropwatchCall::Help) => print(USAGE),
        Ok(DropwatchCall::Methods) => print(METHODS),
        Ok(DropwatchCall::Run(with_names)) => {
            if with_names {
                print("Initializing kallsyms db\n");
            }
            match Session::open(SessionTarget::default()) {
                Ok(session) => Prompt { session, lines: lines(), with_names, limit: 0 }.run(),
                Err(error) => failed(&error.to_string()),
            }
        }
        Err(wrong) => {
            print(USAGE);
            failed(&wrong)
        }
    }
}

fn failed(why: &str) -> u8 {
    say(&format!("dropwatch: {why}"));
    FAILED
}

fn print(text: &str) -> u8 {
    if output::print(text) == Exit::Ok { 0 } else { FAILED }
}

/// Lines of standard input, until it ends.
fn lines() -> Receiver<String> {
    let (tell, told) = mpsc::channel();
    // It ends with the process: nothing else can end a read.
    let reader = std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = String::new();
        while std::io::Read::take(&mut input, LINE_MAX).read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            if tell.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    if let Err(error) = reader {
        say(&format!("dropwatch: standard input cannot be read: {error}"));
    }
    told
}

/// The prompt, and what it knows.
struct Prompt {
    session: Session,
    lines: Receiver<String>,
    with_names: bool,
    /// Lines of drops after which monitoring stops; 0: never.
    limit: u64,
}

impl Prompt {
    fn run(mut self) -> u8 {
        let has_terminal = sys::term::is_terminal(0);
        loop {
            if has_terminal {
                print("dropwatch> ");
            }
            let Some(line) = self.next_line() else {
                print("Terminating dropwatch...\n");
                break;
            };
            match line.trim() {
                "start" => match self.monitor() {
                    Ok(MonitoringEnd::Stopped) => {}
                    Ok(MonitoringEnd::Interrupted) => break,
                    Err(error) => return failed(&error),
                },
                "stop" => _ = print("Deactivation requested, turning off monitoring\nGot a stop message\n"),
                "exit" => break,
                "help" => _ = print(HELP),
                other => self.set(other),
            }
        }
        print("Shutting down ...\n")
    }

    /// Waits for a line; `None` at the end of input, or after Ctrl-C.
    fn next_line(&self) -> Option<String> {
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return Some(line),
                Err(RecvTimeoutError::Timeout) if !self.session.interrupted() => {}
                Err(_) => return None,
            }
        }
    }

    /// `set alertlimit N`; other lines are passed over, as in the tool.
    fn set(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("set ").map(str::trim) else { return };
        if let Some(number) = rest.strip_prefix("alertlimit") {
            self.limit = number.trim().parse().unwrap_or(0);
            print(&format!("setting alert capture limit to {}\n", self.limit));
        } else {
            say(&format!("dropwatch: `set {rest}` is not here: netwren drops --help has more"));
        }
    }

    /// Shows drops until the limit, Ctrl-C, or a line that asks for the end.
    fn monitor(&mut self) -> Result<MonitoringEnd, String> {
        print("Enabling monitoring...\n");
        let mut monitor = Monitor::open(&self.session, self.with_names)?;
        print("Kernel monitoring activated.\nIssue Ctrl-C to stop monitoring\n");
        monitor.run(self.limit, &self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_the_tool() {
        let parse = |line: &str| parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        for (line, asked) in [
            ("", DropwatchCall::Run(false)),
            ("-l kas", DropwatchCall::Run(true)),
            ("-lkas", DropwatchCall::Run(true)),
            ("--lmethod=kas", DropwatchCall::Run(true)),
            ("--lmethod list", DropwatchCall::Methods),
            ("-h", DropwatchCall::Help),
        ] {
            assert_eq!(parse(line), Ok(asked), "{line}");
        }
        assert_eq!(parse("-l bfd"), Err("Unknown lookup method bfd".to_owned()));
        assert!(parse("-x").is_err());
    }
}
