//! `bench screen` measures the cost of a frame of `netwren sockets --watch` on a terminal with many unchanging
//! sockets.

use super::generator::{Load, Running};
use super::live::on_cpu_ns;
use super::report::{Spread, save};
use super::{Options, machine};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use sys::pty::Pty;
use sys::term::TermSize;
use testkit::netns::Lab;

const SIZE: TermSize = TermSize { rows: 40, columns: 120 };
/// Default number of open sockets.
const SOCKETS: u64 = 100_000;
/// Consecutive frames; the owners are read completely every five seconds.
const FRAMES: u32 = 31;
/// A frame is complete when no bytes have arrived for this long; rounds are a second apart.
const SILENCE: Duration = Duration::from_millis(300);
/// The longest time to wait for a frame.
const PATIENCE: Duration = Duration::from_secs(10);
/// The goal for the CPU per frame.
const CPU_MAX_MS: f64 = 60.0;
/// The largest number of bytes in the first frame, and in a frame identical to the previous one.
const BYTES_MAX: [f64; 2] = [8_192.0, 300.0];

/// A program that is killed on drop.
struct Watching {
    child: Child,
    bytes: Receiver<usize>,
}

impl Watching {
    fn start(binary: &Path) -> Result<Watching> {
        let pty = Arc::new(Pty::open(SIZE)?);
        let mut command = Command::new(binary);
        command.args(["sockets", "--watch=1"]).env("TERM", "xterm");
        pty.attach(&mut command)?;
        let child = command.spawn()?;
        // The command holds copies of the terminal's program side; while they are open, reading would never end.
        drop(command);
        let (told, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 64 << 10];
            while let Ok(count @ 1..) = pty.master().read(&mut buffer) {
                if told.send(count).is_err() {
                    break;
                }
            }
        });
        Ok(Watching { child, bytes })
    }

    /// Waits for the next frame; returns its bytes and the CPU in ms since the previous frame.
    fn frame(&self, before_ns: &mut u64) -> Result<(f64, f64)> {
        let mut bytes = self.bytes.recv_timeout(PATIENCE).context("no frame came")?;
        loop {
            match self.bytes.recv_timeout(SILENCE) {
                Ok(more) => bytes += more,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => anyhow::bail!("netwren has ended"),
            }
        }
        let now_ns = on_cpu_ns(self.child.id())?;
        let spent = now_ns - *before_ns;
        *before_ns = now_ns;
        Ok((bytes as f64, spent as f64 / 1e6))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the bench and writes the result files.
pub(super) fn run(options: &Options, binary: &Path) -> Result<()> {
    let sockets = options.rows.iter().copied().find(|rows| *rows >= SOCKETS).unwrap_or(SOCKETS);
    let frames = if options.quick { 3 } else { FRAMES * options.runs.unwrap_or(1) };
    let lab = Lab::new("benchscreen");
    lab.ip(&["-6", "route", "add", "local", "fd77::/16", "dev", "lo"]);
    println!("bench: opening {sockets} sockets");
    let load = Load { rows: sockets, v6_percent: options.v6, ..Load::default() }.filled();
    let running = lab.run_inside(|| Running::start(&load))?;
    let watching = lab.run_inside(|| Watching::start(binary))?;
    let mut cpu = 0;
    let (first_bytes, first_ms) = watching.frame(&mut cpu)?;
    let later = (1..frames).map(|_| watching.frame(&mut cpu)).collect::<Result<Vec<_>>>()?;
    drop(watching);
    drop(running);
    ensure!(first_bytes > f64::from(40 * 20), "the first frame shows no rows: {first_bytes} bytes");
    let bytes = Spread::of(later.iter().map(|(bytes, _)| *bytes).collect());
    let times = Spread::of(later.iter().map(|(_, ms)| *ms).collect());
    let mean = later.iter().map(|(_, ms)| ms).sum::<f64>() / later.len() as f64;
    let about = machine::describe(binary)?;
    let said = |reached: bool| if reached { "reached" } else { "**missed**" };
    let markdown = format!(
        "# bench screen, {}\n\n`netwren sockets --watch=1` on a terminal of {} x {}, {sockets} TCP sockets that do not \
         change, {} frames after the first.\n\n| | first | later, median (min to max) | mean | at most |\n\
         |---|--:|--:|--:|---|\n| CPU, ms | {first_ms:.1} | {:.1} ({:.1} to {:.1}) | {mean:.1} | {CPU_MAX_MS}: {} |\n\
         | bytes | {first_bytes} | {} ({} to {}) | | {} and {}: {} |\n",
        about["date"].as_str().unwrap_or_default(),
        SIZE.columns,
        SIZE.rows,
        later.len(),
        times.median,
        times.min,
        times.max,
        said(mean <= CPU_MAX_MS),
        bytes.median,
        bytes.min,
        bytes.max,
        BYTES_MAX[0],
        BYTES_MAX[1],
        said(first_bytes <= BYTES_MAX[0] && bytes.median <= BYTES_MAX[1]),
    );
    let file = json!({
        "name": "screen", "about": about, "load": load.json(), "cpu_ms": times.json(), "cpu_mean_ms": mean,
        "first_cpu_ms": first_ms, "bytes": bytes.json(), "first_bytes": first_bytes,
    });
    save("screen", &file, &markdown, !options.quick)
}
