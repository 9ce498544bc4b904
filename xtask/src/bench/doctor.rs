//! `bench doctor` measures a diagnosis on a healthy host and the cost of its two probes per packet.

use super::drops::{BEGIN, SENT, cost_of, end, ruleset};
use super::generator::{Load, Running};
use super::programs::{Clock, ran};
use super::report::{Spread, save};
use super::{Options, cpus, machine, scale};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testkit::netns::Lab;

const SOCKETS: u64 = 10_000;
const ENTRIES: u32 = 100_000;

/// A figure with its upper limit.
struct Row {
    what: &'static str,
    unit: &'static str,
    values: Spread,
    at_most: f64,
}

/// Runs the bench and writes the result files.
pub(super) fn run(options: &Options, binary: &Path) -> Result<()> {
    let rounds = options.runs.unwrap_or(if options.quick { 1 } else { 7 });
    let [cpu, memory] = diagnosis(binary, rounds)?;
    let lab = Lab::new("benchprobes");
    lab.nft(&ruleset());
    let path = lab.run_inside(|| path_ns(binary, rounds))?;
    let profiler = lab.run_inside(|| profiler_percent(binary, rounds))?;
    let rows = [
        Row {
            what: "`netwren doctor`: CPU, with what nft takes that it runs",
            unit: "ms",
            values: cpu,
            at_most: 150.0,
        },
        Row { what: "the same: memory", unit: "MiB", values: memory, at_most: 30.0 },
        Row { what: "`netwren doctor path`: each program and packet", unit: "ns", values: path, at_most: 200.0 },
        Row { what: "`netwren doctor softirq`: of a sender's CPU", unit: "%", values: profiler, at_most: 3.0 },
    ];
    let about = machine::describe(binary)?;
    let mut markdown = format!(
        "# bench doctor, {}\n\nA diagnosis of three seconds in a namespace with {SOCKETS} TCP sockets and {ENTRIES} \
         entries of connection tracking. Probes: UDP over loopback to a rule of nft that drops it, {SENT} datagrams a \
         round and ten times as many for the profiler, in turn with and without; medians (min to max) of {rounds} \
         rounds.\n\n| | | at most |\n|---|--:|---|\n",
        about["date"].as_str().unwrap_or_default()
    );
    for Row { what, unit, values, at_most } in &rows {
        let verdict = if values.median <= *at_most { "reached" } else { "**missed**" };
        markdown += &format!(
            "| {what} | {:.1} {unit} ({:.1} to {:.1}) | {at_most} {unit}: {verdict} |\n",
            values.median, values.min, values.max
        );
    }
    let figures = rows.iter().map(|row| json!({"what": row.what, "unit": row.unit, "values": row.values.json()}));
    let file = json!({"name": "doctor", "about": about, "figures": figures.collect::<Vec<_>>()});
    save("doctor", &file, &markdown, !options.quick)
}

/// CPU in ms and memory in MiB of whole runs.
fn diagnosis(binary: &Path, rounds: u32) -> Result<[Spread; 2]> {
    let lab = Lab::new("benchdoctor");
    lab.use_conntrack();
    let load = Load { rows: SOCKETS, ..Load::default() }.filled();
    let running = lab.run_inside(|| Running::start(&load))?;
    // Long-lived entries, because expiring ones would cause work that an idle host does not have.
    let entries = testkit::conntrack::mixed_entries(ENTRIES).map(|entry| entry.timeout_s(3_600));
    let made = lab.track(entries);
    println!("bench: a diagnosis among {SOCKETS} sockets and {made} entries");
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let mut command = Command::new(scale()?);
        command.arg("-").arg(binary).args(["doctor", "--for", "3"]).stdout(Stdio::piped());
        let out = lab.run_inside(|| command.spawn())?.wait_with_output()?;
        let text = String::from_utf8(out.stdout)?;
        let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let [status, user_us, system_us, rss_kib, ..] = numbers[..] else { anyhow::bail!("the scale says {text}") };
        // Exit code 3 means that part of this machine could not be read.
        ensure!(matches!(status as u32 >> 8, 0 | 3), "doctor: exit {}", status as u32 >> 8);
        all[0].push((user_us + system_us) / 1_000.0);
        all[1].push(rss_kib / 1_024.0);
    }
    drop(running);
    Ok(all.map(Spread::of))
}

/// The additional CPU per packet at each stage, divided by the number of program runs.
fn path_ns(binary: &Path, rounds: u32) -> Result<Spread> {
    let mut each = Vec::new();
    for round in 1..=rounds {
        println!("bench: doctor path, round {round}");
        let alone = cost_of(SENT)?;
        let probe = start(binary, "path")?;
        let with = cost_of(SENT);
        // Measured separately, because counting runs makes the kernel read clocks.
        let clock = Clock::start()?;
        let before = ran(probe.id())?;
        let counted = cost_of(1_000);
        let runs = ran(probe.id())?.since(before).runs as f64 / 1_000.0;
        drop(clock);
        end(probe)?;
        counted?;
        ensure!(runs >= 1.0, "no program ran for a packet");
        each.push((with? - alone) / runs);
    }
    Ok(Spread::of(each))
}

/// The increase of a sender's CPU in percent.
fn profiler_percent(binary: &Path, rounds: u32) -> Result<Spread> {
    let mut grown = Vec::new();
    let on_one_cpu = || {
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| cpus::stay_on_first().and_then(|()| cost_of(10 * SENT)));
            sender.join().map_err(|_| anyhow::anyhow!("the sending thread panicked"))?
        })
    };
    for round in 1..=rounds {
        println!("bench: doctor softirq, round {round}");
        let alone = on_one_cpu()?;
        let probe = start(binary, "softirq")?;
        let with = on_one_cpu();
        end(probe)?;
        grown.push(100.0 * (with? / alone - 1.0));
    }
    Ok(Spread::of(grown))
}

/// Starts the probe with this name in the calling thread's namespace.
fn start(binary: &Path, name: &str) -> Result<Child> {
    let mut command = Command::new(binary);
    command.args(["doctor", name, "--for", "60"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().context("cannot start netwren")?;
    std::thread::sleep(BEGIN);
    Ok(child)
}
