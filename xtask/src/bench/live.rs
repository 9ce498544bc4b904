//! `bench live` measures how much following connections costs the processes that make them.
//!
//! One process connects and accepts. Its CPU per connection, including softirq work done on its time, is measured in
//! turn without a follower, with followers of events and of flows (using BPF), and with a follower that uses
//! sock_diag. The BPF followers must have shown every connection, otherwise the run fails. Start reading at [`run`].
//!
//! A connection costs about 50 µs, and a machine's speed drifts by more than the few microseconds in question. The
//! bench therefore runs many short rounds in pairs and computes an interval for the median of the differences. If the
//! interval does not decide, the kernel's run-time statistics of BPF programs do: they cover the runs of our programs
//! alone. They read the clock twice per run, which costs more than a short program, so the time that they show for an
//! empty program is subtracted.
//!
//! The follower's own CPU is measured separately, because connecting processes do not wait for it.

use super::programs::{Clock, Ran, ran};
use super::report::Spread;
use super::{Options, machine, report};
use crate::root;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use testkit::netns::Lab;

/// Hidden command that makes connections and prints their cost.
pub(crate) const WORKER: &str = "make-connections";

/// Connections per round. All rounds together must use fewer ephemeral ports than TIME_WAIT can block.
const CONNECTIONS: u64 = 1_000;
const QUICK_CONNECTIONS: u64 = 200;
const ROUNDS: u32 = 41;
/// After this time the reader has read all pending rows: flows are shown every 0.2 s.
const ALL_READ: Duration = Duration::from_millis(250);
const QUICK_ROUNDS: u32 = 5;

/// The goal: nanoseconds of CPU added to opening and closing a connection, both ends together.
const ADDED_NS_MAX: f64 = 2_500.0;

/// A follower with its label, its arguments and the rows (or the sum of the column) expected per connection.
struct Follower {
    label: &'static str,
    args: &'static [&'static str],
    rows_each: u64,
    /// True if the goal applies, which it does to BPF.
    goal: bool,
}

const FOLLOWERS: [Follower; 3] = [
    Follower {
        label: "netwren sockets --follow",
        args: &["sockets", "--follow", "--columns", "event,time,direction,local_port,peer_port,process,pid"],
        rows_each: 4,
        goal: true,
    },
    Follower {
        label: "netwren flows --follow",
        args: &["flows", "--follow=0.2", "--columns", "opened,closed,local_port,peer_port"],
        rows_each: 4,
        goal: true,
    },
    Follower {
        label: "netwren sockets --follow --via netlink",
        args: &["sockets", "--follow", "--columns", "event,local_port", "--via", "netlink", "event = close"],
        rows_each: 2,
        goal: false,
    },
];

/// The results of all rounds with one follower, in nanoseconds per connection.
struct Shown {
    follower: &'static Follower,
    /// The cost with the follower minus the cost without, pair by pair.
    added: Added,
    /// `None` without BPF.
    programs: Option<InPrograms>,
}

/// The kernel's run-time statistics of our BPF programs, in nanoseconds per connection.
struct InPrograms {
    /// The time as the kernel reports it.
    shown: Spread,
    /// Runs of our programs per connection.
    runs: f64,
    /// The median minus the cost of reading the clock.
    net: f64,
    /// CPU of the following process; it is not part of the connecting process's cost.
    reader: Spread,
}

/// The median of differences with its 95 % confidence interval.
#[derive(Clone, Copy)]
struct Added {
    median: f64,
    low: f64,
    high: f64,
}

impl Added {
    fn of(mut differences: Vec<f64>) -> Added {
        differences.sort_by(f64::total_cmp);
        let count = differences.len();
        // Order statistics around the median: with fair coins, 95 % of the results are within 0.98 square roots of the
        // count.
        let reach = (0.98 * (count as f64).sqrt()).ceil() as usize;
        let at = |index: usize| differences.get(index.min(count.saturating_sub(1))).copied().unwrap_or(f64::NAN);
        Added { median: at(count / 2), low: at((count / 2).saturating_sub(reach)), high: at(count / 2 + reach) }
    }
}

impl Shown {
    /// Whether the goal is reached, and which measurement decided; `None` for followers without a goal.
    fn reached(&self) -> Option<(bool, &'static str)> {
        if !self.follower.goal {
            return None;
        }
        let Added { median, low, high } = self.added;
        match &self.programs {
            _ if high <= ADDED_NS_MAX => Some((true, "pairs")),
            _ if low > ADDED_NS_MAX => Some((false, "pairs")),
            Some(programs) => Some((programs.net <= ADDED_NS_MAX, "programs")),
            None => Some((median <= ADDED_NS_MAX, "pairs")),
        }
    }

    fn json(&self) -> Value {
        let Added { median, low, high } = self.added;
        json!({
            "label": self.follower.label, "args": self.follower.args,
            "added_ns": { "median": median, "low": low, "high": high },
            "programs_ns": self.programs.as_ref().map(|p| p.net),
                "program_runs": self.programs.as_ref().map(|p| p.runs),
            "programs_with_clock_ns": self.programs.as_ref().map(|p| p.shown.json()),
            "reader_ns": self.programs.as_ref().map(|p| p.reader.json()),
            "at_most_ns": self.follower.goal.then_some(ADDED_NS_MAX),
            "reached": self.reached().map(|(yes, _)| yes), "decided_by": self.reached().map(|(_, by)| by),
        })
    }

    fn line(&self) -> String {
        let us = |ns: f64| format!("{:.2}", ns / 1000.0);
        let Added { median, low, high } = self.added;
        let (programs, reader) = match &self.programs {
            Some(InPrograms { shown, runs, net, reader }) => (
                format!(
                    "{} ({} with the clock of {runs:.0} runs, {}–{})",
                    us(*net),
                    us(shown.median),
                    us(shown.min),
                    us(shown.max)
                ),
                us(reader.median),
            ),
            None => ("–".to_owned(), "–".to_owned()),
        };
        let (goal, verdict) = match self.reached() {
            None => ("–".to_owned(), "–".to_owned()),
            Some((true, by)) => (us(ADDED_NS_MAX), format!("yes, by {by}")),
            Some((false, by)) => (us(ADDED_NS_MAX), format!("**no**, by {by}")),
        };
        let (low, median, high) = (us(low), us(median), us(high));
        let label = self.follower.label;
        format!("| `{label}` | {median} ({low}–{high}) | {programs} | {reader} | {goal} | {verdict} |\n")
    }
}

/// Runs all rounds and writes the result files.
pub(super) fn run(options: &Options, binary: &Path) -> Result<()> {
    let lab = Lab::new("benchlive");
    let (count, rounds) = if options.quick { (QUICK_CONNECTIONS, QUICK_ROUNDS) } else { (CONNECTIONS, ROUNDS) };
    let rounds = options.runs.unwrap_or(rounds);
    let mut alone = Vec::new();
    let mut shown = Vec::new();
    let clock = of_the_clock(&lab, count, rounds)?;
    for follower in &FOLLOWERS {
        let mut pairs = Vec::new();
        for round in 0..rounds {
            let (base, with) = pair(&lab, follower, binary, count, round % 2 == 0)?;
            alone.push(base);
            pairs.push(with - base);
        }
        let programs =
            if follower.goal { Some(in_programs(&lab, follower, binary, count, rounds, clock)?) } else { None };
        shown.push(Shown { follower, added: Added::of(pairs), programs });
    }
    let about = machine::describe(binary)?;
    let base = Spread::of(alone);
    let markdown = markdown(count, rounds, base, clock, &shown);
    let all = json!({
        "name": "live", "about": about, "connections": count, "rounds": rounds, "alone_ns": base.json(),
        "clock_ns": clock,
        "followers": shown.iter().map(Shown::json).collect::<Vec<Value>>(),
    });
    report::save("live", &all, &markdown, !options.quick)
}

/// One round without and one with the follower, `alone_first` giving the order; returns nanoseconds per connection.
fn pair(lab: &Lab, follower: &Follower, binary: &Path, count: u64, alone_first: bool) -> Result<(f64, f64)> {
    let before = if alone_first { Some(connections(lab, count)?) } else { None };
    let following = Following::start(lab, follower, binary)?;
    let with = connections(lab, count)?;
    following.end(follower, count)?;
    Ok((before.map_or_else(|| connections(lab, count), Ok)?, with))
}

/// The run time that the kernel reports for a program that does nothing, in nanoseconds.
fn of_the_clock(lab: &Lab, count: u64, rounds: u32) -> Result<f64> {
    let object = std::fs::read(root::path().join("crates/bpf/objects/selftest.o"))?;
    let spec = bpf::LoadSpec { object: &object, programs: &["idle"], constants: &[], entries: &[] };
    let loaded = bpf::load(&sys::Host::live(), &spec)?;
    let _link = loaded.program("idle")?.attach()?;
    let _clock = Clock::start()?;
    let (own, mut each_ns) = (std::process::id(), Vec::new());
    for _ in 0..rounds {
        let before = ran(own)?;
        connections(lab, count)?;
        let Ran { ns, runs } = ran(own)?.since(before);
        ensure!(runs >= count, "{count} connections were only {runs} changes of state");
        each_ns.push(ns as f64 / runs as f64);
    }
    Ok(Spread::of(each_ns).median)
}

/// Measures the run time of our programs and the CPU of the reader.
fn in_programs(
    lab: &Lab,
    follower: &Follower,
    binary: &Path,
    count: u64,
    rounds: u32,
    clock_ns: f64,
) -> Result<InPrograms> {
    let _clock = Clock::start()?;
    let mut rounds_seen: Vec<Ran> = Vec::new();
    let mut reader = Vec::new();
    for _ in 0..rounds {
        let following = Following::start(lab, follower, binary)?;
        let pid = following.child.id();
        let (before, read_before) = (ran(pid)?, on_cpu_ns(pid)?);
        connections(lab, count)?;
        rounds_seen.push(ran(pid)?.since(before));
        std::thread::sleep(ALL_READ);
        reader.push((on_cpu_ns(pid)? - read_before) as f64 / count as f64);
        following.end(follower, count)?;
    }
    // The programs run for every connection of the host, so rounds in which other processes connected are left out.
    let least = rounds_seen.iter().map(|ran| ran.runs).min().unwrap_or(0);
    let quiet = rounds_seen.iter().filter(|ran| ran.runs <= least + least / 20);
    let shown = Spread::of(quiet.map(|ran| ran.ns as f64 / count as f64).collect());
    let runs = least as f64 / count as f64;
    Ok(InPrograms { shown, runs, net: shown.median - runs * clock_ns, reader: Spread::of(reader) })
}

/// CPU of all threads of a process so far; the scheduler counts nanoseconds.
pub(super) fn on_cpu_ns(pid: u32) -> Result<u64> {
    let mut all = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may have ended since the listing; its CPU is small and is lost.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        all +=
            text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).context("schedstat begins with a number")?;
    }
    Ok(all)
}

fn markdown(count: u64, rounds: u32, base: Spread, clock_ns: f64, shown: &[Shown]) -> String {
    let mut page = format!(
        "### live\n\nOne connection opened and closed, both ends in one process, {count} a round, {rounds} pairs of \
         rounds: {:.1} µs of CPU alone ({:.1}–{:.1}). Added: median of the pairs and its 95 % interval, the waking of \
         the reader and what it takes from the caches included. In programs: the kernel's run-time statistics, less \
         the {clock_ns:.0} ns that they show of a program that does nothing; the way into a program is not in them. A \
         connection is two sockets: each has half. Reader: CPU of the process that follows, which nobody who connects \
         waits for.\n\n\
         | followed by | added, µs | in programs, µs | reader, µs | at most | reached |\n|---|---|---|---|---|---|\n",
        base.median / 1000.0,
        base.min / 1000.0,
        base.max / 1000.0
    );
    shown.iter().for_each(|shown| page += &shown.line());
    page
}

/// Nanoseconds of CPU per connection, over `count` connections.
fn connections(lab: &Lab, count: u64) -> Result<f64> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([WORKER, &count.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
    let out = lab.run_inside(|| command.spawn())?.wait_with_output()?;
    ensure!(out.status.success(), "the connections failed");
    String::from_utf8(out.stdout)?.trim().parse().context("the worker says a number")
}

/// The hidden command: connects to itself `count` times, sends a byte each way, and prints the CPU per connection.
pub(crate) fn worker(count: u64) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let addr = listener.local_addr()?;
    let before = sys::cost::measure();
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        for _ in 0..count {
            let mut stream = listener.accept()?.0;
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            stream.write_all(&byte)?;
            // The client closes first.
            let _ = stream.read(&mut byte)?;
        }
        Ok(())
    });
    for _ in 0..count {
        let mut stream = TcpStream::connect(addr)?;
        stream.write_all(b"x")?;
        stream.read_exact(&mut [0])?;
    }
    let Ok(served) = server.join() else { bail!("the server panicked") };
    served?;
    let cost = sys::cost::measure().since(&before);
    println!("{}", (cost.user_us + cost.system_us) as f64 * 1000.0 / count as f64);
    Ok(())
}

/// A running follower; its rows are read as they arrive.
struct Following {
    child: Child,
    rows: std::thread::JoinHandle<u64>,
}

impl Following {
    fn start(lab: &Lab, follower: &Follower, binary: &Path) -> Result<Following> {
        let mut command = Command::new(binary);
        command.args(follower.args).arg("--netns").arg(lab.name());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| binary.display().to_string())?;
        let mut out = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let is_flows = follower.args.first() == Some(&"flows");
        // The header line shows that the follower has started.
        ensure!(out.read_line(&mut String::new())? > 0, "{} ended at once", follower.label);
        Ok(Following { child, rows: std::thread::spawn(move || count_rows(out, is_flows)) })
    }

    fn end(mut self, follower: &Follower, count: u64) -> Result<()> {
        let pid = self.child.id().to_string();
        // Rows that are already under way still arrive after the signal.
        ensure!(Command::new("kill").args(["-INT", &pid]).status()?.success(), "{pid} is gone");
        let Ok(rows) = self.rows.join() else { bail!("the reader panicked") };
        self.child.wait()?;
        let expected = count * follower.rows_each;
        ensure!(rows == expected || !follower.goal, "{} showed {rows} of {expected}", follower.label);
        Ok(())
    }
}

/// The number of lines; for flows the sum of opened and closed connections.
fn count_rows(out: BufReader<ChildStdout>, is_flows: bool) -> u64 {
    out.lines()
        .map_while(Result::ok)
        .map(|line| {
            let cells = line.split('\t').take(2);
            if is_flows { cells.filter_map(|cell| cell.parse::<u64>().ok()).sum() } else { 1 }
        })
        .sum()
}
