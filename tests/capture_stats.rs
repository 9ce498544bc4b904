//! `capture stats` shows the content of a file, compared with capinfos, and its errors.

use crate::capture_read::{pcap_of, read_long_pipe, udp};
use crate::packet_tools::said_by;
use crate::pcapng_made::{Made, rich};
use crate::run::{Ran, netwren};
use std::path::{Path, PathBuf};

fn written(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn stats(path: &Path, args: &[&str]) -> Ran {
    netwren(&[&["capture", "stats", path.to_str().unwrap()], args].concat())
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&stats(path, &["-o", "json"]).ok()).unwrap()
}

#[test]
fn a_file_is_summed_up_in_words_and_as_a_row() {
    let dir = tempfile::tempdir().unwrap();
    for is_big_endian in [false, true] {
        let path = written(dir.path(), "a.pcapng", &rich(is_big_endian).bytes);
        let text = stats(&path, &[]).ok();
        for line in [
            "a.pcapng: pcapng, ",
            "  packets    3, 135 bytes\n",
            "  time       2023-11-14T22:13:20.000000001Z to 2023-11-14T22:13:20.000003000Z, 2.999 µs\n",
            "  rate       1000333 packets/s, 360 Mbit/s\n",
            "  sizes      45 to 45 bytes, mean 45: ≤64 100.0 %\n",
            "  comments   2 packets\n",
            // The counts are cumulative since the beginning, so the last ones are shown.
            "  interface  wan: Ethernet, 2 packets, 90 bytes; 120 received, 9 dropped by the interface, 4 dropped",
            "  interface  lan: Ethernet, 1 packets, 45 bytes; 1 dropped by the system\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        let row = json(&path);
        assert_eq!((&row["dropped_by_iface"], &row["dropped_by_system"]), (&9.into(), &5.into()));
        assert_eq!((&row["packets"], &row["sections"], &row["commented"]), (&3.into(), &1.into(), &2.into()));
        assert_eq!(
            (&row["ifaces"][0]["iface"], &row["ifaces"][1]["received"]),
            (&"wan".into(), &serde_json::Value::Null)
        );
        assert!(row["broken"].is_null());
    }
    let columns = ["-H", "-c", "format,packets,cut,backwards,backwards_max_us,len_max"];
    let mut cut = pcap_of(&[&udp(1, b""), &udp(1, b"0123456789"), &udp(1, b"")]);
    // The second packet is half a second earlier than the first one, and was one byte longer.
    let second = 24 + 16 + 42;
    cut[second..second + 8].copy_from_slice(&[1_699_999_999u32.to_le_bytes(), 500_000u32.to_le_bytes()].concat());
    cut[second + 12] += 1;
    assert_eq!(stats(&written(dir.path(), "b", &cut), &columns).ok(), "pcap\t3\t1\t1\t500000\t53\n");
    assert_eq!(stats(&written(dir.path(), "none", &pcap_of(&[])), &columns).ok(), "pcap\t0\t0\t0\t-\t-\n");
}

/// The same capture continues in another section: its interfaces are counted once, and their drops are added up.
#[test]
fn sections_that_describe_one_interface_are_added_up() {
    let dir = tempfile::tempdir().unwrap();
    let part = |made: Made, is_big_endian: bool| {
        let made = made.section(is_big_endian, &[]).iface(1, &[(2, b"wan")]).packet(0, 1, 1000, &[]);
        made.statistics(0, &[(7, 3)])
    };
    let made = part(part(Made::default(), true), false).section(false, &[]).iface(101, &[(2, b"wan")]);
    let row = json(&written(dir.path(), "a.pcapng", &made.bytes));
    assert_eq!((&row["sections"], &row["packets"], &row["dropped_by_system"]), (&3.into(), &2.into(), &6.into()));
    assert_eq!(row["ifaces"].as_array().unwrap().len(), 2, "{row}");
    assert_eq!(row["link_types"], serde_json::json!(["Ethernet", "Raw IP"]));
    // Interfaces beyond the limit for separate figures are shown together.
    let many = (0..300)
        .fold(Made::default().section(false, &[]), |made, nth| made.iface(1, &[(2, format!("if{nth}").as_bytes())]));
    let row = json(&written(dir.path(), "many.pcapng", &many.packet(299, 1, 1, &[]).packet(255, 1, 1, &[]).bytes));
    let ifaces = row["ifaces"].as_array().unwrap();
    assert_eq!((ifaces.len(), &ifaces[255]["iface"], &ifaces[256]["packets"]), (257, &"if255".into(), &1.into()));
}

#[test]
fn damage_is_reported_with_its_position_and_the_rest_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let whole = pcap_of(&[&udp(1, b"ab"), &udp(2, b"ab")]);
    let cut = written(dir.path(), "cut\u{1b}.pcap", &whole[..whole.len() - 3]);
    let ran = stats(&cut, &[]);
    let line = "  broken     byte 84: the file ends within a packet: 41 of 44 bytes\n";
    assert!(ran.stdout.ends_with(line) && ran.stdout.contains("  packets    1, "), "{}", ran.stdout);
    ran.says(3, &["cut\\u{1b}.pcap, byte 84: the file ends within a packet"]);
    let ran = stats(&cut, &["-H", "-c", "packets,broken_offset,broken", dir.path().join("none").to_str().unwrap()]);
    assert_eq!(ran.stdout, "1\t84\tthe file ends within a packet: 41 of 44 bytes\n");
    ran.says(3, &["none: no such file or directory"]);
    stats(&dir.path().join("none"), &[]).says(4, &["none: no such file or directory"]);
    stats(&cut, &["--netns", "x"]).says(2, &["--netns applies to interfaces"]);
}

#[test]
fn who_talks_most_in_all_files() {
    let dir = tempfile::tempdir().unwrap();
    let first = written(dir.path(), "a.pcap", &pcap_of(&[&udp(1, b"ab"), &udp(2, b"ab")]));
    let second = written(dir.path(), "b.pcap", &pcap_of(&[&udp(2, b"abcd")]));
    let others = [second.to_str().unwrap(), "--by", "dport", "-H"];
    assert_eq!(stats(&first, &others).ok(), "2\t2\t90\n1\t1\t44\n");
    let gone = dir.path().join("gone");
    let ran = stats(&first, &[gone.to_str().unwrap(), second.to_str().unwrap(), "--by", "dport", "-H", "--max", "len"]);
    assert_eq!(ran.stdout, "2\t2\t46\n1\t1\t44\n");
    ran.says(3, &["gone: no such file or directory"]);
}

/// The value that capinfos prints after these words.
fn of_capinfos(text: &str, words: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(words)).unwrap_or_else(|| panic!("{words}: {text}"));
    line.trim().to_owned()
}

#[test]
fn the_figures_are_those_of_capinfos() {
    let dir = tempfile::tempdir().unwrap();
    let frames: Vec<Vec<u8>> = (0..500).map(|nth| udp(1000 + nth, &vec![7; usize::from(nth)])).collect();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    for bytes in [pcap_of(&frames), rich(false).bytes, rich(true).bytes] {
        let path = written(dir.path(), "a", &bytes);
        let args = ["-M", "-u", "-c", "-d", "-y", "-z", "-o"];
        let Some(theirs) = said_by("capinfos", &args, &path) else { return };
        let ours = json(&path);
        let number = |words: &str| of_capinfos(&theirs, words).split(' ').next().unwrap().to_owned();
        assert_eq!(number("Number of packets:"), ours["packets"].to_string());
        assert_eq!(number("Data size:"), ours["bytes"].to_string());
        let is_ordered = of_capinfos(&theirs, "Strict time order:") == "True";
        assert_eq!(is_ordered, ours["backwards"] == 0, "{theirs}");
        let seconds: f64 = number("Capture duration:").parse().unwrap();
        assert_eq!((seconds * 1e6) as u64, ours["duration_us"].as_u64().unwrap(), "{theirs}");
        let mean: f64 = number("Average packet size:").parse().unwrap();
        assert_eq!(mean as u64, ours["len_mean"].as_u64().unwrap());
    }
}

/// A long file needs no more memory than a short one.
#[test]
fn memory_does_not_grow_with_the_file() {
    let (ran, growth) = read_long_pipe(&["capture", "stats", "-", "-H", "-c", "packets"], 50);
    assert_eq!(ran.ok(), "50000\n");
    assert!(growth < 8_000, "{growth} KiB more for 73 MB of packets");
}
