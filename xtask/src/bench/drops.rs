//! `bench drops` measures what counting, listing or tracing costs per dropped packet, and how soon drops are counted
//! and shown.
//!
//! A thread sends datagrams over loopback to a rule that drops them, after 16 rules that do not match. The kernel
//! drops the packet on the sending thread's time, so the thread's additional CPU is the cost of watching. Rounds with
//! a watcher alternate with rounds without one, and the difference is taken per pair.

use super::report::{Spread, save};
use super::{Options, machine};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::netns::Lab;

/// Datagrams per round.
pub(super) const SENT: u64 = 200_000;
/// The time that a watcher has for starting.
pub(super) const BEGIN: Duration = Duration::from_millis(1_500);
/// Number of runs for the start-up times.
const STARTS: u32 = 15;

struct Watcher {
    label: &'static str,
    /// `None` means netwren.
    program: Option<&'static str>,
    args: &'static [&'static str],
    /// True if the watcher needs tracefs, which is then mounted for it alone.
    tracefs: bool,
    at_most_ns: Option<f64>,
}

const WATCHERS: [Watcher; 8] = [
    Watcher { label: "netwren drops", program: None, args: &["drops"], tracefs: false, at_most_ns: Some(300.0) },
    Watcher {
        label: "netwren drops, in another namespace",
        program: None,
        args: &["drops", "--netns", "OTHER"],
        tracefs: false,
        at_most_ns: None,
    },
    Watcher {
        label: "netwren drops --events",
        program: None,
        args: &["drops", "--events", "--no-owner"],
        tracefs: false,
        at_most_ns: Some(1_500.0),
    },
    Watcher {
        label: "netwren drops --events --stack",
        program: None,
        args: &["drops", "--events", "--no-owner", "--stack"],
        tracefs: false,
        at_most_ns: None,
    },
    Watcher {
        label: "netwren drops -w FILE",
        program: None,
        args: &["drops", "-w", "/dev/null"],
        tracefs: false,
        at_most_ns: None,
    },
    Watcher {
        label: "netwren drops --via tracefs",
        program: None,
        args: &["drops", "--via", "tracefs"],
        tracefs: true,
        at_most_ns: None,
    },
    Watcher {
        label: "perf trace -e skb:kfree_skb",
        program: Some("perf"),
        args: &["trace", "-a", "-e", "skb:kfree_skb"],
        tracefs: true,
        at_most_ns: None,
    },
    Watcher {
        label: "bpftrace -e 'tracepoint:skb:kfree_skb { @[args->reason] = count(); }'",
        program: Some("bpftrace"),
        args: &["-e", "tracepoint:skb:kfree_skb { @[args->reason] = count(); }"],
        tracefs: true,
        at_most_ns: None,
    },
];

/// Runs all rounds and writes the result files.
pub(super) fn run(options: &Options, binary: &Path) -> Result<()> {
    let rounds = options.runs.unwrap_or(if options.quick { 2 } else { 11 });
    let (lab, other) = (Lab::new("benchdrops"), Lab::new("benchdropsother"));
    lab.nft(&ruleset());
    let mut shown = String::from("| watcher | added ns a drop | of a drop alone | at most |\n|---|--:|--:|---|\n");
    let mut all = Vec::new();
    let mut alone = Vec::new();
    for watcher in &WATCHERS {
        if watcher.program.is_some_and(|program| !testkit::tool::is_installed(program)) {
            writeln!(shown, "| {} | not installed | | |", watcher.label)?;
            continue;
        }
        let mut added = Vec::new();
        for round in 1..=rounds {
            println!("bench: {}, round {round}", watcher.label);
            let before = lab.run_inside(|| cost_of(SENT))?;
            let child = start(watcher, &lab, other.name(), binary)?;
            let with = lab.run_inside(|| cost_of(SENT));
            end(child)?;
            added.push(with? - before);
            alone.push(before);
        }
        let (added, base) = (Spread::of(added), Spread::of(alone.clone()));
        let verdict = watcher.at_most_ns.map_or("–".to_owned(), |most| {
            format!("{most:.0}: {}", if added.median <= most { "reached" } else { "**missed**" })
        });
        let Spread { median, min, max } = added;
        let part = 100.0 * median / base.median;
        writeln!(shown, "| `{}` | {median:.0} ({min:.0} to {max:.0}) | {part:.0} % | {verdict} |", watcher.label)?;
        all.push(json!({"watcher": watcher.label, "added_ns": added.json()}));
    }
    let starts = if options.quick { 2 } else { STARTS };
    let (attached, reported) = beginnings(&lab, binary, starts)?;
    let base = Spread::of(alone);
    let about = machine::describe(binary)?;
    let head = format!(
        "# bench drops, {}\n\nUDP datagrams over loopback to a rule of nft that drops them behind 16 others, {SENT} \
         a round, {rounds} pairs of rounds with and without the watcher; medians of the differences (min to max) of \
         the sending thread's CPU. A datagram and its drop alone: {:.0} ns ({:.0} to {:.0}).\n\n",
        about["date"].as_str().unwrap_or_default(),
        base.median,
        base.min,
        base.max
    );
    let tail = format!(
        "\n`netwren drops`, {starts} starts: attached after {}, first row shown after {} while packets are \
         dropped, with rounds of 50 ms.\n",
        limit(attached, 40.0),
        limit(reported, 150.0)
    );
    let beginning = json!({"attached_ms": attached.json(), "reported_ms": reported.json()});
    let file = json!({"name": "drops", "about": about, "alone_ns": base.json(), "watchers": all, "begin": beginning});
    save("drops", &file, &(head + &shown + &tail), !options.quick)
}

fn limit(spread: Spread, most: f64) -> String {
    let verdict = if spread.median <= most { "reached" } else { "**missed**" };
    format!("{:.0} ms ({:.0} to {:.0}; at most {most:.0}: {verdict})", spread.median, spread.min, spread.max)
}

/// A ruleset that drops datagrams to port 7 after 16 rules that do not match.
pub(super) fn ruleset() -> String {
    let others: String = (1000..1016).map(|port| format!("  udp dport {port} accept\n")).collect();
    format!("table inet t {{\n chain i {{\n  type filter hook input priority 0;\n{others}  udp dport 7 drop\n }}\n}}\n")
}

/// This thread's CPU per datagram while sending `datagrams` that are dropped.
pub(super) fn cost_of(datagrams: u64) -> Result<f64> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect("127.0.0.1:7")?;
    let begin = thread_cpu_ns()?;
    for _ in 0..datagrams {
        let _ = socket.send(b"x");
    }
    Ok((thread_cpu_ns()? - begin) as f64 / datagrams as f64)
}

fn thread_cpu_ns() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    text.split(' ').next().and_then(|ns| ns.parse().ok()).context("schedstat begins with a number")
}

fn start(watcher: &Watcher, lab: &Lab, other: &str, binary: &Path) -> Result<Child> {
    let program = watcher.program.map_or_else(|| binary.to_string_lossy().into_owned(), str::to_owned);
    let mut command = if watcher.tracefs {
        let mut shell = Command::new("unshare");
        let script = "mount -t tracefs none /sys/kernel/tracing && exec \"$0\" \"$@\"";
        shell.args(["-m", "sh", "-c", script, &program]);
        shell
    } else {
        Command::new(program)
    };
    command.args(watcher.args.iter().map(|word| if *word == "OTHER" { other } else { word }));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = lab.run_inside(|| command.spawn())?;
    std::thread::sleep(BEGIN);
    Ok(child)
}

/// Interrupts a program and waits for its end.
pub(super) fn end(mut child: Child) -> Result<()> {
    Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
    child.wait()?;
    Ok(())
}

/// Milliseconds until the program is attached, and until it prints the first row.
fn beginnings(lab: &Lab, binary: &Path, starts: u32) -> Result<(Spread, Spread)> {
    let (mut attached, mut reported) = (Vec::new(), Vec::new());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            lab.run_inside(|| {
                while !is_over.load(Ordering::Relaxed) && cost_of(100).is_ok() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            })
        });
        let measured = (0..starts).try_for_each(|_| {
            attached.push(attach_ms(lab, binary)?);
            reported.push(report_ms(lab, binary)?);
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        measured
    })
    .map(|()| (Spread::of(attached), Spread::of(reported)))
}

fn attach_ms(lab: &Lab, binary: &Path) -> Result<f64> {
    let begin = Instant::now();
    let mut command = Command::new(binary);
    command.arg("drops").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = lab.run_inside(|| command.spawn())?;
    while !is_attached(child.id()) && begin.elapsed() < BEGIN {
        std::thread::sleep(Duration::from_micros(200));
    }
    let took = begin.elapsed().as_secs_f64() * 1_000.0;
    end(child)?;
    Ok(took)
}

/// True if the process holds a BPF link.
fn is_attached(pid: u32) -> bool {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
    let mut texts = files.flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.any(|text| text.contains("link_type"))
}

fn report_ms(lab: &Lab, binary: &Path) -> Result<f64> {
    let begin = Instant::now();
    let mut command = Command::new(binary);
    command.args(["drops", "--watch=0.05", "-o", "json", "reason = NETFILTER_DROP"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = lab.run_inside(|| command.spawn())?;
    let mut lines = BufReader::new(child.stdout.take().context("its output is a pipe")?).lines();
    let is_row = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|row| row["count"].is_u64());
    while !is_row(&lines.next().context("it shows rows")??) {}
    let took = begin.elapsed().as_secs_f64() * 1_000.0;
    drop(lines);
    end(child)?;
    Ok(took)
}
