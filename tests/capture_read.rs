//! `capture --read` shows the packets of files in the same way as packets of interfaces, and reports the position of
//! an error in a file.

use crate::run::{Ran, clean, netwren};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A pcap file of Ethernet frames, one per second.
pub(crate) fn pcap_of(frames: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    for number in [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1u32] {
        file.extend(number.to_le_bytes());
    }
    for (nth, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for number in [1_700_000_000 + nth as u32, 0, len, len] {
            file.extend(number.to_le_bytes());
        }
        file.extend_from_slice(frame);
    }
    file
}

/// A UDP datagram from 10.0.0.1, port 53, to 10.0.0.2.
pub(crate) fn udp(dport: u16, payload: &[u8]) -> Vec<u8> {
    let length = |header: usize| ((header + payload.len()) as u16).to_be_bytes();
    let ip = [&[0x45, 0][..], &length(28), &[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat();
    [&[2; 12], &[8, 0][..], &ip, &[0, 53], &dport.to_be_bytes(), &length(8), &[0, 0], payload].concat()
}

fn written(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn read(path: &Path, args: &[&str]) -> Ran {
    netwren(&[&["capture", "-r", path.to_str().unwrap()], args].concat())
}

#[test]
fn a_file_is_shown_as_the_wire_is() {
    let dir = tempfile::tempdir().unwrap();
    let frames = [udp(1000, b"ab"), udp(2000, b"abcd"), udp(2000, b"")];
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let path = written(dir.path(), "a.pcap", &pcap_of(&frames));
    let columns = ["-H", "-c", "time,iface,src,sport,dst,dport,len,caplen,info"];
    let first = "2023-11-14T22:13:20.000000000Z\t-\t10.0.0.1\t53\t10.0.0.2\t1000\t44\t44\tlen 2\n";
    assert_eq!(read(&path, &[&columns[..], &["-n", "1"]].concat()).ok(), first);
    assert_eq!(read(&path, &["-H", "-c", "len", "dport = 2000 and len > 42"]).ok(), "46\n");
    assert_eq!(read(&path, &["-H", "-c", "caplen,len", "-s", "20", "-n", "1"]).ok(), "20\t44\n", "cut");
    let by = read(&path, &["-H", "--by", "dport", "--sum", "len", "--sort", "dport"]);
    assert_eq!(by.ok(), "1000\t1\t44\n2000\t2\t88\n");
    assert_eq!(read(&path, &["-H", "-c", "len", "--sort", "len:desc"]).ok(), "46\n44\n42\n");
    let to = dir.path().join("b.pcapng");
    read(&path, &["--to", &format!("pcapng:{}", to.display())]).ok();
    let again = ["-H", "-c", "time,src,dport,len,info"];
    assert_eq!(read(&to, &again).ok(), read(&path, &again).ok(), "written as pcapng and read again");
    let json: serde_json::Value = serde_json::from_str(&read(&to, &["-o", "json", "-n", "1"]).ok()).unwrap();
    assert_eq!((&json["proto"], &json["dport"]), (&"udp".into(), &1000.into()));
}

/// Reads a compressed file through a pipe, as a shell pipeline would.
#[test]
fn packed_files_and_pipes_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let frame = udp(1000, b"ab");
    let path = written(dir.path(), "a.pcap", &pcap_of(&[&frame, &frame]));
    for (tool, args, ending) in [("gzip", &["-k"][..], "gz"), ("zstd", &["-q"], "zst")] {
        if !testkit::tool::is_installed(tool) {
            continue;
        }
        assert!(Command::new(tool).args(args).arg(&path).status().unwrap().success());
        let packed = dir.path().join(format!("a.pcap.{ending}"));
        assert_eq!(read(&packed, &["-H", "-c", "dport"]).ok(), "1000\n1000\n", "{tool}");
    }
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["capture", "-r", "-", "-H", "-c", "dport"]).stdin(Stdio::piped());
    let mut going = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut first) = (going.stdin.take().unwrap(), [0; 5]);
    stdin.write_all(&pcap_of(&[&frame])).unwrap();
    // The first packet is shown before the second one has arrived.
    std::io::Read::read_exact(going.stdout.as_mut().unwrap(), &mut first).unwrap();
    assert_eq!(&first, b"1000\n");
    stdin.write_all(&pcap_of(&[&frame])[24..]).unwrap();
    drop(stdin);
    assert_eq!(Ran::of(going.wait_with_output().unwrap()).ok(), "1000\n");
}

#[test]
fn a_broken_file_gives_what_is_before_the_break() {
    let dir = tempfile::tempdir().unwrap();
    let frame = udp(1000, b"ab");
    let whole = pcap_of(&[&frame, &frame]);
    let cut = written(dir.path(), "cut\u{1b}.pcap", &whole[..whole.len() - 3]);
    for args in [&["-H", "-c", "dport"][..], &["-H", "--by", "dport"]] {
        let ran = read(&cut, args);
        assert!(ran.stdout.starts_with("1000"), "{}", ran.stdout);
        ran.says(3, &["cut\\u{1b}.pcap, byte 84: the file ends within a packet: 41 of 44 bytes"]);
    }
    let text = written(dir.path(), "text", b"no packets here");
    read(&text, &[]).says(4, &["text: neither pcap nor pcapng: it begins with 6e 6f 20 70"]);
    read(&dir.path().join("none"), &[]).says(4, &["none: no such file or directory"]);
    read(&written(dir.path(), "empty", b""), &[]).says(4, &["empty: the file is empty"]);
    assert_eq!(read(&written(dir.path(), "none.pcap", &pcap_of(&[])), &["-H"]).ok(), "");
}

/// Runs netwren with `args`, and writes `thousands` times 1,000 packets of 1,442 bytes into its standard input. Returns
/// also by how many KiB the most memory that it ever had (`VmHWM`) grew after the first thousand.
pub(crate) fn read_long_pipe(args: &[&str], thousands: usize) -> (Ran, u64) {
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut going = command.spawn().unwrap();
    let mut stdin = going.stdin.take().unwrap();
    let file = pcap_of(&[&udp(1000, &[7; 1400])[..]; 1000]);
    let peak = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", going.id())).unwrap();
        let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        value.trim_end_matches("kB").trim().parse::<u64>().unwrap()
    };
    stdin.write_all(&file).unwrap();
    let short = peak();
    (1..thousands).for_each(|_| stdin.write_all(&file[24..]).unwrap());
    // The process is still waiting for the end of the file.
    let growth = peak() - short;
    drop(stdin);
    (Ran::of(going.wait_with_output().unwrap()), growth)
}

/// A long file needs no more memory than a short one.
#[test]
fn memory_does_not_grow_with_the_file() {
    let (ran, growth) = read_long_pipe(&["capture", "-r", "-", "-H", "--by", "dport"], 40);
    assert_eq!(ran.ok(), "1000\t40000\n");
    assert!(growth < 8_000, "{growth} KiB more for 58 MB of packets");
}

/// Returns both parts as one gzip stream (RFC 1952) of uncompressed blocks.
fn gzip_of(first: &[u8], rest: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let block = |is_last: u8, bytes: &[u8]| {
        let length = bytes.len() as u16;
        [&[is_last], &length.to_le_bytes()[..], &(!length).to_le_bytes(), bytes].concat()
    };
    let bit = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    let byte = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), |sum, _| bit(sum));
    let sum = !first.iter().chain(rest).fold(u32::MAX, byte);
    let length = (first.len() + rest.len()) as u32;
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let end = [&block(1, rest)[..], &sum.to_le_bytes(), &length.to_le_bytes()].concat();
    ([&header[..], &block(0, first)].concat(), end)
}

/// Rows appear as the packets arrive, under every name of the pipe, even while the pipe stops within a packet.
#[test]
fn rows_of_a_pipe_come_as_its_packets_do() {
    let frames = [udp(1000, b"ab"), udp(2000, b"cd")];
    let file = pcap_of(&frames.each_ref().map(Vec::as_slice));
    // The split is in the header of the second packet.
    let (first, rest) = file.split_at(24 + 16 + frames[0].len() + 7);
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let plain = (first.to_vec(), rest.to_vec());
    let gzipped = gzip_of(first, rest);
    let fifo = fifo.to_str().unwrap();
    for (name, (begin, end)) in [
        ("-", &plain),
        ("/dev/stdin", &plain),
        ("/dev/fd/0", &plain),
        (fifo, &plain),
        ("-", &gzipped),
        ("/dev/stdin", &gzipped),
        (fifo, &gzipped),
    ] {
        let mut command = Command::new(testkit::program::netwren());
        clean(&mut command).args(["capture", "-r", name, "-H", "-c", "dport"]).stdin(Stdio::piped());
        let mut going = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin: Box<dyn Write> = match name == fifo {
            true => Box::new(std::fs::OpenOptions::new().write(true).open(fifo).unwrap()),
            false => Box::new(going.stdin.take().unwrap()),
        };
        stdin.write_all(begin).unwrap();
        stdin.flush().unwrap();
        let mut line = [0; 5];
        going.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(&line, b"1000\n", "{name}: before the rest is written");
        stdin.write_all(end).unwrap();
        drop(stdin);
        let ran = Ran::of(going.wait_with_output().unwrap());
        assert_eq!(ran.ok(), "2000\n", "{name}");
    }
}

/// Every readable file is read, in any order of readable and unreadable ones.
#[test]
fn unreadable_files_are_reported_and_the_others_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let a = written(dir.path(), "a.pcap", &pcap_of(&[&udp(1000, b"ab")]));
    let b = written(dir.path(), "b.pcap", &pcap_of(&[&udp(2000, b"ab")]));
    let text = written(dir.path(), "text", b"no packets");
    let (a, b, text, none) = (a.to_str().unwrap(), b.to_str().unwrap(), text.to_str().unwrap(), "/none");
    for files in [[a, none, b, text], [none, text, a, b], [text, a, none, b]] {
        let ran = netwren(&[&["capture", "stats"], &files[..], &["--by", "dport", "--sort", "dport", "-H"]].concat());
        let ports: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(ports, ["1000", "2000"], "{files:?}: {}", ran.stderr);
        ran.says(3, &["/none: no such file or directory", "text: neither pcap nor pcapng"]);
    }
    netwren(&["capture", "stats", none, text, "--by", "dport"]).says(4, &["/none: no such", "text: neither pcap"]);
    netwren(&["capture", "stats", none, "/none2", "--by", "dport"]).says(4, &["/none: no such", "/none2: no such"]);
}

/// A pipe is waited for when it is its turn, and Ctrl-C ends the wait.
#[test]
fn the_wait_for_a_later_pipe_can_be_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (first, fifo) = (dir.path().join("first"), dir.path().join("fifo"));
    for path in [&first, &fifo] {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    let bytes = pcap_of(&[&udp(1000, b"ab")]);
    for (command, header) in [(&["capture", "stats"][..], 0), (&["capture", "stats"], 7), (&["capture", "merge"], 7)] {
        let output = dir.path().join("merged.pcap");
        let mut child = Command::new(testkit::program::netwren());
        clean(&mut child).args(command).args([&first, &fifo]).stdout(Stdio::piped()).stderr(Stdio::piped());
        match command[1] {
            "merge" => child.arg("-w").arg(&output),
            _ => child.args(["--by", "dport", "-H"]),
        };
        let going = child.spawn().unwrap();
        let mut writer = std::fs::OpenOptions::new().write(true).open(&first).unwrap();
        writer.write_all(&bytes).unwrap();
        drop(writer);
        // The writer of the second pipe begins with a part of the header, or has not come yet.
        let mut second = std::fs::OpenOptions::new();
        let mut second = (header > 0).then(|| second.write(true).open(&fifo).unwrap());
        second.iter_mut().for_each(|file| file.write_all(&bytes[..header]).unwrap());
        let (pid, mut status) = (going.id().to_string(), String::new());
        testkit::wait_until("it waits for the second pipe", || {
            status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            status.lines().any(|line| line.starts_with("SigCgt:\t") && !line.ends_with("0000"))
        });
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let ran = Ran::of(going.wait_with_output().unwrap());
        assert!([0, 3, 4].contains(&ran.code), "{command:?} {header}: {}: {}", ran.code, ran.stderr);
    }
}

/// The IP header has a length of 0, packets have more bytes than the file header allows, or their link type has no
/// decoder.
#[test]
fn numbers_at_their_edge_are_read_as_tcpdump_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut frame = udp(1000, b"abcdefgh");
    (frame[16], frame[17]) = (0, 0);
    let mut file = pcap_of(&[&frame, &frame]);
    // The file header allows 40 bytes of each packet; the packets had 90,000.
    file[16..20].copy_from_slice(&40u32.to_le_bytes());
    for at in [24, 24 + 16 + frame.len()] {
        file[at + 12..at + 16].copy_from_slice(&90_000u32.to_le_bytes());
    }
    let path = written(dir.path(), "edge.pcap", &file);
    let shown = read(&path, &["-H", "-c", "caplen,len,info"]).ok();
    assert_eq!(shown, "40\t90000\tlen 89958\n40\t90000\tlen 89958\n");
    let to = dir.path().join("copy.pcap");
    netwren(&["capture", "cut", path.to_str().unwrap(), "-w", to.to_str().unwrap()]).ok();
    let copy = std::fs::read(&to).unwrap();
    assert_eq!(copy[16..20], 40u32.to_le_bytes(), "the snapshot length is kept");
    for (link_type, word) in
        [(105u32, "802.11"), (127, "802.11"), (189, "usb"), (220, "usb"), (249, "usb"), (239, "nflog")]
    {
        let mut file = pcap_of(&[&[9; 60], &[8; 20]]);
        file[20..24].copy_from_slice(&link_type.to_le_bytes());
        let path = written(dir.path(), &format!("{link_type}.pcap"), &file);
        for (expression, len) in [("greater 60", 60), ("less 30", 20), ("link[3] = 8", 20), ("len > 20", 60)] {
            let shown = read(&path, &["-H", "-c", "info", expression]).ok();
            assert_eq!(shown, format!("{word} len {len}\n"), "{link_type} {expression}");
        }
        read(&path, &["host 10.0.0.1"]).says(4, &["only less, greater, len and link[...] are tested"]);
    }
    // Set the bits for the length of the frame check sequence.
    let mut file = pcap_of(&[&udp(1000, b"ab")]);
    file[23] = 0x24;
    let path = written(dir.path(), "checksums.pcap", &file);
    netwren(&["capture", "cut", path.to_str().unwrap(), "-w", to.to_str().unwrap()]).ok();
    assert_eq!(std::fs::read(&to).unwrap()[23], 0x24);
    let to = dir.path().join("copy.pcapng");
    let cut = ["capture", "cut", path.to_str().unwrap(), "-w", to.to_str().unwrap()];
    netwren(&cut).says(0, &["the length of frame checksums is not kept"]);
}

/// netwren packs a file whose name ends in .gz or .zst. The file is complete even if it is written in many parts.
#[test]
fn files_whose_names_say_so_are_packed() {
    let dir = tempfile::tempdir().unwrap();
    let frames: Vec<Vec<u8>> = (0..4000).map(|nth| udp(nth, &[7; 100])).collect();
    let path = written(dir.path(), "a.pcap", &pcap_of(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>()));
    let shown = |path: &Path| read(path, &["-H", "-c", "dport"]).ok();
    let (pcap, pcapng) = (0xa1b2_3c4d_u32, 0x0a0d_0d0a);
    let names = [("b.pcap.gz", pcap), ("b.pcapng.gz", pcapng), ("b.pcap.zst", pcap), ("b.pcapng.zst", pcapng)];
    for (name, magic) in names {
        let tool = if name.ends_with("gz") { "gzip" } else { "zstd" };
        let packed = dir.path().join(name);
        for words in
            [&["capture", "-r", path.to_str().unwrap(), "-w"][..], &["capture", "cut", path.to_str().unwrap(), "-w"]]
        {
            netwren(&[words, &[packed.to_str().unwrap()]].concat()).ok();
            assert_eq!(shown(&packed), shown(&path), "{name}");
            if !testkit::tool::is_installed(tool) {
                continue;
            }
            let unpacked = Command::new(tool).arg("-dc").arg(&packed).output().unwrap();
            assert!(unpacked.status.success() && unpacked.stdout.starts_with(&magic.to_le_bytes()), "{name}");
            assert!(std::fs::metadata(&packed).unwrap().len() < unpacked.stdout.len() as u64 / 4);
        }
    }
}

/// Rotated files are also compressed; each is complete in itself, and none exceeds the maximum size.
#[test]
fn files_that_follow_one_another_are_packed() {
    let dir = tempfile::tempdir().unwrap();
    // Bytes that compress badly.
    let mixed = |n: u64| (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let noise =
        |nth: u64| (nth..nth + 100).map(move |n| (mixed(mixed(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))) >> 56) as u8);
    let frames: Vec<Vec<u8>> =
        (0..20_000).map(|nth| udp(nth, &noise(u64::from(nth) * 100).collect::<Vec<_>>())).collect();
    let path = written(dir.path(), "a.pcap", &pcap_of(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>()));
    for (ending, limit) in [("pcap.gz", "packets"), ("pcapng.zst", "packets"), ("pcap.zst", "size")] {
        let folder = dir.path().join(format!("{ending}.{limit}"));
        std::fs::create_dir(&folder).unwrap();
        let to = folder.join(format!("all.{ending}"));
        let most = if limit == "size" { "1MiB" } else { "3000" };
        let words = ["-w", to.to_str().unwrap(), &format!("--rotate-{limit}"), most];
        read(&path, &words).ok();
        let mut names: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        assert!(names.len() > 1, "{names:?}");
        let mut ports = String::new();
        for name in &names {
            let text = name.file_name().unwrap().to_str().unwrap();
            assert!(text.starts_with("all_0000") && text.ends_with(&format!(".{ending}")), "{text}");
            let bytes = std::fs::read(name).unwrap();
            assert!(bytes.starts_with(if ending.ends_with("gz") { &[0x1f, 0x8b] } else { &[0x28, 0xb5] }), "{text}");
            assert!(bytes.len() <= 1 << 20, "{text}: {}", bytes.len());
            ports += &read(name, &["-H", "-c", "dport"]).ok();
        }
        assert_eq!(ports, read(&path, &["-H", "-c", "dport"]).ok(), "{ending}");
    }
}
