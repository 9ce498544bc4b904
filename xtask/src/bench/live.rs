//! `bench live`: what following connections costs those who make them.
//!
//! One process connects and accepts; its CPU, softirq work on its behalf included, is weighed per connection while
//! nobody follows, while events are followed, while flows are, and while sock_diag tells, in turn. Those that
//! use BPF must have shown every connection, else the run fails. Start reading at [`run`].

use super::report::Spread;
use super::{Options, machine, report};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use testkit::netns::Lab;

/// Hidden command: makes connections and says what they cost.
pub(crate) const WORKER: &str = "make-connections";

/// Connections of a round; below the range of ephemeral ports, which TIME_WAIT keeps.
const CONNECTIONS: u64 = 8_000;
const QUICK_CONNECTIONS: u64 = 500;
const ROUNDS: u32 = 9;

/// What must be reached, in nanoseconds of CPU added to a connection opened and closed, both ends.
const ADDED_NS_MAX: f64 = 2_500.0;

/// Who follows: label, arguments, rows (or what the column sums up to) that a connection must give.
struct Follower {
    label: &'static str,
    args: &'static [&'static str],
    rows_each: u64,
    /// The goal stands for BPF.
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

/// Runs all rounds and writes the files.
pub(super) fn run(options: &Options, binary: &Path) -> Result<()> {
    let lab = Lab::new("benchlive");
    let count = if options.quick { QUICK_CONNECTIONS } else { CONNECTIONS };
    let rounds = options.runs.unwrap_or(ROUNDS);
    let mut alone = Vec::new();
    let mut added: Vec<Vec<f64>> = vec![Vec::new(); FOLLOWERS.len()];
    for _ in 0..rounds {
        for (follower, added) in FOLLOWERS.iter().zip(&mut added) {
            // Beside each, because a machine's speed drifts.
            let base = connections(&lab, count)?;
            alone.push(base);
            let following = Following::start(&lab, follower, binary)?;
            let with = connections(&lab, count)?;
            following.end(follower, count)?;
            added.push(with - base);
        }
    }
    let about = machine::describe(binary)?;
    let base = Spread::of(alone);
    let results: Vec<(&Follower, Spread)> = FOLLOWERS.iter().zip(added.into_iter().map(Spread::of)).collect();
    let markdown = markdown(count, rounds, base, &results);
    let all = json!({
        "name": "live", "about": about, "connections": count, "rounds": rounds, "alone_ns": base.json(),
        "followers": results.iter().map(|(follower, added)| json_of(follower, *added)).collect::<Vec<Value>>(),
    });
    report::save("live", &all, &markdown, !options.quick)
}

fn json_of(follower: &Follower, added: Spread) -> Value {
    json!({
        "label": follower.label, "args": follower.args, "added_ns": added.json(),
        "at_most_ns": follower.goal.then_some(ADDED_NS_MAX), "reached": reached(follower, added),
    })
}

fn reached(follower: &Follower, added: Spread) -> Option<bool> {
    follower.goal.then_some(added.median <= ADDED_NS_MAX)
}

fn markdown(count: u64, rounds: u32, base: Spread, results: &[(&Follower, Spread)]) -> String {
    let mut page = format!(
        "### live\n\nOne connection opened and closed, both ends in one process, {count} a round, {rounds} rounds in \
         turn: {:.1} µs of CPU alone ({:.1}–{:.1}).\n\n| followed by | added, ns (range) | at most | reached |\n|---|---|---|---|\n",
        base.median / 1000.0,
        base.min / 1000.0,
        base.max / 1000.0
    );
    for (follower, added) in results {
        let (goal, verdict) = match reached(follower, *added) {
            None => ("–".to_owned(), "–"),
            Some(yes) => (format!("{ADDED_NS_MAX:.0}"), if yes { "yes" } else { "**no**" }),
        };
        page += &format!(
            "| `{}` | {:.0} ({:.0}–{:.0}) | {goal} | {verdict} |\n",
            follower.label, added.median, added.min, added.max
        );
    }
    page
}

/// Nanoseconds of CPU for each of `count` connections.
fn connections(lab: &Lab, count: u64) -> Result<f64> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([WORKER, &count.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
    let out = lab.inside(|| command.spawn())?.wait_with_output()?;
    ensure!(out.status.success(), "the connections failed");
    String::from_utf8(out.stdout)?.trim().parse().context("the worker says a number")
}

/// The hidden command: connects to itself `count` times, a byte each way, and prints what one took.
pub(crate) fn worker(count: u64) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let addr = listener.local_addr()?;
    let before = sys::cost::so_far();
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
    let cost = sys::cost::so_far().since(&before);
    println!("{}", (cost.user_us + cost.system_us) as f64 * 1000.0 / count as f64);
    Ok(())
}

/// A running follower; its rows are read as they come.
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
        // The header says that it has begun.
        ensure!(out.read_line(&mut String::new())? > 0, "{} ended at once", follower.label);
        Ok(Following { child, rows: std::thread::spawn(move || count_rows(out, is_flows)) })
    }

    fn end(mut self, follower: &Follower, count: u64) -> Result<()> {
        let pid = self.child.id().to_string();
        // What is on its way still comes after the signal.
        ensure!(Command::new("kill").args(["-INT", &pid]).status()?.success(), "{pid} is gone");
        let Ok(rows) = self.rows.join() else { bail!("the reader panicked") };
        self.child.wait()?;
        let expected = count * follower.rows_each;
        ensure!(rows == expected || !follower.goal, "{} showed {rows} of {expected}", follower.label);
        Ok(())
    }
}

/// Lines; of flows the sum of what opened and closed.
fn count_rows(out: BufReader<ChildStdout>, is_flows: bool) -> u64 {
    out.lines()
        .map_while(Result::ok)
        .map(|line| {
            let cells = line.split('\t').take(2);
            if is_flows { cells.filter_map(|cell| cell.parse::<u64>().ok()).sum() } else { 1 }
        })
        .sum()
}
