//! Compares the netstat face with netstat itself, on the same live tables and counters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use testkit::netns::Lab;
use testkit::{mask, program, require_root, require_tool, until_equal};

/// All kinds of TCP and UDP sockets that can be created within the host.
fn internet(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    for addr in ["192.0.2.10/32", "198.51.100.20/32", "2001:db8:2:0:bbbb:cccc:dddd:eeee/128"] {
        let nodad: &[&str] = if addr.contains(':') { &["nodad"] } else { &[] };
        lab.ip(&[&["addr", "add", addr, "dev", "lo"], nodad].concat());
    }
    lab.connect_v4(3);
    lab.connect_v6(2);
    lab.connect_mapped(2);
    lab.connect_link_local(1);
    lab.time_wait(2);
    lab.half_closed(2);
    lab.make_unaccepted(2);
    lab.syn_sent();
    let long: IpAddr = "2001:db8:2:0:bbbb:cccc:dddd:eeee".parse().unwrap();
    let listener = lab.listen(SocketAddr::new(long, 0));
    lab.connect(&listener, long, 1);
    lab.listen("0.0.0.0:443".parse().unwrap());
    lab.udp("0.0.0.0:5300".parse().unwrap());
    lab.udp("[::]:5301".parse().unwrap());
    lab.udp("127.0.0.1:53".parse().unwrap());
    lab.udp_pair();
    lab
}

fn with_unix(lab: &Lab) {
    lab.unix_stream("stream.sock", 2);
    lab.unix_abstract("netwren/netstat test", 1);
    lab.unix_datagram("datagram");
    lab.unix_pair();
    lab.unix_seqpacket("packets");
}

fn netstat(lab: &Lab, words: &[&str]) -> Output {
    lab.command("netstat").args(words).output().unwrap()
}

fn face(lab: &Lab, words: &[&str], bug_compatible: bool) -> Output {
    let mut command = lab.command(program::netwren());
    command.arg("netstat").args(words);
    if bug_compatible {
        command.env("NETWREN_BUG_COMPATIBLE", "1");
    }
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first words of the lines, with consecutive duplicates removed: the order of blocks.
fn blocks(text: &str) -> Vec<&str> {
    let mut blocks: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    blocks.dedup();
    blocks
}

/// The two outputs, normalized: lines sorted, running times masked.
fn both(lab: &Lab, words: &[&str], bug_compatible: bool) -> [String; 2] {
    let (theirs, ours) = (netstat(lab, words), face(lab, words, bug_compatible));
    assert_eq!(theirs.status.code(), ours.status.code(), "{words:?}: {}", text(&ours.stderr));
    let (theirs, ours) = (text(&theirs.stdout), text(&ours.stdout));
    assert_eq!(blocks(&theirs), blocks(&ours), "{words:?}");
    // Times may differ in width, and no column follows them.
    let timers = words.iter().any(|word| *word == "--timers" || !word.starts_with("--") && word.contains('o'));
    [theirs, ours].map(|text| mask::sorted_lines(&if timers { mask::netstat(&text) } else { text }))
}

/// Asserts equal output. Repeats both calls if they differ, because a packet may be retransmitted in between.
#[track_caller]
fn same(lab: &Lab, words: &str, bug_compatible: bool) {
    let words: Vec<&str> = words.split(' ').collect();
    let [theirs, ours] = until_equal(|| both(lab, &words, bug_compatible), |[theirs, ours]| theirs == ours);
    assert_eq!(theirs, ours, "{words:?}");
}

#[test]
fn root_every_switch_prints_netstats_bytes() {
    require_root!();
    require_tool!("netstat");
    let lab = internet("netstat");
    let switches = [
        "-tn",
        "-tan",
        "-tln",
        "-un",
        "-uan",
        "-uln",
        "-tuan",
        "-tulpn",
        "-tanp",
        "-tane",
        "-tano",
        "-tuanpeo",
        "-4an",
        "-6an",
        "-t4an",
        "-u6ln",
        "-tuneW",
        "--tcp --numeric --all",
        "--udp --listening --numeric",
        "--inet -n --extend --programs --timers",
        "-A inet6 -n",
        "-tan --numeric-users -e",
        "-tan ignored words",
    ];
    for words in switches {
        same(&lab, words, true);
    }
    // Wide output is already correct.
    for words in ["-tanW", "-tuanpeoW", "--wide -an6"] {
        same(&lab, words, false);
    }
}

#[test]
fn root_unix_sockets_print_netstats_bytes() {
    require_root!();
    require_tool!("netstat");
    let lab = internet("netunix");
    with_unix(&lab);
    for words in
        ["-x", "-xa", "-xl", "-xanp", "-xen", "-an", "-n", "-ln", "-tuxan", "-x4n", "-ap --numeric", "--unix -ol"]
    {
        same(&lab, words, true);
    }
    for words in ["-x", "-xaW", "-anW"] {
        // Defect 2: a path is cut at its first blank; only one path has a blank.
        let ours = text(&face(&lab, &words.split(' ').collect::<Vec<_>>(), false).stdout);
        let theirs = text(&netstat(&lab, &words.split(' ').collect::<Vec<_>>()).stdout);
        let cut = ours.replace("@netwren/netstat test", "@netwren/netstat");
        assert_eq!(mask::sorted_lines(&cut), mask::sorted_lines(&theirs), "{words}");
        assert_eq!(blocks(&ours), blocks(&theirs));
    }
}

/// netstat prints such lines as if they were sockets; here they remain part of a path.
#[test]
fn root_issue_10_a_path_that_imitates_rows_is_one_row() {
    require_root!();
    let lab = Lab::new("netforged");
    lab.unix_abstract("victim", 0);
    let file = || std::fs::read_to_string("/proc/thread-self/net/unix").unwrap();
    let line = lab.run_inside(file).lines().find(|line| line.ends_with("@victim")).unwrap().to_owned();
    let inode = line.split_ascii_whitespace().nth(6).unwrap().to_owned();
    lab.unix_abstract(&format!("x\n{}", line.replacen(": 00000002", ": 00000777", 1)), 0);
    for words in [&["-xan"][..], &["-xln"], &["-an"]] {
        let done = face(&lab, words, false);
        let shown = text(&done.stdout);
        let rows: Vec<&str> = shown.lines().filter(|line| line.starts_with("unix ")).collect();
        assert_eq!(rows.len(), 2, "{shown}");
        let victim = rows.iter().find(|row| row.ends_with("@victim") && !row.contains("@x")).expect("root's row");
        assert!(victim.starts_with("unix  2 ") && victim.contains(&inode), "{victim}");
        assert!(done.status.success() && done.stderr.is_empty(), "{}", text(&done.stderr));
    }
}

/// Defect 1: a long address is truncated without a mark. Ours is complete; `--bug-compatible` truncates it.
#[test]
fn root_long_addresses_are_whole_or_cut() {
    require_root!();
    let lab = internet("netlong");
    let long = "2001:db8:2:0:bbbb:cccc:dddd:eeee:";
    assert!(text(&face(&lab, &["-tan"], false).stdout).contains(long));
    assert!(!text(&face(&lab, &["-tan"], true).stdout).contains(long));
    let by_word = face(&lab, &["--bug-compatible", "-tan"], false);
    assert!(!text(&by_word.stdout).contains(long) && text(&by_word.stdout).contains(" 2001:db8:2:0:bbbb:"));
}

#[test]
fn root_names_of_hosts_and_ports_are_netstats() {
    require_root!();
    require_tool!("netstat");
    let lab = Lab::new("netnames");
    lab.connect_v4(1);
    lab.connect_v6(1);
    lab.listen("0.0.0.0:443".parse().unwrap());
    lab.listen("[::]:22".parse().unwrap());
    lab.udp("127.0.0.1:53".parse().unwrap());
    for words in ["-ta", "-tua", "-tuae", "-tl", "-ta --numeric-ports", "-ta --numeric-hosts"] {
        same(&lab, words, true);
    }
}

/// Programs are shown by the first word of their command line, even an unusual one.
#[test]
fn root_programs_are_named_as_netstat_names_them() {
    require_root!();
    require_tool!("netstat");
    require_tool!("perl");
    let lab = Lab::new("netprog");
    let words = [
        "sshd: /usr/sbin/sshd -D",
        "/opt/x y/a b/prog name",
        "./rel/path/x",
        "-bash",
        "",
        "/a-name-longer-than-the-column",
    ];
    let listen = "use Socket; socket(S, PF_INET, SOCK_STREAM, 0) or die; bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or \
                  die; listen(S, 5) or die; sleep 1000";
    for word in words {
        lab.spawn("bash", &["-c", "exec -a \"$1\" perl -e \"$2\"", "bash", word, listen]);
    }
    lab.wait_until("all listen", || lab.ss_count() == words.len());
    same(&lab, "-tlpn", false);
    same(&lab, "-tlpn", true);
    let hostile = "evil\u{1b}[31m\nname";
    lab.spawn("bash", &["-c", "exec -a \"$1\" perl -e \"$2\"", "bash", hostile, listen]);
    lab.wait_until("the hostile one listens", || lab.ss_count() == words.len() + 1);
    same(&lab, "-tlpn", true);
    let ours = face(&lab, &["-tlpn"], false).stdout;
    assert!(!ours.contains(&0x1b) && text(&ours).contains("/evil?[31m?"), "{}", text(&ours));
}

/// A user id without processes, because sockets of the user's own processes would affect the comparison. It depends on
/// the pid, so that concurrent test runs use different ids.
fn user_without_processes() -> u32 {
    use std::os::unix::fs::MetadataExt;
    let used: Vec<u32> =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| Some(entry.metadata().ok()?.uid())).collect();
    let first = 100_000 + std::process::id() % 1_000_000 * 16;
    (first..).find(|uid| !used.contains(uid)).unwrap()
}

/// One message for a user whose processes have no sockets, and another for a user with some.
#[test]
fn root_another_user_is_warned_in_netstats_words() {
    require_root!();
    require_tool!("netstat");
    require_tool!("setpriv");
    require_tool!("perl");
    let lab = Lab::new("netnobody");
    lab.listen_tcp(2);
    let uid = user_without_processes();
    let user = [format!("--reuid={uid}"), format!("--regid={uid}"), "--clear-groups".to_owned()];
    let as_user = |program: &std::ffi::OsStr, face: &[&str]| {
        let mut command = lab.command("setpriv");
        command.args(&user).arg(program).args(face).arg("-tlnp").stdin(Stdio::null()).output().unwrap()
    };
    let both = |says: &str| {
        let theirs = as_user("netstat".as_ref(), &[]);
        let ours = as_user(program::netwren().as_ref(), &["netstat"]);
        assert_eq!(text(&theirs.stderr), text(&ours.stderr));
        assert_eq!(mask::sorted_lines(&text(&theirs.stdout)), mask::sorted_lines(&text(&ours.stdout)));
        assert!(text(&ours.stderr).contains(says), "{}", text(&ours.stderr));
        assert_eq!(ours.status.code(), Some(0));
    };
    both(&format!("geteuid()={uid} but you should be root"));
    let listen = "use Socket; socket(S, PF_INET, SOCK_STREAM, 0) or die; bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or \
                  die; listen(S, 5) or die; sleep 1000";
    let words: Vec<&str> = user.iter().map(String::as_str).chain(["perl", "-e", listen]).collect();
    lab.spawn("setpriv", &words);
    lab.wait_until("theirs listens", || lab.ss_count() == 3);
    both("(Not all processes could be identified");
}

/// `-c` repeats until it is interrupted, and then exits like a program killed by the signal.
#[test]
fn root_continuous_lists_again_until_interrupted() {
    require_root!();
    let lab = Lab::new("netcont");
    lab.listen_tcp(1);
    let mut child = lab.run_inside(|| {
        Command::new(program::netwren()).args(["netstat", "-tlnc"]).stdout(Stdio::piped()).spawn().unwrap()
    });
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let headings = lines.map_while(Result::ok).filter(|line| line.starts_with("Active ")).take(2).count();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(headings, 2);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Names that the running kernel does not use, and names for which netstat has unused sentences.
const OLD_NAMES: &str = "TCPDirectCopyFromBacklog TCPDirectCopyFromPrequeue TCPDSackUndo TCPFACKReorder \
                         TCPForwardRetrans TCPHPHitsToUser TCPLoss TCPPrequeued TCPPrequeueDropped \
                         TCPRenoRecoveryFailed TCPRenoRecoveryFail TCPSackFailures \
    TCPSackRecoveryFail TCPSackRecovery TCPSACKReneging TCPSchedulerFailed TCPTimeouts TCPAbortOnSyn PAWSPassive \
    SockMallocOOM TWKilled ListenDrops Forwarding";

/// The kernel's own file with every number replaced: by a unique number derived from its position, or by 0.
fn numbered(file: &str, zero: bool) -> String {
    let live = std::fs::read_to_string(file).unwrap();
    let number = |n: usize| if zero { "0".to_owned() } else { (n * 7 + 3).to_string() };
    if file.ends_with("snmp6") {
        let lines = live.lines().enumerate();
        return lines
            .map(|(n, line)| format!("{}\t{}\n", line.split_whitespace().next().unwrap(), number(n)))
            .collect();
    }
    let mut out = String::new();
    for names in live.lines().step_by(2) {
        let old = if names.starts_with("TcpExt:") { OLD_NAMES } else { "" };
        let names: Vec<&str> = names.split_whitespace().chain(old.split_whitespace()).collect();
        out += &names.join(" ");
        out += &format!("\n{}", names[0]);
        (1..names.len()).for_each(|n| out += &format!(" {}", number(n)));
        out += "\n";
    }
    out
}

#[test]
fn root_counters_are_printed_in_netstats_words() {
    require_root!();
    require_tool!("netstat");
    require_tool!("unshare");
    let dir = tempfile::tempdir().unwrap();
    let sctp =
        "SctpCurrEstab                   \t7\nSctpActiveEstabs \t0\nSctpAborteds \t3\nSctpNew \t5\nSctpShutdowns \t9\n";
    for zero in [false, true] {
        for (name, content) in [
            ("snmp", numbered("/proc/net/snmp", zero)),
            ("netstat", numbered("/proc/net/netstat", zero)),
            ("snmp6", numbered("/proc/net/snmp6", zero)),
            ("sctp", sctp.to_owned()),
        ] {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        for words in ["-s", "-st", "-su", "-sw", "-sS", "-stu", "-s4", "-s6", "-s6t", "-s6u", "-s6w", "-s46", "-sx"] {
            let theirs = with_counters(dir.path(), "netstat".as_ref(), &[words]);
            let ours = with_counters(dir.path(), program::netwren().as_ref(), &["netstat", words]);
            assert_eq!(text(&theirs.stdout), text(&ours.stdout), "{words}");
            assert_eq!(theirs.status.code(), ours.status.code(), "{words}");
        }
    }
}

/// Runs a program with a /proc that contains only these files.
fn with_counters(dir: &std::path::Path, program: &std::ffi::OsStr, words: &[&str]) -> Output {
    let script = "mount -t tmpfs none /proc && mkdir -p /proc/net/sctp && ln -s . /proc/thread-self && \
                  cp \"$1\"/snmp \"$1\"/netstat \"$1\"/snmp6 /proc/net/ && cp \"$1\"/sctp /proc/net/sctp/snmp && \
                  shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(dir).arg(program).args(words).env("LC_ALL", "C");
    command.output().unwrap()
}

/// Invalid command lines, the usage and the version: the same bytes on the same streams and the same exit code.
#[test]
fn issue_10_wrong_calls_are_netstats() {
    require_tool!("netstat");
    for line in [
        "--nosuch",
        "-tj",
        "-Y",
        "-A",
        "-A nosuch",
        "-A inet,nosuch",
        "--protocol=nosuch",
        "--tcp=1",
        "--n",
        "--l",
        "-ri",
        "-rs",
        "-si",
        "-s -r",
        "-ti --nosuch",
        "-Ilo",
        "-I",
        "--interfaces=lo",
        "-M",
        "-Z",
        "-h",
        "--help",
        "-V",
        "--version",
        "-tV",
        "-th",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let run = |command: &mut Command| command.args(&words).env("LC_ALL", "C").output().unwrap();
        let theirs = run(&mut Command::new("netstat"));
        let ours = run(Command::new(program::netwren()).args(["netstat", "--bug-compatible"]));
        assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{line}");
        assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{line}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{line}");
        // The only difference without `--bug-compatible` is additional text.
        let right = run(Command::new(program::netwren()).arg("netstat"));
        assert!(text(&right.stderr).starts_with(&text(&theirs.stderr)), "{line}: {}", text(&right.stderr));
        assert!(
            line.contains('V') || line.contains("version") || text(&right.stdout).starts_with(&text(&theirs.stdout))
        );
        assert_eq!(right.status.code(), theirs.status.code(), "{line}");
    }
    let out = Command::new(program::netwren()).args(["netstat", "-A", "no\u{1b}such"]).output().unwrap();
    assert_eq!(text(&out.stderr), "Unknown address family `no?such'.\n");
}

/// A link called netstat acts as netstat, and `NETWREN_BUG_COMPATIBLE=1` applies to it.
#[test]
fn root_a_link_called_netstat_is_netstat() {
    require_root!();
    let lab = internet("netlink");
    let link = lab.dir().join("netstat");
    std::os::unix::fs::symlink(program::netwren(), &link).unwrap();
    let run = |old: &str| {
        let out = lab.command(&link).args(["-tan6"]).env("NETWREN_BUG_COMPATIBLE", old).output().unwrap();
        text(&out.stdout)
    };
    assert!(run("0").starts_with("Active Internet connections (servers and established)\nProto "));
    assert!(run("0").contains(" 2001:db8:2:0:bbbb:cccc:dddd:eeee:"));
    assert!(!run("1").contains(" 2001:db8:2:0:bbbb:cccc:dddd:eeee:"));
}

/// A reader that closes the pipe is not an error.
#[test]
fn root_a_closed_pipe_is_success() {
    require_root!();
    let lab = Lab::new("netpipe");
    lab.listen_tcp(3);
    // A closed socket pair reports a missing reader like a pipe does.
    let (reader, writer) = UnixStream::pair().unwrap();
    drop(reader);
    let writer = OwnedFd::from(writer);
    let status = lab.command(program::netwren()).args(["netstat", "-tan"]).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

/// A full disk is reported.
#[test]
fn root_a_full_disk_is_reported() {
    require_root!();
    let lab = Lab::new("netfull");
    let full = std::fs::File::create("/dev/full").unwrap();
    let out = lab.command(program::netwren()).args(["netstat", "-tan"]).stdout(full).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("cannot write the output"), "{}", text(&out.stderr));
}

/// A server whose first thread has ended, so that its process has no command line.
const FIRST_THREAD_ENDED: &str = "
import ctypes, os, platform, socket, threading
listener = socket.create_server(('127.0.0.1', 7115))
threading.Thread(target=threading.Event().wait).start()
ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)
";

#[test]
fn root_a_process_whose_first_thread_has_ended_has_its_program() {
    require_root!();
    require_tool!("python3");
    let lab = Lab::new("netstatzombie");
    let pid = lab.spawn("python3", &["-c", FIRST_THREAD_ENDED]);
    testkit::wait_until("the first thread has ended", || {
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    });
    let shown = text(&face(&lab, &["-tlnp"], false).stdout);
    assert!(shown.contains(&format!(" {pid}/python3")), "{shown}");
}
