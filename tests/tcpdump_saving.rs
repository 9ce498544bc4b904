//! Compares `netwren tcpdump -w` with this machine's tcpdump: files, messages and exit codes.

use crate::capture::rings;
use crate::capture_read::{pcap_of, udp};
use crate::going::Going;
use crate::pcapng_made::rich;
use crate::run::clean;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};
use testkit::wait_until;

const NOBODY: u32 = 65_534;

fn program(name: &str) -> Command {
    let mut command = match name {
        "netwren" => Command::new(testkit::program::netwren()),
        other => Command::new(other),
    };
    clean(&mut command).args(if name == "netwren" { &["tcpdump"][..] } else { &[] });
    command
}

/// The files in a directory with their content.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

/// Runs both programs with these arguments, each in an empty directory next to the source files; returns their outputs
/// and the files they created.
fn both(dir: &Path, args: &[&str]) -> [(Output, BTreeMap<String, Vec<u8>>); 2] {
    ["tcpdump", "netwren"].map(|name| {
        let place = dir.join("place");
        fs::create_dir(&place).unwrap();
        // tcpdump may create files as its own user.
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
        let output = program(name).current_dir(&place).args(args).output().unwrap();
        let made = contents(&place);
        fs::remove_dir_all(&place).unwrap();
        (output, made)
    })
}

/// The difference between the two programs for this command line, if there is one.
fn difference(dir: &Path, args: &[&str]) -> Option<String> {
    let [theirs, ours] = both(dir, args).map(|(output, files)| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr), output.status.code(), files)
    });
    let short = |ran: &(String, String, Option<i32>, BTreeMap<String, Vec<u8>>)| {
        let files: Vec<_> =
            ran.3.iter().map(|(name, bytes)| (name, bytes.len(), &bytes[..bytes.len().min(40)])).collect();
        format!("{:?} {:?} {:?} {files:x?}", &ran.0[..ran.0.len().min(200)], ran.1, ran.2)
    };
    (theirs != ours).then(|| format!("{args:?}\n  theirs: {}\n  ours:   {}", short(&theirs), short(&ours)))
}

/// A pcap file with this magic number, snapshot length, link type and byte order; its second packet is truncated.
fn made(magic: u32, snaplen: u32, link_type: u32, is_big: bool) -> Vec<u8> {
    let put = |numbers: &[u32]| -> Vec<u8> {
        let bytes = |number: &u32| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
        numbers.iter().flat_map(bytes).collect()
    };
    let version = if is_big { 2 << 16 | 4 } else { 4 << 16 | 2 };
    let mut file = put(&[magic, version, 0, 0, snaplen, link_type]);
    let packet = &udp(9, &[5; 60])[if link_type == 1 { 0 } else { 14 }..];
    for (nth, cut) in [0, 30, 0].into_iter().enumerate() {
        let bytes = &packet[..packet.len() - cut];
        file.extend(put(&[1_700_000_000 + nth as u32, 999_999, bytes.len() as u32, packet.len() as u32]));
        file.extend_from_slice(bytes);
    }
    file
}

fn sources(dir: &Path) {
    let frames: Vec<Vec<u8>> = (0..4000).map(|nth| udp(nth, &vec![7; usize::from(nth % 1200)])).collect();
    fs::write(dir.join("many"), pcap_of(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>())).unwrap();
    const MICRO: u32 = 0xa1b2_c3d4;
    for (name, bytes) in [
        ("nano", made(0xa1b2_3c4d, 262_144, 1, false)),
        ("big", made(MICRO, 65_535, 1, true)),
        ("all", made(MICRO, 0, 1, false)),
        ("raw", made(MICRO, 96, 101, false)),
        ("rawer", made(MICRO, 96, 12, false)),
        ("cooked", made(MICRO, 262_144, 113, false)),
        ("unknown", made(MICRO, 262_144, 147, false)),
        ("pcapng", rich(false).bytes),
        ("empty", pcap_of(&[])),
    ] {
        fs::write(dir.join(name), bytes).unwrap();
    }
    let whole = fs::read(dir.join("nano")).unwrap();
    fs::write(dir.join("cut"), &whole[..whole.len() - 3]).unwrap();
    fs::write(dir.join("list"), "../many\n../nano\n").unwrap();
    fs::write(dir.join("mixed"), "../nano\n../raw\n").unwrap();
}

/// One command line per line; the source files are in the parent directory.
const LIKE_TCPDUMP: &str = "\
-r ../many -w x
-r ../many -w x -C 1
-r ../many -w x -C 1 -W 2
-r ../many -w x -C 1 -W 11
-r ../many -w x -C 1 -W 1
-r ../many -w x -C 2 -W 100 udp dst port 100 or udp dst port 200
-r ../many -w x -c 5
-r ../many -w x -c 5 --count
-r ../many -n -w x -c 5 --print
-r ../many -n -w x -c 5 --print --count
-r ../many -w x -c 7 -U -v
-r ../many -w x -G 1000
-r ../many -w x-%Y -G 1000
-r ../many -w x-%Y -G 1000 -C 1
-r ../many -w x-%Y -G 1000 -C 1 -W 20
-r ../many -w x-%Y
-r ../many -w x -G 0 -C 1
-r ../many -w x -W 3
-r ../many -w -
-r ../many -w x -s 50
-r ../many -w x foo bar
-r ../nano -w x
-r ../nano -w x --nano
-r ../nano -w x --time-stamp-precision=nano
-r ../big -w x
-r ../all -w x
-r ../raw -w x
-r ../raw -w x ip
-r ../rawer -w x
-r ../cooked -w x
-r ../unknown -w x
-r ../empty -w x
-r ../nowhere -w x
-V ../list -w x
-V ../list -w x -C 1
-V ../mixed -w x
-r ../many -w nowhere/x
-r ../many -w x -C 0
-r ../many -w x -C x
-r ../many -w x -W 0 -C 1
-r ../many -w x -W x -C 1
-r ../many -w x -G -1
-r ../many -w x -G 5x -C 1
-r ../many -w x -C 99999999999999
-r ../many -z gzip -w x";

#[test]
fn replay_files_are_those_of_tcpdump() {
    testkit::require_tool!("tcpdump");
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    sources(dir.path());
    let lines = LIKE_TCPDUMP.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let differences: Vec<String> = lines.filter_map(|args| difference(dir.path(), &args)).collect();
    assert!(differences.is_empty(), "{} of them:\n{}", differences.len(), differences.join("\n"));
    // Packets before the error are written; the error message is netwren's own.
    let [(theirs, their_files), (ours, our_files)] = both(dir.path(), &["-r", "../cut", "-w", "x"]);
    assert_eq!((our_files, ours.status.code()), (their_files, theirs.status.code()));
}

/// A name that ends in `.pcapng` selects that format, with all its metadata.
#[test]
fn replay_pcapng_is_written_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    sources(dir.path());
    let written = |args: &[&str]| program("netwren").current_dir(dir.path()).args(args).output().unwrap();
    assert!(written(&["-r", "many", "-w", "x.pcapng", "-C", "1"]).status.success());
    for name in ["x.pcapng", "x.pcapng1"] {
        assert_eq!(fs::read(dir.path().join(name)).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a], "{name}");
    }
    let lines = |args: &[&str]| String::from_utf8(written(args).stdout).unwrap();
    let read = lines(&["-n", "-tt", "-r", "x.pcapng"]) + &lines(&["-n", "-tt", "-r", "x.pcapng1"]);
    let all = lines(&["-n", "-tt", "-r", "many"]);
    assert!(all.starts_with(&read) && read.len() > all.len() / 3);
}

fn inside(lab: &Lab, dir: &Path, name: &str, args: &[&str]) -> Command {
    let mut command = program(name);
    command.current_dir(dir).args(args);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command
}

fn send(lab: &Lab, port: u16, count: usize) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        (0..count).for_each(|nth| _ = socket.send_to(&vec![7; nth % 1400], (Ipv4Addr::LOCALHOST, port)));
    });
}

/// A pcap file with the packets' timestamps removed.
fn without_stamps(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 24;
    while at + 16 <= bytes.len() {
        let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        bytes[at..at + 8].fill(0);
        at += 16 + len;
    }
    assert_eq!(at, bytes.len(), "it ends with a whole packet");
    bytes
}

#[test]
fn root_live_files_are_those_of_tcpdump() {
    testkit::require_root!();
    testkit::require_version!("tcpdump", testkit::tool::TCPDUMP);
    let lab = Lab::new("tdsave");
    for args in [
        &["-i", "lo", "-w", "x"][..],
        &["-i", "lo", "-w", "x", "-s", "60", "udp"],
        &["-i", "lo", "-w", "x", "-C", "1", "-W", "2", "udp dst port 7123"],
        &["-i", "any", "-w", "x", "udp dst port 7123"],
        &["-i", "lo", "-w", "x", "-j", "adapter_unsynced", "udp dst port 7123"],
        &["-i", "lo", "-w", "x", "-n", "-t", "-l", "--print", "udp dst port 7123"],
        &["-i", "lo", "-w", "x-%Y", "-G", "3600", "--nano", "-Z", "nobody", "udp dst port 7123"],
    ] {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let before = rings(&lab);
        let going: Vec<Going<String>> = std::iter::zip(["tcpdump", "netwren"], &dirs)
            .map(|(name, dir)| {
                // tcpdump may create files as its own user.
                fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
                let args = [&["-B", "32768", "-U"], args].concat();
                Going::spawn(inside(&lab, dir.path(), name, &args), |line| line)
            })
            .collect();
        wait_until("both rings are there", || rings(&lab) == before + 2);
        // tcpdump attaches its filter after that, which empties its ring, and then creates its file.
        wait_until("tcpdump has begun", || !contents(dirs[0].path()).is_empty());
        send(&lab, 7123, 2000);
        let count = |dir: &Path| contents(dir).values().map(|bytes| bytes.len().saturating_sub(24)).sum::<usize>();
        let enough = if args.contains(&"60") { 100_000 } else { 1_000_000 };
        // tcpdump empties its ring within a second, so files that have not grown for longer are complete.
        let mut last = (0, Instant::now());
        wait_until("both have all", || {
            let counts = [0, 1].map(|nth: usize| count(dirs[nth].path()));
            if counts[0] + counts[1] != last.0 {
                last = (counts[0] + counts[1], Instant::now());
            }
            counts[0] > enough && counts[0] == counts[1] && last.1.elapsed() > Duration::from_millis(1_200)
        });
        let ends: Vec<_> = going.into_iter().map(Going::end).collect();
        let [theirs, ours] = dirs.map(|dir| {
            contents(dir.path()).into_iter().map(|(name, bytes)| (name, without_stamps(bytes))).collect::<Vec<_>>()
        });
        assert!(ours == theirs, "{args:?}");
        assert_eq!(ends[1].0, ends[0].0, "{args:?}");
        let words = |said: &str| -> Vec<String> {
            said.lines().map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned()).collect()
        };
        assert_eq!(words(&ends[1].1.stderr), words(&ends[0].1.stderr), "{args:?}");
        assert_eq!(ends[1].1.code, ends[0].1.code, "{args:?}");
    }
}

/// With `-v` and no printed lines, the number of packets is shown once per second; SIGUSR1 prints all figures.
#[test]
fn root_a_live_run_tells_how_many_it_has() {
    testkit::require_root!();
    let lab = Lab::new("tdgot");
    let dir = tempfile::tempdir().unwrap();
    let args = ["-i", "lo", "-v", "-w", "x", "udp dst port 7123"];
    let said = lab.dir().join("said");
    let mut command = inside(&lab, dir.path(), "netwren", &args);
    let mut running = command.stderr(fs::File::create(&said).unwrap()).spawn().unwrap();
    wait_until("the ring is there", || rings(&lab) == 1);
    send(&lab, 7123, 3);
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &running.id().to_string()]).status().unwrap().success());
    };
    // SIGUSR2 flushes the packets and does not end the run.
    signal("-USR2");
    wait_until("they are written", || contents(dir.path()).values().any(|bytes| bytes.len() > 24));
    let text = || fs::read_to_string(&said).unwrap();
    wait_until("their number", || text().contains("Got 3\r"));
    signal("-USR1");
    let figures = "tcpdump: 3 packets captured, 3 packets received by filter, 0 packets dropped by kernel\n";
    wait_until("the figures", || text().contains(figures));
    signal("-INT");
    assert!(running.wait().unwrap().success());
    assert!(text().starts_with("tcpdump: listening on lo, "), "{}", text());
    let end = "3 packets captured\n3 packets received by filter\n0 packets dropped by kernel\n";
    assert!(text().ends_with(end), "{}", text());
}

/// Files end after their time even without traffic, and `-W` ends the run; the command gets every file except the
/// last.
#[test]
fn root_files_end_with_their_time() {
    testkit::require_root!();
    let lab = Lab::new("tdtime");
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let script = dir.path().join("script");
    testkit::program::install_script(&script, "#!/bin/sh\n: > \"$1.done\"\n");
    let args = ["-i", "lo", "-G", "1", "-W", "2", "-w", "x-%s.pcap", "-z", script.to_str().unwrap()];
    let mut running = inside(&lab, dir.path(), "netwren", &args).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("it ends by itself", || running.try_wait().unwrap().is_some());
    let mut said = String::new();
    running.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(running.wait().unwrap().success(), "{said}");
    assert!(said.contains("\nMaximum file limit reached: 2\n0 packets captured\n"), "{said}");
    let names = || contents(dir.path()).into_keys().filter(|name| name.starts_with("x-")).collect::<Vec<_>>();
    wait_until("the commands have run", || names().len() == 4);
    assert_eq!(names().iter().filter(|name| name.ends_with(".done")).count(), 2, "as tcpdump: the limit ends a file");
    let output = inside(&lab, dir.path(), "netwren", &["-i", "lo", "-G", "1", "-W", "1", "-w", "-"]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 24));
}

/// Files that another user created at the path of an output file are not overwritten.
#[test]
fn root_files_of_others_are_refused() {
    testkit::require_root!();
    let dir = tempfile::tempdir().unwrap();
    sources(dir.path());
    let at = |name: &str| dir.path().join(name);
    for name in ["x1", "target"] {
        fs::write(at(name), "as it was").unwrap();
    }
    chown(at("x1"), Some(NOBODY), None).unwrap();
    symlink(at("target"), at("y1")).unwrap();
    // At that point netwren has no privileges to access other users' files.
    for (name, why) in [("x", "Permission denied"), ("y", "it is a symbolic link")] {
        let ran =
            program("netwren").current_dir(dir.path()).args(["-r", "many", "-C", "1", "-w", name]).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("tcpdump: {name}1: {why}")), "{said}");
        assert!(fs::metadata(at(name)).unwrap().len() > 1_000_000);
    }
    for name in ["x1", "target"] {
        assert_eq!(fs::read_to_string(at(name)).unwrap(), "as it was");
    }
}

/// As with tcpdump, the user of `-Z` owns the files, even in a directory of root, and all other privileges are
/// dropped.
#[test]
fn root_files_belong_to_the_user() {
    testkit::require_root!();
    let lab = Lab::new("tduser");
    for (args, later) in [(&["-w", "x"][..], 0), (&["-w", "x", "-C", "1"], 1 << sys::caps::Cap::DacOverride as u8)] {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let args = [&["-i", "lo", "-Z", "nobody"], args].concat();
        let going: Going<String> = Going::spawn(inside(&lab, dir.path(), "netwren", &args), |line| line);
        wait_until("the ring is there", || rings(&lab) == 1);
        let status = || fs::read_to_string(format!("/proc/{}/status", going.child.id())).unwrap();
        let shown = format!("CapPrm:\t{later:016x}");
        wait_until("it has no rights but what is needed", || {
            status().contains("Seccomp:\t2") && status().contains(&shown)
        });
        send(&lab, 7123, 2000);
        let (_, ran) = going.end();
        ran.ok();
        let made = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().uid());
        let owners: Vec<u32> = made.collect();
        assert_eq!(owners, vec![NOBODY; if later == 0 { 1 } else { owners.len() }]);
        assert!(later == 0 || owners.len() > 1);
    }
}

/// tcpdump reports nothing and exits with success; netwren counts the missing packets and ends the file with a
/// complete packet.
#[test]
fn root_a_full_disk_is_reported() {
    testkit::require_root!();
    let dir = tempfile::tempdir().unwrap();
    let (source, small, copy) = (dir.path().join("source"), dir.path().join("small"), dir.path().join("copy"));
    fs::create_dir(&small).unwrap();
    let frame = udp(1000, &[7; 1000]);
    fs::write(&source, pcap_of(&[&frame[..]; 400])).unwrap();
    let script = "mount -t tmpfs -o size=128k none \"$1\" || exit 99
        \"$2\" tcpdump -r \"$3\" -w \"$1/x\"; code=$?; cp \"$1/x\" \"$4\"; exit $code";
    let mut command = Command::new("unshare");
    clean(&mut command).args(["-m", "sh", "-c", script, "sh"]).arg(&small).arg(testkit::program::netwren());
    let ran = command.arg(&source).arg(&copy).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let whole = (without_stamps(fs::read(&copy).unwrap()).len() - 24) / (16 + frame.len());
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(said.contains("packets are not written: no space left on device"), "{said}");
    assert!(said.ends_with(&format!("tcpdump: {} packets were not written\n", 400 - whole)), "{whole}: {said}");
}
