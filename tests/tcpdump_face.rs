//! Compares `netwren tcpdump -r` with this machine's tcpdump: stdout, exit codes, refused arguments.

use crate::run::clean;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A pcap file of link type Ethernet with these frames.
fn pcap(file: &Path, frames: &[Vec<u8>]) {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for (nth, frame) in frames.iter().enumerate() {
        for word in [1_700_000_000 + nth as u32, 1000, frame.len() as u32, frame.len() as u32] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(frame);
    }
    fs::write(file, bytes).unwrap();
}

/// UDP, TCP with and without payload, ARP, an unknown EtherType.
fn frames() -> Vec<Vec<u8>> {
    let ethernet =
        |kind: u16, rest: &[u8]| [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind.to_be_bytes(), rest].concat();
    let ip = |proto: u8, rest: &[u8]| {
        let len = (20 + rest.len()) as u8;
        let head = [0x45, 0, 0, len, 0, 1, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ethernet(0x0800, &[&head[..], rest].concat())
    };
    let segment = |seq: u8, payload: &[u8]| {
        let head = [0x9c, 0x40, 0x23, 0x28, 0, 0, 0, seq, 0, 0, 0, 1, 0x50, 0x18, 2, 0, 0, 0, 0, 0];
        ip(6, &[&head[..], payload].concat())
    };
    vec![
        ip(17, &[0x0f, 0xa0, 0x0f, 0xa1, 0, 11, 0, 0, 97, 98, 99]),
        segment(1, b""),
        segment(1, b"hello"),
        segment(6, b"world\r\n"),
        ethernet(0x0806, &[0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]),
        ethernet(0x88b5, b"unknown"),
    ]
}

fn both(words: &[&str]) -> (Output, Output) {
    let mut theirs = Command::new("tcpdump");
    theirs.arg("-nn");
    let mut ours = Command::new(testkit::program::netwren());
    clean(&mut ours).args(["tcpdump", "-nn"]);
    (theirs.args(words).output().unwrap(), ours.args(words).output().unwrap())
}

/// If both ports of a packet are known, tcpdump's order decides which protocol prints it.
#[test]
fn ports_lead_to_protocols_in_the_order_of_tcpdump() {
    testkit::require_version!("tcpdump", testkit::tool::TCPDUMP);
    const TCP: [u16; 16] = [21, 22, 23, 25, 43, 53, 80, 179, 554, 1723, 6379, 6633, 6653, 8080, 8554, 10_288];
    const UDP: [u16; 16] = [53, 67, 69, 123, 161, 500, 514, 546, 750, 1701, 3456, 4500, 4784, 4789, 5353, 6081];
    let dir = tempfile::tempdir().unwrap();
    let packet = |proto: u8, sport: u16, dport: u16| {
        let [sport, dport] = [sport, dport].map(u16::to_be_bytes);
        let payload: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
        let header: &[u8] = match proto {
            6 => &[0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0, 100, 0, 0, 0, 0],
            _ => &[0, 28, 0, 0],
        };
        let length = (20 + 4 + header.len() + payload.len()) as u8;
        let ip = [0x45, 0, 0, length, 0, 1, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&[2; 12], &[8, 0][..], &ip, &sport, &dport, header, payload].concat()
    };
    let path = dir.path().join("ports.pcap");
    let text = |program: &str, before: &[&str], frames: &[Vec<u8>]| -> Vec<String> {
        pcap(&path, frames);
        let output =
            std::process::Command::new(program).args(before).args(["-nn", "-t", "-S", "-r"]).arg(&path).output();
        let text = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
        text.lines()
            .filter_map(|line| line.strip_prefix("IP ")?.split_once(": "))
            .map(|(_, text)| text.to_owned())
            .collect()
    };
    let ours = testkit::program::netwren().to_str().unwrap().to_owned();
    for (proto, ports) in [(6, TCP), (17, UDP)] {
        let pairs: Vec<(u16, u16)> = ports.iter().flat_map(|one| ports.map(|other| (*one, other))).collect();
        let frames: Vec<Vec<u8>> = pairs.iter().map(|(one, other)| packet(proto, *one, *other)).collect();
        let plain = packet(proto, 59_999, 59_998);
        // The programs may print different text for a port, but in both, the first of two known ports decides.
        let of = |program: &str, before: &[&str]| {
            let all = text(program, before, &frames);
            assert_eq!(all.len(), frames.len(), "{program}");
            let plain = text(program, before, std::slice::from_ref(&plain)).remove(0);
            all.into_iter().map(|text| (text != plain).then_some(text)).collect::<Vec<_>>()
        };
        let (theirs, own) = (of("tcpdump", &[]), of(&ours, &["tcpdump"]));
        for (((one, other), theirs), own) in pairs.iter().zip(theirs).zip(own) {
            assert!(own.is_none() || own == theirs, "{proto}: {one} > {other}: {own:?}, tcpdump {theirs:?}");
        }
    }
}

#[test]
fn replay_tcpdump_face_prints_what_tcpdump_prints() {
    testkit::require_tool!("tcpdump");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.pcap");
    pcap(&file, &frames());
    let file = file.to_str().unwrap();
    for switches in [
        "", "-e", "-v", "-vv", "-q", "-t", "-tt", "-ttt", "-tttt", "-ttttt", "-S", "-#", "-x", "-XX", "-A", "-c 2",
        "--count", "-l", "--nano", "-K -v",
    ] {
        for filter in ["", "tcp", "arp or udp port 4001", "ether proto 0x88b5", "host 192.0.2.1"] {
            let words: Vec<&str> =
                ["-r", file].into_iter().chain(switches.split(' ')).filter(|w| !w.is_empty()).collect();
            let words: Vec<&str> = words.into_iter().chain(filter.split(' ').filter(|w| !w.is_empty())).collect();
            let (theirs, ours) = both(&words);
            let text = |out: &Output| String::from_utf8_lossy(&out.stdout).into_owned();
            assert_eq!(text(&ours), text(&theirs), "{words:?}");
            assert_eq!(ours.status.code(), theirs.status.code(), "{words:?}");
            let said = |out: &Output| String::from_utf8_lossy(&out.stderr).into_owned();
            assert_eq!(said(&ours), said(&theirs), "{words:?}");
        }
    }
}

#[test]
fn replay_tcpdump_face_refuses_what_tcpdump_refuses() {
    testkit::require_tool!("tcpdump");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.pcap");
    pcap(&file, &frames());
    let cut = dir.path().join("cut.pcap");
    fs::write(&cut, &fs::read(&file).unwrap()[..150]).unwrap();
    let (file, cut) = (file.to_str().unwrap(), cut.to_str().unwrap());
    for words in [&["-r", file, "foo bar"][..], &["-r", file, "-c", "0"], &["-r", "/nonexistent"], &["-r", cut]] {
        let (theirs, ours) = both(words);
        assert_eq!(ours.status.code(), theirs.status.code(), "{words:?}");
        assert_eq!(ours.stdout, theirs.stdout, "{words:?}");
    }
}
