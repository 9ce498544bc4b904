//! A program that runs until it is interrupted; its lines are read as they arrive.

use crate::run::Ran;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A running program; it is killed on drop.
pub(crate) struct Going<L> {
    pub(crate) child: Child,
    /// Lines that have not been read yet.
    pub(crate) lines: Receiver<String>,
    /// The parsed lines so far.
    pub(crate) read: Vec<L>,
    parse: fn(String) -> L,
}

impl<L> Going<L> {
    /// Starts the program; `parse` converts each of its lines.
    pub(crate) fn spawn(mut command: Command, parse: fn(String) -> L) -> Going<L> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Going { child, lines, read: Vec::new(), parse }
    }

    /// Starts `netwren` with these columns and waits for its header; everything that happens later is shown.
    #[track_caller]
    pub(crate) fn past_header(command: Command, columns: &str, parse: fn(String) -> L) -> Going<L> {
        let mut going = Going::spawn(command, parse);
        let header = going.lines.recv_timeout(Duration::from_secs(60));
        let mut said = String::new();
        if header.is_err() {
            let _ = going.child.kill();
            let _ = going.child.stderr.take().unwrap().read_to_string(&mut said);
        }
        assert_eq!(header.as_deref(), Ok(columns.replace(',', "\t").as_str()), "{said}");
        going
    }

    /// Reads the available lines without waiting.
    pub(crate) fn take(&mut self) {
        self.read.extend(self.lines.try_iter().map(self.parse));
    }

    /// Reads until `enough` returns true for the lines so far.
    #[track_caller]
    pub(crate) fn read_until(&mut self, what: &str, mut enough: impl FnMut(&[L]) -> bool) {
        testkit::wait_until(what, || {
            self.take();
            enough(&self.read)
        });
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Interrupts the program as Ctrl-C does; returns its remaining lines, messages and exit code.
    pub(crate) fn end(mut self) -> (Vec<L>, Ran) {
        self.signal("-INT");
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        self.read.extend(self.lines.iter().map(self.parse));
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (std::mem::take(&mut self.read), Ran { stdout: String::new(), stderr, code })
    }
}

impl<L> Drop for Going<L> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
