//! Measures the time from sending a packet until its line arrives at the other end of a pipe. The sender runs on one
//! CPU, the capturing program and the reader of the pipe on the other. Left to the scheduler, an interrupted sender
//! would in some runs, and not in others, have the reader woken on an idle CPU, which takes longer than everything
//! else.

use super::super::cpus;
use super::contestant::Contestant;
use super::load::{Load, Source, number_in, pair};
use super::report::{Goal, Row};
use anyhow::{Context, Result};
use std::io::Read;
use std::path::Path;
use std::process::{ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Packets per second, and number of packets.
const RATES: [(u32, u32); 4] = [(10, 60), (100, 300), (1_000, 1_500), (10_000, 10_000)];
/// A run is over when no line has arrived for this long; tcpdump buffers for up to a second.
const SILENCE: Duration = Duration::from_millis(1_500);
/// The first packets, which find cold caches, are not counted.
const COLD: usize = 3;

/// Sorted latencies of one run in µs, and the number of packets without a line.
struct Lines {
    us: Vec<f64>,
    missing: usize,
}

impl Lines {
    fn at(&self, per_cent: usize) -> f64 {
        let at = (self.us.len() * per_cent / 100).min(self.us.len().saturating_sub(1));
        self.us.get(at).copied().unwrap_or(f64::NAN)
    }
}

/// Measures all rates selected by `latency RATE`, with the contestants in turn.
pub(super) fn rows(binary: &Path, rounds: u32, is_quick: bool, is_asked: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let ours = Contestant::ours(binary, super::live_text(binary));
    let immediate = Contestant::tcpdump("--immediate-mode -n -l -i IFACE");
    let usual = Contestant::tcpdump("-n -l -i IFACE");
    let mut rows = Vec::new();
    for (rate, packets) in RATES.into_iter().filter(|(rate, _)| is_asked(&format!("latency {rate}"))) {
        let packets = if is_quick { packets.min(rate) } else { packets };
        let load = Load { source: Source::Socket, packets, rate: Some(rate), bytes: 100 };
        let mut rounds_of = [const { Vec::new() }; 3];
        for round in 1..=rounds {
            println!("bench: latency at {rate}/s, round {round}");
            for (contestant, lines) in [&ours, &immediate, &usual].into_iter().zip(&mut rounds_of) {
                lines.push(one(contestant, load)?);
            }
        }
        let [ours_rounds, immediate_rounds, usual_rounds] = &rounds_of;
        let p50 = |rounds: &[Lines]| rounds.iter().map(|lines| lines.at(50)).collect::<Vec<_>>();
        let note = |rounds: &[Lines]| {
            let worst = rounds.iter().map(|lines| lines.at(99)).fold(0.0, f64::max);
            let missing: usize = rounds.iter().map(|lines| lines.missing).sum();
            format!("99 of 100: {worst:.0} µs, missing: {missing}")
        };
        for (peer, theirs, goal) in [(&immediate, immediate_rounds, 1.0), (&usual, usual_rounds, 1.0 / 200.0)] {
            let has_goal = matches!(rate, 10 | 1_000);
            rows.push(Row {
                task: format!("text to a pipe, {rate} packets/s, p50"),
                unit: "µs",
                ours: (ours.label.clone(), p50(ours_rounds)),
                peer: Some((peer.label.clone(), p50(theirs))),
                goal: if has_goal { Goal::RatioAtMost(goal) } else { Goal::None },
                note: format!("ours {}; theirs {}", note(ours_rounds), note(theirs)),
            });
        }
    }
    Ok(rows)
}

fn one(contestant: &Contestant, load: Load) -> Result<Lines> {
    let lab = pair();
    let mut listening = contestant.start(&lab, Stdio::piped())?;
    let stdout = listening.stdout().context("stdout is a pipe")?;
    let begin = Instant::now();
    let sent: Arc<Vec<AtomicU64>> = Arc::new((0..load.packets).map(|_| AtomicU64::new(0)).collect());
    let last_ns = Arc::new(AtomicU64::new(0));
    let reader = {
        let (sent, last_ns) = (Arc::clone(&sent), Arc::clone(&last_ns));
        std::thread::spawn(move || -> Result<_> {
            cpus::stay_on_second()?;
            Ok(read(stdout, begin, &sent, &last_ns))
        })
    };
    cpus::keep_on_second(listening.child.id())?;
    lab.run_inside(|| cpus::stay_on_first().and_then(|()| load.send(begin, &sent)))?;
    let end = begin.elapsed();
    while begin.elapsed() < end.max(Duration::from_nanos(last_ns.load(Ordering::Relaxed))) + SILENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = listening.end()?;
    let mut us = reader.join().map_err(|_| anyhow::anyhow!("the reader ended early"))??;
    let missing = load.packets as usize - us.len();
    us.drain(..COLD.min(us.len()));
    us.sort_by(f64::total_cmp);
    Ok(Lines { us, missing })
}

/// Reads lines until the pipe is closed and returns the latency of each packet in µs, in order. Lines that arrive only
/// after Ctrl-C count with their full delay.
fn read(mut stdout: ChildStdout, begin: Instant, sent: &[AtomicU64], last_ns: &AtomicU64) -> Vec<f64> {
    let (mut us, mut rest, mut buffer) = (Vec::with_capacity(sent.len()), Vec::new(), vec![0; 1 << 16]);
    while let Ok(count @ 1..) = stdout.read(&mut buffer) {
        let now_ns = begin.elapsed().as_nanos() as u64;
        rest.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let numbers = rest.get(..end).unwrap_or_default().split(|byte| *byte == b'\n').filter_map(number_in);
        for place in numbers.filter_map(|number| sent.get(number as usize)) {
            us.push(now_ns.saturating_sub(place.load(Ordering::Relaxed)) as f64 / 1000.0);
            last_ns.store(now_ns, Ordering::Relaxed);
        }
        rest.drain(..end);
    }
    us
}
