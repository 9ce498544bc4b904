//! `capture --write` writes files that other programs can read, and each packet is written completely or counted.

use crate::capture::{command, rings};
use crate::capture_read::{pcap_of, udp};
use crate::going::Going;
use crate::packet_tools::is_read_by;
use crate::run::{Ran, clean, netwren};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::Command;
use testkit::netns::Lab;

fn columns(path: &Path) -> String {
    netwren(&["capture", "-r", path.to_str().unwrap(), "-H", "-c", "time,src,sport,dst,dport,len,caplen,info"]).ok()
}

#[test]
fn files_that_are_written_are_read_by_others() {
    let dir = tempfile::tempdir().unwrap();
    let frames: Vec<Vec<u8>> = (0..500).map(|nth| udp(1000 + nth, &vec![7; usize::from(nth)])).collect();
    let source = dir.path().join("source");
    std::fs::write(&source, pcap_of(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>())).unwrap();
    for (name, magic) in [("a.pcapng", [0x0a, 0x0d, 0x0d, 0x0a]), ("a.pcap", [0x4d, 0x3c, 0xb2, 0xa1])] {
        let path = dir.path().join(name);
        let words = ["capture", "-r", source.to_str().unwrap(), "-w", path.to_str().unwrap()];
        let ran = netwren(&[&words[..], &["portrange 1000-1399"]].concat());
        assert!(ran.stderr.contains("500 packets read; 400 written to "), "{}", ran.stderr);
        assert_eq!(ran.ok(), "");
        assert_eq!(std::fs::read(&path).unwrap()[..4], magic);
        let of_source: String = columns(&source).lines().take(400).map(|line| format!("{line}\n")).collect();
        assert_eq!(columns(&path), of_source, "{name}");
        is_read_by("tcpdump", &["-n", "-r"], &path);
        is_read_by("capinfos", &[], &path);
        is_read_by("tshark", &["-n", "-r"], &path);
        // If no packet matches, an empty capture file is written.
        netwren(&[&words[..], &["port 9"]].concat()).ok();
        assert_eq!(columns(&path), "");
        is_read_by("tcpdump", &["-n", "-r"], &path);
    }
    let stdout = netwren(&["capture", "-r", source.to_str().unwrap(), "-w", source.to_str().unwrap()]);
    stdout.says(2, &["--write would overwrite the input file"]);
    netwren(&["capture", "-r", "x", "-w", "y", "-o", "json"]).says(2, &["--output applies to shown rows"]);
}

/// Packets written to a pipe arrive at once, and the run ends when the pipe is closed.
#[test]
fn standard_output_is_a_file_too() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    std::fs::write(&source, pcap_of(&[&udp(1000, b"ab"), &udp(2000, b"")])).unwrap();
    let script = format!(
        "{0} capture -r {1} -w - | {0} capture -r - -H -c dport",
        testkit::program::netwren().display(),
        source.display()
    );
    let mut shell = Command::new("bash");
    let ran = Ran::of(clean(&mut shell).args(["-o", "pipefail", "-c", &script]).output().unwrap());
    assert_eq!(ran.ok(), "1000\n2000\n");
}

/// The owner of an existing file could read the packets, and the owner of a link decides where they go.
#[test]
fn root_another_users_file_is_not_written_to() {
    use std::os::unix::fs::{chown, lchown, symlink};
    testkit::require_root!();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("source"), pcap_of(&[&udp(1000, b"ab")])).unwrap();
    for name in ["theirs", "ours"] {
        std::fs::write(at(name), "as it was").unwrap();
    }
    symlink(at("ours"), at("link")).unwrap();
    chown(at("theirs"), Some(65534), None).unwrap();
    lchown(at("link"), Some(65534), None).unwrap();
    let writes =
        |name: &str| netwren(&["capture", "-r", at("source").to_str().unwrap(), "-w", at(name).to_str().unwrap()]);
    writes("theirs").says(4, &["cannot write ", "theirs: it belongs to user 65534: remove it, or name another file"]);
    writes("link").says(4, &["it is a symbolic link: name its target"]);
    for name in ["theirs", "ours"] {
        assert_eq!(std::fs::read_to_string(at(name)).unwrap(), "as it was", "{name}");
    }
    // /dev/null discards everything, so its owner does not matter.
    let made = Command::new("mknod").arg(at("null")).args(["c", "1", "3"]).status().unwrap().success();
    if made && chown(at("null"), Some(65534), None).is_ok() {
        // A file system that is mounted with `nodev` reports the error itself.
        let ran = writes("null");
        assert!(ran.code == 0 || ran.stderr.contains("permission denied"), "{}", ran.stderr);
    }
    chown(at("theirs"), Some(0), None).unwrap();
    lchown(at("link"), Some(0), None).unwrap();
    writes("link").says(4, &["it is a symbolic link"]);
    writes("theirs").ok();
    assert_eq!(columns(&at("theirs")).lines().count(), 1);
}

/// Packets that do not fit on the disk are counted exactly, and the file ends with a complete packet.
#[test]
fn root_a_full_disk_is_survived_and_counted() {
    const PACKETS: usize = 400;
    testkit::require_root!();
    let dir = tempfile::tempdir().unwrap();
    let (source, small) = (dir.path().join("source"), dir.path().join("small"));
    std::fs::create_dir(&small).unwrap();
    let frame = udp(1000, &[7; 1000]);
    std::fs::write(&source, pcap_of(&[&frame[..]; PACKETS])).unwrap();
    for name in ["full.pcapng", "full.pcap"] {
        let script = "mount -t tmpfs -o size=128k none \"$1\" || exit 99
            \"$2\" capture -r \"$3\" -w \"$1/$4\"; code=$?; cp \"$1/$4\" \"$5\"; exit $code";
        let copy = dir.path().join(name);
        let mut command = Command::new("unshare");
        clean(&mut command).args(["-m", "sh", "-c", script, "sh"]).arg(&small).arg(testkit::program::netwren());
        let ran = Ran::of(command.arg(&source).arg(name).arg(&copy).output().unwrap());
        let whole = columns(&copy).lines().count();
        assert!((100..130).contains(&whole), "{whole}: {}", ran.stderr);
        let figures = format!("{whole} written to {}/{name}, {} not written", small.display(), PACKETS - whole);
        ran.says(3, &[&figures, "packets are not written: no space left on device"]);
        is_read_by("tcpdump", &["-n", "-r"], &copy);
    }
}

/// Runs a script in a file system of `size`, mounted at `$1` for it alone. Its other arguments are netwren, and `args`.
fn in_small_file_system(size: &str, script: &str, args: &[&Path]) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("mount -t tmpfs -o size={size} none \"$1\" || exit 99\n{script}");
    let mut command = Command::new("unshare");
    clean(&mut command).args(["-m", "sh", "-c", &script, "sh"]).arg(dir.path()).arg(testkit::program::netwren());
    Ran::of(command.args(args).output().unwrap())
}

/// Standard output may be a file: then it also ends with a complete packet, and what was in it before stays.
#[test]
fn root_a_full_disk_behind_standard_output_is_survived() {
    testkit::require_root!();
    let dir = tempfile::tempdir().unwrap();
    let (source, copy) = (dir.path().join("source"), dir.path().join("copy"));
    let frame = udp(1000, &[7; 1000]);
    std::fs::write(&source, pcap_of(&[&frame[..]; 400])).unwrap();
    for command in ["capture -r \"$3\" -w -", "capture cut \"$3\" -w -", "tcpdump -r \"$3\" -w -"] {
        let script = format!(
            "{{ printf before; \"$2\" {command}; }} > \"$1/x\"; code=$?
            tail -c +7 \"$1/x\" > \"$4\"; head -c 6 \"$1/x\"; exit $code"
        );
        let ran = in_small_file_system("128k", &script, &[&source, &copy]);
        let whole = columns(&copy).lines().count();
        assert!((100..130).contains(&whole), "{command}: {whole}: {}", ran.stderr);
        assert_eq!(ran.stdout, "before", "{command}");
        is_read_by("tcpdump", &["-n", "-r"], &copy);
        let missing = format!("{} ", 400 - whole);
        let code = if command.starts_with("tcpdump") { 1 } else { 3 };
        ran.says(code, &[&missing, "packets are not written: no space left on device"]);
    }
}

/// The end of a file has no packet that could be counted.
#[test]
fn root_a_file_without_its_end_is_reported() {
    testkit::require_root!();
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("empty.pcap");
    std::fs::write(&source, pcap_of(&[])).unwrap();
    for (command, code) in [
        ("capture -r \"$3\" -w \"$1/x.pcap\"", 3),
        ("capture -r \"$3\" -w \"$1/x.pcap.gz\"", 3),
        ("capture -r \"$3\" -w \"$1/x.pcap\" --rotate-size 1MiB", 3),
        ("capture cut \"$3\" -w \"$1/x.pcapng\"", 3),
        ("capture merge \"$3\" -w \"$1/x.pcapng\"", 3),
        ("tcpdump -r \"$3\" -w \"$1/x.pcap\"", 1),
    ] {
        let script = format!("head -c 8192 /dev/zero > \"$1/other\"; \"$2\" {command}");
        let ran = in_small_file_system("8k", &script, &[&source]);
        assert!(!ran.stderr.contains("packets are not written"), "{command}: {}", ran.stderr);
        ran.says(code, &["/x", " is incomplete: no space left on device"]);
    }
}

/// An output is recognised as an input by its inode, not by its name.
#[test]
fn no_input_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("x.pcap");
    let bytes = pcap_of(&[&udp(1000, b"ab"), &udp(2000, b"")]);
    std::fs::write(&source, &bytes).unwrap();
    std::fs::hard_link(&source, dir.path().join("hard.pcap")).unwrap();
    std::os::unix::fs::symlink("x.pcap", dir.path().join("soft.pcap")).unwrap();
    for (script, code) in [
        ("capture cut - -w x.pcap < x.pcap", 2),
        ("capture cut x.pcap -w hard.pcap", 2),
        ("capture cut soft.pcap -w x.pcap", 2),
        ("capture cut x.pcap -w - >> x.pcap", 2),
        ("capture merge hard.pcap - -w x.pcap < soft.pcap", 2),
        ("capture -r - -w x.pcap < x.pcap", 2),
        ("capture -r hard.pcap -w x.pcap", 2),
        ("capture -r hard.pcap --to pcap:x.pcap", 2),
        ("tcpdump -r - -w x.pcap < x.pcap", 1),
        ("tcpdump -r soft.pcap -w x.pcap", 1),
    ] {
        let mut shell = Command::new("sh");
        let script = format!("{} {script}", testkit::program::netwren().display());
        let ran = Ran::of(clean(&mut shell).args(["-c", &script]).current_dir(dir.path()).output().unwrap());
        assert!(ran.stderr.contains(" input file"), "{script}: {}", ran.stderr);
        assert_eq!((ran.code, std::fs::read(&source).unwrap() == bytes), (code, true), "{script}");
    }
}

#[test]
fn root_packets_of_interfaces_are_written_with_their_figures() {
    testkit::require_root!();
    let lab = Lab::new("capwrite");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pcapng");
    let words = ["-i", "lo", "-w", path.to_str().unwrap(), "udp port 7123 and dst port 7123"];
    let going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        (0..5).for_each(|_| _ = socket.send_to(b"0123456789", (Ipv4Addr::LOCALHOST, 7123)));
    });
    let (_, ran) = going.end();
    assert!(ran.stderr.contains("5 packets received, 0 dropped by the ring"), "{}", ran.stderr);
    assert!(ran.stderr.contains("; 5 written to "), "{}", ran.stderr);
    ran.ok();
    let ifaces = netwren(&["capture", "-r", path.to_str().unwrap(), "-H", "-c", "iface,direction,dport"]).ok();
    assert_eq!(ifaces, "lo\tin\t7123\n".repeat(5));
    // The last block contains the statistics of the interface: no drops by the interface or the ring, five delivered
    // packets.
    let bytes = std::fs::read(&path).unwrap();
    let tail: Vec<u8> = [5u32 | 8 << 16, 0, 0, 7 | 8 << 16, 0, 0, 8 | 8 << 16, 5, 0, 0, 64]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    assert!(bytes.ends_with(&tail), "{:?}", &bytes[bytes.len() - 64..]);
}
