//! `capture cut` and `capture merge` copy parts of files and merge files, including all metadata about the packets.

use crate::capture_read::{pcap_of, udp};
use crate::packet_tools::{is_read_by, peer, said_by};
use crate::pcapng_made::{Made, rich};
use crate::run::{Ran, netwren};
use std::path::{Path, PathBuf};

fn written(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn cut(from: &Path, to: &Path, words: &[&str]) -> Ran {
    netwren(&[&["capture", "cut", from.to_str().unwrap(), "-w", to.to_str().unwrap()], words].concat())
}

fn merge(from: &[&Path], to: &Path) -> Ran {
    let from: Vec<&str> = from.iter().map(|path| path.to_str().unwrap()).collect();
    netwren(&[&["capture", "merge", "-w", to.to_str().unwrap()], &from[..]].concat())
}

fn columns(path: &Path, columns: &str) -> String {
    netwren(&["capture", "-r", path.to_str().unwrap(), "-H", "-c", columns]).ok()
}

fn row(path: &Path) -> serde_json::Value {
    serde_json::from_str(&netwren(&["capture", "stats", path.to_str().unwrap(), "-o", "json"]).ok()).unwrap()
}

/// A copy of everything is identical except for the byte order; a part contains everything that belongs to its
/// packets.
#[test]
fn what_a_file_says_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy.pcapng");
    for is_big_endian in [false, true] {
        let source = written(dir.path(), "source.pcapng", &rich(is_big_endian).bytes);
        let ran = cut(&source, &copy, &[]);
        assert!(ran.stderr.contains("3 packets read, 0 filtered; 3 written to "), "{}", ran.stderr);
        ran.ok();
        assert_eq!(std::fs::read(&copy).unwrap(), rich(false).bytes, "{is_big_endian}");
        is_read_by("tcpdump", &["-n", "-r"], &copy);
        cut(&source, &copy, &["dst port 1000 and len > 20"]).ok();
        assert_eq!(columns(&copy, "time,iface,direction,dport"), "2023-11-14T22:13:20.000000001Z\twan\tout\t1000\n");
        let row = row(&copy);
        assert_eq!((&row["commented"], &row["dropped_by_iface"]), (&1.into(), &9.into()));
        let args = ["-r", copy.to_str().unwrap(), "-T", "fields", "-e", "frame.comment", "-e", "frame.interface_name"];
        if let Some(mut tshark) = peer("tshark") {
            let said = tshark.args(args).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), "a first comment\twan");
        }
        let all = said_by("capinfos", &["-M"], &copy).unwrap_or_else(|| "to the world of the file".to_owned());
        assert!(all.contains("to the world") && all.contains("of the file"), "{all}");
    }
}

#[test]
fn parts_are_cut_by_time_number_and_length() {
    let dir = tempfile::tempdir().unwrap();
    let frames: Vec<Vec<u8>> = (0..10).map(|nth| udp(1000 + nth, b"0123456789")).collect();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let source = written(dir.path(), "a.pcap", &pcap_of(&frames));
    let part = dir.path().join("part.pcapng");
    cut(&source, &part, &["--from", "2023-11-14T22:13:22Z", "-B", "2023-11-14T22:13:24.5Z"]).ok();
    assert_eq!(columns(&part, "dport,iface"), "1002\t-\n1003\t-\n1004\t-\n");
    cut(&source, &part, &["-A", "2023-11-14T22:13:22Z", "--limit", "1", "-s", "20", "dport = 1003 or dport = 1005"])
        .ok();
    assert_eq!(columns(&part, "dport,len,caplen"), "-\t52\t20\n");
    assert_eq!(row(&part)["ifaces"][0]["snaplen"], 20);
    let plain = dir.path().join("part.pcap");
    cut(&source, &plain, &["portrange 1000-1001"]).ok();
    assert_eq!(columns(&plain, "dport"), "1000\n1001\n");
    is_read_by("tcpdump", &["-n", "-r"], &plain);
    cut(&source, &source, &[]).says(2, &["--write would overwrite the input file"]);
    cut(&source, &part, &["--from", "soon"]).says(2, &["--from: ", "soon"]);
    cut(&source, &part, &["netns = x"]).says(2, &["`netns` is looked up on this host"]);
    cut(&dir.path().join("none"), &part, &[]).says(4, &["none: no such file or directory"]);
    cut(&source, &dir.path().join("no/such"), &[]).says(4, &["cannot write ", "no such file or directory"]);
    let half = std::fs::read(&source).unwrap();
    let broken = written(dir.path(), "broken", &half[..half.len() - 1]);
    let ran = cut(&broken, &part, &[]);
    ran.says(3, &["broken, byte ", "the file ends within a packet", "9 packets read, 0 filtered; 9 written to "]);
}

#[test]
fn files_are_merged_by_time_and_interfaces_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let pcap = written(dir.path(), "a.pcap", &pcap_of(&[&udp(1, b""), &udp(2, b"")]));
    let first = written(dir.path(), "first.pcapng", &rich(true).bytes);
    // The same interface in two sections counts as one, and its drops are added up.
    let again = written(dir.path(), "again.pcapng", &[rich(false).bytes, rich(true).bytes].concat());
    let all = dir.path().join("all.pcapng");
    merge(&[&pcap, &first, &again], &all).ok();
    let ports: String = ["1", "1000", "1000", "1000", "2000", "2000", "3000", "2000", "3000", "3000"].join(",");
    let mut shown: Vec<String> = columns(&all, "dport").lines().map(str::to_owned).collect();
    assert_eq!(shown.pop().as_deref(), Some("2"));
    let (mut sorted, mut expected): (Vec<_>, Vec<_>) = (shown.clone(), ports.split(',').map(str::to_owned).collect());
    sorted.sort();
    expected.sort();
    assert_eq!(sorted, expected);
    let row = row(&all);
    assert_eq!((&row["packets"], &row["sections"], &row["commented"]), (&11.into(), &1.into(), &6.into()));
    let ifaces: Vec<(&str, u64)> = row["ifaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|iface| (iface["iface"].as_str().unwrap_or("-"), iface["dropped_by_system"].as_u64().unwrap_or(0)))
        .collect();
    assert_eq!(ifaces, [("-", 0), ("wan", 4), ("lan", 1), ("wan", 8), ("lan", 2)]);
    for tool in ["capinfos", "tcpdump", "tshark"] {
        is_read_by(tool, if tool == "capinfos" { &["-M"] } else { &["-n", "-r"] }, &all);
    }
    merge(&[&pcap, &all], &all).says(2, &["--write would overwrite an input file"]);
    merge(&[&pcap, &dir.path().join("none")], &all).says(4, &["none: no such file or directory"]);
}

/// The merged packets are the same as mergecap's, one by one.
#[test]
fn the_order_is_that_of_mergecap() {
    let dir = tempfile::tempdir().unwrap();
    let made = |name: &str, at: u64, step: u64| {
        let section = Made::default().section(false, &[]).iface(1, &[(2, name.as_bytes()), (9, &[9])]);
        let packets = (0..50).fold(section, |made, nth| made.packet(0, (at + nth * step) * 1_000_000, nth as u16, &[]));
        written(dir.path(), name, &packets.bytes)
    };
    let inputs = [made("one", 1000, 7), made("two", 1003, 5), made("three", 900, 11)];
    let [ours, theirs] = ["ours.pcapng", "theirs.pcapng"].map(|name| dir.path().join(name));
    merge(&[&inputs[0], &inputs[1], &inputs[2]], &ours).ok();
    let order = columns(&ours, "time,iface,dport");
    let mut times: Vec<&str> = order.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(times.len(), 150);
    assert!(times.is_sorted());
    times.dedup();
    let Some(mut mergecap) = peer("mergecap") else { return };
    assert!(mergecap.arg("-w").arg(&theirs).args(&inputs).status().unwrap().success());
    let sorted = |text: &str| {
        // Packets with the same timestamp may have either order.
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&columns(&theirs, "time,iface,dport")), sorted(&order));
}

#[test]
fn several_link_types_are_no_pcap() {
    let dir = tempfile::tempdir().unwrap();
    let pcap = written(dir.path(), "a.pcap", &pcap_of(&[&udp(1, b"")]));
    let raw = Made::default().section(false, &[]).iface(101, &[(2, b"wg0")]).packet(0, 1, 1, &[]);
    let raw = written(dir.path(), "raw.pcapng", &raw.bytes);
    let [all, plain] = ["all.pcapng", "all.pcap"].map(|name| dir.path().join(name));
    merge(&[&pcap, &raw], &plain).says(2, &["a pcap file has a single link type: name the file .pcapng"]);
    assert!(!plain.exists());
    merge(&[&pcap, &raw], &all).ok();
    assert_eq!(row(&all)["link_types"], serde_json::json!(["Ethernet", "Raw IP"]));
    // If a second link type appears only while packets are written, each packet that cannot be written is counted.
    cut(&all, &plain, &[]).says(3, &["packets are not written: a pcap file has a single link type", "1 written to "]);
    let commented = written(dir.path(), "rich.pcapng", &rich(false).bytes);
    cut(&commented, &plain, &[])
        .says(0, &["8 comments, counts, interface descriptions and other blocks cannot be stored in pcap"]);
    assert_eq!(columns(&plain, "dport"), "1000\n2000\n3000\n");
}

fn written_by(from: &Path, to: &Path, words: &[&str]) -> Ran {
    netwren(&[&["capture", "-r", from.to_str().unwrap(), "-w", to.to_str().unwrap()], words].concat())
}

/// The snapshot length and the bits above the link type in the header of a pcap file.
fn header(path: &Path) -> (u32, u8) {
    let bytes = std::fs::read(path).unwrap();
    (u32::from_le_bytes(bytes[16..20].try_into().unwrap()), bytes[23])
}

/// Every way to copy a pcap file keeps its header, or reports what is lost.
#[test]
fn headers_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let with = |name: &str, snaplen: u32, bits: u8| {
        let mut bytes = pcap_of(&[&udp(1, b"abc"), &udp(2, b"abc")]);
        bytes[16..20].copy_from_slice(&snaplen.to_le_bytes());
        bytes[23] = bits;
        written(dir.path(), name, &bytes)
    };
    let (source, other) = (with("a.pcap", 96, 0x24), with("b.pcap", 128, 0x24));
    let (unlimited, plain) = (with("c.pcap", 0, 0), with("d.pcap", 64, 0));
    let [copy, pcapng] = ["copy.pcap", "copy.pcapng"].map(|name| dir.path().join(name));
    for copied in [written_by, cut] {
        copied(&source, &copy, &[]).ok();
        assert_eq!(header(&copy), (96, 0x24));
        copied(&source, &copy, &["-s", "40"]).ok();
        assert_eq!(header(&copy), (40, 0x24));
        copied(&unlimited, &copy, &[]).ok();
        assert_eq!(header(&copy), (0, 0));
        copied(&source, &pcapng, &[]).says(0, &["the length of frame checksums is not kept"]);
        assert_eq!(row(&pcapng)["ifaces"][0]["snaplen"], 96);
        copied(&plain, &pcapng, &[]).ok();
        assert_eq!(row(&pcapng)["ifaces"][0]["snaplen"], 64);
    }
    merge(&[&source, &other], &copy).ok();
    assert_eq!(header(&copy), (128, 0x24));
    merge(&[&source, &unlimited], &copy).says(0, &["the length of frame checksums is not kept"]);
    assert_eq!(header(&copy), (0, 0x24));
    let limited = [96u8, 0, 0, 0];
    let made = Made::default().section(false, &[(1, b"said")]).block(1, &[&[1, 0, 0, 0][..], &limited].concat(), &[]);
    let limited = written(dir.path(), "e.pcapng", &made.packet(0, 1, 1, &[]).bytes);
    written_by(&limited, &copy, &[]).says(0, &["0 packet comments, 2 descriptions of interfaces and sections"]);
    cut(&limited, &copy, &[]).says(0, &["1 comments, counts, interface descriptions and other blocks"]);
}

/// Packets with times before 1970 or after 2554, or without a time: rows, filters, groups, figures and copies keep
/// them or report the loss.
#[test]
fn far_times_are_times() {
    let dir = tempfile::tempdir().unwrap();
    let offset = |seconds: i64| seconds.to_le_bytes();
    let made = Made::default().section(false, &[]);
    let made = made.iface(1, &[]).iface(1, &[(14, &offset(-100))]).iface(1, &[(9, &[0])]);
    let made = made.packet(0, 0, 1, &[]).packet(1, 5_000_001, 2, &[]).packet(2, 20_000_000_000, 3, &[]);
    let simple = [&(udp(4, b"abc").len() as u32).to_le_bytes()[..], &udp(4, b"abc"), &[0; 3]].concat();
    let source = written(dir.path(), "far.pcapng", &made.block(3, &simple, &[]).bytes);
    let zero = "1970-01-01T00:00:00.000000000Z";
    let (early, late) = ("1969-12-31T23:58:25.000001000Z", "2603-10-11T11:33:20.000000000Z");
    let all = format!("{zero}\t1\n{early}\t2\n{late}\t3\n-\t4\n");
    assert_eq!(columns(&source, "time,dport"), all);
    let shown = |words: &[&str]| netwren(&[&["capture", "-r", source.to_str().unwrap(), "-H"], words].concat()).ok();
    for (filter, ports) in [
        ("time < 1970-01-01T00:00:00Z", "2\n"),
        ("time >= 1970-01-01T00:00:00Z", "1\n3\n"),
        ("time > 2600-01-01T00:00:00Z", "3\n"),
        ("time < 1960-01-01T00:00:00Z", ""),
        ("time = 1969-12-31T23:58:25.000001Z", "2\n"),
        ("time = null", "4\n"),
    ] {
        assert_eq!(shown(&["-c", "dport", filter]), ports, "{filter}");
    }
    let sorted = format!("{early}\t2\n{zero}\t1\n{late}\t3\n-\t4\n");
    assert_eq!(shown(&["-c", "time,dport", "--sort", "time"]), sorted);
    assert_eq!(shown(&["--by", "time", "--sort", "time", "--limit", "1"]), format!("{early}\t1\n"));
    let json = shown(&["-o", "json", "-c", "time", "dport = 3"]);
    assert_eq!(json.trim(), format!("{{\"time\":\"{late}\"}}"));
    let figures = row(&source);
    assert_eq!((&figures["first_time"], &figures["last_time"]), (&early.into(), &late.into()));
    assert_eq!((&figures["untimed"], &figures["backwards"]), (&1.into(), &1.into()));
    let [pcapng, pcap] = ["copy.pcapng", "copy.pcap"].map(|name| dir.path().join(name));
    cut(&source, &pcapng, &[]).ok();
    assert_eq!(columns(&pcapng, "time,dport"), all, "a packet without a time stays without one");
    is_read_by("tcpdump", &["-n", "-r"], &pcapng);
    written_by(&source, &pcapng, &[]).says(3, &["packets have another time in the file"]);
    assert_eq!(columns(&pcapng, "time,dport"), all.replace("-\t4", &format!("{zero}\t4")));
    for copied in [cut, written_by] {
        copied(&source, &pcap, &[]).says(3, &["3", "packets have another time in the file"]);
        assert_eq!(columns(&pcap, "dport"), "1\n2\n3\n4\n");
    }
    let parts = [1, 2, 3, 4].map(|port: u16| {
        let part = dir.path().join(format!("{port}.pcapng"));
        cut(&source, &part, &[&format!("dport = {port}")]).ok();
        part
    });
    merge(&[&parts[2], &parts[1], &parts[0]], &pcapng).ok();
    assert_eq!(columns(&pcapng, "time,dport"), format!("{early}\t2\n{zero}\t1\n{late}\t3\n"));
    merge(&[&parts[0], &parts[3]], &pcapng).says(3, &["1 packets have another time in the file"]);
    assert_eq!(columns(&pcapng, "time,dport"), format!("{zero}\t4\n{zero}\t1\n"));
}

/// Packets that do not fit on the disk are counted, and the file ends with a complete packet.
#[test]
fn root_a_full_disk_is_counted() {
    testkit::require_root!();
    let dir = tempfile::tempdir().unwrap();
    let frame = udp(1000, &[7; 1000]);
    let source = written(dir.path(), "source", &pcap_of(&[&frame[..]; 400]));
    let small = dir.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let copy = dir.path().join("copy.pcapng");
    let script = "mount -t tmpfs -o size=128k none \"$1\" || exit 99
        \"$2\" capture merge \"$3\" -w \"$1/a.pcapng\"; code=$?; cp \"$1/a.pcapng\" \"$4\"; exit $code";
    let mut command = std::process::Command::new("unshare");
    crate::run::clean(&mut command).args(["-m", "sh", "-c", script, "sh"]).arg(&small);
    let ran = Ran::of(command.arg(testkit::program::netwren()).arg(&source).arg(&copy).output().unwrap());
    let whole = columns(&copy, "dport").lines().count();
    assert!((100..130).contains(&whole), "{whole}: {}", ran.stderr);
    let figures =
        format!("400 packets read; {whole} written to {}/a.pcapng, {} not written", small.display(), 400 - whole);
    ran.says(3, &[&figures, "packets are not written: no space left on device"]);
}
