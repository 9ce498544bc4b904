//! Runs both programs with the same command line.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::process::{Command, Output};
use testkit::conntrack::{Entry, status};
use testkit::netns::Lab;
use testkit::{mask, program, until_equal};

/// The face with correct output, and with the old tool's defects.
pub(crate) const BOTH: &[&[&str]] = &[&[], OLD];
pub(crate) const OLD: &[&str] = &["--bug-compatible"];

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Splits words at blanks; `''` is an empty word.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').filter(|word| !word.is_empty()).map(|word| if word == "''" { "" } else { word }).collect()
}

/// The installed tool.
pub(crate) fn theirs(lab: &Lab, line: &str) -> Command {
    let mut command = lab.command("conntrack");
    command.args(words(line));
    command
}

/// The face.
pub(crate) fn ours(lab: &Lab, before: &[&str], line: &str) -> Command {
    let mut command = lab.command(program::netwren());
    command.arg("conntrack").args(before).args(words(line)).env_remove("NETWREN_BUG_COMPATIBLE");
    command
}

pub(crate) fn run(mut command: Command) -> Output {
    command.output().expect("ip(8) starts")
}

/// Lines of both streams and the exit code, with changing values masked.
pub(crate) fn comparable(output: &Output, twins: bool) -> String {
    let masked = |bytes| {
        let text = text(bytes);
        mask::sorted_lines(&if twins { mask::conntrack_twins(&text) } else { mask::conntrack(&text) })
    };
    format!("{}--\n{}-- {:?}", masked(&output.stdout), masked(&output.stderr), output.status.code())
}

/// Asserts the same lines on both streams and the same exit code.
#[track_caller]
pub(crate) fn same(lab: &Lab, before: &[&str], line: &str) {
    same_in_each(lab, &[before], line);
}

/// Like [`same`], for several modes of the face.
#[track_caller]
pub(crate) fn same_in_each(lab: &Lab, ways: &[&[&str]], line: &str) {
    let all = || {
        let theirs = comparable(&run(theirs(lab, line)), false);
        let differing = ways.iter().map(|before| (before, comparable(&run(ours(lab, before, line)), false)));
        let first = differing.into_iter().find(|(_, ours)| *ours != theirs);
        first.map(|(before, ours)| (format!("conntrack {line} {before:?}"), difference(&theirs, &ours)))
    };
    if let Some((line, differs)) = until_equal(all, Option::is_none) {
        panic!("{line}: {differs}");
    }
}

/// The first lines of each that the other lacks.
pub(crate) fn difference(theirs: &str, ours: &str) -> String {
    let without = |these: &str, those: &str| {
        let only: Vec<&str> = these.lines().filter(|line| !those.lines().any(|other| other == *line)).take(5).collect();
        only.join("\n")
    };
    let counts = (theirs.lines().count(), ours.lines().count());
    format!("lines {counts:?}, only the tool's:\n{}\nonly ours:\n{}", without(theirs, ours), without(ours, theirs))
}

/// A table with every kind of entry, the same in every lab.
pub(crate) fn furnished(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.use_conntrack_labels();
    furnish(&lab);
    lab
}

pub(crate) fn furnish(lab: &Lab) {
    let v4 = |d: u8, port: u16| (std::net::IpAddr::from([192, 0, 2, d]), port);
    let v6 = |d: u16, port: u16| (std::net::IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, d]), port);
    let server = v4(200, 80);
    let tcp = Entry::tcp(v4(1, 1000), server, 3);
    lab.track([
        tcp.clone().mark(0x31).label_bits(&[0, 9]),
        Entry::tcp(v4(1, 1001), server, 7).dnat([198, 51, 100, 2].into(), 8080),
        Entry::tcp(v4(2, 1002), server, 1).snat([203, 0, 113, 1].into(), 0),
        Entry::tcp(v4(3, 1003), server, 8).dnat([198, 51, 100, 3].into(), 0).snat([203, 0, 113, 1].into(), 4000),
        Entry::udp(v4(1, 5000), v4(53, 53)).zone(5).label_bits(&[1]),
        Entry::udp(v4(2, 5001), v4(53, 53)).status(status::SEEN_REPLY | status::ASSURED).mark(3),
        Entry::udp(v6(1, 5000), v6(53, 53)).status(status::SEEN_REPLY),
        Entry::tcp(v6(1, 1000), v6(80, 80), 3).dnat([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x99].into(), 8080),
        Entry::ping(v4(1, 0).0, v4(9, 0).0, 77),
        Entry::ping(v4(2, 0).0, v4(9, 0).0, 78).snat([203, 0, 113, 2].into(), 0),
        Entry::ping(v6(1, 0).0, v6(9, 0).0, 79).status(status::SEEN_REPLY),
        Entry::sctp(v4(1, 7000), v4(9, 3868), 4),
        Entry::ports(136, v4(1, 7001), v4(9, 7)),
        Entry::ports(47, v4(1, 0x1f), v4(9, 0x2f)),
        Entry::without_ports(50, v4(1, 0).0, v4(9, 0).0),
        Entry::without_ports(253, v4(1, 0).0, v4(9, 0).0),
        Entry::tcp(v4(4, 2100), v4(210, 21), 3).helper("ftp"),
    ]);
}
