//! Native commands on live tables: filters, groups, namespaces, rounds, flows.

use crate::lab::furnished;
use crate::run::{Ran, clean, netwren, netwren_in};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::netns::Lab;
use testkit::wait_until;

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

/// Every backend gives the same rows, whether the kernel or netwren filters them.
#[test]
fn root_a_filter_means_the_same_through_every_backend() {
    testkit::require_root!();
    let lab = furnished("filters");
    for filter in [
        "proto = tcp and state = listen",
        "state in (established, time_wait) and proto = tcp",
        "local_port > 1024 and proto in (tcp, udp)",
        "peer in 127.0.0.0/8",
        "not peer in 127.0.0.0/8 and proto = tcp",
        "family = inet6",
        "peer = null and proto = udp",
        "local_port in (1-65535) or path ~ stream",
    ] {
        let base = [
            "sockets",
            "--no-owner",
            "--columns",
            "proto,family,state,local_addr,local_port,peer_addr,peer_port",
            filter,
        ];
        let via = |backend: &'static str| {
            let mut args = base.to_vec();
            args.extend(["--via", backend]);
            // /proc does not name the interface of a link-local address.
            testkit::mask::sorted_lines(&netwren_in(&lab, &args).ok().replace("%nwl0", ""))
        };
        let netlink = via("netlink");
        assert_eq!(netlink, via("proc"), "{filter}");
        assert!(netlink.lines().count() > 1, "{filter} matches nothing");
    }
}

#[test]
fn root_groups_count_what_the_list_shows() {
    testkit::require_root!();
    let lab = furnished("groups");
    let list = netwren_in(&lab, &["sockets", "-H", "--no-owner", "--columns", "state", "proto = tcp"]).ok();
    let groups = netwren_in(&lab, &["sockets", "-H", "--by", "state", "proto = tcp"]).ok();
    for group in groups.lines() {
        let (state, count) = group.split_once('\t').unwrap();
        assert_eq!(list.lines().filter(|line| *line == state).count().to_string(), count, "{state}");
    }
    let counts: Vec<u64> = groups.lines().map(|l| l.split('\t').nth(1).unwrap().parse().unwrap()).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "the largest first: {counts:?}");
}

/// Three clients of one service, and the same connections seen from the other side, are two flows with opposite
/// directions.
#[test]
fn root_flows_fold_the_ephemeral_side() {
    testkit::require_root!();
    let lab = Lab::new("flows");
    let pairs = lab.connect_v4(3);
    let port = pairs[0].server.port();
    let columns = "direction,local_addr,local_port,peer_addr,peer_port,connections,established";
    let flows = netwren_in(&lab, &["flows", "-H", "--columns", columns, "--sort", "direction"]).ok();
    let expected =
        format!("in\t127.0.0.1\t{port}\t127.0.0.1\tmany\t3\t3\nout\t127.0.0.1\tmany\t127.0.0.1\t{port}\t3\t3\n");
    assert_eq!(flows, expected);
}

#[test]
fn root_a_listener_bound_to_one_address_is_passive() {
    testkit::require_root!();
    let lab = Lab::new("bound");
    let listener = lab.listen("127.0.0.5:0".parse().unwrap());
    lab.connect(&listener, "127.0.0.5".parse().unwrap(), 2);
    let args = ["flows", "-H", "--columns", "direction,local_addr,connections", "local_addr = 127.0.0.5"];
    assert_eq!(netwren_in(&lab, &args).ok(), "in\t127.0.0.5\t2\n");
}

#[test]
fn root_flows_filter_sockets_before_and_flows_after() {
    testkit::require_root!();
    let lab = Lab::new("twice");
    lab.connect_v4(4);
    lab.connect_v6(1);
    let count = |filter: &str| lines(&netwren_in(&lab, &["flows", "-H", "--no-owner", filter]).ok()).len();
    assert_eq!(count(""), 4);
    assert_eq!(count("connections > 1"), 2);
    assert_eq!(count("family = inet6"), 2);
    assert_eq!(count("family = inet6 and connections > 1"), 0);
    assert_eq!(count("peer_scope = loopback and state = established"), 4);
}

#[test]
fn root_bytes_of_flows_are_summed_when_asked() {
    testkit::require_root!();
    let lab = Lab::new("bytes");
    let _held = lab.run_inside(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            client.write_all(b"twelve bytes").unwrap();
            (client, listener.accept().unwrap().0)
        };
        let pairs = [connect(), connect()];
        // The listener shows that the connections are incoming.
        (pairs, listener)
    });
    let args = ["flows", "-H", "--columns", "bytes_in,connections", "direction = in"];
    lab.wait_until("the bytes have arrived", || netwren_in(&lab, &args).ok() == "24\t2\n");
}

#[test]
fn root_another_namespace_by_name_pid_and_path() {
    testkit::require_root!();
    // A message lists only the first namespaces by name; this name is among them.
    let lab = Lab::new("0netns");
    let ports = lab.listen_tcp(2);
    let pid = lab.spawn("sleep", &["60"]).to_string();
    let path = lab.path().display().to_string();
    for written in [lab.name(), &path, &pid] {
        let args = [
            "sockets",
            "-H",
            "--no-owner",
            "--netns",
            written,
            "--columns",
            "local_port,netns",
            "--sort",
            "local_port",
        ];
        let mut expected = ports.clone();
        expected.sort_unstable();
        let expected: String = expected.iter().map(|port| format!("{port}\t{}\n", lab.name())).collect();
        assert_eq!(netwren(&args).ok(), expected, "{written}");
    }
    netwren(&["sockets", "--netns", "no-such-thing"]).says(4, &["no-such-thing", lab.name()]);
}

/// Rounds continue until Ctrl-C, which ends the run cleanly.
#[test]
fn root_watch_repeats_until_interrupted() {
    testkit::require_root!();
    let lab = Lab::new("watch");
    lab.listen_tcp(1);
    let mut child = clean(&mut lab.command(testkit::program::netwren()))
        .args(["sockets", "--no-owner", "-o", "json", "--watch=0.02", "state = listen"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let rounds: Vec<String> = out.by_ref().filter(|line| line.starts_with("{\"round\"")).take(3).collect();
    assert!(rounds[2].starts_with("{\"round\":{\"n\":3,\"time\":\"20"), "{rounds:?}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert!(out.count() < 10_000, "it ends");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A run that waits for its reader, which has not read anything yet.
fn waiting_for_its_reader(lab: &Lab) -> Child {
    let child = clean(&mut lab.command(testkit::program::netwren()))
        .args(["sockets", "--no-owner", "--watch=0.01", "--cost"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let of = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", child.id())).unwrap();
    wait_until("a full pipe", || of("wchan").contains("pipe_write"));
    child
}

fn interrupt(child: &Child) {
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).stderr(Stdio::null()).status();
}

/// timeout(1) signals its child and then the child's process group. Both signals count as one request, and the totals
/// are still printed.
#[test]
fn root_two_signals_at_once_are_one_request() {
    testkit::require_root!();
    let lab = Lab::new("twosignals");
    lab.listen_tcp(100);
    // On a busy machine the second signal may be too late to count as the same request.
    wait_until("two signals at once", || {
        let child = waiting_for_its_reader(&lab);
        let first = Instant::now();
        interrupt(&child);
        let status = format!("/proc/{}/status", child.id());
        let handled = || std::fs::read_to_string(&status).unwrap().contains("ShdPnd:\t0000000000000000");
        wait_until("the first signal is handled", handled);
        interrupt(&child);
        let at_once = first.elapsed() < Duration::from_millis(150);
        let ended = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr).contains("netwren: cost: ");
        assert!(!at_once || (ended.status.code() == Some(0) && told), "{ended:?}");
        at_once
    });
}

/// The first signal cannot end the run while it is blocked; a later signal can.
#[test]
fn root_a_later_signal_ends_what_cannot_end() {
    testkit::require_root!();
    let lab = Lab::new("latersignal");
    lab.listen_tcp(100);
    let mut child = waiting_for_its_reader(&lab);
    wait_until("the end", || {
        interrupt(&child);
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().signal(), Some(2));
}

#[test]
fn root_a_name_that_attacks_terminals_is_harmless() {
    testkit::require_root!();
    let lab = Lab::new("hostile");
    let path = lab.dir().join("\u{1b}[31m\nred \u{202e}");
    let _socket = lab.run_inside(|| std::os::unix::net::UnixListener::bind(&path).unwrap());
    for args in
        [&["sockets", "--no-owner", "--columns", "path"][..], &["sockets", "-o", "json", "--no-owner"], &["ss", "-xl"]]
    {
        let text = netwren_in(&lab, args).ok();
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{args:?}: {text}");
        assert_eq!(lines(&text).iter().filter(|l| l.contains("red")).count(), 1, "one line each: {text}");
    }
}

#[test]
fn root_names_come_from_hosts_without_delay() {
    testkit::require_root!();
    let lab = Lab::new("resolve");
    lab.connect_v4(1);
    let args = ["sockets", "-H", "--no-owner", "--resolve=5", "--columns", "peer_addr", "state = established"];
    let Ran { stdout, .. } = netwren_in(&lab, &args);
    let known = std::fs::read_to_string("/etc/hosts").unwrap();
    let name = known.lines().find_map(|l| l.strip_prefix("127.0.0.1")).and_then(|l| l.split_whitespace().next());
    assert!(stdout.lines().all(|line| line == name.unwrap_or("127.0.0.1")), "{stdout}");
}

/// Bound sockets that neither listen nor are connected are shown if the filter names their state (Linux 6.8 and
/// later), but never in a plain list.
#[test]
fn root_bound_but_inactive_is_shown_when_named() {
    testkit::require_root!();
    let lab = Lab::new("bound_inactive");
    let _bound = lab.run_inside(|| {
        let socket = sys::socket::open(2, 1, 0).unwrap();
        sys::socket::bind(&socket, &"127.0.0.1:4711".parse().unwrap()).unwrap();
        socket
    });
    let args = |filter: &'static str| ["sockets", "-H", "--no-owner", "--columns", "state,local_port", filter];
    assert_eq!(netwren_in(&lab, &args("proto = tcp")).ok(), "");
    assert_eq!(netwren_in(&lab, &args("state in (listen, bound_inactive)")).ok(), "bound_inactive\t4711\n");
    // The layout of the installed ss may lack that switch.
    let mut face = lab.command(testkit::program::netwren());
    crate::run::clean(&mut face).args(["ss", "-HtanB"]).env("NETWREN_SS_LAYOUT", "6.15");
    assert!(crate::run::Ran::of(face.output().unwrap()).ok().contains("127.0.0.1:4711"));
}
