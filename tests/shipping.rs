//! `--to`: even if a receiver fails, every record is delivered or counted as lost.

use crate::going::Going;
use crate::log::{OWN_COLUMNS, command, counted, logging, send, to_five};
use crate::run::{Ran, netwren};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use testkit::netns::Lab;

/// Starts `log --group 5` with these outputs; returns once the group is bound.
fn shipping(lab: &Lab, args: &[&str]) -> Going<String> {
    bound(lab, command(lab, &[&["--group", "5", "--latency", "10ms", "--stats"], args].concat()))
}

fn bound(lab: &Lab, command: Command) -> Going<String> {
    let going = Going::spawn(command, |line| line);
    testkit::wait_until("the group is bound", || !lab.log_groups().is_empty());
    going
}

/// The number of occurrences of each N in lines of `{"seq":N}`.
fn counts(text: &str) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("torn: {line:?}"));
        *counts.entry(row["seq"].as_u64().unwrap()).or_insert(0) += 1;
    }
    counts
}

fn whole(count: usize) -> BTreeMap<u64, u32> {
    (0..count as u64).map(|number| (number, 1)).collect()
}

/// The statistics of the only output, from the last line of standard output.
fn ledger(lines: &[String]) -> serde_json::Value {
    let line: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    line["outputs"][0].clone()
}

/// Ends the run and checks that everything was delivered.
fn delivered(going: Going<String>, count: usize) -> (serde_json::Value, Ran) {
    let (lines, ran) = going.end();
    let ledger = ledger(&lines);
    assert_eq!((&ledger["seen"], &ledger["delivered"]), (&count.into(), &count.into()), "{ledger} {}", ran.stderr);
    assert_eq!((ran.code, &ledger["lost_in_kernel"]), (0, &0.into()), "{}", ran.stderr);
    (ledger, ran)
}

fn listen(lab: &Lab, at: &str) -> (TcpListener, SocketAddr) {
    let listener = lab.run_inside(|| TcpListener::bind(at)).unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

fn read_all(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Waits for a line on standard error that contains these words; later lines can still be read.
#[track_caller]
fn said(going: &mut Going<String>, words: &str) {
    let stderr = going.child.stderr.as_mut().unwrap();
    let (mut lines, mut byte) = (String::new(), [0]);
    while !lines.lines().any(|line| line.contains(words)) || !lines.ends_with('\n') {
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "it ended without {words:?}: {lines}");
        lines.push(char::from(byte[0]));
    }
}

#[test]
fn root_a_receiver_that_is_away_gets_everything_later() {
    const PACKETS: usize = 5_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("shipaway");
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    drop(listener);
    let target = format!("json+tcp://{addr}");
    let mut going = shipping(&lab, &["--columns", "seq", "--to", &target]);
    send(&lab, to_five(), PACKETS / 2);
    said(&mut going, &format!("netwren: {target}: cannot connect to {addr}: Connection refused"));
    let (listener, _) = listen(&lab, &addr.to_string());
    let reader = std::thread::spawn(move || read_all(listener.accept().unwrap().0));
    send(&lab, to_five(), PACKETS / 2);
    said(&mut going, &format!("netwren: {target}: available again after "));
    delivered(going, PACKETS);
    assert_eq!(counts(&reader.join().unwrap()), whole(PACKETS));
}

/// Accepts `deaths` connections, reads some lines from each and closes it with the rest unread; then reads everything
/// from one more connection.
fn dying(listener: TcpListener, deaths: usize) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        for _ in 0..deaths {
            let mut reader = BufReader::with_capacity(64, listener.accept().unwrap().0);
            for _ in 0..500 {
                reader.read_line(&mut text).unwrap();
            }
            // Lines that were read completely count as received.
            let rest = String::from_utf8_lossy(reader.buffer()).into_owned();
            text.push_str(rest.rsplit_once('\n').map_or("", |(lines, _)| lines));
            text.push('\n');
        }
        text + &read_all(listener.accept().unwrap().0)
    })
}

#[test]
fn root_a_receiver_that_is_killed_misses_nothing() {
    const PACKETS: usize = 30_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("shipkilled");
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    let reader = dying(listener, 3);
    let going = shipping(&lab, &["--columns", "seq", "--to", &format!("json+tcp://{addr}")]);
    send(&lab, to_five(), PACKETS);
    let (ledger, _) = delivered(going, PACKETS);
    let text = reader.join().unwrap();
    let lines: String = text.lines().filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect();
    let counts = counts(&lines);
    assert_eq!(counts.len(), PACKETS, "{ledger}");
    assert!(ledger["resent"].as_u64() > Some(0), "{ledger}");
}

/// Records that do not fit into the queue are dropped and counted exactly, and the exit code reports it.
#[test]
fn root_a_receiver_that_never_reads_is_reported_and_counted() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("shipdeaf");
    let (_listener, addr) = listen(&lab, "127.0.0.1:0");
    // Wide rows fill the queue quickly.
    let args = ["--columns", OWN_COLUMNS, "--queue-max", "4MiB", "--to", &format!("json+tcp://{addr}")];
    let mut going = shipping(&lab, &args);
    testkit::wait_until("more is sent than anybody takes", || {
        send(&lab, to_five(), 2_000);
        counted(&lab, "7009") >= 40_000
    });
    let sent = counted(&lab, "7009");
    said(&mut going, "rows so far dropped because the queue was full");
    let (lines, ran) = going.end();
    let ledger = ledger(&lines);
    let count = |name: &str| ledger[name].as_u64().unwrap();
    let dropped: u64 = ledger["dropped"].as_object().unwrap().values().filter_map(|count| count.as_u64()).sum();
    assert_eq!(count("seen") + count("lost_in_kernel"), sent as u64, "{ledger}");
    assert_eq!(count("seen"), count("delivered") + dropped, "{ledger}");
    assert_eq!(count("in_spool"), 0, "{ledger}");
    ran.says(3, &["not delivered when the run ended"]);
}

/// A running netwren reports the records that the kernel could not deliver.
#[test]
fn root_kernel_losses_are_reported_by_a_running_netwren() {
    const PACKETS: usize = 30_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("shiplost");
    let (control, file) = (lab.dir().join("control"), lab.dir().join("out"));
    let (control, to) = (control.display().to_string(), format!("json:{}", file.display()));
    let going = shipping(&lab, &["--columns", "seq", "--buffer", "64KiB", "--to", &to, "--control", &control]);
    going.signal("-STOP");
    send(&lab, to_five(), PACKETS);
    going.signal("-CONT");
    let count = |name: &str| {
        let ran = netwren(&["log", "status", "--control", &control, "-o", "json"]);
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        report["outputs"][0][name].as_u64().unwrap()
    };
    // A gap is noticed when the next record arrives.
    testkit::wait_until("the gap is told", || {
        send(&lab, to_five(), 1);
        count("lost_in_kernel") > 1000
    });
    let mut looks = 0;
    testkit::wait_until("each record is seen or lost", || {
        looks += 1;
        if looks % 50 == 0 {
            // The last record may also have been lost, while the record before it was waiting in the small buffer.
            send(&lab, to_five(), 1);
        }
        count("seen") + count("lost_in_kernel") == counted(&lab, "7009") as u64
    });
    let live = count("lost_in_kernel");
    let (lines, ran) = going.end();
    assert_eq!((ran.code, &ledger(&lines)["lost_in_kernel"]), (3, &live.into()), "{}", ran.stderr);
}

/// With a latency of ten seconds the kernel still holds all records when the signal arrives.
#[test]
fn root_what_was_logged_before_sigterm_arrives() {
    const PACKETS: usize = 50_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("shipterm");
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    let reader = std::thread::spawn(move || read_all(listener.accept().unwrap().0));
    let to = format!("json+tcp://{addr}");
    let args = ["--group", "5", "--latency", "10s", "--buffer", "64MiB", "--stats", "--columns", "seq", "--to", &to];
    let mut going = bound(&lab, command(&lab, &args));
    send(&lab, to_five(), PACKETS);
    going.signal("-TERM");
    assert_eq!(going.child.wait().unwrap().code(), Some(0));
    assert_eq!(counts(&reader.join().unwrap()), whole(PACKETS));
}

/// Records that a run could not deliver are stored on disk, and the next run delivers each of them once.
#[test]
fn root_a_spool_outlives_the_run() {
    const PACKETS: usize = 3_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("shipspool");
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    drop(listener);
    let (spool, to) = (lab.dir().join("spool").display().to_string(), format!("json+tcp://{addr}"));
    let args = ["--columns", "seq,len", "--spool", &spool, "--to", &to];
    let going = shipping(&lab, &args);
    send(&lab, to_five(), PACKETS);
    let (lines, ran) = going.end();
    let ledger = ledger(&lines);
    assert_eq!((&ledger["seen"], &ledger["in_spool"]), (&PACKETS.into(), &PACKETS.into()), "{ledger}");
    assert_eq!(ran.code, 0, "what is kept is not lost: {}", ran.stderr);
    let (listener, _) = listen(&lab, &addr.to_string());
    let reader = std::thread::spawn(move || read_all(listener.accept().unwrap().0));
    let going = shipping(&lab, &args);
    let (_, ran) = delivered(going, PACKETS);
    assert!(ran.stderr.contains(&format!("{PACKETS} messages are queued from an earlier run")), "{}", ran.stderr);
    assert_eq!(counts(&reader.join().unwrap()), whole(PACKETS));
    let two = shipping(&lab, &args);
    crate::run::netwren_in(&lab, &[&["log", "--group", "6"], &args[..]].concat()).says(4, &["is in use"]);
    drop(two);
}

/// Runs a program with a mount of `bytes` bytes on `folder`; other processes can see it at `/proc/PID/root`.
fn in_small_folder(mut program: Command, folder: &Path, bytes: usize) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs -o size={bytes} small {} && exec \"$@\"", folder.display());
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
    command.arg(program.get_program()).args(program.get_args());
    // The network namespace has been entered before this starts.
    std::mem::swap(&mut command, &mut program);
    program
}

#[test]
fn root_a_full_disk_tears_no_line_and_loses_nothing() {
    const PACKETS: usize = 20_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("shipfull");
    let folder = lab.dir().join("small");
    std::fs::create_dir(&folder).unwrap();
    let to = format!("json:{}/out", folder.display());
    let args = ["log", "--group", "5", "--latency", "10ms", "--stats", "--columns", "seq", "--to", &to];
    let mut program = Command::new(testkit::program::netwren());
    crate::run::clean(&mut program).args(args);
    let small = in_small_folder(program, &folder, 400_000);
    let mut through = lab.command("sh");
    through.args(["-c", "exec \"$@\"", "sh"]).arg(small.get_program()).args(small.get_args());
    let going = bound(&lab, through);
    let inside = PathBuf::from(format!("/proc/{}/root{}", going.child.id(), folder.display()));
    let filler = inside.join("filler");
    std::fs::write(&filler, vec![b'x'; 300_000]).unwrap();
    send(&lab, to_five(), PACKETS);
    let out = inside.join("out");
    // There is room for about 100,000 bytes, and the last page may stay empty.
    testkit::wait_until("the disk is full", || std::fs::metadata(&out).is_ok_and(|facts| facts.len() > 90_000));
    // A line that does not fit completely is removed at once.
    let mut text = String::new();
    testkit::wait_until("lines are whole", || {
        text = std::fs::read_to_string(&out).unwrap();
        text.ends_with('\n')
    });
    assert!(counts(&text).len() < PACKETS, "the disk was too large for this test");
    let _ = std::fs::remove_file(&filler);
    testkit::wait_until("all is written", || {
        std::fs::read_to_string(&out).is_ok_and(|text| text.lines().count() == PACKETS)
    });
    assert_eq!(counts(&std::fs::read_to_string(&out).unwrap()), whole(PACKETS));
    let (ledger, _) = delivered(going, PACKETS);
    assert!(ledger["failures"].as_u64() > Some(0), "{ledger}");
}

#[test]
fn root_a_file_that_is_moved_away_is_recreated() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("shipmoved");
    let (path, moved) = (lab.dir().join("out"), lab.dir().join("out.1"));
    let going = shipping(&lab, &["--columns", "seq", "--to", &format!("json:{}", path.display())]);
    let lines = |path: &Path| std::fs::read_to_string(path).map_or(0, |text| text.lines().count());
    send(&lab, to_five(), 10);
    testkit::wait_until("it is written", || lines(&path) == 10);
    std::fs::rename(&path, &moved).unwrap();
    testkit::wait_until("a new file is there", || {
        send(&lab, to_five(), 1);
        lines(&path) > 0
    });
    let sent = counted(&lab, "7009");
    delivered(going, sent);
    let both = std::fs::read_to_string(&moved).unwrap() + &std::fs::read_to_string(&path).unwrap();
    assert_eq!(counts(&both), whole(sent));
}

/// Several receivers at once, each with its own format; other streams use the same code.
#[test]
fn root_streams_go_to_several_receivers() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("shipmany");
    let path = |name: &str| lab.dir().join(name);
    let targets = ["json", "logemu", "xml", "gprint", "oprint", "json-v0", "json-v1", "pcap", "pcapng"];
    let to: Vec<String> = targets.iter().map(|word| format!("{word}:{}", path(word).display())).collect();
    let args: Vec<&str> = to.iter().flat_map(|to| ["--to", to]).collect();
    let going = shipping(&lab, &args);
    send(&lab, to_five(), 3);
    let (_, ran) = going.end();
    ran.ok();
    let lines = |name: &str, word: &str| std::fs::read_to_string(path(name)).unwrap().matches(word).count();
    for (name, word) in [
        ("json", "\"dport\":7009"),
        ("logemu", " DPT=7009 "),
        ("xml", "</log>"),
        ("gprint", "udp.dport=7009"),
        ("oprint", "udp.dport=7009"),
        ("json-v0", "7009"),
        ("json-v1", "7009"),
    ] {
        assert_eq!(lines(name, word), 3, "{name}: {}", std::fs::read_to_string(path(name)).unwrap());
    }

    let log = path("events");
    let to = format!("json:{}", log.display());
    let mut events = lab.command(testkit::program::netwren());
    crate::run::clean(&mut events).args(["sockets", "--follow", "--no-owner", "--via", "netlink", "--to", &to]);
    let events = Going::<String>::spawn(events, |line| line);
    testkit::wait_until("a connection is told of", || {
        lab.run_inside(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            drop(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        });
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("\"event\":\"close\""))
    });
    let (_, ran) = events.end();
    assert!(matches!(ran.code, 0 | 3), "{}", ran.stderr);
}

#[test]
fn unshippable_requests_are_refused() {
    for (args, says) in [
        (&["log", "--group", "1", "--to", "yaml:/x"][..], "`yaml` is not a message format"),
        (&["log", "--group", "1", "--to", "syslog:/x"], "syslog goes to syslog+tcp://HOST:PORT"),
        (&["log", "--group", "1", "--to", "json:/x", "--to", "logemu:/x"], "two outputs to one receiver"),
        (&["log", "--group", "1", "--when-full", "block"], "--when-full needs --to"),
        (&["log", "--group", "1", "--to", "json:/x", "--queue-max", "1k"], "--queue-max takes bytes, at least 4MiB"),
        (&["sockets", "--to", "logemu:/x"], "logemu does not support the table sockets"),
        (&["nat", "events", "--to", "pcap:/x"], "pcap does not support the table"),
    ] {
        crate::run::netwren(args).says(2, &[says]);
    }
}

#[test]
fn root_issue_12_a_running_netwren_tells_what_became_of_its_rows() {
    const PACKETS: usize = 500;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("shipstatus");
    let dir = tempfile::tempdir().unwrap();
    let (control, file) = (dir.path().join("control"), dir.path().join("out"));
    let (control, to) = (control.to_str().unwrap(), format!("json:{}", file.display()));
    let going = shipping(&lab, &["--columns", "seq", "--to", &to, "--control", control]);
    send(&lab, to_five(), PACKETS);
    let ask = |format: &str| netwren(&["log", "status", "--control", control, "-o", format]);
    let seen = || {
        let report: serde_json::Value = serde_json::from_str(&ask("json").stdout).unwrap();
        report["outputs"][0]["delivered"] == PACKETS
    };
    testkit::wait_until("all is delivered", seen);
    let metric = format!("netwren_export_delivered_total{{output=\"{to}\"}} {PACKETS}\n");
    let ran = ask("prometheus");
    assert!(ran.stdout.contains(&metric), "{}", ran.stdout);
    assert!(ran.stdout.contains("netwren_lost_in_kernel_total 0\n"), "{}", ran.stdout);
    delivered(going, PACKETS);
    let ran = ask("text");
    assert!(ran.code == 4 && ran.stderr.contains("cannot connect to"), "{}", ran.stderr);
}
