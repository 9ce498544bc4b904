//! `bench nat-events` measures which listeners receive every new connection tracking entry, up to which rate and at
//! which cost.
//!
//! Two threads send datagrams at a requested rate, and each datagram creates an entry. The report shows the reached
//! rate, the events that the listener received, the kernel's count of lost events, and the CPU per received event. The
//! listeners take turns.
//!
//! An entry and its event must account for most of a datagram's cost, otherwise a machine with two cores never reaches
//! 200,000 per second: see [`dead_end`]. If other work uses the processors, no run reaches that rate; `chrt -r 1` then
//! gives the bench priority, which the report mentions.

use super::live::on_cpu_ns;
use super::report::Spread;
use super::{Options, machine, report};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testkit::knob::HostKnob;
use testkit::netns::Lab;

const LIMIT: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
/// Requested rates of new entries per second.
const RATES: [u64; 4] = [20_000, 50_000, 100_000, 200_000];
/// Duration of sending.
const SENDING: Duration = Duration::from_millis(1_500);
/// Sending threads. An entry and its netlink event cost 6 to 10 µs, so one thread does not reach 200,000 per second.
const SENDERS: u64 = 2;
/// Datagrams between two readings of the clock.
const BATCH: u64 = 10;
/// How long a sender sleeps when it is ahead of its rate.
const AHEAD: Duration = Duration::from_micros(50);
/// A round is over when no event has arrived for this long.
const SILENCE: Duration = Duration::from_millis(500);

struct Listener {
    label: &'static str,
    /// `None` means netwren.
    program: Option<&'static str>,
    args: &'static [&'static str],
    /// True if its netlink socket shows when it is listening.
    netlink: bool,
    /// The rate up to which no event may be lost.
    whole_at: u64,
}

const LISTENERS: [Listener; 4] = [
    Listener {
        label: "conntrack -E -e NEW",
        program: Some("conntrack"),
        args: &["-E", "-e", "NEW"],
        netlink: true,
        whole_at: 0,
    },
    Listener {
        label: "netwren nat events --event new --via netlink",
        program: None,
        args: &["nat", "events", "-H", "--event", "new", "--via", "netlink"],
        netlink: true,
        whole_at: 100_000,
    },
    Listener {
        label: "netwren nat events --event new",
        program: None,
        args: &["nat", "events", "-H", "--event", "new"],
        netlink: false,
        whole_at: 200_000,
    },
    Listener {
        label: "netwren nat events --event new, with owners",
        program: None,
        args: &["nat", "events", "-H", "--event", "new", "--columns", "event,time,client,published,process,pid"],
        netlink: false,
        whole_at: 0,
    },
];

/// The result of one listener in one round.
struct Heard {
    sent: u64,
    told: u64,
    /// The kernel's count of losses: messages dropped at sockets, or events that found the ring buffer full.
    counted: u64,
    rate: f64,
    /// CPU of all threads per received event, including a part of the start-up.
    reader_ns: f64,
}

/// Runs all rounds and writes the result files.
pub(super) fn run(options: &Options, binary: &Path) -> Result<()> {
    ensure!(
        testkit::tool::is_installed("conntrack"),
        "bench nat-events needs conntrack: ./netwren.sh bench installs it"
    );
    let runs = options.runs.unwrap_or(3);
    let most = RATES.iter().max().copied().unwrap_or(0) * SENDING.as_millis() as u64 / 1_000;
    let _room = HostKnob::set(LIMIT, &(2 * most).to_string());
    let (mut lines, mut all) = (String::new(), Vec::new());
    for rate in RATES {
        let mut rounds: Vec<(&Listener, Vec<Heard>)> = LISTENERS.iter().map(|each| (each, Vec::new())).collect();
        for round in 1..=runs {
            println!("bench: {rate} new entries a second, round {round}");
            for (listener, heard) in &mut rounds {
                heard.push(one(listener, rate, binary).with_context(|| listener.label)?);
            }
        }
        for (listener, heard) in rounds {
            lines.push_str(&line(listener, rate, &heard));
            all.push(json_of(listener, rate, &heard));
        }
    }
    let about = machine::describe(binary)?;
    let head = format!(
        "# bench nat-events, {}\n\nUDP datagrams to ever new addresses for {} ms, one listener at a time, {runs} \
            rounds in turn; medians \
         (min–max). CPU of the listener's whole process while events came, its text included, an event told. Counted: \
         what the kernel says it dropped.{}\n\n\
         | asked, 1/s | listener | reached, 1/s | sent | received | lost | counted | CPU µs/event | nothing lost up \
         to |\n\
         |--:|---|--:|--:|--:|--:|--:|--:|---|\n",
        about["date"].as_str().unwrap_or_default(),
        SENDING.as_millis(),
        if is_first() {
            " Sender and listener ran with real-time priority: other work went on beside them."
        } else {
            ""
        }
    );
    let file = json!({"name": "nat-events", "about": about, "outcomes": all});
    report::save("nat-events", &file, &(head + &lines), !options.quick)
}

/// True if this process, and therefore its children, have real-time priority (field 41 of /proc/PID/stat, `policy`).
fn is_first() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    matches!(behind_name.split_whitespace().nth(38), Some("1" | "2"))
}

fn one(listener: &Listener, rate: u64, binary: &Path) -> Result<Heard> {
    let (lab, nowhere) = (Lab::new("benchevents"), Lab::new("benchnowhere"));
    dead_end(&lab, &nowhere)?;
    lab.use_conntrack();
    let listening = Listening::start(&lab, listener, binary)?;
    let before = on_cpu_ns(listening.child.id())?;
    let (sent, took) = lab.run_inside(|| send(rate))?;
    listening.wait_for(sent);
    let cpu = on_cpu_ns(listening.child.id())? - before;
    let dropped = if listener.netlink { lab.run_inside(drops) } else { 0 };
    let (told, said) = listening.end()?;
    let counted = if listener.netlink { dropped } else { lost_in(&said) };
    // Remove the remaining entries now, otherwise the kernel would remove them during the next round.
    lab.output("conntrack", &["-F"]);
    let (told, rate) = (told.min(sent), sent as f64 / took.as_secs_f64());
    Ok(Heard { sent, told, counted, rate, reader_ns: cpu as f64 / told.max(1) as f64 })
}

/// Adds an interface that accepts every packet and delivers it to no process. Packets sent through it pass all hooks
/// and cost half of a veth pair, where a second namespace processes them (3.7 µs instead of 7.7 µs).
pub(super) fn dead_end(lab: &Lab, nowhere: &Lab) -> Result<()> {
    // A tun interface without a process. Kernels without tun use one end of a veth pair whose other end is down: 5.3
    // µs.
    if !lab
        .command("ip")
        .args(["tuntap", "add", "dev", "out0", "mode", "tun"])
        .stderr(Stdio::null())
        .status()?
        .success()
    {
        lab.ip(&["link", "add", "out0", "arp", "off", "type", "veth", "peer", "name", "in0", "netns", nowhere.name()]);
    }
    lab.ip(&["addr", "add", "10.99.0.1/24", "dev", "out0"]);
    lab.ip(&["link", "set", "out0", "up"]);
    lab.ip(&["route", "add", "default", "dev", "out0"]);
    Ok(())
}

/// A running listener.
struct Listening {
    child: Child,
    /// Lines that it has written.
    told: Arc<AtomicU64>,
    counting: JoinHandle<()>,
}

impl Listening {
    /// Starts the listener; when this returns, it receives every following event.
    fn start(lab: &Lab, listener: &Listener, binary: &Path) -> Result<Listening> {
        let program = listener.program.map_or(binary, Path::new);
        let mut command = Command::new(program);
        command.args(listener.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = lab.run_inside(|| command.spawn())?;
        let lines = BufReader::with_capacity(1 << 20, child.stdout.take().context("its output is a pipe")?);
        let told = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&told);
        let counting = std::thread::spawn(move || count(lines, &counted));
        if listener.netlink {
            lab.wait_until("it listens", || lab.run_inside(hears));
        } else {
            open_until_reported(lab, &told);
        }
        Ok(Listening { child, told, counting })
    }

    /// Waits until it has written this many lines, or no line has arrived for a while.
    fn wait_for(&self, lines: u64) {
        let mut last = (self.told.load(Ordering::Relaxed), Instant::now());
        while last.0 < lines && last.1.elapsed() < SILENCE {
            std::thread::sleep(Duration::from_millis(10));
            let now = self.told.load(Ordering::Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
    }

    /// Ends the listener; returns the number of its lines, including buffered ones, and its text on stderr.
    fn end(mut self) -> Result<(u64, String)> {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status()?;
        let mut said = String::new();
        self.child.stderr.take().context("its messages are a pipe")?.read_to_string(&mut said)?;
        self.child.wait()?;
        ensure!(self.counting.join().is_ok(), "the thread that counts lines failed");
        Ok((self.told.load(Ordering::Relaxed), said))
    }
}

fn count(mut lines: BufReader<impl Read>, counter: &AtomicU64) {
    while let Ok(block) = lines.fill_buf() {
        let (bytes, found) = (block.len(), block.iter().filter(|byte| **byte == b'\n').count());
        if bytes == 0 {
            return;
        }
        lines.consume(bytes);
        counter.fetch_add(found as u64, Ordering::Relaxed);
    }
}

/// A BPF program at a hook is not listed anywhere, so test datagrams are sent until the first event arrives, and then
/// all test events are awaited.
fn open_until_reported(lab: &Lab, told: &AtomicU64) {
    let mut port = 0;
    lab.wait_until("it listens", || {
        port += 1;
        let tried =
            lab.run_inside(|| Some(UdpSocket::bind("10.99.0.1:0").ok()?.send_to(b"x", ("10.98.0.1", port)).is_ok()));
        tried == Some(true) && told.load(Ordering::Relaxed) > 0
    });
    loop {
        let before = told.load(Ordering::Relaxed);
        std::thread::sleep(SILENCE);
        if told.load(Ordering::Relaxed) == before {
            break;
        }
    }
    told.store(0, Ordering::Relaxed);
}

/// Calls `each` with the words of every listening netfilter netlink socket (protocol 12) in the calling thread's
/// namespace.
fn listeners(each: &mut dyn FnMut(&[&str])) {
    let table = std::fs::read_to_string("/proc/thread-self/net/netlink").unwrap_or_default();
    for line in table.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.get(1) == Some(&"12") && words.get(3).is_some_and(|groups| !groups.trim_start_matches('0').is_empty())
        {
            each(&words);
        }
    }
}

/// True if a process listens to ctnetlink.
fn hears() -> bool {
    let mut heard = false;
    listeners(&mut |_| heard = true);
    heard
}

/// Messages that the kernel dropped at listening sockets (column Drops).
fn drops() -> u64 {
    let mut all = 0;
    listeners(&mut |words| all += words.get(8).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0));
    all
}

/// The number of lost events from netwren's message `N events lost: …`.
fn lost_in(said: &str) -> u64 {
    let before = said.split("events lost").next().filter(|before| before.len() < said.len());
    before
        .and_then(|before| before.split_whitespace().last())
        .map_or(0, |word| word.replace(',', "").parse().unwrap_or(0))
}

/// Sends at the requested rate from all threads together; returns the number of datagrams and the time it took.
pub(super) fn send(rate: u64) -> Result<(u64, Duration)> {
    let begun = Instant::now();
    // New threads start in the network namespace of the current thread, which is the lab.
    let sent = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS).map(|first| scope.spawn(move || send_part(first, rate, begun))).collect();
        senders
            .into_iter()
            .map(|sender| sender.join().unwrap_or_else(|_| bail!("a sender failed")))
            .sum::<Result<u64>>()
    })?;
    Ok((sent, begun.elapsed()))
}

/// One thread's part: every [`SENDERS`]th address, beginning with `first`.
fn send_part(first: u64, rate: u64, begun: Instant) -> Result<u64> {
    let socket = UdpSocket::bind("10.99.0.1:0")?;
    let mut sent = 0u64;
    while begun.elapsed() < SENDING {
        let due = (begun.elapsed().as_secs_f64() * rate as f64) as u64 / SENDERS;
        while sent < due && begun.elapsed() < SENDING {
            for n in sent..(sent + BATCH) {
                socket.send_to(b"x", (Ipv4Addr::from(0x1400_0000 + (n * SENDERS + first) as u32), 9))?;
            }
            sent += BATCH;
        }
        // A sender that is ahead leaves the processor to the reader.
        std::thread::sleep(AHEAD);
    }
    Ok(sent)
}

fn spread(heard: &[Heard], of: impl Fn(&Heard) -> f64) -> Spread {
    Spread::of(heard.iter().map(of).collect())
}

fn lost(heard: &Heard) -> f64 {
    (heard.sent - heard.told) as f64
}

fn line(listener: &Listener, rate: u64, heard: &[Heard]) -> String {
    let (reached, lost) = (spread(heard, |heard| heard.rate), spread(heard, lost));
    let of = |of: fn(&Heard) -> u64| spread(heard, |heard| of(heard) as f64).median;
    let (sent, told, counted) = (of(|heard| heard.sent), of(|heard| heard.told), of(|heard| heard.counted));
    let cpu = spread(heard, |heard| heard.reader_ns / 1_000.0);
    let verdict = match (listener.whole_at >= rate, lost.max > 0.0) {
        (false, _) => "–".to_owned(),
        (true, false) if reached.median < 0.95 * rate as f64 => {
            format!("{}: the sender does not get there", listener.whole_at)
        }
        (true, false) => format!("{}: reached", listener.whole_at),
        (true, true) => format!("{}: **missed**", listener.whole_at),
    };
    format!(
        "| {rate} | `{}` | {:.0} | {sent:.0} | {told:.0} | {:.0} ({:.0}–{:.0}) | {counted:.0} | {:.2} ({:.2}–{:.2}) | \
            {verdict} |\n",
        listener.label, reached.median, lost.median, lost.min, lost.max, cpu.median, cpu.min, cpu.max
    )
}

fn json_of(listener: &Listener, rate: u64, heard: &[Heard]) -> Value {
    let of = |of: &dyn Fn(&Heard) -> f64| spread(heard, of).json();
    json!({
        "listener": listener.label, "asked_per_s": rate, "reached_per_s": of(&|heard| heard.rate),
        "sent": of(&|heard| heard.sent as f64), "received": of(&|heard| heard.told as f64), "lost": of(&lost),
        "counted": of(&|heard| heard.counted as f64), "reader_ns": of(&|heard| heard.reader_ns),
    })
}
