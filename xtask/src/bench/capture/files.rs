//! Measures printing packet files, the last packets before Ctrl-C, and long filters.

use super::super::log::Folder;
use super::contestant::Contestant;
use super::load::{Load, Source, pair};
use super::report::{Goal, Row};
use crate::bench::scale;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Packets in the file that is printed.
const LINES: u32 = 400_000;
/// Number of packets sent before Ctrl-C, and the delay between the last one and Ctrl-C.
const LAST: (u32, Duration) = (400, Duration::from_millis(100));
/// Hosts in the long filter, and in a shorter one that libpcap can also compile within seconds.
const HOSTS: (u32, u32) = (1_000, 200);

/// Measures printing the lines of a file; both outputs must be identical byte for byte.
pub(super) fn text(binary: &Path, rounds: u32, share: u32) -> Result<Vec<Row>> {
    let folder = Folder::in_memory()?;
    let file = folder.0.join("all.pcap");
    let load = Load { source: Source::Socket, packets: LINES / share, rate: Some(150_000), bytes: 100 };
    let lab = pair();
    let listening = Contestant::ours(binary, "capture -i IFACE -w").with(&file).start(&lab, Stdio::null())?;
    lab.run_inside(|| load.send(Instant::now(), &[]))?;
    let (figures, _) = listening.end()?;
    ensure!(figures.taken == u64::from(load.packets), "the file has {} packets", figures.taken);
    let ours = Contestant::ours(binary, "tcpdump -n -r").with(&file);
    let theirs = Contestant::tcpdump("-n -r").with(&file);
    let [our_text, their_text] = [printed(&ours, &folder.0.join("ours"))?, printed(&theirs, &folder.0.join("theirs"))?];
    ensure!(our_text == their_text, "the lines of the file are not those of tcpdump");
    let rows = their_text.split(|byte| *byte == b'\n').count() - 1;
    let mut costs = [const { Vec::new() }; 2];
    for round in 1..=rounds {
        println!("bench: lines of a file, round {round}");
        for (contestant, list) in [&ours, &theirs].into_iter().zip(&mut costs) {
            list.push(weigh(contestant, "-")? * 1000.0 / rows as f64);
        }
    }
    let [our_costs, their_costs] = costs;
    Ok(vec![Row {
        task: "CPU a line of a file".to_owned(),
        unit: "ns",
        ours: (ours.label, our_costs),
        peer: Some((theirs.label, their_costs)),
        goal: Goal::RatioAtMost(0.1),
        note: format!("{rows} lines, the same byte for byte"),
    }])
}

fn printed(contestant: &Contestant, to: &Path) -> Result<Vec<u8>> {
    weigh(contestant, &to.to_string_lossy())?;
    Ok(std::fs::read(to)?)
}

/// CPU of a whole run in µs.
fn weigh(contestant: &Contestant, keep: &str) -> Result<f64> {
    let mut command = Command::new(scale()?);
    command.arg(keep).arg(&contestant.program).args(&contestant.args).stderr(Stdio::null());
    let out = command.output()?;
    let text = String::from_utf8(out.stdout)?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [0, user_us, system_us, ..] = numbers[..] else { anyhow::bail!("{}: {text}", contestant.label) };
    Ok((user_us + system_us) as f64)
}

/// Counts how many of the packets sent just before Ctrl-C are in the file.
pub(super) fn last_packets(binary: &Path, rounds: u32) -> Result<Vec<Row>> {
    let (packets, pause) = LAST;
    let mut found = [const { Vec::new() }; 2];
    let ours = Contestant::ours(binary, "capture -i IFACE -w");
    let theirs = Contestant::tcpdump("-n -i IFACE -w");
    for round in 1..=rounds {
        println!("bench: the last packets, round {round}");
        for (contestant, list) in [&ours, &theirs].into_iter().zip(&mut found) {
            let (folder, lab) = (Folder::in_memory()?, pair());
            let file = folder.0.join("all.pcap");
            let listening = contestant.clone().with(&file).start(&lab, Stdio::null())?;
            std::thread::sleep(Duration::from_millis(200));
            lab.run_inside(|| {
                Load { source: Source::Socket, packets, rate: None, bytes: 100 }.send(Instant::now(), &[])
            })?;
            std::thread::sleep(pause);
            let _ = listening.end()?;
            list.push(records(&std::fs::read(&file)?) as f64);
        }
    }
    let [our_counts, their_counts] = found;
    Ok(vec![Row {
        task: format!("packets of the last 0.1 s at Ctrl-C, of {packets}"),
        unit: "in the file",
        ours: (ours.label, our_counts),
        peer: Some((theirs.label, their_counts)),
        goal: Goal::AtLeast(packets.into()),
        note: String::new(),
    }])
}

/// Number of packets in a pcap file with this machine's byte order.
fn records(bytes: &[u8]) -> usize {
    let (mut at, mut count) = (24, 0);
    while let Some(length) = bytes.get(at + 8..at + 12) {
        let length: [u8; 4] = length.try_into().unwrap_or_default();
        at += 16 + u32::from_ne_bytes(length) as usize;
        count += usize::from(at <= bytes.len());
    }
    count
}

fn hosts(count: u32) -> String {
    let host = |nth: u32| format!("host 10.{}.{}.{}", nth * 7 % 251, nth / 250, nth % 250 + 1);
    (0..count).map(host).collect::<Vec<_>>().join(" or ")
}

/// Measures how long compiling a filter with many hosts takes, and whether the kernel accepts it.
pub(super) fn filter(binary: &Path, rounds: u32) -> Result<Vec<Row>> {
    let timed = |program: &str, words: &[&str]| -> Result<f64> {
        let start = Instant::now();
        let status = Command::new(program).args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
        ensure!(status.with_context(|| program.to_owned())?.success(), "{program} refuses the filter");
        Ok(start.elapsed().as_secs_f64() * 1000.0)
    };
    let ours = binary.to_string_lossy();
    let (many, fewer) = (hosts(HOSTS.0), hosts(HOSTS.1));
    let lab = pair();
    let command = ["capture", "-i", super::load::IFACE, "--for", "0.1", &many];
    let taken = lab.run_inside(|| timed(&ours, &command)).is_ok();
    let (mut alone, mut small) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..rounds {
        alone.push(timed(&ours, &["capture", "-d", &many])?);
        small[0].push(timed(&ours, &["capture", "-d", &fewer])?);
        small[1].push(timed("tcpdump", &["-Z", "root", "-d", "-y", "EN10MB", &fewer])?);
    }
    let [our_small, their_small] = small;
    let note = if taken { "the kernel takes it" } else { "**the kernel refuses it**" };
    Ok(vec![
        Row {
            task: format!("filter of {} hosts, start to end of -d", HOSTS.0),
            unit: "ms",
            ours: ("netwren capture -d".to_owned(), alone),
            peer: None,
            goal: Goal::AtMost(50.0),
            note: format!("{note}; libpcap takes about two minutes, and the kernel refuses what it makes"),
        },
        Row {
            task: format!("filter of {} hosts, start to end of -d", HOSTS.1),
            unit: "ms",
            ours: ("netwren capture -d".to_owned(), our_small),
            peer: Some(("tcpdump -d".to_owned(), their_small)),
            goal: Goal::None,
            note: String::new(),
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_records_are_counted() {
        let record =
            |bytes: u32| [&[0; 8][..], &bytes.to_ne_bytes(), &bytes.to_ne_bytes(), &vec![7; bytes as usize]].concat();
        let file = [vec![0; 24], record(60), record(0), record(5)].concat();
        assert_eq!((records(&file), records(&file[..file.len() - 1]), records(&file[..24])), (3, 2, 0));
        assert_eq!(hosts(1_000).split(" or ").collect::<std::collections::HashSet<_>>().len(), 1_000);
    }
}
