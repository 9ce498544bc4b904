//! `--record` and `--replay`: the same rows without the kernel, and no silent success with an incomplete file.

use crate::going::Going;
use crate::lab::furnished;
use std::os::unix::fs::PermissionsExt;

use crate::run::{Ran, clean, command, command_for_anyone, netwren, netwren_in};
use testkit::sandbox::{Limit, confine};

#[test]
fn root_a_replay_shows_what_was_shown() {
    testkit::require_root!();
    let lab = furnished("tape");
    let dir = tempfile::tempdir().unwrap();
    for table in ["sockets", "flows"] {
        for backend in ["netlink", "proc"] {
            let tape = dir.path().join(format!("{table}-{backend}")).display().to_string();
            let live = netwren_in(&lab, &[table, "--via", backend, "--record", &tape]).ok_but_owners();
            let replayed = netwren(&[table, "--replay", &tape]).ok_but_owners();
            assert_eq!(live, replayed, "{table} via {backend}");
            assert!(live.lines().count() > 3);
        }
    }
}

/// No filter is pushed down during the recording; the replay filters the recorded rows.
#[test]
fn root_a_replay_is_filtered() {
    testkit::require_root!();
    let lab = furnished("filtered");
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape").display().to_string();
    netwren_in(&lab, &["sockets", "--no-owner", "--record", &tape]).ok();
    for filter in ["state = listen", "proto = udp", "peer in ::1 and local_port > 1000"] {
        let live = netwren_in(&lab, &["sockets", "--no-owner", filter]).ok();
        let replayed = netwren(&["sockets", "--no-owner", "--replay", &tape, filter]).ok();
        assert_eq!(testkit::mask::sorted_lines(&live), testkit::mask::sorted_lines(&replayed), "{filter}");
    }
    // Rows that the kernel filtered out during the recording are missing, and a message says so.
    netwren_in(&lab, &["sockets", "--no-owner", "--record", &tape, "proto = tcp and state = listen"]).ok();
    let ran = netwren(&["sockets", "--no-owner", "--replay", &tape, "proto = tcp"]);
    assert!(ran.stderr.contains("filter"), "{}", ran.stderr);
}

/// A replay opens no socket and needs no privileges: it runs as `nobody`, without capabilities.
#[test]
fn root_a_replay_needs_no_root() {
    testkit::require_root!();
    let lab = furnished("nobody");
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    netwren_in(&lab, &["sockets", "--record", &tape.display().to_string()]).ok_but_owners();
    for open in [dir.path(), &tape] {
        std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut child = command_for_anyone(&["sockets", "--replay", &tape.display().to_string()]);
    confine(&mut child, &[Limit::User { uid: 65_534, gid: 65_534 }]).unwrap();
    let live = netwren(&["sockets", "--replay", &tape.display().to_string()]).ok_but_owners();
    assert_eq!(Ran::of(child.output().unwrap()).ok_but_owners(), live);
}

#[test]
fn root_a_cut_recording_is_never_a_success() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("cut");
    lab.listen_tcp(3);
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    netwren_in(&lab, &["sockets", "--no-owner", "--record", &tape.display().to_string(), "proto = tcp"]).ok();
    let bytes = std::fs::read(&tape).unwrap();
    let cut = dir.path().join("cut");
    let step = (bytes.len() / 60).max(1);
    for len in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
        std::fs::write(&cut, &bytes[..len]).unwrap();
        let ran = netwren(&["sockets", "--no-owner", "--replay", &cut.display().to_string()]);
        assert!(ran.code == 3 || ran.code == 4, "cut at {len} of {}: exit {}", bytes.len(), ran.code);
        assert!(!ran.stderr.is_empty());
    }
    let mut garbled = bytes.clone();
    garbled[bytes.len() / 2] ^= 0x55;
    std::fs::write(&cut, &garbled).unwrap();
    let ran = netwren(&["sockets", "--no-owner", "--replay", &cut.display().to_string()]);
    assert!(ran.code == 3 || ran.code == 4, "garbled: exit {}", ran.code);
}

/// If the disk is full (a tmpfs of 16 KiB that only this child process sees), the rows that fitted can be replayed,
/// and both runs report that rows are missing.
#[test]
fn root_issue_10_a_full_disk_leaves_what_fitted() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("fulldisk");
    lab.listen_tcp(300);
    let out = lab.dir().join("fitted");
    let script = "mount -t tmpfs -o size=16k none \"$1\" || exit 99
        \"$2\" sockets --no-owner --record \"$1/tape\" proto = tcp; code=$?
        cp \"$1/tape\" \"$3\"; exit $code";
    let place = lab.dir().join("small");
    std::fs::create_dir(&place).unwrap();
    let mut child = lab.command("unshare");
    child.args(["--mount", "sh", "-c", script, "sh"]).args([&place, testkit::program::netwren(), &out]);
    let live = Ran::of(clean(&mut child).output().unwrap());
    let rows = live.stdout.lines().count();
    assert!(rows >= 300, "the run goes on: {rows}");
    live.says(3, &["tape: no space left on device (the recording is incomplete)"]);
    let replayed = netwren(&["sockets", "--no-owner", "--replay", &out.display().to_string(), "proto = tcp"]);
    let fitted = replayed.stdout.lines().count();
    assert!(fitted < rows);
    replayed.says(3, &["is cut at byte"]);
}

/// Records `sockets --follow` until one connection has been shown.
fn recorded_follow(lab: &testkit::netns::Lab, tape: &str) -> Going<String> {
    let mut command = command(&["sockets", "--follow", "--columns", "event,local_port", "--record", tape]);
    confine(&mut command, &[Limit::Network(lab.path()), Limit::HangupHeard]).unwrap();
    let mut following = Going::past_header(command, "event,local_port", |line| line);
    lab.connect_v4(1);
    following.read_until("the connection", |lines| !lines.is_empty());
    following
}

fn replayed_follow(tape: &str) -> Ran {
    netwren(&["sockets", "--follow", "-H", "--columns", "event,local_port", "--replay", tape])
}

/// A killed run cannot finish its recording, so each row must have been written before.
#[test]
fn root_issue_10_a_killed_follow_leaves_what_it_showed() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("killed");
    let tape = lab.dir().join("tape").display().to_string();
    let mut following = recorded_follow(&lab, &tape);
    testkit::wait_until("what was shown is in the file", || !replayed_follow(&tape).stdout.is_empty());
    following.signal("-KILL");
    following.child.wait().unwrap();
    following.take();
    let replayed = replayed_follow(&tape);
    assert!(following.read.iter().any(|line| replayed.stdout.lines().any(|shown| shown == line)));
    replayed.says(3, &["is cut at byte"]);
}

/// If the terminal is closed, the run ends as with Ctrl-C, and its recording is complete.
#[test]
fn root_issue_10_a_hangup_ends_follow_and_watch() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("hangup");
    let tape = lab.dir().join("tape").display().to_string();
    for signal in ["-HUP", "-TERM"] {
        let mut following = recorded_follow(&lab, &tape);
        following.signal(signal);
        assert!(following.child.wait().unwrap().success(), "{signal}");
        let replayed = replayed_follow(&tape);
        assert!(!replayed.stdout.is_empty());
        assert!(!replayed.stderr.contains("is cut"), "{}", replayed.stderr);
        let mut watch = command(&["sockets", "--no-owner", "--watch=0.05", "--columns", "proto", "--record", &tape]);
        confine(&mut watch, &[Limit::Network(lab.path()), Limit::HangupHeard]).unwrap();
        let mut watching: Going<String> = Going::spawn(watch, |line| line);
        watching.read_until("a round", |lines| !lines.is_empty());
        watching.signal(signal);
        assert!(watching.child.wait().unwrap().success(), "{signal}");
        netwren(&["sockets", "--no-owner", "--watch", "--columns", "proto", "--replay", &tape]).ok();
    }
    // A run started by nohup(1) continues.
    let mut kept = lab.command("nohup");
    kept.arg(testkit::program::netwren()).args(["sockets", "--no-owner", "--watch=0.05", "--columns", "proto"]);
    let mut watching: Going<String> = Going::spawn(kept, |line| line);
    watching.read_until("a round", |lines| !lines.is_empty());
    watching.signal("-HUP");
    let before = watching.read.len();
    watching.read_until("rounds after the hangup", |lines| lines.len() > before + 10);
}

/// Events that wait in the ring buffer while the program is stopped arrive as one block, which is larger than a frame
/// of the recording.
#[test]
fn root_issue_10_a_burst_of_events_is_in_the_recording() {
    const FLOWS: u32 = 60_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = testkit::netns::Lab::new("burst");
    lab.use_conntrack();
    let tape = lab.dir().join("tape").display().to_string();
    let words = ["nat", "events", "--event", "new", "--via", "bpf", "--columns", "orig_dst"];
    let mut live = command(&[&words[..], &["--record", &tape]].concat());
    confine(&mut live, &[Limit::Network(lab.path())]).unwrap();
    let tried = netwren_in(&lab, &[&words[..], &["--limit", "0"]].concat());
    if tried.code != 0 {
        return eprintln!("skipped: {}", tried.stderr);
    }
    let mut live: Going<String> = Going::past_header(live, "orig_dst", |line| line);
    live.signal("-STOP");
    lab.new_udp_flows(0, FLOWS);
    live.signal("-CONT");
    live.read_until("the burst", |lines| lines.len() >= FLOWS as usize);
    let (lines, ran) = live.end();
    assert!(!ran.stderr.contains("cannot record"), "{}", ran.stderr);
    let replayed = netwren(&[&words[..4], &["-H", "--columns", "orig_dst", "--replay", &tape]].concat());
    assert!(replayed.stdout.lines().eq(lines.iter().map(String::as_str)), "{}", replayed.stderr);
}

/// Ctrl-C also ends a replay. A replay is as fast as its reader, so this reader is slow.
#[test]
fn root_issue_10_a_replay_is_interrupted() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("interrupted");
    let tape = lab.dir().join("tape").display().to_string();
    // The replay plays the recorded rounds without delay, so many rounds are recorded.
    let mut watch = command(&["sockets", "--no-owner", "--watch=0.01", "--columns", "proto,inode", "--record", &tape]);
    confine(&mut watch, &[Limit::Network(lab.path())]).unwrap();
    lab.listen_tcp(200);
    let mut watching: Going<String> = Going::spawn(watch, |line| line);
    watching.read_until("many rounds", |lines| lines.len() > 20_000);
    watching.end();
    let mut replay = command(&["sockets", "--no-owner", "--watch", "--columns", "proto,inode", "--replay", &tape]);
    replay.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut child = replay.spawn().unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    std::io::BufRead::read_line(&mut out, &mut first).unwrap();
    // The pipe is full by now or soon, so the program waits for its reader with most of the rounds left.
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let rest = std::io::BufRead::lines(out).count();
    assert!(child.wait().unwrap().code().is_some(), "it ended by itself");
    assert!(rest < 20_000, "{rest} lines after Ctrl-C");
}

#[test]
fn issue_10_only_a_regular_file_is_recorded_to() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("file"), dir.path().join("link"));
    std::fs::write(&file, "precious").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let link = link.display().to_string();
    for (path, says) in [("/dev/full", "is not a regular file"), (&link, "is a symbolic link")] {
        let ran = netwren(&["sockets", "--no-owner", "--record", path]);
        assert!(ran.stdout.is_empty());
        ran.says(4, &["cannot record to", says]);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn a_recording_that_cannot_be_made_reads_nothing() {
    netwren(&["sockets", "--record", "/nowhere/tape"]).says(4, &["/nowhere/tape", "no such file or directory"]);
}

#[test]
fn what_is_no_recording_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("text");
    std::fs::write(&file, "no tape at all, only a text that is long enough to hold a header").unwrap();
    netwren(&["sockets", "--replay", &file.display().to_string()]).says(4, &["text"]);
}

/// A recording of `--watch` contains separate rounds and replays them.
#[test]
fn root_a_watched_recording_plays_its_rounds() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("rounds");
    lab.listen_tcp(1);
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape").display().to_string();
    // An interrupt within a round leaves that round incomplete, which causes exit code 3; then the test records again.
    let record = || {
        let _ = std::fs::remove_file(&tape);
        record_three_rounds(&lab, &tape)
    };
    assert_eq!(testkit::until_equal(record, |code| *code == Some(0)), Some(0));
    let replayed = netwren(&["sockets", "--no-owner", "-H", "--watch", "--replay", &tape, "state = listen"]).ok();
    assert!(replayed.lines().filter(|l| l.contains("listen")).count() >= 3, "{replayed}");
}

/// Runs `--watch` until it has shown a listener three times, interrupts it, and returns the exit code.
fn record_three_rounds(lab: &testkit::netns::Lab, tape: &str) -> Option<i32> {
    let mut child = clean(&mut lab.command(testkit::program::netwren()))
        .args(["sockets", "--no-owner", "-H", "--watch=0.1", "--record", tape, "state = listen"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let seen = out.by_ref().map(Result::unwrap).filter(|l| l.contains("listen")).take(3).count();
    assert_eq!(seen, 3);
    assert!(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    out.for_each(drop);
    child.wait().unwrap().code()
}

/// Creates the recordings in fixtures/tape; `NETWREN_RECORD_FIXTURES=1 cargo test root_fixtures_can_be_made` stores
/// them.
#[test]
fn root_fixtures_can_be_made() {
    testkit::require_root!();
    let lab = furnished("fixture");
    let dir = tempfile::tempdir().unwrap();
    let keep = std::env::var_os("NETWREN_RECORD_FIXTURES").is_some();
    let place = if keep { fixture("") } else { dir.path().to_owned() };
    // Keep the recording machine's user names out of the fixtures.
    let passwd = dir.path().join("passwd");
    std::fs::write(&passwd, "root:x:0:0:root:/root:/bin/bash\n").unwrap();
    let limits = [Limit::Network(lab.path()), Limit::Cover { with: passwd, place: "/etc/passwd".into() }];
    for table in ["sockets", "flows"] {
        let tape = place.join(format!("{table}.tape")).display().to_string();
        let mut child = command(&[table, "-o", "json", "--record", &tape]);
        confine(&mut child, &limits).unwrap();
        let live = Ran::of(child.output().unwrap()).ok_but_owners();
        assert_eq!(netwren(&[table, "-o", "json", "--replay", &tape]).ok_but_owners(), live);
    }
}

/// A replay with data that was not recorded reports that, instead of showing empty cells or tables.
#[test]
fn root_issue_10_data_that_was_not_recorded_is_reported() {
    testkit::require_root!();
    let lab = furnished("notasked");
    let tape = |name: &str| lab.dir().join(name).display().to_string();
    let recorded = |name: &str, args: &[&str]| {
        let file = tape(name);
        netwren_in(&lab, &[args, &["--record", &file]].concat()).ok_but_owners();
        file
    };
    let sockets = recorded("sockets", &["sockets", "--no-owner"]);
    for (args, code, words) in [
        (&["sockets", "--no-owner"][..], 0, &[][..]),
        (&["sockets", "--no-owner", "--columns", "+timer,cookie"], 0, &[]),
        (
            &["sockets", "--no-owner", "--columns", "rtt_us,path"],
            3,
            &["`path`, `rtt_us` of sockets", "netwren record FILE"],
        ),
        (&["sockets", "--no-owner", "rtt > 20ms"], 3, &["`rtt_us` of sockets"]),
        (&["sockets", "--columns", "process,container"], 3, &["`process`, `container` of sockets"]),
        (&["sockets", "--no-owner", "--resolve=1"], 3, &["holds no names of hosts", "--resolve"]),
        (&["sockets", "--no-owner", "--all-netns"], 3, &["holds one network namespace", "--all-netns"]),
        (&["flows", "--no-owner", "--columns", "+bytes_out"], 3, &["`bytes_out` of sockets"]),
        (&["nat"], 4, &["not in the recording", "netwren record FILE"]),
        (&["nat", "--table", "expect"], 4, &["not in the recording", "netwren record FILE"]),
        (&["nat", "top"], 4, &["not in the recording"]),
        (&["nat", "stats"], 4, &["not in the recording", "netwren record FILE"]),
        (&["nat", "advise"], 4, &["not in the recording"]),
        (&["routes"], 4, &["holds no routes", "netwren record FILE"]),
        (&["counters"], 4, &["cannot read counters: the recording holds none", "netwren record FILE"]),
        (&["doctor"], 4, &["cannot read counters: the recording holds none", "netwren record FILE"]),
        (&["nat", "events"], 4, &["not in the recording", "netwren nat events --record FILE"]),
        (&["sockets", "--follow"], 4, &["not in the recording", "`--follow` with `--record FILE`"]),
        (&["flows", "--follow"], 4, &["not in the recording", "`--follow` with `--record FILE`"]),
    ] {
        let ran = netwren(&[args, &["--replay", &sockets]].concat());
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        ran.says(code, words);
    }
    let tcp = recorded("tcp", &["sockets", "--no-owner", "proto = tcp"]);
    let ran = netwren(&["sockets", "--no-owner", "--replay", &tcp]);
    assert!(ran.stdout.lines().count() > 1);
    ran.says(3, &["the recording holds no unix sockets", "netwren record FILE"]);
    netwren(&["sockets", "--no-owner", "proto = unix", "--replay", &tcp]).says(4, &["holds no unix sockets"]);
    netwren(&["sockets", "--no-owner", "proto = tcp", "--replay", &tcp]).ok();
    let named = recorded("named", &["sockets", "--no-owner", "--resolve=1"]);
    netwren(&["sockets", "--no-owner", "--resolve=1", "--replay", &named]).ok();
}

/// Events that were not recorded are reported as missing, not as absent.
#[test]
fn root_issue_10_events_that_were_not_recorded_are_reported() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("unheard");
    lab.shares_conntrack();
    let tape = lab.dir().join("tape").display().to_string();
    let words = ["nat", "events", "--via", "netlink", "--columns", "event"];
    let mut live = command(&[&words[..], &["--event", "new", "--record", &tape]].concat());
    confine(&mut live, &[Limit::Network(lab.path())]).unwrap();
    let live: Going<String> = Going::past_header(live, "event", |line| line);
    live.end();
    netwren(&["nat", "events", "--event", "new", "--replay", &tape]).ok();
    let ran = netwren(&["nat", "events", "--event", "destroy", "--replay", &tape]);
    ran.says(3, &["holds no destroy events", "--event destroy"]);
}

/// Checks that the replay of a whole recording does not report missing data.
#[track_caller]
fn answers(ran: &Ran, what: &str) {
    // Other tests' namespaces and processes start and end while the host is recorded.
    assert!(ran.code == 0 || ran.code == 3, "{what}: exit {}; {}", ran.code, ran.stderr);
    // If no cgroup v2 file system is mounted (in a chroot), the runtime of a container's cgroup is unknown.
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let without_cgroups = !mounts.lines().any(|line| line.contains(" cgroup2 "));
    let expected = |line: &str| {
        line.starts_with("netwren: a network namespace")
            || without_cgroups && line.starts_with("netwren: containers, pods and units are not shown")
    };
    let lines = || ran.stderr.lines().filter(|line| !expected(line));
    for word in ["does not hold", "not in the recording", "holds no", "holds one", "is cut"] {
        assert!(lines().all(|line| !line.contains(word)), "{what}: {}", ran.stderr);
    }
    assert!(ran.stdout.lines().count() > 1, "{what}: {}", ran.stderr);
}

fn names<T: record::Table>(but: &[&str]) -> String {
    let names = T::FIELDS.iter().map(|field| field.name).filter(|name| !but.contains(name));
    names.collect::<Vec<_>>().join(",")
}

/// A single recording answers questions that were not known when it was made.
#[test]
fn root_record_everything_answers_everything() {
    testkit::require_root!();
    let lab = furnished("everything");
    let _pairs = lab.connect_v4(3);
    let entry = |n: u8| testkit::conntrack::Entry::udp(([10, 0, 0, n].into(), 5353), ([10, 9, 9, 9].into(), 53));
    lab.track((1..6).map(entry));
    let tape = lab.dir().join("tape").display().to_string();
    let ran = netwren(&["record", &tape, "--once"]);
    assert!(ran.code == 0 || ran.code == 3, "{}", ran.stderr);
    assert!(ran.stdout.contains("1 round of "), "{}", ran.stdout);

    let here = format!("netns = {}", lab.name());
    let shown = "proto,state,local_addr,local_port,peer_addr,peer_port,path,inode,process,cmdline,cong,uid";
    let live = netwren_in(&lab, &["sockets", "-H", "--columns", shown]).stdout;
    let replayed = netwren(&["sockets", "-H", "--columns", shown, &here, "--replay", &tape]);
    assert_eq!(
        testkit::mask::sorted_lines(&replayed.stdout),
        testkit::mask::sorted_lines(&live),
        "{}",
        replayed.stderr
    );
    let clients = netwren(&["nat", "-H", "--columns", "client", &here, "--replay", &tape]).stdout;
    assert_eq!(clients.lines().filter(|line| line.starts_with("10.0.0.")).count(), 5, "{clients}");

    let (sockets, flows) = (names::<record::rows::Sockets>(&[]), names::<record::rows::Flows>(&[]));
    // Expired entries are not recorded, and a message says so.
    let (nat, stats) = (names::<record::rows::Nat>(&["expired"]), names::<record::rows::NatStats>(&[]));
    for question in [
        &["sockets", "--columns", &sockets][..],
        &["sockets", "--all-netns", "--by", "container,process", "--sum", "bytes_out"],
        &["sockets", "state = established and rtt >= 0us"],
        &["flows", "--columns", &flows],
        &["flows", "--all-netns"],
        &["nat", "--columns", &nat],
        &["nat", "top", "--all-netns"],
        &["nat", "stats", "--columns", &stats],
        &["nat", "stats", "--per-cpu"],
        &["routes", "--columns", "all"],
        &["routes", "--all-netns"],
        &["nat", "advise"],
        &["nat", "advise", "--all-netns"],
    ] {
        let ran = netwren(&[question, &["--replay", &tape]].concat());
        answers(&ran, &format!("{question:?}"));
    }
    // A recording of a single round has values, but no rates.
    let home = netwren(&["--replay", &tape]);
    assert!(home.code == 3 && home.stderr.contains("holds one reading of the counters"), "{}", home.stderr);
    assert!(!home.stderr.contains("not in the recording") && !home.stderr.contains("does not hold"), "{}", home.stderr);
    let home = home.stdout;
    assert!(home.contains("\nsockets ") && home.contains("\nflows"), "{home}");
    // Rows of all namespaces are shown together, without a column for the namespace.
    let mixed = "network namespaces of the recording: --all-netns shows the namespace of each";
    for question in [&["sockets"][..], &["flows"], &["nat", "top"], &["routes"], &[]] {
        let said = netwren(&[question, &["--replay", &tape]].concat()).stderr;
        assert_eq!(said.matches(mixed).count(), 1, "{question:?}: {said}");
    }
    let told = netwren(&["sockets", "--all-netns", "--replay", &tape]).stderr;
    assert!(!told.contains(mixed), "{told}");
    netwren(&["--replay", "/nowhere/at/all"]).says(4, &["/nowhere/at/all: no such file or directory"]);
    let ran = netwren(&["nat", "--columns", "expired", "--replay", &tape]);
    ran.says(3, &["`expired` of nat"]);
}

/// Rounds and limits of `record`: the run and its replay report that the file is full.
#[test]
fn root_record_has_rounds_and_a_largest_size() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("recordsize");
    lab.listen_tcp(500);
    let tape = lab.dir().join("tape").display().to_string();
    let ran = netwren(&["record", &tape, "--for", "1.5"]);
    assert!(ran.code == 0 || ran.code == 3, "{}", ran.stderr);
    let rounds = netwren(&["nat", "stats", "--watch", "-o", "json", "--replay", &tape]).stdout;
    assert!(rounds.matches("\"round\"").count() >= 2, "{rounds}");
    let watched = netwren(&["sockets", "--no-owner", "--watch", "--columns", "change,local_port", "--replay", &tape]);
    assert!(watched.stdout.contains("kept"), "{}", watched.stderr);
    let ran = netwren(&["record", &tape, "--for", "60", "--max-size", "64KiB"]);
    assert!(std::fs::metadata(&tape).unwrap().len() <= 64 << 10);
    ran.says(3, &["reached its maximum size of 65536 bytes", "--max-size"]);
    let replayed = netwren(&["sockets", "--no-owner", "--replay", &tape]);
    assert!(matches!(replayed.code, 3 | 4) && replayed.stderr.contains("is cut at byte"), "{}", replayed.stderr);
}

/// A recording of a busy host is packed to a fifth, contains only the requested namespace, and reports its size.
#[test]
fn root_record_packs_what_it_recorded() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("recordpacked");
    let _pairs = lab.connect_v4(400);
    let tape = lab.dir().join("tape");
    let tape = tape.to_str().unwrap();
    let ran = netwren(&["record", tape, "--for", "2", "--netns", lab.name()]);
    assert!(ran.code == 0 || ran.code == 3, "{}", ran.stderr);
    assert!(ran.stdout.contains(" of 1 network namespace; ") && ran.stdout.contains(" unpacked), "), "{}", ran.stdout);
    let packed = std::fs::read(tape).unwrap();
    let unpacked = {
        let (mut reader, is_packed) = ::capture::unpacked(Box::new(std::io::Cursor::new(packed.clone()))).unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
        assert!(is_packed);
        bytes
    };
    assert!(packed.len() * 5 < unpacked.len(), "{} of {} bytes", packed.len(), unpacked.len());
    assert!(!lab.dir().join("tape.part").exists());
    let count = |file: &str| {
        netwren(&["sockets", "--no-owner", "-H", "-c", "local_port", "--replay", file, "proto = tcp"]).ok()
    };
    assert!(count(tape).lines().count() >= 800);
    // A recording unpacked by hand gives the same rows.
    let plain = lab.dir().join("plain");
    std::fs::write(&plain, &unpacked).unwrap();
    assert_eq!(count(plain.to_str().unwrap()), count(tape));
    // A truncated packed file is an error, not an empty table.
    std::fs::write(&plain, &packed[..packed.len() / 2]).unwrap();
    let ran = netwren(&["sockets", "--replay", plain.to_str().unwrap()]);
    ran.says(4, &["cannot decompress"]);
}

fn fixture(name: &str) -> std::path::PathBuf {
    testkit::program::workspace().join("fixtures/tape/6.18").join(name)
}

/// Compares every format, from a recording, byte for byte; this runs on any machine.
#[test]
fn replay_prints_what_it_always_printed() {
    let tape = |name: &str| fixture(name).display().to_string();
    for (golden, table, args) in [
        ("replay-sockets.txt", "sockets", &[][..]),
        ("replay-wide.txt", "sockets", &["-o", "wide"]),
        ("replay-sockets.json", "sockets", &["-o", "json", "--stats"]),
        ("replay-sockets.csv", "sockets", &["-o", "csv", "proto = unix"]),
        ("replay-terminal.txt", "sockets", &["--color=always", "--no-owner"]),
        ("replay-groups.txt", "sockets", &["--by", "proto,state", "--sum", "recv_q", "--sort", "proto,state"]),
        ("replay-top.txt", "sockets", &["--sort", "local_port:desc,state", "--limit", "3", "proto = tcp"]),
        ("replay-flows.txt", "flows", &[]),
        ("replay-flows.json", "flows", &["-o", "json"]),
        ("replay-explain.txt", "sockets", &["--explain", "state = listen and process ~ all"]),
    ] {
        let mut words = vec![table];
        words.extend(args);
        let file = tape(&format!("{table}.tape"));
        words.extend(["--replay", &file]);
        let mut ran = netwren(&words);
        // The CPU time differs between runs, so it is masked.
        ran.stdout = testkit::mask::json(&ran.stdout, &["cpu_ms"]);
        snapbox::assert_data_eq!(ran.ok_but_owners(), crate::goldens::golden(golden));
    }
}
