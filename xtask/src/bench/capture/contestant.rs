//! Runs a capturing program: starts it, waits until it listens, ends it and reads its final figures.

use super::super::live::on_cpu_ns;
use anyhow::{Context, Result, ensure};
use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use testkit::netns::Lab;

use super::load::IFACE;

/// A program and its arguments.
#[derive(Clone)]
pub(super) struct Contestant {
    /// The label in the report: without the path of our binary and without options that only this bench needs.
    pub(super) label: String,
    pub(super) program: String,
    pub(super) args: Vec<String>,
}

impl Contestant {
    /// netwren with these arguments; `IFACE` is replaced by the interface.
    pub(super) fn ours(binary: &Path, words: &str) -> Contestant {
        Contestant::new("netwren", &binary.to_string_lossy(), words)
    }

    /// tcpdump, running as the user of the bench; its own user could not write the files.
    pub(super) fn tcpdump(words: &str) -> Contestant {
        let mut contestant = Contestant::new("tcpdump", "tcpdump", words);
        contestant.args.splice(0..0, ["-Z".to_owned(), "root".to_owned()]);
        contestant
    }

    fn new(name: &str, program: &str, words: &str) -> Contestant {
        let args = words.split_whitespace().map(|word| word.replace("IFACE", IFACE)).collect();
        Contestant { label: format!("{name} {words}"), program: program.to_owned(), args }
    }

    /// Adds a file as the last argument.
    pub(super) fn with(mut self, file: &Path) -> Contestant {
        self.args.push(file.to_string_lossy().into_owned());
        self
    }

    /// Starts the program in the namespace and waits until its packet socket is bound.
    pub(super) fn start(&self, lab: &Lab, stdout: Stdio) -> Result<Listening> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).env("LC_ALL", "C");
        let child = lab.run_inside(|| command.spawn()).with_context(|| self.label.clone())?;
        let mut listening = Listening { child, label: self.label.clone() };
        let mut ended = false;
        lab.wait_until("a packet socket is bound", || {
            ended = listening.child.try_wait().is_ok_and(|status| status.is_some());
            ended || lab.run_inside(sockets) > 0
        });
        ensure!(!ended, "{} ended: {}", self.label, listening.said());
        Ok(listening)
    }
}

/// Number of bound packet sockets in the calling thread's namespace; the fourth word is the protocol.
fn sockets() -> usize {
    let list = std::fs::read_to_string("/proc/thread-self/net/packet").unwrap_or_default();
    list.lines().filter(|line| line.split_whitespace().nth(3) == Some("0003")).count()
}

/// A running contestant; it is killed on drop.
pub(super) struct Listening {
    pub(super) child: Child,
    label: String,
}

/// The figures that a contestant printed when it ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    /// Packets that it printed or wrote.
    pub(super) taken: u64,
    /// Packets that the kernel dropped because its buffer was full.
    pub(super) dropped: u64,
}

impl Listening {
    pub(super) fn cpu_ns(&self) -> Result<u64> {
        on_cpu_ns(self.child.id())
    }

    pub(super) fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Interrupts the program as Ctrl-C does; returns its figures and everything it wrote to stderr.
    pub(super) fn end(mut self) -> Result<(Figures, String)> {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-INT", &pid]).status()?;
        let said = self.said();
        self.child.wait()?;
        let figures = figures(&said).with_context(|| format!("{} says no figures: {said}", self.label))?;
        Ok((figures, said))
    }

    fn said(&mut self) -> String {
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        said
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn figures(said: &str) -> Option<Figures> {
    let before = |words: &str| {
        let end = said.find(words)?;
        said.get(..end)?.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    let taken = before(" packets captured").or_else(|| before(" packet captured"));
    let taken = taken.or_else(|| before(" written to ")).or_else(|| before(" shown, "))?;
    let dropped = before(" packets dropped by kernel").or_else(|| before(" packet dropped by kernel"));
    Some(Figures { taken, dropped: dropped.or_else(|| before(" dropped by the ring"))? })
}

/// The 99th percentile of the latency, as netwren printed it: `…, 99th percentile 12 µs; …`.
pub(super) fn latency_said(said: &str) -> Option<&str> {
    let (_, latency) = said.split_once(", 99th percentile ")?;
    latency.split([';', '\n']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read() {
        let ours = "netwren: 11 packets received, 3 dropped by the ring, 0 by interfaces; from the kernel to netwren: \
                    median 54 µs, 99th percentile 2.6 ms; 8 written to /x, 0 not written, 0 filtered\n";
        let figures = |said: &str| figures(said).map(|figures| (figures.taken, figures.dropped));
        assert_eq!(figures(ours), Some((8, 3)));
        assert_eq!(latency_said(ours), Some("2.6 ms"));
        let theirs = "tcpdump: listening on to0\n1 packet captured\n1 packet received by filter\n\
                      2 packets dropped by kernel\n";
        assert_eq!((figures(theirs), figures("")), (Some((1, 2)), None));
    }
}
