//! `bench nat-events`: who hears of every new entry of connection tracking, at which rate, for how much.
//!
//! One thread sends datagrams, each of which makes an entry, at a rate that is asked for; what rate was reached, how much
//! the listener told of, and what CPU it took a told event, are shown side by side. The listeners take turns.

use super::live::on_cpu_ns;
use super::report::Spread;
use super::{Options, machine, report};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use testkit::knob::HostKnob;
use testkit::netns::Lab;

const LIMIT: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
/// New entries a second that are asked for.
const RATES: [u64; 4] = [20_000, 50_000, 100_000, 200_000];
/// How long it is sent.
const SENDING: Duration = Duration::from_millis(1_500);
/// Datagrams between two looks at the clock.
const BATCH: u64 = 50;
/// When nothing more has been told for so long, it was all.
const SILENCE: Duration = Duration::from_millis(500);

struct Listener {
    label: &'static str,
    /// None: netwren.
    program: Option<&'static str>,
    args: &'static [&'static str],
    /// Whether it is seen to listen by its netlink socket.
    netlink: bool,
    /// Rate up to which nothing may be lost.
    whole_at: u64,
}

const LISTENERS: [Listener; 3] = [
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
];

/// One listener in one round.
struct Heard {
    sent: u64,
    told: u64,
    rate: f64,
    /// CPU of all its threads an event told, and a part of it that is no event's: starting.
    reader_ns: f64,
}

/// Runs all rounds and writes the files.
pub(super) fn run(options: &Options, binary: &Path) -> Result<()> {
    ensure!(testkit::tool::have("conntrack"), "bench nat-events needs conntrack: ./netwren.sh bench installs it");
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
        "# bench nat-events, {}\n\nUDP datagrams to ever new addresses for {} ms, one listener at a time, {runs} rounds in turn; medians \
         (min–max). CPU of the listener's whole process while events came, its text included, an event told.\n\n\
         | asked, 1/s | listener | reached, 1/s | lost | CPU µs/event | nothing lost up to |\n|--:|---|--:|--:|--:|---|\n",
        about["date"].as_str().unwrap_or_default(),
        SENDING.as_millis()
    );
    let file = json!({"name": "nat-events", "about": about, "outcomes": all});
    report::save("nat-events", &file, &(head + &lines), !options.quick)
}

fn one(listener: &Listener, rate: u64, binary: &Path) -> Result<Heard> {
    // What is sent ends in another namespace, where nobody has an address.
    let (lab, nowhere) = (Lab::new("benchevents"), Lab::new("benchnowhere"));
    lab.ip(&["link", "add", "out0", "arp", "off", "type", "veth", "peer", "name", "in0", "netns", nowhere.name()]);
    nowhere.ip(&["link", "set", "in0", "up"]);
    lab.ip(&["addr", "add", "10.99.0.1/24", "dev", "out0"]);
    lab.ip(&["link", "set", "out0", "up"]);
    lab.ip(&["route", "add", "default", "dev", "out0"]);
    lab.use_conntrack();
    let (mut child, told) = listen(&lab, listener, binary)?;
    let before = on_cpu_ns(child.id())?;
    let (sent, took) = lab.inside(|| send(rate))?;
    let mut last = (told.load(Ordering::Relaxed), Instant::now());
    while last.0 < sent && last.1.elapsed() < SILENCE {
        std::thread::sleep(Duration::from_millis(10));
        let now = told.load(Ordering::Relaxed);
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    let cpu = on_cpu_ns(child.id())? - before;
    Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
    child.wait()?;
    // What had been gathered goes out at the end.
    std::thread::sleep(Duration::from_millis(50));
    let told = told.load(Ordering::Relaxed).min(sent);
    Ok(Heard { sent, told, rate: sent as f64 / took.as_secs_f64(), reader_ns: cpu as f64 / told.max(1) as f64 })
}

/// Starts it; when it returns, nothing that is sent can be missed. The counter is of lines.
fn listen(lab: &Lab, listener: &Listener, binary: &Path) -> Result<(Child, Arc<AtomicU64>)> {
    let program = listener.program.map_or(binary, Path::new);
    let mut command = Command::new(program);
    command.args(listener.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = lab.inside(|| command.spawn())?;
    let mut lines = BufReader::with_capacity(1 << 20, child.stdout.take().context("its output is a pipe")?);
    let counter = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&counter);
    std::thread::spawn(move || {
        while let Ok(block) = lines.fill_buf() {
            let (bytes, found) = (block.len(), block.iter().filter(|byte| **byte == b'\n').count());
            if bytes == 0 {
                return;
            }
            lines.consume(bytes);
            counted.fetch_add(found as u64, Ordering::Relaxed);
        }
    });
    if listener.netlink {
        lab.wait_until("it listens", || lab.inside(hears));
    } else {
        // A program at a hook shows nowhere but in what it tells: it is tried until it does.
        let mut port = 0;
        lab.wait_until("it listens", || {
            port += 1;
            let tried =
                lab.inside(|| Some(UdpSocket::bind("10.99.0.1:0").ok()?.send_to(b"x", ("10.98.0.1", port)).is_ok()));
            tried == Some(true) && counter.load(Ordering::Relaxed) > 0
        });
        // Every try is told of before the counting begins.
        loop {
            let before = counter.load(Ordering::Relaxed);
            std::thread::sleep(SILENCE);
            if counter.load(Ordering::Relaxed) == before {
                break;
            }
        }
        counter.store(0, Ordering::Relaxed);
    }
    Ok((child, counter))
}

/// Whether somebody in the calling thread's namespace listens to ctnetlink (protocol 12).
fn hears() -> bool {
    let table = std::fs::read_to_string("/proc/thread-self/net/netlink").unwrap_or_default();
    table.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1) == Some(&"12") && words.get(3).is_some_and(|groups| !groups.trim_start_matches('0').is_empty())
    })
}

/// Sends as fast as asked; how many, and how long it took.
fn send(rate: u64) -> Result<(u64, Duration)> {
    let socket = UdpSocket::bind("10.99.0.1:0")?;
    let (begun, mut sent) = (Instant::now(), 0u64);
    while begun.elapsed() < SENDING {
        let due = (begun.elapsed().as_secs_f64() * rate as f64) as u64;
        while sent < due {
            for n in sent..(sent + BATCH) {
                socket.send_to(b"x", (Ipv4Addr::from(0x1400_0000 + n as u32), 9))?;
            }
            sent += BATCH;
            if begun.elapsed() > SENDING {
                break;
            }
        }
        std::thread::yield_now();
    }
    Ok((sent, begun.elapsed()))
}

fn spread(heard: &[Heard], of: impl Fn(&Heard) -> f64) -> Spread {
    Spread::of(heard.iter().map(of).collect())
}

fn lost(heard: &Heard) -> f64 {
    (heard.sent - heard.told) as f64
}

fn line(listener: &Listener, rate: u64, heard: &[Heard]) -> String {
    let (reached, lost) = (spread(heard, |heard| heard.rate), spread(heard, lost));
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
        "| {rate} | `{}` | {:.0} | {:.0} ({:.0}–{:.0}) | {:.2} ({:.2}–{:.2}) | {verdict} |\n",
        listener.label, reached.median, lost.median, lost.min, lost.max, cpu.median, cpu.min, cpu.max
    )
}

fn json_of(listener: &Listener, rate: u64, heard: &[Heard]) -> Value {
    let of = |of: &dyn Fn(&Heard) -> f64| spread(heard, of).json();
    json!({
        "listener": listener.label, "asked_per_s": rate, "reached_per_s": of(&|heard| heard.rate),
        "sent": of(&|heard| heard.sent as f64), "lost": of(&lost), "reader_ns": of(&|heard| heard.reader_ns),
    })
}
