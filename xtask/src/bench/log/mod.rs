//! `bench log` compares the cost of shipping log records with the usual chains of programs, and checks that all
//! records arrive.
//!
//! A sender emits numbered packets that a rule logs and drops. Contestants take turns with the same burst. The CPU
//! covers every process of the chain, from before the first packet until the receiver or the file has not grown for a
//! while; it excludes the receiver. Each packet is then searched for in the output.

mod alone;
pub(crate) mod contestants;
pub(crate) mod databases;
pub(crate) mod packets;
pub(crate) mod place;
mod price;
mod receiver;
mod sessions;
mod syslog_daemons;

use super::live::on_cpu_ns;
use super::report::Spread;
use super::{Options, cpus, machine, report};
use anyhow::{Context, Result, ensure};
use contestants::{Chain, Content, TASKS, Task};
use packets::Found;
use place::Place;
use receiver::Receiver;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use testkit::netns::Lab;

/// Packets of a burst.
const BURST: u32 = 400_000;
/// Packets at a steady rate, and packets per second: ten seconds, so that the first records have little weight.
const STEADY: (u32, u32) = (60_000, 6_000);
/// A round is over when nothing has been written for this long; ulogd2 buffers for up to a second.
const SILENCE: Duration = Duration::from_millis(1_500);

/// The result of one contestant in one round.
struct Shipped {
    /// CPU of the chain.
    cpu_ns: u64,
    packets: u64,
    records: u64,
    /// The time that sending took.
    took: Duration,
    /// Memory of the chain's first program after the round, before it was asked to end.
    rss_kib: u64,
}

impl Shipped {
    fn ns_per_record(&self) -> f64 {
        self.cpu_ns as f64 / self.packets.max(1) as f64
    }
}

/// The results so far.
#[derive(Default)]
struct Report {
    /// Lines of the table.
    rows: String,
    /// Text below the table.
    below: String,
    values: Vec<Value>,
    /// Number of parts that could not be measured.
    failed: u32,
}

impl Report {
    /// Adds and prints the lines of a part; printing at once keeps them if a later part fails or is interrupted.
    fn add_rows(&mut self, name: &str, part: Result<(String, Vec<Value>)>) {
        let rows = self.taken(name, part);
        self.rows.push_str(&rows);
    }

    fn add_below(&mut self, name: &str, part: Result<(String, Vec<Value>)>) {
        let text = self.taken(name, part);
        self.below.push_str(&text);
    }

    fn taken(&mut self, name: &str, part: Result<(String, Vec<Value>)>) -> String {
        let (text, values) = part.unwrap_or_else(|error| {
            self.failed += 1;
            self.below.push_str(&format!("\n{name}: not measured: {error:#}\n"));
            println!("bench: {name}: not measured: {error:#}");
            Default::default()
        });
        self.values.extend(values);
        print!("{text}");
        text
    }
}

/// Runs the tasks and writes the result files, except with `--only`.
pub(super) fn run(options: &Options, binary: &Path) -> Result<()> {
    let runs = options.runs.unwrap_or(3);
    let is_asked = |name: &str| options.asks_for(name);
    let mut report = Report::default();
    for task in TASKS.iter().filter(|task| is_asked(&task.name())) {
        report.add_rows(&task.name(), compared(task, binary, runs));
    }
    if is_asked("databases") {
        report.add_rows("databases", databases::run(binary, runs));
    }
    let parts: [(&str, Part); 4] =
        [("steady", steady), ("alone", alone::run), ("price", price::run), ("sessions", sessions::run)];
    for (name, part) in parts.into_iter().filter(|(name, _)| is_asked(name)) {
        report.add_below(name, part(binary, runs));
    }
    let about = machine::describe(binary)?;
    let head = format!(
        "# bench log, {}\n\nBursts of {BURST} packets as fast as one sender makes them, {runs} rounds in turn; medians \
         (min–max). CPU of every process of the chain, by the record that arrived; both have 64 MiB of buffer. \
         Bursts are made on one CPU, all of a chain is on another.\n\n\
         | task | instead of | ns/record | theirs | ratio | at least | arrived | theirs |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
        about["date"].as_str().unwrap_or_default(),
    );
    let file = json!({"name": "log", "about": about, "outcomes": report.values});
    report::save("log", &file, &(head + &report.rows + &report.below), !options.quick && options.only.is_none())?;
    ensure!(report.failed == 0, "bench log: {} parts could not be measured", report.failed);
    Ok(())
}

/// Measures a number of rounds with a binary; returns the text of the report and the values.
type Part = fn(&Path, u32) -> Result<(String, Vec<Value>)>;

/// Runs netwren and the peer in turn; returns a line of the table and the values.
fn compared(task: &Task, binary: &Path, runs: u32) -> Result<(String, Vec<Value>)> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=runs {
        println!("bench: {} and {}, round {round}", task.label, task.peer_label);
        let Some(peer) = one(task.content, BURST, None, |place| contestants::peer(task, place))? else { break };
        theirs.push(peer);
        ours.extend(one(task.content, BURST, None, |place| {
            contestants::ours(binary, task.to, "50ms", place).map(Some)
        })?);
    }
    if theirs.is_empty() {
        println!("bench: {} is not installed: {} is not measured", task.peer_label, task.label);
        return Ok(Default::default());
    }
    Ok((line(task, &ours, &theirs), vec![outcome(task, &ours, &theirs)]))
}

/// Ships one burst with one contestant; `None` if it is not installed.
fn one(
    content: Content,
    count: u32,
    rate: Option<u32>,
    start: impl Fn(&Place<'_>) -> Result<Option<Chain>>,
) -> Result<Option<Shipped>> {
    let lab = packets::logging("benchlog");
    let dir = Folder::in_memory()?;
    let receiver = Receiver::start(&lab)?;
    let place = Place { lab: &lab, dir: &dir.0, addr: receiver.addr };
    let Some(chain) = start(&place)? else { return Ok(None) };
    // Wait until connections are made and files are open.
    settle(&place, &receiver, Duration::from_millis(300));
    let before = cpu_ns(&chain)?;
    let took = match rate {
        None => send_burst(&lab, &chain, count)?,
        rate => lab.run_inside(|| packets::send(count, rate))?,
    };
    settle(&place, &receiver, SILENCE);
    let cpu_ns = cpu_ns(&chain)? - before;
    let rss_kib = chain.children.first().map_or(0, |child| rss_kib(child.id()));
    // Programs that write files flush their buffers when they end.
    drop(ended(chain));
    let written = std::fs::read(place.file()).unwrap_or_default();
    let received = receiver.into_bytes();
    let bytes = if written.is_empty() { received } else { written };
    let found = match content {
        Content::Text => Found::none(count).in_text(&bytes, ""),
        // Skip the structured data, which contains the addresses as well.
        Content::Syslog => Found::none(count).in_text(&bytes, "SRC="),
        Content::Packets => Found::none(count).in_packets(&bytes),
    };
    Ok(Some(Shipped { cpu_ns, packets: found.packets(), records: found.records, took, rss_kib }))
}

/// Sends as fast as possible, on a different CPU from the chain; returns the time it took.
fn send_burst(lab: &Lab, chain: &Chain, count: u32) -> Result<Duration> {
    chain.keep_apart()?;
    lab.run_inside(|| cpus::stay_on_first().and_then(|()| packets::send(count, None)))
}

/// Resident memory of a process.
fn rss_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// A folder that is removed on drop.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn in_memory() -> Result<Folder> {
        Folder::below(Path::new("/dev/shm"))
    }

    /// A folder next to the built programs, because /tmp may be in memory.
    fn on_disk() -> Result<Folder> {
        let parent = super::target();
        std::fs::create_dir_all(&parent).with_context(|| parent.display().to_string())?;
        Folder::below(&parent)
    }

    fn below(parent: &Path) -> Result<Folder> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("netwren-{}-{number}", std::process::id()));
        // This fails if the folder already exists, so it never uses one that another user made.
        std::fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Asks the programs of the chain to end and waits for them.
fn ended(mut chain: Chain) -> Chain {
    for child in &mut chain.children {
        let _ = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        let _ = child.wait();
    }
    chain
}

/// Waits until nothing has been written for `silence`.
fn settle(place: &Place<'_>, receiver: &Receiver, silence: Duration) {
    let size = || receiver.count() + std::fs::metadata(place.file()).map_or(0, |facts| facts.len());
    let mut last = (size(), Instant::now());
    while last.1.elapsed() < silence {
        std::thread::sleep(Duration::from_millis(10));
        if size() != last.0 {
            last = (size(), Instant::now());
        }
    }
}

/// CPU of the chain's processes and of their children.
fn cpu_ns(chain: &Chain) -> Result<u64> {
    chain.pids().into_iter().map(on_cpu_ns).sum()
}

fn spread(rounds: &[Shipped], of: impl Fn(&Shipped) -> f64) -> Spread {
    Spread::of(rounds.iter().map(of).collect())
}

/// The peer's CPU divided by ours, round by round.
fn ratio(ours: &[Shipped], theirs: &[Shipped]) -> Spread {
    Spread::of(ours.iter().zip(theirs).map(|(our, their)| their.ns_per_record() / our.ns_per_record()).collect())
}

fn line(task: &Task, ours: &[Shipped], theirs: &[Shipped]) -> String {
    let cost = |rounds| {
        let cost = spread(rounds, Shipped::ns_per_record);
        format!("{:.0} ({:.0}–{:.0})", cost.median, cost.min, cost.max)
    };
    let arrived = |rounds| {
        let packets = spread(rounds, |shipped| shipped.packets as f64);
        let records = spread(rounds, |shipped| (shipped.records - shipped.packets) as f64);
        let twice = if records.max > 0.0 { format!(", {:.0} twice", records.max) } else { String::new() };
        format!("{:.2} %{twice}", packets.min * 100.0 / f64::from(BURST))
    };
    let ratio = ratio(ours, theirs);
    let reached = if ratio.median >= task.at_least { "reached" } else { "**missed**" };
    format!(
        "| {} | {} | {} | {} | {:.1}x ({:.1}–{:.1}) | {:.0}x: {reached} | {} | {} |\n",
        task.label,
        task.peer_label,
        cost(ours),
        cost(theirs),
        ratio.median,
        ratio.min,
        ratio.max,
        task.at_least,
        arrived(ours),
        arrived(theirs)
    )
}

fn outcome(task: &Task, ours: &[Shipped], theirs: &[Shipped]) -> Value {
    let of = |rounds: &[Shipped]| {
        json!({
            "ns_per_record": spread(rounds, Shipped::ns_per_record).json(),
            "packets": spread(rounds, |shipped| shipped.packets as f64).json(),
            "sent_per_s": spread(rounds, |shipped| f64::from(BURST) / shipped.took.as_secs_f64()).json(),
        })
    };
    json!({
        "task": task.label, "peer": task.peer_label, "sent": BURST, "ours": of(ours), "theirs": of(theirs),
        "ratio": ratio(ours, theirs).json(), "at_least": task.at_least,
    })
}

/// Measures RFC 5424 via TCP at a rate typical of many hosts, which uses only a part of a core.
fn steady(binary: &Path, runs: u32) -> Result<(String, Vec<Value>)> {
    let to = "syslog+tcp://ADDR";
    let mut parts = Vec::new();
    for _ in 0..runs {
        let (count, rate) = STEADY;
        let ours = |place: &Place<'_>| contestants::ours(binary, to, "50ms", place).map(Some);
        let shipped = one(Content::Text, count, Some(rate), ours)?;
        parts.extend(shipped.map(|shipped| shipped.cpu_ns as f64 * 100.0 / shipped.took.as_nanos() as f64));
    }
    let part = Spread::of(parts);
    let reached = if part.median <= 0.4 { "reached" } else { "**missed**" };
    let text = format!(
        "\nRFC 5424 by TCP at {} packets a second, records at most 50 ms old: {:.2} % of a core ({:.2}–{:.2}; at most \
         0.4 %: {reached}).\n",
        STEADY.1, part.median, part.min, part.max
    );
    let value = json!({"task": "RFC 5424, TCP, steady", "rate": STEADY.1, "percent_of_core": part.json()});
    Ok((text, vec![value]))
}
