//! `capture --write` with `--rotate-…`: consecutive files, each complete in itself, and the commands that are run with
//! them.

use crate::capture::{command, rings};
use crate::capture_read::{pcap_of, udp};
use crate::going::Going;
use crate::packet_tools::is_read_by;
use crate::run::{Ran, clean, netwren};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::netns::Lab;
use testkit::wait_until;

const NOBODY: u32 = 65_534;
const MIB: u64 = 1 << 20;

/// The files with this stem, in order.
fn files(dir: &Path, stem: &str) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(stem);
    let mut names: Vec<PathBuf> = names.filter(is_it).collect();
    names.sort();
    names
}

fn ports(path: &Path) -> Vec<String> {
    let read = netwren(&["capture", "-r", path.to_str().unwrap(), "-H", "-c", "dport"]).ok();
    read.lines().map(str::to_owned).collect()
}

/// Writes a file of packets whose ports count upwards.
fn source(dir: &Path, packets: u16, bytes: usize) -> PathBuf {
    let frames: Vec<Vec<u8>> = (0..packets).map(|nth| udp(nth, &vec![7; bytes])).collect();
    let path = dir.join("source");
    std::fs::write(&path, pcap_of(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>())).unwrap();
    path
}

fn written(source: &Path, output: &Path, args: &[&str]) -> Ran {
    netwren(&[&["capture", "-r", source.to_str().unwrap(), "-w", output.to_str().unwrap()], args].concat())
}

#[test]
fn replay_each_file_is_complete_and_none_is_larger() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path(), 5000, 1000);
    let expected: Vec<String> = (0..5000).map(|nth| nth.to_string()).collect();
    for (name, stem) in [("a.pcapng", "a_000"), ("b.pcap", "b_000"), ("c", "c_000")] {
        let ran = written(&source, &dir.path().join(name), &["--rotate-size", "1MiB"]);
        assert!(ran.stderr.contains(" 5000 written to 6 files, the last "), "{}", ran.stderr);
        ran.ok();
        let files = files(dir.path(), stem);
        assert_eq!(files.iter().flat_map(|path| ports(path)).collect::<Vec<_>>(), expected, "{name}");
        let sizes: Vec<u64> = files.iter().map(|path| path.metadata().unwrap().len()).collect();
        assert!(sizes.iter().all(|bytes| *bytes <= MIB), "{sizes:?}");
        assert!(sizes[..5].iter().all(|bytes| *bytes > MIB - 3000), "{sizes:?}");
        for path in &files {
            is_read_by("tcpdump", &["-n", "-r"], path);
            is_read_by("capinfos", &[], path);
        }
    }
    // The statistics of each file cover its own packets.
    let first = &files(dir.path(), "a_000")[0];
    let bytes = std::fs::read(first).unwrap();
    let delivered = ports(first).len() as u64;
    let tail = [&(8u32 | 8 << 16).to_le_bytes()[..], &delivered.to_le_bytes(), &[0; 4]].concat();
    assert!(bytes[..bytes.len() - 4].ends_with(&tail), "{:x?}", &bytes[bytes.len() - 40..]);
}

/// A ring of two files, rotated by packets, with a name without a directory.
#[test]
fn replay_the_oldest_files_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path(), 1050, 10);
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).current_dir(dir.path()).args(["capture", "-r"]).arg(&source).args(["-w", "all.pcapng"]);
    command.args(["--rotate-packets", "100", "--rotate-keep", "2"]);
    let ran = Ran::of(command.output().unwrap());
    assert!(ran.stderr.contains("1050 written to 11 files, the last all_00011_"), "{}", ran.stderr);
    ran.ok();
    let left = files(dir.path(), "all_");
    assert_eq!(left.len(), 2);
    let expected: Vec<String> = (900..1050).map(|nth| nth.to_string()).collect();
    assert_eq!(left.iter().flat_map(|path| ports(path)).collect::<Vec<_>>(), expected);
}

/// Writes a script that is run with files.
fn script(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("command");
    testkit::program::install_script(&path, &format!("#!/bin/sh\n{text}\n"));
    path
}

#[test]
fn replay_a_command_is_run_with_each_file() {
    let dir = tempfile::tempdir().unwrap();
    let (source, done) = (source(dir.path(), 400, 10), dir.path().join("done"));
    let program =
        script(dir.path(), &format!("[ $# = 1 ] && wc -c < \"$1\" > \"$1.size\" && echo \"$1\" >> {}", done.display()));
    let words = ["--rotate-packets", "100", "--rotate-command", program.to_str().unwrap()];
    written(&source, &dir.path().join("a b;c.pcap"), &words).ok();
    let files: Vec<PathBuf> =
        files(dir.path(), "a b").into_iter().filter(|path| path.extension().is_some_and(|e| e == "pcap")).collect();
    let mut told: Vec<PathBuf> = std::fs::read_to_string(&done).unwrap().lines().map(PathBuf::from).collect();
    told.sort();
    assert_eq!((told.len(), &told), (4, &files), "the last one, too");
    for path in files {
        let size = std::fs::read_to_string(path.with_extension("pcap.size")).unwrap();
        assert_eq!(size.trim(), path.metadata().unwrap().len().to_string(), "it is complete");
    }
}

#[test]
fn replay_commands_that_fail_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path(), 300, 10);
    for (program, says) in [("/bin/false", "exit status: 1"), ("/nowhere/x", "no such file or directory")] {
        let ran =
            written(&source, &dir.path().join("a.pcap"), &["--rotate-packets", "100", "--rotate-command", program]);
        ran.says(3, &[&format!("{program} "), says, "the command of --rotate-command failed (3 times)"]);
    }
    assert_eq!(files(dir.path(), "a_").len(), 6);
}

/// If commands do not end, only a few run at a time, all of them run eventually, and the capture ends before they do.
#[test]
fn replay_commands_that_hang_hold_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path(), 1000, 10);
    let (begun, go) = (dir.path().join("command.begun"), dir.path().join("command.go"));
    // The script also ends when the directory is removed.
    let text = "echo >> \"$0.begun\"; until [ -e \"$0.go\" ] || [ ! -e \"$0\" ]; do sleep 0.01; done; : > \"$1.done\"";
    let program = script(dir.path(), text);
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["capture", "-r"]).arg(&source).arg("-w").arg(dir.path().join("a.pcap"));
    command.args(["--rotate-packets", "100", "--rotate-command"]).arg(&program);
    // Write stderr to a file: the commands that are still running inherit it, so a pipe would not be closed.
    let said = dir.path().join("said");
    let status = command.stderr(std::fs::File::create(&said).unwrap()).status().unwrap();
    assert_eq!(std::fs::read_to_string(&begun).unwrap().lines().count(), 4, "four at a time");
    let stderr = std::fs::read_to_string(&said).unwrap();
    assert!(stderr.contains("1000 written to 10 files"), "{stderr}");
    let ran = Ran { stdout: String::new(), stderr, code: status.code().unwrap() };
    ran.says(
        3,
        &[
            "waiting up to 10 s for 10 commands that are still running",
            "the command of --rotate-command has not ended yet (10 times)",
        ],
    );
    std::fs::write(&go, "").unwrap();
    let is_done = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "done");
    wait_until("all commands have run", || files(dir.path(), "a_").iter().filter(|path| is_done(path)).count() == 10);
}

fn send(lab: &Lab, count: usize) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        (0..count).for_each(|_| _ = socket.send_to(&[7; 1000], (Ipv4Addr::LOCALHOST, 7123)));
    });
}

/// Starts a live capture of packets to port 7123.
fn live(lab: &Lab, output: &Path, args: &[&str]) -> Going<String> {
    let words = [&["-i", "lo", "-w", output.to_str().unwrap(), "udp dst port 7123"], args].concat();
    let going = Going::spawn(command(lab, &words), |line| line);
    wait_until("the ring is there", || rings(lab) == 1);
    going
}

/// The figures at the end of a capture: received, dropped by the ring, written, not written.
fn figures(said: &str) -> [u64; 4] {
    let line = said.lines().find(|line| line.contains(" received, ")).unwrap_or_else(|| panic!("{said}"));
    let before = |words: &str| {
        let number = line[..line.find(words).unwrap()].rsplit(' ').next().unwrap();
        number.parse().unwrap()
    };
    [before(" packet"), before(" dropped by the ring"), before(" written to "), before(" not written")]
}

/// A file is completed even if no further packets arrive, and the next file is created without privileges.
#[test]
fn root_a_file_ends_with_its_time_without_traffic() {
    testkit::require_root!();
    let lab = Lab::new("capage");
    let dir = tempfile::tempdir().unwrap();
    chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let done = dir.path().join("done");
    let program = script(
        dir.path(),
        &format!("grep -h '^Uid\\|^Cap' /proc/self/status > {0}.part; mv {0}.part {0}", done.display()),
    );
    let words = ["--rotate-age", "1s", "-Z", "nobody", "-v", "--rotate-command", program.to_str().unwrap()];
    let going = live(&lab, &dir.path().join("a.pcapng"), &words);
    wait_until("the first file", || files(dir.path(), "a_").len() == 1);
    send(&lab, 3);
    wait_until("the second file", || files(dir.path(), "a_").len() == 2);
    wait_until("the command has run", || done.exists());
    let has = std::fs::read_to_string(&done).unwrap();
    let has: Vec<&str> = has.lines().map(|line| line.split_whitespace().last().unwrap()).collect();
    let none = "0".repeat(16);
    assert_eq!(has, [&NOBODY.to_string(), &none, &none, &none, &none, &none], "it has that user's rights");
    let files = files(dir.path(), "a_");
    assert_eq!(ports(&files[0]), ["7123"; 3]);
    is_read_by("tcpdump", &["-n", "-r"], &files[0]);
    let (_, ran) = going.end();
    assert!(
        ran.stderr.contains("no file can be opened for writing except below ") || ran.stderr.contains("no Landlock")
    );
    assert_eq!(figures(&ran.stderr)[2..], [3, 0], "{}", ran.stderr);
    ran.ok();
    is_read_by("tcpdump", &["-n", "-r"], &files[1]);
    assert_eq!(ports(&files[1]).len(), 0);
}

/// Each received packet is written or counted, and there is never more than one file beyond `--rotate-keep`: the
/// current one.
#[test]
fn root_a_ring_of_two_files_under_a_flood() {
    testkit::require_root!();
    let lab = Lab::new("capflood");
    let dir = tempfile::tempdir().unwrap();
    let going = live(&lab, &dir.path().join("a.pcapng"), &["--rotate-size", "1MiB", "--rotate-keep", "2"]);
    let mut most = 0;
    for _ in 0..20 {
        send(&lab, 1000);
        most = most.max(files(dir.path(), "a_").len());
    }
    let (_, ran) = going.end();
    let [received, dropped, written, not_written] = figures(&ran.stderr);
    assert_eq!((received, not_written), (20_000, 0), "{}", ran.stderr);
    assert_eq!(received, dropped + written, "{}", ran.stderr);
    assert!(most <= 3, "{most}");
    let left = files(dir.path(), "a_");
    assert_eq!(left.len(), 2);
    for path in left {
        assert!(path.metadata().unwrap().len() <= MIB);
        is_read_by("tcpdump", &["-n", "-r"], &path);
    }
    ran.ok();
}

/// If the directory becomes read-only after privileges were dropped, the current file continues and netwren says so.
#[test]
fn root_where_no_file_can_follow_the_one_before_goes_on() {
    testkit::require_root!();
    let lab = Lab::new("capnodir");
    let dir = tempfile::tempdir().unwrap();
    let mode = |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    let refused =
        command(&lab, &["-w", dir.path().join("a.pcap").to_str().unwrap(), "--rotate-packets", "5", "-Z", "nobody"]);
    mode(0o755);
    let ran = Ran::of({ refused }.output().unwrap());
    ran.says(4, &["cannot write ", "permission denied"]);
    mode(0o777);
    let going = live(&lab, &dir.path().join("a.pcap"), &["--rotate-packets", "5", "-Z", "nobody"]);
    send(&lab, 7);
    wait_until("the second file", || files(dir.path(), "a_").len() == 2);
    mode(0o755);
    send(&lab, 20);
    let size = |nth: usize| files(dir.path(), "a_")[nth].metadata().unwrap().len();
    wait_until("they are in the second file", || size(1) > 20_000);
    mode(0o777);
    // netwren retries once per second.
    wait_until("a third file", || {
        send(&lab, 1);
        files(dir.path(), "a_").len() >= 3
    });
    let (_, ran) = going.end();
    let files = files(dir.path(), "a_");
    let packets: Vec<usize> = files.iter().map(|path| ports(path).len()).collect();
    assert_eq!(figures(&ran.stderr)[2..], [packets.iter().sum::<usize>() as u64, 0], "{}", ran.stderr);
    assert!(packets[0] == 5 && packets[1] >= 22, "{packets:?}");
    let third = files[2].file_name().unwrap().to_str().unwrap();
    assert!(third.starts_with("a_00003_"), "no number is missing: {third}");
    ran.says(3, &["cannot start a new file after ", "permission denied", "a new file could not be started"]);
}

/// The files of a killed process can be read; all except the last are complete.
#[test]
fn root_a_killed_capture_leaves_whole_files() {
    testkit::require_root!();
    let lab = Lab::new("capkill");
    let dir = tempfile::tempdir().unwrap();
    let going = live(&lab, &dir.path().join("a.pcapng"), &["--rotate-packets", "500"]);
    wait_until("some files", || {
        send(&lab, 500);
        files(dir.path(), "a_").len() > 4
    });
    going.signal("-KILL");
    drop(going);
    let files = files(dir.path(), "a_");
    for path in &files[..files.len() - 1] {
        assert_eq!(ports(path).len(), 500);
        is_read_by("capinfos", &[], path);
    }
}

/// On a full disk, packets are counted and files end with complete packets; a ring that fits continues indefinitely.
#[test]
fn root_a_full_disk_is_survived_by_a_series() {
    testkit::require_root!();
    let dir = tempfile::tempdir().unwrap();
    let (source, small, copies) = (source(dir.path(), 2000, 1000), dir.path().join("small"), dir.path().join("copies"));
    std::fs::create_dir(&small).unwrap();
    for (args, options, is_whole) in [
        (&["--rotate-packets", "200"][..], "size=1m", false),
        (&["--rotate-packets", "200", "--rotate-keep", "3"], "size=1m", true),
        // The file system has room for the root directory and two files: the oldest file must be removed before a new
        // one is created.
        (&["--rotate-packets", "200", "--rotate-keep", "2"], "size=1m,nr_inodes=3", true),
    ] {
        let _ = std::fs::remove_dir_all(&copies);
        let script = "mount -t tmpfs -o \"$1\" none \"$2\" || exit 99; copies=$3; shift 3
            \"$@\"; code=$?; cp -r \"$0\" \"$copies\"; exit $code";
        let mut command = Command::new("unshare");
        clean(&mut command).args(["-m", "sh", "-c", script]).arg(&small).arg(options).arg(&small).arg(&copies);
        command
            .arg(testkit::program::netwren())
            .args(["capture", "-r"])
            .arg(&source)
            .arg("-w")
            .arg(small.join("a.pcapng"));
        let ran = Ran::of(command.args(args).output().unwrap());
        let (empty, files): (Vec<_>, Vec<_>) =
            files(&copies, "a_").into_iter().partition(|path| path.metadata().unwrap().len() == 0);
        assert!(empty.len() <= 1, "a full disk is not filled with empty files: {empty:?}");
        let left: usize = files.iter().map(|path| ports(path).len()).sum();
        files.iter().for_each(|path| is_read_by("tcpdump", &["-n", "-r"], path));
        if is_whole {
            assert_eq!(left, args[3].parse::<usize>().unwrap() * 200, "{args:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("2000 written to 10 files"), "{}", ran.stderr);
            ran.ok();
        } else {
            assert!((800..1000).contains(&left), "{left}");
            let figures = format!("2000 packets read; {left} written to ");
            ran.says(3, &[&figures, &format!(", {} not written", 2000 - left), "no space left on device"]);
        }
    }
}

/// `--to pcap:FILE` writes one header for all interfaces. Existing files are renamed to make room for new ones, and
/// the next run continues with the last one.
#[test]
fn root_packets_are_shipped_as_pcap() {
    testkit::require_root!();
    let lab = Lab::new("cappcap");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.pcap");
    let to = format!("pcap:{}", path.display());
    for expected in [1500, 3000] {
        let going: Going<String> =
            Going::spawn(command(&lab, &["--to", &to, "--rotate-size", "1MiB", "dport = 7123"]), |line| line);
        wait_until("the ring is there", || rings(&lab) == 1);
        send(&lab, 1500);
        let count = || {
            let read = |path: &PathBuf| netwren(&["capture", "-r", path.to_str().unwrap(), "-H", "-c", "dport"]);
            files(dir.path(), "all").iter().map(|path| read(path).stdout.lines().count()).sum::<usize>()
        };
        wait_until("all are there", || count() == expected);
        going.end().1.ok();
    }
    for path in files(dir.path(), "all") {
        is_read_by("tcpdump", &["-n", "-r"], &path);
        let read = netwren(&["capture", "-r", path.to_str().unwrap(), "-H", "-c", "proto,dport", "-n", "1"]).ok();
        assert_eq!(read, "udp\t7123\n");
    }
    assert_eq!(files(dir.path(), "all").len(), 4);
}

/// The figures (received, dropped, written, filtered) are shown while the capture runs.
#[test]
fn root_figures_are_shown_while_packets_come() {
    testkit::require_root!();
    let lab = Lab::new("capfigures");
    let dir = tempfile::tempdir().unwrap();
    let (path, said) = (dir.path().join("a.pcapng"), dir.path().join("said"));
    let words = ["-i", "lo", "--watch=0.1", "-w", path.to_str().unwrap(), "dport = 7123"];
    let mut command = command(&lab, &words);
    let mut running = command.stderr(std::fs::File::create(&said).unwrap()).spawn().unwrap();
    wait_until("the ring is there", || rings(&lab) == 1);
    send(&lab, 3);
    let text = || std::fs::read_to_string(&said).unwrap();
    // The datagrams, and the host's ICMP error for each, which is filtered.
    let line = "netwren: 6 packets received, 0 dropped by the ring, 0 by interfaces";
    let is_it = |text: &str| {
        text.lines().any(|shown| shown.starts_with(line) && shown.ends_with("; 3 written, 0 not written, 3 filtered"))
    };
    wait_until("a line with all of them", || is_it(&text()));
    let lines = text().lines().count();
    wait_until("another one", || text().lines().count() > lines + 1);
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    assert!(running.wait().unwrap().success());
    assert!(text().ends_with(" not written, 3 filtered\n"), "{}", text());
    netwren(&["capture", "-r", "x", "--watch"]).says(2, &["--watch applies to interfaces"]);
}

/// A file that is followed by another also contains the drops of its interface.
#[test]
fn root_each_file_has_statistics_of_its_interface() {
    testkit::require_root!();
    let lab = Lab::new("capisb");
    let dir = tempfile::tempdir().unwrap();
    let going = live(&lab, &dir.path().join("a.pcapng"), &["--rotate-packets", "5"]);
    send(&lab, 12);
    wait_until("three files", || files(dir.path(), "a_").len() == 3);
    going.end().1.ok();
    for path in files(dir.path(), "a_") {
        let bytes = std::fs::read(&path).unwrap();
        let block = |codes: &[u32]| codes.iter().flat_map(|code| (code | 8 << 16).to_le_bytes()).collect::<Vec<_>>();
        for code in [5, 7, 8] {
            let option = block(&[code]);
            assert!(bytes[bytes.len() - 80..].windows(4).any(|window| window == option), "{code}: {}", path.display());
        }
    }
}

/// A clock that the interface does not have is named in a message, and each packet has the clock of its timestamp.
#[test]
fn root_stamps_of_an_adapter_that_has_none_are_the_hosts() {
    testkit::require_root!();
    let lab = Lab::new("capstamps");
    lab.ip(&["link", "add", "v0", "type", "veth", "peer", "name", "v1"]);
    lab.ip(&["link", "set", "v0", "up"]);
    let words = ["-i", "lo", "-i", "v0", "-j", "adapter_unsynced", "-c", "dport,stamp", "dport = 7123"];
    let mut going = Going::past_header(command(&lab, &words), "dport,stamp", |line| line);
    send(&lab, 1);
    going.read_until("a packet", |lines| !lines.is_empty());
    let (lines, ran) = going.end();
    assert_eq!(lines, ["7123\thost"]);
    for iface in ["lo", "v0"] {
        let text = format!("netwren: {iface}: the driver has no such timestamps of the network card: using the host's");
        assert!(ran.stderr.contains(&text), "{}", ran.stderr);
    }
    ran.ok();
    let all = Ran::of(command(&lab, &["--for", "0.1", "-H", "-j", "adapter_unsynced"]).output().unwrap());
    assert!(!all.stderr.contains("using the host's"), "those that have clocks are asked: {}", all.stderr);
    netwren(&["capture", "-r", "x", "-j", "host"]).says(2, &["--time-stamp-type applies to interfaces"]);
}
