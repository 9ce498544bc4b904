//! Measures the CPU per packet for the capturing program and for the sender.

use super::super::cpus;
use super::super::log::Folder;
use super::contestant::{Contestant, Figures, latency_said};
use super::load::{Load, Sent, Source, pair};
use super::report::{Goal, Row};
use anyhow::Result;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use testkit::netns::Lab;

/// Packets of a run at the kernel's full speed.
const BURST: u32 = 3_000_000;
/// Packets written to a file in memory: 600 MB of full-size packets, several times the size of a ring.
const FILED: u32 = 400_000;
/// Delay between two packets written to a file, in readings of the kernel's clock. No contestant loses packets at this
/// delay, which is used to measure the cost per packet; each following run shortens it by `STEP`.
const EASY: u32 = 150;
const STEP: u32 = 10;
/// Packets of a run at 100,000 per second.
const STEADY: u32 = 200_000;
const SMALL: usize = 60;
const FULL: usize = 1514;
/// tcpdump's arguments; its ring has the size of ours (`-B` is in KiB).
const THEIRS: &str = "-n -B 65536 -i IFACE";

/// One run of one contestant.
struct Measured {
    sent: Sent,
    /// The contestant's CPU per captured packet.
    cpu_ns: f64,
    figures: Figures,
    said: String,
    /// Captured packets per second, in thousands.
    kpps: f64,
}

fn measure(contestant: &Contestant, load: Load) -> Result<Measured> {
    let lab = pair();
    let listening = contestant.start(&lab, Stdio::null())?;
    if load.rate.is_none() {
        cpus::keep_on_second(listening.child.id())?;
    }
    std::thread::sleep(Duration::from_millis(200));
    let before = listening.cpu_ns()?;
    let sent = sent(&lab, load)?;
    // Leave time to read the packets that are still in the ring or in a partly filled block.
    std::thread::sleep(Duration::from_millis(500));
    let cpu = listening.cpu_ns()? - before;
    let (figures, said) = listening.end()?;
    let cpu_ns = cpu as f64 / figures.taken.max(1) as f64;
    let kpps = figures.taken as f64 / sent.took.as_secs_f64() / 1000.0;
    Ok(Measured { sent, cpu_ns, figures, said, kpps })
}

/// Sends the load; without a rate limit the sender runs on a different CPU from the contestants.
fn sent(lab: &Lab, load: Load) -> Result<Sent> {
    lab.run_inside(|| {
        if load.rate.is_none() {
            cpus::stay_on_first()?;
        }
        load.send(Instant::now(), &[])
    })
}

/// The runs of netwren and of the peer, alternating.
struct Pairs {
    ours: Vec<Measured>,
    theirs: Vec<Measured>,
    labels: [String; 2],
    load: Load,
}

impl Pairs {
    fn of(what: &str, load: Load, rounds: u32, make: impl Fn(&Path) -> [Contestant; 2]) -> Result<Pairs> {
        let mut pairs = Pairs { ours: Vec::new(), theirs: Vec::new(), labels: Default::default(), load };
        for round in 1..=rounds {
            println!("bench: {what}, round {round}");
            for (nth, list) in [&mut pairs.ours, &mut pairs.theirs].into_iter().enumerate() {
                let folder = Folder::in_memory()?;
                let [ours, theirs] = make(&folder.0);
                let contestant = if nth == 0 { ours } else { theirs };
                pairs.labels[nth].clone_from(&contestant.label);
                list.push(measure(&contestant, load)?);
            }
        }
        Ok(pairs)
    }

    fn row(&self, task: &str, unit: &'static str, goal: Goal, of: impl Fn(&Measured) -> f64) -> Row {
        let values = |rounds: &[Measured]| rounds.iter().map(&of).collect();
        let [ours, theirs] = self.labels.clone();
        Row {
            task: task.to_owned(),
            unit,
            ours: (ours, values(&self.ours)),
            peer: Some((theirs, values(&self.theirs))),
            goal,
            note: self.note(),
        }
    }

    /// The rate that was sent and the packets that each contestant missed: sent minus captured.
    fn note(&self) -> String {
        let all = || self.ours.iter().chain(&self.theirs);
        let slowest = all().map(|run| f64::from(self.load.packets) / run.sent.took.as_secs_f64() / 1000.0);
        let missing = |rounds: &[Measured]| -> i64 {
            rounds.iter().map(|run| i64::from(self.load.packets) - run.figures.taken as i64).sum()
        };
        let counted = |rounds: &[Measured]| -> u64 { rounds.iter().map(|run| run.figures.dropped).sum() };
        format!(
            "sent {:.0} k/s or more; lost {} of them ({} counted), theirs {} ({})",
            slowest.fold(f64::INFINITY, f64::min),
            missing(&self.ours),
            counted(&self.ours),
            missing(&self.theirs),
            counted(&self.theirs)
        )
    }
}

/// Measures captures to /dev/null at the source's full speed, and their cost for the sender.
pub(super) fn to_nowhere(binary: &Path, rounds: u32, share: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (bytes, most) in [(SMALL, 0.5), (FULL, 0.75)] {
        let load = Load { source: Source::Kernel { delay: 0 }, packets: BURST / share, rate: None, bytes };
        let mut alone = Vec::new();
        let what = format!("{bytes} bytes to /dev/null");
        let pairs = Pairs::of(&what, load, rounds, |_| {
            let words = format!("{THEIRS} -w /dev/null");
            [Contestant::ours(binary, "capture -i IFACE -w /dev/null"), Contestant::tcpdump(&words)]
        })?;
        for _ in 0..rounds {
            let lab = pair();
            alone.push(sent(&lab, load)?.cpu_ns);
        }
        rows.push(pairs.row(&format!("CPU a packet, {what}"), "ns", Goal::RatioAtMost(most), |run| run.cpu_ns));
        if bytes == SMALL {
            let base = super::super::report::Spread::of(alone).median;
            let goal = Goal::RatioAtMost(1.0);
            let task = format!("price on the packet's way, {bytes} bytes (without a capture {base:.0})");
            rows.push(pairs.row(&task, "ns", goal, |run| (run.sent.cpu_ns - base).max(1.0)));
        }
    }
    Ok(rows)
}

/// Measures writing full-size packets to a file in memory.
pub(super) fn to_file(binary: &Path, rounds: u32, share: u32) -> Result<Vec<Row>> {
    let make = |folder: &Path| {
        let ours = Contestant::ours(binary, "capture -i IFACE -w").with(&folder.join("all.pcapng"));
        [ours, Contestant::tcpdump(&format!("{THEIRS} -w")).with(&folder.join("all.pcap"))]
    };
    let load = Load { source: Source::Kernel { delay: EASY }, packets: FILED / share, rate: None, bytes: FULL };
    let pairs = Pairs::of("1514 bytes to a file", load, rounds, make)?;
    let mut rates = [Vec::new(), Vec::new()];
    for round in 1..=rounds {
        println!("bench: rates of 1514 bytes to a file, round {round}");
        for (nth, list) in rates.iter_mut().enumerate() {
            list.push(loss_free(load, &|folder| make(folder)[nth].clone())?);
        }
    }
    let [ours, theirs] = rates;
    let [our_label, their_label] = pairs.labels.clone();
    let rate = Row {
        task: "1514 bytes to a file on tmpfs, highest rate without loss".to_owned(),
        unit: "k/s",
        ours: (our_label, ours),
        peer: Some((their_label, theirs)),
        goal: Goal::RatioAtLeast(1.3),
        note: format!("{} packets at each rate, up to the first at which the ring has no room for one", load.packets),
    };
    Ok(vec![rate, pairs.row("CPU a packet to a file, 1514 bytes", "ns", Goal::RatioAtMost(0.8), |run| run.cpu_ns)])
}

/// The highest rate without loss, in thousands per second.
fn loss_free(load: Load, make: &dyn Fn(&Path) -> Contestant) -> Result<f64> {
    let mut best: f64 = 0.0;
    for delay in (0..=EASY).rev().step_by(STEP as usize) {
        let folder = Folder::in_memory()?;
        let run = measure(&make(&folder.0), Load { source: Source::Kernel { delay }, ..load })?;
        // tcpdump does not count the packets that it had not read when it ended, so only the ring's own counter counts
        // as loss.
        if run.figures.dropped > 0 {
            break;
        }
        best = best.max(run.kpps);
    }
    Ok(best)
}

/// Measures 100,000 packets per second at the latency of text output, against a peer that polls for each packet; then
/// lines of text at the same rate.
pub(super) fn steady(binary: &Path, rounds: u32, share: u32) -> Result<Vec<Row>> {
    let load = Load { source: Source::Socket, packets: STEADY / share, rate: Some(100_000), bytes: 100 };
    let pairs = Pairs::of("100,000 a second", load, rounds, |_| {
        let theirs = Contestant::tcpdump("--immediate-mode -n -U -i IFACE -w /dev/null");
        [Contestant::ours(binary, "capture -i IFACE -w -"), theirs]
    })?;
    let goal = Goal::RatioAtMost(1.0 / 3.0);
    let mut row = pairs.row("CPU a packet at 100,000/s, each shown at once", "ns", goal, |run| run.cpu_ns);
    let late: Vec<&str> = pairs.ours.iter().filter_map(|run| latency_said(&run.said)).collect();
    row.note += &format!("; ours 99 of 100 within {} (≤ 0.5 ms)", late.join(", "));
    let lines = Pairs::of("lines of 100,000 a second", load, rounds, |_| {
        [Contestant::ours(binary, super::live_text(binary)), Contestant::tcpdump(THEIRS)]
    })?;
    Ok(vec![row, lines.row("CPU a line, live", "ns", Goal::RatioAtMost(0.1), |run| run.cpu_ns)])
}

/// How long the timers of an idle host are counted.
const IDLE: Duration = Duration::from_secs(2);

/// Measures kernel timers and wake-ups of the program while no packets arrive.
pub(super) fn idle(binary: &Path, rounds: u32) -> Result<Vec<Row>> {
    let shown = Contestant::ours(binary, super::live_text(binary));
    let written = Contestant::ours(binary, "capture -i IFACE -w /dev/null");
    let often = Contestant::ours(binary, "capture -i IFACE --latency 1ms -w /dev/null");
    let mut counts = [const { Vec::new() }; 3];
    for round in 1..=rounds {
        println!("bench: idle, round {round}");
        for (contestant, list) in [&shown, &written, &often].into_iter().zip(&mut counts) {
            list.push(wakeups(contestant)?);
        }
    }
    let [of_shown, of_written, of_often] = counts;
    let row = |contestant: &Contestant, ours| Row {
        task: "idle: wake-ups and timers of blocks".to_owned(),
        unit: "a second",
        ours: (contestant.label.clone(), ours),
        peer: Some((format!("blocks handed over each ms ({})", often.label), of_often.clone())),
        goal: Goal::AtMost(20.0),
        note: "timers: /proc/softirqs, less those without a capture".to_owned(),
    };
    Ok(vec![row(&shown, of_shown), row(&written, of_written)])
}

fn wakeups(contestant: &Contestant) -> Result<f64> {
    let lab = pair();
    let counted = |before: u64, after: u64| after.saturating_sub(before) as f64 / IDLE.as_secs_f64();
    let before = timers();
    std::thread::sleep(IDLE);
    let alone = counted(before, timers());
    let listening = contestant.start(&lab, Stdio::null())?;
    std::thread::sleep(Duration::from_millis(300));
    let (before, switches) = (timers(), switches(listening.child.id()));
    std::thread::sleep(IDLE);
    let (with, own) = (counted(before, timers()), counted(switches, self::switches(listening.child.id())));
    Ok((with - alone).max(0.0) + own)
}

/// High-resolution timers that fired in soft interrupts on all CPUs, including the timers of ring blocks.
fn timers() -> u64 {
    let text = std::fs::read_to_string("/proc/softirqs").unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("HRTIMER:")).unwrap_or_default();
    line.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).sum()
}

fn switches(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
