//! The dropwatch 1.5 face: reads commands from standard input and prints, each second, the locations that dropped
//! packets.
//!
//! Drops are counted at the tracepoint `kfree_skb`, like `netwren drops` does, but in every namespace and including
//! routine drops. Single packets (`set alertmode packet`) and hardware drops (`set hw true`) come from the kernel's
//! drop_monitor, which runs with this run's settings; the host's settings are restored when monitoring stops.

mod monitor;
pub mod output;

use super::Call;
use ::drops::{DropOrigins, MONITOR_QUEUE};
use lookups::session::{Session, SessionTarget};
use monitor::{Monitor, MonitoringEnd};
use runtime::messages::print_message;
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
	alertmode <mode>	 - set mode to \"summary\" or \"packet\"
	trunc <len>		 - truncate packets to this length. Only applicable when \"alertmode\" is set to \"packet\"
	queue <len>		 - queue up to this many packets in the kernel. Only applicable when \"alertmode\" is set to \"packet\"
	sw <true | false>	 - monitor software drops
	hw <true | false>	 - monitor hardware drops
start				 - start capture
stop				 - stop capture
show				 - show existing configuration
stats				 - show statistics
";

/// Settings that commands change before monitoring starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DropwatchSettings {
    /// Number of lines of drops, or of packets, after which monitoring stops; 0: never.
    limit: u64,
    /// True to show each packet, false for sums.
    is_packet: bool,
    /// Bytes to copy of each packet; 0 for all.
    trunc: u32,
    /// Length of the packet queue of each CPU.
    queue: u32,
    software: bool,
    hardware: bool,
}

impl Default for DropwatchSettings {
    fn default() -> DropwatchSettings {
        let queue = MONITOR_QUEUE;
        DropwatchSettings { limit: 0, is_packet: false, trunc: 0, queue, software: false, hardware: false }
    }
}

/// The tool's exit code for all errors.
const FAILED: u8 = 1;
/// Time between checks for a signal.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum length of a line from standard input.
///
/// Bound: bytes of a line on the standard input of `dropwatch`. Beyond: the rest counts as the next line. By: the user.
const LINE_MAX: u64 = 4096;

/// The task that the switches select.
#[derive(Debug, PartialEq, Eq)]
enum DropwatchCall {
    /// Run the command prompt; true to resolve function names.
    Run(bool),
    Help,
    Methods,
    /// Fail, because the method is unknown.
    UnknownMethod(String),
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
        Some(other) => Ok(DropwatchCall::UnknownMethod(other.to_owned())),
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
        Ok(DropwatchCall::UnknownMethod(name)) => {
            print(&format!("Unknown lookup method {}\n", sys::escape_bytes(name.as_bytes())));
            FAILED
        }
        Ok(DropwatchCall::Run(with_names)) => {
            print(if with_names { "Initializing kallsyms db\n" } else { "Initializing null lookup method\n" });
            match Session::open(SessionTarget::default()) {
                Ok(session) => {
                    Prompt { session, lines: lines(), with_names, settings: DropwatchSettings::default() }.run()
                }
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
    print_message(&format!("dropwatch: {why}"));
    FAILED
}

fn print(text: &str) -> u8 {
    crate::text::print(text, FAILED)
}

/// Reads lines from standard input in a thread, until end of input.
fn lines() -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the process, because nothing else can interrupt its read.
    let reader = std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = String::new();
        while std::io::Read::take(&mut input, LINE_MAX).read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    if let Err(error) = reader {
        print_message(&format!("dropwatch: standard input cannot be read: {error}"));
    }
    receiver
}

/// The prompt and its state.
struct Prompt {
    session: Session,
    lines: Receiver<String>,
    with_names: bool,
    settings: DropwatchSettings,
}

impl Prompt {
    fn run(mut self) -> u8 {
        let has_terminal = sys::term::is_terminal(0);
        loop {
            print("dropwatch> ");
            let Some(line) = self.next_line() else {
                print("Terminating dropwatch...\n");
                break;
            };
            let line = line.trim_end_matches(['\n', '\r']);
            if !has_terminal {
                // Echo the line like a terminal.
                print(&format!("{}\n", sys::escape_bytes(line.as_bytes())));
            }
            match line {
                "start" => match self.monitor() {
                    Ok(MonitoringEnd::Stopped) => {}
                    Ok(MonitoringEnd::Interrupted) => break,
                    Err(error) => return failed(&error),
                },
                "stop" => _ = print("Deactivation requested, turning off monitoring\nGot a stop message\n"),
                "exit" => break,
                "help" => _ = print(HELP),
                line if line.starts_with("stats") => _ = print(&self.losses()),
                line => match self.settings.change(line) {
                    Ok(answer) => _ = print(&answer),
                    Err(NotBoolean) => {
                        print("invalid boolean value\n");
                        break;
                    }
                },
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

    /// The text of `stats`: packets that the kernel's drop monitor could not report since boot.
    fn losses(&self) -> String {
        match ::drops::monitor_losses(self.session.host()) {
            Ok([software, hardware]) => format!(
                "Getting statistics\nSoftware statistics:\nTail dropped: {software}\nHardware statistics:\n\
                 Tail dropped: {hardware}\n"
            ),
            Err(error) => {
                print_message(&format!("dropwatch: {error}"));
                String::new()
            }
        }
    }

    /// Shows drops until the limit, Ctrl-C, or a line that stops it.
    fn monitor(&mut self) -> Result<MonitoringEnd, String> {
        print("Enabling monitoring...\n");
        let mut monitor = Monitor::open(&self.session, self.with_names, self.settings)?;
        print("Kernel monitoring activated.\nIssue Ctrl-C to stop monitoring\n");
        monitor.run(&self.lines)
    }
}

/// A value of `set sw` or `set hw` other than true, false, 1 or 0, on which the tool exits.
#[derive(Debug, PartialEq, Eq)]
struct NotBoolean;

impl DropwatchSettings {
    /// Executes a line and returns its message. Unknown lines are ignored, as in the tool.
    fn change(&mut self, line: &str) -> Result<String, NotBoolean> {
        if line.starts_with("show") {
            let mode = if self.is_packet { "Packet" } else { "Summary" };
            return Ok(format!(
                "Getting existing configuration\nAlert mode: {mode}\nTruncation length: {}\nQueue length: {}\n",
                self.trunc, self.queue
            ));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |text: &str| text.parse().unwrap_or(0);
        Ok(match words[..] {
            ["set", "alertlimit", text] => {
                self.limit = number(text);
                format!("setting alert capture limit to {}\n", self.limit)
            }
            ["set", "alertmode", mode @ ("summary" | "packet")] => {
                self.is_packet = mode == "packet";
                "Setting alert mode\nAlert mode successfully set\n".to_owned()
            }
            ["set", "trunc", text] => {
                self.trunc = u32::try_from(number(text)).unwrap_or(u32::MAX);
                format!("Setting truncation length to {}\nTruncation length successfully set\n", self.trunc)
            }
            ["set", "sw", text] => {
                self.software = boolean(text)?;
                format!("setting software drops monitoring to {}\n", u8::from(self.software))
            }
            ["set", "hw", text] => {
                self.hardware = boolean(text)?;
                format!("setting hardware drops monitoring to {}\n", u8::from(self.hardware))
            }
            ["set", "queue", text] => {
                self.queue = u32::try_from(number(text)).unwrap_or(u32::MAX);
                format!("Setting queue length to {}\nQueue length successfully set\n", self.queue)
            }
            _ => String::new(),
        })
    }

    /// The origins of drops to monitor; software drops by default.
    fn origins(&self) -> DropOrigins {
        match (self.software, self.hardware) {
            (_, false) => DropOrigins::Software,
            (false, true) => DropOrigins::Hardware,
            (true, true) => DropOrigins::Both,
        }
    }
}

fn boolean(text: &str) -> Result<bool, NotBoolean> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(NotBoolean),
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
        assert_eq!(parse("-l bfd"), Ok(DropwatchCall::UnknownMethod("bfd".to_owned())));
        assert!(parse("-x").is_err());
    }

    #[test]
    fn settings_as_the_tool_takes_them() {
        let mut settings = DropwatchSettings::default();
        assert_eq!(settings.origins(), DropOrigins::Software);
        for (line, says) in [
            ("set alertlimit 7", "setting alert capture limit to 7\n"),
            ("set alertmode packet", "Setting alert mode\nAlert mode successfully set\n"),
            ("set alertmode none", ""),
            ("set trunc 60", "Setting truncation length to 60\nTruncation length successfully set\n"),
            ("set queue 500", "Setting queue length to 500\nQueue length successfully set\n"),
            ("set hw true", "setting hardware drops monitoring to 1\n"),
            ("sett", ""),
        ] {
            assert_eq!(settings.change(line).as_deref(), Ok(says), "{line}");
        }
        let expected =
            DropwatchSettings { limit: 7, is_packet: true, trunc: 60, queue: 500, software: false, hardware: true };
        assert_eq!((settings, settings.origins()), (expected, DropOrigins::Hardware));
        assert_eq!(settings.change("set sw 1").map(|_| settings.origins()), Ok(DropOrigins::Both));
        assert_eq!(settings.change("set sw yes"), Err(NotBoolean));
        let shown = settings.change("show").unwrap_or_default();
        assert!(shown.ends_with("Alert mode: Packet\nTruncation length: 60\nQueue length: 500\n"), "{shown}");
    }
}
