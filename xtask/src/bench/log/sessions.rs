//! Measures the session log of a NAT box: sessions end at a high rate, and every one of them must be logged.

use super::{Folder, Spread};
use crate::bench::live::on_cpu_ns;
use crate::bench::nat_events::{dead_end, send};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::knob::HostKnob;
use testkit::netns::Lab;

/// Sessions opened per second, and the number of parts in which they end.
const OPENED: (u64, u32) = (100_000, 30);
/// Interval between the ends of two parts, which results in slightly more than 50,000 sessions per second.
const APART: Duration = Duration::from_millis(99);
/// A round is over when no line has arrived for this long.
const SILENCE: Duration = Duration::from_millis(1_500);

/// The result of one round.
struct Ended {
    sessions: u64,
    lines: u64,
    /// Sessions that ended per second.
    rate: f64,
    cpu_ns: u64,
    percent_of_core: f64,
}

/// Runs the measurement; returns the text of the report and the values.
pub(super) fn run(binary: &Path, runs: u32) -> Result<(String, Vec<Value>)> {
    if !testkit::tool::is_installed("conntrack") {
        println!("bench: conntrack is not installed: the session log is not measured");
        return Ok((String::new(), Vec::new()));
    }
    let _room = HostKnob::set("/proc/sys/net/netfilter/nf_conntrack_max", "1000000");
    let mut rounds = Vec::new();
    for round in 1..=runs {
        println!("bench: session log, round {round}");
        rounds.push(one(binary)?);
    }
    let of = |value: fn(&Ended) -> f64| Spread::of(rounds.iter().map(value).collect());
    let lost = of(|ended| ended.sessions as f64 - ended.lines as f64);
    let (rate, core) = (of(|ended| ended.rate), of(|ended| ended.percent_of_core));
    let cost = of(|ended| ended.cpu_ns as f64 / ended.lines.max(1) as f64);
    let is_reached = lost.max <= 0.0 && rate.median >= 50_000.0;
    let text = format!(
        "- session log of a NAT box (JSON to a file): {:.0} ends a second ({:.0}–{:.0}), {:.0} lost, {:.0} ns an end, \
         {:.1} % of a core (50,000 without loss: {})\n",
        rate.median,
        rate.min,
        rate.max,
        lost.max,
        cost.median,
        core.median,
        if is_reached { "reached" } else { "**missed**" }
    );
    let value = json!({
        "task": "session log", "rate": rate.json(), "lost": lost.json(), "ns_per_end": cost.json(),
        "percent_of_core": core.json(),
    });
    Ok((text, vec![value]))
}

fn one(binary: &Path) -> Result<Ended> {
    let (lab, nowhere) = (Lab::new("benchsessions"), Lab::new("benchnowhere"));
    dead_end(&lab, &nowhere)?;
    lab.use_conntrack();
    lab.nft(&format!(
        "table ip t {{
           chain part {{ type filter hook output priority 0; ct mark set numgen inc mod {} offset 1; }}
           chain way {{ type nat hook postrouting priority srcnat; oifname \"out0\" snat to 10.99.0.9; }}
         }}",
        OPENED.1
    ));
    let dir = Folder::in_memory()?;
    let file = dir.0.join("sessions");
    let mut command = lab.command(binary);
    command.args(["nat", "events", "-c", "session-log", "--buffer", "64MiB", "--to"]);
    command.arg(format!("json:{}", file.display())).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().context("netwren")?;
    let lines = || std::fs::read(&file).map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count() as u64);
    // It is listening as soon as a session that ends is logged.
    lab.wait_until("it listens", || {
        let _ = lab.run_inside(|| std::net::UdpSocket::bind("10.99.0.1:0")?.send_to(b"x", "10.98.0.1:9"));
        lab.output("conntrack", &["-F"]);
        lines() > 0
    });
    still(lines);
    let (listened, before) = (lines(), on_cpu_ns(child.id())?);
    let (sessions, _) = lab.run_inside(|| send(OPENED.0))?;
    let begun = Instant::now();
    for part in 1..=OPENED.1 {
        let mut end = lab.command("conntrack");
        end.args(["-D", "--mark", &part.to_string()]).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        std::thread::sleep((APART * part).saturating_sub(begun.elapsed()));
    }
    let took = begun.elapsed();
    still(lines);
    let cpu_ns = on_cpu_ns(child.id())? - before;
    let lines = lines() - listened;
    Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
    child.wait()?;
    let percent_of_core = cpu_ns as f64 * 100.0 / took.as_nanos() as f64;
    Ok(Ended { sessions, lines, rate: sessions as f64 / took.as_secs_f64(), cpu_ns, percent_of_core })
}

/// Waits until no more lines arrive.
fn still(lines: impl Fn() -> u64) {
    let mut last = (lines(), Instant::now());
    while last.1.elapsed() < SILENCE {
        std::thread::sleep(Duration::from_millis(50));
        let now = lines();
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
}
