//! `cargo xtask faults log` breaks receivers, disks and programs while netwren and ulogd2 ship log records to them,
//! and counts the lost records. Each packet has a number and is searched for in the received data.

mod collector;
mod database;
mod disk;
mod scenes;
mod shippers;
mod tls;

use crate::bench::log::Folder;
use crate::bench::log::packets::{self, Found};
use crate::bench::log::place::Place;
use crate::bench::{binary, machine, report};
use anyhow::{Result, ensure};
use collector::Collector;
use database::Database;
use disk::SmallDisk;
use scenes::{Happens, SCENES, Scene, Stage, To};
use serde_json::{Value, json};
use shippers::Who;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tls::TlsCollector;

/// The names of the fault suites.
pub(crate) const NAMES: [&str; 1] = ["log"];

/// Duration of a fault in seconds; the second value is for a smoke test.
const LASTS: [u64; 2] = [30, 3];
/// A scene is over when nothing has arrived for this long; ulogd2 buffers for up to a second, netwren retries after 5
/// s.
const SILENCE: Duration = Duration::from_secs(6);

/// The result of a scene.
struct Became {
    sent: u64,
    arrived: u64,
    /// Records received in addition to one per packet.
    twice: u64,
    /// Lost records as reported by the program; `None` if it reports nothing.
    says_lost: Option<u64>,
    started: bool,
}

/// Runs all scenes with both programs, or the scenes whose name contains `only`. Result files are written only if all
/// scenes run and `quick` is false.
pub(crate) fn run(quick: bool, only: Option<&str>) -> Result<()> {
    ensure!(testkit::root::is_privileged(), "faults needs root: it makes network namespaces");
    let binary = binary()?;
    let lasts = LASTS[usize::from(quick)];
    let (mut lines, mut all) = (String::new(), Vec::new());
    let scenes = SCENES.iter().filter(|scene| only.is_none_or(|only| scene.name.contains(only)));
    let is_possible = |scene: &&Scene| match scene.to {
        To::Tls => tls::is_possible(&binary),
        To::Database => database::is_possible(&binary),
        To::Collector | To::Disk => true,
    };
    for scene in scenes.filter(is_possible) {
        println!("faults: {}", scene.name);
        let ours = play(scene, Who::Netwren, &binary, lasts)?;
        // ulogd2 has no TLS.
        let theirs = (scene.to != To::Tls).then(|| play(scene, Who::Ulogd, &binary, lasts)).transpose()?;
        lines.push_str(&line(scene, &ours, theirs.as_ref()));
        all.push(json!({"scene": scene.name, "netwren": outcome(&ours), "ulogd2": theirs.as_ref().map(outcome)}));
    }
    let about = machine::describe(&binary)?;
    let head = format!(
        "# faults log, {}\n\nTroubles of {lasts} s (a full disk: a third of that), both with 64 MiB of buffer; \
         netwren without a spool. Lost and twice: packets by their numbers; said: what the program told of losses.\n\n\
         | trouble | records | netwren lost | said | twice | ulogd2 lost | said | twice |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
        about["date"].as_str().unwrap_or_default(),
    );
    let file = json!({"name": "faults-log", "about": about, "seconds": lasts, "outcomes": all});
    report::save("faults-log", &file, &(head + &lines), !quick && only.is_none())
}

fn line(scene: &Scene, ours: &Became, theirs: Option<&Became>) -> String {
    let part = |became: &Became| {
        let lost = became.sent.saturating_sub(became.arrived);
        let said = became.says_lost.map_or_else(|| "nothing".to_owned(), |lost| lost.to_string());
        let lost = if became.started { lost.to_string() } else { format!("{lost}, it ended") };
        format!("{lost} | {said} | {}", became.twice)
    };
    format!(
        "| {} | {} | {} | {} |\n",
        scene.name,
        ours.sent,
        part(ours),
        theirs.map_or_else(|| "– | – | –".to_owned(), part)
    )
}

fn outcome(became: &Became) -> Value {
    json!({
        "sent": became.sent, "arrived": became.arrived, "twice": became.twice, "says_lost": became.says_lost,
        "started": became.started,
    })
}

fn play(scene: &Scene, who: Who, binary: &Path, lasts: u64) -> Result<Became> {
    let lab = packets::logging("faults");
    let dir = Folder::in_memory()?;
    let disk = SmallDisk::mount(&dir.0)?;
    let collector = Collector::start(&lab, scene.begins)?;
    let tls = (scene.to == To::Tls).then(|| TlsCollector::start(&lab, &dir.0, lasts / 3 + 1)).transpose()?;
    let addr = tls.as_ref().map_or(collector.addr, |tls| tls.addr);
    let database = (scene.to == To::Database).then(Database::start).flatten();
    let file = tls.as_ref().map_or_else(|| disk.file(), TlsCollector::trusted);
    let place = Place { lab: &lab, dir: &dir.0, addr };
    let stage = Stage { collector: &collector, disk: &disk, tls: tls.as_ref(), database: database.as_ref() };
    let written = [disk.file(), dir.0.join("by-tls")];
    let count = match scene.happens {
        // A second before the fault, and two after it.
        Happens::Trouble(_) => scene.packets * (lasts as u32 + 3),
        Happens::End | Happens::Restart => scene.packets,
    };
    let start = |number| shippers::start(who, binary, scene.to, &place, (&file, database.as_ref()), number);
    let mut shipper = start(0)?;
    let started = shipper.is_some();
    let mut says = Vec::new();
    std::thread::scope(|scope| -> Result<()> {
        let sender = scope.spawn(|| lab.run_inside(|| packets::send(count, scene.rate)));
        match scene.happens {
            Happens::Trouble(trouble) => trouble(&stage, Duration::from_secs(lasts)),
            Happens::End => {}
            Happens::Restart => {
                let half = count / 2 / scene.rate.unwrap_or(u32::MAX);
                std::thread::sleep(Duration::from_secs(half.into()));
                let first = shipper.take();
                if who == Who::Netwren {
                    shipper = start(1)?;
                    says.push(first.map(|first| first.ended()).transpose()?.and_then(|ended| ended.says_lost));
                } else {
                    says.push(first.map(|first| first.end()).transpose()?.and_then(|ended| ended.says_lost));
                    shipper = start(1)?;
                }
            }
        }
        sender.join().map_err(|_| anyhow::anyhow!("the sender"))??;
        Ok(())
    })?;
    if !matches!(scene.happens, Happens::End) {
        settle(&collector, database.as_ref(), &written);
    }
    if let Some(shipper) = shipper {
        says.push(shipper.end()?.says_lost);
    }
    settle(&collector, database.as_ref(), &written);
    let bytes = match scene.to {
        To::Collector => collector.into_bytes(),
        To::Disk => std::fs::read(disk.file()).unwrap_or_default(),
        To::Tls => std::fs::read(dir.0.join("by-tls")).unwrap_or_default(),
        To::Database => database.as_ref().map(Database::sources).unwrap_or_default(),
    };
    let found = Found::none(count).in_text(&bytes, "");
    let says_lost = says.into_iter().flatten().reduce(|one, other| one + other);
    let twice = found.records - found.packets();
    Ok(Became { sent: count.into(), arrived: found.packets(), twice, says_lost, started })
}

/// Waits until nothing has arrived for a while.
fn settle(collector: &Collector, database: Option<&Database>, files: &[PathBuf]) {
    let len = |file: &PathBuf| std::fs::metadata(file).map_or(0, |facts| facts.len());
    let rows = || database.map_or(0, Database::count);
    let size = || collector.count() as u64 + rows() + files.iter().map(len).sum::<u64>();
    let mut last = (size(), Instant::now());
    while last.1.elapsed() < SILENCE {
        std::thread::sleep(Duration::from_millis(20));
        if size() != last.0 {
            last = (size(), Instant::now());
        }
    }
}
